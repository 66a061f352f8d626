"""Everything that the checkers read: the store's rows and events, beside what the world saw."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from wakeful.core.events import Event, EventKind
from wakeful.core.items import Item, NewItem
from wakeful.core.runs import Ending
from wakeful.core.standing import Standing
from wakeful.core.wakes import Pause
from wakeful.store.protocol import RunRow, Store, WakeRow
from wakeful.testing.witness import Call, Execution, Observed, Witness

PAGE = 1000
Row = TypeVar("Row", Event, RunRow, WakeRow, Item)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A broken rule: what was seen, and the rows that show it."""

    rule: str
    what: str
    rows: tuple[object, ...] = ()


def _pages(read: Callable[[int], Sequence[Row]], id_of: Callable[[Row], int]) -> list[Row]:
    found: list[Row] = []
    while page := read(id_of(found[-1]) if found else 0):
        found.extend(page)
    return found


class History:
    def __init__(self, store: Store, witness: Witness) -> None:
        self.witness = witness
        self.store = store
        self.now: datetime = witness.clock.wall
        events = _pages(lambda after: store.events(after=after, limit=PAGE), lambda event: event.id)
        runs = _pages(lambda after: store.runs(after=after, limit=PAGE), lambda run: run.id)
        wakes = _pages(lambda after: store.wakes(after=after, limit=PAGE), lambda row: row.wake.id)
        items = _pages(lambda after: store.items(after=after, limit=PAGE), lambda item: item.id)
        self.events: list[Event] = events
        self.runs = {run.id: run for run in runs}
        self.wakes = {row.wake.id: row for row in wakes}
        self.items = {item.id: item for item in items}
        self.pauses: list[Pause] = store.pauses()
        self.standings: dict[str, Standing] = {}
        for agent in store.agents(removed=True):
            standing = store.standing(agent.name)
            if standing is not None:
                self.standings[agent.name] = standing
        self.declared = [agent for agent in store.agents() if agent.enabled]
        self.said = self._said()

    def _said(self) -> dict[int, NewItem]:
        """What was asked to be recorded, by the id it got; of what nobody was told, by a subject that was its own."""
        by_subject = {item.subject: item for item in self.witness.lost}
        said = {item.id: by_subject[item.subject] for item in self.items.values() if item.subject in by_subject}
        return said | {kept.id: kept.item for kept in self.witness.accepted if not kept.duplicate}

    def story(self) -> Iterator[Item | Observed | Event]:
        """Births, observations and events in the order in which they happened."""
        order = {at: call.order for at, call in self.witness.calls.items()}
        told: list[tuple[int, int, Item | Observed | Event]] = [
            (order[item.created_at], 0, item) for item in self.items.values() if item.external_id is None
        ]
        told += [(seen.call.order, 1, seen) for seen in self.witness.observed if seen.committed]
        told += [(order[event.at], 2, event) for event in self.events if event.at in order]
        return (what for _, _, what in sorted(told, key=lambda part: part[:2]))

    def call(self, event: Event) -> Call:
        return self.witness.calls[event.at]

    def execution(self, run: int | None) -> Execution | None:
        return None if run is None else self.witness.executions.get(run)

    def of(self, kind: EventKind) -> list[Event]:
        return [event for event in self.events if event.kind is kind]


def outcome_of(ending: Ending) -> str:
    """Which of the four outcomes an ending is, by the words of the contract."""
    if ending.by is not None or ending.timed_out or ending.lost or ending.orphaned:
        return "killed"
    if ending.exit_code != 0:
        return "failed"
    said = ending.result.outcome if ending.result else None
    if said is None and ending.output.startswith("NO-WORK"):
        return "no_work"
    return said or "done"


def taken(ending: Ending) -> bool:
    """Whether nobody wanted this end: its node was gone, or lost sight of the store."""
    return ending.by == "fencing" or (ending.by is None and ending.orphaned)


def error_class(ending: Ending) -> str | None:
    return str(ending.result.error_class) if ending.result and ending.result.error_class else None
