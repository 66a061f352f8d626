"""`wakeful top` on a terminal of its own: what reaches it, and that it is given back as it was, however top ends."""

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time

import pytest

from tests.cli.office import EVIL, ROOT, wakeful
from tests.cli.test_terminal import ANSI_TITLE

PATIENCE = 20.0
OURS, THEIRS_AGAIN = b"\x1b[?1049h", b"\x1b[?1049l"
START = "from wakeful.cli import main; main(['top'], prog_name='wakeful')"
# A mistake of ours, after the first picture.
BROKEN = f"""\
import wakeful.cli.top_loop as loop
shown = loop.fleet_picture
def once(*given):
    loop.fleet_picture = lambda *given: 1 / 0
    return shown(*given)
loop.fleet_picture = once
{START}
"""


class Terminal:
    """A terminal with top on it, which does not begin before it is looked at."""

    def __init__(self, start: str = START, **environment: str) -> None:
        self.ours, theirs = pty.openpty()
        self.before = termios.tcgetattr(self.ours)
        given = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TERM": "xterm-256color", **environment}
        command = [sys.executable, "-c", start]
        self.process = subprocess.Popen(command, env=given, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self.shown = b""

    def read(self, until: bytes = b"") -> bytes:
        """All that it has shown, until that has appeared or it has ended."""
        end = time.monotonic() + PATIENCE
        while not until or until not in self.shown:
            if not select.select([self.ours], [], [], max(end - time.monotonic(), 0))[0] or time.monotonic() > end:
                self.process.kill()
                raise AssertionError(f"waited for {until!r} in {self.shown[-3_000:]!r}")
            try:
                self.shown += os.read(self.ours, 65_536)
            except OSError:
                break
        return self.shown

    def types(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def given_back(self) -> bool:
        """The screen, the cursor, the lines that go on by themselves, and the settings."""
        rest = self.shown.rpartition(THEIRS_AGAIN)
        undone = [b"\x1b[?25h", b"\x1b[?7h", b"\x1b[?2004l"]
        tail = rest[0][-60:]
        return bool(rest[1]) and all(each in tail for each in undone) and termios.tcgetattr(self.ours) == self.before

    def end(self) -> int:
        code = self.process.wait(60)
        os.close(self.ours)
        return code


def test_what_agents_wrote_is_seen_and_none_of_it_obeyed(foul):
    terminal = Terminal()
    shown = terminal.read(b"q\x1b[0m")
    assert b"wren" in shown and b"moss" in shown and b"eviltitle" not in shown
    assert ANSI_TITLE not in shown and b"\x07" not in shown and b"\xc2\x9b" not in shown
    assert b"\x1b[31mred" not in shown and "\u202e".encode() not in shown
    # moss failed, and so stands first.
    terminal.types(b"j\r")
    assert b"before ]0;evil" in terminal.read(b"before ]0;evil"), "its log too"
    terminal.read(b"gnp")
    assert EVIL.encode() not in terminal.shown and ANSI_TITLE not in terminal.shown
    terminal.types(b"qq")
    terminal.read()
    assert terminal.given_back() and terminal.end() == 0
    assert b"Traceback" not in terminal.shown


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP), (signal.SIGINT, 0)]
)
def test_a_signal_ends_it_and_the_terminal_is_as_it_was(office, number, code):
    terminal = Terminal()
    terminal.read(b"wren")
    assert termios.tcgetattr(terminal.ours) != terminal.before
    terminal.process.send_signal(number)
    terminal.read()
    assert terminal.given_back() and terminal.end() == code
    assert b"Traceback" not in terminal.shown


def test_a_mistake_of_ours_is_told_on_a_terminal_that_is_as_it_was(office):
    terminal = Terminal(BROKEN)
    after = terminal.read().rpartition(THEIRS_AGAIN)[2]
    assert b"Traceback" in after and b"ZeroDivisionError" in after
    assert terminal.given_back() and terminal.end() == 1


def test_without_colours_none_are_drawn_and_what_stands_out_is_turned(office):
    assert wakeful("pause", "--reason", "a look").exit_code == 0
    terminal = Terminal(NO_COLOR="1")
    shown = terminal.read(b"q\x1b[0m")
    terminal.types(b"q")
    assert terminal.read() and terminal.end() == 0
    assert b"\x1b[7;1m PAUSED  the fleet" in shown
    assert not [code for code in range(30, 50) if f"\x1b[{code}m".encode() in shown or f";{code}m".encode() in shown]


def test_a_terminal_that_goes_away_ends_it(office):
    terminal = Terminal()
    terminal.read(b"wren")
    os.close(terminal.ours)
    assert terminal.process.wait(60) == 0


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        ([], {}, "top draws on a terminal, and this is none (use wakeful status, or wakeful status --json)"),
        (["--json"], {}, "top draws on a terminal (for JSON ask wakeful status --json)"),
        ([], {"WAKEFUL_URL": "http://127.0.0.1:1", "WAKEFUL_TOKEN": "x"}, "wakeful top is for the operator"),
    ],
)
def test_where_it_cannot_draw_it_says_what_to_ask_instead(office, arguments, environment, told):
    result = wakeful("top", *arguments, **environment)
    assert result.exit_code in (1, 2) and result.stdout == ""
    assert told in result.stderr


@pytest.mark.parametrize("kind", ["dumb", ""])
def test_on_a_terminal_without_a_cursor_it_says_so(office, kind):
    terminal = Terminal(TERM=kind)
    assert b"wakeful status --watch" in terminal.read() and OURS not in terminal.shown
    assert terminal.end() == 2


def test_where_no_fleet_is_it_says_so_before_anything_is_drawn(nowhere):
    terminal = Terminal()
    assert b"there is no fleet here" in terminal.read() and OURS not in terminal.shown
    assert terminal.end() == 2
