"""Tables for people, drawn by rich. Only commands that draw import this.

Law: a cell is cleaned text, never markup: what an agent wrote cannot style itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from io import StringIO

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from wakeful.cli.output import Span, has_colours, knows, one_line, write

# Who pipes us into a file wants the words, not our guess at a window.
_WIDE = 400
# What may be folded is not folded narrower than this.
_FOLDED = 16

SHADES = {"done": "green", "no_work": "cyan", "failed": "red", "killed": "magenta", "admit": "green", "refuse": "red"}

Cell = str | Span


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]], *, right: Sequence[str] = ()) -> Table:
    lines = box.SIMPLE_HEAD if knows("─") else None
    drawn = Table(box=lines, show_edge=False, pad_edge=False, header_style="bold")
    for number, head in enumerate(heads):
        last = number == len(heads) - 1
        justify = "right" if head in right else "left"
        drawn.add_column(head, justify=justify, no_wrap=not last, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        drawn.add_row(*(_cell(cell) for cell in row))
    for column in drawn.columns:
        widest = max(cell_len(str(cell)) for cell in (column.header, *column.cells))
        column.min_width = widest if column.no_wrap else min(widest, _FOLDED)
    return drawn


def shaded(word: object) -> Span:
    text = one_line(word)
    return Span(text, SHADES.get(text, ""))


def draw(*shown: RenderableType) -> None:
    """Through a string: what the terminal cannot encode is escaped by `write`, not raised by rich."""
    seen = sys.stdout.isatty()
    canvas = StringIO()
    console = Console(
        file=canvas,
        width=None if seen else _WIDE,
        force_terminal=seen,
        no_color=not has_colours(),
        highlight=False,
        markup=False,
        emoji=False,
        safe_box=True,
    )
    for renderable in shown:
        if isinstance(renderable, Table):
            console.width = max(console.width, _least(renderable))
        console.print(renderable)
    write("".join(f"{line.rstrip()}\n" for line in canvas.getvalue().split("\n")[:-1]))


def _least(drawn: Table) -> int:
    """In a narrower window rich would cut columns short, and leave some out; there the terminal folds the lines."""
    return sum((column.min_width or 0) + 3 for column in drawn.columns)


def _cell(cell: Cell) -> Text:
    span = cell if isinstance(cell, Span) else Span(cell)
    return Text(one_line(span.text, 2_000), style=span.style)
