"""The end of a run: everything that its outcome changes, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

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
from wakeful.store.rows import dump, micros_or_none, to_item, to_micros, to_run, to_standing
from wakeful.store.running import Running
from wakeful.store.session import Row
from wakeful.store.steps import beat_subject, task_subject

# An agent without a timer sees a message that it keeps failing on this often; then a person must look.
MOST_SWEEPS = 12


class Finishing(Running):
    def finish(self, ends: Sequence[Finish], settle: Settle, now: datetime) -> list[Outcome]:
        with self.session.transaction("finish"):
            return [self._finish_one(end, settle, now) for end in ends]

    def _finish_one(self, end: Finish, settle: Settle, now: datetime) -> Outcome:
        row = self._open_run(end.run, end.epoch)
        run = to_run(row)
        agent_row = self._row("agent_row", agent=run.agent)
        agent = self.read_agent(agent_row)
        standing = to_standing(self._row("standing_row", agent=run.agent))
        began_with = self.pinned_lifecycle(run.agent, run.version)
        settled = settle(run, end.ending, standing, agent, now, began_with=began_with)
        self._end(row, end, settled, now)
        self._move(row, agent_row, run, settled, now)
        self._settle_items(run, settled, now)
        own = {part.task: part for part in end.tasks}
        for task in self.session.all("tasks_of_run", run=run.id):
            part = own.get(task["id"]) or TaskEnd(task=task["id"], ending=end.ending)
            self._settle_task(run.id, task, part, agent, now)
        self._account(row, agent, settled, end.ending, now)
        if settled.pause is not None:
            self.put_pause(settled.pause, now)
        if settled.retry_at is not None:
            self.wait_again(run.wake, settled.retry_at, charged=bool(row["wake_charged"]), failed=True)
        self.wake_waiting(agent, now)
        self._tell_end(row, run, settled, end.ending, now)
        return settled.outcome

    def _open_run(self, run: int, epoch: int) -> Row:
        row = self.session.one("run_with_wake", run=run)
        if row is None or row["state"] != "running" or row["epoch"] != epoch:
            raise Stale(f"run {run} is not open in epoch {epoch}")
        return row

    def _end(self, row: Row, end: Finish, settled: Settlement, now: datetime) -> None:
        self.session.run(
            "end_run",
            run=end.run,
            epoch=end.epoch,
            outcome=settled.outcome.value,
            reason=settled.reason,
            summary=summarise(end.ending),
            now=to_micros(now),
            spent_usd=settled.bill.spend.usd,
            spent_tokens=settled.bill.spend.tokens,
            estimated=int(settled.bill.estimated),
        )

    def _move(self, row: Row, agent_row: Row, run: Run, settled: Settlement, now: datetime) -> None:
        standing = settled.standing
        timed = agent_row["enabled"] and agent_row["removed_at"] is None
        moved = run.subject is Subject.beat and settled.answered
        timer = self.session.one("waiting_like", agent=run.agent, cause="timer", subject="beat", task=None, slot="")
        self.session.run(
            "move_standing",
            agent=run.agent,
            state=standing.position.state,
            hits=standing.position.hits,
            idle_streak=standing.idle_streak,
            failure_streak=standing.failure_streak,
            due_at=micros_or_none(standing.due_at) if timed else None,
            gates=dump(standing.gates or {}),
            costs=dump(standing.costs),
            last_outcome=standing.last_outcome,
            now=to_micros(now),
            moved=int(moved),
            asked=int(timer is not None),
        )
        if timer is not None and timed and standing.due_at is not None:
            self.session.run("check_again", agent=run.agent, at=to_micros(standing.due_at))
        if moved:
            self.session.run("forget_steps", subject=beat_subject(run.agent, row["beat"]))

    def _settle_items(self, run: Run, settled: Settlement, now: datetime) -> None:
        for item in self.session.all("shown_items", run=run.id):
            # What a run did to its own mirrored items while it held them is not news to it.
            mirrored = item["external_id"] is not None
            self.session.run(
                "settle_item",
                item=item["id"],
                shown=item["fingerprint"] if mirrored else item["shown_fingerprint"],
                wake=run.wake,
                answered=int(settled.answered),
                now=to_micros(now),
            )
            if not settled.answered and settled.retry_at is None and item["unanswered"] < MOST_SWEEPS:
                self.session.run("sweep_item", item=item["id"], ring_at=to_micros(now + SWEEP))

    def _account(self, row: Row, agent: Agent, settled: Settlement, ending: Ending, now: datetime) -> None:
        usd = settled.bill.spend.usd - row["reserved_usd"]
        tokens = settled.bill.spend.tokens - row["reserved_tokens"]
        ms = _ms(ending)
        self.add_total(agent_total(agent.address), row["day"], ms=ms, usd=usd, tokens=tokens)
        self.add_total("fleet", row["fleet_day"], ms=ms, usd=usd, tokens=tokens)
        self.money_back(row, usd, tokens, now)

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
            row = self._open_run(run, epoch)
            tasks = {task["id"]: task for task in self.session.all("tasks_of_run", run=run)}
            if end.task not in tasks:
                raise Stale(f"task {end.task} is not under way in run {run}")
            agent = self.read_agent(self._row("agent_row", agent=row["agent"]))
            return self._settle_task(run, tasks[end.task], end, agent, now)

    def _settle_task(self, run: int, task: Row, end: TaskEnd, agent: Agent, now: datetime) -> Outcome:
        item = to_item(task)
        fate = settle_task(item.id, item.attempts, item.max_retries, end.ending, agent, now)
        self.session.run(
            "end_attempt",
            item=item.id,
            run=run,
            now=to_micros(now),
            outcome=fate.outcome.value,
            counted=int(fate.attempts > item.attempts),
            exit_code=end.ending.exit_code,
            error=fate.error,
        )
        # A task that was cancelled meanwhile is no longer held by this run: its end changes nothing more.
        if task["held_by"] == run:
            self._give(run, item.id, fate, result_of(end), now)
        fields = {"outcome": fate.outcome.value, "state": fate.state.value, "error": fate.error}
        self.event(EventKind.task_ended, now, agent=agent.name, run=run, item=item.id, fields=fields)
        return fate.outcome

    def _give(self, run: int, item: int, fate: TaskFate, result: str | None, now: datetime) -> None:
        terminal = fate.state in TERMINAL
        self.session.run(
            "settle_task",
            item=item,
            run=run,
            state=fate.state.value,
            attempts=fate.attempts,
            not_before=micros_or_none(fate.not_before),
            error=fate.error or None,
            result=result,
            closed_at=to_micros(now) if terminal else None,
        )
        self.task_closed(item, fate.state)

    def task_closed(self, item: int, state: State) -> None:
        """What depends on a task goes on when it is completed, and is blocked when it never will be."""
        if state is State.completed:
            self.session.run("free_dependents", item=item)
        elif state in TERMINAL:
            reason = f"depends on task {item}, which is {state.value}"
            self.session.run("block_dependents", item=item, error=reason)
        if state in TERMINAL:
            self.session.run("forget_steps", subject=task_subject(item))


def _ms(ending: Ending) -> int:
    return int(ending.elapsed.total_seconds() * 1000)


def result_of(end: TaskEnd) -> str | None:
    """What a task leaves behind: its result, else what it said."""
    if end.result is not None:
        return end.result
    declared = end.ending.result
    return (declared.summary if declared else "") or end.ending.output or None
