"""The log: one line for every state change, with its row's own fields. The events are read, nothing is said twice.

What tasks of one shift came to together, and alike, is one line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any

from wakeful.core.events import Event, EventKind
from wakeful.engine.clock import Nudge
from wakeful.engine.logs import gathered
from wakeful.store.protocol import Access

log = logging.getLogger("wakeful.event")

# A page of events at a time; and a look although nothing was heard.
PAGE = 500
LONGEST = timedelta(minutes=5)
# Seconds that one look waits for what comes next.
GATHERED = 0.02
# What is long, and told elsewhere: the whole declaration, the facts that a verdict rests on.
UNTOLD = frozenset({"body", "facts"})
# Acts that may come by the thousand, and change nothing but a list.
RECORDED = frozenset({"send", "add_task", "add_tasks"})


class Teller:
    name = "teller"

    def __init__(self, access: Access) -> None:
        self._access = access
        self._nudge = Nudge()
        self._last: int | None = None

    async def run(self) -> None:
        if self._last is None:
            newest = await self._access.read(lambda store: store.events(before=1 << 62, limit=1))
            self._last = newest[0].id if newest else 0
            self._access.watch(self._nudge.ring)
        while True:
            await self.tell()
            await self._nudge.wait(LONGEST)
            # What follows close upon it is read with it.
            await asyncio.sleep(GATHERED)

    async def tell(self) -> None:
        """What happened since the last time."""
        while True:
            events = await self._access.read(lambda store: store.events(after=self._last or 0, limit=PAGE))
            with gathered():
                for event, items in _alike(events):
                    fields = fields_of(event)
                    if len(items) > 1:
                        del fields["item"]
                        fields["items"] = items
                    log.log(_level(event), "%s", event.kind.value, extra={"fields": fields})
            if events:
                self._last = events[-1].id
            if len(events) < PAGE:
                return


def _alike(events: Sequence[Event]) -> Iterator[tuple[Event, list[int | None]]]:
    """Each; but of those that were told as one, and differ only in what they are about, the first for all of them."""
    for _, alike in groupby(events, key=lambda event: (event.id, event.fields)):
        first, *others = alike
        yield first, [first.item, *(event.item for event in others)]


def fields_of(event: Event) -> dict[str, Any]:
    """The event's own names, flat; a verdict in its own words."""
    named = {"agent": event.agent, "wake": event.wake, "run": event.run, "item": event.item}
    told: dict[str, Any] = dict(named)
    for key, value in (event.fields or {}).items():
        if key == "verdict" and isinstance(value, dict):
            told |= {"verdict": value.get("kind"), "guard": value.get("guard"), "why": value.get("reason")}
        elif key not in UNTOLD:
            told[key] = value
    return {key: value for key, value in told.items() if value not in (None, "")}


def _level(event: Event) -> int:
    fields = event.fields or {}
    if event.kind is EventKind.acted and fields.get("operation") in RECORDED:
        return logging.DEBUG
    loud = event.kind in (EventKind.paused, EventKind.denied) or fields.get("outcome") in ("failed", "killed")
    return logging.WARNING if loud else logging.INFO
