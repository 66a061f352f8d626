"""What keeps a source from being read, in words that others chose.

Law: two reasons that differ in their numbers alone (a time, a process, a count) are one: a program may say the time in
each of them.
"""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"\d+")


def same_reason(one: str, other: str) -> bool:
    return one == other or _NUMBERS.sub("0", one) == _NUMBERS.sub("0", other)
