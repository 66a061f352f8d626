"""An org file whose open entries are pending: an agent's BOARD.

Laws:
- An entry is a heading, of any depth, with a keyword that stands for open work: those before the bar in `#+TODO:`, or
  TODO, NEXT and DOING where the board does not say.
- What bears another agent's `:AGENT:` is that one's, and not seen. When that is taken away it is news again.
- An entry is known by its `:ID:` or `:CUSTOM_ID:`, else by its title; of two that are called the same the second one
  is numbered. It has changed when its heading, its properties or the text below them have, not when it moves.
- A board that is being written is shown as it was before, or not yet. One that cannot be read is unknown.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from wakeful.core.items import Observation
from wakeful.sources import text
from wakeful.sources.aside import Unreadable
from wakeful.sources.entries import LONGEST_BODY, LONGEST_ID, LONGEST_SUBJECT
from wakeful.sources.folder import READING, Look, Moving, Stamps, first, stamps_of
from wakeful.sources.settling import is_whole

NAME = "board"

# Bytes. Every look reads it whole.
LARGEST = 8 * 1024 * 1024

OPEN = frozenset({"TODO", "NEXT", "DOING"})
_WORDS = re.compile(r"#\+(?:(?:SEQ|TYP)_)?TODO:(.*)", re.IGNORECASE)
_HEADING = re.compile(r"\*+[ \t]+(?:(?P<word>\S+)(?:[ \t]+|$))?(?P<rest>.*)")
_COOKIE = re.compile(r"\[#[A-Z0-9]\][ \t]*")
_TAGS = re.compile(r"[ \t]+(:(?:[\w@#%]+:)+)[ \t]*$")
_PROPERTY = re.compile(r"[ \t]*:([^\s:]+):(?:[ \t]+(.*))?")


@dataclass(slots=True, kw_only=True)
class Entry:
    word: str
    title: str
    tags: tuple[str, ...]
    heading: str
    properties: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.properties.get("ID") or self.properties.get("CUSTOM_ID") or self.title

    @property
    def agent(self) -> str:
        return self.properties.get("AGENT", "")

    @property
    def body(self) -> str:
        return "\n".join(self.lines).strip("\n")


def entries(board: str) -> Iterator[Entry]:
    """Those of open work, in the order of the board."""
    lines = [line.removesuffix("\r") for line in board.split("\n")]
    wanted = _open_words(lines)
    entry: Entry | None = None
    drawer = False
    for line in lines:
        if line.startswith("*") and (found := _HEADING.fullmatch(line)):
            if entry is not None:
                yield entry
            entry, drawer = _begun(found, wanted), False
        elif entry is None:
            continue
        elif drawer:
            drawer = line.strip().upper() != ":END:"
            if drawer and (found := _PROPERTY.fullmatch(line)):
                entry.properties[found[1].upper()] = (found[2] or "").strip()
        elif line.strip().upper() == ":PROPERTIES:" and not entry.body:
            drawer = True
        else:
            entry.lines.append(line)
    if entry is not None:
        yield entry


def _open_words(lines: list[str]) -> frozenset[str]:
    """Without a bar the last word of a line is the one for what is done, as in org."""
    wanted: set[str] = set()
    said = False
    for found in filter(None, map(_WORDS.fullmatch, lines)):
        before, bar, _ = found[1].partition("|")
        words = [word.partition("(")[0] for word in before.split()]
        wanted.update(words if bar else words[:-1])
        said = said or bool(words)
    return frozenset(wanted) if said else OPEN


def _begun(found: re.Match[str], wanted: frozenset[str]) -> Entry | None:
    if found["word"] not in wanted:
        return None
    title = _COOKIE.sub("", found["rest"], count=1).strip()
    tags = _TAGS.search(f" {title}")
    named = tuple(tags[1].strip(":").split(":")) if tags else ()
    if tags:
        title = title[: tags.start() - 1] if tags.start() else ""
    if "ARCHIVE" in named:
        return None
    return Entry(
        word=found["word"], title=title.strip(), tags=named, heading=f"{found['word']} {found['rest'].strip()}"
    )


def is_of(entry: Entry, address: str) -> bool:
    """Nobody's, or of this agent, or of a replica of it."""
    mine = re.escape(address.casefold())
    return not entry.agent or re.fullmatch(rf"{mine}(?:-\d+)?", entry.agent.casefold()) is not None


def observed(board: str, address: str) -> tuple[Observation, ...]:
    """What is pending on it for that agent."""
    found: dict[str, Observation] = {}
    called: Counter[str] = Counter()
    for entry in entries(board):
        if not is_of(entry, address):
            continue
        id = name = text.name(entry.id)[:LONGEST_ID] or "untitled"
        while id in found:
            called[name] += 1
            id = f"{name} ({called[name] + 1})"
        told = "\n".join((entry.heading, *(f"{key}={value}" for key, value in entry.properties.items()), entry.body))
        found[id] = Observation(
            external_id=id,
            fingerprint=sha256(text.whole(told).encode()).hexdigest()[:32],
            subject=text.name(f"{entry.word} {entry.title}")[:LONGEST_SUBJECT],
            body=text.whole(entry.body)[:LONGEST_BODY],
        )
    return tuple(found.values())


class Reading:
    """One look at a board; `now` is the calendar and `elapsed` a clock that is never set, both in seconds."""

    def __init__(self, folder: Path, before: Look, *, now: float, elapsed: float, name: str, address: str) -> None:
        self._folder, self._name, self._address = folder, name, address
        self._before = before
        self._now, self._elapsed = now, elapsed
        self._aborted = threading.Event()
        self.progress = 0

    def abort(self) -> None:
        self._aborted.set()

    def do(self) -> Look:
        try:
            about = os.stat(self._folder)
            file = os.open(self._folder / self._name, READING)
            try:
                return self._read(file, about)
            finally:
                os.close(file)
        except OSError as error:
            raise Unreadable(self._why(error)) from None

    def _read(self, file: int, folder: os.stat_result) -> Look:
        about = os.fstat(file)
        stamps = stamps_of(about)
        if not stat.S_ISREG(about.st_mode):
            raise Unreadable(f"{self._shown()}: not a file")
        if stamps.size > LARGEST:
            raise Unreadable(f"{self._shown()}: larger than {LARGEST >> 20} MB; move what is done elsewhere")
        whole = is_whole(file, self._rest(stamps))
        content = first(file, LARGEST) if whole else b""
        if not whole or stamps_of(os.fstat(file)) != stamps:
            moving = Moving(stamps, self._since(stamps))
            return Look(
                observed=self._before.observed,
                moving={self._name: moving},
                device=folder.st_dev,
                inode=folder.st_ino,
            )
        found = observed(text.beginning(content, complete=True), self._address)
        return Look(observed=found, device=folder.st_dev, inode=folder.st_ino)

    def _since(self, stamps: Stamps) -> float:
        moving = self._before.moving.get(self._name)
        return moving.since if moving is not None and moving.stamps == stamps else self._elapsed

    def _rest(self, stamps: Stamps) -> float:
        """By the calendar, or, where its clock is wrong, by how long we have seen it so."""
        return max(self._now - stamps.ctime_ns / 1e9, self._elapsed - self._since(stamps))

    def _why(self, error: OSError) -> str:
        if (self._folder / self._name).is_symlink():
            return f"{self._shown()}: a link, which is not followed; name the file that it leads to"
        if isinstance(error, FileNotFoundError):
            return f"{self._shown()}: no such file"
        return f"{self._shown()}: {error.strerror or error}"

    def _shown(self) -> str:
        return text.name(str(self._folder / self._name))
