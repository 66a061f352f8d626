"""A run: every measure of every peer, round by round, each peer in its turn.

Laws:
- Within a round a measure is taken of all peers, in an order that differs from round to round: what the machine does
  meanwhile is done to all of them.
- Before each, a quiet machine is waited for, in vain if need be. What others disturbed is taken again; what remains
  disturbed is marked.
- A peer that fails is a line of the table. Each result is written down as it comes.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.machine import Noise, wait_for_quiet
from benchmarks.peers.measures import MEASURES, Measure, Setup
from benchmarks.peers.peer import Peer
from benchmarks.peers.stage import Failure

# The share of the machine that others may take before a sample is called disturbed.
DISTURBED = 0.2
AGAIN = 2
# Whoever fails so often in one measure is not asked again.
PATIENCE = 2
LONGEST = 160
# All of a path but the name at its end.
_FOLDERS = re.compile(r"(?<![\w:/])/(?:[\w.@+-]+/)+")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    round: int
    peer: str
    measure: str
    # By others.
    noise: float
    found: dict[str, Any]
    error: str = ""

    @property
    def disturbed(self) -> bool:
        return self.noise > DISTURBED


def read(path: Path) -> list[Sample]:
    return [Sample(**json.loads(line)) for line in path.read_text().splitlines()]


class Campaign:
    def __init__(self, setup: Setup, path: Path, *, rounds: int, gate: float, say: Say) -> None:
        self.setup = setup
        self.path = path
        self.rounds = rounds
        # Seconds for which a quiet machine is waited for; none, and nothing is taken again.
        self.gate = gate
        self.say = say
        self.samples: list[Sample] = []
        self._failures: Counter[tuple[str, str]] = Counter()

    def run(self, kinds: Iterable[type[Peer]], *, resume: bool = False) -> list[Sample]:
        """With `resume`, what the log has of an earlier run is not taken again."""
        if resume and self.path.exists():
            self.samples = [sample for sample in read(self.path) if not sample.error]
        self.path.write_text("".join(json.dumps(asdict(sample)) + "\n" for sample in self.samples))
        taken = {(sample.round, sample.measure, sample.peer) for sample in self.samples}
        for number in range(1, self.rounds + 1):
            for measure in MEASURES:
                order = [kind for kind in kinds if measure.applies(kind)]
                random.Random(f"{number} {measure.key}").shuffle(order)
                for kind in order:
                    if (number, measure.key, kind.__name__) not in taken:
                        self._take(number, measure, kind)
        return self.samples

    def _take(self, number: int, measure: Measure, kind: type[Peer]) -> None:
        if self._failures[kind.__name__, measure.key] >= PATIENCE:
            return
        best: Sample | None = None
        for _ in range(1 + (AGAIN if self.gate else 0)):
            sample = self._sample(number, measure, kind)
            if best is None or (sample.noise < best.noise and not sample.error):
                best = sample
            if sample.error or not sample.disturbed:
                break
        assert best is not None
        if best.error:
            self._failures[kind.__name__, measure.key] += 1
        self.samples.append(best)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(best)) + "\n")
        self.say(f"round {number}, {measure.key}, {kind.title}: {_told(best)}")

    def _sample(self, number: int, measure: Measure, kind: type[Peer]) -> Sample:
        if self.gate:
            wait_for_quiet(self.gate)
        noise, error = Noise(), ""
        found: dict[str, Any] = {}
        try:
            found = measure.take(kind, self.setup)
        except Failure as failure:
            error = in_short(str(failure))
        except Exception as failure:
            # Whatever goes wrong with one of them, the others are still to be measured.
            error = in_short(f"{type(failure).__name__}: {failure}")
        named: Any = {"round": number, "peer": kind.__name__, "measure": measure.key}
        return Sample(**named, noise=round(noise.share(), 3), found=found, error=error)


def in_short(error: str) -> str:
    """One line, without the folders of this machine."""
    words = _FOLDERS.sub("", " ".join(error.split()))
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"


def _told(sample: Sample) -> str:
    found = {name: value if isinstance(value, list) else round(value, 2) for name, value in sample.found.items()}
    if wakes := found.pop("wakes", None):
        found["p50"] = round(sorted(wakes)[len(wakes) // 2], 2)
    words = ", ".join(f"{name} {value:,}" for name, value in found.items())
    return (sample.error or words) + (f" (others {sample.noise:.0%})" if sample.disturbed else "")
