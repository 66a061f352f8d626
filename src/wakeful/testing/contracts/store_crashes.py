"""A crash at any commit leaves the state before it or the state after it, and nothing between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from wakeful.core.admission import admit
from wakeful.core.agents import Limits, Runner
from wakeful.core.cron import parse_schedule
from wakeful.core.events import Event, EventKind
from wakeful.core.items import Kind, NewItem, Observation, Origin, Ring
from wakeful.core.lifecycle import Lifecycle, State
from wakeful.core.recurrences import Recurrence
from wakeful.core.settlement import settle, skip_beat
from wakeful.core.wakes import Pause
from wakeful.store.protocol import Finish, Order, Store, TaskEnd
from wakeful.testing.contracts.store_case import (
    DONE,
    HOUR,
    LEASE,
    MINUTE,
    NOW,
    SECOND,
    TODAY,
    StoreCase,
    a_fleet,
    an_agent,
    operator,
    peer,
    reported,
    timer,
)

LATER = NOW + MINUTE
DAY = Lifecycle("add", (State("add", repeat=2, next="audit"), State("audit", next="add")))
AGENTS = (
    an_agent("moss", lifecycle=DAY, limits=Limits(usd_per_day=1000)),
    an_agent("wren", limits=Limits(usd_per_day=1000)),
    an_agent("hale", runner=Runner.handler),
    "desk",
    "fern",
)
DESK = Pause(scope="agent:desk", owner="operator", reason="lunch", since=NOW)
FLEET = Pause(scope="fleet", owner="operator", reason="a bad deploy", since=LATER)
NOTE = Observation(external_id="note.md", fingerprint="1")
EDITED = Observation(external_id="note.md", fingerprint="2")
SWEEPING = Recurrence(name="sweeping", title="sweep the yard", schedule=parse_schedule("* * * * *"), agent="moss")
FRESH = Observation(external_id="new.md", fingerprint="1")


class Crash(BaseException):
    """The process dies here."""


@dataclass(frozen=True)
class Scene:
    """A little of everything: two runs under way, one that nobody has claimed, and things that wait."""

    store: Store
    shift: Order
    inbox: Order
    tasks: tuple[int, ...]
    unclaimed: int
    # One that nobody has seen, and one that the run of the inbox was shown.
    message: int
    shown: int
    # A task that the run of the inbox may take.
    ready: int


def set_scene(store: Store) -> Scene:
    store.join("one", "attic", "", NOW, LEASE)
    store.join("three", "loft", "", NOW, LEASE)
    store.declare(a_fleet(*AGENTS, sessions=9, recurrences=(SWEEPING,)), NOW)
    store.observe("folder", "wren", [NOTE, Observation(external_id="old.md", fingerprint="1")], NOW)
    tasks = [NewItem(kind=Kind.task, agent="hale", subject=str(n)) for n in range(3)]
    ids = tuple(answer.id for answer in store.record(tasks, NOW))
    store.decide([wake for wake in store.due(NOW).wakes if wake.agent == "hale"], admit, NOW)
    store.decide([operator("wren")], admit, NOW)
    orders = {order.agent.name: order for order in store.claim("one", NOW, LEASE)}
    store.save_step(orders["hale"].run.id, orders["hale"].run.epoch, "fetch", None, NOW, task=ids[0])
    store.keep_output(orders["wren"].run.id, "stdout", b"one line\n")
    call = NewItem(kind=Kind.message, agent="moss", sender="wren", origin=Origin.agent, ring=Ring.peer)
    item = store.record([call], LATER)[0].id
    decision = store.decide([peer("moss", "wren", LATER, item=item, by_run=orders["wren"].run.id)], admit, LATER)[0]
    store.decide([peer("wren", "moss", LATER)], admit, LATER)
    store.pause(DESK, LATER)
    store.record([NewItem(kind=Kind.message, agent="desk", ring=Ring.news)], LATER)
    store.decide([wake for wake in store.due(LATER).wakes if wake.agent == "desk"], admit, LATER)
    message = store.record([NewItem(kind=Kind.message, agent="wren", ring=Ring.news)], LATER)[0].id
    store.tend([("folder", "wren")], "one", NOW, LEASE)
    store.observe("board", "desk", None, LATER, why="no answer")
    ready = store.record([NewItem(kind=Kind.task, agent="wren", subject="count the pages")], LATER)[0].id
    assert decision.run is not None
    return Scene(store, orders["hale"], orders["wren"], ids, decision.run, message, orders["wren"].items[0].id, ready)


def finish_one(scene: Scene) -> Any:
    run = scene.inbox.run
    return scene.store.finish([Finish(run=run.id, epoch=run.epoch, ending=reported(usd=7))], settle, LATER)


def finish_tasks(scene: Scene) -> Any:
    run, ends = scene.shift.run, [TaskEnd(task=task, ending=DONE, result="swept") for task in scene.tasks]
    return scene.store.finish_tasks(run.id, run.epoch, ends, LATER)


def save_step(scene: Scene) -> Any:
    run = scene.shift.run
    return scene.store.save_step(run.id, run.epoch, "fetch", "a page", LATER, task=scene.tasks[0])


def renew(scene: Scene) -> Any:
    return scene.store.renew("one", [(scene.inbox.run.id, scene.inbox.run.epoch)], LATER, LEASE)


def record(scene: Scene) -> Any:
    items = [NewItem(kind=Kind.message, agent="moss", dedupe="k1"), NewItem(kind=Kind.task, agent="wren")]
    return scene.store.record(items, LATER)


def forget(scene: Scene) -> Any:
    month = timedelta(days=30)
    return scene.store.forget(LATER, LATER, LATER + month)


def skip(scene: Scene) -> Any:
    at = NOW + 2 * HOUR
    return scene.store.skip(timer("fern", at), "nothing new", admit, skip_beat, at)


VERBS: dict[str, Callable[[Scene], Any]] = {
    "note": lambda scene: scene.store.note(
        [Event(kind=EventKind.acted, at=LATER, fields={"by": "rana", "operation": "backup"})]
    ),
    "declare": lambda scene: scene.store.declare(a_fleet(an_agent("moss", max_failures=9), "new"), LATER, boot=True),
    "set": lambda scene: scene.store.set("moss", {"burst": 7}, "rana", LATER),
    "pause": lambda scene: scene.store.pause(FLEET, LATER),
    "resume": lambda scene: scene.store.resume("agent:desk", "rana", LATER),
    "record": record,
    "observe": lambda scene: scene.store.observe("folder", "wren", [EDITED, FRESH], LATER),
    "amend": lambda scene: scene.store.amend("folder", "wren", [EDITED, FRESH], LATER),
    "tend": lambda scene: scene.store.tend([("folder", "wren"), ("board", "moss")], "three", LATER, LEASE),
    "abandon": lambda scene: scene.store.abandon([("folder", "wren")], LATER),
    "mark_read": lambda scene: scene.store.mark_read([scene.message], "rana", LATER),
    "snooze": lambda scene: scene.store.snooze([scene.message, scene.shown], NOW + HOUR, "rana", LATER),
    "ask": lambda scene: scene.store.ask([operator("desk", LATER), operator("moss", LATER)], LATER),
    "decide": lambda scene: scene.store.decide([*scene.store.due(LATER).wakes, operator("moss", LATER)], admit, LATER),
    "join": lambda scene: scene.store.join("two", "cellar", "", LATER, LEASE),
    "leave": lambda scene: scene.store.leave("one", LATER),
    "claim": lambda scene: scene.store.claim("three", LATER, LEASE),
    "renew": renew,
    "orphans": lambda scene: scene.store.orphans(LATER + LEASE),
    "keep_output": lambda scene: scene.store.keep_output(scene.inbox.run.id, "stdout", b"and another\n"),
    "finish": finish_one,
    "finish_tasks": finish_tasks,
    "stop": lambda scene: scene.store.stop([scene.unclaimed, scene.inbox.run.id], "rana", LATER),
    "skip": skip,
    "forget": forget,
    "void": lambda scene: scene.store.void(scene.unclaimed, 0, LATER),
    "expire": lambda scene: scene.store.expire(LATER + 5 * SECOND),
    "change_tasks": lambda scene: scene.store.change_tasks(scene.tasks, "complete", "rana", LATER, result="swept"),
    "recur": lambda scene: scene.store.recur(LATER),
    "change_task": lambda scene: scene.store.change_task(scene.tasks[1], "cancel", "rana", LATER),
    "take_task": lambda scene: scene.store.take_task(scene.inbox.run.id, scene.inbox.run.epoch, LATER),
    "save_step": save_step,
}


def snapshot(scene: Scene) -> dict[str, Any]:
    """Everything that can be read of a store."""
    store = scene.store
    agents = store.agents(removed=True)
    scopes = ["fleet", "pair:moss|wren", *(f"agent:{agent.address}" for agent in agents)]
    return {
        "agents": agents,
        "standings": [store.standing(agent.name) for agent in agents],
        "pauses": store.pauses(),
        "items": store.items(),
        "recurrences": store.recurrences(),
        "attempts": [store.attempts(task) for task in (*scene.tasks, scene.ready)],
        "steps": [store.steps(scene.shift.run.id, task=task) for task in scene.tasks],
        "runs": store.runs(),
        "wakes": store.wakes(),
        "events": store.events(),
        "stopping": store.stopping("one"),
        "nodes": store.nodes(LATER),
        "sources": store.sources(),
        "output": store.output(scene.inbox.run.id, "stdout", 0, 1000),
        "totals": {
            (scope, measure): store.total(scope, TODAY, measure)
            for scope in scopes
            for measure in ("wakes", "usd", "tokens", "ms")
        },
    }


class CrashesContract(StoreCase):
    def scene(self, name: str, probe: Callable[[str, str], None] | None = None) -> tuple[Path, Scene]:
        folder = self.folder / name
        folder.mkdir()
        store = self.make_store(folder, probe)
        self.set_clock(NOW, store)
        scene = set_scene(store)
        self.set_clock(LATER, store)
        return folder, scene

    def again(self, folder: Path, scene: Scene) -> Scene:
        """The same scene behind a store opened anew, as after a crash."""
        scene.store.close()
        store = self.make_store(folder)
        self.set_clock(LATER, store)
        return replace(scene, store=store)

    def test_every_verb_that_writes_is_crashed(self) -> None:
        writing = {name for name, verb in vars(Store).items() if "transaction" in (getattr(verb, "__doc__", "") or "")}
        assert set(VERBS) == writing

    @pytest.mark.parametrize("verb", VERBS)
    def test_a_verb_is_durable_when_it_returns(self, verb: str) -> None:
        folder, scene = self.scene("plain")
        before = snapshot(scene)
        VERBS[verb](scene)
        after = snapshot(scene)
        assert (after == before) is (verb == "orphans")  # what it holds is free again after the commit
        scene = self.again(folder, scene)
        assert snapshot(scene) == after
        scene.store.close()

    @pytest.mark.parametrize("moment", ["before", "after"])
    @pytest.mark.parametrize("verb", VERBS)
    def test_a_crash_leaves_the_state_before_or_after_and_nothing_between(self, verb: str, moment: str) -> None:
        armed: list[tuple[str, str]] = []

        def probe(when: str, site: str) -> None:
            if (when, site) in armed:
                raise Crash

        folder, scene = self.scene("crashed", probe)
        _, twin = self.scene("twin")
        before = snapshot(scene)
        assert before == snapshot(twin)
        VERBS[verb](twin)
        armed.append((moment, verb))
        with pytest.raises(Crash):
            VERBS[verb](scene)
        scene = self.again(folder, scene)
        if moment == "before":
            assert snapshot(scene) == before
            VERBS[verb](scene)  # and it can be done again, as if nothing had been
        assert snapshot(scene) == snapshot(twin)
        scene.store.close()
        twin.store.close()
