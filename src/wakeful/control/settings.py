"""The limits of a live agent: what holds, where each value comes from, and changing it without a restart."""

from __future__ import annotations

from wakeful.control.base import NEWEST, Base, find
from wakeful.control.callers import Caller
from wakeful.control.rows import Row
from wakeful.control.typed import read_settings, shown
from wakeful.core.events import EventKind
from wakeful.store.protocol import Store

_VERSIONED = (EventKind.declared.value, EventKind.set.value)


class Settings(Base):
    async def settings(self, caller: Caller, *, agent: str) -> Row:
        return await self.access.read(lambda store: _settings(store, agent))

    async def set(self, caller: Caller, *, agent: str, settings: dict[str, str | None]) -> Row:
        """Values as a person types them; nothing takes an override back. An address sets all of its replicas."""
        read, now = read_settings(settings), self.clock()
        target = await self.access.read(lambda store: find(store, agent))

        def write(store: Store) -> None:
            for row in target.agents:
                store.set(row.agent.name, read, caller.name, now)

        await self.access.write(write)
        return await self.access.read(lambda store: _settings(store, agent))


def _settings(store: Store, agent: str) -> Row:
    """Of replicas, those of the first: what they share they were declared with together."""
    row = find(store, agent).first
    return {
        "agent": agent,
        "version": _version(store, row.agent.name),
        "settings": shown(row.agent, row.overrides),
    }


def _version(store: Store, agent: str) -> int | None:
    found = store.events(before=NEWEST, agent=agent, kinds=_VERSIONED, limit=1)
    version = (found[0].fields or {}).get("version") if found else None
    return version if isinstance(version, int) else None
