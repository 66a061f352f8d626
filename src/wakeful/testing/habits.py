"""How virtual agents behave: each has a temper, drawn once, from which every run of it is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random

from wakeful.core.orders import Order
from wakeful.core.runs import Ending, ErrorClass, Result
from wakeful.core.standing import Spend
from wakeful.core.wakes import Subject
from wakeful.store.protocol import TaskEnd
from wakeful.testing.runner import Act, Plan, done, failed, no_work

ACTS = ("message", "message", "wake", "wake", "wake", "task", "edit", "step", "self")
# How many of the runs flood somebody's inbox.
FLOODS = 0.01
TEMPERS = {
    "steady": ("done", "done", "done", "no_work"),
    "idle": ("no_work", "no_work", "no_work", "done"),
    "moody": ("done", "no_work", "failed", "killed", "quota"),
    "broken": ("failed", "failed", "killed", "done"),
    "misset": ("done", "done", "no_work", "auth", "config", "failed"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """`talk` is how much its agents do to others, `length` the usual length of a run."""

    temper: str
    talk: float
    length: timedelta
    reports: float


def draw_habits(dice: Random) -> Habits:
    return Habits(
        temper=dice.choice(list(TEMPERS)),
        talk=dice.choice((0.0, 0.5, 1.5, 3.0)),
        length=timedelta(minutes=dice.choice((1, 3, 10, 25))),
        reports=dice.choice((0.0, 0.7, 1.0)),
    )


def draw_plan(dice: Random, habits: Habits, order: Order) -> Plan:
    wall_clock = order.agent.wall_clock(order.run.subject)
    duration = habits.length * dice.uniform(0.1, 2.0)
    outcome = dice.choice(TEMPERS[habits.temper])
    ending = draw_ending(dice, habits, outcome, order)
    if outcome == "killed" or duration >= wall_clock:
        duration = wall_clock
        ending = Ending(signal=9, timed_out=True)
    return Plan(
        duration=duration,
        ending=ending,
        acts=draw_acts(dice, habits, duration),
        tasks=draw_task_ends(dice, habits, order, duration),
    )


def draw_acts(dice: Random, habits: Habits, duration: timedelta) -> tuple[Act, ...]:
    count = min(int(dice.expovariate(1 / habits.talk)), 5) if habits.talk else 0
    times = sorted(dice.uniform(0.01, 0.99) for _ in range(count))
    return tuple(Act(after=duration * share, what=dice.choice(ACTS)) for share in times)


def flooding(seed: int, plan: Plan, order: Order) -> Plan:
    """Now and then a run says more than anybody can be told at once; drawn apart, and rarely: it costs a world dear."""
    if Random(f"{seed}:flood:{order.run.id}").random() >= FLOODS:
        return plan
    return replace(plan, acts=(*plan.acts, Act(after=plan.duration * 0.5, what="flood")))


def troubles_of(plan: Plan) -> list[str]:
    """What is wrong with that run, in the words in which it is counted."""
    ending, said = plan.ending, plan.ending.result.outcome if plan.ending.result else None
    found = []
    if ending.timed_out:
        found.append("agent hung")
    elif ending.exit_code != 0:
        found.append("agent crashed")
    elif ending.output.startswith("NO-WORK") or said == "no_work":
        found.append("agent said NO-WORK")
    if any(act.what == "flood" for act in plan.acts):
        found.append("agent flooded")
    return found


def draw_ending(dice: Random, habits: Habits, outcome: str, order: Order) -> Ending:
    usage = draw_usage(dice) if dice.random() < habits.reports else None
    match outcome:
        case "done":
            return done("some work", usage)
        case "no_work" if dice.random() < 0.3:
            return Ending(exit_code=0, output="NO-WORK: nothing new", result=Result(usage=usage))
        case "no_work":
            return no_work(usage)
        case "quota":
            assert order.run.started_at is not None
            wait = timedelta(minutes=dice.choice((-5, 10, 50)))
            retry_at = order.run.started_at + wait if dice.random() < 0.7 else None
            result = Result(error="out of tokens", error_class=ErrorClass.quota, retry_at=retry_at, usage=usage)
            return Ending(exit_code=1, result=result)
        case "auth" | "config":
            result = Result(error="no credentials", error_class=ErrorClass(outcome), usage=usage)
            return Ending(exit_code=1, result=result)
        case _:
            if dice.random() < 0.1:
                return Ending(exit_code=137, signal=9, out_of_memory=True)
            return failed("it broke", usage)


def draw_usage(dice: Random) -> Spend:
    return Spend(usd=dice.randrange(10_000, 900_000), tokens=dice.randrange(100, 9_000))


def draw_task_ends(
    dice: Random, habits: Habits, order: Order, duration: timedelta
) -> tuple[tuple[timedelta, TaskEnd], ...]:
    """A shift settles its tasks one by one; now and then the last ones are left to the run's own end."""
    if order.run.subject is not Subject.task or order.agent.shift == 1:
        return ()
    ends = []
    kept = order.tasks if dice.random() < 0.6 else order.tasks[: dice.randint(0, len(order.tasks))]
    for number, task in enumerate(kept, 1):
        outcome = dice.choice(("done", "done", "no_work", "failed", "auth"))
        ending = draw_ending(dice, habits, outcome, order)
        ends.append((duration * number / (len(order.tasks) + 1), TaskEnd(task=task.id, ending=ending)))
    return tuple(ends)
