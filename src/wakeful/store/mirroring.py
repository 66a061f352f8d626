"""Lists that are mirrored, and who tends them.

Laws:
- State is level: what a source shows now is compared with what is known. Where nothing differs, nothing is written.
- A source that cannot be read is unknown, never empty. Why is told once, and so is that it can be read again. The row
  follows at once when the reason becomes another, the events once a minute at most.
- Where nodes share a store, one of them tends a source, and what another one saw of it is not taken; nor what it saw
  itself before somebody told of what a run had done. So nothing older undoes that.
- A lasting thing that is back with the fingerprint it had when it went is the same item.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from wakeful.core.errors import Stale, Unknown
from wakeful.core.events import EventKind
from wakeful.core.items import Kind, NewItem, Observation, Ring
from wakeful.core.ledger import Edges, edges
from wakeful.core.outages import same_reason
from wakeful.store.entries import message_row
from wakeful.store.protocol import SourceRow
from wakeful.store.recording import Recording
from wakeful.store.rows import micros_or_none, to_micros, to_source_row
from wakeful.store.session import Row

_MICROSECOND = timedelta(microseconds=1)
# Between two events of one outage.
REPEATED = timedelta(minutes=1)
# How many things are looked for at once.
_MANY = 1_000


class Glance:
    """What is known of a source, against what it shows now; None is that it cannot be read."""

    __slots__ = ("edges", "known", "outage", "quiet", "seen", "telling", "told")

    def __init__(
        self, rows: list[Row], tended: list[Row], observed: Sequence[Observation] | None, why: str, now: int
    ) -> None:
        self.known = {row["external_id"]: row for row in rows}
        self.seen = {thing.external_id: thing for thing in observed or ()}
        prints = None if observed is None else {id: thing.fingerprint for id, thing in self.seen.items()}
        self.edges = edges({id: row["fingerprint"] for id, row in self.known.items()}, prints)
        # Why it could not be read until now; None where it could.
        self.outage: str | None = tended[0]["outage"] if tended else None
        # Why, and when that was told; by an event that others keep, unlike the row.
        self.told: tuple[str, int] | None = (
            (tended[0]["told"], tended[0]["told_at"]) if self.outage is not None else None
        )
        self.telling = self.told is None or (
            not same_reason(why, self.told[0]) and now - self.told[1] >= REPEATED // _MICROSECOND
        )
        changed = self.edges.new or self.edges.changed or self.edges.gone
        if observed is not None:
            self.quiet = not changed and self.outage is None
        else:
            self.quiet = why == "" or (why == self.outage and not self.telling)


class Mirroring(Recording):
    def observe(
        self,
        source: str,
        agent: str,
        observed: Sequence[Observation] | None,
        now: datetime,
        *,
        node: str | None = None,
        tenure: int | None = None,
        why: str = "",
    ) -> Edges:
        # Most looks find what is known: they are no transaction, and hold nobody up.
        reading = self.session.nearest()
        named = {"source": source, "agent": agent}
        tended, rows = reading.lists(("source_row", named), ("mirrored", named))
        fence(tended, node, tenure)
        found = Glance(rows, tended, observed, why, to_micros(now))
        return found.edges if found.quiet else self.mirror(source, agent, observed, now, node, tenure, why)

    def mirror(
        self,
        source: str,
        agent: str,
        observed: Sequence[Observation] | None,
        now: datetime,
        node: str | None,
        tenure: int | None,
        why: str,
    ) -> Edges:
        named = {"source": source, "agent": agent}
        with self.session.transaction("observe"):
            # Somebody may have been quicker since.
            tended, rows = self.session.lists(("hold_source", named), ("mirrored", named))
            fence(tended, node, tenure)
            found = Glance(rows, tended, observed, why, to_micros(now))
            if found.quiet:
                return found.edges
            if observed is None:
                self._outage(source, agent, why, found, now)
                return found.edges
            if found.outage is not None:
                self._restored(source, agent, found.outage, now)
            back = self._back(source, agent, [found.seen[id] for id in found.edges.new])
            for id in found.edges.new:
                if id in back:
                    self._return(source, agent, back[id], now)
                else:
                    self._mirror(source, agent, found.seen[id], now)
            for id in found.edges.changed:
                self._change(found.known[id], found.seen[id], now)
            for id in found.edges.gone:
                self._gone(source, agent, found.known[id], now)
            return found.edges

    def amend(self, source: str, agent: str, observed: Sequence[Observation], now: datetime) -> Edges:
        with self.session.transaction("amend"):
            seen = {thing.external_id: thing for thing in observed}
            rows = self.session.all("mirrored", source=source, agent=agent)
            known = {row["external_id"]: row for row in rows if row["external_id"] in seen}
            prints = {id: seen[id].fingerprint for id in known}
            found = edges({id: row["fingerprint"] for id, row in known.items()}, prints)
            for id in found.changed:
                self._change(known[id], seen[id], now)
            if found.changed:
                # Whoever tends it may have looked before, and be about to tell what it saw then.
                self.session.write("next_tenure", source=source, agent=agent)
            return found

    def _outage(self, source: str, agent: str, why: str, found: Glance, now: datetime) -> None:
        told, told_at = (why, to_micros(now)) if found.told is None or found.telling else found.told
        row = {"source": source, "agent": agent, "why": why, "now": to_micros(now), "told": told, "told_at": told_at}
        try:
            self.session.run("begin_outage", **row)
        except self.session.broken as error:
            raise self._nobody(error, [agent]) from error
        if found.telling:
            self.event(EventKind.outage, now, agent=agent, fields={"source": source, "why": why})

    def _restored(self, source: str, agent: str, why: str, now: datetime) -> None:
        for query in ("end_outage", "forget_outage"):
            self.session.write(query, source=source, agent=agent)
        self.event(EventKind.restored, now, agent=agent, fields={"source": source, "why": why})

    def _mirror(self, source: str, agent: str, thing: Observation, now: datetime) -> None:
        item = NewItem(
            kind=Kind.message,
            agent=agent,
            subject=thing.subject or thing.external_id,
            body=thing.body,
            ring=Ring.news,
            source=source,
            not_before=thing.not_before,
        )
        row = message_row(item, now)
        row.update(external_id=thing.external_id, fingerprint=thing.fingerprint)
        self.insert_message(row)

    def _back(self, source: str, agent: str, things: Sequence[Observation]) -> dict[str, Row]:
        """Of these, those that were there before and are what they were, by name."""
        lasting = {thing.external_id: thing.fingerprint for thing in things if thing.lasting}
        prints, found = list(lasting.values()), {}
        for first in range(0, len(prints), _MANY):
            asked = json.dumps(prints[first : first + _MANY])
            for row in self.session.all("gone_things", source=source, agent=agent, prints=asked):
                if lasting.get(row["external_id"]) == row["fingerprint"]:
                    found[row["external_id"]] = row
        return found

    def _return(self, source: str, agent: str, row: Row, now: datetime) -> None:
        """As it was when it went. A run that was shown it then still holds it, or has answered it meanwhile."""
        put_off = row["not_before"] is not None and row["not_before"] > to_micros(now)
        held_by = None if put_off else row["under_way"]
        answered = not put_off and (row["answered"] or (row["shown"] == row["fingerprint"] and not row["unanswered"]))
        rings = not (put_off or answered or held_by is not None)
        self.session.write(
            "reopen_mirrored",
            item=row["id"],
            held_by=held_by,
            shown=row["fingerprint"] if answered else row["shown"],
            unanswered=0 if answered or rings else row["unanswered"],
            ring_at=to_micros(now) if rings else None,
        )
        fields = {"source": source, "external_id": row["external_id"]}
        self.event(EventKind.returned, now, agent=agent, item=row["id"], fields=fields)

    def _change(self, row: Row, thing: Observation, now: datetime) -> None:
        self.session.write(
            "change_mirrored",
            item=row["id"],
            fingerprint=thing.fingerprint,
            subject=thing.subject or thing.external_id,
            body=thing.body,
            not_before=micros_or_none(thing.not_before),
            ring_at=to_micros(thing.not_before or now),
            now=to_micros(now),
        )

    def _gone(self, source: str, agent: str, row: Row, now: datetime) -> None:
        self.session.write("close_mirrored", item=row["id"], now=to_micros(now))
        fields = {"source": source, "external_id": row["external_id"]}
        self.event(EventKind.gone, now, agent=agent, item=row["id"], fields=fields)

    # -- who tends it -------------------------------------------------------------------------------------
    def tend(
        self, sources: Sequence[tuple[str, str]], node: str, now: datetime, lease: timedelta
    ) -> dict[tuple[str, str], int]:
        if not sources:
            return {}
        asked = {"node": node, "now": to_micros(now), "lease": lease // _MICROSECOND}
        with self.session.transaction("tend"):
            try:
                rows = self.session.all("tend_sources", **asked, sources=json.dumps(list(sources)))
            except self.session.broken as error:
                raise self._nobody(error, [agent for _, agent in sources]) from error
        return {(row["source"], row["agent"]): row["tenure"] for row in rows}

    def _nobody(self, error: Exception, agents: Sequence[str]) -> Exception:
        if not self.session.unreferenced(error):
            return error
        return Unknown(f"no agent is called {' or '.join(sorted(set(agents)))}")

    def abandon(
        self, sources: Sequence[tuple[str, str]], now: datetime, *, node: str | None = None
    ) -> list[tuple[str, str]]:
        left = []
        with self.session.transaction("abandon"):
            # In the order in which they are tended.
            for source, agent in sorted(sources, key=lambda name: (name[1], name[0])):
                named = {"source": source, "agent": agent}
                self.session.run("forget_source", **named, node=node, now=to_micros(now))
                tended, rows = self.session.lists(("source_row", named), ("mirrored", named))
                if tended:
                    left.append((source, agent))
                    continue
                for row in rows:
                    self._gone(source, agent, row, now)
        return left

    def sources(self) -> list[SourceRow]:
        return [to_source_row(row) for row in self.session.reader().all("source_rows")]

    def mirrored_sources(self) -> list[tuple[str, str]]:
        return [(row["source"], row["agent"]) for row in self.session.reader().all("mirrored_sources")]


def fence(tended: list[Row], node: str | None, tenure: int | None) -> None:
    """What was seen by one who does not tend it (any more) is not taken."""
    if node is None:
        return
    if not tended or tended[0]["node"] != node:
        raise Stale(f"{node} does not tend this source: {_whose(tended)}")
    if tenure is not None and tended[0]["tenure"] != tenure:
        raise Stale(f"{node} may have seen it before another node told of what a run had done")


def _whose(tended: list[Row]) -> str:
    return f"{tended[0]['node']} does" if tended and tended[0]["node"] is not None else "nobody does"
