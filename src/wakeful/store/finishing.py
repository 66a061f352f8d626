"""The end of a run: everything that its outcome changes, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby, islice
from typing import NamedTuple

from wakeful.core.agents import Agent
from wakeful.core.codec import encode
from wakeful.core.errors import Stale
from wakeful.core.events import EventKind
from wakeful.core.items import TERMINAL, State
from wakeful.core.runs import Ending, Outcome, Run, summarise
from wakeful.core.settlement import Settlement, TaskFate, left_behind, settle_task
from wakeful.core.wakes import Subject
from wakeful.store.depending import Depending
from wakeful.store.facts import agent_total
from wakeful.store.protocol import Finish, Settle, TaskEnd
from wakeful.store.recording import SWEEP
from wakeful.store.rows import dump, micros_or_none, to_micros, to_run, to_standing
from wakeful.store.running import Running
from wakeful.store.session import Row
from wakeful.store.steps import beat_subject
from wakeful.store.voiding import NEWS_AFTER, Totals

# An agent without a timer sees a message that it keeps failing on this often; then a person must look.
MOST_SWEEPS = 12


# What a run's end rests on, but for what is declared.
_OF_A_RUN = ("run_with_wake", "run_agent", "shown_items", "tasks_under_way")


class _Part(NamedTuple):
    """A task's end in a run."""

    run: int
    task: Row
    end: TaskEnd
    agent: Agent
    # Not one that was taken from its run meanwhile: how that ends changes nothing more.
    held: bool


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


class Finishing(Running, Depending):
    def finish(self, ends: Sequence[Finish], settle: Settle, now: datetime) -> list[Outcome]:
        with self.session.transaction("finish"):
            # Runs that are open at once are of different agents: no end changes what another one rests on.
            all_ended = self._read_ends(ends, settle, now)
            self._end(all_ended, now)
            self._move(all_ended, now)
            self._settle_items(all_ended, now)
            self._settle_tasks([part for ended in all_ended for part in _parts(ended)], now)
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

    def finish_tasks(self, run: int, epoch: int, ends: Sequence[TaskEnd], now: datetime) -> list[Outcome | None]:
        with self.session.transaction("finish_tasks"):
            rows, tasks = self.session.lists(("run_owner", {"run": run}), ("tasks_under_way", {"run": run}))
            row = still_open(rows, run, epoch)
            agent = self.known_agent(row["name"], row["version"]) or self._owner(run)
            under_way = {task["id"]: task for task in tasks}
            # Of a task that is told twice the first end counts.
            first = {end.task: end for end in reversed(ends)}
            parts = [
                _part(run, under_way[end.task], end, agent)
                for end in ends
                if end.task in under_way and first[end.task] is end
            ]
            outcomes: dict[int, Outcome | None] = {}
            for part, outcome in zip(parts, self._settle_tasks(parts, now), strict=True):
                outcomes[part.task["id"]] = outcome
            return [outcomes.get(end.task) if first[end.task] is end else None for end in ends]

    def _owner(self, run: int) -> Agent:
        (row,) = self.session.all("run_agent", run=run)
        return self.read_agent(row)

    def _settle_tasks(self, parts: list[_Part], now: datetime) -> list[Outcome | None]:
        if not parts:
            return []
        both = [(part, _fate(part, now)) for part in parts]
        held = [(part, fate) for part, fate in both if part.held]
        keys = {part.task["key"] for part, fate in held if fate.state in TERMINAL} - {None}
        self.hold_keys(keys)
        for run, share in groupby(both, key=lambda pair: pair[0].run):
            ended = list(share)
            self._write_tasks(run, ended, now)
            self._tell_tasks(run, ended, now)
        self.tasks_closed([(part.task["id"], fate.state) for part, fate in held], now)
        self.free_keys(keys)
        return [fate.outcome if part.held else None for part, fate in both]

    def _write_tasks(self, run: int, parts: list[tuple[_Part, TaskFate]], now: datetime) -> None:
        """Most are done and say no more: those are written as one."""
        done: list[_Part] = []
        others: list[tuple[_Part, TaskFate]] = []
        for part, fate in parts:
            if part.held and fate.outcome is Outcome.done and _says_nothing(part.end):
                done.append(part)
            else:
                others.append((part, fate))
        at = to_micros(now)
        tasks = [part.task["id"] for part in done]
        began = [_began(part, at) for part in done]
        ended = [{"run": run, "now": at, "item": task, "began": when} for task, when in zip(tasks, began, strict=True)]
        self.session.many("end_done", ended)
        if done:
            self.session.write("settle_done", run=run, now=at, tasks=json.dumps(tasks))
        self.session.many("end_attempt", [_attempt(part, fate, at) for part, fate in others])
        held = [(part, fate) for part, fate in others if part.held]
        self.session.many("settle_task", [_settled(part, fate, now) for part, fate in held])

    def _tell_tasks(self, run: int, ended: list[tuple[_Part, TaskFate]], now: datetime) -> None:
        """In one event, from which everybody who reads is told of each (see `rows.to_events`)."""
        agent = ended[0][0].agent.name
        told = [(part.task["id"], fate.outcome, fate.state, fate.error) for part, fate in ended]
        if len(told) == 1:
            ((item, outcome, state, error),) = told
            fields = {"outcome": outcome, "state": state, "error": error}
            self.event(EventKind.task_ended, now, agent=agent, run=run, item=item, fields=fields)
        else:
            self.event(EventKind.task_ended, now, agent=agent, run=run, fields={"ends": told})


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


