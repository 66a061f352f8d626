"""A failed task is tried again later, or buried with its whole history. Nothing is retried for ever.

Laws:
- The n-th retry waits base * 2^n, with n from 1; jitter is hashed from the task, and only lengthens.
- `max_retries` counts after the first try: five retries are six runs.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.core.agents import RetryPolicy

# Past this many doublings a wait is longer than any calendar; the cap keeps the arithmetic finite.
_MOST_DOUBLINGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """What becomes of a task after a failed attempt: tried again at `at`, or dead when that is None."""

    at: datetime | None
    attempts: int

    @property
    def dead(self) -> bool:
        return self.at is None


def delay(policy: RetryPolicy, retry: int, seed: str = "") -> timedelta:
    """How long the given retry (from 1) waits."""
    bare = policy.base * (1 << min(retry, _MOST_DOUBLINGS))
    share = zlib.crc32(f"{seed}:{retry}".encode()) / 2**32
    return bare * (1 + policy.jitter * share)


def retry_or_bury(
    attempts: int, policy: RetryPolicy, now: datetime, *, seed: str = "", max_retries: int | None = None
) -> Retry:
    """`attempts` includes the one that just failed; `max_retries` is the task's own, before the policy's."""
    most = policy.max_retries if max_retries is None else max_retries
    if attempts > most:
        return Retry(at=None, attempts=attempts)
    return Retry(at=now + delay(policy, attempts, seed), attempts=attempts)
