"""Hostile files are refused quickly, in little memory, and in words; random ones never raise."""

import resource
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.fleet import check_file, load_fleet
from wakeful.fleet.diagnostics import MOST_NOTES, Notes, Place, Severity
from wakeful.fleet.load import _load
from wakeful.fleet.org import parse_org
from wakeful.fleet.yaml import parse_yaml

MEGABYTE = 1_000_000
AGENTS = "agents:\n  wren:\n"

HOSTILE = {
    "python tags": AGENTS + "    run: !!python/object/apply:os.system ['true']\n",
    "alias bomb": "a: &a [x, x]\n" + "".join(f"a{i}: &a{i} [*a, *a]\n" for i in range(9)),
    "10,000 open lists": "agents: " + "[" * 10_000,
    "10,000 open mappings": "agents: " + "{a: " * 10_000,
    "10,000 indents": "".join(" " * level + "a:\n" for level in range(2_000)),
    "10,000 dashes": "- " * 10_000,
    "10,000 question marks": "? " * 10_000,
    "a list without end": "agents:\n  wren:\n    env: [" + "A, " * 500_000,
    "one long word": "agents: " + "x" * 200_000,
    "one open quote": "agents: '" + "x" * 200_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_yaml_is_refused_within_a_second(name, tmp_path):
    path = tmp_path / "fleet.yml"
    path.write_text(HOSTILE[name], encoding="utf-8")
    started = time.process_time()
    loaded = load_fleet(path)
    assert time.process_time() - started < 1
    assert loaded.fleet is None
    assert loaded.broken


def test_ten_megabytes_of_yaml_are_refused_unread(tmp_path):
    path = tmp_path / "fleet.yml"
    path.write_text("agents:\n" + "".join(f"  a{i}: {{}}\n" for i in range(900_000)), encoding="utf-8")
    assert path.stat().st_size > 10 * MEGABYTE
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    loaded = load_fleet(path)
    assert time.process_time() - started < 0.5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000
    assert "larger than 8 MB" in str(loaded.diagnostics[0])


def test_a_very_large_file_without_a_suffix_is_refused_as_yaml_too(tmp_path):
    path = tmp_path / "fleet"
    path.write_text("a: b\n" * 1_700_000, encoding="utf-8")
    assert [diagnostic.reason for diagnostic in load_fleet(path).diagnostics] == ["larger than 8 MB"]


def test_mistakes_without_number_are_told_up_to_a_bound(tmp_path):
    path = tmp_path / "fleet.org"
    drawer = "".join(f":NONSENSE-{number}: 1\n" for number in range(20_000))
    path.write_text(f"* wren\n:PROPERTIES:\n{drawer}:END:\n", encoding="utf-8")
    loaded = load_fleet(path)
    assert len(loaded.diagnostics) == MOST_NOTES + 1
    assert any("more than 1000 mistakes" in diagnostic.reason for diagnostic in loaded.diagnostics)


def test_replicas_cannot_multiply_a_small_file_into_a_large_fleet(tmp_path, monkeypatch):
    monkeypatch.setattr("wakeful.fleet.build.MOST_AGENTS", 2_500)
    path = tmp_path / "fleet.org"
    path.write_text("#+RUN: true\n#+REPLICAS: 1000\n* a\n* b\n* c\n* d\n", encoding="utf-8")
    loaded = load_fleet(path)
    assert loaded.fleet is None
    assert [diagnostic.reason for diagnostic in loaded.diagnostics] == ["the fleet would have 4000 agents"]


@pytest.mark.parametrize("line", ["*" * 200_000, ":" * 200_000, "* " + " :a" * 70_000, "#+" * 100_000, " " * 200_000])
def test_a_long_line_of_org_takes_no_longer_than_it_is_long(line, tmp_path):
    path = tmp_path / "fleet.org"
    path.write_text(f"* wren\n:PROPERTIES:\n{line}\n:END:\n{line}\n* {line}\n", encoding="utf-8")
    started = time.process_time()
    assert load_fleet(path).broken
    assert time.process_time() - started < 1


def test_ten_thousand_agents_load_in_a_tenth_of_the_time_that_a_hundred_thousand_may_take(tmp_path):
    (tmp_path / "def.org").write_text("You write.", encoding="utf-8")
    path = tmp_path / "fleet.org"
    drawer = ":PROPERTIES:\n:DEF: def.org\n:INTERVAL: 10m\n:QUIET-HOURS: 23:00-07:00\n:END:\n"
    path.write_text("#+RUN: true\n" + "".join(f"* a{n}\n{drawer}" for n in range(10_000)), encoding="utf-8")
    started = time.process_time()
    loaded = load_fleet(path)
    assert time.process_time() - started < 2
    assert len(loaded.fleet.agents) == 10_000


def test_a_file_cannot_write_to_the_terminal_of_the_person_who_checks_it(desk, said):
    loaded = desk.org("#+RUN: true\n* wren\n:PROPERTIES:\n:INTERVAL: \x07\x9b31m\u202e10m\n:END:\n")
    assert all(character.isprintable() for line in said(loaded) for character in line)


def test_a_reason_and_a_files_name_are_escaped_and_short_whoever_wrote_them():
    notes = Notes("a\x1b[2J\udcff.org")
    notes.error(Place(), "red \x1b[31m" + "x" * 1_000, "mend\n\u202eit")
    (line,) = map(str, notes.all())
    assert line.isprintable()
    assert line.startswith("a\\x1b[2J\\udcff.org:1:1: red \\x1b[31mxxx")
    assert line.endswith("x… (mend\\n\\u202eit)")
    assert len(line) < 500


# ---- random files

PIECES = st.sampled_from(
    [
        *("* ", "** ", "\n", ":PROPERTIES:\n", ":END:\n", ":", "#+", "#", " ", "\t", "\r\n", "wren", "moss-1"),
        *(":INTERVAL: ", ":NEXT: ", ":REPLICAS: 2\n", "#+START: ", "#+RUN: true\n", ":WHEN: ", ":ON: ", ":AT: "),
        *("10m", "99999999999999999999d", "23:00-07:00", "0 9 * * *", "webhook://x?secret=", "http://[::1", "%"),
        *("agents:\n", "  wren:\n", "    interval: ", "- ", "[", "{", "]", "}", "&a ", "*a", "!!python/x ", "? "),
        *("'", '"', "|\n", ">\n", "---\n", "...\n", "<<: ", "%YAML 1.1\n", "pulse_blackouts:\n", "  - type: ", "\\"),
        *(
            "coordination:\n",
            "  wake_guardrails:\n",
            "    cooldown_seconds: ",
            "1380",
            "-1",
            "~",
            "é",
            "\u2028",
            "\x85",
        ),
    ]
)
FILES = st.one_of(
    st.lists(PIECES, max_size=40).map(lambda pieces: "".join(pieces).encode()),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=200),
)


