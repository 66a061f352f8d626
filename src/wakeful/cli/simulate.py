"""`wakeful simulate`: what the fleet would do and cost, before it does.

Law: it works on a copy. No program of an agent is begun, and nothing that is stored changes; that it was copied is told
in the events.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wakeful.cli.complaints import BAD, Complaint
from wakeful.cli.connection import ask, store_of
from wakeful.cli.declared import fleet_file
from wakeful.cli.output import say, say_json
from wakeful.cli.place import Place, as_json, outside_run, placed
from wakeful.cli.progress import rehearsed
from wakeful.cli.words import clock, counted
from wakeful.core.codec import write_time
from wakeful.core.durations import lasting, parse_duration
from wakeful.core.errors import Mistake

if TYPE_CHECKING:
    from wakeful.store.store import SqlStore
    from wakeful.testing.rehearsal import Days

MEMORY = Path("/dev/shm")
MILLION = 1_000_000
LATE = 0.95
ASSUMED = "nothing arrives from outside, and no agent writes to another"


@click.command()
@click.option("--days", type=click.FloatRange(0.01, 400), default=7, show_default=True, help="How many.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another one draws other runs.")
@click.option("--takes", default="2m", show_default=True, metavar="DURATION", help="A run of who never ran.")
@click.option("--run", envvar="WAKEFUL_RUN", metavar="COMMAND", help="The command of agents that have no RUN.")
@click.option("--blank", is_flag=True, help="As if nothing had ever happened, instead of from where the fleet stands.")
@as_json
@placed
def simulate(place: Place, days: float, seed: int, takes: str, run: str | None, blank: bool, as_json: bool) -> None:
    """What the fleet would do in the days to come: the engine itself, in time that jumps.

    Runs are drawn from what each agent did before. Nothing is begun, and nothing that is stored changes.
    """
    outside_run(place, "a simulation")
    try:
        each = parse_duration(takes)
    except Mistake as mistake:
        raise Complaint(f"--takes: {mistake.reason}", mistake.remedy, BAD) from None
    file = fleet_file(place, run)
    began, start = time.monotonic(), datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="wakeful-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        from wakeful.testing.rehearsal import Rehearsal

        copied = False if blank else _copied(place, Path(folder) / "wakeful.db")
        with closing(_opened(Path(folder) / "wakeful.db")) as store:
            lived = Rehearsal(file, store, Path(folder), start, seed=seed, takes=each)
            with rehearsed(quiet=as_json) as tell:
                lived.run(days, lambda elapsed: tell(f"{elapsed / timedelta(days=days):4.0%} of {days:g} days"))
            found = dict(lived.agents)
    answer = _answer(found, start, days, seed, copied)
    if as_json:
        say_json(answer)
    else:
        _show(answer, start, time.monotonic() - began)


def _copied(place: Place, to: Path) -> bool:
    """Whether there was something to go on from."""
    from wakeful.belongings import SQLITE

    if store_of(place) != SQLITE or not Path(place.path("wakeful.db")).exists():
        return False
    ask(place, "backup", path=str(to))
    return True


def _opened(path: Path) -> SqlStore:
    from wakeful.store.sqlite import open_sqlite

    return open_sqlite(path, durable=False)


def _answer(found: dict[str, Days], start: datetime, days: float, seed: int, copied: bool) -> dict[str, Any]:
    rows = [_row(name, each) for name, each in sorted(found.items()) if name]
    spent: Counter[str] = Counter()
    for each in found.values():
        spent.update(each.by_day)
    # The first day and the last are not whole.
    whole = [spent[day] for day in sorted(spent)[1:-1]] or list(spent.values())
    return {
        "from": write_time(start),
        "days": days,
        "seed": seed,
        "continued": copied,
        "assumptions": [ASSUMED],
        "runs": sum(row["runs"] for row in rows),
        "usd": round(sum(row["usd"] for row in rows), 6),
        "tokens": sum(row["tokens"] for row in rows),
        "usd_per_day": {"least": min(whole, default=0) / MILLION, "most": max(whole, default=0) / MILLION},
        "items": rows,
        "next": None,
    }


def _row(name: str, days: Days) -> dict[str, Any]:
    waits = sorted(days.waits)
    return {
        "agent": name,
        "runs": days.runs,
        "outcomes": dict(sorted(days.outcomes.items())),
        "minutes": round(days.minutes, 1),
        "usd": days.usd / MILLION,
        "tokens": days.tokens,
        "deferred": dict(days.deferred.most_common()),
        "refused": dict(days.refused.most_common()),
        "first_held_at": {guard: write_time(at) for guard, at in days.first.items()},
        "wait_p95_seconds": round(waits[int(len(waits) * LATE)], 3) if waits else 0.0,
        "quarantined_at": write_time(days.quarantined_at) if days.quarantined_at else None,
    }


def _show(answer: dict[str, Any], start: datetime, took: float) -> None:
    from wakeful.cli.tables import draw, table

    heads = ("agent", "runs", "done", "no work", "failed", "killed", "minutes", "dollars", "waited", "held back")
    rows = [_cells(row, start) for row in answer["items"]]
    draw(table(heads, rows, right=heads[1:9]))
    begun = "from where the fleet stands" if answer["continued"] else "from the beginning"
    least, most = (f"${answer['usd_per_day'][which]:.2f}" for which in ("least", "most"))
    spent = f"${answer['usd']:.2f}; a day {least} to {most}"
    say(f"{counted(answer['runs'], 'run')} in {answer['days']:g} days {begun}, {spent}")
    say(f"{'; '.join(answer['assumptions'])}; seed {answer['seed']}, {took:.1f} s")


def _cells(row: dict[str, Any], start: datetime) -> tuple[str, ...]:
    outcomes = row["outcomes"]
    held = Counter(row["deferred"]) + Counter(row["refused"])
    told = [
        f"{guard.replace('_', ' ')} {number}, first {clock(row['first_held_at'][guard], start)}"
        for guard, number in held.most_common(3)
    ]
    if row["quarantined_at"]:
        told.insert(0, f"QUARANTINED {clock(row['quarantined_at'], start)}")
    return (
        row["agent"],
        str(row["runs"]),
        *(str(outcomes.get(outcome, 0)) for outcome in ("done", "no_work", "failed", "killed")),
        f"{row['minutes']:.0f}",
        f"${row['usd']:.2f}",
        lasting(row["wait_p95_seconds"]),
        "; ".join(told),
    )
