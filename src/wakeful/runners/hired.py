"""A worker as the engine sees it: a process under a guardian, and a line to it that may break and be mended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from wakeful.core.runs import Ending
from wakeful.runners.held import HeldShift
from wakeful.runners.lease import FENCING
from wakeful.runners.link import ANSWER, HELLO, REQUEST, STOP, VETOED, connect
from wakeful.runners.process import VETOED as VETOED_ENDING
from wakeful.runners.protocol import Held
from wakeful.runners.record import line
from wakeful.runners.shifts import Shift
from wakeful.runners.whole import now

# What a handler asks of the engine: the run and the request; the answer is told only after it is stored.
Link = Callable[[int, dict[str, Any]], Awaitable[dict[str, Any]]]

# In seconds: between two looks for a worker that comes up; how much longer than its grace an end may take before the
# whole worker is ended.
_STEPS = (0.002, 0.005, 0.01, 0.02, 0.05)
_OVERDUE = 5.0


class Hired(asyncio.Protocol):
    def __init__(self, folder: Path, held: Held, link: Link | None, import_limit: float) -> None:
        self.folder = folder
        self.process = held
        self._link = link
        self._import_limit = import_limit
        self.born = time.monotonic()
        # How long its guardian lets it live, in seconds.
        self.lasts = 0.0
        self.shifts = 0
        self.ready = False
        self.broken = False
        self.dismissed = False
        self.unready: str | None = None
        self.module: tuple[str, int] | None = None
        self.shift: Shift | None = None
        self.held: HeldShift | None = None
        self._transport: asyncio.Transport | None = None
        self._lost: asyncio.Future[None] | None = None
        self._greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unheard = b""
        self._unsaid: list[bytes] = []
        self._answering: set[asyncio.Task[None]] = set()
        self.on_over: Callable[[Hired], None] = lambda _: None

    # -- as long as it lives ------------------------------------------------------------------------------------
    async def live(self) -> Ending:
        """Keep a line to it; how it ended, when it has."""
        gone = asyncio.ensure_future(self.process.wait())
        try:
            while self._needed() and await self._reach(gone):
                assert self._lost is not None
                await self._await_hello(gone, self._lost)
                await _first(gone, self._lost)
            return await asyncio.shield(gone)
        finally:
            gone.cancel()
            self.cut()

    async def _await_hello(self, gone: asyncio.Future[Ending], lost: asyncio.Future[None]) -> None:
        """A worker that is too long in coming up is ended: at the limit on that, or before its shift's lease is."""
        until = now() + self._import_limit
        lease = None if self.shift is None else self.shift.lease
        while not (self._greeted.done() or gone.done() or lost.done()):
            moment, fence_at = now(), float("inf")
            if lease is not None:
                if lease.over():
                    await self.process.end(FENCING, at_once=True)
                    return
                fence_at = lease.fence_at
            if moment >= until:
                self.unready = f"it took longer than {self._import_limit:g} s"
                await self.process.end("the limit on importing", at_once=True)
                return
            await _first(self._greeted, gone, lost, timeout=max(min(until, fence_at) - moment, 0.0))

    def _needed(self) -> bool:
        """Whether a line to it is worth having: before its first shift, and as long as it has one of ours."""
        return not self.dismissed and (self._lost is None or self.held is not None)

    async def _reach(self, gone: asyncio.Future[Ending]) -> bool:
        """Until there is a line to it, or it is gone."""
        loop = asyncio.get_running_loop()
        tries = 0
        while not gone.done():
            connection = connect(str(self.folder))
            if connection is not None:
                self._lost = loop.create_future()
                await loop.create_unix_connection(lambda: self, sock=connection)
                return True
            await asyncio.wait({gone}, timeout=_STEPS[min(tries, len(_STEPS) - 1)])
            tries += 1
        return False

    def cut(self) -> None:
        """Hear no more of it: it ends by itself when nobody does."""
        self.dismissed = True
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    # -- the line -----------------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._unheard = transport, b""

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport, self.ready = None, False
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(None)

    def data_received(self, data: bytes) -> None:
        *lines, self._unheard = (self._unheard + data).split(b"\n") if self._unheard else data.split(b"\n")
        recorded: list[bytes] = []
        for each in lines:
            if each[:1] == b"{":
                recorded.append(each)
            else:
                self._hear(recorded)
                recorded = []
                self._heed(each[:1], each[1:])
        self._hear(recorded)

    def _hear(self, lines: list[bytes]) -> None:
        held = self.held
        if lines and held is not None:
            held.hear(lines)
            if held.ended.done():
                self._release()

    def _release(self) -> None:
        self.shift = self.held = None
        self.shifts += 1
        self.on_over(self)

    def _heed(self, letter: bytes, content: bytes) -> None:
        if letter == HELLO:
            self._greet(json.loads(content))
        elif letter == REQUEST and self.held is not None:
            task = asyncio.ensure_future(self._serve(self.held.run, json.loads(content)))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        elif letter == VETOED and self.held is not None:
            self.held.conclude(VETOED_ENDING)
            self._release()

    def _greet(self, hello: dict[str, Any]) -> None:
        self.ready, self.broken = True, bool(hello.get("broken"))
        self.module = tuple(hello["module"]) if hello.get("module") else None
        first = not self._greeted.done()
        if first:
            self._greeted.set_result(None)
        if self.held is None:
            return
        if first and self.shift is not None:
            self._say(self.shift.message())
            while self._unsaid:
                self._say(self._unsaid.pop(0))
        else:
            # We were away: either it is over, or all of it is told again.
            self.held.look()
            if self.held.ended.done():
                self._release()

    async def _serve(self, run: int, request: dict[str, Any]) -> None:
        number = request.pop("number", None)
        # The same request, asked again after a loss, has the same key.
        request["key"] = request.get("key") or f"run:{run}:{number}"
        try:
            if self._link is None:
                raise RuntimeError("this engine takes no requests from handlers")
            answer = dict(await self._link(run, request))
        except Exception as error:
            answer = {"error": str(error) or type(error).__name__, "kind": type(error).__name__}
        self._say(ANSWER + line({**answer, "number": number}))

    def _say(self, message: bytes) -> None:
        if self._transport is not None:
            self._transport.write(message)

    # -- what it is told ----------------------------------------------------------------------------------------
    def hand(self, shift: Shift, held: HeldShift) -> None:
        """Its next shift; a worker that is still coming up is told when it says hello."""
        self.shift = shift
        self.attach(held)
        if self.ready:
            self._say(shift.message())

    def attach(self, held: HeldShift) -> None:
        self.held = held
        held.worker, held.stop = str(self.folder.absolute()), self._stop

    async def _stop(self, by: str, at_once: bool, task: int | None) -> None:
        held = self.held
        if held is None or held.ended.done():
            return
        request: dict[str, Any] = {"run": held.run, "by": by, "at_once": at_once}
        if task is not None:
            request["task"] = task
        elif not self.ready:
            # Where it has not come up, nothing of the shift is under way that could be ended politely.
            await self.process.end(by, at_once=at_once or not self.came_up)
            return
        else:
            grace = 0.0 if at_once else self._grace()
            asyncio.get_running_loop().call_later(grace + _OVERDUE, self._insist, held, by)
        if self.ready:
            self._say(STOP + line(request))
        else:
            self._unsaid.append(STOP + line(request))

    def _grace(self) -> float:
        return self.shift.grace.total_seconds() if self.shift is not None else 10.0

    def _insist(self, held: HeldShift, by: str) -> None:
        """It should have ended long ago: its worker does not answer."""
        if self.held is held and not held.ended.done():
            task = asyncio.ensure_future(self.process.end(by, at_once=True))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    @property
    def came_up(self) -> bool:
        return self._greeted.done()

    # -- whether it may have another shift ----------------------------------------------------------------------
    def fit(self, longest: float) -> bool:
        """Still there, with the handler as it is on the disk, and with enough of its life left for a shift that may
        take so long."""
        enough = time.monotonic() - self.born + longest < self.lasts
        return enough and self.ready and not self.broken and not self._edited()

    def _edited(self) -> bool:
        if self.module is None:
            return False
        path, changed = self.module
        with contextlib.suppress(OSError):
            return os.stat(path).st_mtime_ns != changed
        return False


async def _first(*futures: asyncio.Future[Any], timeout: float | None = None) -> None:
    await asyncio.wait(futures, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
