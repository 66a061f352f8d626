"""A run that never executed is void: as if it had not been admitted, but told."""

from __future__ import annotations

from datetime import datetime, timedelta

from wakeful.core.agents import Agent
from wakeful.core.errors import Stale
from wakeful.core.events import EventKind
from wakeful.store.base import SqlBase
from wakeful.store.facts import agent_total
from wakeful.store.rows import to_micros
from wakeful.store.session import Row

# News that came during a run is gathered for this long, so that a busy inbox is not a hot loop.
NEWS_AFTER = timedelta(seconds=2)


# How many who wait for money are tried again when some comes back.
MOST_PAID_BACK = 8


class Voiding(SqlBase):
    def add_total(self, scope: str, day: str, *, wakes: int = 0, ms: int = 0, usd: int = 0, tokens: int = 0) -> None:
        if wakes or ms or usd or tokens:
            self.session.run("add_total", scope=scope, day=day, wakes=wakes, ms=ms, usd=usd, tokens=tokens)

    def void_run(self, run: int, epoch: int, now: datetime) -> None:
        row = self.session.one("run_with_wake", run=run)
        if row is None or row["ended_at"] is not None or row["epoch"] != epoch:
            raise Stale(f"run {run} of epoch {epoch} is not open")
        self.session.run("void_run", run=run, now=to_micros(now))
        self.session.run("release_items", run=run)
        self.session.run("forget_shown", run=run)
        self.session.run("unlease_tasks", run=run)
        self.session.run("forget_attempts", run=run)
        self._refund(row, now)
        joined = self.wait_again(row["wake"], now, charged=row["wake_charged"] and not row["charged"], failed=False)
        agent_row = self.session.one("agent_row", agent=row["agent"])
        if agent_row is not None:
            self.wake_waiting(self.read_agent(agent_row), now)
        fields = {"charged": bool(row["charged"]), "cause": row["cause"], "subject": row["subject"]}
        if joined is not None:
            fields["joined"] = joined
        self.event(EventKind.voided, now, agent=row["agent"], wake=row["wake"], run=run, fields=fields)

    def _refund(self, row: Row, now: datetime) -> None:
        usd, tokens, charged = -row["reserved_usd"], -row["reserved_tokens"], row["charged"]
        self.add_total(agent_total(row["address"]), row["day"], wakes=-charged, usd=usd, tokens=tokens)
        self.add_total(row["pair"], row["day"], wakes=-charged)
        self.add_total("fleet", row["fleet_day"], usd=usd, tokens=tokens)
        self.money_back(row, usd, tokens, now)

    def money_back(self, row: Row, usd: int, tokens: int, now: datetime) -> None:
        """What was reserved and not spent may let others run."""
        if usd < 0 or tokens < 0:
            self.session.run(
                "retry_spend", agent=row["agent"], address=row["address"], limit=MOST_PAID_BACK, now=to_micros(now)
            )

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
            self.session.run("wait_again", wake=wake, failed=int(failed), retry_at=to_micros(at), charged=int(charged))
        else:
            self.session.run("join_wake", wake=wake, joined=other["id"], charged=int(charged))
        return None if other is None else other["id"]

    def wake_waiting(self, agent: Agent, now: datetime) -> None:
        """Whoever waited for this agent is tried again."""
        later = to_micros(now + NEWS_AFTER)
        self.session.run("retry_busy", agent=agent.name, now=to_micros(now), news_at=later)
        if agent.roles or agent.address != agent.name:
            address = agent.address if agent.address != agent.name else None
            self.session.run("retry_shared", agent=agent.name, address=address, now=to_micros(now))
