"""The terminal while `wakeful top` has it, and as it was before, however it ends.

Laws:
- Whatever was changed is put back: on every way out, and before somebody else has the terminal (Ctrl-Z).
- Only lines that changed are written. A line is placed by its row, and a piece after one that is not ASCII by its
  column: a terminal that measures a character otherwise than we do spoils that piece and nothing else.
"""

from __future__ import annotations

import os
import select
import signal
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from wakeful.cli.output import Line
from wakeful.cli.top_cells import width_of
from wakeful.cli.top_screen import Picture
from wakeful.cli.top_state import Size

_CODES = {
    "bold": "1",
    "dim": "2",
    "underline": "4",
    "reverse": "7",
    "black": "30",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "white": "97",
    "on_yellow": "43",
    "on_red": "41",
}
_MANNERS = ("bold", "dim", "underline", "reverse")
# Another screen, no cursor, no lines that go on by themselves, pastes told apart, writing in one direction.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?2004h\x1b[8l\x1b[2J"
_LEAVE = "\x1b[0m\x1b[8h\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l"
_SIGNALS = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCONT)


class Gone(Exception):
    """Nobody is there to draw for any more."""


class Terminal:
    """The one on these two handles. Signals, and whoever pokes, end a wait; which signal came is told by it."""

    def __init__(self, *, coloured: bool, encoding: str = "utf-8", read_from: int = 0, write_to: int = 1) -> None:
        self._in, self._out = read_from, write_to
        self._coloured, self._encoding = coloured, encoding
        self._drawn: list[str] = []
        self._cursor: tuple[int, int] | None = None
        self._before: list[object] = []
        self._called, self._calls = os.pipe()
        os.set_blocking(self._called, False)
        os.set_blocking(self._calls, False)

    # ---- having it

    @contextmanager
    def held(self) -> Iterator[None]:
        kept = {number: signal.signal(number, _noted) for number in _SIGNALS}
        told = signal.set_wakeup_fd(self._calls, warn_on_full_buffer=False)
        try:
            self._enter()
            yield
        finally:
            self._leave()
            signal.set_wakeup_fd(told)
            for number, handler in kept.items():
                signal.signal(number, handler)

    def _enter(self) -> None:
        self._before = termios.tcgetattr(self._in)
        self.take_again()

    def take_again(self) -> None:
        """As we need it, whatever somebody made of it while we were stopped."""
        ours = termios.tcgetattr(self._in)
        # Keys one by one, unseen; Ctrl-C and Ctrl-Z stay signals, and Ctrl-S does not freeze the picture.
        ours[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
        ours[0] &= ~termios.IXON
        ours[6][termios.VMIN], ours[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._in, termios.TCSADRAIN, ours)
        self.forget()
        self._write(_ENTER)

    def _leave(self) -> None:
        # Where the terminal is gone there is nothing to put back.
        with suppress(Gone):
            self._write(_LEAVE)
        with suppress(OSError, termios.error):
            # What was typed and not read is not for whoever comes next.
            termios.tcsetattr(self._in, termios.TCSAFLUSH, self._before)  # type: ignore[arg-type]

    def step_aside(self) -> None:
        """Stopped by Ctrl-Z, until somebody brings us back."""
        self._leave()
        kept = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        # To this thread: it must not get any further before it is stopped.
        signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, kept)
        self._enter()

    def size(self) -> Size:
        try:
            found = os.get_terminal_size(self._out)
        except OSError:
            return Size(80, 24)
        # A terminal that does not know says 0.
        return Size(found.columns or 80, found.lines or 24)

    # ---- waiting

    def poke(self) -> None:
        """From any thread: look again."""
        with suppress(BlockingIOError):
            os.write(self._calls, b"\0")

    def wait(self, seconds: float) -> tuple[bytes | None, set[int]]:
        """What was typed (b"" when nobody can type any more, None for nothing), and the signals that came."""
        ready, _, _ = select.select([self._in, self._called], [], [], max(seconds, 0.0))
        signals: set[int] = set()
        if self._called in ready:
            with suppress(BlockingIOError):
                signals = set(os.read(self._called, 4_096)) - {0}
        if self._in not in ready:
            return None, signals
        try:
            return os.read(self._in, 4_096), signals
        except OSError:
            return b"", signals

    # ---- drawing

    def forget(self) -> None:
        """Draw everything next time."""
        self._drawn, self._cursor = [], None

    def draw(self, picture: Picture) -> None:
        lines = [painted(line, self._coloured) for line in picture.lines]
        pieces = [] if self._drawn else ["\x1b[0m\x1b[2J"]
        for number, line in enumerate(lines):
            if number >= len(self._drawn) or self._drawn[number] != line:
                pieces.append(f"\x1b[{number + 1};1H\x1b[0m\x1b[2K{line}")
        if len(lines) < len(self._drawn):
            pieces.append(f"\x1b[{len(lines) + 1};1H\x1b[0m\x1b[J")
        if not pieces and picture.cursor == self._cursor:
            return
        self._drawn, self._cursor = lines, picture.cursor
        seen = f"\x1b[{self._cursor[0] + 1};{self._cursor[1] + 1}H\x1b[?25h" if self._cursor else ""
        self._write("\x1b[?25l" + "".join(pieces) + seen)

    def _write(self, text: str) -> None:
        data = text.encode(self._encoding, "replace")
        while data:
            try:
                data = data[os.write(self._out, data) :]
            except BlockingIOError:
                # Somebody else who has this terminal made it so.
                select.select([], [self._out], [])
            except OSError as error:
                raise Gone(str(error)) from error


def painted(line: Line, coloured: bool) -> str:
    pieces: list[str] = []
    column, exact = 0, True
    for span in line:
        if not span.text:
            continue
        codes = _codes(span.style, coloured)
        place = "" if exact else f"\x1b[{column + 1}G"
        pieces.append(f"{place}\x1b[{codes}m{span.text}\x1b[0m" if codes else place + span.text)
        column += width_of(span.text)
        exact = span.text.isascii()
    return "".join(pieces)


def _codes(style: str, coloured: bool) -> str:
    words = style.split()
    if not coloured:
        on = any(word.startswith("on_") for word in words)
        words = [word for word in words if word in _MANNERS] + (["reverse", "bold"] if on else [])
    return ";".join(dict.fromkeys(_CODES[word] for word in words if word in _CODES))


def _noted(number: int, frame: object) -> None:
    """What came is read from the pipe."""


def end_by(number: int) -> None:
    """Whoever sent the signal sees that it was this that ended us."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
