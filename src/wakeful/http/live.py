"""What goes on: the output of a run and the events of the fleet, as server-sent events.

Laws:
- What a stream gives is read through the same operations as everything else; a hint only says that it is time to look.
- Each piece has an id to go on from: the offset behind it, or the event's own. `Last-Event-ID` resumes without a gap.
- A stream ends when its run is over, when the client goes, when the server stops, and within a second of the caller's
  token losing its force. Before the first piece an error is a problem like any other.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.responses import StreamingResponse

from wakeful.control.callers import Caller
from wakeful.core.errors import Mistake
from wakeful.http.auth import Authority
from wakeful.http.schemas import LARGEST

if TYPE_CHECKING:
    from wakeful.control.control import Control

# A file tells nobody that it has grown.
LOOK_AT_FILE = 0.25
# The hint may be lost; and somebody whose run is over must be cut off.
LOOK_AT_EVENTS = 1.0
# Under a storm of commits one look serves many.
LULL = 0.05
# So that both sides notice when the other is gone.
SIGN_OF_LIFE = 15.0
_ALIVE = b": alive\n\n"


class Live:
    def __init__(self, control: Control, authority: Authority, leaving: asyncio.Event) -> None:
        self._control = control
        self._authority = authority
        self._leaving = leaving

    async def log(self, caller: Caller, run: int, stream: str, offset: int) -> StreamingResponse:
        first = await self._control.output(caller, run=run, stream=stream, offset=offset)
        return _answer(self._follow(caller, run, stream, first))

    async def _follow(self, caller: Caller, run: int, stream: str, page: dict[str, Any]) -> AsyncIterator[bytes]:
        seen_over, quiet = False, 0.0
        yield _ALIVE
        while True:
            offset = page["next_offset"]
            if page["text"]:
                quiet = 0.0
                yield _frame("output", page, offset)
                # Neither reading nor sending need ever wait; others want their turn, and so does a reader's leaving.
                await asyncio.sleep(0)
            elif page["over"] and seen_over:
                # Looked at once more since it was over: whatever the run wrote last has been given.
                yield _frame("over", {"run": run, "stream": stream, "next_offset": offset}, offset)
                return
            elif not page["over"]:
                if not await self._rest(LOOK_AT_FILE):
                    return
                quiet += LOOK_AT_FILE
                if quiet >= SIGN_OF_LIFE:
                    quiet = 0.0
                    yield _ALIVE
            seen_over = page["over"]
            if self._leaving.is_set() or not await self._authority.still(caller):
                return
            page = await self._control.output(caller, run=run, stream=stream, offset=offset)

    async def events(
        self, caller: Caller, after: int | None, agent: str | None, kinds: list[str] | None
    ) -> StreamingResponse:
        # Asked once before the answer begins, so that whoever may not is told so.
        page = await self._control.events(caller, after=after, agent=agent, kinds=kinds, limit=1)
        return _answer(self._tell(caller, (page["next"] or 0) if after is None else after, agent, kinds))

    async def _tell(
        self, caller: Caller, after: int, agent: str | None, kinds: list[str] | None
    ) -> AsyncIterator[bytes]:
        quiet = 0.0
        yield _ALIVE
        while not self._leaving.is_set() and await self._authority.still(caller):
            change = asyncio.ensure_future(self._control.wait_for_change())
            try:
                # It must listen before we look, or what is committed in between would be told a second late.
                await asyncio.sleep(0)
                page = await self._control.events(caller, after=after, agent=agent, kinds=kinds, limit=500)
                if not page["items"]:
                    await self._rest(LOOK_AT_EVENTS, change)
            finally:
                change.cancel()
            for event, then in zip_longest(page["items"], page["items"][1:]):
                after = event["id"]
                # Several may share an id: whoever is cut off among them is given all of them again.
                yield _frame(event["kind"], event, after if then is None or then["id"] != after else None)
            if page["items"]:
                quiet = 0.0
                await self._rest(LULL)
            else:
                quiet += LOOK_AT_EVENTS
            if quiet >= SIGN_OF_LIFE:
                quiet = 0.0
                yield _ALIVE

    async def _rest(self, seconds: float, hint: Awaitable[None] | None = None) -> bool:
        """Until the time has passed, the hint has come or the server leaves; False when it leaves."""
        leaving = asyncio.ensure_future(self._leaving.wait())
        try:
            awaited = {leaving} if hint is None else {leaving, asyncio.ensure_future(hint)}
            await asyncio.wait(awaited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
        return not self._leaving.is_set()


T = TypeVar("T", int, int | None)


def resume_at(last_event_id: str | None, otherwise: T) -> int | T:
    """Where a client that was cut off goes on."""
    if last_event_id is None:
        return otherwise
    if re.fullmatch(r"[0-9]{1,19}", last_event_id, re.ASCII) and int(last_event_id) <= LARGEST:
        return int(last_event_id)
    raise Mistake("Last-Event-ID is not an id of this stream", "send the last `id:` that you were given")


def _answer(pieces: AsyncIterator[bytes]) -> StreamingResponse:
    return StreamingResponse(pieces, media_type="text/event-stream")


def _frame(event: str, data: dict[str, Any], at: int | None) -> bytes:
    place = "" if at is None else f"id: {at}\n"
    return f"{place}event: {event}\ndata: {json.dumps(data)}\n\n".encode()
