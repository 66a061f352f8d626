"""The job that every peer does: it says who it is and when its first line ran, and that is all.

Law: it needs nothing but the standard library, so that it can be carried into any worker.
"""

from __future__ import annotations

import os
import struct
import time

# The job's number, and CLOCK_MONOTONIC at its first line in nanoseconds.
MARK = struct.Struct("<qq")
# Names the pipe that the marks are written to.
MARKS = "PEERS_MARKS"

_pipe: int | None = None


def job(number: int) -> None:
    global _pipe
    moment = time.monotonic_ns()
    if _pipe is None:
        _pipe = os.open(os.environ[MARKS], os.O_WRONLY)
    os.write(_pipe, MARK.pack(number, moment))


async def job_in_a_loop(number: int) -> None:
    job(number)
