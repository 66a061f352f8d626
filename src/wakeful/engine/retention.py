"""Forgets what is old enough, a little at a time: rows after a month, output after a week.

Law: nothing that is open, and nothing on which a position, a limit or an answer of today rests, is ever forgotten.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from wakeful.engine.clock import Clock
from wakeful.runners.protocol import Carrier
from wakeful.store.protocol import Access

log = logging.getLogger("wakeful.engine")

OUTPUT = timedelta(days=7)
KEYS = timedelta(days=14)
EVERY = timedelta(hours=1)
# After a start there is more important work; and between two sweeps of a long past others have their turn.
FIRST = timedelta(minutes=2)
BREATH = 0.2


class Retention:
    name = "retention"

    def __init__(
        self, access: Access, carrier: Carrier, runs: Path, clock: Clock, retention: Callable[[], timedelta]
    ) -> None:
        self._access = access
        self._carrier = carrier
        self._runs = runs
        self._clock = clock
        self._retention = retention

    async def run(self) -> None:
        await asyncio.sleep(FIRST.total_seconds())
        while True:
            await self.sweep()
            await asyncio.sleep(EVERY.total_seconds())

    async def sweep(self) -> int:
        """Forget whatever is old enough now; how many rows that were."""
        await self._discard_output()
        return await self._forget_rows()

    async def _forget_rows(self) -> int:
        total = 0
        while True:
            now = self._clock.now()
            before, keys, output = now - self._retention(), now - KEYS, now - OUTPUT
            # Nothing is older than the first event: a young fleet is not written to for nothing.
            if not await self._access.read(lambda store: store.events_until(max(before, keys, output))):  # noqa: B023
                break
            gone = await self._access.write(
                lambda store: store.forget(before, keys, now, output_before=output)  # noqa: B023
            )
            total += gone.runs + gone.wakes + gone.items + gone.events
            if not gone.more:
                break
            await asyncio.sleep(BREATH)
        if total:
            log.info("forgot", extra={"fields": {"rows": total}})
        return total

    async def _discard_output(self) -> None:
        before = self._clock.now() - OUTPUT
        for run in await asyncio.to_thread(_runs_of, self._runs):
            row = await self._access.read(lambda store, run=run: store.run(run))  # type: ignore[misc]
            if row is None or (row.ended_at is not None and row.ended_at < before):
                await asyncio.to_thread(self._carrier.discard, run)


def _runs_of(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal())
