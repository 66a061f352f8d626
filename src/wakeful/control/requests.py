"""The one way in for whatever is asked for: recorded, put before the guards, and told.

Laws:
- The sender is who asks, as we know it. What is sent is recorded before its wake is put before the guards, in the same
  transaction: whatever the verdict, the message is there.
- A refused wake is an answer, not an error: guard, numbers, when it may be asked again, and what to do instead.
- Without an engine beside us a wake is recorded undecided, and decided by whoever is up, or comes up next. Where other
  nodes are up their word is waited for, for a moment.
- The same key finds what it asked for before; it never asks twice. Asked for something else it is a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from wakeful.control.base import NEWEST, Base, Target
from wakeful.control.callers import OPERATOR, Caller, Claim, leave_to_others
from wakeful.control.decided import last_event
from wakeful.control.noting import note_act
from wakeful.control.rows import Row, decision_row, numbers_of, time_or_none, verdict_of
from wakeful.control.seeing import keys_of
from wakeful.core.admission import admit
from wakeful.core.codec import write_time
from wakeful.core.errors import Conflict
from wakeful.core.items import Kind, NewItem, Origin
from wakeful.core.tasks import read_key, scoped_key, spoken_key
from wakeful.core.wakes import Verdict, VerdictKind, Wake, defer
from wakeful.store.protocol import Store

NO_ENGINE = "no engine: recorded, decided when one starts"
LEAVING = "the engine is leaving: recorded, decided when the next one starts"
NO_NODE = "no node is up: recorded, decided when one starts"
# How far back a wake is looked for by its key or its message.
MOST_LOOKED_AT = 200
MOST_NAMED = 5
# How the source of a wake begins that was asked for under a key of its caller's.
KEYED = "key:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a request: the item that was recorded, and the wake with the verdict on it."""

    item: int | None = None
    duplicate: bool = False
    wake: int | None = None
    verdict: Verdict | None = None
    run: int | None = None
    joined: int | None = None
    agent: str | None = None
    # What the same caller asked for under the same key, which is then the answer.
    before: int | None = None
    # Recorded, and left to others to decide.
    left: bool = False


class Requests(Base):
    async def _key(self, caller: Caller, key: str | None) -> str | None:
        """As it is kept: two callers may use the same key for two things."""
        read = read_key(key)
        if read is None:
            return None
        return scoped_key(await self.access.read(lambda store: keys_of(store, caller)), read)

    async def _wake_key(self, caller: Caller, key: str | None) -> str | None:
        known = await self._key(caller, key)
        return None if known is None else f"{KEYED}{known}"

    async def _asked(self, wake: Wake | None, item: NewItem | None, now: datetime, act: str | None = None) -> Answer:
        """Records, then decides; or, without an engine, leaves it to the one that starts next. `act` is what the
        operator does where neither the item nor its wake is in the operator's name."""
        agent = wake.agent if wake else item.agent if item else None
        target = await self._whom(agent or "")
        put = await self._written(lambda store, claim: self._put(store, claim, wake, item, now, target, act))
        if put.before is not None:
            before = put.before
            return await self.access.read(lambda store: told_before(store, before, None))
        return await self._heard(put) if put.left and self.shared else put

    async def _written(self, put: Callable[[Store, Claim], Answer]) -> Answer:
        """An engine beside us has what was admitted claimed by the commit: it need not look for it first."""
        if self.beside is None:
            return await self.access.write(lambda store: put(store, leave_to_others))
        return await self.beside.taking(lambda claim: self.access.write(lambda store: put(store, claim)))

    def _put(
        self,
        store: Store,
        claim: Claim,
        wake: Wake | None,
        item: NewItem | None,
        now: datetime,
        target: Target | None = None,
        act: str | None = None,
    ) -> Answer:
        id = None
        if wake is not None and wake.source is not None and wake.source.startswith(KEYED):
            before = store.keyed_wake(wake.subject.value, wake.source)
            if before is not None:
                must_be_same(before, wake, beside=item is not None)
                if item is None:
                    return Answer(before=before.id)
        if item is not None:
            recorded = store.record([item], now)[0]
            id = recorded.id
            if recorded.duplicate:
                return _answer_before(store, id, target)
            if wake is not None:
                wake = replace(wake, task=id) if item.kind is Kind.task else replace(wake, item=id)
            # Of what rings in the operator's name the wake tells.
            if act is not None or (wake is None and item.origin is Origin.operator):
                note_act(store, OPERATOR, act or "send", now, agent=item.agent, item=id)
        if wake is None:
            return Answer(item=id)
        if self.beside is None or self.beside.leaving:
            asked = store.ask([wake], now)[0]
            why = NO_ENGINE if self.beside is None else LEAVING
            return Answer(item=id, wake=asked, verdict=defer("", why), agent=wake.agent, left=True)
        decision = store.decide([wake], admit, now)[0]
        if decision.run is not None:
            claim(store, now)
        return Answer(
            item=id,
            wake=decision.wake,
            verdict=decision.verdict,
            run=decision.run,
            joined=decision.joined,
            agent=decision.agent,
        )

    async def _heard(self, put: Answer) -> Answer:
        """What another node says to it; or that it is recorded, and who will decide."""
        up = await self.access.read(self.nodes_up)
        if not up:
            return replace(put, verdict=defer("", NO_NODE))

        async def decided() -> Answer | None:
            return await self.access.read(lambda store: _decided(store, put))

        waits = f"recorded, and not decided yet: {nodes_in_words(up)} and will decide"
        return await self._until(decided, self.hearing) or replace(put, verdict=defer("", waits))


