"""`wakeful drill`: the fleet of this folder through everything that can go wrong, in time that jumps.

Law: it needs nothing of the fleet but its file. No program of an agent is begun, and no store is touched.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import click

from wakeful.cli.complaints import DONE, REFUSED
from wakeful.cli.declared import fleet_file
from wakeful.cli.output import say, say_json
from wakeful.cli.place import Place, as_json, outside_run, placed
from wakeful.cli.progress import rehearsed
from wakeful.cli.words import counted

# What is worth counting to a person, and what it is called in a world.
TROUBLES = {
    "engines killed": ("crash", "crash before", "crash after", "node crashed"),
    "machines lost": ("machine lost",),
    "engines frozen": ("node frozen",),
    "stores away or full": ("store away", "away before", "away after", "full"),
    "clocks set or wrong": ("clock set", "clock set by a day", "clock off by five minutes"),
    "hints lost, late or twice": ("hint lost", "hint late", "hint twice", "node deaf"),
    "agents that crashed, hung or flooded": ("agent crashed", "agent hung", "agent flooded"),
}


@click.command()
@click.option("--worlds", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many, each another.")
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="The number of the first.")
@click.option("--days", type=click.FloatRange(0.1, 30), default=1, show_default=True, help="How long each lasts.")
@click.option("--run", envvar="WAKEFUL_RUN", metavar="COMMAND", help="The command of agents that have no RUN.")
@as_json
@placed
def drill(place: Place, worlds: int, first: int, days: float, run: str | None, as_json: bool) -> None:
    """Prove on this fleet that a crash loses nothing, repeats nothing and runs nothing twice at once.

    Its real engine lives through worlds in which engines are killed at every moment, machines lost, stores away, clocks
    wrong and agents mad, on three nodes; every event is then judged. Exit 1 if a promise did not hold.
    """
    outside_run(place, "a drill")
    from wakeful.testing.simulate import simulate

    fleet = fleet_file(place, run).fleet
    assert fleet is not None
    # Whoever judges knows the tasks that somebody asked for.
    left_out = ["recurring tasks"] if fleet.recurrences else []
    fleet = replace(fleet, recurrences=())
    reports, began = [], time.monotonic()
    with rehearsed(quiet=as_json) as tell:
        for number in range(first, first + worlds):
            reports.append(simulate(number, days=days, fleet=fleet))
            tell(f"{len(reports)} of {worlds} worlds")
    answer = {**_answer(reports, days), "left_out": left_out}
    say_json(answer) if as_json else _show(answer, time.monotonic() - began)
    sys.exit(REFUSED if answer["violations"] else DONE)


def _answer(reports: Iterable[Any], days: float) -> dict[str, Any]:
    injected: Counter[str] = Counter()
    violations = []
    runs = worlds = 0
    for report in reports:
        worlds, runs = worlds + 1, runs + report.runs
        injected.update(report.injected)
        violations += [{"world": report.seed, "rule": each.rule, "what": each.what} for each in report.violations]
    troubles = {name: sum(injected[kind] for kind in kinds) for name, kinds in TROUBLES.items()}
    return {"worlds": worlds, "days": days, "runs": runs, "troubles": troubles, "violations": violations}


def _show(answer: dict[str, Any], took: float) -> None:
    worlds, runs = counted(answer["worlds"], "world"), counted(answer["runs"], "run")
    lasted = "a day" if answer["days"] == 1 else f"{answer['days']:g} days"
    say(f"{worlds} of {lasted} on three nodes: {runs}, {took:.1f} s")
    if answer["left_out"]:
        say(f"left out: {', '.join(answer['left_out'])}")
    for name, number in answer["troubles"].items():
        say(f"  {number:6,} {name}")
    for found in answer["violations"][:5]:
        say(f"world {found['world']}: {found['rule']}: {found['what'][:400]}")
    broken = len(answer["violations"])
    held = "nothing was lost, repeated or run twice at once; every limit held, and everything adds up"
    say(f"{counted(broken, 'violation')}; please report them with the fleet file" if broken else held)
