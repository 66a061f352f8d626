"""The commands and a real engine: asked for, waited for, ended, and used from inside a run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from soak.standing import until
from tests.cli.office import ROOT, wakeful
from wakeful.cli.complaints import Complaint
from wakeful.cli.exchange import exchange

FLEET = """\
#+TITLE: desk
#+GRACE: 1h

* fine
:PROPERTIES:
:RUN: agents/fine.sh
:END:
* poor
:PROPERTIES:
:RUN: false
:END:
* slow
:PROPERTIES:
:RUN: sleep 600
:END:
* talk
:PROPERTIES:
:RUN: agents/talk.sh
:END:
* leak
:PROPERTIES:
:RUN: agents/leak.sh
:END:
* func
:PROPERTIES:
:HANDLER: handlers:give_up
:END:
"""
HANDLERS = "def give_up(run):\n    raise ValueError('no paper')\n"
FINE = "#!/bin/sh\necho one\necho two\n"
# Somebody who keeps what it was given.
LEAK = '#!/bin/sh\necho "$WAKEFUL_URL $WAKEFUL_TOKEN" > "$FOLDER/kept"\n'
TALK = """\
#!/bin/sh
wakeful() { "$PYTHON" -m wakeful "$@"; echo "exit $?"; }
wakeful send fine "from a run"
wakeful wake fine --reason blocker "look at it"
wakeful token 2>/dev/null
wakeful runs 2>/dev/null
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """An engine as a process of its own, ready; its data folder is what the commands are told."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "fleet.org").write_text(FLEET)
    (folder / "handlers.py").write_text(HANDLERS)
    (folder / "agents").mkdir()
    for name, text in (
        ("fine", FINE),
        ("talk", TALK.replace("$PYTHON", sys.executable)),
        ("leak", LEAK.replace("$FOLDER", str(folder))),
    ):
        script = folder / "agents" / f"{name}.sh"
        script.write_text(text)
        script.chmod(0o755)
    command = [sys.executable, "-m", "wakeful", "up", "--port", "0"]
    ours = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
    environment = {**ours, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as engine:
        said = []
        for line in engine.stderr:
            said.append(line)
            if '"ready"' in line:
                break
        assert engine.poll() is None, "".join(said)
        try:
            yield folder / ".wakeful"
        finally:
            engine.terminate()
            engine.stderr.read()


def asked(desk: Path, *arguments: str):
    return wakeful(*arguments, WAKEFUL_DATA=str(desk))


def test_a_tick_is_waited_for_and_its_output_shown(desk):
    result = asked(desk, "tick", "fine", "--wait")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("fine: run ") and " done after " in result.stdout
    assert asked(desk, "logs", "-f", "fine").stdout == "one\ntwo\n"


def test_a_run_that_fails_exits_1(desk):
    result = asked(desk, "tick", "poor", "--wait", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["outcome"] == "failed"


def test_one_task_is_done_once_and_waited_for(desk):
    result = asked(desk, "run", "fine", "write a page", "--wait")
    assert result.exit_code == 0, result.output
    assert "completed" in asked(desk, "task", "list").stdout


def test_a_one_off_whose_handler_raised_has_failed_although_its_shift_was_seen_through(desk):
    done = asked(desk, "run", "func", "print it", "--wait")
    assert done.exit_code == 1
    assert "failed" in done.output and "no paper" in done.output


def test_what_is_larger_than_an_engine_takes_is_said_so(desk):
    done = asked(desk, "send", "fine", "x" * 1_500_000)
    assert done.exit_code == 2
    assert "1.5 MB" in done.output and "Traceback" not in done.output


def test_a_run_is_seen_at_work_and_ended(desk):
    run = json.loads(asked(desk, "tick", "slow", "--json").stdout)["run_id"]
    assert "of 15m" in asked(desk, "status", "slow").stdout
    result = asked(desk, "kill", str(run), "--wait")
    assert (result.exit_code, result.stdout) == (0, f"run {run} of slow is over: killed\n")


def test_a_pause_now_ends_what_is_under_way_and_refuses_what_is_asked(desk):
    asked(desk, "tick", "slow")
    paused = asked(desk, "pause", "slow", "--now", "--reason", "enough")
    assert paused.exit_code == 0, paused.output
    assert "asked to end: 1 run" in paused.stdout and "still alive" not in paused.stdout
    refused = asked(desk, "tick", "slow", "--wait")
    assert refused.exit_code == 1
    assert "slow is refused by paused: agent slow is paused by operator: enough" in refused.stdout
    assert asked(desk, "resume", "slow").stdout == "slow goes on\n"


def test_inside_a_run_the_commands_are_the_agents_own(desk):
    assert asked(desk, "tick", "talk", "--wait").exit_code == 0
    said = asked(desk, "logs", "talk").stdout.splitlines()
    assert said[0].endswith("is in the inbox of fine")
    assert [line for line in said if line.startswith("exit ")] == ["exit 0", "exit 0", "exit 1", "exit 1"]
    decided = json.loads(asked(desk, "decisions", "fine", "--json").stdout)["items"]
    (row,) = [row for row in decided if row["from"] == "talk"]
    assert (row["cause"], row["verdict"]) == ("peer", "admit")


def test_what_is_secret_there_is_kept_and_told_by_nobody(desk):
    token = (desk / "token").read_text().strip()
    assert asked(desk, "send", "slow", f"take {token}").exit_code == 0
    assert "take [redacted]" in asked(desk, "inbox", "slow").stdout
    url = json.loads((desk / "engine.json").read_bytes())["url"]
    with pytest.raises(Complaint):
        exchange(url, "wrong", "GET", f"/v1/agents/{token}", None)
    told = asked(desk, "events", "--kind", "denied", "--json").stdout
    assert "/v1/agents/[redacted]" in told and token not in told


def test_a_changed_fleet_file_is_read_at_once(desk):
    file = desk.parent / "fleet.org"
    file.write_text(FLEET + "* late\n:PROPERTIES:\n:RUN: true\n:END:\n")
    reloaded = asked(desk, "reload")
    assert reloaded.exit_code == 0, reloaded.output
    assert "late" in asked(desk, "status").stdout
    file.write_text(FLEET + "* late\n:PROPERTIES:\n:INTERVALL: 3m\n:END:\n")
    broken = asked(desk, "reload")
    assert broken.exit_code == 2
    assert "did you mean INTERVAL?" in broken.stdout


def test_on_a_store_of_its_own_there_is_one_node_and_it_is_here(desk):
    (node,) = json.loads(asked(desk, "nodes", "--json").stdout)["items"]
    assert (node["state"], node["here"]) == ("up", True)
    assert node["url"] == json.loads((desk / "engine.json").read_text())["url"]
    assert " up since " in asked(desk, "nodes").stdout and "nodes up" not in asked(desk, "status").stdout


def test_the_doctor_finds_the_engine_well(desk):
    found = {row["name"]: row for row in json.loads(asked(desk, "doctor", "--json").stdout)["findings"]}
    assert (found["engine"]["level"], found["store"]["level"]) == ("ok", "ok"), found


def status_of(url: str, token: str) -> str:
    try:
        return "let in" if exchange(url, token, "GET", "/v1/status", None) else ""
    except Complaint as complaint:
        return complaint.message


def test_what_a_run_kept_of_its_token_is_worth_nothing_once_it_has_ended(desk):
    assert wakeful("tick", "leak", "--wait", "--data", str(desk)).exit_code == 0
    url, token = (desk.parent / "kept").read_text().split()
    assert token.startswith("run.") and "its run is over" in status_of(url, token)


def test_a_token_is_rotated_under_a_live_engine(desk):
    url = json.loads((desk / "engine.json").read_bytes())["url"]
    old = wakeful("token", "--data", str(desk)).stdout.strip()
    assert status_of(url, old) == "let in"
    new = wakeful("token", "--rotate", "--data", str(desk)).stdout.strip()
    assert new not in ("", old) and (desk / "token").stat().st_mode & 0o777 == 0o600
    assert "the token is wrong" in status_of(url, old)
    assert status_of(url, new) == "let in"

    def acts() -> list[str]:
        return [
            act["fields"]["operation"] for act in exchange(url, new, "GET", "/v1/events?kinds=acted", None)["items"]
        ]

    # The engine lets nobody wait for it to be written down.
    until(lambda: "rotate_token" in acts(), "the event of it")


def test_last_of_all_it_is_stopped(desk):
    assert asked(desk, "stop").stdout == "the engine has stopped\n"
    assert "no engine" in asked(desk, "status").stdout
    assert json.loads(asked(desk, "nodes", "--json").stdout)["items"][0]["state"] == "left"
    assert asked(desk, "stop").exit_code == 69
