"""Between rows and core types: the only place that knows how a value is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from wakeful.core.codec import encode, read_time
from wakeful.core.events import Event, EventKind
from wakeful.core.items import PRIORITY_RANKS, Item, Kind, MessageType, Origin, Priority, Ring, State
from wakeful.core.lifecycle import Position
from wakeful.core.runs import Outcome, Run
from wakeful.core.standing import Spend, Standing
from wakeful.core.wakes import RANKS, Cause, Pause, Subject, Wake
from wakeful.store.protocol import Attempt, NodeRow, RunRow, SourceRow, WakeRow
from wakeful.store.session import Row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PRIORITIES = {rank: priority for priority, rank in PRIORITY_RANKS.items()}


def to_micros(moment: datetime) -> int:
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


@lru_cache(maxsize=4096)
def from_micros(micros: int) -> datetime:
    """Many rows are of one instant: those of a batch, of a shift."""
    # By parts, which is faster than to let the duration find them.
    seconds, rest = divmod(micros, 1_000_000)
    return _EPOCH + timedelta(0, seconds, rest)


def write_micros(micros: int) -> str:
    """As `core.codec.write_time` writes that instant, for those who have thousands."""
    minute, rest = divmod(micros, 60_000_000)
    second, fraction = divmod(rest, 1_000_000)
    return f"{_write_minute(minute)}:{second:02}.{fraction:06}Z"


@lru_cache(maxsize=4_096)
def _write_minute(minute: int) -> str:
    return from_micros(minute * 60_000_000).isoformat()[:16]


def micros_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def moment_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)


def dump(value: Any) -> str:
    return json.dumps(encode(value), separators=(",", ":"), ensure_ascii=False)


def to_standing(row: Row) -> Standing:
    return Standing(
        agent=row["agent"],
        position=Position(row["state"], row["hits"]),
        idle_streak=row["idle_streak"],
        failure_streak=row["failure_streak"],
        due_at=moment_or_none(row["due_at"]),
        gates={} if row["gates"] == "{}" else {at: read_time(text) for at, text in json.loads(row["gates"]).items()},
        costs=() if row["costs"] == "[]" else tuple(Spend(**cost) for cost in json.loads(row["costs"])),
        last_outcome=row["last_outcome"],
        last_ended_at=moment_or_none(row["last_ended_at"]),
    )


def to_pause(row: Row) -> Pause:
    return Pause(
        scope=row["scope"],
        owner=row["owner"],
        reason=row["reason"],
        since=from_micros(row["since"]),
        until=moment_or_none(row["until"]),
    )


# An enumeration looks a value up several times more slowly.
_KINDS, _STATES, _ORIGINS = (
    {each.value: each for each in Kind},
    {each.value: each for each in State},
    {each.value: each for each in Origin},
)
_TYPES, _RINGS = {each.value: each for each in MessageType}, {each.value: each for each in Ring}


class _Unfrozen:
    """An item in the making. To set a field of what is frozen takes ten times as long, and items are made by the
    thousand; this one is made, and only then becomes an `Item`, before anybody else has seen it."""

    __slots__ = Item.__slots__


def to_item(row: Row) -> Item:
    item: Any = _Unfrozen()
    item.id = row["id"]
    item.kind = _KINDS[row["kind"]]
    item.state = _STATES[row["state"]]
    item.agent = row["agent"]
    item.role = row["role"]
    item.sender = row["sender"]
    item.origin = _ORIGINS[row["origin"]]
    item.subject = row["subject"]
    item.body = row["body"]
    item.type = _TYPES[row["type"]]
    item.priority = _PRIORITIES[row["priority"]]
    item.ring = _RINGS[row["ring"]]
    item.fingerprint = row["fingerprint"]
    item.shown = row["shown"]
    item.unanswered = row["unanswered"]
    item.attempts = row["attempts"]
    item.max_retries = row["max_retries"]
    item.key = row["key"]
    item.source = row["source"]
    item.external_id = row["external_id"]
    item.not_before = moment_or_none(row["not_before"])
    item.result = row["result"]
    item.error = row["error"]
    item.created_at = from_micros(row["created_at"])
    item.closed_at = moment_or_none(row["closed_at"])
    item.metadata = row["metadata"]
    item.reply_to = row["reply_to"]
    item.thread = row["thread"] or row["id"]
    item.by_run = row["by_run"]
    item.payload = row["payload"]
    item.timeout = None if row["timeout"] is None else timedelta(microseconds=row["timeout"])
    item.tags = () if row["tags"] == "[]" else tuple(json.loads(row["tags"]))
    item.dedupe = row["dedupe"]
    item.waits_for = row["waits_for"]
    item.__class__ = Item
    made: Item = item
    return made


def to_priority(rank: int) -> Priority:
    return _PRIORITIES[rank]


_WAKE = (
    *("id", "agent", "role", "cause", "subject", "requested_at", "sender", "reason", "item", "task", "source"),
    *("by_run", "root", "depth", "lineage_usd", "slot", "attempt", "charged"),
)
_WAKE_OF_RUN = tuple((key, f"wake_{key}") for key in _WAKE)


def to_wake_of_run(row: Row) -> Wake:
    """From the columns that a run's row has for its wake."""
    return to_wake({key: row[column] for key, column in _WAKE_OF_RUN})


