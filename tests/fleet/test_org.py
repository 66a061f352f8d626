"""The org grammar: what is read, what is left alone, and where each value stands."""

import pytest

from wakeful.fleet import load_fleet
from wakeful.fleet.diagnostics import Notes
from wakeful.fleet.keys import is_key
from wakeful.fleet.org import parse_org
from wakeful.fleet.tree import Mapping, Scalar, Sequence
from wakeful.fleet.yaml import parse_yaml


def outline(text):
    notes = Notes("a.org")
    return parse_org(text, notes, is_key), notes


def test_every_value_keeps_its_line_and_column():
    found, notes = outline("#+TITLE: desk\n\n* wren\n  :PROPERTIES:\n  :INTERVAL:   10m\n  :END:\n")
    (keyword,) = found.keywords
    (section,) = found.sections
    ((key, value),) = section.pairs
    assert [(part.text, part.line, part.column) for part in (*keyword, section.title, key, value)] == [
        ("TITLE", 1, 3),
        ("desk", 1, 10),
        ("wren", 3, 3),
        ("INTERVAL", 5, 4),
        ("10m", 5, 16),
    ]
    assert notes.errors == 0


def places(value):
    """Every scalar below a value of YAML, in order."""
    match value:
        case Scalar():
            yield value.text, value.line, value.column
        case Sequence():
            yield from (place for item in value.items for place in places(item))
        case Mapping():
            yield from (place for pair in value.pairs for item in pair for place in places(item))


def test_every_value_of_yaml_keeps_its_line_and_column():
    root = parse_yaml("title: desk\nagents:\n  wren:\n    env: [A, 'B']\n", Notes("a.yml"))
    assert list(places(root)) == [
        ("title", 1, 1),
        ("desk", 1, 8),
        ("agents", 2, 1),
        ("wren", 3, 3),
        ("env", 4, 5),
        ("A", 4, 11),
        ("B", 4, 14),
    ]


@pytest.mark.parametrize(
    "prose",
    [
        "Writes the night edition.",
        "# a comment with :INTERVAL: 5m in it",
        "a list:\n - * one\n + two",
        "*bold* and /italic/ and :smile: and a: colon",
        ":smile:",
        "#+begin_src sh\necho hello\n#+end_src",
        ":LOGBOOK:\n- State from [2026-01-01]\n:INTERVAL: 99\n:END:",
        "** notes\nprose below notes\n*** deeper",
        "SCHEDULED: <2026-01-01 Thu>",
    ],
)
def test_prose_comments_and_notes_below_a_heading_are_left_alone(desk, said, prose):
    loaded = desk.org(f"#+RUN: true\n* wren\n:PROPERTIES:\n:INTERVAL: 10m\n:END:\n{prose}\n")
    assert said(loaded) == []
    assert len(loaded.fleet.agents) == 1


def test_keywords_of_org_itself_are_left_alone(desk, said):
    loaded = desk.org("#+RUN: true\n#+STARTUP: overview\n#+AUTHOR: the desk\n#+FILETAGS: :night:\n* wren\n")
    assert said(loaded) == []


def test_keys_are_read_without_case_and_dashes_are_underscores(desk):
    loaded = desk.org("#+run: true\n* wren\n:properties:\n:max_wakes-Per_day: 3\n:end:\n")
    assert loaded.fleet.agents[0].limits.wakes_per_day == 3


def test_windows_line_ends_and_a_byte_order_mark_are_read(desk):
    path = desk.write("fleet.org", "")
    path.write_bytes(b"\xef\xbb\xbf#+RUN: true\r\n* wren\r\n:PROPERTIES:\r\n:INTERVAL: 10\r\n:END:\r\n")
    (diagnostic,) = load_fleet(path).diagnostics
    assert (diagnostic.line, diagnostic.column) == (4, 12)


def test_columns_count_characters_not_bytes(desk, said):
    loaded = desk.org("#+RUN: true\n#+TITLE: Grüße\n* wren\n:PROPERTIES:\n:QUIET-HOURS: 23:00-07:00; «spät»\n:END:\n")
    assert said(loaded)[0].startswith("5:28: ")


def test_a_lifecycle_is_not_taken_for_a_fleet(desk, said):
    loaded = desk.org("#+START: a\n* a\n")
    assert said(loaded) == ["1:1: this is a lifecycle, not a fleet (name it as LIFECYCLE of an agent in a fleet file)"]
