"""What goes on: the output of a run and the events of the fleet, as server-sent events.

Laws:
- What a stream gives is read through the same operations as everything else; a hint only says that it is time to look.
- Each piece has an id to go on from: the offset behind it, or the event's own. `Last-Event-ID` resumes without a gap.
- What was read and written out for one reader is given to all others who stand at the same place: whatever has happened
  after a place stays what happened after it. While one looks, the others wait for what it finds.
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
# So many pages are kept for others who come to the same place.
MOST_PAGES = 16
# So that both sides notice when the other is gone.
SIGN_OF_LIFE = 15.0
_ALIVE = b": alive\n\n"


Place = tuple[str, int | None, int, str | None, tuple[str, ...]]
# What is sent, and where to go on.
Page = tuple[bytes, int]


class Live:
    def __init__(self, control: Control, authority: Authority, leaving: asyncio.Event) -> None:
        self._control = control
        self._authority = authority
        self._leaving = leaving
        self._pages: dict[Place, Page] = {}
        self._looks: dict[Place, asyncio.Future[Page | None]] = {}

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
                yield frame("output", page, offset)
                # Neither reading nor sending need ever wait; others want their turn, and so does a reader's leaving.
                await asyncio.sleep(0)
            elif page["over"] and seen_over:
                # Looked at once more since it was over: whatever the run wrote last has been given.
                yield frame("over", {"run": run, "stream": stream, "next_offset": offset}, offset)
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
        # Whoever begins now can go on from here if cut off before the first event; others know where they were, and an
        # id that they have already would look like an event that came twice.
        first = f"id: {page['last']}\n\n".encode() if after is None else _ALIVE
        return _answer(self._tell(caller, page["last"] if after is None else after, agent, kinds, first))

    async def _tell(
        self, caller: Caller, after: int, agent: str | None, kinds: list[str] | None, first: bytes
    ) -> AsyncIterator[bytes]:
        quiet = 0.0
        yield first
        while not self._leaving.is_set() and await self._authority.still(caller):
            change = asyncio.ensure_future(self._control.wait_for_change())
            try:
                # It must listen before we look, or what is committed in between would be told a second late.
                await asyncio.sleep(0)
                page, after = await self._page(caller, after, agent, kinds)
                if not page:
                    await self._rest(LOOK_AT_EVENTS, change)
            finally:
                change.cancel()
            if page:
                quiet = 0.0
                yield page
                await self._rest(LULL)
            else:
                quiet += LOOK_AT_EVENTS
            if quiet >= SIGN_OF_LIFE:
                quiet = 0.0
                yield _ALIVE

    async def _page(self, caller: Caller, after: int, agent: str | None, kinds: list[str] | None) -> Page:
        """What happened after that, as it is sent, and where to go on; nothing where nothing has."""
        place = (caller.name, caller.run, after, agent, tuple(kinds or ()))
        since = False
        while place in self._looks:
            seen = await asyncio.shield(self._looks[place])
            # One that began before we came may have missed what we were called for; the next one cannot.
            if seen is not None and (since or seen[0]):
                return seen
            since = True
        known = self._pages.get(place)
        if known is not None:
            return known
        page, look = None, asyncio.get_running_loop().create_future()
        self._looks[place] = look
        try:
            page = await self._look(caller, place, agent, kinds)
        finally:
            # Also where we were cut off: then another one looks.
            del self._looks[place]
            look.set_result(page)
        return page

    async def _look(self, caller: Caller, place: Place, agent: str | None, kinds: list[str] | None) -> Page:
        after = place[2]
        found = (await self._control.events(caller, after=after, agent=agent, kinds=kinds, limit=500))["items"]
        if not found:
            return b"", after
        pieces = []
        for event, then in zip_longest(found, found[1:]):
            # Several may share an id: whoever is cut off among them is given all of them again.
            last = then is None or then["id"] != event["id"]
            pieces.append(frame(event["kind"], event, event["id"] if last else None))
        while len(self._pages) >= MOST_PAGES:
            del self._pages[next(iter(self._pages))]
        self._pages[place] = b"".join(pieces), found[-1]["id"]
        return self._pages[place]

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


def frame(event: str, data: dict[str, Any], at: int | None) -> bytes:
    place = "" if at is None else f"id: {at}\n"
    return f"{place}event: {event}\ndata: {json.dumps(data)}\n\n".encode()
