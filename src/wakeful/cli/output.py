"""The one way to the terminal.

Laws:
- Nothing that an agent, a file or a server wrote reaches a terminal with its control characters: of C0, C1 and DEL only
  newline and tab are printed. What we colour is coloured after the text was cleaned.
- With `--json` the standard output holds the answer as JSON, in ASCII, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import click

# Colours and cursor movements are dropped whole; of any other sequence the text stays, harmless and visible.
_SEQUENCE = re.compile("\x1b\\[[0-?]*[ -/]*[@-~]")
# Also the marks that turn the direction of writing: they can make a line read as what it is not.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_BLANKS = re.compile(r"\s+")


class Span(NamedTuple):
    """A piece of a line in one style: a name that click and rich both know (`bold red`)."""

    text: str
    style: str = ""


Line = list[Span]


def clean(text: str) -> str:
    """Text as it may be printed, over as many lines as it likes."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSEEN.sub("", _SEQUENCE.sub("", lines))


def one_line(text: object, longest: int = 200) -> str:
    """Text as it may stand in a line or a cell of ours."""
    flat = _BLANKS.sub(" ", clean(str(text))).strip()
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"


def say(text: str, *, to_stderr: bool = False) -> None:
    write(clean(text) + "\n", to_stderr=to_stderr)


def say_lines(lines: Iterable[Line]) -> None:
    """Lines of styled pieces; the styles are dropped where nobody would see them."""
    coloured = has_colours()
    for line in lines:
        spans = [_styled(span) if coloured and span.style else clean(span.text) for span in line]
        write("".join(spans).rstrip() + "\n")


def say_json(answer: Any) -> None:
    write(json.dumps(answer, indent=2) + "\n")


def say_older(command: str, answer: dict[str, Any], given: dict[str, Any]) -> None:
    """How the next page is asked for: by the same words."""
    if answer["next"] is None:
        return
    import shlex

    words = [str(given["agent"])] if given["agent"] else []
    for name, value in {**given, "agent": None, "limit": None, "before": answer["next"]}.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not None:
            words += [f"--{name}", str(value)]
    say(f"older: {shlex.join(['wakeful', command, *words])}")


def write(text: str, *, to_stderr: bool = False) -> None:
    """What was cleaned already. A terminal may know fewer characters than the text has."""
    stream = sys.stderr if to_stderr else sys.stdout
    encoding = stream.encoding or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False, err=to_stderr, color=True)


def has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def knows(character: str) -> bool:
    """Whether the standard output can show it."""
    try:
        character.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _styled(span: Span) -> str:
    words = span.style.split()
    flags = {word: True for word in words if word in ("bold", "dim", "reverse")}
    colour = next((word for word in words if word not in flags), None)
    return click.style(clean(span.text), fg=colour, **flags)
