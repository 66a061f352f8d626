"""A store with a busy past, made by the real verbs: what the audit is held against, and what is changed in it by hand.

Everything that a table can hold is in it at least once, so that a row of each kind can be taken away.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import apsw

from wakeful.control.auditing.audit import Report, audit
from wakeful.core.admission import admit
from wakeful.core.agents import Agent, Runner
from wakeful.core.cron import parse_schedule
from wakeful.core.events import Event, EventKind
from wakeful.core.items import Kind, NewItem, Observation, Origin, Past, Priority, Ring, State
from wakeful.core.recurrences import Recurrence
from wakeful.core.runs import Ending
from wakeful.core.settlement import settle
from wakeful.core.wakes import Cause, Pause, Subject, Wake
from wakeful.store.protocol import Finish, Store, TaskEnd
from wakeful.store.sqlite import open_sqlite
from wakeful.testing.simulate import open_store
from wakeful.testing.world import World

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
BUSY_SEED, BUSY_DAYS = 5, 0.1
# Agents that nothing holds back.
PLAIN = ("brook", "fern", "holm")
KEYS = {
    "address": ("name",),
    "fleet": ("id",),
    "agent": ("name",),
    "declaration": ("agent", "version"),
    "role": ("role", "agent"),
    "standing": ("agent",),
    "item": ("id",),
    "dependency": ("item", "needs"),
    "wake": ("id",),
    "run": ("id",),
    "run_item": ("run", "item"),
    "attempt": ("item", "run"),
    "recurrence": ("name",),
    "step": ("subject", "name"),
    "pause": ("scope", "owner"),
    "total": ("scope", "day"),
    "node": ("name",),
    "source": ("agent", "source"),
    "output": ("run", "stream", "start"),
    "event": ("id",),
    "reckoning": ("event",),
}


@dataclass(frozen=True, slots=True)
class Kept:
    """A store file that nobody has open, and the instant at which it was left."""

    path: Path
    now: datetime

    def audit(self) -> Report:
        store = open_sqlite(self.path, durable=False)
        try:
            return audit(store, self.now)
        finally:
            store.close()


def lived(seed: int, path: Path, days: float | None = None) -> Kept:
    world = World(seed, path, open_store, days=days)
    try:
        world.run()
    finally:
        world.store.close()
    return Kept(path, world.clock.wall)


def make_busy(path: Path) -> Kept:
    world = World(BUSY_SEED, path, open_store, days=BUSY_DAYS)
    world.run()
    desk = _Desk(world)
    try:
        desk.declare()
        desk.inboxes()
        desk.mirrors()
        desk.tasks()
        desk.wakes()
        desk.runs()
        desk.holds()
    finally:
        world.store.close()
    return Kept(path, desk.now)


class _Desk:
    def __init__(self, world: World) -> None:
        self.store: Store = world.store
        self.fleet = world.known
        self.now = world.clock.wall
        self.names = [agent.name for agent in world.known.agents]
        self.first = self.names[0]

    def at(self, wait: timedelta = SECOND) -> datetime:
        self.now += wait
        return self.now

    def message(self, **more: object) -> int:
        given = {"kind": Kind.message, "agent": self.first, "sender": "operator", "origin": Origin.operator}
        return self.store.record([NewItem(**{**given, "subject": "words", **more})], self.at())[0].id

    def task(self, **more: object) -> int:
        return self.message(**{"kind": Kind.task, "not_before": self.now + DAY, **more})

    def declare(self) -> None:
        tidy = Recurrence(name="tidy", title="tidy up", schedule=parse_schedule("30 4 * * *"), agent=self.first)
        often = replace(tidy, name="sweep", schedule=parse_schedule("* * * * *"))
        live = replace(self.fleet.agents[0], one_offs=(self.now + DAY,), roles=("writer", "editor"))
        plain = [Agent(name=name, address=name, runner=Runner.process, target="true") for name in PLAIN]
        agents = (live, *self.fleet.agents[1:], *plain)
        spare = replace(live, name="spare", address="spare", one_offs=())
        roomy = replace(self.fleet, sessions=9, workers=9, recurrences=(tidy, often))
        for known in ((*agents, spare), agents):
            self.store.declare(replace(roomy, agents=known), self.at(), boot=True)
        self.store.set(self.first, {"wakes_per_day": 9}, "operator", self.at())

    def inboxes(self) -> None:
        asked, read, later = self.message(), self.message(), self.message()
        self.message(reply_to=asked)
        self.store.mark_read([read], "operator", self.at())
        self.store.snooze([later], self.now + HOUR, "operator", self.at())

    def mirrors(self) -> None:
        things = [
            Observation(external_id=name, fingerprint=f"{name} 1", lasting=True) for name in ("one", "two", "six")
        ]
        for seen in (things, things[:1], things[:2]):
            self.store.observe("shelf", self.first, seen, self.at())
        self.store.observe("shelf", self.first, None, self.at(), why="no such folder")
        self.store.observe("attic", self.first, None, self.at(), why="locked")
        self.store.observe("attic", self.first, [], self.at(2 * SECOND))

    def tasks(self) -> None:
        needed = self.task()
        self.task(depends_on=(needed,), priority=Priority.urgent)
        for change in ("cancel", "complete", "fail"):
            self.store.change_task(self.task(), change, "operator", self.at())
        dead = self.task()
        self.store.change_task(dead, "fail", "operator", self.at())
        self.task(depends_on=(dead,))
        gone = self.task()
        for change in ("cancel", "remove"):
            self.store.change_task(gone, change, "operator", self.at())
        past = Past(state=State.completed, attempts=2, created_at=self.now - DAY, closed_at=self.now - HOUR)
        for state in (State.completed, State.failed):
            self.task(past=replace(past, state=state), not_before=None)
        again = self.task()
        for change in ("fail", "retry"):
            self.store.change_task(again, change, "operator", self.at())
        for _ in range(2):  # one instant gives a task, the next is passed over
            self.store.recur(self.at(timedelta(minutes=1)))

    def wakes(self) -> None:
        for _ in range(2):
            wake = Wake(agent=self.first, cause=Cause.operator, subject=Subject.inbox, requested_at=self.at())
            self.store.ask([wake], self.now)

    def runs(self) -> None:
        """One that has ended, one under way that was asked to stop, one that nobody has claimed."""
        self.store.join("here", "here", "", self.at(), DAY)
        for pause in self.store.pauses():
            self.store.resume(pause.scope, "operator", self.at())
        orders = []
        for name in PLAIN[:2]:
            self.message(agent=name, ring=Ring.operator, priority=Priority.high)
            wake = Wake(agent=name, cause=Cause.operator, subject=Subject.inbox, requested_at=self.at())
            self.store.decide([wake], admit, self.now)
            orders += self.store.claim("here", self.at(), DAY)
        done, under_way = orders[:2]
        ending = Ending(exit_code=0, output="done", elapsed=SECOND)
        self.store.finish([Finish(run=done.run.id, epoch=done.run.epoch, ending=ending)], settle, self.at())
        for piece in (b"first ", b"then ", b"last"):
            self.store.keep_output(done.run.id, "stdout", piece)
        self.store.save_step(under_way.run.id, under_way.run.epoch, "look", "seen", self.at())
        self.store.stop([under_way.run.id], "operator", self.at())
        self.failing(done.agent.name)
        self.taking(done.agent.name)
        self.tick(PLAIN[2])
        self.store.void(self.tick(done.agent.name), 0, self.at())

    def tick(self, name: str) -> int:
        wake = Wake(agent=name, cause=Cause.operator, subject=Subject.beat, requested_at=self.at())
        run = self.store.decide([wake], admit, self.now)[0].run
        assert run is not None
        return run

    def failing(self, name: str) -> None:
        """A task that is tried, and will be tried again; one that is done; one that another depends on."""
        for exit_code in (1, 0):
            task = self.task(agent=name, not_before=None, max_retries=3)
            wake = Wake(agent=name, cause=Cause.task, subject=Subject.task, task=task, requested_at=self.at())
            self.store.decide([wake], admit, self.now)
            (order,) = self.store.claim("here", self.at(), DAY)
            self.store.save_step(order.run.id, order.run.epoch, "half", "done", self.at(), task=task)
            ending = Ending(exit_code=exit_code, elapsed=SECOND)
            self.store.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=ending)], settle, self.at())

    def taking(self, name: str) -> None:
        """A beat that takes two tasks, and completes one of them."""
        tasks = [self.task(agent=name, not_before=None) for _ in range(2)]
        self.tick(name)
        (order,) = self.store.claim("here", self.at(), DAY)
        run, epoch, ending = order.run.id, order.run.epoch, Ending(exit_code=0, elapsed=SECOND)
        for _ in tasks:
            self.store.take_task(run, epoch, self.at())
        self.store.finish_tasks(run, epoch, [TaskEnd(task=tasks[0], ending=ending)], self.at())
        self.store.finish([Finish(run=run, epoch=epoch, ending=ending)], settle, self.at())

    def holds(self) -> None:
        pause = Pause(scope=f"agent:{self.first}", owner="operator", reason="a look", since=self.at())
        self.store.pause(pause, self.now)
        self.store.pause(replace(pause, scope="source:shelf"), self.at())
        self.store.resume("source:shelf", "operator", self.at())
        noted = {"by": "operator", "operation": "backup"}, {"why": "host", "count": 3}, {"operation": "inbox"}
        kinds = (EventKind.acted, EventKind.denied, EventKind.tainted)
        for kind, fields in zip(kinds, noted, strict=True):
            self.store.note([Event(kind=kind, at=self.at(), fields=fields)])
        # Somebody sets the clock back.
        self.store.pause(replace(pause, scope="source:attic"), self.now - HOUR)


@contextmanager
def by_hand(kept: Kept, folder: Path) -> Iterator[tuple[Kept, apsw.Connection]]:
    """A copy in which everything may be changed that the schema does not forbid of itself."""
    path = folder / "changed.db"
    for file in folder.glob("changed.db*"):
        file.unlink()
    shutil.copy(kept.path, path)
    connection = apsw.Connection(str(path))
    connection.pragma("foreign_keys", False)
    connection.pragma("ignore_check_constraints", True)
    connection.execute("DROP TRIGGER event_is_append_only")
    connection.execute("BEGIN")
    try:
        yield Kept(path, kept.now), connection
    finally:
        connection.close()


def key_of(table: str, connection: apsw.Connection, where: str, last: bool = False) -> tuple[object, ...]:
    """The first row of that kind."""
    columns = ", ".join(KEYS[table])
    order = " DESC" if last else ""
    found = connection.execute(
        f"SELECT {columns} FROM {table} WHERE {where} ORDER BY {KEYS[table][0]}{order}"
    ).fetchone()
    assert found is not None, f"the busy store has no {table} where {where}"
    return tuple(found)


def named(table: str, key: tuple[object, ...]) -> str:
    """How the audit calls a row."""
    match table:
        case "declaration" | "role" | "dependency" | "run_item" | "attempt":
            return f"{table} {key[0]}/{key[1]}"
        case "pause":
            return f"pause of {key[0]} by {key[1]}"
        case "source":
            return f"source {key[1]} of {key[0]}"
        case "output":
            return f"output of run {key[0]}, {key[1]}"
        case "total" | "step":
            return f"{table} {key[0]} {key[1]}"
    return f"{table} {key[0]}"


def names(report: Report) -> set[str]:
    return {row for finding in report.findings for row in finding.rows}


def told(report: Report) -> str:
    return "\n".join(f"{each.rows}: expected {each.expected}, found {each.found}" for each in report.findings)
