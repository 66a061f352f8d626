"""What agents wrote down of themselves (`company`), and what a store has to say, read to the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from soak.standing import Ground
from wakeful.core.events import Event
from wakeful.core.items import Item
from wakeful.store.protocol import RunRow, WakeRow
from wakeful.store.store import SqlStore

PAGE = 1_000
COMPANY = Path(__file__).resolve().parent / "company.py"

Row = TypeVar("Row")


def fleet(agents: Mapping[str, str], own: Mapping[str, str] | None = None, **keys: str) -> str:
    """A fleet file; of each agent what it does at every run, in the words of `company`, and a line of its own."""
    head = {"workdir": ".", "interval": "1d", "sessions": str(len(agents)), "grace": "0s", "stagger": "0s", **keys}
    lines = [f"#+{key.upper().replace('_', '-')}: {value}" for key, value in head.items()]
    for name, what in agents.items():
        lines += [f"* {name}", ":PROPERTIES:", f":RUN: {sys.executable} -I -S {COMPANY} {what}"]
        lines += [line for line in ((own or {}).get(name), ":END:") if line]
    return "\n".join(lines) + "\n"


class Told:
    """The lines of the witness, by their first word."""

    def __init__(self, ground: Ground) -> None:
        self._path = ground.folder / "witness"

    def lines(self, what: str) -> list[list[str]]:
        whole = self._path.read_text().rpartition("\n")[0].split("\n")
        return [line.split()[1:] for line in whole if line.startswith(f"{what} ")]

    def answers(self, targets: Sequence[str]) -> list[list[str]]:
        """What was told of wakes of these agents: sender, target, message, verdict, guard."""
        return [words for words in self.lines("told") if words[1] in targets]

    def guards(self, targets: Sequence[str]) -> Counter[str]:
        """How often each of them refused."""
        return Counter(guard for *_, verdict, guard in self.answers(targets) if verdict == "refuse")

    def shown(self, agents: Sequence[str]) -> Counter[int]:
        """How often each message was put before one of these agents."""
        return Counter(int(id) for name, _, *ids in self.lines("shown") if name in agents for id in ids)


def every_wake(store: SqlStore) -> list[WakeRow]:
    return _pages(lambda after: store.wakes(after=after, limit=PAGE), lambda row: row.wake.id)


def every_run(store: SqlStore) -> list[RunRow]:
    return _pages(lambda after: store.runs(after=after, limit=PAGE), lambda row: row.id)


def every_item(store: SqlStore, agent: str) -> list[Item]:
    return _pages(lambda after: store.items(agent=agent, after=after, limit=PAGE), lambda item: item.id)


def every_event(store: SqlStore, *kinds: str) -> list[Event]:
    return _pages(lambda after: store.events(after=after, kinds=kinds, limit=PAGE), lambda event: event.id)


def last_verdicts(store: SqlStore) -> dict[int, dict[str, Any]]:
    """On each wake, as the events tell it."""
    told = [(event.wake, (event.fields or {}).get("verdict")) for event in every_event(store, "decided")]
    return {wake: verdict for wake, verdict in told if wake is not None and isinstance(verdict, dict)}


def _pages(read: Callable[[int], Sequence[Row]], id_of: Callable[[Row], int]) -> list[Row]:
    found: list[Row] = []
    while page := read(id_of(found[-1]) if found else 0):
        found += page
    return found
