"""YAML into a tree of values with their places, from the parser's events alone.

Laws:
- Nothing is constructed: no tag resolved, no alias followed, no object made. Anchors, aliases and tags are
  refused.
- Nesting and lists are bounded while they are read, so a small file cannot become a large one.
- Scalars stay text (YAML 1.2 in spirit: `23:00` and `on` are words); the reader of each key decides what they
  mean.
"""

from __future__ import annotations

import re
from typing import Any

from wakeful.core.wording import quoted
from wakeful.fleet.diagnostics import Notes, Place
from wakeful.fleet.tree import Mapping, Raw, Scalar, Sequence

DEEPEST = 16
LONGEST_LIST = 1_000
# The parser itself is slow on a row of brackets, long before it says that they are nested.
BRACKETS = re.compile(r"(?:[\[{][ \t\r\n]*){33}")

# What the parser says, and what a person can do about it.
ADVICE = (
    ("'\\t' that cannot start", "a tab stands where YAML wants spaces", "indent with spaces"),
    (
        "mapping values are not allowed",
        "a second ': ' on one line, or a wrong indent",
        "quote the value, or indent",
    ),
    ("could not find expected ':'", "this line has no ': ' after its key", "write key: value"),
    ("unexpected end of stream", "a quote is opened and never closed", "close the quote"),
    ("expected ',' or ']'", "a list is opened with [ and never closed", "close it with ]"),
    ("expected ',' or '}'", "a mapping is opened with { and never closed", "close it with }"),
    (
        "expected <block end>",
        "this line is indented unlike its neighbours",
        "align it with the key it belongs to",
    ),
    ("that cannot start any token", "this character cannot begin a value", "quote the value"),
    ("unknown escape character", "an unknown escape in double quotes", "use single quotes"),
    ("undefined alias", "an alias without its anchor", "write the value out"),
)

TOO_DEEP = (f"nested more than {DEEPEST} levels deep", "a fleet needs five levels at most")


class _Refused(Exception):
    """The rest of the file is not worth reading."""


def parse_yaml(text: str, notes: Notes) -> Mapping | None:
    """The document's mapping, or None when there is none; what is wrong is in the notes."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError

    if row := BRACKETS.search(text):
        line = text.count("\n", 0, row.start()) + 1
        column = row.start() - (text.rfind("\n", 0, row.start()) + 1) + 1
        notes.error(Place(line, column), *TOO_DEEP)
        return None
    builder = _Builder(notes)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            builder.take(event)
    except _Refused:
        return None
    except MarkedYAMLError as error:
        _tell(error, notes)
        return None
    # A parser of hostile text may fail in ways nobody named; the person still gets a line to read.
    except Exception as error:
        notes.error(builder.place, f"not readable as YAML: {quoted(str(error))}", "mend the file near this line")
        return None
    return _whole(builder, notes)


def _whole(builder: _Builder, notes: Notes) -> Mapping | None:
    root = builder.root
    if notes.errors:
        return None
    if isinstance(root, Mapping):
        return root
    if root is None or (isinstance(root, Scalar) and root.empty):
        notes.error(Place(), "the file is empty", "declare at least one agent below agents:")
    else:
        found = "a list" if isinstance(root, Sequence) else "a word"
        notes.error(root, f"expected a mapping of keys, found {found}", "begin with a key such as agents:")
    return None


def _tell(error: Any, notes: Notes) -> None:
    problem = str(error.problem or error.context or "")
    mark = error.problem_mark or error.context_mark
    if error.context_mark is not None and ("end of stream" in problem or "expected ','" in problem):
        mark = error.context_mark
    place = Place(mark.line + 1, mark.column + 1) if mark else Place()
    for fragment, reason, remedy in ADVICE:
        if fragment in problem:
            notes.error(place, reason, remedy)
            return
    notes.error(place, f"not YAML: {problem}", "mend this line")


class _Frame:
    """A list or mapping that is still open; a mapping's items are its keys and values in turn."""

    def __init__(self, kind: str, place: Place) -> None:
        self.kind = kind
        self.place = place
        self.items: list[Raw] = []


class _Builder:
    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.root: Raw | None = None
        self.place = Place()
        self.documents = 0
        self.open: list[_Frame] = []
        self.aliases: set[str] = set()

    def take(self, event: Any) -> None:
        self.place = Place(event.start_mark.line + 1, event.start_mark.column + 1)
        match type(event).__name__:
            case "DocumentStartEvent":
                self.documents += 1
                if self.documents > 1:
                    self.refuse("a second document begins here", "keep one document to a file")
            case "AliasEvent":
                # Once for each name: a bomb has thousands.
                if event.anchor not in self.aliases:
                    self.aliases.add(event.anchor)
                    self.notes.error(self.place, f"the alias *{event.anchor} is refused", "write the value out")
                self.put(Scalar("", self.place.line, self.place.column))
            case "ScalarEvent":
                self.refuse_extras(event)
                self.put(Scalar(event.value, self.place.line, self.place.column, plain=not event.style))
            case "SequenceStartEvent" | "MappingStartEvent" as name:
                self.refuse_extras(event)
                self.begin("list" if name.startswith("Seq") else "mapping")
            case "SequenceEndEvent" | "MappingEndEvent":
                self.end()

    def refuse(self, reason: str, remedy: str) -> None:
        self.notes.error(self.place, reason, remedy)
        raise _Refused

    def refuse_extras(self, event: Any) -> None:
        if event.anchor:
            self.notes.error(
                self.place, f"the anchor &{event.anchor} is refused", "write the value out where it is used"
            )
        if event.tag:
            self.notes.error(self.place, f"the tag {quoted(str(event.tag))} is refused", "write the plain value")

    def begin(self, kind: str) -> None:
        if len(self.open) >= DEEPEST:
            self.refuse(*TOO_DEEP)
        self.open.append(_Frame(kind, self.place))

    def end(self) -> None:
        frame = self.open.pop()
        line, column = frame.place.line, frame.place.column
        if frame.kind == "list":
            self.put(Sequence(tuple(frame.items), line, column))
            return
        pairs = []
        for key, value in zip(frame.items[::2], frame.items[1::2], strict=True):
            if isinstance(key, Scalar):
                pairs.append((key, value))
            else:
                self.notes.error(key, "a key must be one word, found a list or a mapping", "write key: value")
        self.put(Mapping(tuple(pairs), line, column))

    def put(self, value: Raw) -> None:
        if not self.open:
            self.root = value
            return
        frame = self.open[-1]
        frame.items.append(value)
        if frame.kind == "list" and len(frame.items) > LONGEST_LIST:
            self.refuse(f"a list of more than {LONGEST_LIST} entries", "shorten it")
