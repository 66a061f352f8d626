"""What a run says that it has used so far, held against what one run may use.

Laws:
- A run that has limits is read once a second while it goes on; one that has none is never looked at.
- Its result file may be rewritten at any moment: what is half written, or no sane number, is nothing said yet.
- The agent owns that file: neither what it is made into nor what is in it can hold the guardian up.
- Only the standard library, and little of it: a guardian has one.
"""

from __future__ import annotations

import json
import os
import stat
import time
from typing import Any

# In seconds: between two looks; and how old a change must be before the same stamps mean the same content.
LOOK = 1.0
_SETTLED = 0.1
_MOST_RESULT = 1024 * 1024
_MILLION = 1_000_000
# As `core.results` believes them: in dollars, and in tokens.
_MOST_USD = 1_000_000
MOST_TOKENS = 10**12

Amounts = dict[str, int]
Stamps = tuple[int, int, int, int]


class Meter:
    """`limits` are millionths of a dollar (`usd`) and `tokens`; what is not limited is not in it."""

    def __init__(self, path: str, limits: Amounts | None) -> None:
        self.limits = limits or {}
        self.look_at = 0.0 if self.limits else float("inf")
        # What it had used when it was found to be past a limit; as the exit record tells it.
        self.over: dict[str, Amounts] | None = None
        self._path = path
        self._seen: Stamps | None = None

    def is_over(self, moment: float, printed: int = 0) -> bool:
        """Whether it has just been found to be past a limit; that is said once, and then nobody looks any more.
        `printed` are the tokens that it has told in its output."""
        if moment < self.look_at:
            return False
        self.look_at = moment + LOOK
        used = self._read()
        used["tokens"] = max(used.get("tokens", 0), printed)
        if all(used.get(unit, 0) <= limit for unit, limit in self.limits.items()):
            return False
        self.look_at = float("inf")
        self.over = {"used": used, "limits": self.limits}
        return True

    def _read(self) -> Amounts:
        """What was said since the last look; nothing where nothing was."""
        try:
            if _stamps(os.stat(self._path)) == self._seen:
                return {}
            # A pipe in its place would keep us waiting.
            file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(file, "rb") as stream:
                status = os.fstat(file)
                if not stat.S_ISREG(status.st_mode):
                    return {}
                data = stream.read(_MOST_RESULT + 1)
        except OSError:
            return {}
        # The clock of files is coarse: another change may bear the stamps of this one.
        settled = time.time() - status.st_ctime > _SETTLED
        self._seen = _stamps(status) if settled else None
        return read_usage(data) if len(data) <= _MOST_RESULT else {}


def read_usage(data: bytes) -> Amounts:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    usage = told.get("usage") if isinstance(told, dict) else None
    if not isinstance(usage, dict):
        return {}
    return {
        "usd": round(number(usage.get("usd"), _MOST_USD) * _MILLION),
        "tokens": int(number(usage.get("tokens"), MOST_TOKENS)),
    }


def number(value: Any, most: int) -> int | float:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return value if plain and 0 <= value <= most else 0


def _stamps(status: os.stat_result) -> Stamps:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size
