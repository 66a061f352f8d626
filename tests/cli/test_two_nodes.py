"""Two engines, two data folders, one schema: a fleet on several machines, as its operator sees it."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.cli.office import PASSWORD, ROOT, schema, wakeful

PATIENCE = 30
AGENTS = """\
#+TITLE: two desks
#+GRACE: 1s
#+SESSIONS: 4
#+RUN: sh -c "env; echo told"

* fine
:PROPERTIES:
:INTERVAL: 1s
:END:
* slow
:PROPERTIES:
:RUN: sh -c "echo begun; echo wrong >&2; exec sleep 600"
:SCHEDULE: 0 0 1 1 *
:END:
"""


class Node:
    """An engine as a process of its own, in a folder of its own; its log is read as it is written."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.data = folder / ".wakeful"
        folder.mkdir()
        self.write(address)
        self.said: list[str] = []
        self.ready = threading.Event()
        command = [sys.executable, "-m", "wakeful", "up", "--port", "0"]
        ours = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
        environment = {**ours, "PYTHONPATH": str(ROOT / "src")}
        self.engine = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def write(self, address: str, more: str = "") -> None:
        (self.folder / "fleet.org").write_text(f"#+STORE: {address}\n{AGENTS}{more}")

    def _read(self) -> None:
        for line in self.engine.stderr:
            self.said.append(line)
            if '"ready"' in line:
                self.ready.set()
        self.ready.set()

    def begun(self) -> "Node":
        assert self.ready.wait(PATIENCE) and self.engine.poll() is None, self.said
        return self

    @property
    def name(self) -> str:
        return (self.data / "node").read_text().strip()

    def ask(self, *arguments: str):
        return wakeful(*arguments, WAKEFUL_DATA=str(self.data))

    def json(self, *arguments: str):
        asked = self.ask(*arguments, "--json")
        assert asked.exit_code == 0, asked.output
        return json.loads(asked.stdout)

    def close(self) -> None:
        if self.engine.poll() is None:
            self.engine.terminate()
        self.engine.wait(PATIENCE)
        self._reader.join()
        self.engine.stderr.close()


def until(look):
    """What it sees as soon as there is something to see."""
    rest, deadline = threading.Event(), time.monotonic() + PATIENCE
    while not (seen := look()):
        assert time.monotonic() < deadline, "it did not come about"
        rest.wait(0.05)
    return seen


@pytest.fixture(scope="module")
def address():
    with schema() as made:
        yield made


@pytest.fixture(scope="module")
def nodes(tmp_path_factory, address):
    folder = tmp_path_factory.mktemp("nodes")
    both = [Node(folder / name, address) for name in ("barn", "yard")]
    try:
        yield [node.begun() for node in both]
    finally:
        for node in both:
            node.close()


@pytest.fixture
def slow(nodes):
    """A run of slow under way, the node that has it, and the other one."""
    run = nodes[0].json("tick", "slow")["run_id"]
    (row,) = until(lambda: [row for row in nodes[0].json("runs", "slow")["items"] if row["state"] == "running"])
    holder, other = sorted(nodes, key=lambda node: node.name != row["node"])
    assert holder.name == row["node"]
    yield run, holder, other
    nodes[0].ask("kill", str(run), "--now", "--wait")


def test_each_sees_both(nodes):
    for node in nodes:
        rows = {row["name"]: row for row in node.json("nodes")["items"]}
        assert set(rows) == {one.name for one in nodes}
        assert {row["state"] for row in rows.values()} == {"up"}
        assert [name for name, row in rows.items() if row["here"]] == [node.name]
        assert {row["url"] for row in rows.values()} == {
            json.loads((one.data / "engine.json").read_text())["url"] for one in nodes
        }
        shown = node.ask("nodes").stdout
        assert f"{node.name} (here)" in shown and "up since" in shown and "0 runs" in shown
        assert "2 nodes up" in node.ask("status").stdout


def test_a_beat_comes_once_however_many_nodes_there_are(nodes):
    def ended() -> list[dict[str, str]]:
        return [row for row in nodes[1].json("runs", "fine")["items"] if row["outcome"]]

    rows = until(lambda: rows if len(rows := ended()) >= 3 else None)
    starts, ends = sorted(row["started_at"] for row in rows), sorted(row["ended_at"] for row in rows)
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))


def test_a_run_is_seen_read_and_ended_from_the_other_node(slow):
    run, holder, other = slow
    assert f"of 15m on {holder.name}" in other.ask("status").stdout
    assert f"on {holder.name}" in other.ask("status", "slow").stdout
    assert f"on {holder.name}" in holder.ask("status", "slow").stdout
    assert holder.ask("logs", str(run)).stdout == "begun\n"
    assert until(lambda: other.ask("logs", str(run)).stdout) == "begun\n"
    assert until(lambda: other.ask("logs", str(run), "--stderr").stdout) == "wrong\n"
    ended = other.ask("kill", str(run), "--wait")
    assert (ended.exit_code, ended.stdout) == (0, f"run {run} of slow is over: killed\n")
    assert other.ask("logs", "-f", str(run)).stdout == "begun\n"


