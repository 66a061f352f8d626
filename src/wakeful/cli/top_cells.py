"""Text in the cells of a terminal: inert, measured, cut and filled.

Laws:
- What is drawn is one cell high and as wide as is said here. Beside the controls, which `output` takes out, so is all
  that takes no cell of its own or joins its neighbours: marks of direction, joiners, selectors, piles of accents.
- A bar and a mark say the same in ASCII where the terminal knows no more.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from wakeful.cli.output import Line, Span, clean, one_line

_TAB = 4
# What no font shows, or what somebody else's font shows in its own width.
_NOTHING = ("Cf", "Cc", "Me", "Zl", "Zp")
_UNKNOWN = ("Cs", "Co", "Cn")
# Accents upon one letter; a language needs two.
_MOST_ACCENTS = 2
_REPLACEMENT = "?"


class Glyphs(NamedTuple):
    chosen: str = ">"
    full: str = "#"
    empty: str = "."
    then: str = ">"
    more: str = "~"
    rule: str = "-"
    fine: str = "+"
    wrong: str = "x"
    times: str = "x"


RICH = Glyphs("▸", "█", "·", "›", "…", "─", "✓", "✗", "×")
PLAIN = Glyphs()


def inert(text: object, longest: int = 200) -> str:
    """On one line, whoever wrote it."""
    return shown(one_line(text, longest))


def shown(text: str) -> str:
    """What was cleaned, without what a terminal would measure otherwise than we do."""
    if text.isascii():
        return text
    kept: list[str] = []
    accents = 0
    for character in unicodedata.normalize("NFC", text):
        kind = unicodedata.category(character)
        accents = accents + 1 if kind == "Mn" else 0
        if kind in _UNKNOWN:
            kept.append(_REPLACEMENT)
        elif kind not in _NOTHING and accents <= _MOST_ACCENTS and not _selects(character):
            kept.append(character)
    return "".join(kept)


def _selects(character: str) -> bool:
    """Selectors of variants and of skins: they change the width of what stands before them, in some terminals."""
    return "\ufe00" <= character <= "\ufe0f" or "\U0001f3fb" <= character <= "\U0001f3ff" or character >= "\U000e0100"


def lines_of_text(text: str) -> list[str]:
    """What an agent printed, line by line."""
    return [shown(line.expandtabs(_TAB)) for line in clean(text).split("\n")]


def width_of(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def cut(text: str, width: int, glyphs: Glyphs = RICH) -> str:
    """As much of it as there is room for, and a mark where some is left out."""
    if width_of(text) <= width:
        return text
    text = text.rstrip()
    if width_of(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + glyphs.more if width > 0 else ""


def filled(text: str, width: int, glyphs: Glyphs = RICH, *, right: bool = False) -> str:
    """Exactly so wide."""
    held = cut(text, width, glyphs)
    space = " " * (width - width_of(held))
    return space + held if right else held + space


def fitted(line: Line, width: int, glyphs: Glyphs = RICH, *, style: str | None = None) -> Line:
    """A line of exactly that width; with `style`, all of it in that."""
    fit: Line = []
    left = width
    for span in line:
        text = cut(span.text, left, glyphs)
        left -= width_of(text)
        fit.append(Span(text, span.style if style is None else style))
        if left <= 0:
            break
    return [*fit, Span(" " * max(left, 0), style or "")]


def wrapped(text: str, width: int) -> list[str]:
    """A long line over as many as it takes; cut between cells, as a terminal does."""
    width = max(width, 2)
    if width_of(text) <= width:
        return [text]
    pieces: list[str] = []
    piece: list[str] = []
    used = 0
    for character in text:
        size = width_of(character)
        if used + size > width:
            pieces.append("".join(piece))
            piece, used = [], 0
        piece.append(character)
        used += size
    return [*pieces, "".join(piece)]


def folded(text: str, width: int, indent: int = 0) -> list[str]:
    """Words over as many lines as they take, those after the first indented."""
    width = max(width, indent + 8)
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        room = width - (indent if lines else 0)
        if line and width_of(line) + 1 + width_of(word) > room:
            lines.append(line)
            line, room = "", width - indent
        *whole, rest = wrapped(word, room) if not line else [word]
        lines += whole
        line = f"{line} {rest}" if line else rest
    lines.append(line)
    return [line if not number else " " * indent + line for number, line in enumerate(lines)]


def bar(used: float, of: float | None, width: int, glyphs: Glyphs = RICH) -> str:
    """Full only at the limit, and empty only where nothing was used; without a limit there is no bar."""
    if of is None or width <= 0:
        return ""
    share = 1.0 if of <= 0 or used >= of else used / of
    cells = width if share >= 1 else min(max(round(share * width), 1 if used > 0 else 0), width - 1)
    return glyphs.full * cells + glyphs.empty * (width - cells)
