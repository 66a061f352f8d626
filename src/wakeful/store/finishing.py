"""The end of a run: everything that its outcome changes, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from wakeful.core.agents import Agent
from wakeful.core.codec import encode
from wakeful.core.errors import Stale
from wakeful.core.events import EventKind
from wakeful.core.items import TERMINAL, State
from wakeful.core.runs import Ending, Outcome, Run, summarise
from wakeful.core.settlement import Settlement, TaskFate, settle_task
from wakeful.core.wakes import Subject
from wakeful.store.facts import agent_total
from wakeful.store.protocol import Finish, Settle, TaskEnd
from wakeful.store.recording import SWEEP
from wakeful.store.rows import dump, micros_or_none, to_micros, to_run, to_standing
from wakeful.store.running import Running
from wakeful.store.session import Row
from wakeful.store.steps import beat_subject, task_subject
from wakeful.store.voiding import NEWS_AFTER, Totals

# An agent without a timer sees a message that it keeps failing on this often; then a person must look.
MOST_SWEEPS = 12


# What a run's end rests on, but for what is declared.
_OF_A_RUN = ("run_with_wake", "run_agent", "shown_items", "tasks_of_run")


class _Part(NamedTuple):
    """A task's end in a run."""

    run: int
    task: Row
    end: TaskEnd
    agent: Agent


class _Ended(NamedTuple):
    """A run's end, with all that was known of the run before anything was written."""

    row: Row
    agent_row: Row
    run: Run
    agent: Agent
    end: Finish
    settled: Settlement
    shown: list[Row]
    tasks: list[Row]


