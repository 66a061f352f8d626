"""The nodes: who is at work on the store, who has left it, and who was lost."""

from __future__ import annotations

from wakeful.control.base import Base
from wakeful.control.callers import Caller
from wakeful.control.rows import Row, listing, node_row
from wakeful.store.protocol import Store


class Nodes(Base):
    async def nodes(self, caller: Caller) -> Row:
        """The engines on this store, by name. There are as many as there ever were data folders, and so few that they
        fit on one page."""
        return listing(await self.access.read(self._node_rows))

    def _node_rows(self, store: Store) -> list[Row]:
        return [node_row(row, self.node_state(row), self.node) for row in store.nodes(self.clock())]
