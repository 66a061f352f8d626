"""`wakeful check`: what it prints, and with what it exits."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from wakeful.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parents[2]
MALFORMED = ROOT / "tests" / "fleet" / "malformed"
FLEET = "#+RUN: true\n* wren\n:PROPERTIES:\n:LIFECYCLE: day.org\n:END:\n* moss\n"
DAY = "#+START: a\n* a\n:PROPERTIES:\n:NEXT: a\n:END:\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WAKEFUL_RUN", raising=False)
    (tmp_path / "day.org").write_text(DAY, encoding="utf-8")
    return tmp_path


def check(*arguments, **environment):
    return CliRunner().invoke(main, ["check", *arguments], env=environment)


def wakeful(*arguments, folder=None, **environment):
    """The command as a process of its own."""
    start = "from wakeful.cli import main; main(prog_name='wakeful')"
    return subprocess.run(
        [sys.executable, "-c", start, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        timeout=60,
    )


def test_a_good_fleet_is_ok_with_its_agents_and_states_counted(folder):
    (folder / "fleet.org").write_text(FLEET, encoding="utf-8")
    result = check()
    assert (result.exit_code, result.stdout) == (0, "ok: fleet.org: 2 agents, 1 state\n")


def test_beats_that_bunch_are_a_warning_and_the_file_may_be_used(folder):
    drawer = ":PROPERTIES:\n:SCHEDULE: 0 * * * *\n:END:\n"
    agents = "".join(f"* {name}\n{drawer}" for name in ("wren", "moss", "fern"))
    (folder / "fleet.org").write_text(f"#+RUN: true\n{agents}", encoding="utf-8")
    result = check()
    assert result.exit_code == 0
    assert "fleet.org:4:2: warning: 3 agents are due in the same minute (" in result.stdout
    assert "): wren, moss, fern; SESSIONS is 2, so 1 of them waits (give some of them another minute" in result.stdout
    (told,) = json.loads(check("--json").stdout)["diagnostics"]
    assert (told["severity"], told["line"]) == ("warning", 4)


def test_without_fleet_org_the_folders_fleet_yml_is_checked(folder):
    (folder / "fleet.yml").write_text("run: 'true'\nagents:\n  wren:\n", encoding="utf-8")
    result = check()
    assert (result.exit_code, result.stdout) == (0, "ok: fleet.yml: 1 agent, 0 states\n")


def test_beside_fleet_org_a_fleet_yml_is_said_to_be_unread(folder):
    (folder / "fleet.org").write_text(FLEET, encoding="utf-8")
    (folder / "fleet.yml").write_text("nonsense", encoding="utf-8")
    result = check()
    assert result.exit_code == 0
    assert result.stderr == "fleet.yml: not read, because fleet.org is beside it\n"


def test_without_any_fleet_the_command_says_what_to_name(folder):
    result = check()
    assert result.exit_code == 2
    assert "no fleet.org or fleet.yml in this folder (name the file: wakeful check FILE)" in result.stderr


def test_a_lifecycle_given_by_itself_is_checked_as_a_lifecycle(folder):
    result = check("day.org")
    assert (result.exit_code, result.stdout) == (0, "ok: day.org: 1 state\n")
    (folder / "headless.org").write_text(DAY.removeprefix("#+START: a\n"), encoding="utf-8")
    assert "ok: headless.org: 1 state" in check("headless.org").stdout


def test_a_lifecycle_named_as_the_fleet_is_refused(folder):
    result = check("--fleet", "day.org")
    assert result.exit_code == 2
    assert result.stdout.startswith("day.org:1:1: this is a lifecycle, not a fleet (")


def test_a_file_named_twice_is_bad_usage(folder):
    assert check("day.org", "--fleet", "day.org").exit_code == 2


def test_errors_are_printed_in_order_with_a_count_beside_and_exit_2(folder):
    (folder / "fleet.org").write_text(
        "#+RUN: true\n* wren\n:PROPERTIES:\n:INTERVAL: 10\n:DEFF: x\n:END:\n", encoding="utf-8"
    )
    result = check()
    assert result.exit_code == 2
    assert result.stdout == (
        "fleet.org:4:12: INTERVAL: expected a duration with a unit, found '10' "
        "(write 10m for minutes or 10s for seconds)\n"
        "fleet.org:5:2: unknown key DEFF (did you mean DEF?)\n"
    )
    assert result.stderr == "fleet.org: 2 errors\n"


def test_warnings_alone_exit_0(folder):
    (folder / "fleet.org").write_text("* wren\n", encoding="utf-8")
    result = check()
    assert result.exit_code == 0
    first, last = result.stdout.splitlines()
    assert first.startswith("fleet.org:1:3: warning: no command to run for 'wren' (add RUN")
    assert last == "ok: fleet.org: 1 agent, 0 states"


def test_a_command_from_the_option_or_the_environment_is_enough(folder):
    (folder / "fleet.org").write_text("* wren\n", encoding="utf-8")
    assert check("--run", "true").stdout == "ok: fleet.org: 1 agent, 0 states\n"
    assert check(WAKEFUL_RUN="true").stdout == "ok: fleet.org: 1 agent, 0 states\n"
    assert "warning" in check(WAKEFUL_RUN="").stdout


def test_json_has_the_same_in_fields(folder):
    (folder / "fleet.org").write_text("#+RUN: true\n* wren\n:PROPERTIES:\n:PORT: 1\n:END:\n", encoding="utf-8")
    result = check("--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout) == {
        "file": "fleet.org",
        "kind": "fleet",
        "ok": False,
        "agents": 0,
        "states": 0,
        "recurring": [],
        "diagnostics": [
            {
                "file": "fleet.org",
                "line": 4,
                "column": 2,
                "severity": "error",
                "reason": "PORT belongs to the fleet, not to an agent",
                "remedy": "write it as #+PORT: above the first heading",
            }
        ],
    }
    assert json.loads(check("--json", "day.org").stdout)["kind"] == "lifecycle"


def test_an_unreadable_file_is_told_without_a_traceback(folder):
    result = check("nowhere.org")
    assert result.exit_code == 2
    assert result.stdout.startswith("nowhere.org:1:1: cannot be read: no such file or directory (")


def test_listing_the_commands_imports_none_of_them():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in COMMANDS)
    assert CliRunner().invoke(main, ["chekc"]).exit_code == 2


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("unclosed-drawer.org", b"unclosed-drawer.org:3:2: "),
        ("alias-bomb.yml", b"alias-bomb.yml:1:4: "),
        ("nul.org", b"nul.org:2:5: "),
        ("day-dangling-next.org", b"day-dangling-next.org:8:8: "),
    ],
)
def test_as_a_process_a_malformed_file_exits_2_and_prints_no_traceback(name, place):
    ended = wakeful("check", name, folder=MALFORMED)
    assert ended.returncode == 2
    assert ended.stdout.startswith(place)
    assert b"Traceback" not in ended.stdout + ended.stderr


def test_a_terminal_that_knows_only_ascii_gets_escapes_and_no_traceback(folder):
    (folder / "fleet.org").write_text("#+RUN: true\n* wrén\n", encoding="utf-8")
    ended = wakeful("check", folder=folder, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert ended.returncode == 2
    assert b"illegal name of an agent: 'wr\\xe9n'" in ended.stdout
    assert b"Traceback" not in ended.stderr


def test_checking_an_org_file_imports_no_yaml_no_database_and_no_terminal_library(folder):
    (folder / "fleet.org").write_text(FLEET, encoding="utf-8")
    script = (
        "import sys; from wakeful.cli import main\n"
        "try: main(['check'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'ruamel', 'apsw', 'rich', 'asyncio', 'http', 'sqlite3'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr


RECURRING = """
* sweep
:PROPERTIES:
:TASK: Sweep the floor
:SCHEDULE: 30 9 * * *
:AGENT: moss
:TIMEZONE: Europe/Berlin
:END:
* count
:PROPERTIES:
:TASK:
:SCHEDULE: @hourly
:AGENT: wren
:END:
"""


def test_recurring_tasks_are_listed_with_their_next_instants(folder):
    (folder / "fleet.org").write_text(FLEET + RECURRING, encoding="utf-8")
    ok, sweep, count = check().stdout.splitlines()
    assert ok == "ok: fleet.org: 2 agents, 1 state, 2 recurring tasks"
    day = r"\d{4}-\d\d-\d\d 09:30"
    assert re.fullmatch(rf"sweep: Sweep the floor, for moss, next {day}, {day}, {day} Europe/Berlin", sweep)
    assert re.fullmatch(r"count: for wren, next (\d{4}-\d\d-\d\d \d\d:00(, )?){3} UTC", count)
    told = json.loads(check("--json").stdout)["recurring"]
    assert [(one["name"], one["title"], one["agent"], one["role"]) for one in told] == [
        ("sweep", "Sweep the floor", "moss", None),
        ("count", "count", "wren", None),
    ]
    assert all(sorted(set(one["next_at"])) == one["next_at"] and len(one["next_at"]) == 3 for one in told)
