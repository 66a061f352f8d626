"""A run that never executed is void: as if it had not been admitted, but told."""

from __future__ import annotations

from datetime import datetime, timedelta

from wakeful.core.agents import Agent
from wakeful.core.errors import Stale
from wakeful.core.events import EventKind
from wakeful.core.guards import MORNING
from wakeful.store.base import SqlBase
from wakeful.store.facts import agent_total
from wakeful.store.rows import to_micros
from wakeful.store.session import Row

# News that came during a run is gathered for this long, so that a busy inbox is not a hot loop.
NEWS_AFTER = timedelta(seconds=2)


# How many who wait for money are tried again when some comes back.
MOST_PAID_BACK = 8
# And to how many each of them passes the offer on: all hear of it in few rounds, and none of those is long.
MOST_PASSED_ON = 2


class Totals:
    """What is to be added to the sums of a day, each sum once."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], Row] = {}

    def add(self, scope: str, day: str, *, wakes: int = 0, ms: int = 0, usd: int = 0, tokens: int = 0) -> None:
        if not (wakes or ms or usd or tokens):
            return
        known = self._sums.get((scope, day))
        if known is None:
            row = {"scope": scope, "day": day, "wakes": wakes, "ms": ms, "usd": usd, "tokens": tokens}
            self._sums[scope, day] = row
            return
        known["wakes"] += wakes
        known["ms"] += ms
        known["usd"] += usd
        known["tokens"] += tokens

    def rows(self) -> list[Row]:
        return list(self._sums.values())


class Voiding(SqlBase):
    def add_totals(self, totals: Totals) -> None:
        self.session.many("add_total", totals.rows())

    def void_run(self, run: int, epoch: int, now: datetime) -> None:
        rows, agents = self.session.lists(("run_with_wake", {"run": run}), ("run_agent", {"run": run}))
        if not rows or rows[0]["ended_at"] is not None or rows[0]["epoch"] != epoch:
            raise Stale(f"run {run} of epoch {epoch} is not open")
        (row,), (agent_row,) = rows, agents
        self.session.write("void_run", run=run, now=to_micros(now))
        self.session.write("release_items", run=run)
        self.session.write("forget_shown", run=run)
        self.session.write("unlease_tasks", run=run)
        self.session.write("forget_attempts", run=run)
        agent = self.read_agent(agent_row)
        self._refund(row, agent, now)
        joined = self.wait_again(row["wake"], now, charged=row["wake_charged"] and not row["charged"], failed=False)
        self.wake_waiting(agent, now)
        fields = {"charged": bool(row["charged"]), "cause": row["cause"], "subject": row["subject"]}
        if joined is not None:
            fields["joined"] = joined
        self.event(EventKind.voided, now, agent=row["agent"], wake=row["wake"], run=run, fields=fields)

    def _refund(self, row: Row, agent: Agent, now: datetime) -> None:
        usd, tokens, charged = -row["reserved_usd"], -row["reserved_tokens"], row["charged"]
        totals = Totals()
        totals.add(agent_total(row["address"]), row["day"], wakes=-charged, usd=usd, tokens=tokens)
        totals.add(row["pair"], row["day"], wakes=-charged)
        totals.add("fleet", row["fleet_day"], usd=usd, tokens=tokens)
        self.add_totals(totals)
        self.money_back(row, agent, usd, tokens, now)

    def money_back(self, row: Row, agent: Agent, usd: int, tokens: int, now: datetime) -> None:
        """What was reserved and not spent may let others run."""
        if usd < 0 or tokens < 0:
            whose = {"agent": row["agent"], "address": row["address"], "limit": MOST_PAID_BACK}
            self.session.write("retry_spend", **whose, now=to_micros(now), later=to_micros(now + MORNING))

    def pass_on(self, wakes: list[int], now: datetime) -> None:
        """Before these are decided: who was offered what came back passes that on, whatever it is told itself."""
        given = {"now": to_micros(now), "later": to_micros(now + MORNING), "limit": MOST_PASSED_ON}
        self.session.many("pass_spend", [{"wake": wake, **given} for wake in wakes])

    def wait_again(self, wake: int, at: datetime, *, charged: bool, failed: bool) -> int | None:
        """Back to waiting; or part of the one that waits already, for there is one of a kind."""
        row = self.session.one("wake_key", wake=wake)
        if row is None:
            raise Stale(f"no wake {wake}")
        other = self.session.one(
            "waiting_like",
            agent=row["agent"],
            cause=row["cause"],
            subject=row["subject"],
            task=row["task"],
            slot=row["slot"],
        )
        if other is None:
            self.session.write(
                "wait_again", wake=wake, failed=int(failed), retry_at=to_micros(at), charged=int(charged)
            )
        else:
            self.session.write("join_wake", wake=wake, joined=other["id"], charged=int(charged))
        return None if other is None else other["id"]

    def wake_waiting(self, agent: Agent, now: datetime) -> None:
        """Whoever waited for this agent is tried again."""
        later = to_micros(now + NEWS_AFTER)
        self.session.write("retry_busy", agent=agent.name, now=to_micros(now), news_at=later)
        if agent.roles or agent.address != agent.name:
            address = agent.address if agent.address != agent.name else None
            self.session.write("retry_shared", agent=agent.name, address=address, now=to_micros(now))
