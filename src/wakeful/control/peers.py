"""What a peer may ask: to leave a task. It is no operation: whoever comes here is neither operator nor run.

Law: the task is recorded before the peer is answered; the same key finds what it left before.
"""

from __future__ import annotations

from wakeful.control.base import Base
from wakeful.control.callers import Caller
from wakeful.control.noting import note_act
from wakeful.core.peers import peer_todo
from wakeful.core.redacting import redacted_item
from wakeful.store.protocol import Recorded, Store


class Peers(Base):
    async def leave_todo(
        self, *, peer: str, name: str | None, message: str, key: str | None, by: Caller | None = None
    ) -> Recorded:
        """`by` is the operator, where the peer came with the operator's own token."""
        now, who, known = self.clock(), self.redact(peer), None if key is None else self.redact.name(key)
        item = redacted_item(peer_todo(who, name, message, known), self.redact)

        def write(store: Store) -> Recorded:
            (recorded,) = store.record([item], now)
            if by is not None and not recorded.duplicate:
                note_act(store, by, "peer_todo", now, agent=item.agent, item=recorded.id)
            return recorded

        return await self.access.write(write)