class Finishing(Running):
    def finish(self, ends: Sequence[Finish], settle: Settle, now: datetime) -> list[Outcome]:
        with self.session.transaction("finish"):
            # Runs that are open at once are of different agents: no end changes what another one rests on.
            all_ended = self._read_ends(ends, settle, now)
            self._end(all_ended, now)
            self._move(all_ended, now)
            self._settle_items(all_ended, now)
            self._settle_tasks([_part(ended, task) for ended in all_ended for task in ended.tasks], now)
            self._account(all_ended, now)
            for ended in all_ended:
                self._go_on(ended, now)
            return [ended.settled.outcome for ended in all_ended]

    def _read_ends(self, ends: Sequence[Finish], settle: Settle, now: datetime) -> list[_Ended]:
        if len({end.run for end in ends}) < len(ends):
            raise Stale("a run ends once")
        asked = [(query, {"run": end.run}) for end in ends for query in _OF_A_RUN]
        found = iter(self.session.lists(*asked))
        return [self._read_end(end, list(islice(found, len(_OF_A_RUN))), settle, now) for end in ends]

    def _read_end(self, end: Finish, found: list[list[Row]], settle: Settle, now: datetime) -> _Ended:
        rows, agents, shown, tasks = found
        row = still_open(rows, end.run, end.epoch)
        run, (agent_row,) = to_run(row), agents
        agent = self.read_agent(agent_row)
        began_with = self.pinned_lifecycle(run.agent, run.version)
        settled = settle(run, end.ending, to_standing(agent_row), agent, now, began_with=began_with)
        return _Ended(row, agent_row, run, agent, end, settled, shown, tasks)

    def _end(self, all_ended: list[_Ended], now: datetime) -> None:
        self.session.many("end_run", [_end_of(ended, now) for ended in all_ended])

    def _move(self, all_ended: list[_Ended], now: datetime) -> None:
        self.session.many("move_standing", [_moved(ended, now) for ended in all_ended])
        for ended in all_ended:
            due_at = _due(ended)
            if ended.agent_row["timer"] is not None and due_at is not None:
                self.session.write("check_again", agent=ended.run.agent, at=due_at)
        beats = [beat_subject(ended.run.agent, ended.row["beat"]) for ended in all_ended if _beat_is_over(ended)]
        self.session.many("forget_steps", [{"subject": subject} for subject in beats])

    def _settle_items(self, all_ended: list[_Ended], now: datetime) -> None:
        settled, swept = [], []
        for ended in all_ended:
            answered = ended.settled.answered
            for item in ended.shown:
                # What a run did to its own mirrored items while it held them is not news to it.
                seen = item["fingerprint"] if item["external_id"] is not None else item["shown_fingerprint"]
                settled.append(
                    {
                        "item": item["id"],
                        "shown": seen,
                        "wake": ended.run.wake,
                        "answered": int(answered),
                        "now": to_micros(now),
                    }
                )
                if not answered and ended.settled.retry_at is None and item["unanswered"] < MOST_SWEEPS:
                    swept.append(item["id"])
        self.session.many("settle_item", settled)
        for id in swept:
            self.session.write("sweep_item", item=id, ring_at=to_micros(now + SWEEP))

    def _account(self, all_ended: list[_Ended], now: datetime) -> None:
        totals, left = Totals(), []
        for ended in all_ended:
            row, spend, ms = ended.row, ended.settled.bill.spend, _ms(ended.end.ending)
            usd, tokens = spend.usd - row["reserved_usd"], spend.tokens - row["reserved_tokens"]
            totals.add(agent_total(ended.agent.address), row["day"], ms=ms, usd=usd, tokens=tokens)
            totals.add("fleet", row["fleet_day"], ms=ms, usd=usd, tokens=tokens)
            left.append((row, ended.agent, usd, tokens))
        self.add_totals(totals)
        for row, agent, usd, tokens in left:
            self.money_back(row, agent, usd, tokens, now)

    def _go_on(self, ended: _Ended, now: datetime) -> None:
        """What the end of a run lets begin, or holds up; and the word of it."""
        settled = ended.settled
        if settled.pause is not None:
            self.put_pause(settled.pause, now)
        if settled.retry_at is not None:
            charged = bool(ended.row["wake_charged"])
            self.wait_again(ended.run.wake, settled.retry_at, charged=charged, failed=True)
        if ended.run.subject is not Subject.task:
            named = {"agent": ended.agent.name, "address": ended.agent.address}
            self.session.write("ring_rest", **named, at=to_micros(now + NEWS_AFTER))
        self.wake_waiting(ended.agent, now)
        self._tell_end(ended.row, ended.run, settled, ended.end.ending, now)

    def _tell_end(self, row: Row, run: Run, settled: Settlement, ending: Ending, now: datetime) -> None:
        standing = settled.standing
        fields = {
            "cause": run.cause.value,
            "subject": run.subject.value,
            "version": run.version,
            "outcome": settled.outcome.value,
            "reason": settled.reason,
            "position": [run.position.state, run.position.hits],
            "stands": [standing.position.state, standing.position.hits],
            "idle_streak": standing.idle_streak,
            "failure_streak": standing.failure_streak,
            "due_at": encode(standing.due_at),
            "spend": encode(settled.bill),
            "ms": _ms(ending),
            "day": row["day"],
        }
        self.event(EventKind.ended, now, agent=run.agent, wake=run.wake, run=run.id, fields=fields)

    def finish_task(self, run: int, epoch: int, end: TaskEnd, now: datetime) -> Outcome:
        with self.session.transaction("finish_task"):
            rows, agents, tasks = self.session.lists(
                ("run_with_wake", {"run": run}),
                ("run_agent", {"run": run}),
                ("task_of_run", {"run": run, "item": end.task}),
            )
            still_open(rows, run, epoch)
            if not tasks:
                raise Stale(f"task {end.task} is not under way in run {run}")
            part = _Part(run, tasks[0], end, self.read_agent(agents[0]))
            (outcome,) = self._settle_tasks([part], now)
            return outcome

    def _settle_tasks(self, parts: list[_Part], now: datetime) -> list[Outcome]:
        if not parts:
            return []
        fates = [_fate(part, now) for part in parts]
        both = list(zip(parts, fates, strict=True))
        self.session.many("end_attempt", [_attempt(part, fate, now) for part, fate in both])
        # A task that was cancelled meanwhile is no longer held by this run: its end changes nothing more.
        held = [(part, fate) for part, fate in both if part.task["held_by"] == part.run]
        self.session.many("settle_task", [_settled(part, fate, now) for part, fate in held])
        self.tasks_closed([(part.task["id"], fate.state) for part, fate in held])
        for part, fate in both:
            fields = {"outcome": fate.outcome.value, "state": fate.state.value, "error": fate.error}
            self.event(
                EventKind.task_ended, now, agent=part.agent.name, run=part.run, item=part.task["id"], fields=fields
            )
        return [fate.outcome for fate in fates]

    def tasks_closed(self, tasks: Sequence[tuple[int, State]]) -> None:
        """What depends on a task goes on when it is completed, and is blocked when it never will be."""
        over = [(item, state) for item, state in tasks if state in TERMINAL]
        for item, state in over:
            if state is State.completed:
                self.session.write("free_dependents", item=item)
            else:
                reason = f"depends on task {item}, which is {state.value}"
                self.session.write("block_dependents", item=item, error=reason)
        self.session.many("forget_steps", [{"subject": task_subject(item)} for item, _ in over])


