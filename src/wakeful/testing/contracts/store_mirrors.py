"""State is level, cost is edge: a mirrored list rings once for each generation of a thing, and an outage is no news."""

from __future__ import annotations

from datetime import datetime

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
