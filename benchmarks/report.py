"""The table on the screen and the same lines in `build/bench.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.lines import BARE, Line

_WIDTH = 112


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
        table.add_row(line.name, figure(line.value), line.unit, figure(line.floor), _ratio(line), _goal(line))
        for peer, value in line.peers.items():
            table.add_row(f"  the same over {peer}", figure(value), line.unit, "", f"{value / line.value:.2f}")
    console.print(table)


def _verb(line: Line) -> str:
    """Lines with a common beginning stand together."""
    return "bare" if line.name.startswith("bare") else line.name.split(",")[0]


def figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def _ratio(line: Line) -> str:
    return "" if line.ratio is None or line.name == BARE else f"{line.ratio:.2f}"


def _goal(line: Line) -> str:
    if line.goal is None or line.ratio is None:
        return ""
    return f"{line.goal}: " + ("[green]met[/]" if line.goal.met(line.ratio) else "[red]short of it[/]")
