"""Document 000's wakeup, typed into a session that goes on: by a real engine, into a tmux server of the test's own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soak.standing import until
from tests.cli.office import ROOT, wakeful
from tests.runners.session import Sessions

FLEET = """\
#+GRACE: 1h

* wren
:PROPERTIES:
:TMUX: main
:ENV: TMUX_TMPDIR
:END:
"""
ONCE = re.compile(rb"\x1b\[200~Wakeful run [ -~]+\x1b\[201~\r")


class Keeper:
    """An engine as a process of its own, and the session of its one agent, which is in the middle of a turn."""

    def __init__(self, folder: Path, sessions: Sessions) -> None:
        self.sessions = sessions
        self.data = folder / ".wakeful"
        (folder / "fleet.org").write_text(FLEET)
        ours = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
        environment = {**ours, "PYTHONPATH": str(ROOT / "src"), "TMUX_TMPDIR": str(sessions.place)}
        command = [sys.executable, "-m", "wakeful", "up", "--port", "0"]
        self.engine = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
        assert self.engine.stderr is not None
        assert any('"ready"' in line for line in self.engine.stderr), "the engine never was"
        sessions.begin(habit="works first")
        until(sessions.ready, "the agent")

    def ask(self, *arguments: str) -> int:
        return wakeful(*arguments, WAKEFUL_DATA=str(self.data)).exit_code

    def tick(self) -> None:
        assert self.ask("tick", "wren") == 0
        until(lambda: "something goes on in it" in self.log(), "word of the turn")

    def log(self) -> str:
        return "".join(path.read_text() for path in self.data.glob("runs/*/stderr"))

    def last(self) -> dict[str, Any]:
        runs = json.loads(wakeful("runs", "--json", WAKEFUL_DATA=str(self.data)).stdout)["items"]
        assert isinstance(runs, list)
        return dict(runs[0]) if runs else {}

    def calm(self) -> None:
        (self.sessions.folder / "calm").touch()

    def close(self) -> None:
        self.engine.terminate()
        self.engine.communicate()


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    sessions = Sessions(tmp_path)
    try:
        made = Keeper(tmp_path, sessions)
        yield made
        made.close()
    finally:
        sessions.close()


def test_while_paused_no_wakeup_is_typed_not_even_one_that_was_waiting_for_the_turn_to_end(keeper):
    assert keeper.ask("pause", "--reason", "a look") == 0
    assert keeper.ask("tick", "wren") == 1
    assert keeper.ask("resume") == 0
    keeper.tick()
    assert keeper.ask("pause", "--reason", "a second look") == 0
    keeper.calm()
    until(lambda: "the agent is paused" in keeper.log(), "word of the pause")
    assert keeper.sessions.heard() == b""
    assert keeper.ask("resume") == 0
    until(lambda: keeper.last()["outcome"] == "done", "the end of the run")
    assert ONCE.fullmatch(keeper.sessions.heard())


def test_a_wakeup_waits_for_the_turn_to_end_and_is_acknowledged_by_what_the_agent_writes(keeper):
    keeper.tick()
    assert keeper.sessions.heard() == b""
    keeper.calm()
    until(lambda: keeper.last()["outcome"] is not None, "the acknowledgement")
    assert (keeper.last()["outcome"], keeper.last()["summary"]) == ("done", "answered")
    assert ONCE.fullmatch(keeper.sessions.heard())
