"""Names of agents, states and roles: `[a-z0-9][a-z0-9_-]{0,62}` and nothing else.

Names become folders, addresses, URLs and metric labels; an allow-list keeps them unambiguous in all of them.
"""

from __future__ import annotations

import re

from wakeful.core.errors import Mistake
from wakeful.core.wording import quoted

LONGEST_NAME = 63
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
ILLEGAL = re.compile(r"[^a-z0-9_-]+")
TAGS = re.compile(r"\s:[\w@#%:]+:$")
KEYWORDS = frozenset({"TODO", "NEXT", "DOING", "WAITING", "DONE", "COMMENT", "CANCELLED"})


def read_name(text: str, what: str) -> str:
    """The name, or what is wrong with it; `what` says whose name it is."""
    if NAME.fullmatch(text):
        return text
    raise _complaint(text, what)


def suggested(text: str) -> str:
    return ILLEGAL.sub("-", text.lower()).strip("-_")[:LONGEST_NAME]


def _complaint(text: str, what: str) -> Mistake:
    words = text[:1_000].split()
    if not words:
        return Mistake(f"{what} has no name", "write one word after the star, such as * wren")
    if ":PROPERTIES:" in text.upper():
        return Mistake(
            f"the heading of {what} {quoted(words[0])} holds its drawer",
            "write :PROPERTIES:, each property and :END: on lines of their own",
        )
    if TAGS.search(text[-200:]):
        return Mistake(f"the name of {what} has tags: {quoted(text)}", f"write only the name: * {suggested(words[0])}")
    if words[0] in KEYWORDS and len(words) > 1:
        return Mistake(
            f"the name of {what} begins with the keyword {words[0]}: {quoted(text)}",
            f"write only the name, * {suggested(words[1])}; :ENABLED: no switches an agent off",
        )
    if len(words) > 1:
        return Mistake(f"the name of {what} is more than one word: {quoted(text)}", f"write {suggested(text)}")
    if len(text) > LONGEST_NAME:
        return Mistake(f"the name of {what} has {len(text)} characters: {quoted(text)}", f"use at most {LONGEST_NAME}")
    if text != text.lower() and NAME.fullmatch(text.lower()):
        return Mistake(f"the name of {what} has capital letters: {quoted(text)}", f"write {text.lower()}")
    advice = f", such as {suggested(text)}" if suggested(text) else ""
    return Mistake(
        f"illegal name of {what}: {quoted(text)}",
        f"use a-z, 0-9, _ and -, beginning with a letter or digit{advice}",
    )
