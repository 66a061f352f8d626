"""Text from outside, made fit to be kept and shown: a file may be called anything, and hold anything.

Laws:
- Two names stay two: what is escaped can be told from what merely looks like it.
- Whatever comes out can be stored. What is cut says so.
"""

from __future__ import annotations

import codecs
import re

# Controls, what turns the direction of writing, line separators, halves of characters; and the sign that escapes.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\\\\\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_HALVES = re.compile("[\ud800-\udfff]")
# How Python holds a byte of a name that is not text: 0xDC00 and the byte.
_BYTES = range(0xDC80, 0xDD00)

LONGEST_WHY = 300


def name(text: str) -> str:
    """A name on one line, as it was written wherever that is harmless."""
    return _UNFIT.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    sign = ord(found[0])
    if found[0] == "\\":
        return r"\\"
    return f"\\x{sign - 0xDC00:02x}" if sign in _BYTES else f"\\u{sign:04x}"


def whole(text: str) -> str:
    """A text without halves of characters, which no store takes."""
    return _HALVES.sub("\ufffd", text)


def beginning(content: bytes, *, complete: bool) -> str:
    """Bytes as text, as well as they can be read; a character that is cut in half at the end is left out."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(content, final=complete)


def line(text: str) -> str:
    """One line for people, in which nothing acts on the screen that shows it."""
    return name(" ".join(text.split())).replace(r"\\", "\\")


def sentence(text: str) -> str:
    """A line that is not too long, of whatever somebody else has said."""
    said = line(text)
    return said if len(said) <= LONGEST_WHY else said[:LONGEST_WHY] + "…"
