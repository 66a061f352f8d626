"""What is told for its own sake: what the operator did, what nobody was let do, what taints a run.

Law: every other event is written by the verb whose deed it tells; nobody can tell of a deed that was not done.
"""

from __future__ import annotations

from collections.abc import Sequence

from wakeful.core.events import NOTES, Event
from wakeful.store.base import SqlBase


class Noting(SqlBase):
    def note(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.kind not in NOTES:
                raise ValueError(f"{event.kind} is told by what it tells of, and cannot be noted")
        if self.session.depth:
            # Part of a write that begins and ends without it; a part of its own would cost as much as the note.
            self._note_each(events)
        else:
            with self.session.transaction("note"):
                self._note_each(events)

    def _note_each(self, events: Sequence[Event]) -> None:
        for event in events:
            self.event(event.kind, event.at, agent=event.agent, run=event.run, item=event.item, fields=event.fields)
