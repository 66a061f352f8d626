"""A warm worker: it imports a handler once, and has a forked process do the tasks of one shift after another.

Laws:
- After the import nothing of the handler's runs here: neither a hang nor a crash of it can keep this process from ending
  a task at its limit, or from telling how it ended.
- A task that takes its process with it costs only itself; the others of its shift go on in a fresh fork.
- An end is recorded before it is told. Whoever comes later is told everything again, in order.
- A worker without a shift and without anybody to tell is gone.
- One process, no threads, no asyncio; it runs under a guardian and sees its end as the guardian's.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import Any

from wakeful.runners.cage import Cage
from wakeful.runners.child import Child, fork, settle_in
from wakeful.runners.duty import Duty
from wakeful.runners.guardian import now
from wakeful.runners.handlers import Broken, Handler, load
from wakeful.runners.link import ANSWER, END, HELLO, PART, REQUEST, SHIFT, STOP, VETOED, Wire, accept, listen
from wakeful.runners.processes import descendants, signal_all
from wakeful.runners.record import VERSION, Page, line

# In seconds: how long nobody may call at first; how often the clock is looked at, for suspended time does not count in a
# poll; how long after a shift what it left behind is looked for.
_UNCALLED = 60.0
_LOOK = 10.0
_SWEEP = 0.1
# So many forks that end before they have begun anything, and the next task is told.
_BARREN = 3
_WHOLE = -1


class Worker:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        with open(os.path.join(folder, "briefing.json"), "rb") as file:
            self.settings: dict[str, Any] = json.load(file)
        self.listener = listen(folder)
        self.page = Page(folder)
        self.engines: list[Wire] = []
        self.called = False
        self.born = now()
        self.child: Child | None = None
        self.duty: Duty | None = None
        # What the handler asks and nobody has answered: its number, the request, since when nobody listens.
        self.asking: tuple[str, bytes, float] | None = None
        self.barren = 0
        self.sweep_at: float | None = None
        self.leaving = False
        self.handler: Handler | None = None
        self.broken: str | None = None
        self.module: tuple[str, int] | None = None

    # -- coming up ----------------------------------------------------------------------------------------------
    def prepare(self) -> None:
        settle_in()
        try:
            self.handler = load(self.settings["handler"], self.settings["root"])
            self.module = _module_of(self.settings["handler"])
        except Broken as problem:
            self.broken = str(problem)
        self.bell, ring = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        self.ring = ring
        self._fork()

    def _fork(self) -> None:
        if self.handler is not None:
            self.child = fork(self.handler, self.page, self.settings["memory"], self._let_go)

    def _let_go(self) -> None:
        """In the forked process."""
        self.listener.close()
        for wire in self.engines:
            wire.close()
        if self.duty is not None:
            self.duty.record.close(sync=False)
        os.close(self.bell)
        os.close(self.ring)

    # -- the loop -----------------------------------------------------------------------------------------------
    def serve(self) -> None:
        while not self._finished():
            self._watch()
            self._look_at_the_clock()
        if self.child is not None:
            self.child.end(politely=False)

    def _finished(self) -> bool:
        if self.duty is not None or any(wire.behind for wire in self.engines):
            return False
        waited = self.called or now() - self.born > _UNCALLED
        return self.leaving or (not self.engines and waited)

    def _watch(self) -> None:
        poller = select.poll()
        poller.register(self.bell, select.POLLIN)
        poller.register(self.listener, select.POLLIN)
        wires = {wire.fileno(): wire for wire in self.engines}
        child = self.child
        if child is not None:
            wires[child.wire.fileno()] = child.wire
            if not child.output.at_end:
                poller.register(child.output.pipe, select.POLLIN)
        for number, wire in wires.items():
            poller.register(number, select.POLLIN | (select.POLLOUT if wire.behind else 0))
        ready = dict(poller.poll(self._patience() * 1000))
        if self.bell in ready:
            self._heed()
        if self.listener.fileno() in ready:
            self._welcome()
        for number, wire in wires.items():
            if number in ready:
                self._hear(wire)
        if child is not None and child is self.child and child.output.pipe in ready:
            child.output.read()

    def _hear(self, wire: Wire) -> None:
        wire.flush()
        lines = wire.receive() if not wire.closed else []
        if self.child is not None and wire is self.child.wire:
            self._hear_child(lines)
            return
        for each in lines:
            self._heed_engine(wire, each[:1], each[1:])
        if wire.closed and wire in self.engines:
            self._forget(wire)

    def _patience(self) -> float:
        until = [self.born + _UNCALLED] if not self.called else []
        child, duty = self.child, self.duty
        if duty is not None:
            until += [duty.lease_at, duty.due(self.page) if child is None or child.condemned is None else duty.lease_at]
            until.append(now() + _LOOK)
        if child is not None and child.kill_at is not None:
            until.append(child.kill_at)
        if self.asking is not None and not self.engines and duty is not None:
            until.append(self.asking[2] + duty.patience)
        if self.sweep_at is not None:
            until.append(self.sweep_at)
        return max(min(until) - now(), 0.0) if until else 3600.0

    def _look_at_the_clock(self) -> None:
        moment, duty, child = now(), self.duty, self.child
        if duty is not None and moment >= duty.lease_at and not duty.renewed():
            self._stop("fencing", at_once=True)
        if duty is not None and child is not None and child.condemned is None and moment >= duty.due(self.page):
            self._condemn(duty.todo[0], moment + duty.grace)
        if child is not None and child.kill_at is not None and moment >= child.kill_at:
            child.kill_at = moment + 0.05
            child.end(politely=False)
        if self.asking is not None and not self.engines and duty is not None:
            number, _, since = self.asking
            if moment >= since + duty.patience:
                problem = f"no engine has answered for {duty.patience:g} s"
                self._answer(number, {"number": number, "error": problem, "kind": "Unreachable"})
        if self.sweep_at is not None and moment >= self.sweep_at:
            self.sweep_at = None
            self._sweep()

    # -- those who are told -------------------------------------------------------------------------------------
    def _welcome(self) -> None:
        wire = accept(self.listener)
        if wire is None:
            return
        self.called = True
        self.engines.append(wire)
        hello = {"version": VERSION, "pid": os.getpid(), "broken": self.broken, "module": self.module}
        wire.send(HELLO + line(hello))
        if self.duty is not None:
            wire.send(self.duty.record.replay())
        if self.asking is not None:
            wire.send(self.asking[1])

    def _forget(self, wire: Wire) -> None:
        self.engines.remove(wire)
        wire.close()
        if self.asking is not None:
            number, request, _ = self.asking
            self.asking = (number, request, now())
            if self.engines:
                self.engines[-1].send(request)

    def _tell(self, lines: bytes) -> None:
        for wire in self.engines:
            wire.send(lines)

    def _heed_engine(self, wire: Wire, letter: bytes, content: bytes) -> None:
        if letter == SHIFT and self.duty is None:
            self._begin(wire, content)
        elif letter == ANSWER:
            answer = json.loads(content)
            self._answer(answer.get("number"), answer)
        elif letter == STOP and self.duty is not None:
            request = json.loads(content)
            if request.get("run") == self.duty.record.run:
                self._stop(request["by"], at_once=request["at_once"], task=request.get("task", _WHOLE))

    def _answer(self, number: str, answer: dict[str, Any]) -> None:
        if self.asking is not None and self.asking[0] == number and self.child is not None:
            self.asking = None
            self.child.wire.send(ANSWER + line(answer))

    # -- a shift ------------------------------------------------------------------------------------------------
    def _begin(self, wire: Wire, content: bytes) -> None:
        control, _, body = content.partition(PART)
        duty = Duty(control, body, self.folder)
        self.page.reset(duty.record.run)
        if not duty.record.claim(b"worker", os.path.join(self.folder, "guardian.json")):
            duty.record.close(sync=False)
            wire.send(VETOED + line({"run": duty.record.run}))
            return
        self.duty, self.barren, self.sweep_at = duty, 0, None
        self._tell(duty.record.header)
        if self.broken is not None:
            self.leaving = True
            self._end_rest({"exit_code": 1, "error": self.broken, "error_class": "config"})
            return
        if self.child is None:
            self._fork()
        assert self.child is not None
        self.child.output.begin(os.path.join(duty.record.folder, "stdout"), duty.output_limit, duty.secrets)
        self._dispatch()

    def _dispatch(self) -> None:
        assert self.duty is not None and self.child is not None
        self.child.wire.send(self.duty.message())

    def _hear_child(self, lines: list[bytes]) -> None:
        ended = b""
        for each in lines:
            letter, index, content = each[:1], int(each[1:5], 16), each[5:]
            if letter == END:
                ended += self._ended(index, content)
            elif letter == REQUEST and self.duty is not None:
                request = REQUEST + content + b"\n"
                self.asking = (json.loads(content)["number"], request, now())
                if self.engines:
                    self.engines[-1].send(request)
        if ended:
            self._note(ended)

    def _ended(self, index: int, content: bytes) -> bytes:
        """The line for a task that came to its end by itself; none for one whose end is recorded."""
        duty, child = self.duty, self.child
        if duty is None or child is None or index not in duty.todo:
            return b""
        printed = child.output.take(index)
        if printed:
            content = b'%s,"output":%s}' % (content[:-1], json.dumps(printed).encode())
        duty.end(index, content)
        return content + b"\n"

    def _note(self, lines: bytes) -> None:
        assert self.duty is not None
        self.barren = 0
        self.duty.record.append(lines)
        self._tell(lines)
        if not self.duty.todo:
            self._over()

    def _over(self) -> None:
        duty, child = self.duty, self.child
        assert duty is not None
        if child is not None:
            child.output.finish()
        self._tell(duty.record.finish(by=duty.by, call=duty.call))
        # Who is told stores it; a sync for each shift would cost more than its tasks. Without anybody, this is all there is.
        duty.record.close(sync=not self.engines)
        self.duty = self.asking = None
        self.sweep_at = now() + _SWEEP
        if child is not None:
            child.shifts += 1
            if child.condemned is None and self._worn(child):
                child.end(politely=False)

    def _worn(self, child: Child) -> bool:
        return child.shifts >= self.settings["shifts"] or child.grown(self.settings["growth"])

    # -- ends that do not come by themselves --------------------------------------------------------------------
    def _stop(self, by: str, *, at_once: bool, task: int | None = _WHOLE) -> None:
        duty, child = self.duty, self.child
        assert duty is not None
        kill_at = now() + (0.0 if at_once else duty.grace)
        if task != _WHOLE:
            self._stop_one(duty, task, by, kill_at)
            return
        duty.by = duty.by or by
        duty.lease_at = float("inf")
        if child is None:
            self._end_rest({"by": duty.by})
        else:
            for index in duty.todo:
                self.page.take_back(index)
            self._condemn(_WHOLE, kill_at)

    def _stop_one(self, duty: Duty, task: int | None, by: str, kill_at: float) -> None:
        indexes = [index for index in duty.todo if duty.tasks[index] == task]
        for index in indexes:
            duty.taken_back[index] = by
            if self.page.began(index) > 0:
                self._condemn(index, kill_at)
            else:
                self.page.take_back(index)
                self._note(duty.ending(index, {"by": by}, self.page))

    def _condemn(self, index: int, kill_at: float) -> None:
        child = self.child
        assert child is not None
        first = child.condemned is None
        child.condemned = index if first else child.condemned
        child.kill_at = min(kill_at, child.kill_at if child.kill_at is not None else kill_at)
        if first and kill_at > now():
            child.end(politely=True)

    def _heed(self) -> None:
        numbers = os.read(self.bell, 4096)
        if signal.SIGTERM in numbers:
            self.leaving = True
            if self.duty is not None:
                by, at_once = _asked_by(self.folder)
                self._stop(by, at_once=at_once)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self.child is not None and pid == self.child.pid:
                self._bury(status)

    def _bury(self, status: int) -> None:
        child, duty = self.child, self.duty
        assert child is not None
        while lines := child.wire.receive():
            self._hear_child(lines)
        duty = self.duty
        self.child, self.asking = None, None
        self._sweep()
        if duty is None:
            child.close()
            self._fork()
            return
        lines_of_end = self._blame(child, duty, status)
        if duty.by is None and duty.todo and not self.leaving:
            self._fork()
            assert self.child is not None
            self.child.output.resume(child.output)
        else:
            child.output.finish()
        child.close()
        if lines_of_end:
            self._note(lines_of_end)
        if self.duty is not None and self.child is not None:
            self._dispatch()
        elif self.duty is not None:
            self._end_rest({"by": duty.by or "the end of its worker"})

    def _blame(self, child: Child, duty: Duty, status: int) -> bytes:
        """The line for the task that went with its process, if one had begun."""
        begun = [index for index in duty.todo if self.page.began(index) > 0]
        printed = child.output.take_rest()
        self.barren += 1
        if not begun:
            if self.barren < _BARREN or duty.by is not None or not duty.todo:
                return b""
            error = f"the process that should do it ended {_BARREN} times before it began ({_status(status)})"
            return duty.ending(duty.todo[0], {"exit_code": 1, "error": error}, self.page, printed)
        (index, *_) = begun
        by = duty.by or duty.taken_back.get(index)
        if by is not None:
            told: dict[str, Any] = {"by": by}
        elif child.condemned == index:
            told = {"timed_out": True}
        elif child.condemned is not None:
            # The task that it was to be ended for had just ended by itself.
            told = {"by": "the late end of the task before it"}
        else:
            told = self._crash(status)
        return duty.ending(index, told, self.page, printed)

    def _crash(self, status: int) -> dict[str, Any]:
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            exhausted = number == signal.SIGKILL and _cage(self.folder).out_of_memory()
            self.leaving = self.leaving or exhausted  # another worker, with another cage, counts afresh
            return {"signal": number, "out_of_memory": exhausted, "error": f"its process was {_status(status)}"}
        # Whatever it says, a process that ends within a task has not done it.
        return {"exit_code": os.WEXITSTATUS(status) or None, "error": f"its process {_status(status)} within the task"}

    def _end_rest(self, told: dict[str, Any]) -> None:
        duty = self.duty
        assert duty is not None
        self._note(b"".join([duty.ending(index, told, self.page) for index in list(duty.todo)]))

    def _sweep(self) -> None:
        """What tasks have left behind has come down to us; the process that does them keeps its own children."""
        kept = set() if self.child is None else {self.child.pid, *descendants(self.child.pid)}
        signal_all([pid for pid in descendants(os.getpid()) if pid not in kept], signal.SIGKILL)


def _status(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            return f"ended by {signal.Signals(number).name}"
        except ValueError:
            return f"ended by signal {number}"
    return f"ended with exit code {os.WEXITSTATUS(status)}"


def _asked_by(folder: str) -> tuple[str, bool]:
    try:
        with open(os.path.join(folder, "stop.json"), "rb") as file:
            request = json.load(file)
        return str(request["by"]), bool(request["at_once"])
    except (OSError, ValueError, KeyError):
        return "a signal to its worker", False


def _cage(folder: str) -> Cage:
    try:
        with open(os.path.join(folder, "guardian.json"), "rb") as file:
            return Cage(dict(json.load(file).get("cage", {})))
    except (OSError, ValueError):
        return Cage({})


def _module_of(target: str) -> tuple[str, int] | None:
    """The handler's file and when it was changed: who edits it wants the new one."""
    path = getattr(sys.modules[target.partition(":")[0]], "__file__", None)
    try:
        return (path, os.stat(path).st_mtime_ns) if path else None
    except OSError:
        return None


def main() -> None:
    worker = Worker(sys.argv[1])
    worker.prepare()
    worker.serve()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of the handler's imports must not keep us.
    os._exit(0)


if __name__ == "__main__":
    main()
