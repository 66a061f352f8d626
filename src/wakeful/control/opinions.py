"""Why an agent runs or does not, at this instant or at any other, and when it will run next.

Laws:
- The guards themselves are asked, on the facts; every one of them says what it thinks, also behind the first objection.
- A wake that waits is asked about as it is. Where none does, one is supposed, and what was supposed is said.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from wakeful.control.ahead import AT, Ahead, next_beat, one_offs
from wakeful.control.base import NEWEST, Base, Target, chosen, find, find_at_work, find_one, must_be_own
from wakeful.control.callers import Caller
from wakeful.control.decided import last_decision
from wakeful.control.rows import CHECK, Row, expected_row, listing, numbers_of, opinion_row, time_or_none
from wakeful.core.admission import Opinion, explain
from wakeful.core.agents import Limits
from wakeful.core.codec import write_time
from wakeful.core.errors import Mistake
from wakeful.core.facts import Facts
from wakeful.core.forecast import forecast
from wakeful.core.hindsight import Replay
from wakeful.core.items import State
from wakeful.core.moments import read_moment
from wakeful.core.runs import Outcome
from wakeful.core.wakes import Cause, Subject, Verdict, VerdictKind, Wake, defer
from wakeful.core.windows import NEVER
from wakeful.fleet import values
from wakeful.store.protocol import Store

MOST_EXPECTED = 1_000
_PAGE = 500
_WAITING_TASKS = (State.pending.value, State.failed.value)
# Guards that say now what they will say of any later beat too, until their own instant; of quiet hours and gates the
# next beat knows itself.
_LASTING = frozenset({"paused", "minutes_per_day", "spend"})

_SUBJECTS = {
    Cause.timer: Subject.beat,
    Cause.operator: Subject.beat,
    Cause.task: Subject.task,
    Cause.peer: Subject.inbox,
    Cause.news: Subject.inbox,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the guards are asked: a wake, the facts and the limits of its instant, and what is taken for granted.

    `not_due` stands before all guards, and is none of them: nothing asks yet.
    """

    wake: Wake
    facts: Facts
    limits: Limits
    assumptions: tuple[str, ...] = ()
    not_due: Verdict | None = None


class Opinions(Base):
    async def why(
        self, caller: Caller, *, agent: str, cause: str = "timer", at: str | None = None, sender: str | None = None
    ) -> Row:
        """Why the agent runs or does not: what each guard says. Of a wake by a peer `sender` says which: what two have
        used up between them holds nobody else."""
        asked, now = chosen(cause, Cause, "cause"), self.clock()
        if sender is not None and asked is not Cause.peer:
            raise Mistake(f"a wake by {asked} has no sender that any guard asks for", "name one with the cause peer")
        if sender is not None:
            await self.access.read(lambda store: find(store, sender))
        target = await self.access.read(lambda store: find_at_work(store, agent))
        must_be_own(caller, target, "the reasons")
        moment = now if at is None else read_moment(at, now, ZoneInfo(target.first.agent.timezone), past=True)
        if moment > now:
            raise Mistake(f"{write_time(moment)} is still to come", f"for what comes, ask: wakeful forecast {agent}")
        if moment == now:
            question = await self.access.read(lambda store: _now(store, target, asked, sender, now))
        else:
            question = await self._then(target, asked, sender, moment)
        last = await self.access.read(lambda store: last_decision(store, target.first.agent.name))
        return _answer(agent, moment, question, last)

    async def _then(self, target: Target, cause: Cause, sender: str | None, at: datetime) -> Question:
        """From the events until that instant; a page at a time, so that others are served in between."""
        replay = Replay()
        last = await self.access.read(lambda store: store.events_until(at))
        after = 0
        while after < last:
            page = await self.access.read(lambda store, after=after: store.events(after=after, limit=_PAGE))  # type: ignore[misc]
            for event in page:
                if event.id <= last:
                    replay.feed(event)
            after = page[-1].id if page else last
            await asyncio.sleep(0)
        wake = Wake(agent=target.name, cause=cause, subject=_SUBJECTS[cause], requested_at=at, sender=sender)
        then = replay.facts(wake, at)
        facts, not_due = then.facts, None
        due = then.standing.due_at
        if cause is Cause.timer and facts.moot is not None and then.agent.enabled and due is not None and due > at:
            facts, not_due = replace(facts, moot=None), defer("", f"not due until {write_time(due)}", until=due)
        return Question(wake=then.wake, facts=facts, limits=then.limits, assumptions=then.assumptions, not_due=not_due)

    async def forecast(
        self, caller: Caller, *, agent: str, n: int = 10, outcome: str = "done", run_length: str = "0s"
    ) -> Row:
        """Its next beats, if every run ends like that and takes so long."""
        now = self.clock()
        ending = chosen(outcome, Outcome, "outcome")
        length = values.duration_or_zero(run_length.strip())
        if not 1 <= n <= MOST_EXPECTED:
            raise Mistake(
                f"expected how many beats to foretell, found {n}", f"write a number from 1 to {MOST_EXPECTED}"
            )

        def read(store: Store) -> Row:
            row = find_one(store, agent)
            must_be_own(caller, Target(agent, (row,)), "the forecast")
            wake = Wake(agent=agent, cause=Cause.timer, subject=Subject.beat, requested_at=now)
            why = store.why(wake, now)
            names = dict.fromkeys((row.agent.name, row.agent.address))
            beats = forecast(
                row.standing,
                row.agent,
                why.limits,
                now,
                n,
                outcome=ending,
                run_length=length,
                facts=why.facts,
                pauses=why.pauses,
                waiting=[wake for name in names for wake in store.wakes(agent=name, state="waiting")],
                runs=store.runs(agent=row.agent.name, before=NEWEST, limit=why.limits.burst + 1),
            )
            return listing(map(expected_row, beats))

        return await self.access.read(read)


