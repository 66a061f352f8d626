"""The lines of the table: what each is called, what it is compared with, and what it should reach.

Laws:
- A value alone says nothing: disks and machines differ. Each line is compared with another of the same run, its
  floor, and the two are taken in turn, so that a busy machine slows both.
- A line's value is the median of its samples; its ratio is the median of the ratios of each round.
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
    floor: str | None = None
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
    first = Spec(at(verb, smallest), "µs", floor=at(verb, smallest))
    return [first, *(Spec(at(verb, size), "µs", floor=first.name, goal=goal) for size in larger)]


TWICE = Goal(most=2)

SPECS = [
    Spec(BARE, "commits/s", floor=BARE, peers={"sqlite3": BARE_STDLIB}),
    Spec(GROUPED, "rows/s", floor=BARE, peers={"sqlite3": GROUPED_STDLIB}),
    Spec("record, 1 caller", "items/s", floor=BARE),
    Spec("record, 8 callers", "items/s", floor=BARE),
    Spec(RECORD_64, "items/s", floor=BARE, goal=Goal(least=8)),
    Spec(THREADS_64, "items/s", floor=BARE),
    Spec(BATCHES, "items/s", floor=BARE),
    Spec(DECIDE_ONE, "wakes/s", floor=BARE),
    Spec(DECIDE_REFUSED, "wakes/s", floor=BARE),
    Spec(DECIDE_ADMITTED, "wakes/s", floor=BARE),
    Spec(FINISH_ONE, "runs/s", floor=BARE),
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
    """What was measured, by line, in the order of the rounds."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = defaultdict(list)

    def add(self, found: dict[str, float]) -> None:
        for name, value in found.items():
            self._taken[name].append(value)

    def value(self, name: str) -> float:
        return median(self._taken[name])

    def ratio(self, name: str, floor: str) -> float:
        pairs = zip(self._taken[name], self._taken[floor], strict=True)
        return median(value / beside for value, beside in pairs)

    def lines(self) -> list[Line]:
        return [self._line(spec) for spec in SPECS if spec.name in self._taken]

    def _line(self, spec: Spec) -> Line:
        floor = ratio = None
        if spec.floor is not None:
            floor, ratio = _rounded(self.value(spec.floor)), _rounded(self.ratio(spec.name, spec.floor))
        peers = {peer: _rounded(self.value(name)) for peer, name in spec.peers.items() if name in self._taken}
        return Line(spec.name, _rounded(self.value(spec.name)), spec.unit, floor, ratio, peers, spec.goal)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
