"""What was decided, newest first, and everything that happened, in order. Both are read from the events."""

from __future__ import annotations

from wakeful.control.base import NEWEST, Base, bounded, chosen, find, numbered
from wakeful.control.callers import Caller
from wakeful.control.rows import MILLION, Row, chain_row, decision_row, event_row, listing
from wakeful.core.errors import Unknown
from wakeful.core.events import Event, EventKind
from wakeful.core.wakes import VerdictKind
from wakeful.store.protocol import Store, WakeRow

DECIDED = (EventKind.decided.value,)

_PAGE = 500
# How many events are looked through for those of one verdict or of one wake before the page is given as it is.
MOST_LOOKED_AT = 5_000


class Decided(Base):
    async def decisions(
        self,
        caller: Caller,
        *,
        agent: str | None = None,
        verdict: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> Row:
        wanted = None if verdict is None else chosen(verdict, VerdictKind, "verdict")
        most = bounded(limit)
        numbered("decision", before=before or None)
        return await self.access.read(lambda store: _decisions(store, agent, wanted, before, most))

    async def decision(self, caller: Caller, *, wake: int) -> Row:
        return await self.access.read(lambda store: decision_of(store, wake))

    async def events(
        self,
        caller: Caller,
        *,
        after: int | None = 0,
        agent: str | None = None,
        kinds: list[str] | None = None,
        limit: int = 100,
    ) -> Row:
        """Oldest first, after the given one; None means from now on. `next` goes on from the last that was given."""
        most = bounded(limit)
        numbered("event", after=after)
        names = tuple(chosen(kind, EventKind, "kind of event").value for kind in kinds or ())
        now = self.clock()

        def read(store: Store) -> Row:
            if agent is not None:
                find(store, agent)
            if after is None:
                return listing([], store.events_until(now))
            found = store.events(after=after, agent=agent, kinds=names, limit=most)
            return listing(map(event_row, found), found[-1].id if found else after or None)

        return await self.access.read(read)


def _decisions(store: Store, agent: str | None, verdict: VerdictKind | None, before: int | None, limit: int) -> Row:
    if agent is not None:
        find(store, agent)
    found: list[Row] = []
    cursor, looked_at = before or NEWEST, 0
    while len(found) < limit and looked_at < MOST_LOOKED_AT:
        page = store.events(before=cursor, agent=agent, kinds=DECIDED, limit=_PAGE if verdict else limit)
        if not page:
            return listing(found)
        for event in page:
            cursor, looked_at = event.id, looked_at + 1
            row = _row(store, event)
            if verdict is None or row["verdict"] == verdict:
                found.append(row)
            if len(found) == limit:
                break
    return listing(found, cursor)


def _row(store: Store, event: Event) -> Row:
    told = "verdict" in (event.fields or {})
    return decision_row(None if told or event.wake is None else store.wake(event.wake), event)


def decision_of(store: Store, wake: int) -> Row:
    """The last word on one wake. The verdict's numbers are in its event, where that can still be found."""
    row = store.wake(wake)
    if row is None:
        raise Unknown(f"no wake {wake}")
    told = decision_row(row, last_event(store, row))
    led = {
        "by_run": row.wake.by_run,
        "chain": chain_row(row.wake),
        # What all that came of that root had cost when it was asked for.
        "lineage_usd": row.wake.lineage_usd / MILLION,
    }
    return {**told, "wake_id": wake, "reason_given": row.wake.reason, "state": row.state, **led}


def _told_under(store: Store, agent: str | None) -> str | None:
    """Of a wake that names an address or a role, the event names who answered."""
    return agent if agent is not None and store.agent(agent) is not None else None


def last_event(store: Store, row: WakeRow) -> Event | None:
    """That tells of a verdict on it."""
    wake, agent, cursor = row.wake.id, _told_under(store, row.wake.agent), NEWEST
    for _ in range(MOST_LOOKED_AT // _PAGE):
        page = store.events(before=cursor, agent=agent, kinds=DECIDED, limit=_PAGE)
        for event in page:
            if event.wake == wake:
                return event
        if len(page) < _PAGE:
            break
        cursor = page[-1].id
    return None


def last_decision(store: Store, agent: str) -> Row | None:
    page = store.events(before=NEWEST, agent=agent, kinds=DECIDED, limit=1)
    return _row(store, page[0]) if page else None
