"""An interactive agent as tests need it: a terminal in raw mode, pastes in brackets, an answer in a file.

`session_agent.py FOLDER HABIT`: every byte that reaches it is kept in FOLDER/typed.
"""

import json
import os
import re
import signal
import sys
import tty
from pathlib import Path

FOLDER, HABIT = Path(sys.argv[1]), sys.argv[2]
RESULT = re.compile(r"rename it to (\S+) so that")


def show(text: str) -> None:
    os.write(1, text.encode())


def answer(line: str) -> None:
    result = Path(RESULT.search(line)[1].strip("'"))
    whole = json.dumps({"outcome": "done", "summary": "answered"})
    if HABIT in ("answers", "works first", "leaves", "hesitates"):
        other = result.with_name("unfinished")
        other.write_text(whole)
        other.rename(result)
    elif HABIT == "writes slowly":
        with result.open("w") as file:
            for part in (whole[:9], whole[9:]):
                file.write(part)
                file.flush()
                wait_for("enough")
    elif HABIT == "scribbles":
        result.write_text("all is well")
        os.utime(result, (1, 1))
    if HABIT == "leaves":
        sys.exit(0)


def wait_for(name: str) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    while not (FOLDER / name).exists():
        signal.sigwait({signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, 0)


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    tty.setraw(0)
    show("\x1b[?2004h> ")
    if HABIT == "works first":
        turns = 0
        while not (FOLDER / "calm").exists():
            turns += 1
            show(f"\r> thinking {turns}")
            if turns == 20:
                (FOLDER / "worked").touch()
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            signal.sigwait({signal.SIGALRM})
        show("\r\n> ")
    line, entered = b"", 0
    while data := os.read(0, 65536):
        with (FOLDER / "typed").open("ab") as file:
            file.write(data)
        for part in re.split(rb"(\r)", data):
            if part == b"\r":
                entered += 1
                if HABIT == "hesitates" and entered == 1:
                    continue
                if line:
                    show("\r\n> ")
                    answer(line.decode())
                line = b""
            elif part and b"\x03" not in part:
                clean = re.sub(rb"\x1b\[20[01]~", b"", part)
                line += clean
                if HABIT != "asks a question":
                    show(clean.decode())


main()
