"""The table on the screen and the same lines in `build/bench.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.lines import Line

_WIDTH = 120


def write(lines: Sequence[Line], path: Path) -> None:
    text = json.dumps([line.as_json() for line in lines], indent=2, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def show(lines: Sequence[Line]) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    table = Table(title="wakeful, beside the floor of this disk (benchmarks/README.md)", title_justify="left")
    table.add_column("")
    for heading in ("value", "", "floor", "ratio", "goal"):
        table.add_column(heading, justify="left" if heading in ("", "goal") else "right")
    verb = ""
    for line in lines:
        if verb and verb != _verb(line):
            table.add_section()
        verb = _verb(line)
        table.add_row(line.name, figure(line.value), line.unit, figure(line.floor), _ratio(line.ratio), _goal(line))
        for peer, value in line.peers.items():
            beside = _ratio(line.peer_ratios.get(peer))
            table.add_row(f"  the same over {peer}, ratio to that", figure(value), line.unit, "", beside)
    console.print(table)
    for line in lines:
        if line.goal is not None and line.ratio is not None and not line.goal.met(line.ratio):
            console.print(f"{line.name}: {_why(line)}", highlight=False)


def _why(line: Line) -> str:
    """The numbers behind a goal that was not reached."""
    assert line.goal is not None and line.floor is not None
    if line.goal.least is None:
        return (
            f"it costs {line.ratio:.2f} times as much as in the smallest fleet; a busy machine, or an index is missing."
        )
    if line.unit == "messages/s":
        return f"{1e6 / line.value:,.0f} µs each, beside {1e6 / line.floor:,.0f} µs of an endpoint that does nothing."
    needed = line.goal.least / line.value * 1e3
    return (
        f"a commit took {1e3 / line.floor:.2f} ms beside it. At {line.value:,.0f} {line.unit}, the goal needs a commit "
        f"of {needed:.2f} ms or more: the rest is the work of each call, not the disk (benchmarks/README.md)."
    )


def _verb(line: Line) -> str:
    """Lines with a common beginning stand together."""
    return "bare" if line.name.startswith("bare") else line.name.split(",")[0]


def figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}"


def _goal(line: Line) -> str:
    if line.goal is None or line.ratio is None:
        return ""
    return f"{line.goal}: " + ("[green]met[/]" if line.goal.met(line.ratio) else "[red]short of it[/]")
