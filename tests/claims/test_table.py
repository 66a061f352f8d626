"""The table from each claim of the source documents to its test.

Laws:
- One file per document, and one for the holes in their designs. Each entry names a test, or the capability
  that is to bring one; never both. `also` are further tests that show it.
- A test that is named exists, and a test of a claim is named.
- OPEN holds how many claims wait for their capability. It only shrinks, and only knowingly.
"""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.source_tree import ROOT

HERE = Path(__file__).resolve().parent
DOCUMENTS = ("000", "001", "002", "003", "004")
FILES = (*DOCUMENTS, "holes")
CAPABILITIES = {
    *("runs", "engine", "postgres", "inbox", "tasks", "proof", "http", "dashboard", "brokers"),
}
HOLES = {"A": 24, "B": 32, "C": 16, "D": 28, "E": 28, "F": 10}
KEYS = {"id", "claim", "where", "test", "also", "open", "differs"}
LONGEST_CLAIM = 20

Entry = dict[str, Any]


def entries(name: str) -> list[Entry]:
    read: list[Entry] = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))["claim"]
    return read


def every_entry() -> list[Entry]:
    return [entry for name in FILES for entry in entries(name)]


def named_in(entry: Entry) -> list[str]:
    return [*([entry["test"]] if "test" in entry else []), *entry.get("also", [])]


def malformed(entry: Entry) -> str | None:
    """What is wrong with one entry by itself."""
    if unknown := entry.keys() - KEYS:
        return f"{entry.get('id')}: unknown key {sorted(unknown)[0]!r}"
    if not {"id", "claim"} <= entry.keys() or not all(entry.values()):
        return f"{entry.get('id')}: an entry has an id and a claim, and no key is empty"
    if "also" in entry and "test" not in entry:
        return f"{entry['id']}: `also` stands beside a test"
    if ("test" in entry) == ("open" in entry):
        return f"{entry['id']}: name a test, or the capability that is to bring it, not both"
    if entry.get("open", "runs") not in CAPABILITIES:
        known = ", ".join(sorted(CAPABILITIES))
        return f"{entry['id']}: {entry['open']!r} is no capability; known are {known}"
    if len(entry["claim"].split()) > LONGEST_CLAIM:
        return f"{entry['id']}: a claim is told in at most {LONGEST_CLAIM} words"
    return None


@cache
def nodes_in(path: Path) -> frozenset[str]:
    """The node names of a test module: functions, and methods as Class::method."""
    if not path.is_file():
        return frozenset()
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
            found.update(f"{node.name}::{method.name}" for method in methods)
    return frozenset(name for name in found if name.split("::")[-1].startswith("test_"))


def exists(test: str) -> bool:
    path, _, node = test.partition("::")
    return node in nodes_in(ROOT / path)


def verdict_on_open(count: int, allowed: int) -> str | None:
    if count > allowed:
        return f"{count} claims are open and OPEN allows {allowed}: bring a test, the list only shrinks"
    if count < allowed:
        return f"{count} claims are open, fewer than OPEN says: lower it from {allowed} to {count}"
    return None


@pytest.mark.parametrize("name", FILES)
def test_every_entry_names_a_test_or_the_capability_that_will_bring_it(name):
    assert [wrong for entry in entries(name) if (wrong := malformed(entry))] == []


@pytest.mark.parametrize("name", FILES)
def test_every_named_test_exists(name):
    assert [test for entry in entries(name) for test in named_in(entry) if not exists(test)] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_claims_of_a_document_are_numbered_in_order_and_say_where_they_stand(name):
    found = entries(name)
    assert [entry["id"] for entry in found] == [f"{name}-{n:02d}" for n in range(1, len(found) + 1)]
    assert all("where" in entry for entry in found)


def test_every_hole_is_in_the_table_once_and_in_order():
    expected = [f"{letter}{n}" for letter, count in HOLES.items() for n in range(1, count + 1)]
    assert [entry["id"] for entry in entries("holes")] == expected


def test_the_list_of_open_claims_only_shrinks():
    count = sum("open" in entry for entry in every_entry())
    complaint = verdict_on_open(count, int((HERE / "OPEN").read_text(encoding="utf-8")))
    assert complaint is None, complaint


def test_every_test_of_a_claim_is_in_the_table():
    named = {test for entry in every_entry() for test in named_in(entry)}
    modules = [path for path in sorted(HERE.glob("test_*.py")) if path.name != Path(__file__).name]
    here = {f"{path.relative_to(ROOT).as_posix()}::{node}" for path in modules for node in nodes_in(path)}
    assert sorted(here - named) == []


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ({"id": "1", "claim": "x", "test": "t", "open": "runs"}, "not both"),
        ({"id": "1", "claim": "x"}, "not both"),
        ({"id": "1", "claim": "x", "open": "runs", "also": ["t"]}, "stands beside a test"),
        ({"id": "1", "claim": "x", "open": "soon"}, "is no capability"),
        ({"id": "1", "claim": "x", "open": "runs", "text": "y"}, "unknown key 'text'"),
        ({"id": "1", "claim": "", "open": "runs"}, "no key is empty"),
        ({"id": "1", "claim": "word " * 21, "open": "runs"}, "at most 20 words"),
    ],
)
def test_a_malformed_entry_is_named(entry, complaint):
    assert re.search(re.escape(complaint), malformed(entry) or "")


def test_a_test_that_does_not_exist_is_noticed():
    assert exists("tests/claims/test_table.py::test_a_test_that_does_not_exist_is_noticed")
    assert not exists("tests/claims/test_table.py::test_nobody_wrote")
    assert not exists("tests/claims/test_nowhere.py::test_nobody_wrote")


def test_a_claim_too_many_and_a_number_too_high_are_told_apart():
    assert "only shrinks" in (verdict_on_open(3, 2) or "")
    assert "lower it from 3 to 2" in (verdict_on_open(2, 3) or "")
    assert verdict_on_open(2, 2) is None
