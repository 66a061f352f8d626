"""Why an open task does not run: one sentence, of which the part before the first colon is enough for a list.

Laws:
- What is told is what the store knows, the strongest first: what it depends on, what stands before it, its time, who
  there is to do it, and what the guards last said.
- A run is told of another task only what it may see of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime

from wakeful.control.takers import Takers, paused_words
from wakeful.core.items import TERMINAL, Item, State
from wakeful.core.wakes import POOLS, Pool
from wakeful.store.protocol import Store

NO_ENGINE = "an engine: none is at work"
_MOST_OPEN = 10_000
_MOST_WAKES = 1_000
_MOST_NAMED = 10
_NEEDS = "depends on task "


class Waits:
    """What tasks wait for at one moment. What several of them need to know is looked up once."""

    def __init__(self, store: Store, now: datetime, *, up: bool, may_see: Callable[[Item], bool] | None) -> None:
        """`up` says that somebody is at work on this store; without `may_see` everything may be told."""
        self._store, self._now, self._up, self._may_see = store, now, up, may_see
        self._takers = Takers(store, now)
        self._busy: dict[str, int] | None = None
        self._taken = 0

    def of(self, items: Sequence[Item]) -> dict[int, str | None]:
        """Of a page of them, in a few reads."""
        ahead = self._ahead(items)
        return {item.id: self._sentence(item, ahead) for item in items}

    def of_one(self, item: Item) -> str | None:
        """With what a guard last said of it."""
        return self._sentence(item, self._ahead([item]), whole=True)

    def _ahead(self, items: Sequence[Item]) -> dict[int, int]:
        return self._store.ahead([item.id for item in items if item.key is not None and _is_waiting(item)])

    def _sentence(self, item: Item, ahead: dict[int, int], *, whole: bool = False, deeper: bool = True) -> str | None:
        if not _is_waiting(item):
            return None
        if item.state is State.blocked:
            return _parked(item)
        if item.waits_for:
            return self._needs(item, whole)
        if item.id in ahead:
            return self._behind(ahead[item.id], whole, deeper)
        if item.not_before is not None and item.not_before > self._now:
            what = "its next attempt" if item.state is State.failed else "its time"
            return f"{what}: not before {_when(item.not_before)}"
        if item.source is not None and (pause := self._takers.pause(f"source:{item.source}")) is not None:
            return f"its source {item.source}: {paused_words(pause)}"
        if (nobody := self._takers.nobody(item.agent, item.role)) is not None:
            return f"somebody who takes it: {nobody}"
        if not self._up:
            return NO_ENGINE
        return (self._guarded(item) if whole else None) or self._crowded(item)

    def _needs(self, item: Item, whole: bool) -> str:
        if not whole:
            return f"{item.waits_for} that it depends on" if item.waits_for > 1 else "a task that it depends on"
        open = [(id, state) for id, state in self._store.dependencies(item.id) if state != State.completed]
        each = ", ".join(f"{id} ({state})" for id, state in open[:_MOST_NAMED])
        more = f" and {len(open) - _MOST_NAMED} more" if len(open) > _MOST_NAMED else ""
        return f"what it depends on: task {each}{more}" if len(open) == 1 else f"what it depends on: tasks {each}{more}"

    def _behind(self, before: int, whole: bool, deeper: bool) -> str:
        told = f"task {before} of its causal key"
        if self._may_see is None and not whole:
            return told
        first = self._store.item(before)
        if first is None or (self._may_see is not None and not self._may_see(first)):
            return "another task of its causal key"
        if not whole:
            return told
        told += f": that is {first.state.value}"
        told += f", from {first.sender}" if first.sender else ""
        if first.state in TERMINAL:
            return f"{told}, and its worker has not ended yet"
        # The oldest of a key has nothing before it but what is being done.
        why = self._sentence(first, {}, whole=True, deeper=False) if deeper else None
        return f"{told}, and waits for {why}" if why else told

    def _guarded(self, item: Item) -> str | None:
        """What was said of it at the door, where its wake was put off."""
        for row in self._store.wakes(agent=item.agent, state="waiting", limit=_MOST_WAKES):
            if row.wake.task == item.id and row.guard:
                until = f", until {_when(row.retry_at)}" if row.retry_at is not None else ""
                return f"{row.guard}: {row.reason}{until}"
        return None

    def _crowded(self, item: Item) -> str | None:
        if self._busy is None:
            open = self._store.runs(open=True, limit=_MOST_OPEN)
            self._busy = {run.agent: run.id for run in open}
            self._taken = Counter(POOLS[run.subject] for run in open)[Pool.workers]
        takers = self._takers.of(item.agent, item.role)
        free = [taker for taker in takers if self._takers.held(taker) is None and taker.name not in self._busy]
        if not free:
            if len(takers) == 1:
                return f"{takers[0].name}: at work in run {self._busy.get(takers[0].name)}"
            whom = item.agent or f"role {item.role}"
            return f"somebody of {whom}: all {len(takers)} are at work or paused"
        workers = free[0].limits.workers
        return f"a free worker: {self._taken} of {workers} are taken" if self._taken >= workers else None


def _is_waiting(item: Item) -> bool:
    return item.state not in TERMINAL and item.state is not State.in_progress


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _parked(item: Item) -> str:
    error = item.error or "no reason is known"
    if error.startswith(_NEEDS):
        task, _, state = error.removeprefix(_NEEDS).partition(", which is ")
        return f"task {task} that it depends on: that is {state}"
    return f"somebody who lets it go on: {error}"
