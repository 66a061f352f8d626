"""How each kind of value is read from its text.

Law: a reader takes the text of one value and gives the value, or raises `Mistake` with what it expected, what
it found and what to write instead. No reader guesses a unit, a zone or a spelling.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import cache

from wakeful.core.durations import read_duration
from wakeful.core.errors import Mistake
from wakeful.core.items import Priority, read_priority
from wakeful.core.moments import read_instant
from wakeful.core.names import read_name
from wakeful.core.recurrences import Overlap
from wakeful.core.tasks import read_key, write_payload
from wakeful.core.windows import Window, parse_window
from wakeful.core.wording import nearest, quoted

Reader = Callable[[str], object]

DIGITS = re.compile(r"[0-9]{1,18}")
NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
SIGNED = re.compile(r"-[0-9.]+")
ZERO = re.compile(r"0+[smhd]")
TRUE = frozenset({"yes", "true", "on"})
FALSE = frozenset({"no", "false", "off"})
ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FUNCTION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
TMUX = re.compile(r"[A-Za-z0-9_@%$][A-Za-z0-9_@%$.:+-]*")
BURST = re.compile(r"([0-9]{1,9})\s*/\s*(\S+)")
TOKENS = re.compile(r"([0-9]{1,18})\s*tokens?")
MILLIONTHS = 1_000_000
MOST_DOLLARS = 10_000_000
GRANTS = ("wake", "task")


def text(written: str) -> str:
    return written.strip()


def switch(written: str) -> bool:
    word = written.lower()
    if word in TRUE or word in FALSE:
        return word in TRUE
    raise Mistake(f"expected yes or no, found {quoted(written)}", "write yes or no")


def count(least: int, most: int) -> Reader:
    def read(written: str) -> int:
        if SIGNED.fullmatch(written):
            raise Mistake(
                f"expected a number from {least} to {most}, found {quoted(written)}",
                f"write at least {least}",
            )
        if not DIGITS.fullmatch(written):
            raise Mistake(f"expected a whole number, found {quoted(written)}", f"write digits, from {least} to {most}")
        number = int(written)
        if not least <= number <= most:
            raise Mistake(
                f"expected a number from {least} to {most}, found {quoted(written)}",
                f"write {least} to {most}",
            )
        return number

    return read


duration = read_duration
instant = read_instant


def duration_or_zero(written: str) -> timedelta:
    return timedelta() if ZERO.fullmatch(written) else duration(written)


def interval(written: str) -> timedelta | str:
    """A duration, `continuous`, or `none`: no timer, although the fleet has a default."""
    word = written.lower()
    return word if word in ("continuous", "none") else duration(written)


def minutes(written: str) -> dict[str, object]:
    if re.fullmatch(r"[0-9]+[smhd]+", written):
        raise Mistake(f"the key counts minutes already, found {quoted(written)}", "write the number of minutes alone")
    number = float(_number(written, "a number of minutes", "120"))
    if not 0 < number <= 1440:
        raise Mistake(f"expected minutes of one day, found {quoted(written)}", "write a number above 0, at most 1440")
    return {"minutes_per_day": number, "minutes_declared": True}


def dollars(written: str) -> int:
    """In millionths of a dollar."""
    if written.startswith("$"):
        raise Mistake(f"expected dollars without a sign, found {quoted(written)}", f"write {written[1:].strip()}")
    amount = _number(written, "dollars", "2.50") * MILLIONTHS
    if amount != int(amount):
        raise Mistake(f"{quoted(written)} is finer than a millionth of a dollar", "use six digits at most")
    if not 0 < amount <= MOST_DOLLARS * MILLIONTHS:
        raise Mistake(f"expected dollars above 0, found {quoted(written)}", f"write 0.01 to {MOST_DOLLARS}")
    return int(amount)


def reserve(written: str) -> dict[str, object]:
    if tokens := TOKENS.fullmatch(written):
        return {"reserve_tokens": int(tokens[1])}
    try:
        return {"reserve_usd": dollars(written)}
    except Mistake:
        raise Mistake(
            f"expected dollars or tokens, found {quoted(written)}", "write 0.50 for dollars or 20000 tokens"
        ) from None


def burst(written: str) -> dict[str, object]:
    found = BURST.fullmatch(written)
    if not found:
        raise Mistake(f"expected starts per time, found {quoted(written)}", "write it as 20/10m")
    if int(found[1]) < 1:
        raise Mistake("a burst of 0 starts would never let the agent run", "write at least 1, such as 20/10m")
    return {"burst": int(found[1]), "burst_window": duration(found[2])}


def fraction(written: str) -> float:
    percent = written.endswith("%")
    number = float(_number(written.removesuffix("%").strip(), "a fraction", "0.1"))
    share = number / 100 if percent else number
    if share > 1:
        raise Mistake(f"expected a fraction from 0 to 1, found {quoted(written)}", "write 0.1 or 10%")
    return share


def command(written: str) -> str:
    try:
        words = shlex.split(written)
    except ValueError:
        raise Mistake(f"a quote is opened and never closed in {quoted(written)}", "close the quote") from None
    if not words:
        raise Mistake("expected a command, found only quotes", "write the program and its arguments")
    return written.strip()


def function(written: str) -> str:
    if not FUNCTION.fullmatch(written):
        raise Mistake(
            f"expected package.module:function, found {quoted(written)}",
            "write it as package.module:function",
        )
    return written


def session(written: str) -> str:
    if not TMUX.fullmatch(written):
        raise Mistake(f"expected the name of a tmux session, found {quoted(written)}", "write one word, such as main")
    return written


def environment(written: str) -> str:
    if "=" in written:
        name = written.split("=")[0]
        raise Mistake(
            f"only names stand here, never values: {quoted(name)}",
            "write the name; its value comes from the engine",
        )
    if not ENVIRONMENT.fullmatch(written):
        raise Mistake(
            f"illegal name of a variable: {quoted(written)}",
            "use letters, digits and _, not beginning with a digit",
        )
    if written.startswith("WAKEFUL_"):
        raise Mistake(f"{written} is set by wakeful for each run", "remove it")
    return written


def role(written: str) -> str:
    return read_name(written, "a role")


def agent(written: str) -> str:
    return read_name(written, "an agent")


def priority(written: str) -> Priority:
    return read_priority(written)


def overlap(written: str) -> Overlap:
    if written not in list(Overlap):
        raise Mistake(f"unknown overlap {quoted(written)}", f"use {' or '.join(Overlap)}")
    return Overlap(written)


def causal_key(written: str) -> str:
    return read_key(written, "a causal key")


def payload(written: str) -> str:
    """JSON, kept as text."""
    try:
        return write_payload(json.loads(written)) or "null"
    except RecursionError:
        raise Mistake("the JSON is nested too deeply", "make it flatter") from None
    except ValueError:
        raise Mistake(f"expected JSON, found {quoted(written)}", 'write it as {"page": 3}') from None


def grant(written: str) -> str:
    if written not in GRANTS:
        raise Mistake(f"unknown grant {quoted(written)}", f"use {' or '.join(GRANTS)}")
    return written


def zone(written: str) -> str:
    if not _is_zone(written):
        near = nearest(written, _zones()) if len(written) <= 64 else None
        raise Mistake(
            f"unknown time zone {quoted(written)}", f"did you mean {near}?" if near else "write Europe/Berlin"
        )
    return written


def window(written: str) -> Window:
    if DIGITS.fullmatch(written):
        raise Mistake(f"expected a window of time, found the number {written}", 'quote it: "23:00-07:00"')
    return parse_window(written)


@cache
def _zones() -> tuple[str, ...]:
    from zoneinfo import available_timezones

    return tuple(sorted(available_timezones()))


@cache
def _is_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return False
    return not name.startswith(("posix", "right/", "localtime"))


def _number(written: str, expected: str, example: str) -> Decimal:
    if SIGNED.fullmatch(written):
        raise Mistake(f"expected {expected}, not below zero, found {quoted(written)}", f"write {example}")
    if not NUMBER.fullmatch(written):
        raise Mistake(f"expected {expected}, found {quoted(written)}", f"write a number such as {example}")
    return Decimal(written)
