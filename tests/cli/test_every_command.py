"""What holds for every command: help, JSON where it lists, exit codes, and nothing of an agent's on the terminal."""

import json
import re
import subprocess
import sys

import click
import pytest

from tests.cli.office import EVIL, Served, spawned, wakeful
from wakeful.cli import COMMANDS, main


def every(group: click.Group = main, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found += every(command, (*path, name)) if isinstance(command, click.Group) else [(*path, name)]
    return found


# What each command is called with where wren and moss are, and run 1 has ended. Those that list or answer take --json.
CALLS = {
    ("status",): [],
    ("tick",): ["wren"],
    ("wake",): ["wren", "--reason", "look"],
    ("at",): ["wren", "in", "20m"],
    ("run",): ["wren", "write"],
    ("send",): ["wren", "hello"],
    ("inbox",): ["wren"],
    ("stuck",): [],
    ("task", "add"): ["title", "--agent", "moss"],
    ("task", "list"): [],
    ("task", "show"): ["2"],
    ("task", "done"): ["2", "--result", "x"],
    ("task", "cancel"): ["2"],
    ("task", "fail"): ["2", "--reason", "x"],
    ("task", "retry"): ["3"],
    ("task", "rm"): ["3"],
    ("task", "log"): ["2"],
    ("dead", "list"): [],
    ("dead", "show"): ["3"],
    ("dead", "replay"): ["3"],
    ("dead", "discard"): ["--all", "--yes"],
    ("step",): ["--list", "--task", "2"],
    ("runs",): [],
    ("logs",): ["1"],
    ("kill",): ["1"],
    ("pause",): ["wren"],
    ("resume",): ["wren"],
    ("why",): ["moss"],
    ("blame",): ["1"],
    ("forecast",): ["wren"],
    ("decisions",): [],
    ("events",): [],
    ("set",): ["wren"],
    ("nodes",): [],
    ("audit",): [],
    ("doctor",): [],
    ("backup",): ["copy.db"],
    ("check",): [],
}
# These print no rows: what they do is told in other files.
OTHERS = {
    ("mcp",),
    ("task", "claim"),
    ("import",),
    ("init",),
    ("up",),
    ("stop",),
    ("reload",),
    ("restore",),
    ("token",),
    ("simulate",),
    ("drill",),
    ("board", "list"),
    ("board", "claim"),
    ("board", "release"),
    ("service", "install"),
    ("service", "uninstall"),
    ("top",),
    ("store", "copy"),
}

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_every_command_is_in_one_of_the_two_lists():
    assert set(every()) == set(CALLS) | OTHERS


@pytest.mark.parametrize("command", every(), ids=" ".join)
def test_every_command_has_help(command):
    result = wakeful(*command, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: ")


@pytest.mark.parametrize("command", CALLS, ids=" ".join)
def test_nothing_that_an_agent_wrote_reaches_the_terminal_as_a_sequence(foul, command):
    result = wakeful(*command, *CALLS[command])
    assert result.exit_code in (0, 1), result.output
    assert not CONTROL.search(result.output), result.output


@pytest.mark.parametrize(
    "command", [("status",), ("inbox", "wren"), ("task", "show", "2"), ("dead", "list"), ("runs",), ("logs", "1")]
)
def test_but_its_words_are_shown(foul, command):
    assert "red" in wakeful(*command).stdout


@pytest.mark.parametrize("command", CALLS, ids=" ".join)
def test_with_json_the_answer_is_json_and_nothing_else_with_an_engine_and_without(foul, command):
    answers = [wakeful(*command, *CALLS[command], "--json")]
    (foul.folder / "copy.db").unlink(missing_ok=True)
    serving = Served(foul)
    try:
        answers.append(wakeful(*command, *CALLS[command], "--json"))
    finally:
        serving.close()
    # What reads the store itself, or only the file, needs no engine.
    assert serving.tokens or command in (("check",), ("audit",)), "the engine was not asked"
    without, answered = (json.loads(answer.stdout) for answer in answers)
    assert set(without) == set(answered)
    for answer in answers:
        assert (answer.exit_code in (0, 1), answer.stderr) == (True, "")
        assert not CONTROL.search(answer.stdout)


def test_the_summary_of_each_command_is_listed():
    shown = wakeful("--help").stdout
    assert all(name in shown for name in COMMANDS)


def test_a_reader_that_goes_away_is_no_error(foul):
    start = "from wakeful.cli import main; main(['events', '--json'])"
    command = [sys.executable, "-c", start]
    with subprocess.Popen(command, cwd=foul.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""


def test_as_a_process_a_command_answers_from_the_store_alone(foul):
    shown = spawned("logs", "1", folder=foul.folder)
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert b"\x1b" not in shown.stdout and b"before" in shown.stdout
    answered = spawned("status", "--json", folder=foul.folder)
    assert {agent["name"] for agent in json.loads(answered.stdout)["agents"]} == {"moss", "wren"}


def test_evil_text_is_evil():
    assert CONTROL.search(EVIL)
