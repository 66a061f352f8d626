"""One question and one stream, over whichever transport: where to ask, when to ask again, what an answer means.

Laws:
- What never reached the server is sent again. What may have is sent again only if that cannot happen twice: it reads,
  or it has a key of its own, which is made here where the caller gave none.
- Before anybody has ever answered, nobody there is an error at once; afterwards an engine that restarts is waited for.
- A stream goes on from the last piece that was given, through restarts, without a gap and without a piece twice.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, NamedTuple

from wakeful.client.finding import Place, Unreachable, Whereabouts
from wakeful.client.problems import error_of
from wakeful.client.transports import Cut, Received, Sending, Transport, Unsent
from wakeful.control.operations import request
from wakeful.core.errors import WakefulError

PATIENCE = 10.0
FIRST_REST, LONGEST_REST = 0.05, 1.0
UNAUTHENTICATED, BUSY = 401, 503


class Frame(NamedTuple):
    event: str
    id: str | None
    data: Any


class Asking:
    def __init__(
        self,
        transport: Transport,
        whereabouts: Whereabouts,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._whereabouts = whereabouts
        self._patience = patience
        self._clock = clock
        self._known = False

    async def ask(self, operation: str, parameters: dict[str, Any], *, keyed: bool) -> Any:
        if keyed and parameters.get("key") is None:
            parameters = {**parameters, "key": uuid.uuid4().hex}
        made = request(operation, parameters)
        content = None if made.body is None else json.dumps(made.body, ensure_ascii=False).encode()
        media = {} if content is None else {"Content-Type": "application/json"}
        again = made.method == "GET" or keyed
        trying = _Trying(self)
        while True:
            place = await trying.place()
            headers = {**_headers(place), **media}
            sending = Sending(method=made.method, url=place.url + made.target, headers=headers, content=content)
            try:
                received = await self._transport.send(sending)
            except Unsent as error:
                await trying.rest(error)
                continue
            except Cut as error:
                await trying.rest(error, unless=not again)
                continue
            self._known = True
            if received.status < 300:
                return _answer(place, received)
            await trying.refused(received, again=again)

    async def frames(self, target: str) -> AsyncGenerator[Frame, None]:
        """What the stream gives, until it says that it is over; whoever is cut off goes on where it was."""
        last: str | None = None
        # Several frames may share the id that only the last of them tells: those that were given are not given again.
        given = 0
        trying = _Trying(self)
        while True:
            place, skip = await trying.place(), given
            headers = {**_headers(place), "Accept": "text/event-stream"}
            if last is not None:
                headers["Last-Event-ID"] = last
            sending = Sending(method="GET", url=place.url + target, headers=headers)
            try:
                async with self._transport.stream(sending) as received:
                    self._known = True
                    if received.status >= 300 or received.lines is None:
                        await trying.refused(received, again=True)
                        continue
                    async with aclosing(_frames(received.lines)) as frames:
                        async for frame in frames:
                            trying = _Trying(self)
                            last, given = (last, given + 1) if frame.id is None else (frame.id, 0)
                            if frame.data is None:
                                continue
                            skip -= 1
                            if skip < 0:
                                yield frame
                            if frame.event == "over":
                                return
                # It ended in peace: the server leaves, and another one may come.
                await trying.rest(Cut("the stream ended"))
            except (Unsent, Cut) as error:
                await trying.rest(error)


class _Trying:
    """One question, until it is answered or patience ends."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._until = asking._clock() + asking._patience
        self._rest = FIRST_REST
        self._place: Place | None = None

    async def place(self) -> Place:
        while True:
            try:
                found = self._asking._whereabouts.find()
            except Unreachable as error:
                await self.rest(error)
                continue
            if found is not None:
                self._place = found
                return found
            # Somebody holds the folder, and has not said yet where it listens.
            await self._wait(Unreachable("the engine does not say where it listens (see wakeful doctor)"))

    async def rest(self, error: Exception, *, unless: bool = False) -> None:
        """Wait a moment before it is tried again; raises when it is not to be."""
        if unless or not self._asking._known:
            raise self._gone(error)
        await self._wait(error)

    async def refused(self, received: Received, *, again: bool) -> None:
        """As above, for what was answered with a refusal."""
        error = error_of(received.status, received.body)
        if received.status == UNAUTHENTICATED and self._place is not None:
            # The token may have been made anew since we read it.
            found = self._asking._whereabouts.find()
            if found is not None and found.token != self._place.token:
                return
        if received.status != BUSY or not again:
            raise error
        await self._wait(error, _seconds(received.headers.get("retry-after")))

    async def _wait(self, error: Exception, most: float = LONGEST_REST) -> None:
        left = self._until - self._asking._clock()
        if left <= 0:
            raise self._gone(error)
        await self._asking._transport.rest(min(self._rest, most, left))
        self._rest = min(self._rest * 2, LONGEST_REST)

    def _gone(self, error: Exception) -> WakefulError:
        if isinstance(error, WakefulError):
            return error
        where = self._place.url if self._place else "nowhere"
        if isinstance(error, Unsent):
            return Unreachable(f"the engine at {where} cannot be reached: {error} (see wakeful doctor)")
        return Unreachable(f"the engine at {where} ended before it answered: {error} (it may have been done)")


def _headers(place: Place) -> dict[str, str]:
    return {"Authorization": f"Bearer {place.token}", "Accept": "application/json"}


def _seconds(told: str | None) -> float:
    try:
        return float(told or LONGEST_REST)
    except ValueError:
        return LONGEST_REST


def _answer(place: Place, received: Received) -> Any:
    try:
        return json.loads(received.body)
    except ValueError:
        raise WakefulError(f"what listens at {place.url} does not answer as an engine does") from None


async def _frames(lines: AsyncIterator[str]) -> AsyncGenerator[Frame, None]:
    """Server-sent events, as an engine writes them: one `data:` line each, or none where only a place is told."""
    event, id, data = "", None, None
    async for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            event = value
        elif name == "id":
            id = value
        elif name == "data":
            data = value
        elif not line and (data is not None or id is not None):
            yield Frame(event, id, None if data is None else json.loads(data))
            event, id, data = "", None, None
