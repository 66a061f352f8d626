"""What was decided, newest first, and everything that happened, in order. Both are read from the events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from wakeful.control.base import NEWEST, Base, bounded, chosen, find, numbered
from wakeful.control.callers import Caller
from wakeful.control.rows import CHECK, MILLION, Row, chain_row, decision_row, event_row, listing
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.events import Event, EventKind
from wakeful.core.guards import GUARDS
from wakeful.core.moments import read_moment
from wakeful.core.wakes import Cause, VerdictKind
from wakeful.core.wording import quoted, readable
from wakeful.store.protocol import Sought, Store, WakeRow

DECIDED = (EventKind.decided.value,)

# What may object to a wake; the CHECK of an agent is no guard, but holds as one.
_GUARDS = (*(guard.name for guard in GUARDS), CHECK)
_PAGE = 500
# How many events are looked through for those of one wake.
MOST_LOOKED_AT = 5_000


class Decided(Base):
    async def decisions(
        self,
        caller: Caller,
        *,
        agent: str | None = None,
        verdict: str | None = None,
        guard: str | None = None,
        cause: str | None = None,
        text: str | None = None,
        since: str | None = None,
        until: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> Row:
        """Every verdict that was reached, newest first. Of a search a page may be short, or empty, and not be the last:
        it looks at a part of the past, and `next` is where it goes on."""
        if guard is not None and guard not in _GUARDS:
            raise Mistake(f"unknown guard {quoted(guard)}", f"use one of {', '.join(_GUARDS)}")
        sought = Sought(
            verdict=None if verdict is None else chosen(verdict, VerdictKind, "verdict").value,
            guard=guard,
            cause=None if cause is None else chosen(cause, Cause, "cause").value,
            text=readable(text, "the text") or None,
        )
        most, now = bounded(limit), self.clock()
        numbered("decision", before=before or None)
        within = [None if at is None else read_moment(at, now, ZoneInfo("UTC"), past=True) for at in (since, until)]
        return await self.access.read(lambda store: _decisions(store, agent, sought, within, before, most))

    async def decision(self, caller: Caller, *, wake: int) -> Row:
        """The last word on one wake, with what led to it."""
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
        """Oldest first, after the given one; null means from now on. `last` is where to go on later from."""
        most = bounded(limit)
        numbered("event", after=after)
        names = tuple(chosen(kind, EventKind, "kind of event").value for kind in kinds or ())
        now = self.clock()

        def read(store: Store) -> Row:
            if agent is not None:
                find(store, agent)
            if after is None:
                return {**listing([]), "last": store.events_until(now)}
            found = store.events(after=after, agent=agent, kinds=names, limit=most)
            last = found[-1].id if found else after
            # Several may share an id, and are given together: a full page says nothing of what is behind it.
            more = bool(found) and bool(store.events(after=last, agent=agent, kinds=names, limit=1))
            return {**listing(map(event_row, found), last if more else None), "last": last}

        return await self.access.read(read)


def _decisions(
    store: Store,
    agent: str | None,
    sought: Sought,
    within: Sequence[datetime | None],
    before: int | None,
    limit: int,
) -> Row:
    if agent is not None:
        find(store, agent)
    since, until = within
    after = 0 if since is None else store.events_until(since - timedelta.resolution)
    end = before or NEWEST
    if until is not None:
        end = min(end, store.events_until(until) + 1)
    if sought == Sought():
        page = store.events(after=after, before=end, agent=agent, kinds=DECIDED, limit=limit)
        return listing([_row(store, event) for event in page], page[-1].id if len(page) == limit else None)
    found = store.find_decided(sought, agent=agent, after=after, before=end, limit=limit)
    rows = [row for event in found.rows if _is_sought(row := _row(store, event), sought)]
    return listing(rows, found.next)


def _is_sought(row: Row, sought: Sought) -> bool:
    """What joined another wake has no verdict of its own to be found by, and is told as it stands now."""
    said = [str(row[name] or "").lower() for name in ("reason", "from", "agent")]
    return (
        sought.verdict in (None, row["verdict"])
        and sought.guard in (None, row["guard"])
        and (sought.text is None or any(sought.text.lower() in each for each in said))
    )


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
