"""Lists that are mirrored, and who tends them.

Laws:
- State is level: what a source shows now is compared with what is known. Where nothing differs, nothing is written.
- A source that cannot be read is unknown, never empty. Why is told once, and so is that it can be read again.
- Where nodes share a store, one of them tends a source, and what another one saw of it is not taken.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta

from wakeful.core.errors import Stale, Unknown
from wakeful.core.events import EventKind
from wakeful.core.items import Kind, NewItem, Observation, Ring
from wakeful.core.ledger import Edges, edges
from wakeful.store.protocol import SourceRow
from wakeful.store.recording import Recording, item_parameters
from wakeful.store.rows import micros_or_none, to_micros, to_source_row
from wakeful.store.session import Reading, Row

_MICROSECOND = timedelta(microseconds=1)


class Glance:
    """What is known of a source, against what it shows now; None is that it cannot be read."""

    __slots__ = ("edges", "known", "outage", "quiet", "seen")

    def __init__(
        self, rows: list[Row], tended: list[Row], observed: Sequence[Observation] | None, node: str | None, why: str
    ) -> None:
        if node is not None and (not tended or tended[0]["node"] != node):
            raise Stale(f"{node} does not tend this source: {_whose(tended)}")
        self.known = {row["external_id"]: row for row in rows}
        self.seen = {thing.external_id: thing for thing in observed or ()}
        prints = None if observed is None else {id: thing.fingerprint for id, thing in self.seen.items()}
        self.edges = edges({id: row["fingerprint"] for id, row in self.known.items()}, prints)
        # Why it could not be read until now; None where it could.
        self.outage: str | None = tended[0]["outage"] if tended else None
        changed = self.edges.new or self.edges.changed or self.edges.gone
        self.quiet = not changed and (self.outage is None if observed is not None else why in ("", self.outage))


class Mirroring(Recording):
    def observe(
        self,
        source: str,
        agent: str,
        observed: Sequence[Observation] | None,
        now: datetime,
        *,
        node: str | None = None,
        why: str = "",
    ) -> Edges:
        # Most looks find what is known: they are no transaction, and hold nobody up.
        reading = self.session if self.session.depth else self.session.reader()
        found = self.glance(reading, source, agent, observed, node, why)
        return found.edges if found.quiet else self.mirror(source, agent, observed, now, node, why)

    def mirror(
        self,
        source: str,
        agent: str,
        observed: Sequence[Observation] | None,
        now: datetime,
        node: str | None,
        why: str,
    ) -> Edges:
        with self.session.transaction("observe"):
            # Somebody may have been quicker since.
            found = self.glance(self.session, source, agent, observed, node, why)
            if found.quiet:
                return found.edges
            if observed is None:
                self._outage(source, agent, why, now)
                return found.edges
            if found.outage is not None:
                self._restored(source, agent, found.outage, now)
            for id in found.edges.new:
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
            return found

    def glance(
        self,
        reading: Reading,
        source: str,
        agent: str,
        observed: Sequence[Observation] | None,
        node: str | None,
        why: str,
    ) -> Glance:
        named = {"source": source, "agent": agent}
        tended, rows = reading.lists(("source_row", named), ("mirrored", named))
        return Glance(rows, tended, observed, node, why)

    def _outage(self, source: str, agent: str, why: str, now: datetime) -> None:
        try:
            self.session.run("begin_outage", source=source, agent=agent, why=why, now=to_micros(now))
        except self.session.broken as error:
            raise self._nobody(error, [agent]) from error
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
        parameters = item_parameters(item, now, 0)
        parameters.update(external_id=thing.external_id, fingerprint=thing.fingerprint)
        self.insert_item(parameters)

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
    ) -> AbstractSet[tuple[str, str]]:
        if not sources:
            return set()
        asked = {"node": node, "now": to_micros(now), "lease": lease // _MICROSECOND}
        with self.session.transaction("tend"):
            try:
                rows = self.session.all("tend_sources", **asked, sources=json.dumps(list(sources)))
            except self.session.broken as error:
                raise self._nobody(error, [agent for _, agent in sources]) from error
        return {(row["source"], row["agent"]) for row in rows}

    def _nobody(self, error: Exception, agents: Sequence[str]) -> Exception:
        if not self.session.unreferenced(error):
            return error
        return Unknown(f"no agent is called {' or '.join(sorted(set(agents)))}")

    def abandon(self, sources: Sequence[tuple[str, str]], now: datetime) -> None:
        with self.session.transaction("abandon"):
            for source, agent in sources:
                for row in self.session.all("mirrored", source=source, agent=agent):
                    self._gone(source, agent, row, now)
                self.session.write("forget_source", source=source, agent=agent)

    def sources(self) -> list[SourceRow]:
        return [to_source_row(row) for row in self.session.reader().all("source_rows")]

    def mirrored_sources(self) -> list[tuple[str, str]]:
        return [(row["source"], row["agent"]) for row in self.session.reader().all("mirrored_sources")]


def _whose(tended: list[Row]) -> str:
    return f"{tended[0]['node']} does" if tended and tended[0]["node"] is not None else "nobody does"
