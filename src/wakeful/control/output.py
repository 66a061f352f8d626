"""What a run printed and was told, as text: from its folder, or from what the store keeps of it for other nodes.

Laws:
- Offsets count bytes. A character is never cut in two while more may come; what is not UTF-8 is shown as U+FFFD.
- What is not there is empty: a run that has not begun, one without output, one whose folder is gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wakeful.core.errors import Mistake

MOST_BYTES = 1_048_576
LONGEST_TEXT = 1_048_576
# A character of UTF-8 has four bytes at most.
_LONGEST_CHARACTER = 4

# From an offset on, at most so many bytes, and how many there are; an offset below 0 counts from the end.
Read = Callable[[int, int], tuple[bytes, int]]


def in_file(path: Path) -> Read:
    def read(offset: int, limit: int) -> tuple[bytes, int]:
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(start_of(offset, size))
                return file.read(limit), size
        except OSError:
            return b"", 0

    return read


def start_of(offset: int, size: int) -> int:
    return max(size + offset, 0) if offset < 0 else offset


def bounded_bytes(limit: int) -> int:
    if limit < _LONGEST_CHARACTER:
        raise Mistake(f"expected how many bytes to read, found {limit}", f"write a number from 4 to {MOST_BYTES}")
    return min(limit, MOST_BYTES)


def read_output(read: Read, offset: int, limit: int, over: bool) -> dict[str, Any]:
    """One piece of a stream; `over` says that the run has ended and nothing more will come."""
    data, size = read(offset, bounded_bytes(limit))
    start = start_of(offset, size)
    if offset < 0 and start > 0:
        # Counted from the end, the piece may begin inside a character: it is left out.
        cut = _inside(data)
        start, data = start + cut, data[cut:]
    at_end = start + len(data) >= size
    if not (over and at_end):
        data = data[: len(data) - _unfinished(data)]
    end = start + len(data)
    text = data.decode("utf-8", errors="replace")
    return {"offset": start, "next_offset": end, "text": text, "over": over and end >= size, "size": size}


def _inside(data: bytes) -> int:
    """How many bytes at the beginning belong to a character that began before."""
    return next((index for index, byte in enumerate(data[:_LONGEST_CHARACTER]) if byte & 0xC0 != 0x80), 0)


def _unfinished(data: bytes) -> int:
    """How many bytes at the end are a character that goes on."""
    for back in range(1, min(_LONGEST_CHARACTER, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if length > back and byte < 0xF8 else 0
    return 0


def read_text(read: Read) -> str | None:
    """All of it, as far as anybody would read; None where there is none."""
    data, size = read(0, LONGEST_TEXT)
    return data.decode("utf-8", errors="replace") if size else None
