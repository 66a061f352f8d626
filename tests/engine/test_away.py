"""The store is away for a while: the engine stays, says so, loses nothing, and goes on as soon as it is back."""

import asyncio
import logging
from itertools import pairwise

import pytest

from tests.engine.nodes import AWAY
from tests.engine.stage import SECOND, heading, lived
from wakeful.core.errors import Busy, Mistake
from wakeful.core.runs import FENCING
from wakeful.engine.absence import LONGEST_REST, outwait
from wakeful.engine.services import Lasting
from wakeful.runners.protocol import Checked
from wakeful.testing.loop import passes

NAMES = ("wren", "moss", "finch")


def gone(company, away=True):
    for node in company.nodes:
        node.away = away


# ---- while the engine is at work


@lived
async def test_runs_do_not_notice_a_store_that_is_away_for_ten_seconds(company):
    one, two = company.nodes
    await company.at_work(NAMES)
    await one.until(30)
    gone(company)
    await one.until(40)
    gone(company, away=False)
    await one.until(320)
    assert one.outcomes() == ["done"] * 3
    assert {end - start for _, start, end in one.lives()} == {300}
    assert two.seen == []
    assert all(node.engine.health()["ready"] for node in company.nodes)


@lived
async def test_after_a_minute_without_a_store_everything_goes_on_within_three_seconds_and_nothing_ran_twice(company):
    one, _ = company.nodes
    await company.at_work(NAMES)
    await one.until(30)
    gone(company)
    await one.until(90)
    assert all(43 <= end <= 45.1 for _, _, end in one.lives()), one.lives()
    gone(company, away=False)
    await one.until(93.1)
    again = [seen for node in company.nodes for seen in node.seen if seen.at > 90]
    assert sorted(seen.agent for seen in again) == sorted(NAMES)
    assert company.overlaps() == []
    # Whichever node was first to tell it.
    told = {run.reason for run in one.store.runs() if run.outcome}
    assert told <= {"its node was gone", "ended by fencing: its lease was not renewed in time"}
    await one.until(500)
    assert sorted(one.outcomes()) == ["done"] * 3 + ["killed"] * 3
    assert all(node.engine.health()["ready"] for node in company.nodes)


@lived
async def test_where_one_node_alone_cannot_reach_the_store_the_others_take_over(company):
    one, two = company.nodes
    await company.at_work(NAMES)
    await one.until(30)
    one.away = True
    await two.until(60)
    assert sorted(seen.agent for seen in two.seen) == sorted(NAMES)
    assert company.overlaps() == []
    one.away = False
    await one.until(63)
    assert one.holding == []
    assert one.engine.health()["ready"]
    await two.until(400)
    assert two.outcomes() == ["killed"] * 3 + ["done"] * 3


@lived
async def test_an_end_that_came_meanwhile_is_told_when_the_store_is_back(company):
    one, two = company.nodes
    await company.at_work(NAMES, 25 * SECOND)
    await one.until(30)
    gone(company)
    # They end at 35, well before their fence.
    await one.until(42)
    assert one.outcomes() == []
    gone(company, away=False)
    await one.until(45)
    assert one.outcomes() == ["done"] * 3
    assert two.seen == []


@lived
async def test_health_says_that_the_store_is_away_and_that_it_is_back(company):
    one, _ = company.nodes
    company.declare(heading("wren", interval="2h"), grace="2h")
    await company.up()
    await one.until(21)
    assert (one.engine.health()["ready"], one.engine.health()["why_not"]) == (True, "")
    gone(company)
    # Nobody asks before the next renewal.
    await one.until(25.5)
    assert (one.engine.health()["ready"], one.engine.health()["why_not"]) == (False, AWAY)
    await one.until(200)
    assert (one.engine.health()["ready"], one.engine.health()["why_not"]) == (False, AWAY)
    gone(company, away=False)
    await one.until(203)
    assert (one.engine.health()["ready"], one.engine.health()["why_not"]) == (True, "")


@lived
async def test_a_store_that_is_away_is_one_line_each_time_and_no_traceback(company, caplog):
    one, _ = company.nodes
    await company.at_work(NAMES)
    caplog.set_level(logging.INFO)
    gone(company)
    await one.until(70)
    caplog.clear()
    await one.until(100)
    ours = [record for record in caplog.records if record.name == "wakeful.engine"]
    assert ours
    assert all(record.exc_info is None for record in ours)
    assert all("\n" not in record.getMessage() and AWAY in record.getMessage() for record in ours)
    # Two nodes; on each the loop, the renewals, the log and the three ends try every two seconds.
    assert len(ours) <= 2 * 6 * 16


