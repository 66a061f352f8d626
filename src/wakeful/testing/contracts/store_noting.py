"""The contract of a store: what is told of acts and denials that leave no other row."""

from __future__ import annotations

import pytest

from wakeful.core.events import Event, EventKind
from wakeful.core.items import Observation
from wakeful.testing.contracts.store_case import NOW, SECOND, StoreCase, tick

NOTED = (EventKind.acted.value, EventKind.denied.value)


def denied(**more: object) -> Event:
    return Event(kind=EventKind.denied, at=NOW, fields={"why": "host", "count": 1, **more})


class NotingContract(StoreCase):
    def test_what_was_noted_is_told_for_good_in_its_order_and_its_own_words(self) -> None:
        self.declare("moss")
        message = self.message("moss")
        act: dict[str, object] = {"by": "operator", "operation": "send"}
        self.store.note([denied(path="/ä\u202e/…"), denied(count=70)])
        self.store.note(
            [Event(kind=EventKind.acted, at=NOW + SECOND, agent="moss", run=None, item=message, fields=act)]
        )
        self.reopen()
        first, second, third = self.store.events(kinds=NOTED)
        assert (first.kind, first.at, first.agent) == (EventKind.denied, NOW, None)
        assert first.fields == {"why": "host", "count": 1, "path": "/ä\u202e/…"}
        assert (second.fields or {})["count"] == 70
        assert (third.at, third.agent, third.item, third.fields) == (NOW + SECOND, "moss", message, act)
        assert self.store.events(kinds=NOTED, agent="moss") == [third]

    def test_only_what_has_no_other_verb_can_be_noted(self) -> None:
        for kind in set(EventKind) - {EventKind.acted, EventKind.denied, EventKind.tainted}:
            with pytest.raises(ValueError, match=kind.value):
                self.store.note([denied(), Event(kind=kind, at=NOW)])
        assert self.store.events() == []

    def test_a_run_is_tainted_by_what_it_was_shown_and_by_what_it_is_known_to_have_read(self) -> None:
        self.declare("moss", "fern")
        self.store.observe("inbox", "moss", [Observation(external_id="note.txt", fingerprint="1")], NOW)
        shown, other = self.start(tick("moss")).run.id, self.start(tick("fern")).run.id
        assert self.store.is_tainted(shown)
        assert not self.store.is_tainted(other) and not self.store.is_tainted(other + 1)
        self.store.note([Event(kind=EventKind.tainted, at=NOW, agent="fern", run=other, fields={"operation": "inbox"})])
        assert self.store.is_tainted(other) and not self.store.is_tainted(other + 1)

    def test_an_act_shares_the_fate_of_what_it_tells(self) -> None:
        self.declare("moss")
        before = len(self.store.events())

        def undone() -> None:
            self.store.note([Event(kind=EventKind.acted, at=NOW, fields={"by": "operator", "operation": "send"})])
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            self.together(undone)
        assert len(self.store.events()) == before
