"""Decisions on PostgreSQL: as many questions at once as can be, and a slot in hand before one is promised.

Laws:
- A slot that is told to be free is one that we have: a row of its own, locked until the commit. One that another node
  is taking counts as taken; nobody waits for it.
- Wakes that do not touch each other are decided in one go: their facts are read together, and what is admitted on the
  way is counted in. Whoever has anything in common with one before it (an address, a sender, a run) is decided after
  what came of that has been written. So is whatever turns out not to be as we knew it.
- The fleet's own money, where it is bounded, is looked at by one at a time; then nothing is decided in one go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from wakeful.core.agents import Agent, Limits
from wakeful.core.standing import NOTHING, Spend
from wakeful.core.wakes import Wake
from wakeful.store.facts import Gathered, asks, fact_parameters, gather, pair_total, slot_limit
from wakeful.store.opinions import Opinion, like, opinion_on, taken_up, traced
from wakeful.store.postgres_session import PostgresSession
from wakeful.store.postgres_text import tabled
from wakeful.store.protocol import Admit, Decision
from wakeful.store.rows import to_wake
from wakeful.store.session import Reading, Row
from wakeful.store.store import SqlStore

# So many at most are decided in one go: what one of them upsets is asked for again for all behind it.
MOST_AT_ONCE = 64

# The guard for which a wake waits until one is free.
SLOTS = "slots"


@dataclass(frozen=True, slots=True)
class _Look:
    """What was found for several wakes at once."""

    waiting: dict[int, Wake]
    # Agents for whom one waits already, or whose beat or item has asked for another.
    taken: set[object]
    agents: dict[str | None, Row]
    lineages: dict[int | None, Row]
    facts: dict[str | None, Row]


class PostgresDeciding(SqlStore):
    session: PostgresSession

    def decide_all(self, wakes: Sequence[Wake], admit: Admit, now: datetime) -> list[Decision]:
        decisions: list[Decision] = []
        calm = True
        while len(decisions) < len(wakes):
            rest = wakes[len(decisions) :]
            apart = self._apart(rest) if calm else []
            done = self._decide_apart(apart, admit, now) if len(apart) > 1 else []
            # What upset some of them would upset the next as well, and all would be asked for again each time.
            calm = calm and (len(done) == len(apart) or len(apart) == 1)
            decisions += done or [self.decide_one(rest[0], admit, now)]
        return decisions

    def decide_one(self, wake: Wake, admit: Admit, now: datetime) -> Decision:
        self._foresee(wake, now)
        return super().decide_one(wake, admit, now)

    def _foresee(self, wake: Wake, now: datetime) -> None:
        """All that a decision asks, as far as it can be told from what we knew of the agents: sent at once."""
        session = self.session
        if wake.id:
            session.foresee("waiting_wake", wake=wake.id)
        else:
            session.draw("next_wake", 1)
            session.foresee("waiting_like", **like(wake))
            asked = taken_up(wake)
            if asked is not None:
                session.foresee(asked[0], **asked[1])
        if wake.agent is None:
            return
        session.foresee("agent_row", agent=wake.agent)
        if wake.sender is not None:
            session.foresee("sender_address", name=wake.sender)
        agent = self.last_known(wake.agent)
        if agent is not None and not bounded(agent.limits):
            session.foresee("facts", **self._fact_parameters(wake, agent, now))

    def _fact_parameters(self, wake: Wake, agent: Agent, now: datetime) -> Row:
        return fact_parameters(wake, agent, pair_total(self._address(wake.sender), agent.address), now)

    def _address(self, name: str | None) -> str | None:
        """Of a sender, as far as we know."""
        known = None if name is None else self.last_known(name)
        return name if known is None else known.address

    def gather(self, session: Reading, wake: Wake, row: Row, now: datetime) -> Gathered:
        """Where a decision rests on the facts, a slot that is told to be free is one that we have."""
        if session is not self.session:
            return super().gather(session, wake, row, now)
        limits = self.read_agent(row).limits
        if bounded(limits):
            self.session.purse()
        gathered = super().gather(session, wake, row, now)
        limit, facts = slot_limit(limits, wake.pool), gathered.facts
        if facts.slots_taken >= limit or facts.open_run is not None or facts.moot is not None:
            return gathered
        taken = self._taken(wake.pool.value, limit)
        return gathered if taken < limit else replace(gathered, facts=replace(facts, slots_taken=taken))

    def _taken(self, pool: str, limit: int) -> int:
        slot = self.session.one("take_slots", pool=pool, slots=limit, limit=1)
        if slot is None:
            return limit
        if not slot["crowded"]:
            return 0
        # The fleet has fewer slots than it had, and runs are still open in those that are gone: one at a time.
        self.session.purse()
        counted = self.session.one("count_pool", pool=pool)
        return limit if counted is None else int(counted["taken"])

    def insert_wakes(self, rows: list[Row]) -> list[int]:
        if not rows:
            return []
        ids = self.session.drawn("next_wake", len(rows))
        self.session.many("put_wake", [{**row, "id": id} for row, id in zip(rows, ids, strict=True)])
        return ids

    # -- in one go ----------------------------------------------------------------------------------------
    def _apart(self, wakes: Sequence[Wake]) -> list[Wake]:
        """As many from the head as have nothing to do with each other, and are known to be simple."""
        apart: list[Wake] = []
        touched: set[object] = set()
        limits = set()
        for wake in wakes[:MOST_AT_ONCE]:
            agent = None if wake.agent is None else self.last_known(wake.agent)
            if agent is None or wake.task is not None or wake.one_off or bounded(agent.limits):
                break
            pair = pair_total(self._address(wake.sender), agent.address)
            touches: set[object] = {agent.name, agent.address, pair, ("run", wake.by_run), ("item", wake.item)}
            touches -= {("run", None), ("item", None)}
            limits.add((wake.pool, slot_limit(agent.limits, wake.pool)))
            if touches & touched or len(limits) > 1:
                break
            touched |= touches
            apart.append(wake)
        return apart

    def _decide_apart(self, wakes: list[Wake], admit: Admit, now: datetime) -> list[Decision]:
        """On the first of them, as far as all is as we knew it; it may be on none."""
        opinions: list[Opinion] = []
        begun, spent = 0, NOTHING
        for wake, gathered in self._gather_apart(wakes, now):
            before = gathered.facts
            facts = replace(before, slots_taken=before.slots_taken + begun, fleet_spent=_sum(before.fleet_spent, spent))
            opinion = opinion_on(wake, replace(gathered, facts=facts), admit, now)
            opinions.append(opinion)
            if opinion.admitted:
                begun += 1
                spent = _sum(spent, facts.reserve or NOTHING)
            elif opinion.verdict.trip is not None or opinion.verdict.guard == SLOTS:
                # The next one would see a pause that was not there, or a longer queue.
                break
        return self.write_all(self._with_slots(opinions), now)

    def _with_slots(self, opinions: list[Opinion]) -> list[Opinion]:
        """As many from the head as there are slots in hand for."""
        admitted = [opinion for opinion in opinions if opinion.admitted]
        if not admitted:
            return opinions
        wake, gathered = admitted[0].wake, admitted[0].gathered
        assert gathered is not None
        limit = slot_limit(gathered.agent.limits, wake.pool)
        had = self.session.all("take_slots", pool=wake.pool.value, slots=limit, limit=len(admitted))
        most = 0 if had and had[0]["crowded"] else len(had)
        kept = []
        for opinion in opinions:
            most -= opinion.admitted
            if most < 0:
                break
            kept.append(opinion)
        return kept

    def _gather_apart(self, wakes: list[Wake], now: datetime) -> list[tuple[Wake, Gathered]]:
        """The facts of the first of them, as far as all is as we knew it."""
        names = {name for wake in wakes for name in (wake.agent, wake.sender) if name is not None}
        new = [like(wake) for wake in wakes if not wake.id]
        known = {name: agent for name in names if (agent := self.last_known(name)) is not None}
        asked = [self._fact_parameters(wake, known[str(wake.agent)], now) for wake in wakes]
        asked_for = [query for wake in wakes if not wake.id and (query := taken_up(wake)) is not None]
        beats = [asked["agent"] for query, asked in asked_for if query == "asked_standing"]
        items = [asked["item"] for query, asked in asked_for if query == "asked_item"]
        stored, alike, beaten, rung, agents, lineages, facts = self.session.lists(
            ("still_waiting", {"wakes": [wake.id for wake in wakes if wake.id]}),
            ("waiting_alike", {"rows": tabled(new)}),
            ("asked_standings", {"agents": beats}),
            ("asked_items", {"items": [item for item in items if item is not None]}),
            ("agents_named", {"names": sorted(names)}),
            ("lineages", {"runs": [wake.by_run for wake in wakes if wake.by_run is not None and not wake.id]}),
            ("facts", {"rows": tabled(asked)}),
        )
        look = _Look(
            waiting={row["id"]: to_wake(row) for row in stored},
            taken={row["agent"] for row in (*alike, *beaten)} | {row["id"] for row in rung},
            agents={row["name"]: row for row in agents},
            lineages={row["run"]: row for row in lineages},
            facts={row["agent"]: row for row in facts},
        )
        found = []
        for wake, parameters in zip(wakes, asked, strict=True):
            traced = self._as_known(wake, look)
            if traced is None:
                break
            agent, row, scalars = known[str(wake.agent)], look.agents[wake.agent], look.facts[str(wake.agent)]
            asking = asks(scalars)
            sender = None if asking is None else self.known_agent(*asking)
            found.append((traced, gather(scalars, parameters, traced, agent, row, sender, now)))
        return found

    def _as_known(self, wake: Wake, look: _Look) -> Wake | None:
        """The wake, if it is still to be decided, and all that was asked for it was asked rightly."""
        row = look.agents.get(wake.agent)
        if row is None or row["removed_at"] is not None or self.known_agent(row["name"], row["version"]) is None:
            return None
        sender = look.agents.get(wake.sender)
        if (sender["address"] if sender else wake.sender) != self._address(wake.sender):
            return None
        if wake.agent not in look.facts or look.facts[wake.agent]["slots_ahead"]:
            return None
        asking = asks(look.facts[wake.agent])
        if asking is not None and self.known_agent(*asking) is None:
            return None
        if wake.id:
            return wake if look.waiting.get(wake.id) == wake else None
        if {wake.agent, wake.item} & look.taken or (wake.by_run is not None and wake.by_run not in look.lineages):
            return None
        return traced(wake, look.lineages.get(wake.by_run))


def _sum(one: Spend, other: Spend) -> Spend:
    return Spend(usd=one.usd + other.usd, tokens=one.tokens + other.tokens)


def bounded(limits: Limits) -> bool:
    """Whether the fleet has a budget."""
    return limits.fleet_usd_per_day is not None or limits.fleet_tokens_per_day is not None
