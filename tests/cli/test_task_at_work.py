"""Tasks and a real engine: what a worker prints, steps after a kill, a cancel that stops it, what it may do itself."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.office import ROOT, wakeful

FLEET = """\
#+TITLE: desk
#+GRACE: 1h
#+RETRY-BASE: 1s
#+RETRY-JITTER: 0

* slow
:PROPERTIES:
:RUN: agents/slow.sh
:KILL-GRACE: 1s
:END:
* steps
:PROPERTIES:
:RUN: agents/steps.sh
:TASKS: step
:END:
* asks
:PROPERTIES:
:RUN: agents/asks.sh
:TASKS: asking
:END:
* away
:PROPERTIES:
:RUN: agents/away.sh
:END:
* post
:PROPERTIES:
:RUN: agents/post.sh
:END:
"""
HEAD = '#!/bin/sh\nwakeful() { "$PYTHON" -m wakeful "$@"; }\ncd "$WAKEFUL_ROOT"\n'
AGENTS = {
    "slow": 'echo begun\necho "$$" >slow.new\nmv slow.new slow.pid\nsleep 600\n',
    # The first attempt is killed after its step was recorded, the second reads it.
    "steps": """\
said=$(wakeful step fetch -- sh -c 'echo once >>taken; echo "two lines"; echo "ü"; echo "$WAKEFUL_STEP_KEY" >key')
[ "$WAKEFUL_ATTEMPT" = 1 ] && wakeful step sent -- sh -c 'kill -9 '$$'; sleep 60'
wakeful step --begun sent && echo "sent was begun"
wakeful step --begun fetch || echo "fetch is recorded"
wakeful step fetch --load
wakeful step fetch -- false && echo "not taken again"
wakeful step wrong -- sh -c 'echo so far; exit 7'
echo "wrong: $?"
wakeful step wrong --load 2>/dev/null || echo "wrong is not recorded"
wakeful step long -- head -c 1000001 /dev/zero 2>/dev/null || echo "long is refused"
wakeful step bytes -- printf '\\377' 2>/dev/null || echo "bytes are refused"
wakeful step nobody -- ./nobody 2>/dev/null || echo "nobody: $?"
printf 'a\\nnote' | wakeful step note --save -
wakeful step note --save other 2>&1
wakeful step note --load
wakeful step mine -- cat <key | cmp - key && echo "stdin is its own"
echo
wakeful step --list
""",
    "asks": """\
wakeful task cancel --all
echo "all: $?"
wakeful task retry 1
echo "retry: $?"
wakeful task show 1
echo "another's: $?"
wakeful task add "for nobody" --role nobody --key child --tag t
wakeful task done "$(wakeful task show --key child --json | sed -n 's/^  "id": \\([0-9]*\\),/\\1/p')" --result fine
wakeful task list
wakeful task done "$WAKEFUL_TASK_ID" --result told
""",
    # It is at its step while the engine is not there.
    "away": """\
