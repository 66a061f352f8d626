"""Nodes side by side: who they are, what they keep together, and what each of them costs."""

from itertools import pairwise

import pytest

from tests.engine.stage import HOUR, MINUTE, SECOND, heading, lived
from wakeful.core.errors import Conflict
from wakeful.core.items import Kind, NewItem, Ring
from wakeful.core.wakes import FLEET, Cause, Pause, Subject, Wake
from wakeful.engine import loop
from wakeful.engine.presence import IDLE
from wakeful.testing.loop import passes
from wakeful.testing.runner import done

DAY = 24 * HOUR


def nodes(stage):
    return {row.name: row for row in stage.store.nodes(stage.now)}


# ---- coming and going


@lived
async def test_nodes_are_seen_while_they_are_there_and_are_gone_when_they_have_left_or_fallen_silent(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), grace="2h")
    await company.up()
    await one.until(100)
    company.set_lease_clock(one.store)
    known = nodes(one)
    assert {name: (row.alive, row.host, row.url) for name, row in known.items()} == {
        name: (True, f"host of {name}", f"http://{name}") for name in ("one", "two")
    }
    assert all((one.now - row.seen_at).total_seconds() <= IDLE for row in known.values())
    await one.down()
    await two.crash()
    assert nodes(one)["one"].left_at is not None
    await one.until(121)
    company.set_lease_clock(one.store)
    assert [row.alive for row in nodes(one).values()] == [False, False]
    assert nodes(one)["two"].left_at is None


@lived
async def test_a_second_engine_of_the_same_name_is_refused_and_harms_nobody(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), grace="2h")
    await one.up()
    two.node = "one"
    two.host = "elsewhere"
    with pytest.raises(Conflict, match="one"):
        await two.up()
    assert not two.engine.ready
    # Whoever was refused has nothing to leave.
    await two.down()
    company.set_lease_clock(one.store)
    assert nodes(one)["one"].alive
    assert nodes(one)["one"].host == "host of one"
    assert one.engine.health()["ready"]


@lived
async def test_where_there_is_no_other_node_the_name_is_whose_the_folder_is_and_is_never_given_up(stage):
    """A container is called otherwise each time it is started; nothing is renewed, and nobody is taken for gone."""
    stage.declare(heading("wren", interval="10m"), sessions="1")
    stage.all_end(done(), duration=5 * MINUTE)
    stage.host = "0c11a5e0"
    await stage.up()
    await stage.until(70)
    await stage.crash()
    stage.host = "f7d2b331"
    await stage.up()
    await stage.until(400)
    assert stage.outcomes() == ["done"]
    (row,) = stage.store.nodes(stage.now + 1000 * DAY)
    assert (row.name, row.host, row.alive) == ("here", "f7d2b331", True)
    await stage.down()
    (row,) = stage.store.nodes(stage.now)
    assert not row.alive


@lived
async def test_a_node_that_an_older_store_does_not_know_joins_it_again(company):
    one, _ = company.nodes
    company.declare(heading("wren", interval="2h"), grace="2h")
    await one.up()
    await one.until(8)
    one.store.session.connection.execute("DELETE FROM node")
    assert nodes(one) == {}
    await one.until(14)
    company.set_lease_clock(one.store)
    assert nodes(one)["one"].alive
    assert one.engine.health()["ready"]


@lived
async def test_one_node_more_puts_off_nothing_that_the_others_are_about_to_do(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="10m"), heading("moss", interval="10m"), stagger="30s")
    await one.up()
    await one.until(55)
    await two.up()
    await one.until(120)
    assert sorted(seen.at for node in company.nodes for seen in node.seen) == [60, 90]


@lived
async def test_the_first_node_after_a_while_without_any_keeps_the_grace(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="1m"))
    await one.up()
    await one.until(30)
    await one.down()
    await one.until(300)
    await two.up()
    await two.until(400)
    assert [seen.at for seen in two.seen] == [360]


# ---- what they keep together


