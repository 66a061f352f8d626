"""A day of the newsroom fleet on a virtual clock: the real core and the real store, with scripted agents.

What each agent would do is drawn from a seeded script; everything else is decided, recorded and settled as it would
be for real: causes, guards, the day declared in org, messages and wakes between agents, tasks with retries.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table

from wakeful.core.admission import admit
from wakeful.core.agents import Fleet
from wakeful.core.durations import parse_duration
from wakeful.core.forecast import forecast
from wakeful.core.items import Kind, NewItem, Origin, Priority, Ring
from wakeful.core.runs import Ending, Outcome, Result
from wakeful.core.settlement import settle
from wakeful.core.wakes import Cause, Subject, VerdictKind, Wake
from wakeful.fleet.load import load_fleet
from wakeful.store.protocol import Decision, Finish, Order
from wakeful.store.sqlite import open_sqlite

HERE = Path(__file__).parent
START = datetime(2026, 3, 2, 5, 0, tzinfo=UTC)
LENGTH = timedelta(hours=24)
LEASE = timedelta(minutes=30)
SHADES = {Outcome.done: "green", Outcome.no_work: "dim", Outcome.failed: "red", Outcome.killed: "magenta"}


class Day:
    """The loop that an engine would run, with time that jumps to the next instant at which anything can happen."""

    def __init__(self, fleet: Fleet, folder: Path, console: Console) -> None:
        self.fleet = fleet
        self.console = console
        self.zone = ZoneInfo(fleet.timezone)
        self.store = open_sqlite(folder / "demo.db")
        self.now = START
        self.random = random.Random(7)
        self.open: dict[int, tuple[datetime, Order, Ending]] = {}
        self.verdicts: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.transitions = 0
        self.quiet_beats = 0

    def live(self, pace: float) -> None:
        self.store.declare(self.fleet, self.now, boot=True)
        jobs = [NewItem(kind=Kind.task, role="write", subject=f"piece {n}", body="800 words") for n in range(1, 7)]
        self.store.record(jobs, self.now)
        began = time.monotonic()
        while self.now < START + LENGTH:
            self.finish()
            self.begin()
            later = [end for end, _, _ in self.open.values()]
            upcoming = self.store.due(self.now).next_at
            then = min([*later, *([upcoming] if upcoming else []), START + LENGTH])
            self.now = max(then, self.now)
            # Behind the wall clock there is nothing to wait for: a slow disk shortens the pauses, not the day.
            time.sleep(max((self.now - START) / LENGTH * pace - (time.monotonic() - began), 0))

    def begin(self) -> None:
        self.store.expire(self.now)
        while wakes := self.store.due(self.now).wakes:
            self.tell(self.store.decide(wakes, admit, self.now))
        for order in self.store.claim("demo", self.now, LEASE):
            ending = self.script(order)
            self.open[order.run.id] = (self.now + ending.elapsed, order, ending)

    def finish(self) -> None:
        for run, (end, order, ending) in sorted(self.open.items()):
            if end > self.now:
                continue
            del self.open[run]
            report = Finish(run=run, epoch=order.run.epoch, ending=ending)
            outcome = self.store.finish([report], settle, self.now)[0]
            self.outcomes[outcome.value] += 1
            stands = self.store.standing(order.agent.name)
            moved = stands is not None and stands.position.state != order.run.position.state
            self.transitions += moved
            self.say(order, outcome, stands.position.state if moved and stands else "")

    def script(self, order: Order) -> Ending:
        """What this agent does now: mostly work, sometimes nothing, now and then a failure or a hang."""
        state = order.agent.lifecycle.state(order.run.position.state)
        if order.run.subject is Subject.beat and state is not None and state.kind == "rem":
            self.quiet_beats += 1
            return Ending(exit_code=0, elapsed=timedelta(seconds=2))
        draw = self.random.random()
        if order.agent.name == "desk" and draw < 0.5:
            self.message("desk", "hale", Priority.normal)
        if order.agent.name in ("wren", "moss") and draw < 0.25:
            self.message(order.agent.name, "hale", Priority.urgent, order.run.id)
        elapsed = timedelta(seconds=self.random.randint(20, 400))
        if draw > 0.97:
            return Ending(timed_out=True, elapsed=order.agent.wall_clock(order.run.subject))
        if draw > 0.90:
            return Ending(exit_code=1, elapsed=elapsed)
        if draw > 0.70:
            return Ending(exit_code=0, output="NO-WORK: nothing new", elapsed=elapsed)
        return Ending(exit_code=0, result=Result(summary="one piece further"), elapsed=elapsed)

    def message(self, sender: str, to: str, priority: Priority, run: int | None = None) -> None:
        urgent = priority is Priority.urgent
        note = NewItem(
            kind=Kind.message,
            agent=to,
            sender=sender,
            origin=Origin.agent,
            priority=priority,
            ring=Ring.peer if urgent else Ring.silent,
            body="please read this",
            by_run=run,
        )
        item = self.store.record([note], self.now)[0].id
        if urgent:
            wake = Wake(
                agent=to,
                cause=Cause.peer,
                subject=Subject.inbox,
                requested_at=self.now,
                sender=sender,
                item=item,
                by_run=run,
            )
            self.tell(self.store.decide([wake], admit, self.now))

    def tell(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            verdict = decision.verdict
            self.verdicts[f"{verdict.kind.value} {verdict.guard or ''}".strip()] += 1
            if verdict.kind is VerdictKind.refuse and verdict.guard != "moot":
                self.console.print(
                    f"{self.clock()}  {decision.agent:5} [yellow]refused[/] by {verdict.guard}: {verdict.reason}"
                )

    def say(self, order: Order, outcome: Outcome, moved_to: str) -> None:
        what = order.run.position.state if order.run.subject is Subject.beat else order.run.subject.value
        arrow = f" → {moved_to}" if moved_to else ""
        seen = f", {len(order.items)} messages" if order.items else ""
        line = f"{self.clock()}  {order.agent.name:5} {order.run.cause.value:8} {what:11}"
        self.console.print(f"{line} [{SHADES[outcome]}]{outcome.value}[/]{arrow}{seen}")

    def clock(self) -> str:
        return f"{self.now.astimezone(self.zone):%H:%M:%S}"

    def summary(self) -> None:
        table = Table(title="the day in numbers", show_header=False)
        for name, count in sorted(self.outcomes.items()):
            table.add_row(f"runs {name}", str(count))
        table.add_row("quiet beats (rem, no model)", str(self.quiet_beats))
        table.add_row("lifecycle transitions", str(self.transitions))
        for name, count in sorted(self.verdicts.items()):
            table.add_row(f"decisions {name}", str(count))
        for item in self.store.items(kind="task"):
            table.add_row(f"task {item.subject}", f"{item.state.value} after {item.attempts} attempts")
        self.console.print(table)
        self.expectation()

    def expectation(self) -> None:
        table = Table("at", "state", "kind", "if", title="the next beats of wren, if all goes well")
        agent, standing = self.store.agent("wren"), self.store.standing("wren")
        assert agent is not None and standing is not None
        for beat in forecast(standing, agent, agent.limits, self.now, 6):
            table.add_row(f"{beat.at.astimezone(self.zone):%a %H:%M:%S}", beat.state, beat.kind.value, beat.assumption)
        self.console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--for", dest="length", type=parse_duration, default=timedelta(seconds=10))
    length: timedelta = parser.parse_args().length
    console = Console(highlight=False)
    loaded = load_fleet(HERE / "newsroom" / "fleet.org")
    for diagnostic in loaded.diagnostics:
        console.print(str(diagnostic))
    assert loaded.fleet is not None
    console.print(
        f"[bold]{loaded.fleet.title}[/]: {len(loaded.fleet.agents)} agents, one day in {length.total_seconds():g} s"
    )
    with tempfile.TemporaryDirectory() as folder:
        day = Day(loaded.fleet, Path(folder), console)
        day.live(pace=length.total_seconds())
        day.summary()
        day.store.close()


if __name__ == "__main__":
    main()
