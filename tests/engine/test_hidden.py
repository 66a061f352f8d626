"""What reaches the store by the engine's own ways, tasks as files and what sources say, holds no secret either."""

import json
from dataclasses import replace

import pytest

from tests.engine.stage import heading, lived
from tests.engine.test_dropping import SWEEP, left, put, tasks
from tests.engine.test_sourcing import NAME, Scripted
from wakeful.core.items import Observation
from wakeful.sources.drop import drop_in
from wakeful.sources.protocol import Declared


class Telling(Scripted):
    def seen(self, why=""):
        observed = (Observation(external_id="t1", fingerprint="1", subject="key", body="it is sk-live"),)
        return replace(super().seen(), observed=observed)


@pytest.fixture
def stage(stage, deaf):
    stage.hide = lambda text: text.replace("sk-live", "[redacted]")
    return stage


@lived
async def test_a_task_that_is_moved_in_is_kept_without_it(stage):
    stage.drop = drop_in(stage.data)
    stage.declare(heading("wren", tasks="sweeping"))
    await stage.up()
    put(stage, "a.json", {**SWEEP, "title": "use sk-live", "payload": {"keys": ["sk-live"]}, "tags": ["plain"]})
    await stage.until(3)
    (task,) = tasks(stage)
    told = (task.subject, json.loads(task.payload), task.tags)
    assert told == ("use [redacted]", {"keys": ["[redacted]"]}, ("plain",))
    assert left(stage) == []


@lived
async def test_what_a_source_says_is_kept_without_it_and_is_no_news_for_that(stage):
    source = Telling()
    stage.sources = lambda agents, hints: [Declared(source=NAME, agent="moss", make=lambda: source)]
    stage.declare(heading("moss", interval="7d"), grace="5d")
    await stage.up()
    await stage.until(100)
    source.say()
    await stage.until(300)
    (item,) = stage.store.items(agent="moss")
    assert (item.subject, item.body, item.fingerprint) == ("key", "it is [redacted]", "1")
    assert stage.beats() == [100]
