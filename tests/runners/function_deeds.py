"""Handlers for the tests of the function runner, imported by real workers: some good, many bad."""

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading

from wakeful import Result, Run

FOLDER = os.environ.get("FOLDER", ".")
CALLS = [0]
HOARD: list[bytes] = []


def witness(words: object) -> None:
    file = os.open(os.path.join(FOLDER, "witness"), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(file, f"{os.environ.get('RUN', '0')} {words}\n".encode())
    os.close(file)


def until_enough() -> None:
    while not os.path.exists(os.path.join(FOLDER, "enough")):
        select.select([], [], [], 0.01)


# -- what the contract asks for


def succeed(run):
    witness("here")


def fail(run):
    witness("here")
    sys.exit(3)


def go_on(run):
    witness("here")
    until_enough()


def defy(run):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    witness("here")
    until_enough()


# -- one handler for shifts: the task's payload says what to do


def _segfault():
    ctypes.string_at(0)


def _hang_in_c():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    witness("hangs")
    while True:
        ctypes.PyDLL(None).pause()


def _hang():
    witness("hangs")
    try:
        threading.Event().wait()
    finally:
        witness("unwound")


def _fork_and_return():
    os.fork()


def _daemon():
    """Double-forked, in a session of its own, deaf to a polite end; its number is the result."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(write, str(os.getpid()).encode())
            while True:
                signal.pause()
        os._exit(0)
    os.wait()
    return int(os.read(read, 20))


def _flood():
    for _ in range(64):
        os.write(1, b"x" * 1024 * 1024)
    print("the last words")


DEEDS = {
    "nothing": lambda: None,
    "pid": os.getpid,
    "worker": os.getppid,
    "calls": lambda: CALLS[0],
    "text": lambda: "read it",
    "no work": lambda: "NO-WORK: nothing new",
    "number": lambda: 3,
    "list": lambda: [1, {"two": None}],
    "set": lambda: {1, 2},
    "not a number": lambda: float("nan"),
    "large": lambda: "x" * 900_000,
    "huge": lambda: "x" * 2_000_000,
    "raise": lambda: {}["missing"],
    "leave well": lambda: sys.exit(),
    "leave badly": lambda: sys.exit(4),
    "leave with words": lambda: sys.exit("the printer is on fire"),
    "interrupt": lambda: (_ for _ in ()).throw(KeyboardInterrupt),
    "exit 0": lambda: os._exit(0),
    "exit 9": lambda: os._exit(9),
    "abort": os.abort,
    "segfault": _segfault,
    "memory": lambda: len(bytearray(1024 * 1024 * 1024)),
    "hang": _hang,
    "hang in c": _hang_in_c,
    "wait": until_enough,
    "fork": _fork_and_return,
    "witness": lambda: witness("ran"),
    "daemon": _daemon,
    "flood": _flood,
    "print": lambda: print("to out") or print("to err", file=sys.stderr) or subprocess.run(["echo", "from a child"]),
    "bytes": lambda: os.write(1, b"\xff\x00bad"),
    "secret": lambda: print("the word is", os.environ["PASSWORD"]) or {"word": os.environ["PASSWORD"]},
    "secret error": lambda: sys.exit(os.environ["PASSWORD"]),
    "wait and kill worker": lambda: until_enough() or os.kill(os.getppid(), signal.SIGKILL) or signal.pause(),
    "kill worker": lambda: os.kill(os.getppid(), signal.SIGKILL) or signal.pause(),
    "stop worker": lambda: os.kill(os.getppid(), signal.SIGSTOP) or _hang(),
    "spent": lambda: Result(summary="cheap", value={"pages": 2}, tokens=1_200, usd=0.04),
    "quota": lambda: Result(error="used up", error_class="quota"),
    "declared no work": lambda: Result(outcome="no_work"),
    "declared failure": lambda: Result(outcome="failed", summary="half of it", error="the other half"),
    "hoard": lambda: HOARD.append(bytes(16 * 1024 * 1024).replace(b"\0", b"x")),
    "close stdout": lambda: os.close(1),
}


def do(run: Run):
    CALLS[0] += 1
    deed = run.task.payload
    value = DEEDS[deed]()
    return None if isinstance(value, subprocess.CompletedProcess) or deed == "bytes" else value


async def gently(run: Run):
    return f"awaited {run.task.id}"


def beat(run: Run):
    told = {"agent": run.agent, "state": run.state, "hits": run.hits, "cause": run.cause, "subject": run.subject}
    return {**told, "inbox": [[item.id, item.sender, item.trust, item.body] for item in run.inbox], "task": run.task}


def about(run: Run):
    task = run.task
    names = ("WAKEFUL_TASK_ID", "WAKEFUL_ATTEMPT", "WAKEFUL_RUN_ID", "WAKEFUL_BRIEFING", "GREETING")
    variables = {name: os.environ.get(name) for name in names}
    in_time = run.deadline is not None and run.deadline > task.created_at
    return {
        "id": task.id,
        "title": task.title,
        "attempt": [task.attempt, task.attempts],
        "in_time": in_time,
        **variables,
    }


def stepping(run: Run):
    """Two steps; between them, on the first attempt, whatever the payload says."""
    first = run.step("first", lambda: witness("first") or [1, (2, 3)])
    if run.attempt == 1 and run.task.payload in DEEDS:
        DEEDS[run.task.payload]()
    second = run.step("second", lambda: witness("second") or run.was_begun("second"))
    return {"first": first, "second": second, "key": run.key("first")}


def bad_step(run: Run):
    run.step("bad", lambda: witness("done") or {1, 2})


def telling(run: Run):
    sent = run.send("wren", "hello", priority="high", key=None)
    woken = run.wake("wren", "blocker", "look")
    try:
        run.wake("nobody", "blocker", "look")
    except Exception as error:
        return [sent, woken, type(error).__name__, str(error)]
