"""Nodes that share a store and a folder: one of them tends it, another takes over, and nothing rings twice."""

import logging

import pytest

from tests.engine.nodes import Company
from tests.engine.stage import heading, lived
from wakeful.engine.presence import LEASE
from wakeful.engine.sourcing import TEND
from wakeful.testing.loop import passes
from wakeful.testing.runner import done

LEASED, EVERY = LEASE.total_seconds(), TEND.total_seconds()


class Mount:
    """A folder that every node sees, and that no kernel tells them of."""

    def __init__(self, company: Company) -> None:
        self.folder = company._folder / "mount"
        self.folder.mkdir()
        self._beside = company._folder / "unfinished"

    def put(self, name: str, words: str = "words") -> None:
        self._beside.write_text(words)
        self._beside.rename(self.folder / name)


@pytest.fixture
def mount(company):
    mount = Mount(company)
    company.declare(heading("moss", inbox=str(mount.folder)), grace="0s")
    for node in company.nodes:
        node.all_end(done())
    return mount


def tender(company):
    (row,) = company.nodes[0].store.sources()
    return row.node


def runs(company):
    return sorted((seen.at, seen.cause) for node in company.nodes for seen in node.seen)


@lived
async def test_one_node_tends_a_source_and_each_file_is_one_run(company, mount):
    await company.up()
    assert tender(company) == "one"
    for number in range(3):
        mount.put(f"note {number}")
        await passes(90)
    assert [cause for _, cause in runs(company)] == ["news"] * 3
    assert [len(node.engine.sourcing._tended) for node in company.nodes] == [1, 0]


@lived
async def test_after_the_death_of_its_node_another_one_takes_over_and_nothing_rings_twice(company, mount):
    one, two = company.nodes
    mount.put("note")
    await company.up()
    await one.until(200)
    assert len(runs(company)) == 1
    await one.crash()
    mount.put("other")
    await two.until(200 + LEASED - EVERY)
    assert tender(company) == "one"
    await two.until(200 + LEASED + 2 * EVERY)
    assert tender(company) == "two"
    await two.until(400)
    assert len(runs(company)) == 2
    await one.up()
    await one.until(500)
    assert tender(company) == "two"
    assert len(runs(company)) == 2


@lived
async def test_a_node_that_leaves_gives_up_what_it_tended(company, mount):
    one, two = company.nodes
    mount.put("note")
    await company.up()
    await one.until(200)
    await one.down()
    await two.until(200 + EVERY + 1)
    assert tender(company) == "two"
    mount.put("other")
    await two.until(400)
    assert len(runs(company)) == 2


@lived
async def test_a_node_that_was_frozen_says_nothing_of_what_another_one_tends(company, mount, caplog):
    one, two = company.nodes
    caplog.set_level(logging.INFO, "wakeful.engine")
    mount.put("note")
    await company.up()
    await one.until(200)
    one.freeze()
    # What it sees now it tells when it thaws, and by then it is old.
    mount.put("note", "as it was")
    await two.until(202)
    mount.put("note", "as it is")
    await two.until(200 + LEASED + 2 * EVERY)
    assert tender(company) == "two"
    assert [item.body for item in two.store.items(agent="moss")] == ["as it is"]
    one.thaw()
    await two.until(400)
    assert [item.body for item in two.store.items(agent="moss")] == ["as it is"]
    assert len(runs(company)) == 2
    assert "inbox of moss is ours no more, or anew: one does not tend this source: two does" in caplog.text
    assert [len(node.engine.sourcing._tended) for node in company.nodes] == [0, 1]


@lived
async def test_while_the_store_is_away_nothing_is_lost_and_it_is_told_once(company, mount):
    one, _ = company.nodes
    await company.up()
    await one.until(200)
    for node in company.nodes:
        node.away = True
    mount.put("note")
    await one.until(230)
    for node in company.nodes:
        node.away = False
    await one.until(235)
    assert len(runs(company)) == 1
    await one.until(500)
    assert len(runs(company)) == 1


@lived
async def test_a_run_on_the_node_that_tends_its_inbox_rings_nobody_by_its_edits(company, mount):
    one, two = company.nodes
    await company.up()
    await two.down()
    await one.until(200)
    mount.put("note", "to do")
    await one.until(250)
    (mount.folder / "note").write_text("done")
    await one.until(500)
    assert len(runs(company)) == 1


