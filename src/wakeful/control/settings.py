"""The limits of a live agent: what holds, where each value comes from, and changing it without a restart.

Law: whoever says which version it has seen changes that version or nothing; asked and written in one transaction.
"""

from __future__ import annotations

from wakeful.control.base import Base, Target, find
from wakeful.control.callers import Caller
from wakeful.control.rows import Row
from wakeful.control.typed import read_settings, shown
from wakeful.core.errors import Outdated
from wakeful.store.protocol import Store


class Settings(Base):
    async def settings(self, caller: Caller, *, agent: str) -> Row:
        """Every limit that may be set, its value, and where that comes from."""
        return await self.access.read(lambda store: _settings(store, agent))

    async def set(
        self, caller: Caller, *, agent: str, settings: dict[str, str | float | None], version: int | None = None
    ) -> Row:
        """Values as a person types them; null takes an override back. An address sets all of its replicas. With
        `version`, only if that is the one that holds."""
        read, now = read_settings(settings), self.clock()
        target = await self.access.read(lambda store: find(store, agent))

        if version is not None and version != _version(target):
            raise _outdated(agent, _version(target), version)

        def write(store: Store) -> None:
            for row in target.agents:
                expected = None if version is None else row.version
                store.set(row.agent.name, read, caller.name, now, expected=expected)

        await self.access.write(write)
        return await self.access.read(lambda store: _settings(store, agent))


def _settings(store: Store, agent: str) -> Row:
    """Of replicas, those of the first: what they share they were declared with together."""
    target = find(store, agent)
    row = target.first
    return {"agent": agent, "version": _version(target), "settings": shown(row.agent, row.overrides)}


def _version(target: Target) -> int:
    """Each only ever grows, and so does their sum."""
    return sum(row.version for row in target.agents)


def _outdated(agent: str, found: int, version: int) -> Outdated:
    return Outdated(f"the settings of {agent} are at version {found}, not {version}: somebody has changed them")
