"""State is level, cost is edge: a mirrored list rings once for each generation of a thing, and an outage is no news."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from wakeful.core.errors import Unknown
from wakeful.core.events import EventKind
from wakeful.core.items import Item, Observation, Ring, State
from wakeful.core.ledger import Edges
from wakeful.core.runs import Ending
from wakeful.core.wakes import Cause
from wakeful.store.protocol import Order
from wakeful.testing.contracts.store_case import DONE, FAILED, HOUR, KILLED, MINUTE, NO_WORK, NOW, SECOND, StoreCase

BEAT = NOW + HOUR


class MirrorsContract(StoreCase):
    def see(self, now: datetime = NOW, agent: str = "moss", source: str = "folder", **things: str) -> Edges:
        observed = [Observation(external_id=name, fingerprint=mark, body=mark) for name, mark in things.items()]
        return self.store.observe(source, agent, observed, now)

    def mirrored(self, name: str, agent: str = "moss") -> Item:
        found = [item for item in self.store.items(agent=agent) if item.external_id == name]
        return found[-1]

    def work_off(self, now: datetime, ending: Ending = DONE) -> Order:
        (order,) = self.serve(now)
        self.end(order, ending, now)
        return order

    def test_new_changed_and_gone_are_told_apart(self) -> None:
        self.declare("moss")
        assert self.see(a="1", b="1") == Edges(new=("a", "b"))
        assert self.see(a="1", b="2", c="1") == Edges(new=("c",), changed=("b",), same=("a",))
        assert self.see(c="1") == Edges(gone=("a", "b"), same=("c",))
        assert self.mirrored("c").state is State.open
        assert {self.mirrored(name).state for name in "ab"} == {State.closed}

    def test_a_thing_is_mirrored_as_its_source_shows_it(self) -> None:
        self.declare("moss")
        seen = Observation(external_id="a", fingerprint="1", subject="a note", body="water the plants")
        self.store.observe("folder", "moss", [seen], NOW)
        self.reopen()
        found = self.mirrored("a")
        assert (found.source, found.fingerprint, found.subject, found.body) == ("folder", "1", "a note", seen.body)
        assert (found.ring, found.shown, found.created_at) == (Ring.news, None, NOW)

    def test_what_a_run_did_to_its_own_things_is_told_by_whoever_sees_it_and_opens_and_closes_nothing(self) -> None:
        self.declare("moss")
        self.see(a="1", b="1")
        (order,) = self.serve(NOW)
        seen = [Observation(external_id=id, fingerprint="2", body="done") for id in ("a", "c")]
        assert self.store.amend("folder", "moss", seen, NOW + SECOND) == Edges(changed=("a",))
        assert self.store.amend("folder", "moss", seen, NOW + SECOND) == Edges(same=("a",))
        assert self.store.amend("elsewhere", "moss", seen, NOW + SECOND) == Edges()
        self.end(order, now=NOW + MINUTE)
        assert (self.mirrored("a").fingerprint, self.mirrored("a").shown) == ("2", "2")
        assert [item.external_id for item in self.store.items(agent="moss", state="open")] == ["a", "b"]
        assert self.see(NOW + 2 * MINUTE, a="2", b="1") == Edges(same=("a", "b"))
        assert self.serve(NOW + 3 * MINUTE) == []

    # -- the four scenarios of an edge-triggered inbox

    def test_what_is_stale_rings_once_and_then_never(self) -> None:
        self.declare("moss")
        self.see(a="1", b="1")
        assert [shown.external_id for shown in self.work_off(NOW).items] == ["a", "b"]
        for minute in range(1, 50):
            self.see(NOW + minute * MINUTE, a="1", b="1")
            assert self.serve(NOW + minute * MINUTE) == []
        self.reopen()
        assert self.serve(NOW + 51 * MINUTE) == []
        assert len(self.store.runs()) == 1

    def test_what_is_new_still_rings_beside_what_is_stale(self) -> None:
        self.declare("moss")
        self.see(a="1")
        self.work_off(NOW)
        self.see(NOW + MINUTE, a="1", b="1")
        assert [shown.external_id for shown in self.work_off(NOW + MINUTE).items] == ["b"]

    def test_what_has_changed_rings_again(self) -> None:
        self.declare("moss")
        self.see(a="1")
        self.work_off(NOW)
        assert self.see(NOW + MINUTE, a="2") == Edges(changed=("a",))
        order = self.work_off(NOW + MINUTE)
        assert [(shown.external_id, shown.body) for shown in order.items] == [("a", "2")]
        assert self.mirrored("a").shown == "2"

    def test_what_is_gone_is_closed_and_rings_no_more(self) -> None:
        self.declare("moss")
        self.see(a="1")
        self.see(NOW + SECOND)
        assert (self.mirrored("a").state, self.mirrored("a").closed_at) == (State.closed, NOW + SECOND)
        assert self.serve(NOW + SECOND) == []
        assert self.store.events()[-1].kind is EventKind.gone

    def test_what_is_removed_and_made_again_rings_again(self) -> None:
        self.declare("moss")
        self.see(a="1")
        self.work_off(NOW)
        self.see(NOW + SECOND)
        self.see(NOW + 2 * SECOND, a="1")
        assert [shown.external_id for shown in self.work_off(NOW + MINUTE).items] == ["a"]

    def test_an_outage_changes_nothing(self) -> None:
        self.declare("moss")
        self.see(a="1", b="1")
        self.work_off(NOW)
        before = (self.store.items(), self.store.events())
        assert self.store.observe("folder", "moss", None, NOW + MINUTE) == Edges(same=("a", "b"))
        assert (self.store.items(), self.store.events()) == before
        self.see(NOW + 2 * MINUTE, a="1", b="1")
        assert self.serve(NOW + 2 * MINUTE) == []

    # -- what goes and comes back as it was

    def files(self, now: datetime = NOW, **things: str) -> Edges:
        lasting = [Observation(external_id=name, fingerprint=mark, lasting=True) for name, mark in things.items()]
        return self.store.observe("folder", "moss", lasting, now)

    def comes_and_goes(self) -> list[tuple[str, str]]:
        events = self.store.events(kinds=(EventKind.gone.value, EventKind.returned.value))
        assert {event.agent for event in events} <= {"moss"}
        return [(event.kind.value, str((event.fields or {})["external_id"])) for event in events]

    def test_a_lasting_thing_that_comes_back_as_it_was_is_the_same_item_and_rings_nobody(self) -> None:
        self.declare("moss")
        self.files(a="1", b="1")
        self.work_off(NOW)
        before = self.store.items(agent="moss")
        for minute in range(1, 4):
            assert self.files(NOW + 2 * minute * MINUTE) == Edges(gone=("a", "b"))
            self.reopen()
            assert self.files(NOW + (2 * minute + 1) * MINUTE, a="1", b="1") == Edges(new=("a", "b"))
            assert self.store.items(agent="moss") == before
            assert self.serve(NOW + (2 * minute + 1) * MINUTE) == []
        assert self.comes_and_goes() == [("gone", "a"), ("gone", "b"), ("returned", "a"), ("returned", "b")] * 3
        (order,) = self.serve(BEAT)
        assert order.items == ()

    def test_one_that_comes_back_otherwise_is_another(self) -> None:
        self.declare("moss")
        self.files(a="1")
        self.work_off(NOW)
        self.files(NOW + SECOND)
        self.files(NOW + 2 * SECOND, a="2")
        assert [shown.external_id for shown in self.work_off(NOW + MINUTE).items] == ["a"]
        # And the first one again, as from a copy of the folder that was put away.
        self.files(NOW + 2 * MINUTE)
        self.files(NOW + 3 * MINUTE, a="1")
        assert self.serve(NOW + 3 * MINUTE) == []
        assert [(item.fingerprint, item.state) for item in self.store.items(agent="moss")] == [
            ("1", State.open),
            ("2", State.closed),
        ]

    def test_a_thousand_and_more_come_back_at_once(self) -> None:
        self.declare("moss")
        names = {f"f{number}": f"{number}" for number in range(1_001)}
        self.files(NOW, **names)
        self.files(NOW + SECOND)
        self.files(NOW + 2 * SECOND, **names)
        assert len(self.store.items(agent="moss", limit=5_000)) == 1_001

    def test_one_that_nobody_was_shown_rings_when_it_is_back(self) -> None:
        self.declare("moss")
        self.files(a="1")
        asked = self.serve(NOW - SECOND)
        assert asked == []
        self.files(NOW + SECOND)
        assert self.serve(NOW + SECOND) == []
        self.files(NOW + MINUTE, a="1")
        order = self.work_off(NOW + MINUTE)
        assert (order.run.cause, [shown.external_id for shown in order.items]) == (Cause.news, ["a"])
        assert len(self.store.items(agent="moss")) == 1

    def test_one_whose_wake_was_moot_meanwhile_rings_when_it_is_back(self) -> None:
        self.declare("moss")
        self.see(source="board", x="1")
        (order,) = self.serve(NOW)
        self.files(NOW + SECOND, a="1")
        assert self.serve(NOW + SECOND) == []
        self.files(NOW + 2 * SECOND)
        self.end(order, DONE, NOW + MINUTE)
        assert self.serve(NOW + 2 * MINUTE) == []
        self.files(NOW + 3 * MINUTE, a="1")
        assert [shown.external_id for shown in self.work_off(NOW + 3 * MINUTE).items] == ["a"]

    @pytest.mark.parametrize("back", [10 * SECOND, 2 * MINUTE], ids=["during the run", "after it"])
    def test_one_that_was_away_while_a_run_had_it_does_not_ring(self, back: timedelta) -> None:
        self.declare("moss")
        self.files(a="1")
        (order,) = self.serve(NOW)
        self.files(NOW + SECOND)
        if back < MINUTE:
            self.files(NOW + back, a="1")
        self.end(order, DONE, NOW + MINUTE)
        self.files(NOW + back, a="1")
        assert self.serve(NOW + back) == []
        assert self.mirrored("a").shown == "1"
        (order,) = self.serve(BEAT)
        assert order.items == ()

    def test_one_that_was_away_while_a_run_failed_on_it_is_put_before_another(self) -> None:
        self.declare("moss")
        self.files(a="1")
        (order,) = self.serve(NOW)
        self.files(NOW + SECOND)
        self.end(order, FAILED, NOW + MINUTE)
        self.files(NOW + 10 * MINUTE, a="1")
        assert [shown.external_id for shown in self.work_off(NOW + 10 * MINUTE).items] == ["a"]

    def test_one_that_was_put_off_is_put_off_when_it_is_back(self) -> None:
        self.declare("moss")
        self.files(a="1")
        self.work_off(NOW)
        self.store.snooze([self.mirrored("a").id], NOW + 30 * MINUTE, "rana", NOW + SECOND)
        self.files(NOW + MINUTE)
        self.files(NOW + 2 * MINUTE, a="1")
        assert self.serve(NOW + 29 * MINUTE) == []
        assert [shown.external_id for shown in self.work_off(NOW + 30 * MINUTE).items] == ["a"]

    def test_one_of_another_source_or_agent_is_another(self) -> None:
        self.declare("moss", "wren")
        self.files(a="1")
        self.work_off(NOW)
        self.files(NOW + SECOND)
        same = Observation(external_id="a", fingerprint="1", lasting=True)
        self.store.observe("shelf", "moss", [same], NOW + MINUTE)
        self.store.observe("folder", "wren", [same], NOW + MINUTE)
        self.store.observe("folder", "moss", [replace(same, external_id="b")], NOW + MINUTE)
        assert sum(len(order.items) for order in self.serve(NOW + MINUTE)) == 3

    # -- outcomes

    @pytest.mark.parametrize("ending", [DONE, NO_WORK])
    def test_a_run_does_not_close_a_mirrored_item_it_is_silent_until_it_changes(self, ending: Ending) -> None:
        self.declare("moss")
        self.see(a="1")
        self.work_off(NOW, ending)
        found = self.mirrored("a")
        assert (found.state, found.shown, found.unanswered) == (State.open, "1", 0)
        (order,) = self.serve(BEAT)
        assert order.items == ()

    @pytest.mark.parametrize("ending", [FAILED, KILLED])
    def test_after_a_failure_it_is_put_before_the_next_run(self, ending: Ending) -> None:
        self.declare("moss")
        self.see(a="1")
        self.work_off(NOW, ending)
        assert self.mirrored("a").unanswered == 1
        (order,) = self.serve(NOW + 30 * SECOND)
        assert [shown.external_id for shown in order.items] == ["a"]

    def test_a_crash_between_the_claim_and_the_end_loses_no_news(self) -> None:
        self.declare("moss")
        self.see(a="1")
        (order,) = self.serve(NOW)
        self.reopen()
        assert self.mirrored("a").shown is None
        self.store.void(order.run.id, order.run.epoch, NOW + SECOND)
        assert [shown.external_id for shown in self.work_off(NOW + SECOND).items] == ["a"]

    # -- during a run

    def test_an_agents_own_edits_during_its_run_do_not_ring(self) -> None:
        self.declare("moss")
        self.see(a="1")
        (order,) = self.serve(NOW)
        self.see(NOW + SECOND, a="2")
        self.serve(NOW + SECOND)
        self.end(order, DONE, NOW + MINUTE)
        for minute in range(1, 50):
            self.see(NOW + minute * MINUTE, a="2")
            assert self.serve(NOW + minute * MINUTE) == []
        assert self.mirrored("a").shown == "2"
        self.see(NOW + 50 * MINUTE, a="3")
        assert len(self.serve(NOW + 50 * MINUTE)) == 1

    def test_what_is_new_during_a_run_rings_after_it(self) -> None:
        self.declare("moss")
        self.see(a="1")
        (order,) = self.serve(NOW)
        self.see(NOW + SECOND, a="1", b="1")
        self.serve(NOW + SECOND)
        self.end(order, DONE, NOW + MINUTE)
        (order,) = self.serve(NOW + MINUTE + 2 * SECOND)
        assert (order.run.cause, [shown.external_id for shown in order.items]) == (Cause.news, ["b"])

    def test_what_is_gone_during_a_run_stays_gone_at_its_end(self) -> None:
        self.declare("moss")
        self.see(a="1")
        (order,) = self.serve(NOW)
        self.see(NOW + SECOND)
        closed = self.mirrored("a")
        self.end(order, FAILED, NOW + MINUTE)
        assert self.mirrored("a") == closed

    # -- whose

    def test_sources_and_agents_are_kept_apart(self) -> None:
        self.declare("moss", "wren")
        self.see(a="1")
        assert self.see(source="board", a="1") == Edges(new=("a",))
        assert self.see(agent="wren", a="1") == Edges(new=("a",))
        assert self.see(agent="wren") == Edges(gone=("a",))
        assert self.mirrored("a").state is State.open

    def test_the_list_of_an_unknown_agent_is_refused(self) -> None:
        with pytest.raises(Unknown):
            self.see(a="1")
        assert self.store.items() == []

    def test_a_thing_for_later_rings_at_its_time(self) -> None:
        self.declare("moss")
        later = Observation(external_id="a", fingerprint="1", not_before=NOW + 10 * MINUTE)
        self.store.observe("folder", "moss", [later], NOW)
        assert self.serve(NOW + 9 * MINUTE) == []
        assert [shown.external_id for shown in self.work_off(NOW + 10 * MINUTE).items] == ["a"]
