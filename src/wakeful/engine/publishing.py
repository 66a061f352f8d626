"""What runs print, put into the store: whoever asks at another node can be shown it, also when this one is gone.

Laws:
- Of each stream its first 256 KB, and its last 256 KB once the run has ended, with a line between them that says how
  much was left out. While the run goes on nothing is published that may still be written over.
- No run is held up: an end waits a moment for its output and no longer. What the store did not take is tried again.
- All that has grown is one write a round, and where nothing has grown there is none.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from wakeful.core.errors import Busy
from wakeful.engine.clock import Nudge
from wakeful.engine.conduct import Conducted
from wakeful.runners.protocol import BRIEFING, STDERR, STDOUT
from wakeful.store.protocol import Access, Store

log = logging.getLogger("wakeful.engine")

# As much of a stream from either end; and at a time, while its run goes on. In the file itself twice as much is safe.
PART = 256 * 1024
PIECE = 64 * 1024
EVERY = timedelta(seconds=2)
# How long an end waits for its output.
MOMENT = 1.0

FILES = {"briefing": BRIEFING, "stdout": STDOUT, "stderr": STDERR}
LEFT_OUT = "\n[... {} bytes left out ...]\n"
# Such a line of the guardian's own stands in the middle of a file that was too long for it.
_LEFT_OUT = re.compile(rb"\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n")
_MIDDLE = 64


@dataclass(frozen=True, slots=True)
class Piece:
    run: int
    stream: str
    data: bytes


@dataclass(slots=True, eq=False)
class Output:
    """What one run printed, as far as it is published: bytes by stream, None where only the store knows."""

    run: int
    kept: dict[str, int | None]
    over: bool = False
    # The store would not have it, whatever we did.
    refused: bool = False
    whole: asyncio.Event = field(default_factory=asyncio.Event)


class Publishing:
    name = "publishing"

    def __init__(self, access: Access, runs: Path, open: Callable[[], Iterable[Conducted]]) -> None:
        self._access = access
        self._runs = runs
        self._open = open
        self._outputs: dict[int, Output] = {}
        self._bell = Nudge()

    async def run(self) -> None:
        while True:
            await self.round()
            await self._bell.wait(EVERY)

    async def finish(self, conducted: Conducted) -> None:
        """The run has ended: publish the rest. Returns when that is done, or has taken too long already."""
        output = self._output(conducted)
        output.over = True
        self._bell.ring()
        with suppress(TimeoutError):
            async with asyncio.timeout(MOMENT):
                await output.whole.wait()

    def _output(self, conducted: Conducted) -> Output:
        known = self._outputs.get(conducted.run)
        if known is None:
            kept: dict[str, int | None] = dict.fromkeys(FILES, 0 if conducted.fresh else None)
            known = self._outputs[conducted.run] = Output(conducted.run, kept)
        return known

    async def round(self) -> None:
        """Publish what has grown since the last one."""
        held = [self._output(each).run for each in self._open() if each.held is not None]
        for run in [run for run, output in self._outputs.items() if run not in held and not output.over]:
            del self._outputs[run]
        outputs = list(self._outputs.values())
        over = [output for output in outputs if output.over]
        await self._ask(outputs)
        await self._keep(outputs, await asyncio.to_thread(_grown, self._runs, outputs))
        for output in over:
            output.whole.set()
            self._outputs.pop(output.run, None)

    async def _ask(self, outputs: Sequence[Output]) -> None:
        """Of what an engine before us began, or of what may or may not have been kept, only the store knows."""
        unknown = [output for output in outputs if None in output.kept.values()]
        if not unknown:
            return

        def verb(store: Store) -> list[dict[str, int | None]]:
            return [{stream: store.output(each.run, stream, 0, 0)[1] for stream in FILES} for each in unknown]

        for output, kept in zip(unknown, await self._access.read(verb), strict=True):
            output.kept = kept

    async def _keep(self, outputs: Sequence[Output], pieces: Sequence[Piece]) -> None:
        if not pieces:
            return
        runs = {piece.run for piece in pieces}
        concerned = {output.run: output for output in outputs if output.run in runs}
        try:
            await self._access.write(lambda store: _put(store, pieces), quiet=True)
        except Busy:
            # It may have been kept although we were not told.
            for output in concerned.values():
                output.kept = dict.fromkeys(FILES)
            raise
        except Exception as error:
            await self._refuse(list(concerned.values()), pieces, error)
            return
        for piece in pieces:
            output = concerned[piece.run]
            output.kept[piece.stream] = (output.kept[piece.stream] or 0) + len(piece.data)

    async def _refuse(self, outputs: Sequence[Output], pieces: Sequence[Piece], error: Exception) -> None:
        """One that cannot be kept must not keep the others from it."""
        if len(outputs) == 1:
            outputs[0].refused = True
            log.warning("what run %d prints is not published: %s", outputs[0].run, error)
            return
        for output in outputs:
            await self._keep([output], [piece for piece in pieces if piece.run == output.run])


def _put(store: Store, pieces: Sequence[Piece]) -> None:
    for piece in pieces:
        store.keep_output(piece.run, piece.stream, piece.data)


def _grown(runs: Path, outputs: Sequence[Output]) -> list[Piece]:
    found = []
    for output in [output for output in outputs if not output.refused]:
        for stream, file in FILES.items():
            data = new(runs / str(output.run) / file, output.kept[stream] or 0, output.over or stream == "briefing")
            if data:
                found.append(Piece(output.run, stream, data))
    return found


def new(path: Path, kept: int, whole: bool) -> bytes:
    """What is in the file behind what is kept of it; of a `whole` one the rest, of any other a piece of its head."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not whole:
                return os.pread(file.fileno(), max(min(size, PART, kept + PIECE) - kept, 0), kept)
            if size <= 2 * PART:
                return os.pread(file.fileno(), max(size - kept, 0), kept)
            if kept > PART:
                return b""
            head, tail = os.pread(file.fileno(), PART - kept, kept), os.pread(file.fileno(), PART, size - PART)
            middle = os.pread(file.fileno(), 4 * _MIDDLE, size // 2 - _MIDDLE)
    except OSError:
        return b""
    found = _LEFT_OUT.search(middle)
    before = int(found[1]) - len(found[0]) if found else 0
    return head + LEFT_OUT.format(size - 2 * PART + before).encode() + tail
