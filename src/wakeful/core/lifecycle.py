"""A day with a shape: named states, walked one outcome at a time.

Laws of the position (state, hits):

    done             hits + 1; at REPEAT take NEXT with no hits
    no_work          take NEXT now: repeats collapse, states are never skipped
    failed, killed   hold

An edited lifecycle keeps the position while its state exists; otherwise it starts again, without credit.
Gates are counted from the last run that was done. A gate that never ran is open, and so is one whose stamp
lies in the future: a clock set back may cost one early run, never a wait longer than the interval.
"""

from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from wakeful.core.cron import Schedule
from wakeful.core.windows import Window, opens_at


class Kind(StrEnum):
    wake = "wake"
    rem = "rem"


@dataclass(frozen=True, slots=True)
class State:
    name: str
    _: KW_ONLY
    kind: Kind = Kind.wake
    repeat: int = 1
    next: str
    min_interval: timedelta | None = None
    when_schedule: Schedule | None = None
    when_window: Window | None = None


@dataclass(frozen=True, slots=True)
class Lifecycle:
    start: str
    states: tuple[State, ...]

    def state(self, name: str) -> State | None:
        return next((state for state in self.states if state.name == name), None)


@dataclass(frozen=True, slots=True)
class Position:
    state: str
    hits: int = 0


SINGLE = Lifecycle("beat", (State("beat", next="beat"),))


def begin(lifecycle: Lifecycle) -> Position:
    return Position(lifecycle.start, 0)


def resolve(position: Position, lifecycle: Lifecycle) -> Position:
    state = lifecycle.state(position.state)
    if state is None:
        return begin(lifecycle)
    return Position(state.name, max(0, min(position.hits, state.repeat - 1)))


def advance(position: Position, lifecycle: Lifecycle, outcome: str) -> Position:
    state = lifecycle.state(position.state)
    if state is None:
        return begin(lifecycle)
    here = resolve(position, lifecycle)
    onward = resolve(Position(state.next, 0), lifecycle)
    match outcome:
        case "done":
            return Position(state.name, here.hits + 1) if here.hits + 1 < state.repeat else onward
        case "no_work":
            return onward
        case "failed" | "killed":
            return here
        case _:
            raise ValueError(f"expected done, no_work, failed or killed, found {outcome!r}")


def gate_opens_at(state: State, ran_at: datetime | None, now: datetime, zone: ZoneInfo) -> datetime | None:
    """None when the state may run now, else the instant at which the last of its gates opens."""
    opens = now
    if ran_at is not None and ran_at <= now:
        if state.min_interval is not None:
            opens = max(opens, ran_at + state.min_interval)
        if state.when_schedule is not None:
            opens = max(opens, state.when_schedule.after(ran_at, zone))
    if state.when_window is not None:
        opens = opens_at((state.when_window,), opens, zone)
    return opens if opens > now else None
