"""What a person is told when something is wrong: what was found and expected, and what to do about it.

`Mistake` is for input that a person can mend. `Conflict`, `Stale` and `Unknown` are answers of the store to a
request that cannot be honoured; nothing was written when they are raised.
"""


class WakefulError(Exception):
    """The root of every error that wakeful raises on purpose."""


class Mistake(WakefulError):
    """Bad input: `reason` says what was expected and found, `remedy` what to do."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(f"{reason} ({remedy})" if remedy else reason)
        self.reason = reason
        self.remedy = remedy


class Conflict(WakefulError):
    """The same idempotency key came with another body: neither is silently dropped."""


class Stale(WakefulError):
    """A write with an older epoch, or to a run that has ended, is refused."""


class Unknown(WakefulError):
    """No such agent, item, wake or run."""


class Busy(WakefulError):
    """Another process holds the data folder; try later."""


class TooOld(WakefulError):
    """The store was written by a newer wakeful that older code may not read."""