@lived
async def test_a_pause_of_the_fleet_at_one_node_holds_at_all_of_them(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="1m"), heading("moss", interval="1m"), sessions="4")
    await company.up()
    await one.until(50)
    pause = Pause(scope=FLEET, owner="ada", reason="away", since=one.now)
    await one.access.write(lambda store: store.pause(pause, one.now))
    await one.until(600)
    assert one.seen == two.seen == []
    await two.access.write(lambda store: store.resume(FLEET, "ada", two.now))
    await one.until(700)
    assert {seen.agent for node in company.nodes for seen in node.seen} == {"wren", "moss"}


@lived
async def test_the_pause_file_of_one_node_is_not_lifted_by_one_that_has_none(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="1m"))
    one.write("PAUSE", "the cellar is under water")
    await company.up()
    await one.until(300)
    assert one.seen == two.seen == []
    (pause,) = two.store.pauses()
    assert (pause.owner, "under water" in pause.reason) == ("file@one", True)
    # Nor by its coming back.
    await two.down()
    await two.up()
    await one.until(400)
    assert [pause.owner for pause in two.store.pauses()] == ["file@one"]
    (one.folder / "PAUSE").unlink()
    one.engine.nudge()
    await one.until(500)
    assert two.store.pauses() == []
    assert one.seen or two.seen


@lived
async def test_slots_are_the_fleets_and_not_the_nodes(company):
    names = [f"agent-{n}" for n in range(9)]
    company.declare(*(heading(name, interval="5m") for name in names), sessions="2", stagger="1s")
    for node in company.nodes:
        node.all_end(done(), duration=20 * SECOND)
    await company.up()
    await company.nodes[0].until(600)
    assert company.most_at_once() == 2
    assert {life[0] for node in company.nodes for life in node.lives()} == set(names)
    assert company.overlaps() == []


@lived
async def test_an_end_that_is_asked_for_at_one_node_reaches_a_run_of_another(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), heading("moss", interval="2h"), grace="2h")
    for node in company.nodes:
        node.all_end(done(), duration=10 * MINUTE)
    await company.up()
    await two.begin("wren", "moss")
    wren, moss = (run.id for run in sorted(two.store.runs(), key=lambda run: run.agent, reverse=True))
    await one.access.write(lambda store: store.stop([wren], "ada", one.now))
    await one.until(one.elapsed + 0.1)
    assert two.carrier.ends == [(wren, "ada", False)]
    # And where no hint gets through, with the next renewal.
    one.deaf = two.deaf = True
    await one.access.write(lambda store: store.stop([moss], "ada", one.now, at_once=True))
    await one.until(one.elapsed + 5.1)
    assert two.carrier.ends == [(wren, "ada", False), (moss, "ada", True)]
    assert [run.reason for run in one.store.runs()] == ["ended by ada"] * 2


@lived
async def test_an_end_that_is_asked_for_while_a_run_starts_needs_no_store_to_reach_it(company):
    one, _ = company.nodes
    company.declare(heading("wren", interval="2h"), grace="2h")

    async def slowly(order):
        await passes(8)

    one.after = slowly
    one.all_end(done(), duration=10 * MINUTE)
    await company.up()
    await one.begin("wren")
    (run,) = one.store.runs()
    await one.access.write(lambda store: store.stop([run.id], "ada", one.now, at_once=True))
    await one.until(4)
    one.away = True
    await one.until(12)
    assert one.carrier.ends == [(run.id, "ada", True)]
    one.away = False
    await one.until(16)
    assert [row.reason for row in one.store.runs()] == ["ended by ada"]


# ---- hints


async def knock(company):
    """Whatever may be asked for from elsewhere, while nobody hears: a tick, and a message that rings."""
    one, two = company.nodes
    one.deaf = two.deaf = True
    now = one.now
    wake = Wake(agent="wren", cause=Cause.operator, subject=Subject.beat, requested_at=now)
    letter = NewItem(kind=Kind.message, agent="moss", ring=Ring.operator, subject="hello")
    company.set_lease_clock(one.store)
    one.store.ask([wake], now)
    one.store.record([letter], now)