def _parts(ended: _Ended) -> list[_Part]:
    """In the order in which they ended; a task that was not named shares the run's own ending."""
    under_way = {task["id"]: task for task in ended.tasks}
    ends: dict[int, TaskEnd] = {}
    for end in ended.end.tasks:
        if end.task in under_way:
            ends.setdefault(end.task, end)
    for id in under_way:
        if id not in ends:
            ends[id] = TaskEnd(task=id, ending=_shared(ended))
    return [_part(ended.run.id, under_way[id], end, ended.agent) for id, end in ends.items()]


def _part(run: int, task: Row, end: TaskEnd, agent: Agent) -> _Part:
    return _Part(run, task, end, agent, task["held_by"] == run)


def _shared(ended: _Ended) -> Ending:
    """What a run is about ends as it does; what it took beside that, only where it says so of the task."""
    ending = ended.end.ending
    return ending if ended.run.subject is Subject.task else left_behind(ending)


def _fate(part: _Part, now: datetime) -> TaskFate:
    task = part.task
    fate = settle_task(task["id"], task["attempts"], task["max_retries"], part.end.ending, part.agent, now)
    return fate if part.held else replace(fate, state=State(task["state"]), attempts=task["attempts"], not_before=None)


def _began(part: _Part, now: int) -> int:
    """The task itself, not the shift in which it was; of what was lost with its guardian only the start is known, and
    stays as it was recorded."""
    ending = part.end.ending
    if ending.lost or ending.orphaned:
        return 0
    took = ending.elapsed
    return now - (took.days * 86_400 + took.seconds) * 1_000_000 - took.microseconds


def _attempt(part: _Part, fate: TaskFate, now: int) -> Row:
    return {
        "item": part.task["id"],
        "run": part.run,
        "now": now,
        "outcome": fate.outcome.value,
        "counted": int(fate.attempts > part.task["attempts"]),
        "exit_code": part.end.ending.exit_code,
        "error": fate.error,
        "output": part.end.ending.printed,
        "began": _began(part, now),
    }


def _says_nothing(end: TaskEnd) -> bool:
    ending = end.ending
    return not ending.printed and ending.exit_code == 0 and result_of(end) is None


def _settled(part: _Part, fate: TaskFate, now: datetime) -> Row:
    return {
        "item": part.task["id"],
        "run": part.run,
        "state": fate.state.value,
        "attempts": fate.attempts,
        "not_before": micros_or_none(fate.not_before),
        "error": fate.error or None,
        # What a failed attempt printed is kept with the attempt.
        "result": result_of(part.end) if fate.state is State.completed else None,
        "closed_at": to_micros(now) if fate.state in TERMINAL else None,
    }


def _ms(ending: Ending) -> int:
    return int(ending.elapsed.total_seconds() * 1000)


def result_of(end: TaskEnd) -> str | None:
    """What a task leaves behind: its result, else what it said."""
    if end.result is not None:
        return end.result
    declared = end.ending.result
    if declared is not None and declared.value is not None:
        return declared.value
    return (declared.summary if declared else "") or end.ending.output or None
