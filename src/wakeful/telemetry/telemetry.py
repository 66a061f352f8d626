"""What a node measures of itself: put together, begun before the engine and ended after it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from wakeful.core.errors import Busy
from wakeful.core.orders import Order
from wakeful.store.protocol import Access
from wakeful.telemetry.feed import Feed, Listener
from wakeful.telemetry.owning import Owned, Owning
from wakeful.telemetry.scrape import Scrape
from wakeful.telemetry.tally import Tally
from wakeful.telemetry.tracing import tracing

log = logging.getLogger("wakeful.telemetry")


class Telemetry:
    name = "telemetry"

    def __init__(
        self,
        access: Access,
        clock: Callable[[], datetime],
        node: str,
        *,
        shared: bool = False,
        identity: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Whoever decides and ends on a `shared` store does so through `self.access`. `identity` tells the store from
        all others; `variables` say whether and where spans are sent."""
        owned = Owned() if shared else None
        self.access: Access = access if owned is None else Owning(access, owned)
        self.tally = Tally()
        self._tracing = tracing(access, identity, node, variables or {})
        listeners: list[Listener] = [self.tally]
        self._feed = Feed(access, listeners if self._tracing is None else [*listeners, self._tracing], owned)
        self.scrape = Scrape(access, self._feed, self.tally, clock, node=node, shared=shared)
        self.run = self._feed.run

    def traceparent(self, order: Order) -> str | None:
        """The trace that a run is told it belongs to, where there is one."""
        return None if self._tracing is None else self._tracing.traceparent(order)

    async def begin(self) -> None:
        """Before anything is decided here; a store that is away is asked again by `run`."""
        with suppress(Busy):
            await self._feed.begin()

    async def end(self) -> None:
        """What was done last is told as well, as far as the store can still be read: nobody's end hangs on it."""
        try:
            await self._feed.look()
        except Exception as error:
            log.warning("what was done last is not counted: %s", error)
        if self._tracing is not None:
            await self._tracing.close()
