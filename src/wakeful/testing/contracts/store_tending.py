"""Sources and who tends them: an outage is told once, and what a node saw that does not tend a source is not taken."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from wakeful.core.errors import Stale, Unknown
from wakeful.core.events import EventKind
from wakeful.core.items import Observation, State
from wakeful.core.ledger import Edges
from wakeful.store.protocol import SourceRow
from wakeful.testing.contracts.store_case import DONE, FAILED, HOUR, LEASE, MINUTE, NOW, SECOND, StoreCase

OVER = NOW + LEASE
FOLDER, BOARD = ("folder", "moss"), ("board", "wren")


class TendingContract(StoreCase):
    def look(self, *names: str, now: datetime = NOW, node: str | None = None) -> Edges:
        things = [Observation(external_id=name, fingerprint="1") for name in names]
        return self.store.observe("folder", "moss", things, now, node=node)

    def fail(self, why: str, now: datetime, node: str | None = None) -> Edges:
        return self.store.observe("folder", "moss", None, now, node=node, why=why)

    def tend(
        self, node: str, *sources: tuple[str, str], now: datetime = NOW, lease: timedelta = LEASE
    ) -> set[tuple[str, str]]:
        self.set_clock(now)
        return set(self.store.tend(sources or (FOLDER,), node, now, lease))

    def outages_told(self) -> list[tuple[str, datetime, object]]:
        events = self.store.events(kinds=(EventKind.outage.value, EventKind.restored.value))
        assert {event.agent for event in events} <= {"moss"}
        return [(event.kind.value, event.at, (event.fields or {})["why"]) for event in events]

    def tenure(self, node: str, now: datetime = NOW) -> int:
        self.set_clock(now)
        return self.store.tend([FOLDER], node, now, LEASE)[FOLDER]

    def everything(self) -> object:
        return self.store.items(), self.store.events(), self.store.sources()

    # -- outages

    def test_an_outage_is_told_once_for_each_reason_and_so_is_its_end(self) -> None:
        self.declare("moss")
        self.look("a")
        for second in range(5):
            assert self.fail("no such folder", NOW + second * SECOND) == Edges(same=("a",))
        self.reopen()
        self.fail("no such folder", NOW + 5 * SECOND)
        (row,) = self.store.sources()
        assert row == SourceRow(source="folder", agent="moss", node=None, outage="no such folder", since=NOW)
        self.fail("not allowed", NOW + MINUTE)
        assert self.store.sources() == [
            SourceRow(source="folder", agent="moss", node=None, outage="not allowed", since=NOW)
        ]
        for minute in range(2, 5):
            assert self.look("a", now=NOW + minute * MINUTE) == Edges(same=("a",))
        assert self.store.sources() == []
        assert self.outages_told() == [
            ("outage", NOW, "no such folder"),
            ("outage", NOW + MINUTE, "not allowed"),
            ("restored", NOW + 2 * MINUTE, "not allowed"),
        ]
        fields = self.store.events()[-1].fields or {}
        assert fields["source"] == "folder"
        self.fail("not allowed", NOW + HOUR)
        assert self.outages_told()[-1] == ("outage", NOW + HOUR, "not allowed")

    def test_the_row_follows_a_reason_at_once_and_the_events_once_a_minute(self) -> None:
        self.declare("moss")
        for second in range(150):
            now = NOW + second * SECOND
            why = ("no answer within 10 s", "not allowed")[second // 5 % 2]
            self.fail(why, now)
            assert [(row.outage, row.since) for row in self.store.sources()] == [(why, NOW)]
        assert [at for _, at, _ in self.outages_told()] == [NOW, NOW + 65 * SECOND, NOW + 130 * SECOND]
        self.look(now=NOW + HOUR)
        assert self.outages_told()[-1] == ("restored", NOW + HOUR, "not allowed")

    def test_a_reason_that_lasted_less_than_a_minute_is_told_of_when_the_next_one_stays(self) -> None:
        self.declare("moss")
        self.fail("not allowed", NOW)
        for second in range(10, 600, 10):
            self.fail("no answer", NOW + second * SECOND)
        told = [("outage", NOW, "not allowed"), ("outage", NOW + MINUTE, "no answer")]
        assert self.outages_told() == told

    def test_a_reason_that_says_the_time_is_told_once(self) -> None:
        self.declare("moss")
        for minute in range(120):
            self.fail(f"failed at 12:{minute % 60}", NOW + minute * MINUTE)
        assert [row.outage for row in self.store.sources()] == ["failed at 12:59"]
        assert self.outages_told() == [("outage", NOW, "failed at 12:0")]

    def test_what_is_mirrored_outlives_an_outage_and_what_changed_meanwhile_rings(self) -> None:
        self.declare("moss")
        self.look("a", "b")
        (order,) = self.serve(NOW)
        self.end(order, DONE, NOW + SECOND)
        self.fail("away", NOW + MINUTE)
        assert {item.state for item in self.store.items(agent="moss")} == {State.open}
        assert self.look("a", "c", now=NOW + 2 * MINUTE) == Edges(new=("c",), gone=("b",), same=("a",))
        (order,) = self.serve(NOW + 2 * MINUTE)
        assert [item.external_id for item in order.items] == ["c"]

    def test_an_outage_of_one_source_is_none_of_another(self) -> None:
        self.declare("moss", "wren")
        self.fail("away", NOW)
        self.store.observe("folder", "wren", [], NOW + SECOND)
        self.store.observe("board", "moss", [], NOW + SECOND)
        assert [(row.source, row.agent) for row in self.store.sources()] == [("folder", "moss")]

    def test_a_look_that_finds_what_is_known_changes_nothing(self) -> None:
        self.declare("moss")
        self.look("a")
        self.tend("one")
        before = self.everything()
        self.look("a", now=NOW + SECOND)
        self.look("a", now=NOW + SECOND, node="one")
        self.fail("", NOW + SECOND)
        assert self.everything() == before

    def test_two_looks_in_one_transaction_see_each_other(self) -> None:
        self.declare("moss")
        found = self.together(lambda: [self.look("a"), self.look(), self.look()])
        assert found == [Edges(new=("a",)), Edges(gone=("a",)), Edges()]

    def test_the_sources_of_nobody_are_refused(self) -> None:
        self.declare("moss")
        with pytest.raises(Unknown, match="hale"):
            self.store.observe("folder", "hale", None, NOW, why="away")
        with pytest.raises(Unknown, match="hale"):
            self.tend("one", FOLDER, ("folder", "hale"))
        assert self.store.sources() == []

    # -- who tends

    def test_one_node_tends_a_source_until_its_lease_runs_out(self) -> None:
        self.declare("moss", "wren")
        assert self.tend("one") == {FOLDER}
        assert self.tend("two", FOLDER, BOARD) == {BOARD}
        assert self.tend("one", BOARD, FOLDER, now=NOW + SECOND) == {FOLDER}
        assert self.tend("two", FOLDER, now=OVER) == set()
        assert self.tend("two", FOLDER, now=OVER + SECOND) == {FOLDER}
        assert self.tend("one", FOLDER, now=OVER + SECOND) == set()
        rows = [(row.source, row.agent, row.node, row.outage) for row in self.store.sources()]
        assert rows == [(*FOLDER, "two", None), (*BOARD, "two", None)]
        self.reopen()
        assert [row.node for row in self.store.sources()] == ["two", "two"]

    def test_nothing_is_tended_for_the_asking_of_nothing(self) -> None:
        self.declare("moss")
        assert not self.store.tend([], "one", NOW, LEASE)
        assert self.tend("one", FOLDER, FOLDER) == {FOLDER}

    def test_what_a_node_saw_that_does_not_tend_the_source_is_not_taken(self) -> None:
        self.declare("moss")
        with pytest.raises(Stale):
            self.look("a", node="one")
        self.tend("one")
        self.look("a", node="one")
        self.tend("two", now=OVER)
        before = self.everything()
        for names in ((), ("a",), ("a", "b")):
            with pytest.raises(Stale, match="two"):
                self.look(*names, now=OVER, node="one")
        with pytest.raises(Stale):
            self.fail("away", OVER, node="one")
        assert self.everything() == before
        assert self.look("b", now=OVER, node="two") == Edges(new=("b",), gone=("a",))

    def test_whoever_tends_a_source_may_look_until_another_one_does(self) -> None:
        self.declare("moss")
        self.tend("one")
        self.set_clock(OVER + HOUR)
        assert self.look("a", now=OVER + HOUR, node="one") == Edges(new=("a",))

    def test_an_outage_is_the_sources_whoever_tends_it(self) -> None:
        self.declare("moss")
        self.tend("one")
        self.fail("away", NOW, node="one")
        self.tend("two", now=OVER)
        assert [(row.node, row.outage, row.since) for row in self.store.sources()] == [("two", "away", NOW)]
        self.look(now=OVER, node="two")
        assert [(row.node, row.outage, row.since) for row in self.store.sources()] == [("two", None, None)]
        assert [kind for kind, *_ in self.outages_told()] == ["outage", "restored"]

    def test_a_node_that_leaves_gives_up_what_it_tends(self) -> None:
        self.declare("moss", "wren")
        self.store.join("one", "attic", "", NOW, LEASE)
        self.tend("one", FOLDER, BOARD)
        self.fail("away", NOW, node="one")
        self.store.leave("one", NOW + SECOND)
        assert [(row.source, row.node, row.outage) for row in self.store.sources()] == [("folder", None, "away")]
        with pytest.raises(Stale, match="nobody"):
            self.look("a", now=NOW + SECOND, node="one")
        assert self.tend("two", FOLDER, BOARD, now=NOW + SECOND) == {FOLDER, BOARD}

    def test_a_tenure_lasts_until_another_node_had_it(self) -> None:
        self.declare("moss")
        first = self.tenure("one")
        assert self.tenure("one", NOW + SECOND) == first
        self.look("a", now=NOW + SECOND, node="one")
        second = self.tenure("two", OVER + SECOND)
        third = self.tenure("one", OVER + 2 * LEASE)
        assert len({first, second, third}) == 3
        before = self.everything()
        for stale in (first, second):
            with pytest.raises(Stale):
                self.store.observe(*FOLDER, [], OVER + 2 * LEASE, node="one", tenure=stale)
        assert self.everything() == before
        self.store.observe(*FOLDER, [], OVER + 2 * LEASE, node="one", tenure=third)
        self.store.leave("one", OVER + 2 * LEASE + SECOND)
        assert self.tenure("one", OVER + 2 * LEASE + SECOND) not in (first, second, third)

    def test_what_was_seen_before_a_runs_own_doings_were_told_does_not_undo_them(self) -> None:
        self.declare("moss")
        tenure = self.tenure("one")
        self.look("a", node="one")
        (order,) = self.serve(NOW)
        done = [Observation(external_id="a", fingerprint="3", body="done")]
        self.store.amend(*FOLDER, done, NOW + SECOND)
        self.end(order, DONE, NOW + SECOND)
        before = self.everything()
        # As it was before the run, and half-way through it; what is the same is not taken either.
        for print in "123":
            seen = [Observation(external_id="a", fingerprint=print), Observation(external_id="b", fingerprint="1")]
            with pytest.raises(Stale, match="what a run had done"):
                self.store.observe(*FOLDER, seen, NOW + SECOND, node="one", tenure=tenure)
            with pytest.raises(Stale):
                self.store.observe(*FOLDER, done, NOW + SECOND, node="one", tenure=tenure)
        assert self.everything() == before
        tenure = self.tenure("one", NOW + 2 * SECOND)
        assert self.store.observe(*FOLDER, done, NOW + 2 * SECOND, node="one", tenure=tenure) == Edges(same=("a",))
        assert self.serve(NOW + MINUTE) == []

    def test_a_look_that_found_nothing_to_tell_of_leaves_a_tenure_as_it_is(self) -> None:
        self.declare("moss")
        tenure = self.tenure("one")
        self.look("a", node="one")
        self.store.amend(*FOLDER, [Observation(external_id="a", fingerprint="1")], NOW + SECOND)
        assert self.tenure("one", NOW + SECOND) == tenure

    # -- nobody declares it any more

    def test_what_was_mirrored_of_an_abandoned_source_is_closed_and_nobody_tends_it(self) -> None:
        self.declare("moss", "wren")
        self.tend("one", FOLDER, BOARD)
        self.look("a", "b")
        self.store.observe("board", "wren", [Observation(external_id="a", fingerprint="1")], NOW)
        self.fail("away", NOW)
        assert self.store.mirrored_sources() == [BOARD, FOLDER]
        orders = {order.agent.name: order for order in self.serve(NOW)}
        assert self.store.abandon([FOLDER, ("folder", "wren")], NOW + SECOND, node="one") == []
        assert self.store.mirrored_sources() == [BOARD]
        closed = [item for item in self.store.items(agent="moss") if item.closed_at == NOW + SECOND]
        assert [item.external_id for item in closed] == ["a", "b"]
        gone = self.store.events(kinds=(EventKind.gone.value,))
        assert [(event.item, (event.fields or {})["source"]) for event in gone] == [
            (item.id, "folder") for item in closed
        ]
        assert [(row.source, row.node) for row in self.store.sources()] == [("board", "one")]
        self.end(orders["moss"], FAILED, NOW + MINUTE)
        assert [item for item in self.store.items(agent="moss") if item.closed_at is None] == []
        assert self.tend("two", FOLDER, now=NOW + SECOND) == {FOLDER}

    def test_an_abandoned_source_that_is_declared_again_rings_again(self) -> None:
        self.declare("moss")
        self.look("a")
        self.store.abandon([FOLDER], NOW)
        assert self.serve(NOW) == []
        self.look("a", now=NOW + SECOND)
        assert len(self.serve(NOW + SECOND)) == 1

    def test_what_another_node_tends_is_not_abandoned_until_its_lease_has_run_out(self) -> None:
        self.declare("moss", "wren")
        self.tend("two", FOLDER)
        self.tend("one", BOARD)
        self.look("a", node="two")
        before = self.everything()
        assert self.store.abandon([FOLDER], NOW + SECOND, node="one") == [FOLDER]
        assert self.store.abandon([FOLDER], NOW + SECOND) == [FOLDER]
        assert self.everything() == before
        assert self.store.abandon([FOLDER, BOARD], NOW + SECOND, node="one") == [FOLDER]
        assert self.store.mirrored_sources() == [FOLDER]
        assert [row.node for row in self.store.sources()] == ["two"]
        self.set_clock(OVER)
        assert self.store.abandon([FOLDER], OVER, node="one") == []
        assert (self.store.mirrored_sources(), self.store.sources()) == ([], [])
