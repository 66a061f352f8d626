"""When an agent's next beat is, by what is known without asking every guard: for a listing of many agents.

Laws:
- The nearer of the cadence's own beat and of those that were asked for by their instant, each as late as quiet hours
  and the gate of its state make it. What else may stand in the way is for `why` and the forecast to say.
- Pure but for one read: the waiting one-offs of the whole page at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from wakeful.control.rows import Row
from wakeful.core.codec import write_time
from wakeful.core.guards import quiet_hours, state_gate
from wakeful.core.lifecycle import gate_opens_at, resolve
from wakeful.core.windows import NEVER, inside_until
from wakeful.store.protocol import AgentRow, Store

# How often one beat may be put off.
_PATIENCE = 8

TIMER, AT = "timer", "at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A beat to come: `due_at` is when it asks, `at` when nothing known here holds it any more; `held_by` what does."""

    due_at: datetime
    at: datetime
    by: str
    held_by: str | None = None

    def row(self) -> Row:
        at, due = write_time(self.at), write_time(self.due_at)
        return {"at": at, "by": self.by, "due_at": due, "held_by": self.held_by}


def one_offs(store: Store, agent: str | None = None) -> dict[str, list[datetime]]:
    """The instants that beats were asked for and that have not come, by agent or address."""
    found: dict[str, list[datetime]] = {}
    for name, at in store.one_offs(agent):
        found.setdefault(name, []).append(at)
    return found


def next_beat(row: AgentRow, asked: Mapping[str, Sequence[datetime]], now: datetime) -> Ahead | None:
    """`asked` are the one-offs. None for an agent whose timer runs by nothing, and for one that is disabled."""
    if not row.agent.enabled:
        return None
    names = dict.fromkeys((row.agent.name, row.agent.address))
    found = [_held(row, at, AT, now) for name in names for at in asked.get(name, ())]
    if row.standing.due_at is not None:
        found.append(_held(row, row.standing.due_at, TIMER, now))
    return min(found, key=lambda beat: (beat.at, beat.due_at), default=None)


def _held(row: AgentRow, due: datetime, by: str, now: datetime) -> Ahead:
    agent, standing = row.agent, row.standing
    zone, position = ZoneInfo(agent.timezone), resolve(standing.position, agent.lifecycle)
    state = agent.lifecycle.state(position.state)
    at, held = max(due, now), None
    for _ in range(_PATIENCE):
        # A beat that was asked for by its instant passes quiet hours.
        later = inside_until(agent.limits.quiet_hours, at, zone) if by == TIMER else None
        guard = quiet_hours
        if later is None and state is not None:
            later, guard = gate_opens_at(state, standing.ran_at(state.name), at, zone), state_gate
        if later is None or later <= at or later >= NEVER:
            break
        at, held = later, guard.__name__
    return Ahead(due_at=due, at=at, by=by, held_by=held)
