"""The documents keep up with the code: every guard, key, command and word is there, and every link ends."""

import importlib
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.conftest import suite_of, suites
from wakeful.core.runs import Outcome
from wakeful.core.wakes import Cause, Subject, VerdictKind

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

NOUNS = ("agent", "standing", "item", "wake", "run", "step", "pause", "node", "event")
SECTIONS = ["Context", "Choice", "Why", "What would change our mind"]


def headings(text: str, level: str = "#{1,6}") -> list[str]:
    """Headings without their marks and backticks; what stands in code blocks is no heading."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [found.replace("`", "").strip() for found in re.findall(rf"^{level} (.+)$", prose, re.MULTILINE)]


def read(*parts: str) -> str:
    return DOCS.joinpath(*parts).read_text(encoding="utf-8")


def test_headings_are_read_without_their_marks_and_not_out_of_code():
    text = "# One\n### `two`\n```\n# not one\n```\n"
    assert headings(text) == ["One", "two"]
    assert headings(text, "###") == ["two"]


# ---- references


def test_every_guard_has_its_heading_in_the_order_of_the_table():
    guards = importlib.import_module("wakeful.core.guards").GUARDS
    names = [guard.name for guard in guards]
    assert names
    assert [found for found in headings(read("concepts", "guards.md"), "###") if found in names] == names


def test_every_fleet_and_agent_key_has_its_heading():
    keys = importlib.import_module("wakeful.fleet.keys").KEYS
    names = {key.name for key in keys}
    assert names
    assert names - set(headings(read("reference", "fleet.md"))) == set()


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[str]:
    """Every command by its full name; a group's own name counts only through its commands."""
    found: list[str] = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found += commands(command, (*path, name))
        elif command is not None and not command.hidden:
            found.append(" ".join((*path, name)))
    return found


def test_every_command_has_its_heading_and_every_heading_its_command():
    known = {f"wakeful {name}" for name in commands(importlib.import_module("wakeful.cli").main)}
    described = {found for found in headings(read("reference", "cli.md")) if found.startswith("wakeful ")}
    assert known
    assert described == known


def test_commands_of_nested_groups_are_found():
    @click.group()
    def main() -> None: ...

    @main.group()
    def task() -> None: ...

    task.command("add")(lambda: None)
    main.command("check")(lambda: None)
    assert commands(main) == ["check", "task add"]


# ---- words


def defined(text: str) -> set[str]:
    return set(re.findall(r"^- \*\*([^*]+)\*\*: \S", text, re.MULTILINE))


@pytest.mark.parametrize("words", [NOUNS, VerdictKind, Outcome, Cause, Subject])
def test_every_word_of_the_vocabulary_is_in_the_glossary(words):
    assert {str(word) for word in words} - defined(read("glossary.md")) == set()


def test_the_closed_vocabularies_are_those_of_the_concepts():
    assert [*VerdictKind] == ["admit", "defer", "refuse"]
    assert [*Outcome] == ["done", "no_work", "failed", "killed"]
    assert sorted(Cause) == ["news", "operator", "peer", "task", "timer"]
    assert sorted(Subject) == ["beat", "inbox", "task"]


def test_every_guard_is_in_the_glossary():
    guards = importlib.import_module("wakeful.core.guards").GUARDS
    assert {guard.name for guard in guards} - defined(read("glossary.md")) == set()


# ---- promises, decisions, suites


def test_the_readme_prints_every_promise():
    promised = re.findall(r"^\| P(\d+) ", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number in promised] == list(range(1, 17))


def test_the_fleet_in_the_readme_has_twelve_lines_and_passes_the_check(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (fleet,) = re.findall(r"^```org\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(fleet.splitlines()) == 12
    (tmp_path / "fleet.org").write_text(fleet, encoding="utf-8")
    day = "* write\n:PROPERTIES:\n:NEXT: write\n:END:\n"
    (tmp_path / "lifecycle.org").write_text(day, encoding="utf-8")
    main = importlib.import_module("wakeful.cli").main
    checked = CliRunner().invoke(main, ["check", str(tmp_path / "fleet.org")])
    assert checked.exit_code == 0, checked.output


def decisions_wanting(files: dict[str, str]) -> list[str]:
    complaints = []
    for place, (name, text) in enumerate(sorted(files.items()), 1):
        if not re.fullmatch(rf"{place:04}-[a-z0-9-]+\.md", name):
            complaints.append(f"{name}: expected a name like {place:04}-what-was-decided.md")
        missing = [section for section in SECTIONS if section not in headings(text)]
        complaints += [f"{name}: has no section {section}" for section in missing]
    return complaints


def test_every_decision_is_numbered_and_says_why_and_what_would_change_it():
    files = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "decisions").glob("*.md")}
    files.pop("README.md", None)
    assert files
    assert decisions_wanting(files) == []


def test_that_rule_sees_a_gap_in_the_numbers_and_a_missing_section():
    whole = "\n".join(f"## {section}\n" for section in SECTIONS)
    assert decisions_wanting({"0001-apsw.md": whole, "0002-cron.md": whole}) == []
    assert decisions_wanting({"0002-cron.md": whole})
    assert decisions_wanting({"0001-apsw.md": whole.replace("## Why", "")}) == ["0001-apsw.md: has no section Why"]


def test_every_suite_has_a_budget_and_together_they_stay_under_ten_minutes_on_two_cores():
    known = suites(read("testing.md"))
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    homeless = {path for path in files if suite_of(path, known) == "(no budget)"}
    assert homeless == set()
    # Four run at a time, and a minute is for the linters and the start.
    assert sum(suite.minutes for suite in known) / 4 < 9


# ---- links


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def broken_links(page: Path, text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    complaints = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        place, _, anchor = target.partition("#")
        path = (page.parent / place).resolve() if place else page
        if not path.exists():
            complaints.append(f"{page.name}: {target} does not exist")
        elif anchor and path.suffix == ".md":
            known = {slug(found) for found in headings(text if path == page else path.read_text("utf-8"))}
            if anchor not in known:
                complaints.append(f"{page.name}: {target} has no such heading")
    return complaints


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_internal_link_has_an_end(page):
    assert broken_links(page, page.read_text(encoding="utf-8")) == []


def test_that_rule_sees_a_missing_file_and_a_missing_heading():
    page = ROOT / "README.md"
    fine = "# Top\n[a](LICENSE) [b](#top) [c](https://example.org) `[d](nowhere)`"
    assert broken_links(page, fine) == []
    assert broken_links(page, "[a](nowhere.md)")
    assert broken_links(page, "# Top\n[a](#bottom)")
