"""From a run's folder to how it ended: the exit record, the result file, and what the agent printed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from wakeful.core.agents import Limits
from wakeful.core.budgets import over_limit
from wakeful.core.results import combine, read_output, read_result
from wakeful.core.runs import Ending, ErrorClass, Result
from wakeful.core.standing import Spend
from wakeful.runners.guardian import RECORD_VERSION
from wakeful.runners.protocol import EXIT, RESULT, STDERR, STDOUT

# A result is a note, not a payload; more than this of it is a mistake of the agent's.
MOST_RESULT = 1024 * 1024
# How much of the output is read for its first word and for the JSON that agent programs print.
MOST_OUTPUT = 8 * 1024 * 1024
# What is kept as the text of the ending, for a person and for a dead letter.
TAIL = 4_000

LOST = Ending(lost=True)
UNTOLD = "it used more than a run may"


def read_record(folder: Path) -> dict[str, Any] | None:
    """The exit record, or None while there is none. A record of a newer kind is believed for what we know of it."""
    try:
        record = json.loads((folder / EXIT).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {"version": RECORD_VERSION, "lost": True}
    return record if isinstance(record, dict) else None


def read_ending(folder: Path) -> Ending:
    record = read_record(folder)
    if record is None or record.get("lost"):
        return read_lost(folder)
    output = _text(folder / STDOUT, MOST_OUTPUT)
    result = combine(_result(folder), read_output(output))
    if record.get("error"):
        result = Result(error=str(record["error"]), error_class=ErrorClass.config)
    elif result is None and record.get("exit_code") != 0:
        result = _last_words(folder)
    over, used = _over_limit(record.get("over_limit"))
    if used is not None:
        result = _with_usage(result, used)
    return Ending(
        exit_code=record.get("exit_code"),
        signal=record.get("signal"),
        timed_out=bool(record.get("timed_out")),
        over_limit=over,
        out_of_memory=bool(record.get("out_of_memory")),
        by=record.get("by"),
        printed=_printed(output, folder),
        output=output[:TAIL] if len(output) <= TAIL else f"{output[: TAIL // 2]}\n…\n{output[-TAIL // 2 :]}",
        result=result,
        elapsed=timedelta(seconds=float(record.get("elapsed") or 0)),
    )


def read_lost(folder: Path) -> Ending:
    """Nobody was left to say how it ended: what it printed until then is all there is of it."""
    return replace(LOST, printed=_printed(_text(folder / STDOUT, MOST_OUTPUT), folder))


def _printed(output: str, folder: Path) -> str:
    """The last of both streams, half of it of each where both are long."""
    errors = _text(folder / STDERR, MOST_OUTPUT)
    if not errors or not output:
        return (output or errors)[-TAIL:]
    errors = errors[-max(TAIL // 2, TAIL - 1 - len(output)) :]
    room = TAIL - 1 - len(errors)
    return f"{output[-room:].removesuffix(chr(10))}\n{errors}"


def _over_limit(told: Any) -> tuple[str | None, Spend | None]:
    """What a run was ended for having used, and that; of a record that tells it otherwise, only that it was."""
    if not told:
        return None, None
    try:
        used, most = (told[name] for name in ("used", "limits"))
        spent = Spend(usd=int(used.get("usd", 0)), tokens=int(used.get("tokens", 0)))
        limits = Limits(usd_per_run=most.get("usd"), tokens_per_run=most.get("tokens"))
        return over_limit(spent, limits) or UNTOLD, spent
    except (TypeError, ValueError, KeyError, AttributeError):
        return UNTOLD, None


def _with_usage(result: Result | None, used: Spend) -> Result:
    """What its guardian read is not lost with a file that it was ended in the middle of writing."""
    told = (result.usage if result else None) or used
    least = Spend(usd=max(told.usd, used.usd), tokens=max(told.tokens, used.tokens))
    return replace(result or Result(), usage=least)


def _result(folder: Path) -> Result | None:
    path = folder / RESULT
    try:
        with path.open("rb") as file:
            data = file.read(MOST_RESULT + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Result(error=f"its result file cannot be read: {error.strerror}", error_class=ErrorClass.other)
    if len(data) > MOST_RESULT:
        return Result(error=f"its result file is larger than {MOST_RESULT} bytes", error_class=ErrorClass.other)
    return read_result(data.decode(errors="replace")) if data.strip() else None


def _last_words(folder: Path) -> Result | None:
    """A failed run that says nothing else is told by the last line of its errors."""
    lines = _text(folder / STDERR, MOST_OUTPUT).strip().splitlines()
    return Result(error=lines[-1][:500]) if lines else None


def _text(path: Path, most: int) -> str:
    try:
        with path.open("rb") as file:
            return file.read(most).decode(errors="replace")
    except OSError:
        return ""
