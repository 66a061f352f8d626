"""kill -9 of a process at every verb that commits, before its commit, after it, and after the answer.

As a program, `python -m soak.crasher sqlite FOLDER` or `python -m soak.crasher postgres ADDRESS`, with the sites to
try behind it if not all, and --turns to try each of them at one moment only; what it found is one line of JSON.

Laws:
- Each case begins with the same store, in which there is a little of everything (`contracts.store_crashes`).
- The verb is one of three calls that a writer's thread commits together: all of them are there afterwards, or none.
- After the kill the store is, to the byte of every column, what it was before, or what it is where nobody was killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from soak.audits import unsound
from soak.crashed_stores import Dump, House, PostgresHouse, SqliteHouse
from soak.doomed import doomed_migrations
from wakeful.core.items import Kind, NewItem
from wakeful.store.inline import Inline
from wakeful.store.postgres_copy import load
from wakeful.store.postgres_session import PostgresSession
from wakeful.store.protocol import Recorded
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import NOW
from wakeful.testing.contracts.store_crashes import LATER, VERBS, Scene, set_scene
from wakeful.testing.crashpoints import AROUND, MOMENTS, PARTS, WHOLE, Doom, Point

# Nothing that a verb was told is later than this.
AT_LAST = LATER + timedelta(days=40)
PATIENCE = 60.0
# A file is not copied into a file: a backup is one.
SITES = (*VERBS, *PARTS, *AROUND, *WHOLE)


Act = Callable[[str, Doom], None]


@dataclass
class Found:
    cases: int = 0
    sites: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    # Seconds, until a store was open again.
    slowest: float = 0.0


class Crasher:
    """Every case of one house. Told to take turns it tries each site at one moment only, the next at the next."""

    def __init__(self, house: House, *, turns: bool) -> None:
        self.house = house
        self.turns = turns
        store = house.begin()
        house.tell_time(store, NOW)
        self.scene = set_scene(store)
        store.close()
        self.found = Found()

    def crash(self, site: str) -> None:
        """At each moment: once where nobody is killed, to see what it leads to, and once where somebody is."""
        act = self.acts().get(site) or partial(self.commit, site)
        fresh = {"migrate": self.house.nothing, "load": self.house.empty}.get(site, self.house.fresh)
        before, after = (self.undisturbed(fresh(), each) for each in (None, act))
        if site != "orphans" and after == before:
            self.complain(f"{site}: nothing came of it where nobody was killed")
        moments = [MOMENTS[len(self.found.sites) % 3]] if self.turns else MOMENTS
        self.found.sites.append(site)
        for moment in moments:
            self.found.cases += 1
            self.crash_at(Point(site, moment), fresh(), act, (before, after))

    def acts(self) -> dict[str, Act]:
        """What is not a verb that a writer's thread is asked for."""
        return {
            # Within another call it has no part of its own.
            "note": partial(self.alone, "note"),
            "recur_one": partial(self.commit, "recur"),
            # Whatever the writer's thread commits is a group.
            "group": partial(self.commit, "record"),
            "call": self.call,
            "migrate": self.migrate,
            "load": self.load,
        }

    def undisturbed(self, place: str, act: Act | None) -> Dump:
        ended = self.child(lambda: act(place, Doom())) if act else 0
        if ended != 0:
            self.complain(f"it ended with {ended} where nobody killed it")
        dump = self.house.dump(place)
        self.house.forget(place)
        return dump

    def crash_at(self, point: Point, place: str, act: Act, expected: tuple[Dump, Dump]) -> None:
        what = f"{point.moment} {point.site}"
        before, after = expected
        ended = self.child(lambda: act(place, Doom(point)))
        if ended != -signal.SIGKILL:
            self.complain(f"{what}: it was to be killed, and ended with {ended}")
        self.compare(what, place, before if point.moment == "before" else after)
        if point.moment == "before":
            # Whoever heard nothing says it again, and it is as if nothing had been.
            self.house.forget_numbers(place)
            ended = self.child(lambda: act(place, Doom()))
            self.compare(f"{what}, said again ({ended})", place, after)
        began = time.monotonic()
        store = self.house.open(place)
        self.found.slowest = max(self.found.slowest, time.monotonic() - began)
        self.found.complaints += [f"{what}: {each}" for each in unsound(store, AT_LAST)]
        store.close()
        self.house.forget(place)

    def compare(self, what: str, place: str, expected: Dump) -> None:
        found = self.house.dump(place)
        for table in expected.keys() | found.keys():
            one, other = expected.get(table, []), found.get(table, [])
            if one != other:
                missing, more = [row for row in one if row not in other], [row for row in other if row not in one]
                self.complain(f"{what}: {table} lacks {missing[:3]} and has {more[:3]}")
        for said in self.house.damage(place):
            self.complain(f"{what}: {said}")

    def complain(self, what: str) -> None:
        self.found.complaints.append(what)

    # -- in a process of its own ------------------------------------------------------------------------------
    def child(self, work: Callable[[], None]) -> int:
        """How a process that does only that ended."""
        child = os.fork()
        if child == 0:
            try:
                work()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def commit(self, verb: str, place: str, doom: Doom) -> None:
        """Three calls in one commit of a writer's thread, of which the second is the verb."""
        store = self.house.open(place)
        self.house.tell_time(store, LATER)
        scene, writer = replace(self.scene, store=store), self.house.writer(store)
        begun, gate = threading.Event(), threading.Event()

        def wait(store: SqlStore) -> None:
            self.house.tell_reader(store, LATER)
            begun.set()
            gate.wait(PATIENCE)

        # What is asked for while the thread has something else in hand is committed together.
        held = writer.submit(wait)
        begun.wait(PATIENCE)
        doom.watch(store.session)
        group = [writer.submit(each) for each in (letter("first"), said(scene, verb), letter("last"))]
        gate.set()
        held.result(PATIENCE)
        for future in group:
            future.result(PATIENCE)
        doom.reach("told", (verb, *PARTS, *AROUND))
        writer.close()
        store.close()

    def alone(self, verb: str, place: str, doom: Doom) -> None:
        """The verb is the whole transaction."""
        store = self.house.open(place)
        self.house.tell_time(store, LATER)
        doom.watch(store.session)
        VERBS[verb](replace(self.scene, store=store))
        doom.reach("told", (verb,))
        store.close()

    def call(self, place: str, doom: Doom) -> None:
        """A command that finds no engine."""
        store = self.house.open(place)
        doom.watch(store.session)
        access = Inline(store)
        doom.listen(access)
        asyncio.run(access.write(letter("only")))
        store.close()

    def load(self, place: str, doom: Doom) -> None:
        """A store file that is copied into an empty store."""
        store = self.house.open(place)
        assert isinstance(store.session, PostgresSession)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "copy.db")
            source = open_sqlite(Path(folder, "wakeful.db"), durable=False)
            set_scene(source)
            source.backup(file)
            source.close()
            connection = store.session.connection
            with connection.transaction():
                load(file, connection)
                doom.reach("before", ("load",))
            doom.reach("after", ("load",))
        doom.reach("told", ("load",))
        store.close()

    def migrate(self, place: str, doom: Doom) -> None:
        with doomed_migrations(doom):
            self.house.open(place).close()
        doom.reach("told", ("migrate",))


def letter(key: str) -> Callable[[SqlStore], list[Recorded]]:
    return lambda store: store.record([NewItem(kind=Kind.message, agent="moss", dedupe=key)], LATER)


def said(scene: Scene, verb: str) -> Callable[[SqlStore], Any]:
    return lambda _: VERBS[verb](scene)


def main(arguments: list[str]) -> None:
    kind, where, *sites = arguments
    turns = "--turns" in sites
    house: House = SqliteHouse(where) if kind == "sqlite" else PostgresHouse(where)
    everything = [site for site in SITES if not (kind == "sqlite" and site == "load")]
    with house:
        crasher = Crasher(house, turns=turns)
        for site in [site for site in sites if site != "--turns"] or everything:
            crasher.crash(site)
    print(json.dumps(vars(crasher.found)))


if __name__ == "__main__":
    main(sys.argv[1:])