@pytest.mark.parametrize("after", [0.3, 2, 4.9])
@lived
async def test_what_no_hint_told_of_is_found_within_five_seconds(company, after):
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), heading("moss", interval="2h"), grace="2h")
    await company.up()
    await one.until(40 + after)
    await knock(company)
    asked = one.elapsed
    await one.until(asked + 5.1)
    seen = [*one.seen, *two.seen]
    assert sorted(each.agent for each in seen) == ["moss", "wren"]
    assert company.overlaps() == []


@lived
async def test_what_a_hint_tells_of_is_found_at_once(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), grace="2h")
    await company.up()
    await one.until(42)
    wake = Wake(agent="wren", cause=Cause.operator, subject=Subject.beat, requested_at=one.now)
    company.set_lease_clock(one.store)
    one.store.ask([wake], one.now)
    company.hint(one)
    await one.until(42.1)
    assert [seen.agent for seen in two.seen] == ["wren"]


@lived
async def test_whoever_watches_at_a_node_hears_of_what_happened_at_another_although_no_hint_came(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), grace="2h")
    await company.up()
    await one.until(42)
    one.deaf = two.deaf = True
    heard = []
    two.access.watch(lambda: heard.append(two.elapsed))
    await two.until(60)
    assert heard == []
    # Nothing is due by it, and nobody else is to do anything.
    pause = Pause(scope="agent:wren", owner="ada", reason="at rest", since=one.now)
    await one.access.write(lambda store: store.pause(pause, one.now))
    await two.until(65.1)
    assert len(heard) == 1


# ---- what an idle node costs


@lived
async def test_an_idle_node_calls_the_store_once_in_five_seconds_and_never_else(company):
    one, _ = company.nodes
    company.declare(*(heading(f"agent-{n}", interval="7d") for n in range(20)), grace="4h")
    await company.up()
    # Between the first sweep of the past, after two minutes, and the first resync, after five.
    await one.until(129)
    for node in company.nodes:
        node.access.calls.clear()
    await one.until(129 + 150)
    for node in company.nodes:
        assert [what for _, what in node.access.calls] == ["write"] * 30
        assert {round(later - sooner, 2) for (sooner, _), (later, _) in pairwise(node.access.calls)} == {5}


@lived
async def test_a_resync_now_and_then_is_all_that_comes_to_that(company):
    one, _ = company.nodes
    company.declare(*(heading(f"agent-{n}", interval="7d") for n in range(20)), grace="4h")
    await one.up()
    await one.until(60)
    one.access.calls.clear()
    await one.until(60 + 1800)
    assert len(one.access.calls) <= 360 + 6 * 4


@lived
async def test_a_node_with_runs_renews_every_two_seconds_and_writes_nothing_else(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), grace="2h")
    one.all_end(done(), duration=10 * MINUTE)
    await company.up()
    await one.begin("wren")
    await one.until(20)
    one.access.calls.clear()
    changed = one.store.events(limit=1000)[-1].id
    await one.until(20 + 60)
    writes = [at for at, what in one.access.calls if what == "write"]
    assert len(writes) == 30
    assert one.store.events(limit=1000)[-1].id == changed
    assert two.seen == []


@lived
async def test_an_orphan_that_cannot_be_ended_keeps_nobody_from_working(company, monkeypatch, caplog):
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), heading("moss", interval="2h"), grace="2h", sessions="4")
    one.all_end(done(), duration=10 * MINUTE)
    await company.up()
    await one.begin("wren")
    await one.crash()
    settle = vars(loop)["settle"]

    def sick(run, ending, *rest, **named):
        if ending.orphaned:
            raise ValueError("no such state")
        return settle(run, ending, *rest, **named)

    monkeypatch.setattr(loop, "settle", sick)
    await two.until(40)
    await two.begin("moss")
    await two.until(60)
    assert [seen.agent for seen in two.seen] == ["moss"]
    assert "could not be ended" in caplog.text
    monkeypatch.setattr(loop, "settle", settle)
    await two.until(70)
    assert [seen.agent for seen in two.seen] == ["moss", "wren"]
    assert company.overlaps() == []
