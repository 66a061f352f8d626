"""The reference of keys is true: each example loads, in both spellings, to the same fleet."""

import re
from pathlib import Path

import pytest

from wakeful.fleet import check_file
from wakeful.fleet.keys import KEYS, STATE_KEYS, TASK_KEYS

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "fleet.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### ([A-Z-]+)\n(.*?)(?=^##)", TEXT, re.MULTILINE | re.DOTALL))
EXAMPLE = re.compile(r"^`(?P<org>[:#]\S.*?)` · `(?P<yml>[a-z_]+: .*)`$", re.MULTILINE)


@pytest.fixture
def desk(desk):
    desk.write("defs/writer.org", "You write.")
    desk.write("defs/editor.org", "You edit.")
    desk.write("lifecycle.org", "#+START: a\n* a\n")
    return desk


def test_every_key_has_its_section_and_every_section_its_key():
    assert set(SECTIONS) == {key.name for key in KEYS}


@pytest.mark.parametrize("name", SECTIONS)
def test_a_key_is_explained_with_its_default_and_an_example_that_loads_in_both_spellings(desk, name):
    section = SECTIONS[name]
    assert re.search(r"^Default: \S", section, re.MULTILINE)
    found = EXAMPLE.search(section)
    assert found, section
    if found["org"].startswith("#+"):
        org = desk.org(f"{found['org']}\n* wren\n")
        yml = desk.yml(f"{found['yml']}\nagents:\n  wren:\n")
    else:
        org = desk.org(f"* wren\n:PROPERTIES:\n{found['org']}\n:END:\n")
        yml = desk.yml(f"agents:\n  wren:\n    {found['yml']}\n")
    assert org.fleet is not None, org.diagnostics
    assert org.fleet == yml.fleet, yml.diagnostics
    assert found["org"].lstrip(":#+").startswith(f"{name}: ")


def test_the_fleets_at_its_head_are_one_fleet_in_two_spellings(desk, said):
    org, yml = (re.search(rf"^```{kind}\n(.*?)^```", TEXT, re.M | re.S)[1] for kind in ("org", "yaml"))
    assert desk.org(org).fleet == desk.yml(yml).fleet
    assert said(desk.org(org)) == []


def test_its_lifecycle_loads_and_every_key_of_a_state_is_in_its_table(desk, said):
    lifecycle = re.findall(r"^```org\n(.*?)^```", TEXT, re.M | re.S)[1]
    assert said(check_file(desk.write("day.org", lifecycle))) == []
    assert all(f"| `:{key}:` |" in TEXT for key in STATE_KEYS)


def test_its_recurring_task_is_one_in_both_spellings_and_every_key_of_one_is_in_its_table(desk, said):
    text = TEXT.partition("## Recurring tasks")[2].partition("\n## ")[0]
    org, yml = (re.search(rf"^```{kind}\n(.*?)^```", text, re.M | re.S)[1] for kind in ("org", "yaml"))
    assert desk.org(org).fleet == desk.yml(yml).fleet
    assert said(desk.org(org)) == []
    assert [one.name for one in desk.org(org).fleet.recurrences] == ["weekly-report"]
    named = re.findall(r"`:([A-Z-]+):`", "".join(line for line in text.splitlines() if line.startswith("| `:")))
    assert sorted(named) == sorted(key.name for key in TASK_KEYS)