@lived
async def test_a_run_on_another_node_than_the_one_that_tends_its_inbox_does_not_either(company, mount):
    one, two = company.nodes
    await company.up()
    await one.until(100)
    await two.begin("moss")
    mount.put("note", "to do")
    mount.put("other", "to do")
    await one.until(105)
    # From here on the first one hears of nothing, and the second begins whatever comes of the run's end.
    one.deaf = True
    await two.until(180)
    assert tender(company) == "one"
    assert [(seen.cause, len(node.seen)) for node in company.nodes for seen in node.seen] == [
        ("operator", 2),
        ("news", 2),
    ]
    assert two.seen[1].cause == "news"
    one.deaf = False
    await two.until(two.seen[1].at + 60 - 0.01)
    # The kernel's hint to the one that tends it takes longer to be gathered than the run takes to end.
    (mount.folder / "note").write_text("done")
    (mount.folder / "other").unlink()
    await two.until(500)
    assert len(runs(company)) == 2
    states = {item.external_id: (item.state.value, item.body) for item in one.store.items(agent="moss")}
    assert states == {"note": ("open", "done"), "other": ("closed", "to do")}


@lived
async def test_two_nodes_without_sources_ask_for_none_and_with_some_once_every_five_seconds(company, mount):
    company.declare(heading("moss", interval="2h"), grace="2h")
    await company.up()
    one, _ = company.nodes
    await one.until(100)
    idle = len(one.access.calls)
    await one.until(300)
    without = len(one.access.calls) - idle
    company.declare(heading("moss", interval="2h", inbox=str(mount.folder)), grace="2h")
    await one.until(320)
    idle = len(one.access.calls)
    await one.until(520)
    # And a glance a minute.
    assert len(one.access.calls) - idle - without == pytest.approx(200 / EVERY + 200 / 60, abs=3)


@lived
async def test_an_edit_that_takes_an_inbox_away_ends_it_on_every_node(company, mount):
    mount.put("note")
    await company.up()
    await company.nodes[0].until(200)
    company.declare(heading("moss", interval="none"), grace="0s")
    await company.nodes[0].until(300)
    mount.put("other")
    await company.nodes[0].until(400)
    store = company.nodes[0].store
    assert store.sources() == store.mirrored_sources() == []
    assert len(runs(company)) == 1


def states(company):
    return {item.external_id: item.state.value for item in company.nodes[0].store.items(agent="moss")}


@lived
async def test_a_node_with_an_older_fleet_file_closes_nothing_of_what_another_one_tends(company, mount):
    one, two = company.nodes
    mount.put("note")
    two.declare(heading("moss", interval="none"), grace="0s")
    await one.up()
    await one.until(200)
    await two.up()
    await one.until(250)
    assert (tender(company), states(company)) == ("one", {"note": "open"})
    mount.put("other")
    await one.until(400)
    assert states(company) == {"note": "open", "other": "open"}
    assert [cause for _, cause in runs(company)] == ["news"] * 2
    # Once nobody tends it any more, the older file is all that is known.
    await one.crash()
    await two.until(400 + LEASED + 2 * EVERY)
    assert (two.store.sources(), states(company)) == ([], {"note": "closed", "other": "closed"})
    await one.up()
    await one.until(600)
    assert states(company) == {"note": "open", "other": "open"}
    assert len(runs(company)) == 2


@lived
async def test_what_was_closed_behind_the_back_of_its_node_is_open_again_soon_and_rings_nobody(company, mount):
    one, two = company.nodes
    mount.put("note")
    await company.up()
    await one.until(200)
    # As an engine of before did, and as a hand in the database may.
    await two.access.write(lambda store: store.abandon([("inbox", "moss")], one.now, node="one"))
    assert states(company) == {"note": "closed"}
    await one.until(200 + 2 * EVERY)
    assert (tender(company), states(company)) == ("one", {"note": "open"})
    await one.until(500)
    assert len(runs(company)) == 1


@lived
async def test_what_was_seen_before_a_run_elsewhere_edited_its_file_does_not_ring(company, mount):
    one, two = company.nodes
    await company.up()
    await one.until(100)
    await two.begin("moss")
    mount.put("note", "to do")
    await one.until(105)
    one.deaf = True
    await two.until(180)
    (run,) = [seen for seen in two.seen if seen.cause == "news"]
    one.deaf = False
    await two.until(run.at + 50)
    # The node that tends it sees that, and is held up before it can tell; not so long that another would take over.
    one.freeze()
    (mount.folder / "note").write_text("half done")
    mount.put("more", "to do")
    await two.until(run.at + 60 - 0.01)
    (mount.folder / "note").write_text("done")
    await two.until(run.at + 60.5)
    assert tender(company) == "one"
    one.thaw()
    await two.until(600)
    assert {item.external_id: item.body for item in one.store.items(agent="moss")} == {"note": "done", "more": "to do"}
    shown = [[item.external_id for item in each.order.items] for node in company.nodes
             for each in node.carrier.runner.guardians.values()]  # fmt: skip
    assert sorted(shown) == [[], ["more"], ["note"]]
