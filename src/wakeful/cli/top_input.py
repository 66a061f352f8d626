"""Bytes of a terminal as keys: characters, and names for what has none.

Law: a sequence that nobody knows is nothing, never its letters. A paste is one key, however much like keys it looks.
"""

from __future__ import annotations

import codecs
import re

LONGEST_PASTE = 10_000

_CSI = re.compile(r"\x1b\[([0-?]*)[ -/]*([@-~])")
_SS3 = re.compile(r"\x1bO(.)", re.DOTALL)
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?")
_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"

_LETTERS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end", "M": "enter"}
_NUMBERS = {"1": "home", "7": "home", "4": "end", "8": "end", "5": "page-up", "6": "page-down", "3": "delete"}
_CONTROLS = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\t": "tab"}


class Keys:
    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("ignore").decode
        self._left = ""

    @property
    def unfinished(self) -> bool:
        """Whether something has begun that may yet become another key."""
        return bool(self._left)

    def read(self, data: bytes) -> list[str]:
        self._left += self._decode(data)
        found: list[str] = []
        while self._left:
            key = self._next()
            if key is None:
                break
            found += [key] if key else []
        return found

    def settle(self) -> list[str]:
        """Nothing more came: what has begun is Esc, or the beginning of nothing."""
        if self._left.startswith(_PASTE):
            return []
        left, self._left = self._left, ""
        return ["escape"] if left == "\x1b" else []

    def _next(self) -> str | None:
        """The next key, taken away from what is left; "" for none, None while more has to come."""
        if self._left[0] != "\x1b":
            character, self._left = self._left[0], self._left[1:]
            if character in _CONTROLS:
                return _CONTROLS[character]
            return f"ctrl-{chr(ord(character) + 96)}" if "\x00" < character < "\x1b" else character
        if self._left.startswith(_PASTE):
            return self._pasted()
        whole = _CSI.match(self._left) or _SS3.match(self._left)
        if whole is not None:
            self._left = self._left[whole.end() :]
            return _named(*whole.groups())
        if _BEGUN.fullmatch(self._left):
            return None
        # Esc, and something else right after it.
        self._left = self._left[1:]
        return "escape"

    def _pasted(self) -> str | None:
        text, end, rest = self._left.removeprefix(_PASTE).partition(_PASTED)
        if not end and len(text) < LONGEST_PASTE:
            return None
        self._left = rest
        return f"paste:{text[:LONGEST_PASTE]}"


def _named(first: str, final: str = "") -> str:
    if not final:
        return _LETTERS.get(first, "")
    if final == "~":
        return _NUMBERS.get(first.partition(";")[0], "")
    return _LETTERS.get(final, "") if re.fullmatch(r"[0-9;]*", first) else ""
