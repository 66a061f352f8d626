"""The org of a board: its entries, whose they are, and a claim as it is written into it.

Laws:
- An entry is a heading, of any depth, with a keyword that stands for open work: those before the bar in `#+TODO:`, or
  TODO, NEXT and DOING where the board does not say.
- What bears another agent's `:AGENT:` is that one's.
- An entry is known by its `:ID:` or `:CUSTOM_ID:`, else by its title; of two that are called the same the second one
  is numbered. It has changed when its heading, its properties or the text below them have, not when it moves.
- Who writes a claim changes the keyword and that property, and no other sign of the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from wakeful.core.items import Observation
from wakeful.sources import text
from wakeful.sources.entries import LONGEST_BODY, LONGEST_ID, LONGEST_SUBJECT

_WORDS = re.compile(r"#\+(?:(?:SEQ|TYP)_)?TODO:(.*)", re.IGNORECASE)
_HEADING = re.compile(r"\*+[ \t]+(?:(?P<word>\S+)(?:[ \t]+|$))?(?P<rest>.*)")
_COOKIE = re.compile(r"\[#[A-Z0-9]\][ \t]*")
_TAGS = re.compile(r"[ \t]+(:(?:[\w@#%]+:)+)[ \t]*$")
_PLANNING = re.compile(r"[ \t]*(?:SCHEDULED|DEADLINE|CLOSED):")
_PROPERTY = re.compile(r"[ \t]*:([^\s:]+):(?:[ \t]+(.*))?")


@dataclass(slots=True, kw_only=True)
class Entry:
    word: str
    title: str
    tags: tuple[str, ...]
    heading: str
    # Where its heading stands, and its drawer from :PROPERTIES: to :END:, as lines counted from 0.
    line: int
    drawer: range = range(0)
    properties: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.properties.get("ID") or self.properties.get("CUSTOM_ID") or self.title

    @property
    def agent(self) -> str:
        return self.properties.get("AGENT", "")

    @property
    def body(self) -> str:
        return "\n".join(self.lines).strip("\n")


@dataclass(frozen=True, slots=True)
class Words:
    """The keywords of a board, in its own order."""

    open: tuple[str, ...] = ("TODO", "NEXT", "DOING")
    closed: tuple[str, ...] = ("DONE", "CANCELLED")


def words_of(lines: list[str]) -> Words:
    """Without a bar the last word of a line is the one for what is done, as in org."""
    wanted: dict[str, None] = {}
    done: dict[str, None] = {}
    for found in filter(None, map(_WORDS.fullmatch, lines)):
        before, bar, after = ([word.partition("(")[0] for word in part.split()] for part in found[1].partition("|"))
        if not bar:
            before, after = before[:-1], before[-1:]
        wanted.update(dict.fromkeys(before))
        done.update(dict.fromkeys(after))
    return Words(tuple(wanted), tuple(done)) if wanted or done else Words()


def split(board: str) -> list[str]:
    return [line.removesuffix("\r") for line in board.split("\n")]


def entries(board: str) -> Iterator[Entry]:
    """Those of open work, in the order of the board."""
    lines = split(board)
    wanted = words_of(lines).open
    entry: Entry | None = None
    inside = False
    for number, line in enumerate(lines):
        if line.startswith("*") and (found := _HEADING.fullmatch(line)):
            if entry is not None:
                yield _ended(entry, inside)
            entry, inside = _begun(found, number, wanted), False
        elif entry is None:
            continue
        elif inside:
            inside = line.strip().upper() != ":END:"
            entry.drawer = range(entry.drawer.start, number + 1)
            if inside and (found := _PROPERTY.fullmatch(line)):
                entry.properties[found[1].upper()] = (found[2] or "").strip()
        elif line.strip().upper() == ":PROPERTIES:" and not entry.drawer and _is_planning(entry.body):
            inside, entry.drawer = True, range(number, number + 1)
        else:
            entry.lines.append(line)
    if entry is not None:
        yield _ended(entry, inside)


def _ended(entry: Entry, inside: bool) -> Entry:
    # A drawer that nobody has closed is none to write into.
    if inside:
        entry.drawer = range(0)
    return entry


def _begun(found: re.Match[str], line: int, wanted: tuple[str, ...]) -> Entry | None:
    word = found["word"]
    if word not in wanted:
        return None
    title = _COOKIE.sub("", found["rest"], count=1).strip()
    tags = _TAGS.search(f" {title}")
    named = tuple(tags[1].strip(":").split(":")) if tags else ()
    if tags:
        title = title[: max(tags.start() - 1, 0)]
    if "ARCHIVE" in named:
        return None
    heading = f"{word} {found['rest'].strip()}"
    return Entry(word=word, title=title.strip(), tags=named, heading=heading, line=line)


def _is_planning(text: str) -> bool:
    """When a thing is due stands between a heading and its drawer."""
    return all(not line.strip() or _PLANNING.match(line) for line in text.split("\n"))


def is_of(entry: Entry, address: str) -> bool:
    """Nobody's, or of this agent, or of a replica of it."""
    mine = re.escape(address.casefold())
    return not entry.agent or re.fullmatch(rf"{mine}(?:-\d+)?", entry.agent.casefold()) is not None


def named(board: str) -> dict[str, Entry]:
    """Whosever they are, by what they are known as."""
    found: dict[str, Entry] = {}
    called: Counter[str] = Counter()
    for entry in entries(board):
        id = name = text.name(entry.name)[:LONGEST_ID] or "untitled"
        while id in found:
            called[name] += 1
            id = f"{name} ({called[name] + 1})"
        found[id] = entry
    return found


def observed(board: str, address: str) -> tuple[Observation, ...]:
    """What is pending on it for that agent."""
    return tuple(_observation(id, entry) for id, entry in named(board).items() if is_of(entry, address))


def _observation(id: str, entry: Entry) -> Observation:
    told = "\n".join((entry.heading, *(f"{key}={value}" for key, value in entry.properties.items()), entry.body))
    return Observation(
        external_id=id,
        fingerprint=sha256(text.whole(told).encode()).hexdigest()[:32],
        subject=text.name(f"{entry.word} {entry.title}")[:LONGEST_SUBJECT],
        body=text.whole(entry.body)[:LONGEST_BODY],
    )


def rewritten(board: str, entry: Entry, *, word: str, agent: str) -> str:
    """The board with that entry under another keyword, and claimed by that agent, or by nobody."""
    lines = board.split("\n")
    lines[entry.line] = re.sub(r"^(\*+[ \t]+)\S+", lambda found: found[1] + word, lines[entry.line])
    end = "\r" if lines[entry.line].endswith("\r") else ""
    claim = [f":AGENT: {agent}{end}"] if agent else []
    if not entry.drawer:
        if claim:
            at = _below_planning(lines, entry.line)
            lines[at:at] = [f":PROPERTIES:{end}", *claim, f":END:{end}"]
        return "\n".join(lines)
    first, last = entry.drawer.start, entry.drawer[-1]
    others = [line for line in lines[first + 1 : last] if not _is_claim(line)]
    drawer = [lines[first], *others, *claim, lines[last]] if others or claim else []
    lines[first : last + 1] = drawer
    return "\n".join(lines)


def _is_claim(line: str) -> bool:
    found = _PROPERTY.fullmatch(line.removesuffix("\r"))
    return found is not None and found[1].upper() == "AGENT"


def _below_planning(lines: list[str], heading: int) -> int:
    at = heading + 1
    while at < len(lines) and _PLANNING.match(lines[at]):
        at += 1
    return at
