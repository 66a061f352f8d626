"""What is asked of the engine itself, and a copy of the store."""

from __future__ import annotations

import asyncio
from pathlib import Path

from wakeful.control.base import Base
from wakeful.control.callers import Beside, Caller
from wakeful.control.rows import Row
from wakeful.core.errors import Mistake
from wakeful.core.wording import readable


class Keeping(Base):
    async def reload(self, caller: Caller) -> Row:
        """The fleet file, read again now."""
        answer = dict(await self._engine().reload())
        await self.acted(caller, "reload")
        return answer

    async def stop(self, caller: Caller, *, drain: bool = False) -> Row:
        """The engine leaves. Runs go on under their guardians; with `drain` it waits for them first."""
        engine = self._engine()
        await self.acted(caller, "stop", drain=drain)
        engine.leave(drain=drain)
        return {"stopping": True, "drain": drain}

    async def backup(self, caller: Caller, *, path: str) -> Row:
        """A copy of the store, while it is in use."""
        target = Path(readable(path, "the path"))
        if not target.is_absolute():
            raise Mistake(f"expected a whole path, found {path}", "begin it with /")
        if target.exists():
            raise Mistake(f"{path} is there already", "name a new file; a backup replaces nothing")
        if not target.parent.is_dir():
            raise Mistake(f"there is no folder {target.parent}", "make it, or name another")
        store = await self.access.read(lambda store: store)
        # A copy may take long and holds nobody up; here it would hold up the whole loop.
        await asyncio.to_thread(store.backup, target)
        await self.acted(caller, "backup", path=str(target))
        return {"path": str(target), "bytes": target.stat().st_size}

    def _engine(self) -> Beside:
        if self.beside is None:
            raise Mistake("no engine is running here", "start one with wakeful up")
        return self.beside
