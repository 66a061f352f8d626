"""`wakeful top` as a person uses it: in a tmux of 80 by 24, with an engine that really runs its agents."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from soak.standing import until
from tests.cli.office import ROOT, Office, wakeful
from tests.runners.session import Sessions

# wren talks until it is told to stop; moss has nothing to say.
FLEET = """\
#+TITLE: night desk
#+GRACE: 1h

* wren
:PROPERTIES:
:RUN: sh -c 'n=0; while [ ! -e {folder}/calm ]; do n=$((n + 1)); echo tock $n; sleep 0.1; done; echo over'
:INTERVAL: 1h
:END:
* moss
:PROPERTIES:
:RUN: true
:INTERVAL: 2h
:END:
"""


# What moves the cursor or colours what follows.
ESCAPE = re.compile(r"\x1b\[[0-?]*[@-~]")


class Desk:
    """A fleet, its engine, and a shell at a terminal of 80 by 24."""

    def __init__(self, folder: Path, sessions: Sessions) -> None:
        self.folder, self.sessions = folder, sessions
        self.data = folder / ".wakeful"
        self.engine: subprocess.Popen[bytes] | None = None
        (folder / "fleet.org").write_text(FLEET.format(folder=folder))
        self.environment = {"PYTHONPATH": str(ROOT / "src"), "PATH": os.environ["PATH"], "HOME": str(folder)}
        shell = f"cd '{folder}' && PYTHONPATH='{ROOT / 'src'}' PS1='desk> ' TZ=UTC exec bash --norc --noprofile"
        sessions.tmux("new-session", "-d", "-s", "desk", "-x", "80", "-y", "24", shell)

    def start(self) -> None:
        command = [sys.executable, "-m", "wakeful", "up", "--port", "0"]
        log = self.folder / "log"
        with log.open("w") as written:
            self.engine = subprocess.Popen(command, cwd=self.folder, env=self.environment, stderr=written)
        until(lambda: '"ready"' in log.read_text(), "the engine")

    def kill(self) -> None:
        assert self.engine is not None
        self.engine.kill()
        self.engine.wait()
        self.engine = None

    def close(self) -> None:
        (self.folder / "calm").touch()
        if self.engine is not None:
            self.engine.terminate()
            self.engine.wait()

    # ---- the terminal

    def types(self, *keys: str) -> None:
        self.sessions.tmux("send-keys", "-t", "=desk:", *keys)

    def writes(self, text: str) -> None:
        self.sessions.tmux("send-keys", "-t", "=desk:", "-l", text)

    def screen(self) -> str:
        return self.sessions.screen("desk")

    def sees(self, pattern: str) -> None:
        """A line that matches comes into sight."""
        self._waits(lambda shown: re.search(pattern, shown, re.MULTILINE) is not None, f"{pattern!r} in")

    def misses(self, pattern: str) -> None:
        self._waits(lambda shown: re.search(pattern, shown, re.MULTILINE) is None, f"no {pattern!r} in")

    def _waits(self, holds: Callable[[str], bool], what: str) -> None:
        try:
            until(lambda: holds(self.screen()), what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen()}") from None

    def saw(self, pattern: str) -> None:
        """It was in sight, if only for a moment."""
        transcript = self.folder / "transcript"
        until(lambda: re.search(pattern, ESCAPE.sub("", transcript.read_text(errors="replace"))), pattern)

    def opens(self) -> None:
        self.sessions.tmux("pipe-pane", "-t", "=desk:", f"cat > '{self.folder / 'transcript'}'")
        self.writes(f"'{sys.executable}' -m wakeful top; echo ended $?")
        self.types("Enter")
        self.sees(r"^ .[A-Z] wren ")

    # ---- the fleet

    def told(self, *arguments: str) -> Any:
        return json.loads(wakeful(*arguments, "--json", WAKEFUL_DATA=str(self.data)).stdout)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    sessions = Sessions(tmp_path)
    try:
        made = Desk(tmp_path, sessions)
        yield made
        made.close()
    finally:
        sessions.close()


def test_a_fleet_is_seen_paused_ticked_and_its_log_followed_at_eighty_by_twenty_four(desk):
    desk.start()
    desk.opens()
    lines = desk.screen().split("\n")
    assert lines[0].startswith("night desk: 2 agents, sessions 0 of 2, workers 0 of 3")
    assert lines[1].startswith("engine up ") and len(lines) >= 24
    desk.sees(r"^ .I moss  idle, next beat in 1h|^ .I moss  idle, next beat in 2h")

    # The fleet: how long, why, a banner; a tick is refused meanwhile.
    desk.types("P")
    desk.writes("10m")
    desk.types("Enter")
    desk.writes("a look")
    desk.types("Enter")
    desk.sees(r"^ PAUSED  the fleet by operator .*: a look")
    desk.sees(r"^ .P wren  paused with the fleet, until \d")
    assert desk.told("status")["pauses"][0]["reason"] == "a look"
    desk.types("t")
    desk.sees(r"is refused by paused")
    desk.types("R", "y")
    desk.sees(r"^the fleet goes on")
    desk.misses("PAUSED")

    # One agent, found by its name.
    desk.types("/")
    desk.writes("wre")
    desk.sees(r"/wre: 1 of 2")
    desk.types("Enter")
    desk.misses(r"^ .I moss ")
    desk.types("p", "Enter", "Enter")
    desk.sees(r"^ PAUSED  wren by operator")
    desk.types("r")
    desk.sees(r"^wren goes on")

    # A beat, and what it prints, as it prints it.
    desk.types("t")
    desk.sees(r"^wren: run \d+ begins")
    desk.sees(r"^ .R wren  running \d")
    desk.types("l")
    desk.sees(r"^ wren run \d+, stdout: running")
    desk.sees(r"^tock 30$")
    desk.types("PageUp")
    desk.misses("following")
    desk.types("End")
    desk.sees("following")
    (desk.folder / "calm").touch()
    desk.sees(r"^over\n\[run \d+ done")
    desk.types("q", "y")
    desk.sees(r"^wren: .*wake by timer|^wren: .* due")
    desk.sees(r"^. slots +no objection")
    desk.types("Escape")
    desk.sees(r"^ .I wren .* done \d+s")
    desk.types("q")
    desk.sees(r"^ended 0")


def test_an_engine_that_is_killed_leaves_a_picture_that_says_so_and_the_next_one_is_found(desk):
    desk.start()
    desk.opens()
    desk.kill()
    desk.saw(r" STALE \d+s, asking again; this was at [\d:]+: the engine is away")
    assert "wren" in desk.screen()
    desk.start()
    desk.sees(r"^engine up \d+s")
    desk.misses("STALE")
    desk.types("t")
    desk.sees(r"begins$|^moss: run \d+")
    desk.types("q")
    desk.sees(r"^ended 0")


def test_without_an_engine_it_shows_what_is_stored_and_leaves_the_terminal_clean_and_comes_back(desk):
    desk.writes("echo before; stty -g > before")
    desk.types("Enter")
    desk.sees("^before")
    Office(desk.folder).declare(FLEET.format(folder=desk.folder))
    desk.opens()
    desk.sees(r"^ No engine: nothing begins by itself")
    desk.types("C-z")
    desk.sees("Stopped")
    assert "night desk" not in desk.screen() and "before" in desk.screen(), "what was there is there again"
    desk.writes("fg")
    desk.types("Enter")
    desk.sees(r"^night desk")
    desk.sessions.tmux("resize-window", "-t", "=desk:", "-x", "140", "-y", "30")
    desk.sees("WAKES +MINUTES")
    desk.types("?")
    desk.sees("^Letters +R running")
    desk.types("q", "q")
    desk.misses("Letters|night desk")
    desk.writes("stty -g | diff - before && echo the same")
    desk.types("Enter")
    desk.sees("^the same")
