"""On a real terminal: colours of our own, none of an agent's, and a picture that is redrawn until Ctrl-C."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from tests.cli.office import EVIL, ROOT, wakeful

ANSI_TITLE = b"\x1b]0;"


class Terminal:
    """A command with a terminal of its own."""

    def __init__(self, *arguments: str, columns: int = 100) -> None:
        self.ours, theirs = pty.openpty()
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TERM": "xterm-256color", "COLUMNS": str(columns)}
        environment.pop("NO_COLOR", None)
        command = [sys.executable, "-m", "wakeful", *arguments]
        self.process = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)

    def read(self, until: bytes = b"") -> bytes:
        """What it shows, until that appears or it has ended."""
        shown = b""
        while not until or until not in shown:
            try:
                shown += os.read(self.ours, 65_536)
            except OSError:
                break
        return shown

    def end(self) -> int:
        os.close(self.ours)
        return self.process.wait(60)


@pytest.mark.parametrize("command", [["status"], ["runs"], ["logs", "1"]])
def test_an_agents_sequences_do_not_reach_it(foul, command):
    terminal = Terminal(*command)
    shown = terminal.read()
    assert terminal.end() == 0
    assert (b"\x1b[1m" in shown) is (command != ["logs", "1"]), "our own colours do"
    assert ANSI_TITLE not in shown and b"\x07" not in shown and b"\xc2\x9b" not in shown
    assert b"\x1b[31mred" not in shown


@pytest.mark.parametrize("columns", [80, 30])
def test_in_a_narrow_window_no_column_is_cut_short_or_left_out(office, columns):
    wakeful("task", "add", "proofs of chapter one", "--role", "norole")
    terminal = Terminal("task", "list", columns=columns)
    shown = terminal.read().decode()
    assert terminal.end() == 0
    for word in ("task", "priority", "attempts", "role norole", "somebody who takes it", "title", "proofs"):
        assert word in shown, shown


def test_raw_output_is_refused_on_it(foul):
    terminal = Terminal("logs", "--raw", "1")
    shown = terminal.read()
    assert terminal.end() == 2
    assert b"would let the agent write to your terminal" in shown
    assert EVIL.encode() not in shown


def test_a_watched_status_is_redrawn_until_the_interrupt(foul):
    terminal = Terminal("status", "--watch")
    first = terminal.read(b"wren")
    assert b"wren" in first and ANSI_TITLE not in first
    assert b"wren" in terminal.read(b"wren"), "drawn again"
    terminal.process.send_signal(signal.SIGINT)
    rest = terminal.read()
    assert terminal.end() == 0
    assert b"Traceback" not in rest


def test_an_engine_tells_where_its_dashboard_is_with_the_token_behind_the_fragment(nowhere):
    (nowhere / "fleet.org").write_text("* wren\n:PROPERTIES:\n:RUN: true\n:END:\n")
    terminal = Terminal("up", "--port", "0")
    shown = terminal.read(b"#token=")
    terminal.process.send_signal(signal.SIGTERM)
    rest = terminal.read()
    assert terminal.end() == 0
    token, url = wakeful("token").stdout.strip(), json.loads((nowhere / ".wakeful" / "engine.json").read_text())["url"]
    assert f"dashboard: {url}/#token={token}\r\n".encode() in shown + rest
    # The log, which may be kept, has the address alone.
    (ready,) = [line for line in shown.splitlines() if b" ready " in line]
    assert f"dashboard={url}/".encode() in ready and token.encode() not in ready


def test_all_of_a_kind_is_asked_for_and_its_progress_is_shown(foul):
    for _ in range(2):
        wakeful("task", "add", "t", "--agent", "wren")
    terminal = Terminal("task", "cancel", "--all")
    assert b"3 tasks would be cancelled. Go on? [y/N]" in terminal.read(b"[y/N]")
    os.write(terminal.ours, b"y\n")
    shown = terminal.read()
    assert terminal.end() == 0
    assert b"3/3" in shown and b"3 tasks are cancelled" in shown


def test_what_a_person_does_not_mean_is_not_done(foul):
    terminal = Terminal("task", "cancel", "--all")
    terminal.read(b"[y/N]")
    os.write(terminal.ours, b"\n")
    assert b"nothing was changed" in terminal.read()
    assert terminal.end() == 1
    assert "pending" in wakeful("task", "show", "2").stdout
