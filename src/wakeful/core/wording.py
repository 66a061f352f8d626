"""How a text that somebody wrote is shown to a person, and what was probably meant by an unknown word.

Law: what is shown is short and escaped: a text cannot write to the terminal of the person who reads about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from wakeful.core.errors import Mistake

LONGEST_SHOWN = 60

# No database takes these, and no text needs them.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def quoted(text: str) -> str:
    """A value as it is shown in a reason: escaped, and short."""
    return repr(shortened(text))


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def nearest(word: str, known: Iterable[str]) -> str | None:
    # Guesses ignore case, or `europe/berlin` would be nearer to any lower-case word than to Europe/Berlin.
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(word.casefold(), list(by_folded), n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def readable(text: str | None, what: str) -> str:
    """Text that any store can keep."""
    if found := UNSTORABLE.search(text or ""):
        raise Mistake(f"{what} holds U+{ord(found[0]):04X}, which is no character of a text", "remove it")
    return text or ""
