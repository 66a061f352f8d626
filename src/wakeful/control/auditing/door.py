"""Every verdict, asked for again: what the guards read is counted anew, and the guards say what they say to it.

Laws:
- Each number that a `decided` event tells is the recount of everything before it.
- What was told is the first objection of the table, or admission; with the limits that held at that moment.
- What only items tell (whether something still rang, whether a task was ready) is not in the events, and not judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from wakeful.control.auditing.counts import Counts
from wakeful.control.auditing.findings import LIMITS, Findings, micros, moment, shown
from wakeful.control.auditing.lives import Life, Lives
from wakeful.core.admission import explain
from wakeful.core.agents import Limits
from wakeful.core.budgets import MEMORY, reserve
from wakeful.core.codec import decode, encode, read_time
from wakeful.core.facts import Facts
from wakeful.core.lifecycle import Kind, gate_opens_at
from wakeful.core.past import CHECK
from wakeful.core.standing import Spend
from wakeful.core.wakes import ADMIT, Cause, Pause, Subject, Wake

Row = dict[str, Any]

POOLS = {"beat": "sessions", "inbox": "sessions", "task": "workers"}
_ADMIT = encode(ADMIT)
_BUDGETS = ("usd_per_day", "tokens_per_day", "fleet_usd_per_day", "fleet_tokens_per_day")


class Door:
    def __init__(self, lives: Lives, counts: Counts, findings: Findings) -> None:
        self.lives = lives
        self.counts = counts
        self.findings = findings
        # Of the event that is judged.
        self._rows: tuple[str, ...] = ()

    def judge(self, event: Row, told: Row) -> None:
        """One `decided` event with a verdict, before it is folded."""
        life = self.lives.get(event["agent"])
        facts = told.get("facts")
        if facts is None:
            return
        rows = (f"event {event['id']}", f"wake {event['wake']}")
        if life is None:
            if self.counts.since is None:
                self.findings.add(LIMITS, rows, f"a declared agent {event['agent']}", "no event declared it")
            return
        self.findings.hold(LIMITS, rows, "decided with version", life.version, told.get("version"))
        self._rows = rows
        given = _facts(facts)
        self._compare(life, event, told, facts, given)
        self._verdict(life, event, told, given, rows)
        if event["run"] is not None:
            self._room(life, event, told, rows)

    def _verdict(self, life: Life, event: Row, told: Row, given: Facts, rows: tuple[str, ...]) -> None:
        recorded = told["verdict"]
        if not is_check(told):
            wake = _wake(event, told)
            opinions = explain(wake, given, life.agent.limits)
            verdict = next((opinion.verdict for opinion in opinions if opinion.verdict is not None), ADMIT)
            again = _ADMIT if verdict is ADMIT else encode(replace(verdict, trip=None))
            if recorded != again:
                self.findings.add(LIMITS, rows, f"{_words(again)} from the guards", f"told {_words(recorded)}")
        if (recorded["kind"] == "admit") != (event["run"] is not None):
            self.findings.add(LIMITS, rows, "a run for an admission, and for nothing else", _words(recorded))

    def _room(self, life: Life, event: Row, told: Row, rows: tuple[str, ...]) -> None:
        """Before the run is opened: nobody else has its agent, and a slot is free."""
        limits, pool = life.agent.limits, POOLS[told["subject"]]
        most = limits.sessions if pool == "sessions" else limits.workers
        others = self.counts.open_of[life.agent.name]
        if others:
            named = (*rows, *(f"run {run}" for run in others))
            self.findings.add(LIMITS, named, f"no open run of {life.agent.name}", f"run {others[0]} is open")
        if self.counts.pools[pool] >= most:
            found = f"{self.counts.pools[pool]} are open"
            self.findings.add(LIMITS, rows, f"fewer than {most} open runs in the {pool}", found)

    def _differ(self, name: str, expected: object, found: object) -> None:
        if expected != found:
            what = f"{name.replace('_', ' ')} as the events before it count it, {shown(expected)}"
            self.findings.add(LIMITS, self._rows, what, shown(found))

    # -- fact by fact -----------------------------------------------------------------------------------------
    def _compare(self, life: Life, event: Row, told: Row, facts: Row, given: Facts) -> None:
        at = event["moment"]
        self._differ("now", at, read_time(facts["now"]))
        self._moot(life, at, told, facts)
        self._pause(life, at, told, facts)
        self._day(life, event, told, facts)
        self._peers(life, at, event, told, facts)
        self._place(life, at, told, facts)
        known = self.counts.open_of[life.agent.name]
        busy = given.open_run
        # Of a run that was admitted before the history begins nothing is known.
        before = busy is not None and self.counts.since is not None and busy not in self.counts.ran
        if not before:
            self._differ("run under way", known[0] if known else None, busy)

    def _moot(self, life: Life, at: datetime, told: Row, facts: Row) -> None:
        said = facts.get("moot")
        name = life.agent.name
        if life.removed_at is not None:
            self._differ("moot", f"{name} was removed from the fleet", said)
        elif not life.agent.enabled:
            self._differ("moot", f"{name} is disabled", said)
        elif told["cause"] == "timer" and not told.get("slot"):
            if life.sure_due:
                due = life.due is not None and life.due <= at
                self._differ("moot", None if due else "the beat has been run or moved since", said)
        elif told["subject"] == "beat":
            self._differ("moot", None, said)

    def _pause(self, life: Life, at: datetime, told: Row, facts: Row) -> None:
        agent, source = life.agent, told.get("source")
        scopes = ("fleet", f"agent:{agent.name}", f"agent:{agent.address}", f"source:{source}" if source else "")
        held = self.counts.held(tuple(dict.fromkeys(scopes)), at)
        pause = facts.get("pause") or {}
        said = pause.get("scope")
        if self.counts.since is not None and said and (said, pause["owner"]) not in self.counts.told_of:
            return
        self._differ("pause", held[0] if held else None, said)

    def _day(self, life: Life, event: Row, told: Row, facts: Row) -> None:
        agent, limits, counts = life.agent, life.agent.limits, self.counts
        day = self.counts.day(event["at"], agent.timezone)
        if counts.whole(day):
            own = counts.sum_of(f"agent:{agent.address}", day)
            # A wake that is tried again was charged before: it does not stand in its own way.
            counted = int(counts.charged.get(event["wake"]) == day)
            pair = counts.sum_of(self.pair(told.get("from"), agent.address), day)
            self._differ("wakes_today", max(own.wakes - counted, 0), facts.get("wakes_today", 0))
            self._differ("pair_wakes_today", max(pair.wakes - counted, 0), facts.get("pair_wakes_today", 0))
            self._differ("seconds_today", own.ms / 1000, facts.get("seconds_today", 0.0))
            spent = facts.get("spent", {})
            self._differ("usd spent", own.usd, spent.get("usd", 0))
            self._differ("tokens spent", own.tokens, spent.get("tokens", 0))
        fleet_day = counts.day(event["at"], limits.fleet_timezone)
        # Where the fleet has no budget, nobody waits for another to look at what is spent.
        if counts.whole(fleet_day) and _bounded(limits):
            whole, spent = counts.sum_of("fleet", fleet_day), facts.get("fleet_spent", {})
            self._differ("usd spent by the fleet", whole.usd, spent.get("usd", 0))
            self._differ("tokens spent by the fleet", whole.tokens, spent.get("tokens", 0))

    def _peers(self, life: Life, at: datetime, event: Row, told: Row, facts: Row) -> None:
        agent, counts, wake = life.agent, self.counts, event["wake"]
        limits, since = agent.limits, counts.since_of(agent.name)
        if since is None or at - since >= limits.burst_window:
            window = limits.burst_window
            starts = counts.starts_within(agent.name, micros(at - window), micros(at + window))
            self._differ("burst_starts", starts, facts.get("burst_starts", 0))
        last = counts.last_charge(agent.address, wake)
        said = facts.get("last_peer_wake_at")
        if since is None or last is not None:
            self._differ("last_peer_wake_at", None if last is None else moment(last), _time(said))
        by_run = told.get("by_run")
        if by_run is None or by_run in counts.ran:
            asked = len(counts.by_run.get(by_run or 0, set()) - {wake})
            self._differ("wakes_by_run", asked, facts.get("wakes_by_run", 0))
            asks = self.lives.get(counts.ran.get(by_run or 0))
            if asks is not None or since is None:
                gone = asks is None or asks.removed_at is not None
                allowed = None if gone or asks is None else asks.agent.limits.wakes_per_run
                self._differ("wakes_allowed", allowed, facts.get("wakes_allowed"))

    def _place(self, life: Life, at: datetime, told: Row, facts: Row) -> None:
        if not life.sure_place:
            return
        position = life.place()
        state = life.agent.lifecycle.state(position.state)
        if state is not None and (life.sure_gates or position.state in life.gates):
            gate = gate_opens_at(state, life.gates.get(position.state), at, life.zone)
            self._differ("gate_opens_at", gate, _time(facts.get("gate_opens_at")))
            self._differ("gate_state", position.state if gate else None, facts.get("gate_state"))
        rests = told["subject"] == "beat" and state is not None and state.kind is Kind.rem
        if not (life.sure_costs or len(life.costs) == MEMORY or rests):
            return
        need = None if rests else _reserve(life)
        said = facts.get("reserve", {})
        self._differ("reserve", need, None if said is None else Spend(**said))

    def pair(self, sender: str | None, address: str) -> str:
        """The unordered pair of two addresses; a replica speaks under the one that it shares."""
        life = self.lives.get(sender)
        return "pair:" + "|".join(sorted((life.agent.address if life else sender or "", address)))


def _time(text: str | None) -> datetime | None:
    return None if text is None else read_time(text)


def _bounded(limits: Limits) -> bool:
    return limits.fleet_usd_per_day is not None or limits.fleet_tokens_per_day is not None


def _reserve(life: Life) -> Spend:
    limits = life.agent.limits
    if all(getattr(limits, budget) is None for budget in _BUDGETS):
        return Spend()
    return reserve(tuple(life.costs), limits)


# How each fact that is not a plain value is read; most events tell few of them.
_READ: dict[str, Callable[[Any], object]] = {
    "now": read_time,
    "last_peer_wake_at": read_time,
    "gate_opens_at": read_time,
    "pause": lambda told: decode(Pause, told),
    "spent": lambda told: Spend(**told),
    "fleet_spent": lambda told: Spend(**told),
    "reserve": lambda told: Spend(**told),
}


def _wake(event: Row, told: Row) -> Wake:
    """As the guards saw it: with the agent that answers."""
    subject = Subject(told["subject"])
    return Wake(
        id=event["wake"],
        agent=event["agent"],
        role=told.get("role"),
        cause=Cause(told["cause"]),
        subject=subject,
        requested_at=read_time(told["requested_at"]),
        sender=told.get("from"),
        item=None if subject is Subject.task else event["item"],
        task=event["item"] if subject is Subject.task else None,
        source=told.get("source"),
        by_run=told.get("by_run"),
        depth=told.get("depth", 0),
        slot=told.get("slot", ""),
        attempt=told.get("attempt", 1),
    )


def _facts(told: Row) -> Facts:
    """As the codec reads them, in a tenth of the time."""
    given: Row = {
        name: value if value is None or name not in _READ else _READ[name](value) for name, value in told.items()
    }
    return Facts(**given)


def _words(verdict: Row) -> str:
    if verdict.get("guard") is None:
        return str(verdict["kind"])
    return f"{verdict['kind']} by {verdict['guard']}: {verdict.get('reason', '')}"


def is_check(told: Row) -> bool:
    return (told.get("verdict") or {}).get("guard") == CHECK