def nodes_in_words(names: Sequence[str]) -> str:
    """`2 nodes are up (barn, desk)`."""
    shown = [*names[:MOST_NAMED], "…"] if len(names) > MOST_NAMED else names
    return f"{len(names)} node{' is' if len(names) == 1 else 's are'} up ({', '.join(shown)})"


def _decided(store: Store, put: Answer) -> Answer | None:
    """The verdict on a wake that was left to others; what it has joined is decided in its place."""
    row = store.wake(put.wake or 0)
    if row is not None and row.joined is not None:
        row = store.wake(row.joined)
    if row is None or (row.state == "waiting" and not row.guard):
        return None
    told = told_before(store, row.wake.id, put.item)
    joined = None if row.wake.id == put.wake else row.wake.id
    return replace(told, wake=put.wake, joined=joined, duplicate=False)


# ---- what was asked before


def _answer_before(store: Store, item: int, target: Target | None) -> Answer:
    """What came of the same request when it came first; a message that does not ring had no wake."""
    for row in store.wakes(agent=target.name if target else None, before=NEWEST, limit=MOST_LOOKED_AT):
        if item in (row.wake.item, row.wake.task):
            return told_before(store, row.wake.id, item)
    return Answer(item=item, duplicate=True)


def must_be_same(before: Wake, wake: Wake, *, beside: bool = False) -> None:
    """The same key is the same request: of whom, why, for when, and with a message `beside` it or without."""
    asked = (before.agent, before.reason, before.slot, before.item is not None)
    if asked != (wake.agent, wake.reason, wake.slot, beside):
        key = spoken_key((wake.source or "").removeprefix(KEYED))
        raise Conflict(f"the key {key!r} was used before for something else, wake {before.id}")


def told_before(store: Store, wake: int, item: int | None) -> Answer:
    row = store.wake(wake)
    event = last_event(store, row) if row else None
    known, verdict = decision_row(row, event), replace(verdict_of(row, event), until=row.retry_at if row else None)
    run, joined = known["run_id"], known["joined"]
    return Answer(item=item, duplicate=True, wake=wake, verdict=verdict, run=run, joined=joined, agent=known["agent"])


# ---- what is given and told


def reply(answer: Answer, caller: Caller, *, sent: bool = False, task: bool = False) -> Row:
    """`sent` says that the wake came of a message that asked for it itself; `task` that what was left is no message."""
    verdict = answer.verdict
    return {
        "wake_id": answer.wake,
        "message_id": None if task else answer.item,
        "verdict": verdict.kind.value if verdict else None,
        "guard": (verdict.guard or None) if verdict else None,
        # What waits out a failed try has no reason that whoever joins it could be told.
        "reason": verdict.reason.removesuffix(": ") if verdict else "",
        "numbers": numbers_of(verdict),
        "next_eligible": time_or_none(verdict.until) if verdict else None,
        "run_id": answer.run,
        "agent": answer.agent,
        "joined": answer.joined,
        "duplicate": answer.duplicate,
        "advice": _advice(answer, caller, sent, task),
    }


def _advice(answer: Answer, caller: Caller, sent: bool, task: bool) -> str | None:
    """What to do about a no, and what becomes of a wait."""
    verdict = answer.verdict
    if verdict is None or verdict.kind is VerdictKind.admit:
        return None
    kept = "your message is kept and shown at its next run; " if answer.item and not task else ""
    if verdict.kind is VerdictKind.defer:
        when = _decided_again(verdict)
        return f"{kept}it is decided again {when}, and need not be asked for twice" if when else None
    if not caller.is_operator:
        use = "message_agent with priority normal" if sent else "message_agent (wakeful send)"
        return f"{kept}next time use {use}, which costs nothing"
    if verdict.guard == "paused":
        scope = str(verdict.numbers.get("scope", ""))
        whom = scope.removeprefix("agent:") if scope.startswith("agent:") else ""
        return f"to let it run: wakeful resume {whom}".rstrip()
    return None


def _decided_again(verdict: Verdict) -> str | None:
    """Of a wake that nobody has decided yet its reason says who will."""
    if not verdict.guard:
        return None
    if verdict.until is not None:
        return f"at {write_time(verdict.until)}"
    known = {"busy": "when that run has ended", "slots": "when one is free", "paused": "when the pause is lifted"}
    return known.get(verdict.guard, "when that can have changed")


def origin_of(caller: Caller) -> Origin:
    return Origin.operator if caller.is_operator else Origin.agent
