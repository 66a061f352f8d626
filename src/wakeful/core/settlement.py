"""An outcome moves its subject, and nothing else.

Laws:
- A beat moves the position and the next due instant, and settles the inbox it was shown.
- An inbox run never moves the position; a task run moves only its tasks.
- failed and killed hold. An end that we brought about ourselves counts against nobody; one at a limit, of time or of
  spending, does.
- A run that was lost with its node counts. Where it is the first loss in a row it is tried again at once, for most
  often it was not the run's fault; so is one that was fenced, which counts for nothing.
- A quota that is used up is waited out; broken configuration or credentials are parked, not retried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from wakeful.core.agents import Agent
from wakeful.core.budgets import Bill, over_limit, remember, settle_spend
from wakeful.core.cadence import next_beat
from wakeful.core.guards import RELEASE
from wakeful.core.items import State
from wakeful.core.lifecycle import Kind, Lifecycle, advance, resolve
from wakeful.core.retries import delay, retry_or_bury
from wakeful.core.runs import FENCING, Ending, ErrorClass, Outcome, Result, Run, describe, is_attempt, read_outcome
from wakeful.core.standing import Standing
from wakeful.core.wakes import Pause, Subject, agent_scope
from wakeful.core.windows import spread

INBOX_RETRIES = 3
QUOTA_HOLD = timedelta(minutes=30)
LONGEST_QUOTA_HOLD = timedelta(days=8)

_SUCCESS = (Outcome.done, Outcome.no_work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Everything that one ended run changes, to be written in one transaction."""

    outcome: Outcome
    reason: str
    standing: Standing
    bill: Bill
    answered: bool
    retry_at: datetime | None = None
    pause: Pause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFate:
    """What becomes of one task when its attempt ends."""

    outcome: Outcome
    state: State
    attempts: int
    error: str
    not_before: datetime | None = None


def settle(
    run: Run, ending: Ending, standing: Standing, agent: Agent, now: datetime, *, began_with: Lifecycle
) -> Settlement:
    """`agent` is the declaration of now; `began_with` the lifecycle that the run's outcome is credited to."""
    outcome = read_outcome(ending)
    bill = settle_spend(run.reserved, ending.result.usage if ending.result else None)
    moved = replace(standing, costs=remember(standing.costs, bill), last_outcome=outcome.value, last_ended_at=now)
    if run.subject is Subject.beat:
        moved = _after_beat(run, ending, outcome, moved, agent, now, began_with)
    elif outcome is Outcome.done:
        moved = _after_other_work(moved, agent, now)
    return Settlement(
        outcome=outcome,
        reason=_told(ending, agent),
        standing=moved,
        bill=bill,
        answered=outcome in _SUCCESS,
        retry_at=_inbox_retry(run, ending, outcome, agent, now),
        pause=_hold(run, ending, outcome, moved, agent, now),
    )


def _told(ending: Ending, agent: Agent) -> str:
    """Why it ended as it did; and of one that used more than a run may, that it did."""
    usage = ending.result.usage if ending.result and ending.over_limit is None else None
    over = over_limit(usage, agent.limits) if usage is not None else None
    return "; ".join(part for part in (describe(ending), over) if part)


def _after_beat(
    run: Run,
    ending: Ending,
    outcome: Outcome,
    standing: Standing,
    agent: Agent,
    now: datetime,
    began_with: Lifecycle,
) -> Standing:
    zone = ZoneInfo(agent.timezone)
    state = began_with.state(run.position.state)
    position = resolve(advance(run.position, began_with, outcome.value), agent.lifecycle)
    idle, failures = standing.idle_streak, standing.failure_streak
    gates = dict(standing.gates or {})
    resting = state is not None and state.kind is Kind.rem
    if outcome is Outcome.done:
        gates[run.position.state] = now
        idle, failures = (idle if resting else 0), 0
    elif outcome is Outcome.no_work:
        idle, failures = (idle if resting else idle + 1), 0
    elif is_attempt(ending) and _class_of(ending) is not ErrorClass.quota:
        failures += 1
    # A failed run says nothing about idleness: it is tried again at the plain interval.
    streak = idle if outcome in _SUCCESS else 0
    at_once = _first_loss(ending, standing.failure_streak)
    due = now if at_once else next_beat(agent.cadence, streak, now, zone)
    known = {known.name for known in agent.lifecycle.states}
    return replace(
        standing,
        position=position,
        idle_streak=idle,
        failure_streak=failures,
        due_at=due,
        gates={name: at for name, at in gates.items() if name in known},
    )


def _after_other_work(standing: Standing, agent: Agent, now: datetime) -> Standing:
    """Work outside the beat proves that the agent is not idle: its cadence is hot again."""
    soon = next_beat(agent.cadence, 0, now, ZoneInfo(agent.timezone))
    due = standing.due_at if soon is None or standing.due_at is None else min(standing.due_at, soon)
    return replace(standing, idle_streak=0, due_at=due)


