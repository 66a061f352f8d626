"""The lines of the table: what each is called, in what unit it is told, and what it should reach.

Laws:
- A value alone says nothing: disks and machines differ, and one disk differs from minute to minute. Each sample is
  taken beside a sample of its floor, and the two are compared with each other.
- A line's value and floor are medians over its samples; its ratio is the median of their ratios.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

SIZES = (100, 10_000, 100_000)

BARE = "bare commit of one row"
BARE_STDLIB = "bare commit of one row, sqlite3"
GROUPED = "bare insert, 100 to a commit"
GROUPED_STDLIB = "bare insert, 100 to a commit, sqlite3"

RECORD_1 = "record, 1 caller"
RECORD_8 = "record, 8 callers"
RECORD_64 = "record, 64 callers"
THREADS_64 = "record, 64 threads"
BATCHES = "record, batches of 100"
DECIDE_REFUSED = "decide, 100 peer wakes at once, refused"
DECIDE_ADMITTED = "decide, 100 timers at once, admitted"
DECIDE_ONE = "decide, one timer, admitted"
FINISH_ONE = "finish, one run"
DECLARE = "declare, 100,000 new agents"
DECLARE_AGAIN = "declare, 100,000 agents unchanged"
CHECK = "wakeful check, 100,000 agents"


@dataclass(frozen=True, slots=True)
class Goal:
    """The ratio to the floor that a line should keep: `least` for a rate, `most` for a cost."""

    least: float | None = None
    most: float | None = None

    def met(self, ratio: float) -> bool:
        return (self.least is None or ratio >= self.least) and (self.most is None or ratio <= self.most)

    def __str__(self) -> str:
        return f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"


@dataclass(frozen=True, slots=True)
class Spec:
    name: str
    unit: str
    goal: Goal | None = None
    # How the peer is called, and the line that measures it.
    peers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    value: float
    unit: str
    floor: float | None
    ratio: float | None
    peers: dict[str, float]
    # Each peer's own ratio to this line, measured beside it.
    peer_ratios: dict[str, float]
    goal: Goal | None = None

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "floor": self.floor,
            "ratio": self.ratio,
            "peers": self.peers,
        }


def at(verb: str, size: int) -> str:
    return f"{verb}, {size:,} agents"


DUE_NONE = "due, nothing found"
DUE_PAGE = "due, a page of 100"
ADMIT = "decide, one timer admitted"
REFUSE = "decide, one peer wake refused"
FIRST = "decide, an agent's first"
FINISH = "finish"
ADOPT = "declare, each agent"


def _growing(verb: str, goal: Goal | None = None) -> list[Spec]:
    """One verb at each size, without the disk's share; the larger fleets are compared with the smallest."""
    smallest, *larger = SIZES
    return [Spec(at(verb, smallest), "µs"), *(Spec(at(verb, size), "µs", goal=goal) for size in larger)]


TWICE = Goal(most=2)

SPECS = [
    Spec(BARE, "commits/s", peers={"sqlite3": BARE_STDLIB}),
    Spec(GROUPED, "rows/s", peers={"sqlite3": GROUPED_STDLIB}),
    Spec(RECORD_1, "items/s"),
    Spec(RECORD_8, "items/s"),
    Spec(RECORD_64, "items/s", goal=Goal(least=8)),
    Spec(THREADS_64, "items/s"),
    Spec(BATCHES, "items/s"),
    Spec(DECIDE_ONE, "wakes/s"),
    Spec(DECIDE_REFUSED, "wakes/s"),
    Spec(DECIDE_ADMITTED, "wakes/s"),
    Spec(FINISH_ONE, "runs/s"),
    *_growing(DUE_NONE),
    *_growing(DUE_PAGE),
    *_growing(REFUSE, TWICE),
    *_growing(ADMIT, TWICE),
    *_growing(FIRST),
    *_growing(FINISH),
    *_growing(ADOPT),
    Spec(DECLARE, "s"),
    Spec(DECLARE_AGAIN, "s"),
    Spec(CHECK, "s"),
]


class Samples:
    """What was measured, by line, each with the floor that was measured beside it."""

    def __init__(self) -> None:
        self._taken: dict[str, list[tuple[float, float | None]]] = defaultdict(list)

    def add(self, name: str, value: float, floor: float | None = None) -> None:
        self._taken[name].append((value, floor))

    def value(self, name: str) -> float:
        return median(value for value, _ in self._taken[name])

    def floor(self, name: str) -> float | None:
        floors = [floor for _, floor in self._taken[name] if floor is not None]
        return median(floors) if floors else None

    def ratio(self, name: str) -> float | None:
        ratios = [value / floor for value, floor in self._taken[name] if floor is not None]
        return median(ratios) if ratios else None

    def lines(self) -> list[Line]:
        return [self._line(spec) for spec in SPECS if spec.name in self._taken]

    def _line(self, spec: Spec) -> Line:
        floor, ratio = self.floor(spec.name), self.ratio(spec.name)
        ratios = {peer: self.ratio(name) for peer, name in spec.peers.items()}
        return Line(
            name=spec.name,
            value=_rounded(self.value(spec.name)),
            unit=spec.unit,
            floor=None if floor is None else _rounded(floor),
            ratio=None if ratio is None else _rounded(ratio),
            peers={peer: _rounded(self.value(name)) for peer, name in spec.peers.items()},
            peer_ratios={peer: ratio for peer, ratio in ratios.items() if ratio is not None},
            goal=spec.goal,
        )


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
