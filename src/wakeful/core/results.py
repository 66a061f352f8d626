"""What a run says of itself: its result file, and what common agent programs print.

Laws:
- A result file that cannot be read is a failure with a reason, never a silent done. Unknown keys are passed over.
- What an agent program prints is recognised by its documented shape alone; anything else is plain text, and no result.
  `claude -p --output-format json` prints one object (with its verbose setting a list that ends with it), and
  `stream-json` ends with that object as the last line. `codex exec --json` prints one event on each line and begins
  with `thread.started`; the usage of its last completed turn is that of the whole thread, cached input included.
- The file is believed first; what it leaves out comes from the output.
- Usage is believed only as plain, finite, sane numbers: a wrong bill is worse than an estimated one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from wakeful.core.runs import ErrorClass, Result
from wakeful.core.standing import NOTHING, Spend

OUTCOMES = ("done", "no_work", "failed")
MILLION = 1_000_000
MOST_USD = 1_000_000
MOST_TOKENS = 10**12

# No database takes these, and no text needs them.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# How both programs word a quota that is used up; where they give the instant, it stands after the bar.
_USED_UP = re.compile(
    r"(?:Claude AI |Claude )?usage limit reached(?:\|(\d{9,11})\b)?|You.ve hit your (?:\w+ )?limit", re.I
)
_STATUSES = {401: ErrorClass.auth, 403: ErrorClass.auth, 429: ErrorClass.quota}

Json = dict[str, Any]


class _Unreadable(ValueError):
    """Says what was expected and what was found."""


def read_result(text: str) -> Result:
    """The result file's contents as a result; never an exception."""
    try:
        return _from_file(_parse(text))
    except _Unreadable as problem:
        return _failure(f"the result file cannot be read: {problem}")
    except RecursionError:
        return _failure("the result file cannot be read: expected a JSON object, found one nested too deeply")


def read_output(text: str) -> Result | None:
    """What an agent program's standard output says; None where it is not one that is known."""
    # Not splitlines: JSON may hold other line separators in its texts.
    lines = [line for line in text.split("\n") if line and not line.isspace()]
    if not lines:
        return None
    if _event(lines[0]).get("type") == "thread.started":
        return _from_codex(lines)
    messages = _claude_messages(text, lines)
    last = next(messages, {})
    return _from_claude(last, messages) if last.get("type") == "result" and "subtype" in last else None


def combine(file: Result | None, output: Result | None) -> Result | None:
    if file is None or output is None:
        return file or output
    blamed = file.error is not None or file.error_class is not None
    # Who says done or no_work leaves out no error; who says failed, or nothing, may.
    source = file if blamed or file.outcome in ("done", "no_work") else output
    return Result(
        outcome=file.outcome or ("failed" if blamed else output.outcome),
        summary=file.summary or output.summary,
        usage=_merge(file.usage, output.usage),
        error=source.error,
        error_class=source.error_class,
        retry_at=source.retry_at,
        value=file.value,
    )


def _merge(file: Spend | None, output: Spend | None) -> Spend | None:
    if file is None or output is None:
        return file or output
    return Spend(usd=file.usd or output.usd, tokens=file.tokens or output.tokens)


def _failure(error: str, kind: ErrorClass = ErrorClass.other, retry_at: datetime | None = None) -> Result:
    return Result(outcome="failed", error=_storable(error), error_class=kind, retry_at=retry_at)


def _storable(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text)


# ---- the result file


def _parse(text: str) -> Any:
    if not text.strip("\ufeff \t\r\n"):
        raise _Unreadable("expected a JSON object, found nothing")
    try:
        return json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse_constant)
    except _Unreadable:
        raise
    except ValueError as problem:
        raise _Unreadable(f"expected a JSON object, found what is no JSON ({problem})") from None


def _refuse_constant(name: str) -> Any:
    raise _Unreadable(f"expected a number, found {name}")


def _from_file(value: Any) -> Result:
    data = _object(value, "a JSON object")
    outcome = _text(data, "outcome")
    if outcome is not None and outcome not in OUTCOMES:
        raise _Unreadable(f"expected the outcome done, no_work or failed, found {_show(outcome)}")
    result = Result(outcome=outcome, summary=_text(data, "summary") or "")
    if data.get("usage") is not None:
        usage = _object(data["usage"], "an object as usage")
        result = replace(result, usage=_spend(usage.get("usd"), usage.get("tokens")))
    if data.get("error") is not None:
        result = _with_error(result, data["error"])
    kept = data.get("result") if data.get("result") is not None else data.get("value")
    return result if kept is None else replace(result, value=_kept(kept))


def _kept(value: Any) -> str:
    """A text as it is, everything else as JSON: as what a handler returns is kept."""
    return _storable(value) if isinstance(value, str) else json.dumps(value)


def _with_error(result: Result, value: Any) -> Result:
    if isinstance(value, str):
        return replace(result, error=_storable(value) or "failed without a message", error_class=ErrorClass.other)
    data = _object(value, "an object as error")
    named, message = _text(data, "class"), _text(data, "message")
    kind = ErrorClass(named) if named and named in [*ErrorClass] else ErrorClass.other
    described = message or (f"error of class {named}" if named else "failed without a message")
    return replace(result, error=described, error_class=kind, retry_at=_instant(data.get("retry_at")))


def _object(value: Any, expected: str) -> Json:
    if not isinstance(value, dict):
        raise _Unreadable(f"expected {expected}, found {_show(value)}")
    return value