def _inbox_retry(run: Run, ending: Ending, outcome: Outcome, agent: Agent, now: datetime) -> datetime | None:
    if run.subject is not Subject.inbox or outcome in _SUCCESS:
        return None
    if _first_loss(ending, run.attempt - 1):
        return now
    if not is_attempt(ending):
        return None
    kind = _class_of(ending)
    if kind is ErrorClass.quota:
        return _quota_until(ending, now) + spread(agent.name, RELEASE)
    if kind in (ErrorClass.config, ErrorClass.auth) or run.attempt > INBOX_RETRIES:
        return None
    return now + delay(agent.retries, run.attempt, f"inbox:{run.wake}")


def _hold(run: Run, ending: Ending, outcome: Outcome, standing: Standing, agent: Agent, now: datetime) -> Pause | None:
    """The pause that this end brings on the agent, if any: quota, parked, or quarantine."""
    if outcome in _SUCCESS or not is_attempt(ending):
        return None
    kind, scope, reason = _class_of(ending), agent_scope(agent.name), describe(ending)
    if kind is ErrorClass.quota:
        until = _quota_until(ending, now)
        return Pause(scope=scope, owner="quota", reason=reason, since=now, until=until)
    if run.subject is Subject.task:
        return None
    if kind in (ErrorClass.config, ErrorClass.auth):
        return Pause(scope=scope, owner="quarantine", reason=f"{kind}: {reason}", since=now)
    if run.subject is Subject.beat and standing.failure_streak >= agent.max_failures:
        why = f"{standing.failure_streak} beats failed in a row; the last: {reason}"
        return Pause(scope=scope, owner="quarantine", reason=why, since=now)
    return None


def settle_task(
    task: int,
    attempts: int,
    max_retries: int | None,
    ending: Ending,
    agent: Agent,
    now: datetime,
) -> TaskFate:
    """`attempts` are those before this one; an end that we brought about is no attempt."""
    outcome = read_outcome(ending)
    if outcome in _SUCCESS:
        return _completed(outcome, attempts + 1)
    error, kind = describe(ending), _class_of(ending)
    at_once = _first_loss(ending, attempts)
    if not is_attempt(ending):
        later = now if at_once else now + delay(agent.retries, 1)
        return TaskFate(outcome=outcome, state=State.pending, attempts=attempts, error=error, not_before=later)
    if kind is ErrorClass.quota:
        # Not all who share a quota at one instant: as the guard lets go what its pause has held.
        until = _quota_until(ending, now) + spread(agent.name, RELEASE)
        return TaskFate(outcome=outcome, state=State.pending, attempts=attempts, error=error, not_before=until)
    if kind in (ErrorClass.config, ErrorClass.auth):
        return TaskFate(outcome=outcome, state=State.blocked, attempts=attempts + 1, error=f"{kind}: {error}")
    fate = retry_or_bury(attempts + 1, agent.retries, now, seed=str(task), max_retries=max_retries)
    state = State.dead_letter if fate.dead else State.failed
    again = now if at_once and not fate.dead else fate.at
    return TaskFate(outcome=outcome, state=state, attempts=attempts + 1, error=error, not_before=again)


@cache
def _completed(outcome: Outcome, attempts: int) -> TaskFate:
    """Most tasks share this fate."""
    return TaskFate(outcome=outcome, state=State.completed, attempts=attempts, error="")


def left_behind(ending: Ending) -> Ending:
    """How a task ends that a run took beside its subject, and did not complete before it ended like this."""
    if read_outcome(ending) not in _SUCCESS:
        return ending
    said = Result(outcome=Outcome.failed.value, error="taken by a run that ended without completing it")
    return replace(ending, result=said)


def skip_beat(standing: Standing, agent: Agent, now: datetime) -> Standing:
    """A CHECK said that there is nothing to do: the position holds, and the idle backoff applies."""
    streak = standing.idle_streak + 1
    due = next_beat(agent.cadence, streak, now, ZoneInfo(agent.timezone))
    return replace(standing, idle_streak=streak, due_at=due)


def _first_loss(ending: Ending, losses: int) -> bool:
    """Whether nobody wanted this end, and nothing failed before it."""
    taken = ending.by == FENCING or (ending.by is None and ending.orphaned)
    return taken and losses == 0


def _class_of(ending: Ending) -> ErrorClass | None:
    if ending.out_of_memory:
        return ErrorClass.memory
    if ending.over_limit is not None:
        # Whatever else it wrote, it is for this that it was ended.
        return None
    return ending.result.error_class if ending.result else None


def _quota_until(ending: Ending, now: datetime) -> datetime:
    """An agent may say when its quota returns, within reason: it must not sleep for ever on a typing error."""
    asked = ending.result.retry_at if ending.result else None
    if asked is None or asked <= now:
        return now + QUOTA_HOLD
    return min(asked, now + LONGEST_QUOTA_HOLD)
