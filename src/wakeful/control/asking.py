"""To ask for an agent's time: ticks, wakes, messages, and a beat at an instant."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.control.base import chosen, find, storable
from wakeful.control.callers import Caller
from wakeful.control.messages import message_rows, sent_message, written_metadata
from wakeful.control.requests import Answer, Requests, must_be_same, origin_of, reply, told_before
from wakeful.control.rows import Row
from wakeful.control.tainted import SILENCED, WAKE, may, must_have
from wakeful.core.codec import write_time
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import Item, Kind, MessageType, NewItem, Priority, Ring, read_priority, ring_of
from wakeful.core.moments import read_later
from wakeful.core.wakes import Cause, Subject, VerdictKind, Wake, WakeReason, defer
from wakeful.core.wording import quoted, readable
from wakeful.store.protocol import Store

# Said to whoever wants to ring for itself.
TO_ITSELF = "a message to yourself rings for nobody, whatever its priority: your next run is shown it"

# What the message of an agent's wake asks for, by why it wakes.
_ASKED_FOR = {
    WakeReason.blocker: MessageType.help_request,
    WakeReason.critical_finding: MessageType.review_request,
    WakeReason.user_request: MessageType.work_assignment,
}


class Asking(Requests):
    async def tick(self, caller: Caller, *, agent: str, reason: str | None = None, key: str | None = None) -> Row:
        """The agent's beat, now."""
        now = self.clock()
        wake = Wake(
            agent=agent,
            cause=Cause.operator,
            subject=Subject.beat,
            requested_at=now,
            sender=caller.name,
            reason=readable(reason, "the reason") or None,
            source=await self._wake_key(caller, key),
        )
        return reply(await self._asked(wake, None, now), caller)

    async def wake(
        self,
        caller: Caller,
        *,
        agent: str,
        reason: str | None = None,
        body: str | None = None,
        key: str | None = None,
    ) -> Row:
        """The agent's inbox, now. An agent that wakes another says why, in one of three words, and leaves a message."""
        now = self.clock()
        if not caller.is_operator:
            await self.access.read(lambda store: _must_be_another(store, caller, agent))
            await self.access.read(lambda store: must_have(store, caller, WAKE))
        type = MessageType.info if caller.is_operator else _ASKED_FOR[_reason_of_agent(reason, body)]
        wake = Wake(
            agent=agent,
            cause=Cause.operator if caller.is_operator else Cause.peer,
            subject=Subject.inbox,
            requested_at=now,
            sender=caller.name,
            reason=readable(reason, "the reason") or None,
            by_run=caller.run,
            source=await self._wake_key(caller, key),
        )
        if not body:
            return reply(await self._asked(wake, None, now), caller)
        ring = Ring.operator if caller.is_operator else Ring.peer
        item = _message(caller, agent, body, subject=reason or "", ring=ring, dedupe=await self._key(caller, key))
        item = replace(item, type=type, priority=Priority.urgent)
        return reply(await self._asked(wake, item, now), caller)

    async def send(
        self,
        caller: Caller,
        *,
        agent: str,
        body: str,
        subject: str = "",
        type: str = "info",
        priority: str = "normal",
        key: str | None = None,
        reply_to: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Row:
        """A message; high and urgent ones ask for a wake themselves, but not of whoever sends them."""
        now, level = self.clock(), read_priority(priority)
        rings = ring_of(origin_of(caller), level)
        own = rings is not Ring.silent and await self.access.read(lambda store: _is_itself(store, caller, agent))
        barred = rings is not Ring.silent and not await self.access.read(lambda store: may(store, caller, WAKE))
        ring = Ring.silent if own or barred else rings
        item = replace(
            _message(caller, agent, body, subject=subject, ring=ring, dedupe=await self._key(caller, key)),
            type=chosen(type, MessageType, "type of message"),
            priority=level,
            reply_to=reply_to,
            metadata=written_metadata(metadata),
        )
        if reply_to is not None:
            await self.access.read(lambda store: _must_be_told(store, caller, reply_to))
        wake = Wake(
            agent=agent,
            cause=Cause.operator if caller.is_operator else Cause.peer,
            subject=Subject.inbox,
            requested_at=now,
            sender=caller.name,
            by_run=caller.run,
        )
        answer = await self._asked(None if ring is Ring.silent else wake, item, now)
        if answer.duplicate or answer.wake is not None or reply_to is not None or caller.run is not None:
            (row,) = await self.access.read(lambda store: message_rows(store, [_recorded(store, answer)], now))
        else:
            row = sent_message(item, answer.item or 0, now)
        told = reply(answer, caller, sent=True) if answer.verdict else None
        return {
            "message": row,
            "wake": told,
            "duplicate": answer.duplicate,
            "note": TO_ITSELF if own else SILENCED if barred else None,
        }

    async def at(
        self, caller: Caller, *, agent: str, when: str, reason: str | None = None, key: str | None = None
    ) -> Row:
        """One beat at an instant. Quiet hours do not hold it; a pause does, until it is lifted."""
        now = self.clock()
        target = await self.access.read(lambda store: find(store, agent))
        wake = Wake(
            agent=agent,
            cause=Cause.timer,
            subject=Subject.beat,
            requested_at=now,
            sender=caller.name,
            reason=readable(reason, "the reason") or None,
            source=await self._wake_key(caller, key),
        )

        def write(store: Store) -> tuple[int, datetime, bool]:
            before = store.keyed_wake(wake.subject.value, wake.source) if wake.source else None
            # The same words mean the same instant as long as they are read at the same one.
            said_at = now if before is None else before.requested_at
            moment = read_later(when, said_at, ZoneInfo(target.first.agent.timezone))
            asked = replace(wake, slot=write_time(moment))
            if before is None:
                return store.ask([asked], now)[0], moment, False
            must_be_same(before, asked)
            return before.id, moment, True

        id, moment, known = await self.access.write(write)
        waits = defer("", f"waits for {write_time(moment)}", until=moment)
        answer = Answer(wake=id, verdict=waits, agent=agent)
        if known:
            answer = await self.access.read(lambda store: told_before(store, id, None))
            if answer.verdict is not None and answer.verdict.kind is VerdictKind.defer and not answer.verdict.guard:
                answer = replace(answer, verdict=waits)
        return reply(answer, caller)


def _message(caller: Caller, agent: str, body: str, *, subject: str, ring: Ring, dedupe: str | None) -> NewItem:
    if not body.strip():
        raise Mistake("the message is empty", "say in it what there is to say")
    return NewItem(
        kind=Kind.message,
        agent=agent,
        sender=caller.name,
        origin=origin_of(caller),
        subject=readable(subject, "the subject"),
        body=readable(body, "the message"),
        ring=ring,
        dedupe=dedupe,
        by_run=caller.run,
    )


def _reason_of_agent(reason: str | None, body: str | None) -> WakeReason:
    """Whoever wakes another has to mean it: one of three reasons, and what it is about."""
    words, later = ", ".join(WakeReason), "what can wait goes with message_agent (wakeful send)"
    if not reason:
        raise Mistake("a wake of another agent needs a reason", f"give one of {words}")
    if reason not in list(WakeReason):
        raise Mistake(
            f"expected one of {words} as the reason, found {quoted(reason)}",
            f"give the one that it is, and tell the rest in the message; {later}",
        )
    if not (body or "").strip():
        raise Mistake("a wake of another agent leaves a message", f"say in a message what it is about; {later}")
    return WakeReason(reason)


def _is_itself(store: Store, caller: Caller, agent: str) -> bool:
    """Behind an address that it shares there are others who may answer."""
    if caller.is_operator:
        return False
    return [row.agent.name for row in find(store, agent).agents] == [caller.name]


def _must_be_another(store: Store, caller: Caller, agent: str) -> None:
    if _is_itself(store, caller, agent):
        raise Mistake(
            f"{caller.name} cannot wake itself: it is at work in this very run",
            f"do it now, or leave it for your next beat, which comes by itself: wakeful send {agent} puts a message "
            "before your next run, without ringing; a beat at an instant (wakeful at) is for the operator to ask",
        )


def _recorded(store: Store, answer: Answer) -> Item:
    item = store.item(answer.item or 0)
    assert item is not None
    return item


def _must_be_told(store: Store, caller: Caller, reply_to: int) -> None:
    """A run may answer what was addressed to it; of anything else it does not learn that it exists."""
    item = store.item(reply_to) if storable(reply_to) else None
    hidden = not caller.is_operator and item is not None and item.agent not in find(store, caller.name).names
    if item is None or item.kind is not Kind.message or hidden:
        raise Unknown(f"no message {reply_to} to reply to")
