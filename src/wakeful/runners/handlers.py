"""A handler, found and called: what happens in the process that does the tasks of a worker's shifts.

Laws:
- A task ends with exactly one line of the record, and only the process that was forked to do it writes it.
- Whatever a handler returns or raises is an end; what JSON cannot hold is refused before the task is called done.
- A polite end (SIGTERM) unwinds the handler, so that its `finally` blocks run; after it this process is gone.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import json
import os
import re
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from wakeful.core.errors import Mistake
from wakeful.run import Result, Run, as_json
from wakeful.runners.lease import Lease
from wakeful.runners.link import END, PART, REQUEST, SHIFT
from wakeful.runners.output import mark_for
from wakeful.runners.record import VERSION, Page, open_record
from wakeful.runners.whole import now

# A result is stored with its task; a payload belongs elsewhere.
MOST_RESULT = 1024 * 1024
MOST_SUMMARY = 4_000
# Ends that follow each other more quickly than that, in seconds, are told together.
GATHERED = 0.002
MOST_TRACE = 3_000

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_DONE = {"exit_code": 0, "outcome": "done"}
_OUTLINE_DONE = json.dumps(_DONE)[1:-1]
RECORD = f'{{"version": {VERSION}, "task": %s, %s, "elapsed": %.6f, "ended_at": %.3f}}\n'

Handler = Callable[[Run], Any]
Told = dict[str, Any]


class Broken(Exception):
    """A handler that cannot be called: for a person to mend."""


class _Unfit(Exception):
    """What a handler returned cannot be kept; where that was found is no matter of its own."""


def load(target: str, root: str) -> Handler:
    """`package.module:function`, looked up from the fleet's folder first."""
    module_name, _, name = target.partition(":")
    if root not in sys.path:
        sys.path.insert(0, root)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        where = f"looked in {root} and where Python looks" if module_name.startswith(missing) else _trace(error)
        raise Broken(f"cannot import {module_name}: no module named {missing} ({where})") from None
    except BaseException as error:
        raise Broken(f"cannot import {module_name}: {_trace(error)}") from None
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, [known for known in dir(found) if callable(getattr(found, known))])
            hint = f"; did you mean {near[0]}?" if near else ""
            raise Broken(f"{module_name} has no function {name}{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise Broken(f"{target} is a {type(found).__name__}, not a function")
    handler: Handler = found
    if inspect.iscoroutinefunction(found):
        import asyncio  # noqa: F401  once, before anybody forks
    return handler


def module_of(target: str) -> tuple[str, int] | None:
    """The handler's file and when it was changed: who edits it wants the new one."""
    path = getattr(sys.modules[target.partition(":")[0]], "__file__", None)
    try:
        return (path, os.stat(path).st_mtime_ns) if path else None
    except OSError:
        return None


def _trace(error: BaseException, skip: int = 0) -> str:
    """The last line first, for it says what happened; then where, the innermost last."""
    last = "".join(traceback.format_exception_only(error)).strip()
    place = error.__traceback__
    for _ in range(skip):
        place = place.tb_next if place is not None else None
    trail = "".join(traceback.format_tb(place)).rstrip() if place is not None else ""
    trail = trail if len(trail) <= MOST_TRACE else f"…{trail[-MOST_TRACE:]}"
    return f"{last[:MOST_TRACE]}\n{trail}" if trail else last[:MOST_TRACE]


class Hand:
    def __init__(self, handler: Handler, connection: socket.socket, printing: int, mark: bytes, page: Page) -> None:
        self.handler = handler
        self.connection = connection
        self.printing = printing
        self.mark = mark
        self.page = page
        self.pid = os.getpid()
        self.busy = False
        self.ending = False
        self.asked = 0
        self.turn = threading.Lock()
        self.unread = b""
        self.unsaid = b""
        self.said_at = 0.0
        self.record = -1
        self.variables: dict[str, str] = {}
        self.redactor: Any = None
        self.runner: Any = None

    def serve(self) -> None:
        signal.signal(signal.SIGTERM, self._terminate)
        while (message := self._line()) is not None:
            if message[:1] == SHIFT:
                self._shift(message[1:])

    def _terminate(self, *_: object) -> None:
        if not self.busy:
            os._exit(128 + signal.SIGTERM)
        self.ending = True
        raise SystemExit(128 + signal.SIGTERM)

    # -- the line to the worker ---------------------------------------------------------------------------------
    def _line(self) -> bytes | None:
        parts = [self.unread]
        while b"\n" not in parts[-1]:
            data = self.connection.recv(64 * 1024)
            if not data:
                return None
            parts.append(data)
        message, _, self.unread = b"".join(parts).partition(b"\n")
        return message

    def _ask(self, index: int, request: Told) -> Told:
        """Until the engine, or the worker in its absence, has answered."""
        with self.turn:
            self.asked += 1
            number = f"{self.pid}-{self.asked}"
            asked = json.dumps({**request, "number": number}).encode()
            self._say_all()
            self.connection.sendall(b"%s%04x%s\n" % (REQUEST, index, asked))
            while (message := self._line()) is not None:
                answer = json.loads(message[1:])
                if answer.pop("number", None) == number:
                    return dict(answer)
            os._exit(1)  # the worker is gone, and so are we

    # -- a shift ------------------------------------------------------------------------------------------------
    def _shift(self, message: bytes) -> None:
        todo, control, body = message.split(PART, 2)
        order, briefing = json.loads(control), json.loads(body)
        self._dress(order["variables"])
        self.redactor = _redactor(order["secrets"]) if order["secrets"] else None
        known = {task["id"]: task for task in briefing.get("tasks") or ()}
        tasks, steps, limit, limits = order["tasks"], order["steps"], order["limit"], order.get("limits") or {}
        lease = Lease(order["folder"], order["leased_until"], order["fence"])
        self.record = open_record(order["folder"])
        for index in map(int, todo.split(b",")):
            task = tasks[index]
            run = Run(
                briefing,
                None if task is None else known.get(task, {"id": task}),
                lambda request, index=index: self._ask(index, request),  # type: ignore[misc]
                steps=steps.get(str(task)),
                limit=limits.get(str(task), limit),
            )
            if lease.over():
                self._say_all()
                os._exit(0)  # nothing begins any more, and the worker is about to end what is left
            began = now()
            if self.page.begin(index, began):
                self._perform(index, task, run, began)
        self._say_all()
        os.close(self.record)

    def _dress(self, variables: dict[str, str]) -> None:
        """The variables of this run, instead of those of the one before."""
        for name in self.variables.keys() - variables.keys():
            os.environ.pop(name, None)
        os.environ.update(variables)
        self.variables = variables

    def _perform(self, index: int, task: int | None, run: Run, began: float) -> None:
        if self.variables and task is not None:
            os.environ["WAKEFUL_TASK_ID"] = str(task)
            os.environ["WAKEFUL_ATTEMPT"] = str(run.attempt)
            if (until := run.deadline) is not None:
                os.environ["WAKEFUL_DEADLINE"] = f"{until.isoformat(timespec='microseconds')[:-6]}Z"
        told = self._call(run)
        if os.getpid() != self.pid:
            os._exit(0)  # the handler forked, and its child came back here
        if self.ending:
            os._exit(128 + signal.SIGTERM)
        # Written by hand, for it is written for every task.
        outline = _OUTLINE_DONE if told is _DONE else json.dumps(told)[1:-1]
        whose = "null" if task is None else task
        record = (RECORD % (whose, outline, now() - began, time.time())).encode()
        # First the pipe: where it is broken the worker is gone, and what a handler then ran into is not its own end.
        os.write(self.printing, mark_for(self.mark, index))
        os.write(self.record, record)
        self.unsaid += b"%s%04x%s" % (END, index, record)
        if told.get("out_of_memory"):
            self._say_all()
            os._exit(0)  # a fresh process has the memory that this one may have lost
        if now() - self.said_at >= GATHERED:
            self._say_all()

    def _say_all(self) -> None:
        """The ends of short tasks are told together. Who waits for one finds it in the record (`Duty.unsaid_at`)."""
        if self.unsaid:
            words, self.unsaid = self.unsaid, b""
            self.connection.sendall(words)
            self.said_at = now()

    def _call(self, run: Run) -> Told:
        try:
            self.busy = True
            value = self.handler(run)
            if value is not None and inspect.iscoroutine(value):
                value = self._await(value)
            told = _DONE if value is None else self._returned(value)
        except SystemExit as leaving:
            told = self._left(leaving)
        except MemoryError as error:
            told = {"exit_code": 1, "out_of_memory": True, "error": self._clean(_trace(error, 1))}
        except _Unfit as unfit:
            told = {"exit_code": 1, "error_class": "other", "error": self._clean(str(unfit))}
        except BaseException as error:
            told = {"exit_code": 1, "error": self._clean(_trace(error, 1))}
        finally:
            self.busy = False
            self._flush()
        return told

    def _await(self, value: Any) -> Any:
        if self.runner is None:
            import asyncio

            self.runner = asyncio.Runner()
        return self.runner.run(value)

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                continue

    def _left(self, leaving: SystemExit) -> Told:
        """`sys.exit` in a handler means for the task what it means for a process."""
        if leaving.code is None or leaving.code == 0:
            return _DONE
        if isinstance(leaving.code, int):
            return {"exit_code": leaving.code, "error": f"exit code {leaving.code}"}
        return {"exit_code": 1, "error": self._clean(str(leaving.code))}

    # -- what came back -----------------------------------------------------------------------------------------
    def _returned(self, value: Any) -> Told:
        if isinstance(value, Result):
            told: Told = {"exit_code": 0, "declared": self._clean(json.dumps(value.declared()))}
            value = value.value
            if value is None:
                return told
        else:
            told = dict(_DONE)
        if isinstance(value, str):
            text = self._clean(value)
            if "declared" not in told:
                del told["outcome"]
                told["summary"] = text[:MOST_SUMMARY]
        else:
            text = self._clean(_fit(value))
        if len(text) > MOST_RESULT:
            size = f"{len(text):,} characters, and more than {MOST_RESULT:,}"
            raise _Unfit(f"the result has {size} (store it elsewhere and return where it is)")
        return {**told, "result": text}

    def _clean(self, text: str) -> str:
        """As the store can keep it, and without what is secret."""
        text = _UNSTORABLE.sub("\ufffd", text)
        if self.redactor is None:
            return text
        hidden: bytes = self.redactor.feed(text.encode()) + self.redactor.flush()
        return hidden.decode(errors="replace")


def _fit(value: Any) -> str:
    try:
        return as_json(value, "the result")
    except Mistake as problem:
        raise _Unfit(str(problem)) from None


def _redactor(secrets: list[str]) -> Any:
    from wakeful.runners.redaction import Redactor

    return Redactor(secrets)
