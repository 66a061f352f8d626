"""How a command reaches its fleet, and whom it never tells its token."""

import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from tests.cli.office import LEASE, ROOT, TOKEN, Served, now, spawned, wakeful
from wakeful.cli.complaints import from_error
from wakeful.client.problems import error_of
from wakeful.core.errors import Ended, Mistake
from wakeful.store.folder import DataFolder


def test_where_no_fleet_is_a_question_makes_no_folder(nowhere):
    for command in (["status"], ["token"], ["tick", "wren"]):
        result = wakeful(*command)
        assert result.exit_code == 2
        assert "there is no fleet here" in result.stderr and "wakeful init" in result.stderr
    assert list(nowhere.iterdir()) == []


def test_a_fleet_file_that_is_not_there_is_told(office):
    result = wakeful("status", "--fleet", "elsewhere/fleet.org")
    assert result.exit_code == 2
    assert "there is no fleet file elsewhere/fleet.org" in result.stderr


def test_before_the_first_start_a_command_finds_the_agents_of_the_fleet_file(nowhere):
    (nowhere / "fleet.org").write_text("#+RUN: true\n* wren\n")
    sent = wakeful("send", "wren", "the draft is ready")
    assert sent.exit_code == 0, sent.stderr
    assert "the draft is ready" in wakeful("inbox", "wren").stdout
    (nowhere / "fleet.org").write_text("#+RUN: true\n* wren\n* moss\n")
    assert wakeful("task", "add", "proofs", "--agent", "moss").exit_code == 0
    assert wakeful("audit").exit_code == 0


def test_before_the_first_start_a_fleet_that_up_would_refuse_is_left_to_it(nowhere):
    for refused in ("* wren\n", "#+RUN: true\n* wren\n:PROPERTIES:\n:INTERVAL: 10\n:END:\n"):
        (nowhere / "fleet.org").write_text(refused)
        sent = wakeful("send", "wren", "hello")
        assert sent.exit_code == 1 and "wakeful up does that" in sent.stderr


def test_once_an_engine_was_up_an_edit_is_left_to_the_next_one(office):
    with office.store() as store:
        store.join("here", "", "", now(), LEASE)
    (office.folder / "fleet.org").write_text("#+RUN: true\n* finch\n")
    assert wakeful("send", "finch", "hello").exit_code == 1
    assert wakeful("send", "wren", "hello").exit_code == 0


def test_the_data_folder_is_beside_the_fleet_file_or_where_it_is_named(office, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    for result in (
        wakeful("status", "--fleet", str(office.folder / "fleet.org")),
        wakeful("status", "--data", str(office.data)),
        wakeful("status", WAKEFUL_DATA=str(office.data)),
    ):
        assert result.exit_code == 0, result.output
        assert "wren" in result.stdout


def test_an_engine_that_holds_the_folder_is_asked_with_the_operators_token(served):
    result = wakeful("status")
    assert result.exit_code == 0
    assert "engine up" in result.stdout and "heartbeat 0.2s ago" in result.stdout
    assert set(served.tokens) == {f"Bearer {TOKEN}"}


@pytest.fixture(params=[b"SSH-2.0-hello\r\n"])
def stranger(request):
    """Somebody else who listens, and notes what he is told."""
    heard: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def listen() -> None:
        while True:
            try:
                line, _ = listening.accept()
            except OSError:
                return
            with line:
                heard.append(line.recv(65_536))
                line.sendall(request.param)

    thread = threading.Thread(target=listen)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}", heard
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


def test_a_stale_engine_file_is_not_believed_and_a_stranger_on_its_port_hears_nothing(office, stranger):
    url, heard = stranger
    (office.data / "engine.json").write_text(json.dumps({"pid": 1, "url": url}))
    (office.data / "token").write_text(TOKEN)
    result = wakeful("status")
    assert result.exit_code == 0
    assert "no engine" in result.stdout
    assert heard == []


def test_what_answers_in_another_tongue_is_told(office, stranger):
    url, _ = stranger
    result = wakeful("status", WAKEFUL_URL=url, WAKEFUL_TOKEN="a-runs-token")
    assert result.exit_code == 1
    assert "does not answer as an engine does" in result.stderr


@pytest.mark.parametrize("stranger", [b"", b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n{}"], indirect=True)
def test_an_engine_that_ends_before_it_has_answered_is_to_be_asked_again(office, stranger):
    url, _ = stranger
    result = wakeful("status", WAKEFUL_URL=url, WAKEFUL_TOKEN="a-runs-token")
    assert result.exit_code == 75
    assert "ended before it answered (ask again, with the same --key)" in result.stderr


def test_inside_a_run_the_runs_own_engine_is_asked_with_the_runs_own_token(served, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("workdir"))
    result = wakeful("send", "wren", "hello", WAKEFUL_URL=served.url, WAKEFUL_TOKEN="a-runs-token")
    assert result.exit_code == 0, result.output
    assert served.tokens == ["Bearer a-runs-token"]


def test_inside_a_run_its_own_inbox_needs_no_name(served):
    inside = {"WAKEFUL_URL": served.url, "WAKEFUL_TOKEN": "t", "WAKEFUL_AGENT": "wren"}
    assert wakeful("inbox", **inside).stdout == "no open messages\n"
    assert wakeful("inbox").exit_code == 2


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["status", "--data", "x"], 2),
        (["token"], 1),
        (["up"], 1),
        (["stop"], 1),
        (["restore", "x"], 1),
        (["backup", "x"], 1),
        (["doctor"], 1),
        (["tick", "wren", "--wait"], 2),
    ],
)
def test_inside_a_run_what_is_the_operators_is_refused(served, command, code):
    result = wakeful(*command, WAKEFUL_URL=served.url, WAKEFUL_TOKEN="a-runs-token")
    assert result.exit_code == code
    assert " run" in result.stderr
    assert served.tokens == []


