"""What a server refuses, as the error that a caller in its own process would be given."""

from __future__ import annotations

import json
from typing import Any

from wakeful.core.errors import Busy, Conflict, Ended, Forbidden, Mistake, Outdated, Stale, Unknown, WakefulError

PREFIX = "urn:wakeful:error:"

_BY_KIND: dict[str, type[WakefulError]] = {
    "unauthenticated": Forbidden,
    "signature": Forbidden,
    "forbidden": Forbidden,
    "too_many": Forbidden,
    "unknown": Unknown,
    "conflict": Conflict,
    "outdated": Outdated,
    "stale": Stale,
    "busy": Busy,
    "sick": Busy,
    "internal": WakefulError,
}
# For a kind that is younger than this client.
_BY_STATUS: dict[int, type[WakefulError]] = {
    401: Forbidden,
    403: Forbidden,
    404: Unknown,
    409: Conflict,
    412: Outdated,
    503: Busy,
}


def error_of(status: int, body: bytes) -> WakefulError:
    told = _read(body)
    kind = str(told.get("type", "")).removeprefix(PREFIX)
    remedy = str(told.get("remedy") or "")
    detail = str(told.get("detail") or told.get("title") or f"the engine answered {status}")
    if kind == "ended":
        return Ended(detail, remedy)
    known = _BY_KIND.get(kind) or _BY_STATUS.get(status)
    if known is None and 400 <= status < 500:
        return Mistake(detail, remedy)
    error = (known or WakefulError)(detail, remedy)
    if remedy:
        # Beside the text, which is the one that a caller in the process is told.
        error.add_note(remedy)
    return error


def _read(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
