"""The guardian of one run: it owns the process tree, the wall clock, the meter, the output and the exit record.

Laws:
- It outlives whoever asked for the run, and ends only when nothing of the run is alive.
- It creates `started` exclusively before it executes the agent; where somebody vetoed the run first, it just leaves.
  Whoever asked holds the other end of a line that is closed when the one or the other has happened.
- TERM, the grace, KILL to every descendant, daemonised ones too; a lease that is not extended in time is KILL at once,
  and one that is over before the agent is executed means that it never is.
- The exit record is the last thing written: whole, synced, and never replaced.
- It runs in a process forked from a small warm one. Only the standard library, little of it, no threads, no asyncio.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
from typing import Any

from wakeful.runners.cage import PREFIX, Cage, Mounts
from wakeful.runners.capture import Capture, redact_file
from wakeful.runners.kernel import Alarm, be_called, die_with_parent, inherit_orphans
from wakeful.runners.lease import FENCING, Lease, veto
from wakeful.runners.meter import Meter
from wakeful.runners.processes import boot_id, descendants, is_zombie, not_executed, signal_all, start_time
from wakeful.runners.redaction import Redactor
from wakeful.runners.tally import Tally
from wakeful.runners.whole import create_whole, now, write_at_last

RECORD_VERSION = 1
# The usual limit on the processes of a run, set before there is one.
PROCESSES = 512
_CHUNK = 256 * 1024
# Suspended time does not count in a poll: we look at the clock this often, in seconds. The end of a lease rings itself.
_LOOK = 10.0
# From the process that was to become the agent, in place of a reason.
_TOO_LATE = b"\0"

# What the process that becomes the agent is told.
_OF_THE_AGENT = ("folder", "command", "workdir", "environment", "leased_until", "fence")
_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def rehearse() -> None:
    """A page that we share is copied when it is first written to: better before there is a run that waits for it."""
    names = {f"NAME_{number}": "a value" for number in range(32)}
    order = json.loads(json.dumps({"folder": "/", "environment": names, "leased_until": None, "fence": 0.0}))
    Lease(order["folder"], order["leased_until"], order["fence"]).over()
    Redactor(["a secret"])


def become_agent(cage: Cage, go: int, out: int, err: int, fail: int) -> None:
    """In the child: wait for the word, then become the agent. Nothing may raise past us."""
    what: dict[str, Any] = {"command": [""]}
    try:
        os.setsid()
        die_with_parent()
        cage.enter()
        message = b"".join(iter(lambda: os.read(go, 65536), b""))
        if not message:
            os._exit(0)
        what = json.loads(message)
        os.dup2(os.open(os.path.join(what["folder"], "briefing.txt"), os.O_RDONLY | os.O_CLOEXEC), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        signal.set_wakeup_fd(-1)
        for number in (*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.closerange(3, fail)
        os.closerange(fail + 1, 4096)
        os.chdir(what["workdir"])
        if Lease(what["folder"], what["leased_until"], what["fence"]).over():
            os.write(fail, _TOO_LATE)
            return
        os.execvpe(what["command"][0], what["command"], what["environment"])
    except BaseException as error:
        os.write(fail, not_executed(what["command"][0], error).encode()[:4000])
    finally:
        os._exit(127)


class Guardian:
    """Made in two steps: `prepare` does all that does not depend on the run, before there is one; `run` is the run."""

    def __init__(self, mounts: Mounts) -> None:
        self.mounts = mounts
        self.order: dict[str, Any] = {}
        self.folder = ""
        self.steps: dict[str, float] = {}
        self.agent = 0
        self.status: int | None = None
        self.usage: resource.struct_rusage | None = None
        self.error: str | None = None
        self.by: str | None = None
        self.timed_out = False
        self.over_limit: dict[str, Any] | None = None
        self.fenced = False
        self.leftovers = 0
        self.gone = False
        self.kill_at: float | None = None
        self.blows = 0
        self.deadline = float("inf")
        self.captures: dict[int, Capture] = {}
        self.redactors: dict[int, Redactor] = {}

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def step(self, name: str) -> None:
        self.steps[name] = now()

    # -- before there is a run ----------------------------------------------------------------------------------
    def prepare(self) -> None:
        """Settle in, and fork the process that will become the agent: entering a cage may cost twenty milliseconds."""
        os.setsid()
        inherit_orphans()
        be_called("wakeful-guard")
        self.pid = os.getpid()
        self.who = {"pid": self.pid, "start_time": start_time(self.pid), "boot_id": boot_id()}
        self.bell, ring = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        self.alarm = Alarm()
        nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        self.cage = Cage.make(self.mounts, f"{PREFIX}-{self.pid}-{self.who['start_time']}")
        self.cage.limit(PROCESSES, None)
        self._fork_agent()
        rehearse()

    def _fork_agent(self) -> None:
        self.out, out_write = os.pipe2(os.O_CLOEXEC)
        self.err, err_write = os.pipe2(os.O_CLOEXEC)
        self.fail, fail_write = os.pipe2(os.O_CLOEXEC)
        go_read, self.go = os.pipe2(os.O_CLOEXEC)
        self.agent = os.fork()
        if self.agent == 0:
            os.close(self.go)
            become_agent(self.cage, go_read, out_write, err_write, fail_write)
        for used in (go_read, out_write, err_write, fail_write):
            os.close(used)

    def dismiss(self) -> None:
        """There will be no run: nothing was executed, nothing is left."""
        os.close(self.go)
        os.waitpid(self.agent, 0)
        self.cage.remove()

    # -- the run ------------------------------------------------------------------------------------------------
    def run(self, order: dict[str, Any], line: int) -> None:
        self.order, self.folder, self.line = order, order["folder"], line
        self.steps["asked"] = order["asked"]
        self.step("taken")
        self.lease = Lease(self.folder, order["leased_until"], order["fence"])
        self.meter, self.tally = Meter(self.path("result.json"), order["most"]), Tally()
        if not self._claim():
            self.dismiss()
            return
        try:
            self._carry_out()
        except BaseException as error:
            # Whatever becomes of us, nothing of the run goes on without us.
            self.error = f"its guardian failed: {error!r}"
            self._end_all()
            self._record()
            raise
        finally:
            self.cage.remove()

    def _carry_out(self) -> None:
        self._execute()
        self._watch()
        self._finish_output()
        # The result file is the agent's own, but others will read it.
        redact_file(self.path("result.json"), self.order["secrets"])
        self._record()

    def _end_all(self) -> None:
        until = now() + 5.0
        while not self.gone and now() < until:
            self._kill()
            time.sleep(0.01)

    def _claim(self) -> bool:
        try:
            if self.lease.over():
                veto(self.folder)
                return False
            won = create_whole(self.path("started"), {**self.who, "cage": self.cage.folders})
        except OSError:
            # Not even that can be written: the run stays unstarted, and is decided again.
            return False
        self.step("claimed")
        return won

    def _execute(self) -> None:
        order = self.order
        if (order["processes"], order["memory"]) != (PROCESSES, None):
            self.cage.limit(order["processes"], order["memory"])
        # The word first: while the agent is executed, we make ready to listen.
        self._say_go({key: order[key] for key in _OF_THE_AGENT})
        os.close(self.line)
        for stream, name in ((self.out, "stdout"), (self.err, "stderr")):
            os.set_blocking(stream, False)
            self.captures[stream] = Capture(self.path(name), order["output_limit"])
            if order["secrets"]:
                self.redactors[stream] = Redactor(order["secrets"])
        failure = os.read(self.fail, 4096)
        os.close(self.fail)
        if failure == _TOO_LATE:
            self.by = self.by or FENCING
            self._fence()
        else:
            self.error = failure.decode(errors="replace") or None
        self.step("executed")
        self.deadline = self.steps["executed"] + order["wall_clock"]

    def _say_go(self, what: dict[str, Any]) -> None:
        message = memoryview(json.dumps(what).encode())
        try:
            while message:
                message = message[os.write(self.go, message) :]
        except BrokenPipeError:
            self.error = "the process that was to become the agent is gone"
        os.close(self.go)

    # -- watching -----------------------------------------------------------------------------------------------
    def _watch(self) -> None:
        poller = select.poll()
        for handle in (self.bell, self.alarm.handle, *self.captures):
            poller.register(handle, select.POLLIN)
        while not self.gone:
            self.alarm.set(self.lease.fence_at)
            ready = poller.poll(self._patience() * 1000)
            if self.lease.over():
                self._fence()
            for handle, _ in ready:
                if handle == self.bell:
                    self._heed()
                elif handle in self.captures and not self._drain(handle):
                    poller.unregister(handle)
            self._look_at_the_clock()

    def _patience(self) -> float:
        until = min(self.deadline, self.meter.look_at) if self.kill_at is None else min(self.deadline, self.kill_at)
        return max(min(until - now(), _LOOK), 0.0)

    def _heed(self) -> None:
        numbers = os.read(self.bell, 4096)
        if signal.SIGTERM in numbers:
            self._asked_to_stop()
        self._reap()

    def _reap(self) -> None:
        """Bury the dead. As the sub-reaper we inherit every orphan: without children there is no descendant."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                self.gone = True
                return
            if pid == 0:
                break
            if os.WIFSTOPPED(status):
                if pid == self.agent and self.order.get("keeps_time"):
                    os.kill(pid, signal.SIGCONT)
            elif pid == self.agent:
                self.status, self.usage = status, usage
                self.step("exited")
        if self.status is not None and self.kill_at is None:
            self.leftovers = sum(not is_zombie(pid) for pid in descendants(self.pid))
            self._end(at_once=False)

    def _asked_to_stop(self) -> None:
        try:
            with open(self.path("stop.json")) as file:
                request = json.load(file)
        except (OSError, ValueError):
            request = {}
        if self.status is None:
            self.by = self.by or request.get("by") or "a signal to its guardian"
        self._end(at_once=bool(request.get("at_once")))

    def _look_at_the_clock(self) -> None:
        moment = now()
        if moment >= self.deadline:
            self.deadline = float("inf")
            self.timed_out = self.status is None
            self._end(at_once=False)
        if self.kill_at is None and self.meter.is_over(moment, self.tally.tokens):
            self._reap()  # it may have gone by itself
            self.over_limit = self.meter.over if self.status is None else None
            self._end(at_once=False)
        if self.kill_at is not None and moment >= self.kill_at:
            # Again, until nothing is left: a fork may have slipped through the last sweep.
            self.kill_at = moment + 0.05
            self._kill()

    # -- ending -------------------------------------------------------------------------------------------------
    def _fence(self) -> None:
        """Before anything else: whatever we have to read or write meanwhile may take its time."""
        self.fenced = True
        self.lease.lift()
        self._reap()
        if self.status is None:
            self.by = self.by or FENCING
        self._end(at_once=True)
        self._kill()

    def _end(self, *, at_once: bool) -> None:
        if at_once:
            self.kill_at = now()
            return
        if self.kill_at is None:
            self.kill_at = now() + self.order["grace"]
            signal_all(descendants(self.pid), signal.SIGTERM)
            self._reap()

    def _kill(self) -> None:
        if not self.cage.kill():
            # Stopped first, so that nobody forks between the look and the blow.
            for number in (signal.SIGSTOP, signal.SIGKILL):
                signal_all(descendants(self.pid), number)
        elif self.blows:
            # Somebody left the cage.
            signal_all(descendants(self.pid), signal.SIGKILL)
        self.blows += 1
        self._reap()

    def _drain(self, stream: int) -> bool:
        """Read what is there; False at its end."""
        try:
            data = os.read(stream, _CHUNK)
        except BlockingIOError:
            return True
        if stream == self.out and "tokens" in self.meter.limits:
            self.tally.hear(data)
        redactor = self.redactors.get(stream)
        self.captures[stream].write(redactor.feed(data) if redactor else data)
        return bool(data)

    def _finish_output(self) -> None:
        for stream, capture in self.captures.items():
            try:
                while data := os.read(stream, _CHUNK):
                    redactor = self.redactors.get(stream)
                    capture.write(redactor.feed(data) if redactor else data)
            except BlockingIOError:
                pass
            if stream in self.redactors:
                capture.write(self.redactors[stream].flush())
            os.close(stream)
            capture.close()

    def _record(self) -> None:
        self.step("recorded")
        status = self.status
        usage = self.usage
        signalled = status is not None and os.WIFSIGNALED(status)
        record = {
            "version": RECORD_VERSION,
            "run": self.order["run"],
            "epoch": self.order["epoch"],
            "exit_code": os.WEXITSTATUS(status) if status is not None and not signalled else None,
            "signal": os.WTERMSIG(status) if status is not None and signalled else None,
            "timed_out": self.timed_out,
            "over_limit": self.over_limit,
            "by": self.by,
            "fenced": self.fenced,
            "error": self.error,
            "out_of_memory": self.cage.out_of_memory(),
            "leftovers": self.leftovers,
            "elapsed": self.steps.get("exited", now()) - self.steps.get("executed", now()),
            "ended_at": time.time(),
            "steps": self.steps,
            "output": {os.path.basename(capture.path): capture.told() for capture in self.captures.values()},
            "rusage": {} if usage is None else _rusage(usage),
        }
        write_at_last(self.path("exit.json"), record)


def _rusage(usage: resource.struct_rusage) -> dict[str, float]:
    return {
        "user_seconds": usage.ru_utime,
        "system_seconds": usage.ru_stime,
        "max_rss_kib": usage.ru_maxrss,
    }
