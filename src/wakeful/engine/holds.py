"""The PAUSE file: a fleet pause that anybody who can write a file can bring about, and only its removal lifts.

Law: where several nodes share a store each one's file is a pause of its own: who has none lifts nobody else's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from wakeful.core.wakes import FLEET, Pause
from wakeful.engine.clock import Clock
from wakeful.store.protocol import Access, Store

OWNER = "file"
NAME = "PAUSE"
_MOST = 500


class PauseFile:
    def __init__(self, access: Access, folders: Sequence[Path], clock: Clock, owner: str = OWNER) -> None:
        """Looked for in each of the folders: beside the fleet file, and in the data folder."""
        self._access = access
        self._owner = owner
        self._files = [folder / NAME for folder in folders]
        self._clock = clock
        self._known: bool | None = None

    def present(self) -> Path | None:
        return next((file for file in self._files if os.path.lexists(file)), None)

    async def obey(self) -> None:
        """Make the store's pause equal to the file. Cheap while nothing changed; while the file is there, it is
        also seen to that nobody else has lifted its pause."""
        file, now = self.present(), self._clock.now()
        if file is None and self._known is not False:
            await self._access.write(lambda store: store.resume(FLEET, self._owner, now, owner=self._owner))
        elif file is not None:
            # A file is created first and written afterwards: its reason may come later than the pause.
            pause = Pause(scope=FLEET, owner=self._owner, reason=_reason(file), since=now)
            if await self._access.read(self._standing_reason) != pause.reason:
                await self._access.write(lambda store: store.pause(pause, now))
        self._known = file is not None

    def _standing_reason(self, store: Store) -> str | None:
        ours = (FLEET, self._owner)
        return next((pause.reason for pause in store.pauses() if (pause.scope, pause.owner) == ours), None)


def owner_at(node: str) -> str:
    """Whose the pause of that node's file is, in a store that it shares."""
    return f"{OWNER}@{node}"


def _reason(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            text = stream.read(_MOST).decode(errors="replace")
    except OSError:
        text = ""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"{file} is there" + (f": {first}" if first else "")
