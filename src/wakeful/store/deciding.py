"""The one door: gather under the lock, ask the core, write what it says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from wakeful.core.admission import soonness
from wakeful.core.agents import Agent
from wakeful.core.codec import encode, read_time
from wakeful.core.errors import Unknown
from wakeful.core.events import EventKind
from wakeful.core.guards import ABOUT_SENDER
from wakeful.core.pace import shift_size
from wakeful.core.wakes import Cause, Subject, Verdict, VerdictKind, Wake, defer, refuse
from wakeful.store.declaring import Declaring
from wakeful.store.dueness import SIGHT
from wakeful.store.facts import Gathered, agent_total, asks, fact_parameters, gather, pair_total, slot_limit
from wakeful.store.opinions import (
    Opinion,
    asked_fields,
    counts_money,
    like,
    opinion_on,
    run_row,
    taken_up,
    traced,
    wake_row,
)
from wakeful.store.protocol import Admit, Decision, Skip
from wakeful.store.recording import SWEEP, role_target
from wakeful.store.rows import micros_or_none, moment_or_none, to_micros, to_wake
from wakeful.store.session import Reading, Row
from wakeful.store.voiding import Totals

# What a beat waits for that a CHECK held back; every other guard is the core's.
CHECK = "check"


class Deciding(Declaring):
    def ask(self, wakes: Sequence[Wake], now: datetime) -> list[int]:
        with self.session.transaction("ask"):
            return [self._ask_one(wake, now) for wake in wakes]

    def _ask_one(self, wake: Wake, now: datetime) -> int:
        self._must_exist(wake)
        wake = self._trace(wake)
        at = read_time(wake.slot) if wake.one_off else now
        known = self._known_slot(wake)
        if known is not None:
            return known
        waiting = self._waiting(wake)
        verdict = defer("", "not decided yet")
        state = "joined" if waiting else "waiting"
        joined = waiting["id"] if waiting else None
        (id,) = self.insert_wakes([wake_row(wake, state, verdict, now, joined=joined, retry=at)])
        items = filter(None, (wake.item, wake.task))
        self.session.many("ask_item", [{"item": item, "wake": id, "now": to_micros(now)} for item in items])
        fields = {
            key: value
            for key, value in {**asked_fields(wake, wake.agent), "joined": joined}.items()
            if value is not None
        }
        self.event(EventKind.asked, now, agent=wake.agent, wake=id, item=wake.item or wake.task, fields=fields)
        return id

    def decide(self, wakes: Sequence[Wake], admit: Admit, now: datetime) -> list[Decision]:
        with self.session.transaction("decide"):
            return self.decide_all(wakes, admit, now)

    def decide_all(self, wakes: Sequence[Wake], admit: Admit, now: datetime) -> list[Decision]:
        """Each sees what came of those before it."""
        return [self.decide_one(wake, admit, now) for wake in wakes]

    def decide_one(self, wake: Wake, admit: Admit, now: datetime) -> Decision:
        taken = self._take_up(wake, now)
        if isinstance(taken, Decision):
            return taken
        (decision,) = self.write_all([self._opinion(taken, admit, now)], now)
        return decision

    def skip(self, wake: Wake, reason: str, admit: Admit, skip: Skip, now: datetime) -> Decision:
        with self.session.transaction("skip"):
            taken = self._take_up(wake, now)
            if isinstance(taken, Decision):
                return taken
            opinion = self._opinion(taken, admit, now)
            if opinion.admitted and opinion.gathered is not None:
                verdict = self._hold_back(opinion.gathered, reason, skip, now)
                opinion = Opinion(taken, opinion.gathered, verdict)
            (decision,) = self.write_all([opinion], now)
            return decision

    def _hold_back(self, gathered: Gathered, reason: str, skip: Skip, now: datetime) -> Verdict:
        moved = skip(gathered.standing, gathered.agent, now)
        due_at = micros_or_none(moved.due_at)
        self.session.write("skip_beat", agent=moved.agent, idle_streak=moved.idle_streak, due_at=due_at)
        if moved.due_at is None:
            # Without a timer there is nothing to wait for: this was a beat of its own.
            return refuse(CHECK, reason, idle_streak=moved.idle_streak)
        return defer(CHECK, reason, until=moved.due_at, idle_streak=moved.idle_streak)

    def _take_up(self, wake: Wake, now: datetime) -> Wake | Decision:
        """The wake as we know it; or the answer, where it was decided before or is part of one that waits."""
        if wake.id:
            row = self.session.one("waiting_wake", wake=wake.id)
            if row is None:
                return Decision(wake=wake.id, verdict=refuse("moot", "this wake was decided since"))
            return to_wake(row)
        wake = self._trace(wake)
        waiting = self._waiting(wake)
        if self._taken_up(wake):
            # Several nodes find the same to be due: whoever comes second leaves no trace of it.
            return _found_twice(wake, waiting)
        return wake if waiting is None else self._join(wake, waiting, now)

    def _taken_up(self, wake: Wake) -> bool:
        """Whether what gave this wake, as `due` found it, has asked for another one meanwhile."""
        query = taken_up(wake)
        return query is not None and bool(self.session.all(query[0], **query[1]))

    def _opinion(self, wake: Wake, admit: Admit, now: datetime) -> Opinion:
        """The first agent behind the target that is admitted; else whoever can take it soonest."""
        rows: list[Row | None] = [*candidates(self.session, wake)]
        if not rows:
            self._must_exist(wake)
        opinions: list[Opinion] = []
        for row in rows or [None]:
            gathered = None if row is None else self.gather(self.session, wake, row, now)
            opinions.append(opinion_on(wake, gathered, admit, now))
            if opinions[-1].verdict.kind is VerdictKind.admit:
                return opinions[-1]
        return min(opinions, key=lambda opinion: soonness(opinion.verdict))

    def gather(self, session: Reading, wake: Wake, row: Row, now: datetime) -> Gathered:
        agent = self.read_agent(row)
        pair = pair_total(_address(session, wake.sender), agent.address)
        parameters = fact_parameters(wake, agent, pair, now)
        scalars = session.one("facts", **parameters)
        assert scalars is not None, f"{agent.name} has no standing"
        return gather(scalars, parameters, wake, agent, row, self._asks(session, scalars), now)

    def _asks(self, session: Reading, scalars: Row) -> Agent | None:
        found = asks(scalars)
        if found is None:
            return None
        row = None if (known := self.known_agent(*found)) else session.one("agent_row", agent=found[0])
        return known if row is None else self.read_agent(row)

    def write_all(self, opinions: list[Opinion], now: datetime) -> list[Decision]:
        ids = self._keep(opinions, now)
        runs = self._admit([(id, opinion) for id, opinion in zip(ids, opinions, strict=True) if opinion.admitted], now)
        decided = [(id, runs.get(id), opinion) for id, opinion in zip(ids, opinions, strict=True)]
        for id, run, opinion in decided:
            self._tell(id, run, opinion, now)
        self._mark([(id, opinion) for id, _, opinion in decided], now)
        return [
            Decision(wake=id, verdict=opinion.verdict, run=run, agent=opinion.agent) for id, run, opinion in decided
        ]

    def _keep(self, opinions: list[Opinion], now: datetime) -> list[int]:
        """The ids of their wakes, of which some are new."""
        known, new = [], []
        for opinion in opinions:
            wake, verdict, state = opinion.wake, opinion.verdict, opinion.state
            if not wake.id:
                new.append(wake_row(wake, state, verdict, now, charged=opinion.charges))
                continue
            known.append(
                {
                    "wake": wake.id,
                    "state": state,
                    "charged": int(wake.charged or opinion.charges),
                    "guard": verdict.guard,
                    "verdict": verdict.reason,
                    "retry_at": micros_or_none(verdict.until) if state == "waiting" else None,
                    "decided_at": to_micros(now),
                }
            )
        self.pass_on([opinion.wake.id for opinion in opinions if opinion.wake.id and counts_money(opinion)], now)
        self.session.many("decide_wake", known)
        ids = iter(self.insert_wakes(new))
        return [opinion.wake.id or next(ids) for opinion in opinions]

    def insert_wakes(self, rows: list[Row]) -> list[int]:
        return self.session.inserts("put_wake", rows)

    def _admit(self, admitted: list[tuple[int, Opinion]], now: datetime) -> dict[int, int]:
        """The run of each wake that is admitted."""
        if not admitted:
            return {}
        rows, totals = [], Totals()
        for id, opinion in admitted:
            gathered, charged = opinion.gathered, int(opinion.charges)
            assert gathered is not None
            row = run_row(id, opinion.wake, gathered, charged, now)
            usd, tokens = row["reserved_usd"], row["reserved_tokens"]
            totals.add(agent_total(gathered.agent.address), gathered.day, wakes=charged, usd=usd, tokens=tokens)
            totals.add(gathered.pair, gathered.day, wakes=charged)
            totals.add("fleet", gathered.fleet_day, usd=usd, tokens=tokens)
            rows.append(row)
        runs = self.session.inserts("open_run", rows)
        self.add_totals(totals)
        for run, (id, opinion) in zip(runs, admitted, strict=True):
            if opinion.wake.subject is Subject.task and opinion.gathered is not None:
                self._lease(run, id, opinion.wake, opinion.gathered, now)
        return {id: run for run, (id, _) in zip(runs, admitted, strict=True)}

    def _lease(self, run: int, wake_id: int, wake: Wake, gathered: Gathered, now: datetime) -> None:
        """The task that was asked for, and for a shift as many more as it takes."""
        agent = gathered.agent
        tasks = [wake.task]
        if agent.shift > 1:
            tasks += self._more(wake, gathered, now)
        asked = {"run": run, "task": wake.task}
        self.session.write("lease_tasks", **asked, wake=wake_id, tasks=json.dumps(tasks))
        self.session.write("put_attempts", **asked, now=to_micros(now))

    def _more(self, wake: Wake, gathered: Gathered, now: datetime) -> list[int]:
        """As many as it will have done in a moment, but for the share of those who are idle beside it."""
        agent = gathered.agent
        others, last = self._siblings(wake, gathered)
        tasks, took = (0, None) if last is None else (last["tasks"], _span(last))
        most = shift_size(agent.shift, agent.shift, 0, tasks, took)
        if most == 1:
            return []
        rows = self._waiting_for(agent, now, most * (others + 1), wake)
        return [row["id"] for row in rows][: shift_size(agent.shift, len(rows) + 1, others, tasks, took) - 1]

    def _siblings(self, wake: Wake, gathered: Gathered) -> tuple[int, Row | None]:
        """How many may begin beside this agent on the same queues, and what its last shift was."""
        agent = gathered.agent
        free = slot_limit(agent.limits, wake.pool) - gathered.facts.slots_taken - 1
        shared = bool(agent.roles) or agent.address != agent.name
        named = {"agent": agent.name, "address": agent.address, "roles": json.dumps(agent.roles), "limit": max(free, 0)}
        asked = [("idle_siblings", named)] if shared and free > 0 else []
        last, *idle = self.session.lists(("last_shift", {"agent": agent.name}), *asked)
        return (idle[0][0]["idle"] if idle else 0), (last[0] if last else None)

    def _waiting_for(self, agent: Agent, now: datetime, most: int, wake: Wake) -> list[Row]:
        """Beside the task that was asked for. All are as deep: what a task adds stands one deeper than its run."""
        targets = dict.fromkeys((agent.name, agent.address, *map(role_target, agent.roles)))
        common = {"limit": most, "sight": SIGHT, "now": to_micros(now)}
        asked = [{"target": target, **common} for target in targets]
        found = self.session.lists(*((query, row) for row in asked for query in ("ready_tasks", "later_tasks")))
        rows = [row for rows in found for row in rows]
        rows.sort(key=lambda row: (row["place"], row["id"]))
        return [row for row in rows if row["id"] != wake.task and row["depth"] == wake.depth][:most]

    def _mark(self, decided: list[tuple[int, Opinion]], now: datetime) -> None:
        """Who asked needs not be asked for again; what was refused keeps its item, and keeps it quiet."""
        items, beats = [], []
        for id, opinion in decided:
            wake, gathered = opinion.wake, opinion.gathered
            # A task that is admitted was leased.
            for item in (wake.item, None if opinion.refused or opinion.admitted else wake.task):
                if item is not None:
                    items.append({"item": item, "wake": id, "now": to_micros(now)})
            if wake.cause is Cause.timer and not wake.one_off and gathered:
                beats.append({"agent": gathered.agent.name, "asked": int(not opinion.refused)})
        self.session.many("ask_item", items)
        self.session.many("ask_standing", beats)
        for id, opinion in decided:
            if opinion.refused:
                self._quieten(id, opinion, now)
            if opinion.verdict.trip is not None:
                self.put_pause(opinion.verdict.trip, now)

    def _quieten(self, id: int, opinion: Opinion, now: datetime) -> None:
        wake, gathered, moot = opinion.wake, opinion.gathered, opinion.verdict.guard == "moot"
        if wake.item is not None and not moot:
            self.session.write("sweep_item", item=wake.item, ring_at=to_micros(now + SWEEP))
        if moot and wake.subject is Subject.inbox and gathered:
            named = {"agent": gathered.agent.name, "address": gathered.agent.address}
            self.session.write("ring_later", **named, now=to_micros(now))
        if wake.task is not None:
            self.session.write("unask_task", item=wake.task, wake=id)
        if wake.id and opinion.verdict.guard in ABOUT_SENDER:
            self._replace(wake, opinion.verdict.guard, now)
        if wake.id and not moot:
            self.session.write("sweep_joined", wake=wake.id, ring_at=to_micros(now + SWEEP))

    def _replace(self, wake: Wake, guard: str, now: datetime) -> None:
        """What others asked for is not given up with it: the oldest of that waits in its place, and is decided next."""
        who = {"by_run": wake.by_run, "sender": wake.sender, "depth": wake.depth}
        row = self.session.one("next_joined", wake=wake.id, guard=guard, **who)
        if row is None:
            return
        after = to_wake(row)
        self.session.write("wait_instead", wake=after.id, now=to_micros(now))
        self.session.write("join_instead", next=after.id, wake=wake.id, guard=guard, **who)
        told = {**asked_fields(after, after.agent), "after": wake.id}
        fields = {key: value for key, value in told.items() if value is not None}
        self.event(EventKind.asked, now, agent=after.agent, wake=after.id, item=after.item, fields=fields)

    def _tell(self, id: int, run: int | None, opinion: Opinion, now: datetime) -> None:
        wake, gathered, verdict = opinion.wake, opinion.gathered, opinion.verdict
        fields = {
            **asked_fields(wake, opinion.agent),
            "charged": opinion.charges,
            "version": gathered.version if gathered else None,
            "verdict": encode(verdict if verdict.trip is None else replace(verdict, trip=None)),
            "facts": encode(gathered.facts) if gathered else None,
        }
        told = {key: value for key, value in fields.items() if value is not None}
        item = wake.item or wake.task
        self.event(EventKind.decided, now, agent=opinion.agent, wake=id, run=run, item=item, fields=told)

    def _join(self, wake: Wake, waiting: Row, now: datetime) -> Decision:
        """One of a kind waits; what only waited out a failed try need not wait for a fresh request."""
        self.session.write("retry_joined", wake=waiting["id"], now=to_micros(now))
        until = moment_or_none(waiting["retry_at"]) if waiting["guard"] else now
        why = f": {waiting['verdict']}" if waiting["verdict"] else ""
        reason = f"joined wake {waiting['id']}, which waits already{why}"
        verdict = defer(waiting["guard"] or "", reason, until=until)
        (id,) = self.insert_wakes([wake_row(wake, "joined", verdict, now, joined=waiting["id"])])
        if wake.item is not None:
            self.session.many("ask_item", [{"item": wake.item, "wake": id, "now": to_micros(now)}])
        fields = {"cause": wake.cause.value, "from": wake.sender, "joined": waiting["id"]}
        self.event(EventKind.decided, now, agent=wake.agent, wake=id, item=wake.item, fields=fields)
        return Decision(wake=id, verdict=verdict, joined=waiting["id"], agent=wake.agent)

    def _trace(self, wake: Wake) -> Wake:
        row = None if wake.by_run is None else self.session.one("lineage", run=wake.by_run)
        if row is None and wake.by_run is not None:
            raise Unknown(f"no run {wake.by_run}")
        return traced(wake, row)

    def _must_exist(self, wake: Wake) -> None:
        if wake.agent is not None and self.session.one("address_row", name=wake.agent) is None:
            raise Unknown(f"no agent is called {wake.agent}")

    def _waiting(self, wake: Wake) -> Row | None:
        return self.session.one("waiting_like", **like(wake))

    def _known_slot(self, wake: Wake) -> int | None:
        if not wake.one_off:
            return None
        row = self.session.one("slot_row", agent=wake.agent, slot=wake.slot)
        return None if row is None else int(row["id"])


def _span(run: Row) -> timedelta:
    return timedelta(microseconds=run["ended_at"] - run["started_at"])


def _found_twice(wake: Wake, waiting: Row | None) -> Decision:
    if waiting is None:
        return Decision(wake=0, verdict=refuse("moot", "this was decided since"), agent=wake.agent)
    verdict = defer(waiting["guard"] or "", waiting["verdict"], until=moment_or_none(waiting["retry_at"]))
    return Decision(wake=waiting["id"], verdict=verdict, joined=waiting["id"], agent=wake.agent)


def candidates(session: Reading, wake: Wake) -> list[Row]:
    """Who may answer a wake: the agent it names, or those behind its address or role, best placed first."""
    if wake.agent is None:
        return _worth_asking(session.all("role_candidates", role=wake.role))
    row = session.one("agent_row", agent=wake.agent)
    if row is not None and row["removed_at"] is None:
        return [row]
    return _worth_asking(session.all("candidates", target=wake.agent)) or ([row] if row else [])


def _worth_asking(rows: list[Row]) -> list[Row]:
    """All who are free; and one who is busy and one who is paused, to know what the others would be told."""
    free = [row for row in rows if not row["busy"] and not row["paused"]]
    busy = [row for row in rows if row["busy"] and not row["paused"]]
    return free + busy[:1] + [row for row in rows if row["paused"]][:1]


def _address(session: Reading, sender: str | None) -> str | None:
    """A replica speaks, and is counted, under the address that it shares."""
    row = None if sender is None else session.one("sender_address", name=sender)
    return sender if row is None else str(row["address"])