def still_open(rows: list[Row], run: int, epoch: int) -> Row:
    if not rows or rows[0]["state"] != "running" or rows[0]["epoch"] != epoch:
        raise Stale(f"run {run} is not open in epoch {epoch}")
    return rows[0]


def _end_of(ended: _Ended, now: datetime) -> Row:
    settled = ended.settled
    return {
        "run": ended.end.run,
        "epoch": ended.end.epoch,
        "outcome": settled.outcome.value,
        "reason": settled.reason,
        "summary": summarise(ended.end.ending),
        "now": to_micros(now),
        "spent_usd": settled.bill.spend.usd,
        "spent_tokens": settled.bill.spend.tokens,
        "estimated": int(settled.bill.estimated),
    }


def _beat_is_over(ended: _Ended) -> bool:
    return ended.run.subject is Subject.beat and ended.settled.answered


def _due(ended: _Ended) -> int | None:
    timed = ended.agent_row["enabled"] and ended.agent_row["removed_at"] is None
    return micros_or_none(ended.settled.standing.due_at) if timed else None


def _moved(ended: _Ended, now: datetime) -> Row:
    standing = ended.settled.standing
    return {
        "agent": ended.run.agent,
        "state": standing.position.state,
        "hits": standing.position.hits,
        "idle_streak": standing.idle_streak,
        "failure_streak": standing.failure_streak,
        "due_at": _due(ended),
        "gates": dump(standing.gates) if standing.gates else "{}",
        "costs": dump(standing.costs) if standing.costs else "[]",
        "last_outcome": standing.last_outcome,
        "now": to_micros(now),
        "moved": int(_beat_is_over(ended)),
        "asked": int(ended.agent_row["timer"] is not None),
    }


def _part(ended: _Ended, task: Row) -> _Part:
    """A task that was not named shares the run's own ending."""
    own = next((part for part in ended.end.tasks if part.task == task["id"]), None)
    return _Part(ended.run.id, task, own or TaskEnd(task=task["id"], ending=ended.end.ending), ended.agent)


def _fate(part: _Part, now: datetime) -> TaskFate:
    task = part.task
    return settle_task(task["id"], task["attempts"], task["max_retries"], part.end.ending, part.agent, now)


def _attempt(part: _Part, fate: TaskFate, now: datetime) -> Row:
    return {
        "item": part.task["id"],
        "run": part.run,
        "now": to_micros(now),
        "outcome": fate.outcome.value,
        "counted": int(fate.attempts > part.task["attempts"]),
        "exit_code": part.end.ending.exit_code,
        "error": fate.error,
    }


def _settled(part: _Part, fate: TaskFate, now: datetime) -> Row:
    return {
        "item": part.task["id"],
        "run": part.run,
        "state": fate.state.value,
        "attempts": fate.attempts,
        "not_before": micros_or_none(fate.not_before),
        "error": fate.error or None,
        "result": result_of(part.end),
        "closed_at": to_micros(now) if fate.state in TERMINAL else None,
    }


def _ms(ending: Ending) -> int:
    return int(ending.elapsed.total_seconds() * 1000)


def result_of(end: TaskEnd) -> str | None:
    """What a task leaves behind: its result, else what it said."""
    if end.result is not None:
        return end.result
    declared = end.ending.result
    return (declared.summary if declared else "") or end.ending.output or None
