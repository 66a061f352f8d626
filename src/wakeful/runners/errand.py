"""A program of ours that speaks to an agent elsewhere, and stands in for it under the guardian.

Laws:
- It says how the run ended as any agent does: its exit code, its output, the result file.
- Asked to end, it stops waiting at once; what it does then is a courtesy, and short.
- It starts for each run, so little is imported.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping

from wakeful.runners.whole import write_whole

# What was to be reached, and the secret that goes there; everything else is named as in any run.
TARGET = "WAKEFUL_TARGET"
BEARER = "WAKEFUL_BEARER"
# As a shell tells of a program that TERM has ended.
_DISMISSED = 128 + signal.SIGTERM


class Dismissed(BaseException):
    """The guardian has asked for the end."""


class Trouble(Exception):
    """Why the run has failed; `kind` is the class of the error, `retry_at` when a quota returns."""

    def __init__(self, reason: str, kind: str = "other", retry_at: str | None = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.retry_at = retry_at


def carry_out(errand: Callable[[Mapping[str, str]], None]) -> None:
    signal.signal(signal.SIGTERM, _dismiss)
    try:
        errand(os.environ)
    except Dismissed:
        sys.exit(_DISMISSED)
    except Trouble as trouble:
        error = {"class": trouble.kind, "message": str(trouble), "retry_at": trouble.retry_at}
        write_whole(os.environ["WAKEFUL_RESULT"], {"outcome": "failed", "error": error})
        sys.exit(str(trouble))


def tell(words: str) -> None:
    """For whoever reads the log of the run; its answer is on standard output."""
    print(words, file=sys.stderr, flush=True)


def _dismiss(*_: object) -> None:
    # Once: whatever courtesy is under way is not to be broken off.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Dismissed