wakeful step long -- sh -c 'touch begun; until [ -e go ]; do sleep 0.05; done; echo once >>taken; echo fine'
""",
    "post": 'wakeful step fetch -- true\necho "exit $?"\n',
}
PATIENCE = 60.0


@contextmanager
def engine(folder: Path, port: int = 0) -> Iterator[subprocess.Popen[str]]:
    """As a process of its own, ready."""
    command = [sys.executable, "-m", "wakeful", "up", "--port", str(port)]
    ours = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
    environment = {**ours, "PYTHONPATH": str(ROOT / "src"), "WAKEFUL_ROOT": str(folder)}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        said = []
        for line in process.stderr:
            said.append(line)
            if '"ready"' in line:
                break
        assert process.poll() is None, "".join(said)
        try:
            yield process
        finally:
            process.terminate()
            process.stderr.read()


def declared(folder: Path) -> Path:
    (folder / "fleet.org").write_text(FLEET)
    (folder / "agents").mkdir()
    for name, text in AGENTS.items():
        script = folder / "agents" / f"{name}.sh"
        script.write_text((HEAD + text).replace("$PYTHON", sys.executable))
        script.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = declared(tmp_path_factory.mktemp("desk"))
    with engine(folder):
        yield folder


def asked(desk: Path, *arguments: str):
    return wakeful(*arguments, WAKEFUL_DATA=str(desk / ".wakeful"))


def add(desk: Path, *arguments: str) -> int:
    result = asked(desk, "task", "add", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return int(json.loads(result.stdout)["id"])


def task(desk: Path, number: int):
    return json.loads(asked(desk, "task", "show", str(number), "--json").stdout)


def wait(came: Callable[[], object]) -> None:
    """With a rest between two looks: who asks without one takes the time of those whom it waits for."""
    rest, deadline = threading.Event(), time.monotonic() + PATIENCE
    while not came():
        assert time.monotonic() < deadline
        rest.wait(0.05)


def until(desk: Path, number: int, *states: str):
    """The task once it is in one of these states."""
    wait(lambda: task(desk, number)["state"] in states)
    return task(desk, number)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_cancel_stops_the_worker(desk):
    number = add(desk, "slow one", "--agent", "slow")
    wait((desk / "slow.pid").exists)
    pid = int((desk / "slow.pid").read_text())
    assert asked(desk, "task", "cancel", str(number), "--reason", "enough").exit_code == 0
    assert (task(desk, number)["state"], task(desk, number)["error"]) == ("cancelled", "enough")
    wait(lambda: not is_alive(pid) and task(desk, number)["attempts"][0]["ended_at"])
    row = task(desk, number)
    assert (row["state"], [attempt["counted"] for attempt in row["attempts"]]) == ("cancelled", [False])
    assert asked(desk, "task", "log", str(number)).stdout == "begun\n"
    (desk / "slow.pid").unlink()


def test_a_one_off_with_a_limit_of_its_own_is_ended_there(desk):
    result = asked(desk, "run", "slow", "take long", "--timeout", "1s", "--wait")
    assert result.exit_code == 1
    assert "killed" in result.stdout and "1s" in result.stdout


def test_a_step_is_taken_once_whatever_happens_to_the_attempt(desk):
    number = add(desk, "in steps", "--tag", "step", "--key", "order-7")
    row = until(desk, number, "completed", "dead_letter")
    assert (row["state"], len(row["attempts"])) == ("completed", 2), row
    assert (desk / "taken").read_text() == "once\n"
    assert (desk / "key").read_text() == f"wakeful:task:{number}:fetch\n"
    printed = asked(desk, "task", "log", "--key", "order-7").stdout
    assert printed.splitlines() == [
        "sent was begun",
        "fetch is recorded",
        "two lines",
        "ü",
        "two lines",
        "ü",
        "not taken again",
        "so far",
        "wrong: 7",
        "wrong is not recorded",
        "long is refused",
        "bytes are refused",
        "nobody: 2",
        "step 'note' was recorded before, and stays as it was",
        "a",
        "notestdin is its own",
        "",
        "bytes: begun, not recorded",
        'fetch: "two lines\\nü\\n"',
        "long: begun, not recorded",
        f'mine: "wakeful:task:{number}:fetch\\n"',
        "nobody: begun, not recorded",
        'note: "a\\nnote"',
        "sent: begun, not recorded",
        "wrong: begun, not recorded",
    ]
    assert row["steps"] == [], "they are gone with the task"


def test_a_run_adds_tasks_and_ends_those_and_its_own_but_not_those_of_others(desk):
    number = add(desk, "asking", "--tag", "asking")
    row = until(desk, number, "completed", "dead_letter")
    printed = asked(desk, "task", "log", str(number), "-f").stdout
    for line in (f"task {number} is completed", "all: 1", "retry: 1", "another's: 1"):
        assert line in printed.splitlines(), printed
    assert (row["state"], row["result"]) == ("completed", "told")
    child = json.loads(asked(desk, "task", "show", "--key", "role asking:child", "--json").stdout)
    assert (child["state"], child["result"], child["from"], child["message_id"]) == (
        "completed",
        "fine",
        "asks",
        "child",
    )
    assert "slow one" not in printed


def test_an_attempt_is_followed_until_its_end(desk):
    number = add(desk, "in more steps", "--agent", "post")
    followed = asked(desk, "task", "log", str(number), "-f")
    assert (followed.exit_code, followed.stdout) == (0, "exit 0\n"), followed.output


def test_an_inbox_run_has_no_steps_and_is_told_so(desk):
    assert asked(desk, "wake", "post", "look", "--wait").exit_code == 0
    printed = asked(desk, "logs", "post")
    assert printed.stdout == "exit 2\n"
    assert "an inbox run keeps no steps" in asked(desk, "logs", "post", "--stderr").stdout


def test_outside_a_run_a_step_is_nobodys(desk):
    refused = asked(desk, "step", "fetch", "--", "true")
    assert (refused.exit_code, "belongs to a run" in refused.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "which step"),
        (["fetch"], "has no command"),
        (["fetch", "--load", "--save", "x"], "say one of them"),
        (["fetch", "--load", "--", "true"], "say one of them"),
        (["fetch", "--list"], "of all steps"),
    ],
)
def test_a_step_that_cannot_be_meant_exits_2(desk, arguments, reason):
    refused = asked(desk, "step", *arguments)
    assert (refused.exit_code, reason in refused.stderr) == (2, True)


def test_a_step_whose_engine_is_being_replaced_waits_for_the_next_one(tmp_path):
    folder = declared(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with engine(folder, port) as first:
        number = add(folder, "while it is away", "--agent", "away")
        wait((folder / "begun").exists)
        first.kill()
        first.wait()
        (folder / "go").touch()
        wait((folder / "taken").exists)
    with engine(folder, port):
        row = until(folder, number, "completed", "failed", "dead_letter")
        assert (row["state"], row["result"].strip(), len(row["attempts"])) == ("completed", "fine", 1), row
    assert (folder / "taken").read_text() == "once\n"