def test_a_pause_on_one_node_holds_the_other_and_ends_its_runs(slow):
    _, holder, other = slow
    paused = other.ask("pause", "--now", "--reason", "mending")
    assert paused.exit_code == 0, paused.output
    assert "asked to end: " in paused.stdout and "still alive" not in paused.stdout
    assert "no engine runs here" not in paused.stdout
    assert holder.json("runs", "slow")["items"][0]["outcome"] == "killed"
    for node in (holder, other):
        refused = node.ask("tick", "fine")
        assert refused.exit_code == 1 and "paused by operator: mending" in refused.stdout
    assert holder.ask("resume").stdout == "the fleet goes on\n"
    assert other.ask("tick", "fine", "--wait").exit_code == 0


def test_where_no_engine_is_the_nodes_decide(nodes, address, tmp_path):
    (tmp_path / "fleet.org").write_text(f"#+STORE: {address}\n{AGENTS}")
    assert "no engine here; 2 nodes are up" in wakeful("status").stdout
    done = wakeful("run", "fine", "a page", "--wait")
    assert done.exit_code == 0, done.output
    until(lambda: "told" in wakeful("logs", "fine").stdout)
    assert wakeful("stop").exit_code == 69
    assert not (tmp_path / ".wakeful").exists()


def test_a_pause_file_of_one_node_is_lifted_by_nobody_while_that_is_up(nodes):
    barn, yard = nodes
    (barn.folder / "PAUSE").write_text("deploy\n")
    until(lambda: yard.json("status")["pauses"])
    refused = yard.ask("resume")
    assert refused.exit_code == 2
    assert f"a PAUSE file of node {barn.name} holds the fleet" in refused.stderr
    assert f"{barn.folder / 'PAUSE'} is there" in refused.stderr
    (barn.folder / "PAUSE").unlink()
    until(lambda: not yard.json("status")["pauses"])
    assert yard.ask("resume").stdout == "the fleet was not paused\n"


def test_another_store_in_the_fleet_file_waits_for_a_restart_and_that_is_said_once(nodes, address):
    barn, _ = nodes
    try:
        barn.write("postgresql://nowhere.example.org/other")
        for _ in range(2):
            told = barn.ask("reload")
            assert told.exit_code == 0 and "STORE was changed" in told.stdout and "restart it" in told.stdout
        assert "STORE was changed" in barn.ask("status").stdout
        errors = [line for line in barn.said if "STORE was changed" in line]
        assert len(errors) == 1 and json.loads(errors[0])["level"] == "error"
        assert barn.json("nodes")["items"][0]["state"] == "up"
    finally:
        barn.write(address)
        assert barn.ask("reload").exit_code == 0


def test_nobody_is_ever_shown_the_password(nodes, slow, address):
    _, holder, _ = slow
    (holder.folder / "fleet.org").write_text(f"#+STORE: {address}x y\n{AGENTS}")
    shown = [holder.ask("reload").output, holder.ask("status").output]
    holder.write(address)
    assert holder.ask("reload").exit_code == 0
    for command in (["status"], ["nodes"], ["doctor"], ["events", "-n", "1000"], ["runs"], ["logs", "fine"]):
        shown += [node.ask(*command, *json_too).output for node in nodes for json_too in ([], ["--json"])]
    shown += ["".join(node.said) for node in nodes]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            shown.append((process / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    for folder in (node.data / "runs" for node in nodes):
        shown += [path.read_text(errors="replace") for path in folder.glob("*/*") if path.is_file()]
    environments = [text for text in shown if "WAKEFUL_RUN_ID=" in text]
    assert environments, "no run told its environment"
    assert [text for text in shown if PASSWORD in text] == []


def test_a_copied_data_folder_is_told_to_the_second_engine(nodes, slow, address, tmp_path):
    _, holder, _ = slow
    (tmp_path / ".wakeful").mkdir()
    shutil.copy(holder.data / "node", tmp_path / ".wakeful" / "node")
    (tmp_path / "fleet.org").write_text(f"#+STORE: {address}\n{AGENTS}")
    command = [sys.executable, "-m", "wakeful", "up", "--port", "0"]
    second = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert second.returncode == 75
    assert "waiting until it is known to be gone" in second.stderr
    assert f"another engine called {holder.name} is up on" in second.stderr and "Traceback" not in second.stderr


def test_last_of_all_one_is_stopped_and_the_other_goes_on(nodes):
    barn, yard = nodes
    assert barn.ask("stop").stdout == "the engine has stopped\n"
    states = {row["name"]: row["state"] for row in yard.json("nodes")["items"]}
    assert states == {barn.name: "left", yard.name: "up"}
    assert "no engine here; 1 node is up" in barn.ask("status").stdout
    assert yard.ask("tick", "fine", "--wait").exit_code == 0
