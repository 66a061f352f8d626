"""What is shown of what takes a while, on a terminal and only there."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wakeful.cli.output import write

# Seconds before a person wants to see that something is done, and between two signs of it.
PATIENCE, STEP = 1.0, 0.1
_ANEW = "\r\033[K"

Sign = Callable[[str], None]


def _nothing(text: str) -> None:
    return


@contextmanager
def progress(*, quiet: bool) -> Iterator[Sign]:
    """Gives what is called with a text, as often as one likes; the line is gone afterwards."""
    if quiet or not sys.stderr.isatty():
        yield _nothing
        return
    began = shown = time.monotonic()

    def tell(text: str) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - began > PATIENCE and now - shown > STEP:
            shown = now
            write(f"{_ANEW}{text}", to_stderr=True)

    try:
        yield tell
    finally:
        if shown > began:
            write(_ANEW, to_stderr=True)


@contextmanager
def rehearsed(*, quiet: bool) -> Iterator[Sign]:
    """The same, while an engine lives through what has not happened: it logs nothing of that."""
    logging.disable()
    try:
        with progress(quiet=quiet) as tell:
            yield tell
    finally:
        logging.disable(logging.NOTSET)
