"""The small org grammar of fleets and lifecycles, read line by line with every place kept.

    #+KEY: value            a keyword of the whole file
    * name                  an agent, a recurring task or a state; deeper headings are notes
    :PROPERTIES:            its drawer: one `:KEY: value` on a line
    :END:
    # comment               ignored, like all prose but that below a recurring task, which describes it

Laws: one pass, linear in the length of the file; nothing that looks like a declaration is dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from wakeful.core.wording import nearest, quoted
from wakeful.fleet.diagnostics import Notes
from wakeful.fleet.keys import MARK, TASK_BY_NAME
from wakeful.fleet.tree import Pair, Scalar, canonical, printed_key

HEADING = re.compile(r"(\*+)(?:[ \t]+(.*))?")
KEYWORD = re.compile(r"[ \t]*#\+([^\s:]+):[ \t]*(.*)")
BARE_KEYWORD = re.compile(r"[ \t]*#\+([^\s:]+)(?:\s.*)?")
PROPERTY = re.compile(r"[ \t]*:([^\s:]+):(?:[ \t]+(.*))?")
GLUED_HEADING = re.compile(r"\*([a-z0-9][a-z0-9_-]{0,62})")
COMMENT = re.compile(r"[ \t]*#(?:[ \t]|$)")
FOREIGN_DRAWERS = frozenset({"LOGBOOK", "CLOCK", "NOTES", "RESULTS"})


@dataclass(slots=True)
class Section:
    """One heading with the properties of its drawer; of a recurring task also the lines below that."""

    title: Scalar
    pairs: list[Pair] = field(default_factory=list)
    drawers: int = 0
    recurs: bool = False
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")


@dataclass(slots=True)
class Outline:
    keywords: list[Pair] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)


def parse_org(text: str, notes: Notes, known: Callable[[str], bool]) -> Outline:
    """`known` tells whether a canonical key means something here; prose such as `:smile:` stays prose."""
    parser = _Parser(notes, known)
    for number, line in enumerate(text.split("\n"), 1):
        parser.read(number, line.rstrip())
    parser.close_drawer(ended=False)
    return parser.outline


class _Parser:
    def __init__(self, notes: Notes, known: Callable[[str], bool]) -> None:
        self.outline = Outline()
        self.notes = notes
        self.known = known
        self.section: Section | None = None
        # A heading with two stars or more: its drawer belongs to nobody.
        self.deep = False
        self.drawer: Scalar | None = None
        self.strays: list[Scalar] = []

    def read(self, number: int, line: str) -> None:
        if self.section is not None and self.section.recurs and self.drawer is None:
            self.describe(line)
        if not line:
            return
        if line[0] == "*" and (found := HEADING.fullmatch(line)):
            self.close_drawer(ended=False)
            self.heading(number, line, found)
        elif self.drawer is not None:
            self.inside(number, line)
        else:
            self.outside(number, line)

    def describe(self, line: str) -> None:
        """Everything below the drawer of a recurring task, but for comments; a heading of one star ends it."""
        assert self.section is not None
        if not COMMENT.match(line) and not line.startswith(("* ", "*\t")) and line != "*":
            self.section.lines.append(line)

    def means(self, name: str) -> bool:
        """Whether a key means something where we are."""
        recurs = self.section is not None and self.section.recurs
        return self.known(name) or (recurs and name in TASK_BY_NAME)

    def heading(self, number: int, line: str, found: re.Match[str]) -> None:
        self.deep = len(found[1]) > 1
        if self.deep:
            return
        column = (found.start(2) if found[2] else len(line)) + 1
        self.section = Section(Scalar(found[2] or "", number, column))
        self.outline.sections.append(self.section)

    def outside(self, number: int, line: str) -> None:
        mark = line.lstrip()[0]
        if mark == "#":
            self.keyword(number, line)
        elif mark == ":" and (found := PROPERTY.fullmatch(line)):
            self.colon_line(number, found)
        elif mark == "*" and (found := GLUED_HEADING.fullmatch(line)):
            place = Scalar(line, number, 1)
            self.notes.error(place, f"a heading needs a space after its star: {quoted(line)}", f"write * {found[1]}")

    def keyword(self, number: int, line: str) -> None:
        if found := KEYWORD.fullmatch(line):
            key = Scalar(found[1], number, found.start(1) + 1)
            if self.section is not None and self.known(canonical(key.text)):
                self.notes.error(key, f"#+{printed_key(key)} stands below a heading", "move it above the first heading")
            elif self.section is None:
                self.outline.keywords.append((key, Scalar(found[2], number, found.start(2) + 1)))
        elif (bare := BARE_KEYWORD.fullmatch(line)) and self.known(canonical(bare[1])):
            place = Scalar(line, number, bare.start(1) + 1)
            self.notes.error(place, f"#+{bare[1]} has no colon", f"write #+{bare[1]}: value")

    def colon_line(self, number: int, found: re.Match[str]) -> None:
        key = Scalar(found[1], number, found.start(1) + 1)
        name = canonical(key.text)
        alone = not found[2]
        if alone and name == "PROPERTIES":
            self.open_drawer(key)
        elif alone and name == "END":
            self.notes.error(key, ":END: closes no drawer", "write :PROPERTIES: where the drawer begins")
        elif alone and name in FOREIGN_DRAWERS:
            self.drawer = key
        elif alone and not self.known(name) and nearest(name, ["PROPERTIES"]) and len(name) > 6:
            self.notes.error(key, f"unknown drawer {quoted(found[0].strip())}", "write :PROPERTIES:")
            self.open_drawer(Scalar("PROPERTIES", key.line, key.column))
        elif self.means(name):
            advice = "move it between :PROPERTIES: and :END:" if self.section else f"write #+{name}: value"
            self.notes.error(key, f"{printed_key(key)} stands outside a drawer", advice)

    def open_drawer(self, key: Scalar) -> None:
        self.drawer = key
        if self.deep:
            return
        if self.section is None:
            self.notes.error(
                key,
                "this drawer stands before the first heading",
                "write #+KEY: value for what holds for the fleet",
            )
            return
        self.section.drawers += 1
        if self.section.drawers > 1:
            self.notes.error(
                key, f"{quoted(self.section.title.text)} has a second drawer", "put all properties into one"
            )

    def inside(self, number: int, line: str) -> None:
        assert self.drawer is not None
        found = PROPERTY.fullmatch(line)
        alone = canonical(found[1]) if found and not found[2] else ""
        if alone == "END":
            self.close_drawer(ended=True)
        elif canonical(self.drawer.text) != "PROPERTIES":
            return
        elif found and alone == "PROPERTIES":
            self.close_drawer(ended=False)
            self.colon_line(number, found)
        elif found:
            self.property(number, found)
        elif line.lstrip()[0] != "#":
            self.strays.append(Scalar(line.strip(), number, len(line) - len(line.lstrip()) + 1))

    def property(self, number: int, found: re.Match[str]) -> None:
        key = Scalar(found[1], number, found.start(1) + 1)
        value = Scalar(found[2] or "", number, (found.start(2) if found[2] else found.end(1) + 1) + 1)
        if self.deep:
            if self.known(canonical(key.text)):
                self.notes.error(
                    key,
                    f"{printed_key(key)} stands below a heading with two stars or more",
                    "use one star: * name",
                )
        elif self.section is not None:
            self.section.pairs.append((key, value))
            self.section.recurs |= canonical(key.text) == MARK

    def close_drawer(self, *, ended: bool) -> None:
        if self.drawer is not None and not ended:
            name = canonical(self.drawer.text)
            self.notes.error(self.drawer, f"the drawer :{name}: is never closed", "write :END: after its last line")
        elif self.drawer is not None:
            for stray in self.strays:
                self.notes.error(
                    stray,
                    f"expected :KEY: value in the drawer, found {quoted(stray.text)}",
                    "write :KEY: value",
                )
        self.drawer, self.strays = None, []
