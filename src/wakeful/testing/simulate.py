"""Seeded worlds, lived and judged: `python -m wakeful.testing.simulate --seeds 1000`.

Law: a failing seed is replayed by its number alone. Every failure prints the rule, the rows and the command.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wakeful.control.auditing.audit import audit
from wakeful.core.agents import Fleet
from wakeful.core.events import EventKind
from wakeful.testing.checkers import History, Violation, judge
from wakeful.testing.pace import PACE
from wakeful.testing.shared import open_shared as open_store
from wakeful.testing.world import World

__all__ = ["Report", "main", "open_store", "reports", "show", "simulate"]

MEMORY_DISK = Path("/dev/shm")
MOST_SHOWN = 5
LONGEST_ROW = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One seed: what was violated (nothing, one hopes), the digest of its trace, and what happened in it."""

    seed: int
    violations: tuple[Violation, ...]
    trace: str
    runs: int
    troubles: tuple[str, ...]
    met: frozenset[str]
    # How often each kind of trouble came.
    injected: dict[str, int] = field(default_factory=dict)


def simulate(seed: int, *, days: float | None = None, pace: float = PACE, fleet: Fleet | None = None) -> Report:
    disk = str(MEMORY_DISK) if MEMORY_DISK.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="wakeful-", dir=disk) as folder:
        world = World(seed, Path(folder) / "wakeful.db", open_store, days=days, pace=pace, fleet=fleet)
        try:
            violations, met = _live(world)
        finally:
            world.store.close()
    return Report(
        seed=seed,
        violations=tuple(violations),
        trace=world.witness.trace,
        runs=len(world.witness.executions),
        troubles=tuple(world.faults.met),
        met=met,
        injected=dict(world.faults.counts),
    )


def _live(world: World) -> tuple[list[Violation], frozenset[str]]:
    """An exception of the world or the store is a violation too: it must carry its seed."""
    try:
        world.run()
    except Exception:
        return [Violation(rule="no verb fails by itself", what=traceback.format_exc())], frozenset()
    history = History(world.store, world.witness)
    for event in history.events:
        # A PAUSE file is told by its path, and no two worlds have the same folder.
        world.witness.note(str(event).replace(str(world.folder), ""))
    return [*judge(history), *_add_up(world)], what_was_met(history)


def _add_up(world: World) -> Iterator[Violation]:
    """The audit, which has the store alone."""
    for found in audit(world.store, world.clock.wall).findings:
        what = f"{', '.join(found.rows)}: expected {found.expected}, found {found.found}"
        yield Violation(rule="everything adds up", what=what)


def what_was_met(history: History) -> frozenset[str]:
    """The verdicts, outcomes and kinds of event of a world: what its checkers had to judge."""
    met = {event.kind.value for event in history.events}
    for event in history.events:
        fields = event.fields or {}
        verdict = fields.get("verdict")
        if event.kind is EventKind.decided and isinstance(verdict, dict):
            met.add(f"{fields['cause']}: {verdict['kind']} {verdict.get('guard', '')}".strip())
        elif event.kind is EventKind.ended:
            met.add(f"{fields['subject']}: {fields['outcome']}")
    return frozenset(met)


# -- the command ----------------------------------------------------------------------------------------------
def _one(task: tuple[int, float | None, float]) -> Report:
    seed, days, pace = task
    return simulate(seed, days=days, pace=pace)


def reports(seeds: Sequence[int], days: float | None, jobs: int, pace: float = PACE) -> Iterator[Report]:
    tasks = [(seed, days, pace) for seed in seeds]
    if jobs == 1 or len(tasks) == 1:
        yield from map(_one, tasks)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.imap_unordered(_one, tasks)


def show(report: Report, days: float | None = None, pace: float = PACE) -> str:
    command = f"python -m wakeful.testing.simulate --seed {report.seed}"
    command += f" --days {days:g}" if days is not None else ""
    command += f" --pace {pace:g}" if pace != PACE else ""
    lines = [f"seed {report.seed} failed after {report.runs} runs and {len(report.troubles)} troubles"]
    for violation in report.violations[:MOST_SHOWN]:
        lines.append(f"  rule: {violation.rule}\n    {violation.what}")
        lines += [f"    row: {str(row)[:LONGEST_ROW]}" for row in violation.rows]
    left = Counter(violation.rule for violation in report.violations[MOST_SHOWN:])
    lines += [f"  and {count} more of rule: {rule}" for rule, count in left.items()]
    return "\n".join([*lines, f"  replay: {command}"])


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m wakeful.testing.simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds to live (100)")
    parser.add_argument("--seed", type=int, help="only this seed")
    parser.add_argument("--start", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--days", type=float, help="virtual days; otherwise drawn from the seed")
    parser.add_argument("--pace", type=float, default=PACE, help=f"how much longer leases and renewals take ({PACE:g})")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--stop-at-first", action="store_true", help="stop at the first failing seed")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = arguments(words)
    seeds = [options.seed] if options.seed is not None else range(options.start, options.start + options.seeds)
    started, passed, failed, runs = time.monotonic(), 0, 0, 0
    injected: Counter[str] = Counter()
    for report in reports(seeds, options.days, max(options.jobs, 1), options.pace):
        runs += report.runs
        injected.update(report.injected)
        if report.violations:
            failed += 1
            print(show(report, options.days, options.pace), flush=True)
        else:
            passed += 1
        if options.seed is not None:
            print(f"seed {report.seed}: {report.runs} runs, {len(report.troubles)} troubles, trace {report.trace}")
        _progress(passed + failed, len(seeds), failed, started)
        if failed and options.stop_at_first:
            break
    seconds = time.monotonic() - started
    print("\r\033[K", end="", file=sys.stderr, flush=True)
    print(", ".join(f"{kind} {count}" for kind, count in sorted(injected.items())))
    print(f"{runs} runs in {seconds:.1f} s, {(passed + failed) / max(seconds, 0.001):.1f} seeds/s")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def _progress(lived: int, total: int, failed: int, started: float) -> None:
    if lived % 10 == 0 or lived == total:
        line = f"\r{lived}/{total} seeds, {failed} failed, {time.monotonic() - started:.0f} s"
        print(line, end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
