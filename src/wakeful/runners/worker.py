"""A warm worker: it imports a handler once, and has a forked process do the tasks of one shift after another.

Laws:
- After the import nothing of the handler's runs here: neither a hang nor a crash of it can keep this process from
  ending a task at its limit, or from telling how it ended.
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

from wakeful.runners.audience import Audience
from wakeful.runners.blame import Told, asked_by, in_words, why_gone
from wakeful.runners.child import Child, fork, settle_in
from wakeful.runners.duty import Duty
from wakeful.runners.handlers import Broken, Handler, load, module_of
from wakeful.runners.kernel import Alarm
from wakeful.runners.lease import FENCING
from wakeful.runners.link import ANSWER, END, HELLO, PART, REQUEST, SHIFT, STOP, VETOED, Wire
from wakeful.runners.processes import descendants, signal_all
from wakeful.runners.record import VERSION, Page, line
from wakeful.runners.whole import now

# In seconds: how long nobody may call at first; how often the clock is looked at, for suspended time does not count in
# a poll; how long after a shift what it left behind is looked for; what is close behind something.
_UNCALLED = 60.0
_LOOK = 10.0
_SWEEP = 0.1
_CLOSE = 0.001
# So many forks that end before they have begun anything, and the next task is told.
_BARREN = 3
_WHOLE = -1
_NEVER = float("inf")


class Worker:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        with open(os.path.join(folder, "briefing.json"), "rb") as file:
            self.settings: dict[str, Any] = json.load(file)
        self.audience = Audience(folder)
        self.page = Page(folder)
        self.alarm = Alarm()
        self.born = now()
        self.child: Child | None = None
        self.duty: Duty | None = None
        self.barren = 0
        self.sweep_at = _NEVER
        # No more shifts, once this one is over.
        self.leaving = False
        self.exhausted = False
        self.handler: Handler | None = None
        self.broken: str | None = None
        self.hello = b""

    # -- coming up ----------------------------------------------------------------------------------------------
    def prepare(self) -> None:
        settle_in()
        module = None
        try:
            self.handler = load(self.settings["handler"], self.settings["root"])
            module = module_of(self.settings["handler"])
        except Broken as problem:
            self.broken = str(problem)
        hello = {"version": VERSION, "pid": os.getpid(), "broken": self.broken, "module": module}
        self.hello = HELLO + line(hello)
        self.bell, self.ring = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        heard, ignored = (signal.SIGTERM, signal.SIGCHLD), (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
        for number in (*heard, *ignored):
            signal.signal(number, signal.SIG_IGN if number in ignored else lambda *_: None)
        signal.set_wakeup_fd(self.ring, warn_on_full_buffer=False)
        self._fork()

    def _fork(self) -> None:
        if self.handler is not None:
            self.child = fork(self.handler, self.page, self.settings["memory"], self._let_go)

    def _let_go(self) -> None:
        """In the forked process."""
        self.audience.close()
        if self.duty is not None:
            self.duty.record.close(sync=False)
        for handle in (self.bell, self.ring, self.alarm.handle):
            os.close(handle)

    # -- the loop -----------------------------------------------------------------------------------------------
    def serve(self) -> None:
        while not self._finished():
            self._watch()
            self._look_at_the_clock()
        if self.child is not None:
            self.child.end(politely=False)

    def _finished(self) -> bool:
        self.audience.prune()
        if self.duty is not None or self.audience.behind:
            return False
        waited = self.audience.called or now() - self.born > _UNCALLED
        return self.leaving or (waited and not self.audience)

    def _watch(self) -> None:
        poller = select.poll()
        self.alarm.set(_NEVER if self.duty is None else self.duty.lease.fence_at)
        for handle in (self.bell, self.alarm.handle, self.audience.listener):
            poller.register(handle, select.POLLIN)
        wires = {wire.fileno(): wire for wire in self.audience.wires}
        child = self.child
        if child is not None:
            if not child.wire.closed:
                wires[child.wire.fileno()] = child.wire
            if not child.output.at_end:
                poller.register(child.output.pipe, select.POLLIN)
        for number, wire in wires.items():
            poller.register(number, select.POLLIN | (select.POLLOUT if wire.behind else 0))
        ready = {number for number, _ in poller.poll(self._patience() * 1000)}
        if child is not None and child.output.pipe in ready:
            child.output.read()
            if child.output.little and len(ready) == 1:
                # The mark of a short task: the next is close behind it, and read with it.
                time.sleep(_CLOSE)
        for number in ready & wires.keys():
            self._hear(wires[number])
        if self.bell in ready:
            self._heed()
        if self.audience.listener.fileno() in ready:
            self.audience.welcome(self.hello, b"" if self.duty is None else self.duty.replay())

    def _hear(self, wire: Wire) -> None:
        wire.flush()
        lines = [] if wire.closed else wire.receive()
        if self.child is not None and wire is self.child.wire:
            self._hear_child(lines)
            return
        for each in lines:
            self._hear_engine(wire, each[:1], each[1:])

    def _patience(self) -> float:
        child, duty = self.child, self.duty
        until = self.sweep_at if self.audience.called else min(self.sweep_at, self.born + _UNCALLED)
        if child is not None and child.kill_at is not None:
            until = min(until, child.kill_at)
        if duty is not None:
            unanswered = self.audience.alone_since + duty.patience
            due = _NEVER if child is not None and child.condemned is not None else duty.due(self.page)
            until = min(until, due, unanswered, duty.unsaid_at(self.page), now() + _LOOK)
        return 3600.0 if until == _NEVER else max(until - now(), 0.0)

    def _look_at_the_clock(self) -> None:
        if self.duty is not None:
            self._look_at_the_limits(self.duty, now())
        moment, child = now(), self.child
        if child is not None and child.kill_at is not None and moment >= child.kill_at:
            # Again, until it is gone.
            child.kill_at = moment + 0.05
            child.end(politely=False)
        if moment >= self.sweep_at:
            self.sweep_at = _NEVER
            self._sweep()

    def _look_at_the_limits(self, duty: Duty, moment: float) -> None:
        child = self.child
        if child is not None and moment >= duty.unsaid_at(self.page):
            self._hear_unsaid(duty)
            if self.duty is not duty:
                return
        if duty.lease.over():
            self._stop(FENCING, at_once=True)
        elif child is not None and child.condemned is None and moment >= duty.due(self.page):
            self._condemn(duty.todo[0], moment + duty.grace)
        if moment >= self.audience.alone_since + duty.patience:
            problem = f"no engine has answered for {duty.patience:g} s"
            self._answer({"number": self.audience.question, "error": problem, "kind": "Unreachable"})

    # -- what engines say ---------------------------------------------------------------------------------------
    def _hear_engine(self, wire: Wire, letter: bytes, content: bytes) -> None:
        if letter == SHIFT and self.duty is None:
            self._begin(wire, content)
        elif letter == ANSWER:
            self._answer(json.loads(content))
        elif letter == STOP and self.duty is not None:
            request = json.loads(content)
            if request["run"] == self.duty.record.run:
                self._stop(request["by"], at_once=request["at_once"], task=request.get("task", _WHOLE))

    def _answer(self, answer: Told) -> None:
        if self.audience.settled(str(answer.get("number"))) and self.child is not None:
            self.child.wire.send(ANSWER + line(answer))

    # -- a shift ------------------------------------------------------------------------------------------------
    def _begin(self, wire: Wire, content: bytes) -> None:
        control, _, body = content.partition(PART)
        duty = Duty(control, body, self.folder)
        self.page.reset(duty.record.run)
        if not duty.claim(os.path.join(self.folder, "started")):
            duty.record.close(sync=False)
            wire.send(VETOED + line({"run": duty.record.run}))
            return
        self.duty, self.barren, self.sweep_at = duty, 0, _NEVER
        if self.broken is not None:
            self.leaving = True
            self._end_rest({"exit_code": 1, "error": self.broken, "error_class": "config"})
            return
        if self.child is None:
            self._fork()
        assert self.child is not None
        self.child.output.begin(os.path.join(duty.record.folder, "stdout"), duty.output_limit, duty.secrets)
        self.child.wire.send(duty.message())
        self.audience.tell(duty.record.header)

    def _hear_child(self, lines: list[bytes]) -> None:
        ended = b""
        for each in lines:
            letter, index, content = each[:1], int(each[1:5], 16), each[5:]
            if letter == END:
                ended += self._ended(index, content)
            elif letter == REQUEST and self.duty is not None:
                self.audience.ask(json.loads(content)["number"], REQUEST + content + b"\n")
        if ended:
            self._tell(ended)

    def _ended(self, index: int, content: bytes) -> bytes:
        """The line for a task that came to its end by itself; none for one whose end is recorded."""
        duty, child = self.duty, self.child
        if duty is None or child is None or index not in duty.todo:
            return b""
        printed = child.output.take(index)
        if printed:
            duty.record.printed(duty.tasks[index], printed)
            content = b'%s, "output": %s}' % (content[:-1], json.dumps(printed).encode())
        duty.end(index, content)
        return content + b"\n"

    def _note(self, lines: bytes) -> None:
        """Ends that only we know of."""
        assert self.duty is not None
        self.duty.record.append(lines)
        self._tell(lines)

    def _tell(self, lines: bytes) -> None:
        duty = self.duty
        assert duty is not None
        self.barren = 0
        if duty.todo:
            self.audience.tell(lines)
        else:
            self._over(duty, lines)

    def _over(self, duty: Duty, lines: bytes) -> None:
        child = self.child
        if child is not None:
            child.output.finish()
        self.audience.tell(lines + duty.record.finish(by=duty.by, call=duty.call))
        # Who is told stores it; to sync each shift would cost more than its tasks. With nobody there, this is all.
        duty.record.close(sync=not self.audience)
        self.duty = None
        self.audience.hush()
        self.sweep_at = now() + _SWEEP
        self.leaving = self.leaving or self.exhausted
        if child is not None:
            child.shifts += 1
            if child.condemned is None and child.worn(self.settings["shifts"], self.settings["growth"]):
                child.end(politely=False)
                child.close()
                self._fork()

    # -- ends that do not come by themselves --------------------------------------------------------------------
    def _stop(self, by: str, *, at_once: bool, task: int | None = _WHOLE) -> None:
        duty, child = self.duty, self.child
        assert duty is not None
        kill_at = now() + (0.0 if at_once else duty.grace)
        if task != _WHOLE:
            self._stop_one(duty, task, by, kill_at)
            return
        duty.by = duty.by or by
        duty.lease.lift()
        if child is None:
            self._end_rest({"by": duty.by})
            return
        for index in duty.todo:
            self.page.take_back(index)
        self._condemn(_WHOLE, kill_at)

    def _stop_one(self, duty: Duty, task: int | None, by: str, kill_at: float) -> None:
        for index in [index for index in duty.todo if duty.tasks[index] == task]:
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
                by, at_once = asked_by(self.folder)
                self._stop(by, at_once=at_once)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self.child is not None and pid == self.child.pid:
                self._bury(self.child, status)

    def _bury(self, child: Child, status: int) -> None:
        """It is gone: its last words are heard, the task that went with it is told, the others go on."""
        while not child.wire.closed and (lines := child.wire.receive()):
            self._hear_child(lines)
        if self.duty is not None:
            self._hear_unsaid(self.duty)
        self.child = None
        self.audience.hush()
        self._sweep()
        duty = self.duty
        if duty is not None:
            told = self._blame(child, duty, status)
            if duty.todo and duty.by is None:
                self._go_on(child, duty)
            child.output.finish()
            if told:
                self._note(told)
            if self.duty is not None and duty.by is not None:
                self._end_rest({"by": duty.by})
        child.close()
        if self.child is None and not self.leaving:
            self._fork()

    def _hear_unsaid(self, duty: Duty) -> None:
        """It tells the record of each end, and us of several at once: it may be at something long since, or gone."""
        begun = [index for index in duty.todo if self.page.began(index) > 0]
        ends = duty.record.ends() if begun else {}
        known = [(index, ends[duty.tasks[index]]) for index in begun if duty.tasks[index] in ends]
        self._hear_child([b"%s%04x%s" % (END, index, json.dumps(end).encode()) for index, end in known])

    def _go_on(self, before: Child, duty: Duty) -> None:
        self._fork()
        assert self.child is not None
        self.child.output.resume(before.output)
        self.child.wire.send(duty.message())

    def _blame(self, child: Child, duty: Duty, status: int) -> bytes:
        """The line for the task that went with its process, if one had begun."""
        begun = [index for index in duty.todo if self.page.began(index) > 0]
        printed = child.output.take_rest(begun[0] if begun else duty.todo[0])
        if not begun:
            self.barren += 1
            if self.barren < _BARREN or duty.by is not None:
                return b""
            error = f"the process that should do it {in_words(status)} before it began, {_BARREN} times"
            return duty.ending(duty.todo[0], {"exit_code": 1, "error": error}, self.page, printed)
        index = begun[0]
        told = why_gone(duty.by or duty.taken_back.get(index), child.condemned, index, status, self.folder)
        # Another worker has another cage, which counts afresh.
        self.exhausted = self.exhausted or bool(told.get("out_of_memory"))
        return duty.ending(index, told, self.page, printed)

    def _end_rest(self, told: Told) -> None:
        duty = self.duty
        assert duty is not None
        self._note(b"".join([duty.ending(index, told, self.page) for index in list(duty.todo)]))

    def _sweep(self) -> None:
        """What tasks have left behind has come down to us; the process that does them keeps its own children."""
        kept = set() if self.child is None else {self.child.pid, *descendants(self.child.pid)}
        signal_all([pid for pid in descendants(os.getpid()) if pid not in kept], signal.SIGKILL)


def main() -> None:
    worker = Worker(sys.argv[1])
    worker.prepare()
    worker.serve()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of the handler's imports must not keep us.
    os._exit(0)
