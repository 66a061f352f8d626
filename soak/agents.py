"""What agents do to those who run them: `python -I -S soak/agents.py NAME ARGUMENTS`.

Each is bounded: without a guardian it would do no more harm than a few hundred sleeping processes, and all of it
bears the marker of its yard. Signs go to the witness, a line in one append: `RUN words`. Only the standard library.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from functools import cache
from hashlib import sha256
from typing import NoReturn

POLITE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)

# A prime number of bytes, so that what is out of its place is seen; no line ends in it.
PERIOD = 1_000_003


@cache
def _period() -> bytes:
    return b"".join(sha256(b"%d" % number).hexdigest().encode() for number in range(16_384))[:PERIOD]


def pattern(start: int, end: int) -> bytes:
    """The bytes of the endless pattern from `start` to `end`."""
    offset = start % PERIOD
    copies = (end - start + offset) // PERIOD + 1
    return (_period() * copies)[offset : offset + end - start]


def tell(words: str) -> None:
    file = os.open(os.environ["WITNESS"], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(file, f"{os.environ['RUN']} {words}\n".encode())
    os.close(file)


def ignore_polite_signals() -> None:
    for number in POLITE:
        signal.signal(number, signal.SIG_IGN)


def for_ever() -> NoReturn:
    while True:
        signal.pause()


def ignores_signals() -> None:
    ignore_polite_signals()
    tell("here")
    for_ever()


def stops_its_guardian() -> None:
    """Who guards it keeps no time any more."""
    os.kill(os.getppid(), signal.SIGSTOP)
    tell("here")
    for_ever()


def daemons(count: str, then: str) -> None:
    """Double-forked, in sessions of their own, without any environment; the first keeps our stdout and stderr."""
    marker, witness, run = (os.environ[name] for name in ("WAKEFUL_YARD", "WITNESS", "RUN"))
    for number in range(int(count)):
        child = os.fork()
        if child == 0:
            os.setsid()
            if os.fork() == 0:
                arguments = [sys.executable, "-I", "-S", __file__, "daemon", str(number), marker, witness, run]
                os.execve(sys.executable, arguments, {})
            os._exit(0)
        os.waitpid(child, 0)
    if then == "exits":
        return
    ignore_polite_signals()
    for_ever()


def daemon(number: str, marker: str, witness: str, run: str) -> None:
    ignore_polite_signals()
    os.chdir("/")
    if number != "0":
        os.closerange(0, 256)
    os.environ.update(WITNESS=witness, RUN=run)
    tell(f"daemon {os.getpid()}")
    for_ever()


def bomb(generations: str) -> None:
    """Everybody forks, generation after generation, as far as it is let."""
    ignore_polite_signals()
    refused = False
    for _ in range(int(generations)):
        try:
            os.fork()
        except OSError as error:
            assert error.errno == errno.EAGAIN
            refused = True
    tell("refused" if refused else "forked")
    for_ever()


def floods(size: str, *streams: str) -> None:
    """Both streams in turn, a piece of uneven size at a time."""
    total, piece, at = int(size), 777_777, 0
    while at < total:
        data = pattern(at, min(at + piece, total))
        for stream in streams:
            _write(int(stream), data)
        at += len(data)


def _write(stream: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(stream, view) :]


def says(stdout: str, stderr: str) -> None:
    """Bytes, given as hexadecimal digits."""
    _write(1, bytes.fromhex(stdout))
    _write(2, bytes.fromhex(stderr))


def fills_a_large_pipe(size: str) -> None:
    """As much as nobody has read yet, into a pipe that holds it; and ends."""
    import fcntl

    fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1_048_576)
    tell(f"here {os.getpid()}")
    while not os.path.exists("enough"):
        signal.sigtimedwait([], 0.01)
    _write(1, pattern(0, int(size)))


def closes_its_streams(code: str) -> None:
    """Early; and goes on."""
    for stream in (0, 1, 2):
        os.close(stream)
    tell("closed")
    while not os.path.exists("enough"):
        signal.sigtimedwait([], 0.01)
    os._exit(int(code))


def zombies(count: str) -> None:
    """Children that nobody waits for; some of parents who are gone."""
    for _ in range(50):
        if os.fork() == 0:
            os.fork()
            os._exit(0)
    _stillborn(int(count))
    tell("zombies")
    while not os.path.exists("enough"):
        signal.sigtimedwait([], 0.01)


def _stillborn(count: int) -> None:
    """Children that do nothing but exit, without a copy of our memory: thousands in a moment."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    stack = ctypes.create_string_buffer(65_536)
    top = ctypes.c_void_p((ctypes.addressof(stack) + len(stack)) & ~15)
    sharing_memory, until_it_exits = 0x100, 0x4000
    for _ in range(count):
        born = ctypes.cast(libc._exit, ctypes.c_void_p)
        if libc.clone(born, top, sharing_memory | until_it_exits | int(signal.SIGCHLD), None) < 0:
            raise OSError(ctypes.get_errno(), "no more children")


def eats(size: str) -> None:
    """Memory, page by page."""
    hoard = []
    for _ in range(int(size) // 1_048_576):
        hoard.append(b"x" * 1_048_576)
    tell("full")


def dies(number: str) -> None:
    os.kill(os.getpid(), int(number))


def shows_itself() -> None:
    """What it was given: its environment, its files, its place, its briefing."""
    import json

    with open("/proc/self/environ") as file:
        # As it was given; the interpreter may add to its own copy.
        given = file.read().split(chr(0))[:-1]
    shown = {
        "environment": given,
        "files": {name: _target(name) for name in os.listdir("/proc/self/fd")},
        "workdir": os.getcwd(),
        "session": os.getsid(0) == os.getpid(),
        "stdin": sys.stdin.read(),
    }
    print(json.dumps(shown))


def _target(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return "gone"


BY_NAME = (
    *(ignores_signals, daemons, daemon, bomb, floods, says, closes_its_streams, zombies, eats, dies),
    *(fills_a_large_pipe, shows_itself, stops_its_guardian),
)

if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    {behaviour.__name__: behaviour for behaviour in BY_NAME}[sys.argv[1]](*sys.argv[2:])