# ---- the question, now


def _now(store: Store, target: Target, cause: Cause, sender: str | None, now: datetime) -> Question:
    waiting = _waiting(store, target, cause) if sender is None else None
    if waiting is not None:
        if (later := _later(store, waiting, now)) is not None:
            return later
        why = store.why(waiting, now)
        said = f"wake {waiting.id} waits since {write_time(waiting.requested_at)}"
        return Question(wake=why.wake, facts=why.facts, limits=why.limits, assumptions=(said,))
    task = _next_task(store, target) if cause is Cause.task else None
    wake = Wake(agent=target.name, cause=cause, subject=_SUBJECTS[cause], requested_at=now, task=task, sender=sender)
    why = store.why(wake, now)
    question = Question(wake=wake, facts=why.facts, limits=why.limits)
    enabled = any(row.agent.enabled for row in target.agents)
    if why.facts.moot is None or not enabled:
        return question
    if cause is Cause.timer:
        return _unless_due(store, question, target, now)
    if cause is Cause.task and task is not None:
        return question
    supposed = "a task were ready" if cause is Cause.task else "something rang in its inbox"
    nothing = f"nothing of the cause {cause} waits: the guards are asked as if {supposed}"
    if sender is not None:
        nothing = f"the guards are asked as if {sender} woke it now, for the first time in its run"
    elif cause is Cause.peer:
        nothing += ", of nobody in particular"
    return replace(question, facts=replace(why.facts, moot=None), assumptions=(nothing,))


def _later(store: Store, waiting: Wake, now: datetime) -> Question | None:
    """What is tried again at an instant of its own, after a failed run or because its CHECK did not want it, is not due
    until then, whatever the guards would say now."""
    row = store.wake(waiting.id)
    if row is None or row.guard not in (None, CHECK) or row.retry_at is None or row.retry_at <= now:
        return None
    why, at = store.why(waiting, now), write_time(row.retry_at)
    if row.guard == CHECK:
        said = defer(CHECK, f"its CHECK said that there is nothing to do: {row.reason}", until=row.retry_at)
        again = f"the CHECK is asked again at {at}"
    else:
        said = defer("", f"wake {waiting.id} was tried, and is tried again at {at}", until=row.retry_at)
        again = "the guards speak of now"
    facts = replace(why.facts, moot=None)
    return Question(wake=why.wake, facts=facts, limits=why.limits, assumptions=(again,), not_due=said)


def _unless_due(store: Store, question: Question, target: Target, now: datetime) -> Question:
    facts = replace(question.facts, moot=None)
    asked = {name: times for each in sorted(target.names) for name, times in one_offs(store, each).items()}
    beats = [beat for row in target.agents if (beat := next_beat(row, asked, now)) is not None]
    if not beats:
        never = defer("", f"{target.name} has no timer: it runs when something rings or a task is ready")
        return replace(question, facts=facts, not_due=never, assumptions=("the guards speak as if it had one",))
    said = _not_due(min(beats, key=lambda beat: (beat.at, beat.due_at)))
    return replace(question, facts=facts, not_due=said, assumptions=("the guards speak of now",))


def _not_due(beat: Ahead) -> Verdict:
    reason = f"not due until {write_time(beat.due_at)}" + (", when a beat was asked for" if beat.by == AT else "")
    if beat.held_by is not None:
        reason += f", and then held by {beat.held_by} until {write_time(beat.at)}"
    return defer("", reason, until=beat.at)


def _waiting(store: Store, target: Target, cause: Cause) -> Wake | None:
    """The oldest wake of that cause that something holds; one that was asked for a later instant does not wait yet."""
    names = sorted(target.names) if target.is_address else dict.fromkeys((target.name, *sorted(target.names)))
    rows = [row for name in names for row in store.wakes(agent=name, state="waiting")]
    held = [row.wake for row in rows if row.wake.cause is cause and (row.guard is not None or not row.wake.one_off)]
    return min(held, key=lambda wake: (wake.requested_at, wake.id), default=None)


def _next_task(store: Store, target: Target) -> int | None:
    for name in sorted(target.names):
        for state in _WAITING_TASKS:
            if found := store.items(agent=name, kind="task", state=state, limit=1):
                return found[0].id
    return None


# ---- the answer


def _answer(agent: str, at: datetime, question: Question, last: Row | None) -> Row:
    named = question.wake
    opinions = explain(named, question.facts, question.limits)
    verdict = _first(opinions, question.not_due)
    return {
        "agent": agent,
        "at": write_time(at),
        "verdict": verdict.kind.value if verdict else VerdictKind.admit.value,
        "guard": (verdict.guard or None) if verdict else None,
        "reason": verdict.reason if verdict else "no guard objects",
        "next_eligible": time_or_none(verdict.until) if verdict else None,
        "opinions": [opinion_row(opinion) for opinion in opinions],
        "last_decision": last,
        "assumptions": list(question.assumptions),
        "cause": named.cause.value,
        "subject": named.subject.value,
        "numbers": numbers_of(verdict),
        "wake_id": named.id or None,
    }


def _first(opinions: list[Opinion], not_due: Verdict | None) -> Verdict | None:
    """The first objection. What is not due yet is told first, unless something will still hold it then."""
    said = [each.verdict for each in opinions if each.verdict is not None]
    if not_due is None or not_due.until is None:
        return not_due or next(iter(said), None)
    due = not_due.until
    return next((each for each in said if each.guard in _LASTING and (each.until or NEVER) > due), not_due)
