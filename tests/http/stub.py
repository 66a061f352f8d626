"""A control that only remembers what it was asked, for what no real one can be made to say at will."""

import asyncio
import inspect
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from wakeful.control.callers import Caller
from wakeful.control.noting import Denial
from wakeful.control.operations import OPERATIONS


class Asked(NamedTuple):
    name: str
    caller: Caller
    parameters: dict[str, Any]


class Engine:
    ready = True

    def health(self) -> dict[str, object]:
        return {"ready": self.ready, "secret": "detail"}


class Stub:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.beside: Engine | None = Engine()
        self.asked: list[Asked] = []
        self.answers: dict[str, Any] = {}
        self.open: dict[tuple[int, int], Caller] = {}
        self.looks = 0
        self.denials = self
        self.refused: list[Denial] = []
        self.acts: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name in OPERATIONS:
            return partial(self._answer, name)
        raise AttributeError(name)

    async def _answer(self, operation: str, caller: Caller, **parameters: Any) -> Any:
        self.asked.append(Asked(operation, caller, parameters))
        answer = self.answers.get(operation, {})
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = answer(**parameters)
        return await answer if inspect.isawaitable(answer) else answer

    async def caller_of_run(self, run: int, epoch: int, since: datetime | None = None) -> Caller | None:
        self.looks += 1
        return self.open.get((run, epoch))

    async def denied(self, denial: Denial) -> None:
        self.refused.append(denial)

    async def acted(self, caller: Caller, operation: str, **told: object) -> None:
        self.acts.append(operation)

    async def judge(self, caller: Caller, name: str, agent: str | None = None) -> None: ...

    async def flush(self) -> None: ...

    async def wait_for_change(self) -> None:
        await asyncio.Event().wait()