@settings(max_examples=400)
@given(data=FILES, suffix=st.sampled_from([".org", ".yml", ""]), lifecycle=st.booleans())
def test_no_file_however_random_raises(tmp_path_factory, data, suffix, lifecycle):
    path = tmp_path_factory.getbasetemp() / f"random{suffix}"
    path.write_bytes(data)
    loaded = _load(str(path), None, datetime.now(UTC), lifecycle_allowed=lifecycle)
    assert (loaded.fleet is None) == (loaded.broken or loaded.kind == "lifecycle")
    for diagnostic in loaded.diagnostics:
        assert diagnostic.line >= 1
        assert diagnostic.column >= 1
        assert diagnostic.reason
        assert diagnostic.remedy
        assert str(diagnostic).isprintable()


@settings(max_examples=300)
@given(text=st.text(max_size=300))
def test_no_parser_raises_on_any_text(text):
    parse_org(text, Notes("a.org"), lambda name: True)
    parse_yaml(text, Notes("a.yml"))


@settings(max_examples=300)
@given(
    key=st.sampled_from(
        ["INTERVAL", "SCHEDULE", "QUIET-HOURS", "ON", "AT", "BURST", "RESERVE", "BUDGET-USD", "TIMEZONE"]
    ),
    value=st.one_of(
        st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=60),
        st.from_regex(r"[0-9:/ ,;TZ*.+-]{1,30}", fullmatch=True),
    ),
)
def test_no_value_however_random_raises(tmp_path_factory, key, value):
    path = tmp_path_factory.getbasetemp() / "value.org"
    path.write_text(f"#+RUN: true\n* wren\n:PROPERTIES:\n:{key}: {value}\n:END:\n", encoding="utf-8")
    loaded = check_file(path)
    errors = [diagnostic for diagnostic in loaded.diagnostics if diagnostic.severity is Severity.error]
    assert (loaded.fleet is None) == bool(errors)
    assert all(diagnostic.line == 4 for diagnostic in errors)