def _text(data: Json, key: str) -> str | None:
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _Unreadable(f"expected a text as {key}, found {_show(value)}")
    return _storable(value)


def _instant(value: Any) -> datetime | None:
    if value is None:
        return None
    expected = "an instant with its offset as retry_at, such as 2026-03-02T12:00:00Z"
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError
        return moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise _Unreadable(f"expected {expected}, found {_show(value)}") from None


def _spend(usd: Any, tokens: Any) -> Spend | None:
    if usd is None and tokens is None:
        return None
    counted = _number(tokens, MOST_TOKENS, "tokens")
    if counted != int(counted):
        raise _Unreadable(f"expected a whole number as tokens, found {_show(tokens)}")
    return Spend(usd=round(_number(usd, MOST_USD, "usd") * MILLION), tokens=int(counted))


def _number(value: Any, most: int, name: str) -> int | float:
    if value is None:
        return 0
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _Unreadable(f"expected a number as {name}, found {_show(value)}")
    if not 0 <= value <= most:  # nor is NaN
        raise _Unreadable(f"expected {name} from 0 to {most}, found {_show(value)}")
    return value


def _show(value: Any) -> str:
    shown = json.dumps(value)
    return shown if len(shown) <= 80 else f"{shown[:80]}…"


# ---- what agent programs print


def _event(line: str) -> Json:
    """The object on a line, or an empty one."""
    value = _loads(line) if line.lstrip().startswith("{") else None
    return value if isinstance(value, dict) else {}


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _part(data: Json, key: str) -> Json:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _claude_messages(text: str, lines: list[str]) -> Iterator[Json]:
    """What was printed, the last first: one on each line, a list of them all, or one object laid out for people."""
    if lines[0].lstrip().startswith("[") or lines[-1].strip() == "}":
        value = _loads(text)
        printed = value if isinstance(value, list) else [value]
        return (message if isinstance(message, dict) else {} for message in reversed(printed))
    return map(_event, reversed(lines))


def _from_claude(last: Json, earlier: Iterator[Json]) -> Result:
    counts = _part(last, "usage")
    kinds = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    usage = _believed(last.get("total_cost_usd"), [counts.get(kind) for kind in kinds])
    said = _line(last.get("result"))
    if not last.get("is_error") and last.get("subtype") == "success":
        # Some versions leave the result empty although the agent has spoken.
        return Result(summary=said or _last_words(earlier), usage=usage)
    errors = last.get("errors")
    listed = "; ".join(filter(None, map(_line, errors))) if isinstance(errors, list) else ""
    subtype = _line(last.get("subtype")).replace("success", "")
    error = said or listed or subtype or "the program reports an error"
    status = last.get("api_error_status")
    kind = _STATUSES.get(status) if isinstance(status, int) else None
    if isinstance(status, int) and str(status) not in error:
        error = f"{error} (status {status})"
    return replace(_blame(error, kind, earlier), usage=usage)


def _last_words(earlier: Iterator[Json]) -> str:
    for message in earlier:
        content = _part(message, "message").get("content") if message.get("type") == "assistant" else None
        parts = content if isinstance(content, list) else []
        texts = [_line(part.get("text")) for part in parts if isinstance(part, dict) and part.get("type") == "text"]
        if any(texts):
            return "\n".join(filter(None, texts))
    return ""


def _resets_at(earlier: Iterator[Json]) -> datetime | None:
    for message in earlier:
        info = _part(message, "rate_limit_info")
        if info.get("status") == "rejected":
            return _from_epoch(info.get("resetsAt"))
    return None


def _from_codex(lines: list[str]) -> Result:
    summary, error, usage = "", "", None
    for event in map(_event, lines):
        match event.get("type"):
            case "item.completed" if _part(event, "item").get("type") == "agent_message":
                summary = _line(_part(event, "item").get("text"))
            case "turn.completed":
                # An error before it was overcome: the program reports its retries that way.
                counts, error = _part(event, "usage"), ""
                counted = _believed(None, [counts.get("input_tokens"), counts.get("output_tokens")])
                usage = counted if counted != NOTHING else None  # it prints zeros where it was told nothing
            case "turn.failed":
                error = _line(_part(event, "error").get("message")) or error or "the turn failed"
            case "error":
                error = _line(event.get("message")) or "the program reports an error"
    if not error:
        return Result(summary=summary, usage=usage)
    return replace(_blame(error, None, iter(())), usage=usage)


def _blame(error: str, kind: ErrorClass | None, earlier: Iterator[Json]) -> Result:
    used_up = _USED_UP.match(error)
    if used_up is None and kind is not ErrorClass.quota:
        return _failure(error, kind or ErrorClass.other)
    told = _from_epoch(int(used_up[1])) if used_up and used_up[1] else None
    return _failure(error, ErrorClass.quota, told or _resets_at(earlier))


def _believed(usd: Any, counts: list[Any]) -> Spend | None:
    """A program's bill, or nothing: a run does not fail because its bill is odd."""
    try:
        known = [int(_number(count, MOST_TOKENS, "tokens")) for count in counts if count is not None]
        return _spend(usd, sum(known) if known else None)
    except _Unreadable:
        return None


def _line(value: Any) -> str:
    return _storable(value) if isinstance(value, str) else ""


def _from_epoch(value: Any) -> datetime | None:
    try:
        return datetime.fromtimestamp(value, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
