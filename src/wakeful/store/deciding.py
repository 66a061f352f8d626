"""The one door: gather under the lock, ask the core, write what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from wakeful.core.admission import soonness
from wakeful.core.agents import Agent, Limits
from wakeful.core.codec import encode, read_time
from wakeful.core.errors import Unknown
from wakeful.core.events import EventKind
from wakeful.core.facts import Facts
from wakeful.core.standing import NOTHING
from wakeful.core.wakes import Cause, Subject, Verdict, VerdictKind, Wake, defer, refuse
from wakeful.store.declaring import Declaring
from wakeful.store.facts import Gathered, agent_total, fact_parameters, gather, pair_total
from wakeful.store.protocol import Admit, Decision, Skip
from wakeful.store.recording import SWEEP, role_target
from wakeful.store.rows import micros_or_none, moment_or_none, to_micros, to_wake, wake_parameters
from wakeful.store.session import Reading, Row

# What a beat waits for that a CHECK held back; every other guard is the core's.
CHECK = "check"

_STATES = {VerdictKind.admit: "admitted", VerdictKind.defer: "waiting", VerdictKind.refuse: "refused"}


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
        id = self._put_wake(wake, state, verdict, now, joined=joined, retry=at)
        for item in filter(None, (wake.item, wake.task)):
            self.session.run("ask_item", item=item, wake=id, now=to_micros(now))
        fields = {
            key: value for key, value in {**_asked(wake, wake.agent), "joined": joined}.items() if value is not None
        }
        self.event(EventKind.asked, now, agent=wake.agent, wake=id, item=wake.item or wake.task, fields=fields)
        return id

    def decide(self, wakes: Sequence[Wake], admit: Admit, now: datetime) -> list[Decision]:
        with self.session.transaction("decide"):
            return [self._decide_one(wake, admit, now) for wake in wakes]

    def _decide_one(self, wake: Wake, admit: Admit, now: datetime) -> Decision:
        taken = self._take_up(wake, now)
        if isinstance(taken, Decision):
            return taken
        gathered, verdict = self._opinion(taken, admit, now)
        return self._write(taken, gathered, verdict, now)

    def skip(self, wake: Wake, reason: str, admit: Admit, skip: Skip, now: datetime) -> Decision:
        with self.session.transaction("skip"):
            taken = self._take_up(wake, now)
            if isinstance(taken, Decision):
                return taken
            gathered, verdict = self._opinion(taken, admit, now)
            if verdict.kind is VerdictKind.admit and gathered is not None:
                verdict = self._hold_back(gathered, reason, skip, now)
            return self._write(taken, gathered, verdict, now)

    def _hold_back(self, gathered: Gathered, reason: str, skip: Skip, now: datetime) -> Verdict:
        moved = skip(gathered.standing, gathered.agent, now)
        due_at = micros_or_none(moved.due_at)
        self.session.run("skip_beat", agent=moved.agent, idle_streak=moved.idle_streak, due_at=due_at)
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
        return wake if waiting is None else self._join(wake, waiting, now)

    def _opinion(self, wake: Wake, admit: Admit, now: datetime) -> tuple[Gathered | None, Verdict]:
        """The first agent behind the target that is admitted; else whoever can take it soonest."""
        rows: list[Row | None] = [*candidates(self.session, wake)]
        if not rows:
            self._must_exist(wake)
        opinions: list[tuple[Gathered | None, Verdict]] = []
        for row in rows or [None]:
            gathered = None if row is None else self.gather(self.session, wake, row, now)
            facts = gathered.facts if gathered else Facts(now=now, moot=f"no agent answers to {target_of(wake)}")
            limits = gathered.agent.limits if gathered else Limits()
            named = replace(wake, agent=gathered.agent.name) if gathered else wake
            verdict = admit(named, facts, limits)
            opinions.append((gathered, verdict))
            if verdict.kind is VerdictKind.admit:
                return opinions[-1]
        return min(opinions, key=lambda opinion: soonness(opinion[1]))

    def gather(self, session: Reading, wake: Wake, row: Row, now: datetime) -> Gathered:
        agent = self.read_agent(row)
        pair = pair_total(_address(session, wake.sender), agent.address)
        scalars = session.one("facts", **fact_parameters(wake, agent, pair, now))
        assert scalars is not None, f"{agent.name} has no standing"
        return gather(scalars, wake, agent, row, pair, now)

    def _write(self, wake: Wake, gathered: Gathered | None, verdict: Verdict, now: datetime) -> Decision:
        admitted = verdict.kind is VerdictKind.admit
        charge = admitted and wake.cause is Cause.peer and not wake.charged
        state = _STATES[verdict.kind]
        if wake.id:
            self.session.run(
                "decide_wake",
                wake=wake.id,
                state=state,
                charged=int(wake.charged or charge),
                guard=verdict.guard,
                verdict=verdict.reason,
                retry_at=micros_or_none(verdict.until) if state == "waiting" else None,
                decided_at=to_micros(now),
            )
            id = wake.id
        else:
            id = self._put_wake(wake, state, verdict, now, charged=charge)
        run = self._admit(id, wake, gathered, charge, now) if admitted and gathered else None
        self._tell(id, run, wake, gathered, verdict, charge, now)
        self._mark(id, wake, gathered, verdict, now)
        name = gathered.agent.name if gathered else wake.agent
        return Decision(wake=id, verdict=verdict, run=run, agent=name)

    def _admit(self, id: int, wake: Wake, gathered: Gathered, charge: bool, now: datetime) -> int | None:
        agent, reserved = gathered.agent, gathered.facts.reserve or NOTHING
        run = self.session.insert(
            "open_run",
            agent=agent.name,
            address=agent.address,
            wake=id,
            cause=wake.cause.value,
            subject=wake.subject.value,
            pool=wake.pool.value,
            version=gathered.version,
            position=gathered.position.state,
            hits=gathered.position.hits,
            beat=gathered.beat,
            attempt=gathered.attempt,
            charged=int(charge),
            pair=gathered.pair,
            day=gathered.day,
            fleet_day=gathered.fleet_day,
            reserved_usd=reserved.usd,
            reserved_tokens=reserved.tokens,
            now=to_micros(now),
        )
        usd, tokens = reserved.usd, reserved.tokens
        self.add_total(agent_total(agent.address), gathered.day, wakes=int(charge), usd=usd, tokens=tokens)
        self.add_total(gathered.pair, gathered.day, wakes=int(charge))
        self.add_total("fleet", gathered.fleet_day, usd=usd, tokens=tokens)
        if wake.subject is Subject.task and run is not None:
            self._lease(run, id, wake, gathered, now)
        return run

    def _lease(self, run: int, wake_id: int, wake: Wake, gathered: Gathered, now: datetime) -> None:
        """The task that was asked for, and for a shift as many more as it takes."""
        agent = gathered.agent
        tasks = [wake.task]
        if agent.shift > 1:
            tasks += self._more(agent, now, wake.task)
        for task in tasks:
            self.session.run("lease_task", item=task, run=run, wake=wake_id)
            self.session.run("put_attempt", item=task, run=run, now=to_micros(now))

    def _more(self, agent: Agent, now: datetime, but: int | None) -> list[int]:
        targets = dict.fromkeys((agent.name, agent.address, *map(role_target, agent.roles)))
        rows: list[Row] = []
        for target in targets:
            rows += self.session.all("ready_tasks", target=target, limit=agent.shift)
            rows += self.session.all("later_tasks", target=target, limit=agent.shift, now=to_micros(now))
        rows.sort(key=lambda row: (-row["priority"], row["id"]))
        return [row["id"] for row in rows if row["id"] != but][: agent.shift - 1]

    def _mark(self, id: int, wake: Wake, gathered: Gathered | None, verdict: Verdict, now: datetime) -> None:
        """Who asked needs not be asked for again; what was refused keeps its item, and keeps it quiet."""
        refused = verdict.kind is VerdictKind.refuse
        if wake.item is not None:
            self.session.run("ask_item", item=wake.item, wake=id, now=to_micros(now))
            if refused and verdict.guard != "moot":
                self.session.run("sweep_item", item=wake.item, ring_at=to_micros(now + SWEEP))
        if refused and verdict.guard == "moot" and wake.subject is Subject.inbox and gathered:
            named = {"agent": gathered.agent.name, "address": gathered.agent.address}
            self.session.run("ring_later", **named, now=to_micros(now))
        if wake.task is not None:
            query = "unask_task" if refused else "ask_item"
            self.session.run(query, item=wake.task, wake=id, now=to_micros(now))
        if wake.cause is Cause.timer and not wake.one_off and gathered:
            self.session.run("ask_standing", agent=gathered.agent.name, asked=int(not refused))
        if verdict.trip is not None:
            self.put_pause(verdict.trip, now)

    def _tell(
        self,
        id: int,
        run: int | None,
        wake: Wake,
        gathered: Gathered | None,
        verdict: Verdict,
        charge: bool,
        now: datetime,
    ) -> None:
        name = gathered.agent.name if gathered else wake.agent
        fields = {
            **_asked(wake, name),
            "charged": charge,
            "version": gathered.version if gathered else None,
            "verdict": encode(replace(verdict, trip=None)),
            "facts": encode(gathered.facts) if gathered else None,
        }
        told = {key: value for key, value in fields.items() if value is not None}
        self.event(EventKind.decided, now, agent=name, wake=id, run=run, item=wake.item or wake.task, fields=told)

    def _join(self, wake: Wake, waiting: Row, now: datetime) -> Decision:
        """One of a kind waits; what only waited out a failed try need not wait for a fresh request."""
        self.session.run("retry_joined", wake=waiting["id"], now=to_micros(now))
        until = moment_or_none(waiting["retry_at"]) if waiting["guard"] else now
        reason = f"joined wake {waiting['id']}, which waits already: {waiting['verdict']}"
        verdict = defer(waiting["guard"] or "", reason, until=until)
        id = self._put_wake(wake, "joined", verdict, now, joined=waiting["id"])
        if wake.item is not None:
            self.session.run("ask_item", item=wake.item, wake=id, now=to_micros(now))
        fields = {"cause": wake.cause.value, "from": wake.sender, "joined": waiting["id"]}
        self.event(EventKind.decided, now, agent=wake.agent, wake=id, item=wake.item, fields=fields)
        return Decision(wake=id, verdict=verdict, joined=waiting["id"], agent=wake.agent)

    def _put_wake(
        self,
        wake: Wake,
        state: str,
        verdict: Verdict,
        now: datetime,
        *,
        charged: bool = False,
        joined: int | None = None,
        retry: datetime | None = None,
    ) -> int:
        at = retry or verdict.until
        id = self.session.insert(
            "put_wake",
            **wake_parameters(wake),
            state=state,
            charged=int(charged),
            joined=joined,
            guard=verdict.guard or None,
            verdict=verdict.reason,
            retry_at=micros_or_none(at) if state == "waiting" else None,
            decided_at=to_micros(now),
        )
        assert id is not None
        return id

    def _trace(self, wake: Wake) -> Wake:
        """Root, depth and cost of the chain come from our own rows, never from the caller."""
        if wake.by_run is None:
            return replace(wake, root=None, depth=0, lineage_usd=0)
        row = self.session.one("lineage", run=wake.by_run)
        if row is None:
            raise Unknown(f"no run {wake.by_run}")
        cost = row["lineage_usd"] + row["spent_usd"]
        return replace(wake, root=row["root"] or row["id"], depth=row["depth"] + 1, lineage_usd=cost)

    def _must_exist(self, wake: Wake) -> None:
        if wake.agent is not None and self.session.one("address_row", name=wake.agent) is None:
            raise Unknown(f"no agent is called {wake.agent}")

    def _waiting(self, wake: Wake) -> Row | None:
        return self.session.one(
            "waiting_like",
            agent=wake.agent,
            cause=wake.cause.value,
            subject=wake.subject.value,
            task=wake.task,
            slot=wake.slot,
        )

    def _known_slot(self, wake: Wake) -> int | None:
        if not wake.one_off:
            return None
        row = self.session.one("slot_row", agent=wake.agent, slot=wake.slot)
        return None if row is None else int(row["id"])


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


def _asked(wake: Wake, answers: str | None) -> Row:
    return {
        "cause": wake.cause.value,
        "subject": wake.subject.value,
        "from": wake.sender,
        "to": wake.agent if wake.agent != answers else None,
        "role": wake.role,
        "source": wake.source,
        "by_run": wake.by_run,
        "depth": wake.depth or None,
        "slot": wake.slot or None,
        "requested_at": encode(wake.requested_at),
    }


def target_of(wake: Wake) -> str:
    return wake.agent if wake.agent is not None else f"the role {wake.role}"
