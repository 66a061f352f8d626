"""What limits count, counted from the events: charges, sums of a day, starts, open runs, pauses.

Laws:
- A run that is void was never there. A day is the day of the admission. Settled money replaces what was reserved.
- Where the history begins late, sums of days that began before it are only a part of what they were.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from wakeful.control.auditing.findings import PAUSES, Findings, moment
from wakeful.control.auditing.lives import Life
from wakeful.core.codec import read_time
from wakeful.core.standing import NOTHING, Spend
from wakeful.core.windows import day_of

Row = dict[str, Any]

BURSTING = ("timer", "peer", "news")
_QUARTER = 15 * 60 * 1_000_000
# No calendar is further ahead of UTC than this.
AHEAD = timedelta(hours=14)


@dataclass(slots=True)
class Sum:
    """The sums of one scope and day."""

    wakes: int = 0
    ms: int = 0
    usd: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A run between its admission and its end, with what it was charged to."""

    run: int
    agent: str
    address: str
    wake: int
    cause: str
    pool: str
    by_run: int | None
    charged: bool
    pair: str
    day: str
    fleet_day: str
    at: int
    reserved: Spend


class Counts:
    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.open: dict[int, Opened] = {}
        self.open_of: dict[str, list[int]] = defaultdict(list)
        self.pools: dict[str, int] = {"sessions": 0, "workers": 0}
        self.sums: dict[tuple[str, str], Sum] = defaultdict(Sum)
        # The charged admissions of an address in their order, and by wake the day.
        self.charges: dict[str, list[Opened]] = defaultdict(list)
        self.charged: dict[int, str] = {}
        self.starts: dict[str, list[int]] = defaultdict(list)
        # The peer wakes of each run that wait, or were charged once, whatever became of them.
        self.by_run: dict[int, set[int]] = defaultdict(set)
        self.ran: dict[int, str] = {}
        # What stands: until when, since which event, and what the event said.
        self.pauses: dict[tuple[str, str], tuple[datetime | None, int, Row]] = {}
        # Whose beginning or end is told: where the history begins late, others may have stood before.
        self.told_of: set[tuple[str, str]] = set()
        # The last day that may have begun before the history did, and the first run that is told from its beginning.
        self.partial = ""
        self.since: datetime | None = None
        self.first_run: int | None = None
        self._since_of: dict[str, datetime] = {}
        self._days: dict[tuple[int, str], str] = {}

    def day(self, at: int, zone: str) -> str:
        """Days begin at a quarter of an hour, wherever they do."""
        key = (at // _QUARTER, zone)
        day = self._days.get(key)
        if day is None:
            day = self._days[key] = day_of(moment(at), ZoneInfo(zone))
        return day

    def begin_late(self, at: datetime) -> None:
        self.since = at
        self.partial = (at + AHEAD).date().isoformat()

    def untold(self, agent: str, at: int) -> None:
        """It was admitted something, and how it was declared then is gone."""
        self._since_of[agent] = moment(at)
        self.partial = max(self.partial, (moment(at) + AHEAD).date().isoformat())

    def since_of(self, agent: str) -> datetime | None:
        """From when on everything of that agent is counted; None where that is the beginning."""
        return self._since_of.get(agent, self.since)

    def whole(self, day: str) -> bool:
        return day > self.partial

    # -- runs -------------------------------------------------------------------------------------------------
    def open_one(self, opened: Opened) -> None:
        if self.first_run is None:
            self.first_run = opened.run
        self.open[opened.run] = opened
        self.open_of[opened.agent].append(opened.run)
        self.ran[opened.run] = opened.agent
        self.pools[opened.pool] += 1
        if opened.cause in BURSTING:
            insort(self.starts[opened.agent], opened.at)
        if opened.charged:
            self.charges[opened.address].append(opened)
            self.charged[opened.wake] = opened.day
            self._count(opened, 1)
        self._spend(opened, opened.address, opened.reserved)

    def close(self, run: int) -> Opened | None:
        opened = self.open.pop(run, None)
        if opened is not None:
            self.open_of[opened.agent].remove(run)
            self.pools[opened.pool] -= 1
        return opened

    def void(self, run: int, joined: bool) -> None:
        opened = self.close(run)
        if opened is None:
            return
        self._spend(opened, opened.address, NOTHING - opened.reserved)
        if opened.cause in BURSTING:
            starts = self.starts[opened.agent]
            del starts[bisect_left(starts, opened.at)]
        if opened.charged:
            self.charges[opened.address].remove(opened)
            self.charged.pop(opened.wake, None)
            self._count(opened, -1)
        # It waits again, unless it became part of another that waits already.
        if joined and opened.by_run is not None and opened.wake not in self.charged:
            self.by_run[opened.by_run].discard(opened.wake)

    def end(self, event: Row, told: Row, life: Life | None) -> None:
        opened = self.close(event["run"])
        if opened is None:
            # Its admission is not told, and its day is one of those that began before the history.
            self.partial = max(self.partial, told["day"])
            return
        address = life.agent.address if life is not None else opened.address
        self._spend(opened, address, Spend(**told["spend"]["spend"]) - opened.reserved)
        self.sums[f"agent:{address}", opened.day].ms += told["ms"]
        self.sums["fleet", opened.fleet_day].ms += told["ms"]

    def _count(self, opened: Opened, amount: int) -> None:
        self.sums[f"agent:{opened.address}", opened.day].wakes += amount
        self.sums[opened.pair, opened.day].wakes += amount

    def _spend(self, opened: Opened, address: str, spend: Spend) -> None:
        if spend.usd or spend.tokens:
            for key in ((f"agent:{address}", opened.day), ("fleet", opened.fleet_day)):
                total = self.sums[key]
                total.usd += spend.usd
                total.tokens += spend.tokens

    def sum_of(self, scope: str, day: str) -> Sum:
        return self.sums.get((scope, day)) or Sum()

    def starts_within(self, agent: str, since: int, until: int) -> int:
        """Later than the one and before the other."""
        starts = self.starts[agent]
        return max(bisect_left(starts, until) - bisect_right(starts, since), 0)

    def last_charge(self, address: str, but: int) -> int | None:
        """The last in order, not the latest by its stamp: the clock may have been set back since."""
        charges = reversed(self.charges[address])
        return next((opened.at for opened in charges if opened.wake != but), None)

    # -- who asks ---------------------------------------------------------------------------------------------
    def asks(self, run: int | None, wake: int, waits: bool) -> None:
        """A peer wake of that run waits or is charged; or it does so no more."""
        if run is None:
            return
        if waits or wake in self.charged:
            self.by_run[run].add(wake)
        else:
            self.by_run[run].discard(wake)

    # -- pauses -----------------------------------------------------------------------------------------------
    def paused(self, event: Row, told: Row) -> None:
        until = read_time(told["until"]) if told.get("until") else None
        self.told_of.add((told["scope"], told["owner"]))
        self.pauses[told["scope"], told["owner"]] = (until, event["id"], told)

    def resumed(self, event: Row, told: Row, at: datetime) -> None:
        key = (told["scope"], told["owner"])
        self.told_of.add(key)
        known = self.pauses.pop(key, None)
        rows = f"event {event['id']}"
        if known is None:
            if self.since is None:
                self.findings.add(PAUSES, rows, f"a pause of {key[0]} by {key[1]} to lift", "no event began one")
            return
        until = known[0]
        if told.get("by") == "time" and (until is None or until > at):
            self.findings.add(PAUSES, rows, f"a pause of {key[0]} until {until}", f"lifted by time at {at}")

    def held(self, scopes: tuple[str, ...], at: datetime) -> list[str]:
        """The scopes among these in which something stands at that instant, the widest first."""
        if not self.pauses:
            return []
        standing = {scope for (scope, _), (until, _, _) in self.pauses.items() if until is None or until > at}
        return [scope for scope in scopes if scope in standing]