@lived
async def test_a_run_whose_end_was_asked_for_stays_in_sight_while_the_store_is_away(company):
    one, _ = company.nodes
    await company.at_work(NAMES)
    (run, *_) = one.store.runs()
    await one.access.write(lambda store: store.stop([run.id], "ada", one.now))
    gone(company)
    await one.until(13)
    assert set(one.holding) >= {row.id for row in one.store.runs(open=True)}
    gone(company, away=False)
    await one.until(17)
    assert one.store.run(run.id).reason == "ended by ada"


@pytest.mark.parametrize("keeper", ["sqlite"], indirect=True)
@lived
async def test_what_was_being_prepared_is_prepared_again_and_its_check_is_heard(company):
    """The store is away when a work tree has moved: the CHECK has yet to be asked, and must be."""
    one, two = company.nodes
    company.declare(heading("wren", interval="2h", gitops="true", check="look"), grace="20s")
    two.away = True
    await one.up()
    one.checks = lambda agent: Checked(wake=False, reason="nothing new")

    async def pulls(agent):
        one.away = True
        return ""

    one.pulls = pulls
    await one.until(22)
    assert one.asked == []
    one.pulls = lambda agent: ""
    one.away = False
    await one.until(27)
    assert one.asked == ["wren"]
    assert one.seen == []
    assert one.standing().idle_streak == 1


# ---- at a start and at the end


@lived
async def test_a_start_waits_for_its_store(company, caplog):
    one, _ = company.nodes
    company.declare(heading("wren", interval="2h"), grace="10s")
    one.away = True
    starting = asyncio.ensure_future(one.up())
    await passes(60)
    assert not starting.done()
    assert AWAY in caplog.text
    assert all(record.exc_info is None for record in caplog.records)
    one.away = False
    await passes(LONGEST_REST)
    engine = await starting
    assert engine.ready
    await passes(15)
    assert [seen.agent for seen in one.seen] == ["wren"]


@lived
async def test_who_is_asked_to_leave_while_it_waits_at_its_start_leaves(company):
    one, _ = company.nodes
    company.declare(heading("wren", interval="2h"))
    one.away = True
    starting = asyncio.ensure_future(one.up())
    await passes(30)
    one.engine.leave()
    await passes(0.1)
    engine = await starting
    assert (engine.ready, engine.leaving) == (False, True)
    await engine.stop()
    assert one.tasks() == set()


@lived
async def test_who_leaves_while_the_store_is_away_does_not_wait_for_it(company):
    one, _ = company.nodes
    await company.at_work(NAMES)
    await one.until(20)
    one.away = True
    before = one.elapsed
    await one.down()
    assert one.elapsed - before < 10
    await one.until(33)
    one.away = False
    await one.up()
    await one.until(400)
    assert one.outcomes() == ["done"] * 3


@lived
async def test_only_a_store_that_is_away_is_waited_for():
    tried = []

    async def work():
        tried.append(asyncio.get_running_loop().time())
        if len(tried) < 8:
            raise Busy(AWAY)
        raise Mistake("not an address of PostgreSQL")

    with pytest.raises(Mistake):
        await outwait(work)
    assert [round(later - sooner, 2) for sooner, later in pairwise(tried)] == [
        0.1, 0.2, 0.4, 0.8, 1.6, 2, 2,
    ]  # fmt: skip


@lived
async def test_a_service_that_waits_for_the_store_rests_for_two_seconds_at_most(caplog):
    begun = []

    async def work():
        begun.append(asyncio.get_running_loop().time())
        raise OSError("no") if len(begun) == 6 else Busy(AWAY)

    service = Lasting("work", work)
    await service.start()
    await passes(20)
    await service.stop()
    rests = [round(later - sooner, 2) for sooner, later in pairwise(begun)]
    assert rests[:5] == [0.5, 1, 2, 2, 2]
    assert rests[6:8] == [2, 2]
    assert [record.exc_info is None for record in caplog.records[:7]] == [True] * 5 + [False, True]


def test_the_fence_is_what_a_guardian_calls_it():
    from wakeful.runners.lease import FENCING as OF_GUARDIANS

    assert FENCING == OF_GUARDIANS