def to_wake(row: Row) -> Wake:
    return Wake(
        id=row["id"],
        agent=row["agent"],
        role=row["role"],
        cause=Cause(row["cause"]),
        subject=Subject(row["subject"]),
        requested_at=from_micros(row["requested_at"]),
        sender=row["sender"],
        reason=row["reason"],
        item=row["item"],
        task=row["task"],
        source=row["source"],
        by_run=row["by_run"],
        root=row["root"],
        depth=row["depth"],
        lineage_usd=row["lineage_usd"],
        slot=row["slot"],
        attempt=row["attempt"],
        charged=bool(row["charged"]),
    )


def wake_parameters(wake: Wake) -> Row:
    return {
        "agent": wake.agent,
        "role": wake.role,
        "cause": wake.cause.value,
        "subject": wake.subject.value,
        "sender": wake.sender,
        "reason": wake.reason,
        "item": wake.item,
        "task": wake.task,
        "source": wake.source,
        "by_run": wake.by_run,
        "root": wake.root,
        "depth": wake.depth,
        "lineage_usd": wake.lineage_usd,
        "slot": wake.slot,
        "attempt": wake.attempt,
        "rank": RANKS[wake.cause],
        "pool": wake.pool.value,
        "requested_at": to_micros(wake.requested_at),
    }


def to_wake_row(row: Row) -> WakeRow:
    return WakeRow(
        wake=to_wake(row),
        state=row["state"],
        guard=row["guard"],
        reason=row["verdict"],
        retry_at=moment_or_none(row["retry_at"]),
        joined=row["joined"],
        run=row["run"],
        runs=tuple(sorted(json.loads(row.get("runs", "[]")))),
    )


def to_run(row: Row) -> Run:
    return Run(
        id=row["id"],
        agent=row["agent"],
        wake=row["wake"],
        cause=Cause(row["cause"]),
        subject=Subject(row["subject"]),
        version=row["version"],
        position=Position(row["position"], row["hits"]),
        epoch=row["epoch"],
        attempt=row["attempt"],
        reserved=Spend(usd=row["reserved_usd"], tokens=row["reserved_tokens"]),
        admitted_at=from_micros(row["admitted_at"]),
        started_at=moment_or_none(row["started_at"]),
    )


def to_run_row(row: Row) -> RunRow:
    return RunRow(
        id=row["id"],
        agent=row["agent"],
        wake=row["wake"],
        cause=Cause(row["cause"]),
        subject=Subject(row["subject"]),
        state=row["state"],
        epoch=row["epoch"],
        attempt=row["attempt"],
        node=row["node"],
        outcome=None if row["outcome"] is None else Outcome(row["outcome"]),
        reason=row["reason"],
        summary=row["summary"],
        admitted_at=from_micros(row["admitted_at"]),
        started_at=moment_or_none(row["started_at"]),
        ended_at=moment_or_none(row["ended_at"]),
        spend=Spend(usd=row["spent_usd"], tokens=row["spent_tokens"]),
        shown=tuple(json.loads(row["shown"])),
        tasks=tuple(json.loads(row["tasks"])),
        estimated=bool(row["estimated"]),
    )


def to_node_row(row: Row) -> NodeRow:
    return NodeRow(
        name=row["name"],
        host=row["host"],
        url=row["url"],
        since=from_micros(row["since"]),
        seen_at=from_micros(row["seen_at"]),
        left_at=moment_or_none(row["left_at"]),
        alive=bool(row["alive"]),
        runs=row["runs"],
    )


def to_source_row(row: Row) -> SourceRow:
    return SourceRow(
        source=row["source"],
        agent=row["agent"],
        node=row["node"],
        outage=row["outage"],
        since=moment_or_none(row["since"]),
    )


def to_events(rows: Iterable[Row]) -> list[Event]:
    """Tasks that ended together are one row; who reads is told of each, under its number."""
    events = []
    for row in rows:
        event = to_event(row)
        ends: Any = event.fields.get("ends") if event.kind is EventKind.task_ended and event.fields else None
        if ends is None:
            events.append(event)
            continue
        known: dict[str, Any] = {"id": event.id, "kind": event.kind, "at": event.at}
        # Those that ended alike are told in the same words.
        told: dict[tuple[str, ...], dict[str, object]] = {}
        for item, *how in ends:
            fields = told.setdefault(tuple(how), dict(zip(("outcome", "state", "error"), how, strict=True)))
            events.append(Event(agent=event.agent, run=event.run, item=item, fields=fields, **known))
    return events


def to_event(row: Row) -> Event:
    return Event(
        id=row["id"],
        kind=EventKind(row["kind"]),
        at=from_micros(row["at"]),
        agent=row["agent"],
        wake=row["wake"],
        run=row["run"],
        item=row["item"],
        fields=json.loads(row["fields"]),
    )


def to_attempt(row: Row) -> Attempt:
    return Attempt(
        run=row["run"],
        started_at=from_micros(row["started_at"]),
        ended_at=moment_or_none(row["ended_at"]),
        outcome=None if row["outcome"] is None else Outcome(row["outcome"]),
        counted=bool(row["counted"]),
        exit_code=row["exit_code"],
        error=row["error"],
        output=row["output"],
    )