@pytest.mark.parametrize("named", [["--data", "elsewhere"], ["--fleet", "other.org"]])
def test_inside_a_run_nobody_is_taught_how_to_leave_it(served, named):
    result = wakeful("inbox", *named, WAKEFUL_URL=served.url, WAKEFUL_TOKEN="a-runs-token", WAKEFUL_AGENT="wren")
    assert result.exit_code == 2 and "belongs to its own fleet (leave it out: " in result.stderr
    assert "WAKEFUL_" not in result.stderr and "unset" not in result.stderr


def test_an_engine_that_is_gone_is_exit_69(office):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    result = wakeful("status", WAKEFUL_URL=url, WAKEFUL_TOKEN="t")
    assert result.exit_code == 69
    assert "cannot be reached: Connection refused" in result.stderr


def test_a_folder_that_somebody_holds_without_answering_is_exit_75(office, monkeypatch):
    monkeypatch.setattr("wakeful.cli.connection.PATIENCE", 0.1)
    with DataFolder(office.data):
        result = wakeful("status")
    assert result.exit_code == 75
    assert "in use by another wakeful process" in result.stderr


@pytest.mark.parametrize("operation", [["reload"], ["stop"], ["tick", "wren", "--wait"], ["kill", "1", "--wait"]])
def test_what_only_an_engine_can_do_is_exit_69_without_one(office, operation):
    result = wakeful(*operation)
    assert result.exit_code == 69
    assert "no engine is at work in .wakeful" in result.stderr and "(start one: wakeful up)" in result.stderr


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["tick", "wern"], 1, "no agent is called 'wern'; did you mean wren?"),
        (["at", "wren", "20m"], 2, "(write: in 20m)"),
        (["set", "wren", "coldown=1m"], 2, "unknown setting 'coldown' (did you mean cooldown?)"),
        (["pause", "--for", "10"], 2, "expected a duration with a unit, found '10'"),
        (["kill", "99"], 1, "no run 99"),
    ],
)
def test_a_mistake_is_told_alike_with_an_engine_and_without(office, command, code, said):
    without = wakeful(*command)
    serving = Served(office)
    try:
        answered = wakeful(*command)
    finally:
        serving.close()
    assert (without.exit_code, answered.exit_code) == (code, code)
    assert said in without.stderr and said in answered.stderr
    assert without.stdout == answered.stdout == ""


def test_without_its_token_the_engine_is_not_asked(served, office):
    (office.data / "token").unlink()
    result = wakeful("status")
    assert result.exit_code == 1
    assert "there is no token" in result.stderr


def test_a_file_that_is_no_store_is_told_and_left_alone(office):
    database = office.data / "wakeful.db"
    database.write_bytes(b"not a database at all" * 100)
    ended = spawned("status", folder=office.folder)
    assert ended.returncode == 2
    assert b"is not a wakeful store" in ended.stderr and b"Traceback" not in ended.stderr


LIGHT = "heavy = {'rich', 'asyncio', 'http', 'ssl', 'apsw', 'fastapi', 'uvicorn', 'ruamel', 'email'} & set(sys.modules)"


@pytest.mark.parametrize("command", [["token"], ["status"], ["tick", "wren"], ["send", "wren", "hello"]])
def test_a_command_to_an_engine_imports_nothing_heavy(served, command):
    script = f"import sys; from wakeful.cli import main\ntry: main({command!r})\nexcept SystemExit: pass\n{LIGHT}\n"
    ended = subprocess.run(
        [sys.executable, "-c", script + "assert not heavy, heavy"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout


@pytest.mark.parametrize(("state", "said"), [("failed", "failed"), ("dead_letter", "dead")])
def test_inside_a_run_a_task_that_it_gave_up_is_called_what_it_is(served, state, said):
    """Of what it held only the attempt has ended, and it is tried again; of what it added it is the end."""

    async def fail_task(caller, *, task: int, reason: str = "") -> dict[str, object]:
        return {"id": task, "state": state}

    served.control.fail_task = fail_task
    result = wakeful("task", "fail", "7", WAKEFUL_URL=served.url, WAKEFUL_TOKEN="a-runs-token")
    assert (result.exit_code, result.stdout) == (0, f"task 7 is {said}\n")


def test_what_has_ended_is_a_refusal_and_no_mistake_in_the_command():
    complaint = from_error(Ended("task 7 is cancelled already", "a task ends once"))
    assert (complaint.exit_code, complaint.message) == (1, "task 7 is cancelled already (a task ends once)")
    assert from_error(Mistake("unknown change", "use another")).exit_code == 2
    told = error_of(409, b'{"type": "urn:wakeful:error:ended", "detail": "it is over", "remedy": "leave it"}')
    assert isinstance(told, Ended) and (told.reason, told.remedy) == ("it is over", "leave it")
