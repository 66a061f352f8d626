"""One shape for everything that is refused or goes wrong: RFC 9457, `application/problem+json`.

Laws:
- `type` names the kind of error, so that a client can raise the same class as a caller in this process.
- `detail` says what was found and expected, `remedy` what to do. What nobody foresaw has no detail: it is logged.
- No traceback, no token and nothing of what was sent is told back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from wakeful.control.callers import Forbidden
from wakeful.core.errors import Busy, Conflict, Ended, Mistake, Outdated, Sick, Stale, Unknown

MEDIA_TYPE = "application/problem+json"

TITLES = {
    "mistake": "The request cannot be understood",
    "unauthenticated": "No valid token",
    "signature": "The signature does not hold",
    "forbidden": "Not allowed",
    "unknown": "No such thing",
    "method": "Not a method of this path",
    "late": "The request did not arrive in time",
    "conflict": "The same key came with another body",
    "outdated": "It is no longer as you have seen it",
    "ended": "It has ended, or does not stand where this leads from",
    "stale": "The run has ended, or another epoch holds it",
    "too_large": "The body is too large",
    "media": "The body is not JSON",
    "host": "Not a name of this server",
    "too_many": "Too many wrong tokens",
    "busy": "Try again in a moment",
    "sick": "The storage does not answer",
    "internal": "Something went wrong here",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    status: int
    kind: str
    detail: str = ""
    remedy: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    # Each mistake by itself, where there are several: {"where": "body.title", "reason": "..."}.
    mistakes: tuple[dict[str, str], ...] = ()

    def body(self, **more: Any) -> bytes:
        told: dict[str, Any] = {
            "type": f"urn:wakeful:error:{self.kind}",
            "title": TITLES[self.kind],
            "status": self.status,
            "detail": self.detail,
            "remedy": self.remedy,
        }
        if self.mistakes:
            told["mistakes"] = self.mistakes
        return json.dumps(told | more).encode()

    def response(self, **more: Any) -> Response:
        """`more` stands beside what every refusal says."""
        return Response(self.body(**more), self.status, headers=dict(self.headers), media_type=MEDIA_TYPE)


class Refused(Exception):
    """A request that does not get as far as an operation."""

    def __init__(self, problem: Problem, why: str = "") -> None:
        """`why` is what the events call it, where that is more than the kind of the problem."""
        super().__init__(problem.detail)
        self.problem = problem
        self.why = why


INTERNAL = Problem(status=500, kind="internal", remedy="see the log of the engine")
_SOON = (("retry-after", "1"),)


def problem_of(error: Exception, sick: tuple[type[Exception], ...] = ()) -> Problem | None:
    """What is told about an error of `control`; None for one that nobody foresaw."""
    text = str(error)
    match error:
        case Refused():
            return error.problem
        case Ended():
            return Problem(status=409, kind="ended", detail=error.reason, remedy=error.remedy)
        case Mistake():
            return Problem(status=400, kind="mistake", detail=error.reason, remedy=error.remedy)
        case Forbidden():
            return Problem(status=403, kind="forbidden", detail=text, remedy=error.remedy)
        case Unknown():
            return Problem(status=404, kind="unknown", detail=text, remedy=error.remedy)
        case Conflict():
            return Problem(status=409, kind="conflict", detail=text, remedy=error.remedy)
        case Outdated():
            return Problem(status=412, kind="outdated", detail=text, remedy=error.remedy)
        case Stale():
            return Problem(status=409, kind="stale", detail=text, remedy=error.remedy)
        case Sick():
            return Problem(status=503, kind="sick", detail=text, remedy=error.remedy, headers=_SOON)
        case Busy():
            return Problem(status=503, kind="busy", detail=text, remedy=error.remedy, headers=_SOON)
        case _ if isinstance(error, sick):
            where = "the disk of the data folder, or the database,"
            remedy = f"see that {where} is there, writable and not full; nothing was recorded"
            return Problem(status=503, kind="sick", remedy=remedy, headers=_SOON)
    return None
