"""What a person, or a model, is told when something is wrong: what was found and expected, and what to do about it.

`Mistake` is for input that a person can mend. `Conflict`, `Stale` and `Unknown` are answers of the store to a
request that cannot be honoured; nothing was written when they are raised.

Law: the remedy of each class stands here and nowhere else, in words that hold whichever way was asked: by HTTP, by a
tool or by a command.
"""


class WakefulError(Exception):
    """The root of every error that wakeful raises on purpose. `remedy` is what to do: its own, or that of its class."""

    remedy: str = ""

    def __init__(self, reason: str = "", remedy: str = "") -> None:
        super().__init__(reason)
        if remedy:
            self.remedy = remedy


class Mistake(WakefulError):
    """Bad input: `reason` says what was expected and found, `remedy` what to do."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(f"{reason} ({remedy})" if remedy else reason, remedy)
        self.reason = reason


class Ended(Mistake):
    """Well said, but what it is about has ended, or does not stand where this leads from: nothing was changed."""


class Conflict(WakefulError):
    """The same idempotency key came with another body: neither is silently dropped."""

    remedy = "use another key for another request"


class Outdated(WakefulError):
    """What was to be changed is no longer as whoever asks has seen it: nothing was changed."""

    remedy = "look at it again, then decide"


class Stale(WakefulError):
    """A write with an older epoch, or to a run that has ended, is refused."""

    remedy = "do nothing more: the run is over"


class Unknown(WakefulError):
    """No such agent, item, wake or run."""

    remedy = "nothing was done; name one that exists"


class Forbidden(WakefulError):
    """The caller is known, and may not do this."""

    remedy = "do without it, or ask the operator"
    # Whether the events tell of it.
    noted = False


class Busy(WakefulError):
    """Another process holds the data folder; try later."""

    remedy = "try again in a moment"


class Sick(Busy):
    """The storage is full, read-only, failing or gone: nothing was recorded; try when it is well again."""

    remedy = "nothing was recorded; try again when it is well"


class TooOld(WakefulError):
    """The store was written by a newer wakeful that older code may not read."""


def in_words(error: WakefulError) -> str:
    """Why, and what to do about it, in one line."""
    if isinstance(error, Mistake) or not error.remedy:
        return str(error)
    return f"{error} ({error.remedy})"
