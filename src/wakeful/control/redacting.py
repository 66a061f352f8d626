"""What is asked is recorded without the secrets that this place knows.

Laws:
- Every text of a request passes here, whoever sends it and however deep in a payload it stands; but for words that mean
  something to us and names of what there is, which are kept only as what they name.
- What something is known by stays apart from what others are known by (`Redact.name`).
- A request without secrets is not copied.
"""

from __future__ import annotations

from typing import Any, Protocol

from wakeful.core.errors import Mistake
from wakeful.core.redacting import texts_in, without

# Our own words, names and numbers of what there is, instants, and a place on the disk.
MEANT = frozenset(
    {
        *("agent", "role", "sender", "source", "owner", "state", "type", "priority", "change", "kinds", "stream"),
        *("outcome", "verdict", "cause", "at", "after", "when", "until", "not_before", "timeout", "duration"),
        *("run_length", "path", "settings", "messages", "guard", "since", "names", "agents"),
    }
)
# What something is known by, or found again.
NAMES = frozenset({"key", "causal_key", "message_id", "depends_on", "name"})
# Each of these is a request by itself.
BATCH = "tasks"


class Redact(Protocol):
    def __call__(self, text: str, /) -> str:
        """The text without what is secret."""

    def name(self, text: str, /) -> str:
        """The same of what something is known by: what was different stays different."""


class AsItIs:
    """Where nobody knows a secret."""

    def __call__(self, text: str, /) -> str:
        return text

    def name(self, text: str, /) -> str:
        return text


AS_IT_IS = AsItIs()


def redacted(given: dict[str, Any], redact: Redact) -> dict[str, Any]:
    """The parameters of an operation."""
    whole = "\n".join(texts_in(given))
    if redact(whole) == whole:
        return given
    try:
        return _request(given, redact)
    except RecursionError:
        raise Mistake("it is nested too deeply, and holds a secret", "leave the secret out") from None


def _request(given: dict[str, Any], redact: Redact) -> dict[str, Any]:
    return {name: _told(name, value, redact) for name, value in given.items()}


def _told(name: str, value: Any, redact: Redact) -> Any:
    if name == BATCH and isinstance(value, list):
        return [_request(each, redact) if isinstance(each, dict) else each for each in value]
    if name in MEANT or not isinstance(value, (str, list, dict, tuple)):
        return value
    if name in NAMES:
        each = value if isinstance(value, list) else [value]
        named = [redact.name(one) if isinstance(one, str) else one for one in each]
        return named if isinstance(value, list) else named[0]
    return without(value, redact)
