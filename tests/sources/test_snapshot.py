"""When a list is asked for; and which sources an agent has."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from wakeful.core.agents import Agent
from wakeful.core.snapshots import read_snapshot
from wakeful.sources.directory import Directory
from wakeful.sources.registry import Around, declared
from wakeful.sources.snapshot import ProgramSnapshot, Snapshot, UrlSnapshot
from wakeful.testing.contracts.source_case import Reader, Told
from wakeful.testing.loop import live, passes


class Slow(Snapshot):
    """It takes so many seconds to answer."""

    def __init__(self, every, takes):
        super().__init__("moss", replace(read_snapshot("snapshot+exec:x"), every=timedelta(seconds=every)))
        self.takes = list(takes)
        self.asked = []

    async def _ask(self):
        self.asked.append(asyncio.get_running_loop().time())
        await passes(self.takes.pop(0) if self.takes else 0)
        return ()


@pytest.mark.parametrize(
    ("takes", "asked"),
    [
        ([], [0, 5, 10, 15, 20]),
        ([4, 1, 3, 4.9, 2], [0, 5, 10, 15, 20]),
        ([6, 0, 0], [0, 10, 15, 20, 25]),
        ([0, 60, 60], [0, 5, 20, 35, 40]),
    ],
)
def test_it_is_asked_at_its_instants_however_long_an_answer_takes(takes, asked):
    async def scenario():
        source = Slow(5, takes)
        reader = Reader(source)
        await reader.next()
        following = asyncio.ensure_future(anext(reader.batches, None))
        while len(source.asked) < len(asked):
            if following.done():
                await source.acknowledge(following.result())
                following = asyncio.ensure_future(anext(reader.batches, None))
            await passes(1)
        await source.stop()
        await asyncio.wait({following})
        assert source.asked == pytest.approx(asked)

    live(scenario)


def test_an_instant_is_used_once_however_its_number_is_rounded():
    async def scenario():
        source = Slow(0.1, [])
        reader = Reader(source)
        await reader.next()
        following = asyncio.ensure_future(anext(reader.batches, None))
        while len(source.asked) < 100:
            await passes(0.01)
        await source.stop()
        await following
        assert source.asked == pytest.approx([number / 10 for number in range(len(source.asked))])

    live(scenario)


def test_a_look_in_between_moves_no_instant():
    async def scenario():
        source = Slow(5, [])
        reader = Reader(source)
        await reader.next()
        following = asyncio.ensure_future(anext(reader.batches, None))
        await passes(3)
        await source.look()
        await passes(8)
        await source.stop()
        assert await following is None
        assert source.asked == pytest.approx([0, 3, 5, 10])

    live(scenario)


def test_a_look_while_it_is_asked_asks_anew():
    """What was asked before something happened does not say what happened."""

    async def scenario():
        source = Slow(60, [2, 2])
        first = asyncio.ensure_future(source.look())
        await passes(1)
        second = await source.look()
        assert (await first).taken < second.taken
        assert source.asked == pytest.approx([0, 2])

    live(scenario)


# ---- which there are


def around(tmp_path, **more):
    return Around(
        root=tmp_path,
        hints=Told(),
        variables={"TOKEN": "x"},
        environment=lambda agent: {"WHO": agent.name},
        **more,
    )


def names(sources):
    made = [each.make() for each in sources]
    assert [(each.agent, each.source) for each in sources] == [(source.agent, source.name) for source in made]
    return [(type(source), source.agent, source.name) for source in made]


def test_an_inbox_and_each_snapshot_is_a_source_of_its_agent(tmp_path):
    agents = [
        Agent(name="moss", address="moss", inbox="inbox/moss"),
        Agent(
            name="wren",
            address="wren",
            events=(
                "webhook://github",
                "snapshot+exec:tools/pending#every=5s",
                "snapshot+https://example.org/tasks?role=wren#token=TOKEN",
            ),
        ),
        Agent(name="hale", address="hale"),
    ]
    assert names(declared(agents, around(tmp_path))) == [
        (Directory, "moss", "inbox"),
        (ProgramSnapshot, "wren", "snapshot+exec:tools/pending"),
        (UrlSnapshot, "wren", "snapshot+https://example.org/tasks?eab397681ba2"),
    ]


def test_replicas_share_what_their_address_has_and_one_that_is_switched_off_has_nothing(tmp_path):
    agents = [
        *(Agent(name=f"moss-{n}", address="moss", inbox="inbox", events=("snapshot+exec:x",)) for n in (1, 2, 3)),
        Agent(name="hale", address="hale", inbox="inbox", enabled=False),
        Agent(name="wren", address="wren", inbox="inbox"),
    ]
    assert names(declared(agents, around(tmp_path))) == [
        (Directory, "moss", "inbox"),
        (ProgramSnapshot, "moss", "snapshot+exec:x"),
        (Directory, "wren", "inbox"),
    ]


def test_a_list_that_is_named_twice_with_other_options_is_one(tmp_path):
    """Two that tell of the same things under one name would take turns to change them."""
    agent = Agent(name="moss", address="moss", events=("snapshot+exec:x#every=5s", "snapshot+exec:x#every=9s"))
    assert len(declared([agent], around(tmp_path))) == 1


def test_a_program_gets_what_its_agent_gets_and_its_words_are_gone_through(tmp_path):
    path = tmp_path / "pending"
    path.write_text("#!/bin/sh\necho $WHO told pass-word >&2; exit 1\n")
    path.chmod(0o755)
    agent = Agent(name="moss", address="moss", events=("snapshot+exec:pending",))
    (pending,) = declared([agent], around(tmp_path, hide=lambda agent: lambda words: words.replace("pass-word", "…")))
    assert asyncio.run(pending.make().look()).why == f"{tmp_path}/pending ended with exit code 1: moss told …"


def test_an_inbox_begins_at_the_fleet_file(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "note").write_text("words")
    (inbox,) = declared([Agent(name="moss", address="moss", inbox="in")], around(tmp_path))
    assert [thing.body for thing in asyncio.run(inbox.make().look()).observed] == ["words"]


ONE = Agent(name="moss", address="moss", inbox="in", events=("snapshot+exec:x#every=5s", "snapshot+http://h/t"))


@pytest.mark.parametrize(
    "more, changed",
    [
        ({"roles": ("gardener",)}, set()),
        ({"inbox": "out"}, {"inbox"}),
        ({"events": ("snapshot+exec:x#every=6s", "snapshot+http://h/t")}, {"snapshot+exec:x"}),
        ({"environment": ("LEVEL",)}, {"snapshot+exec:x", "snapshot+http://h/t"}),
        ({"secrets": ("TOKEN",)}, {"snapshot+exec:x", "snapshot+http://h/t"}),
    ],
)
def test_a_source_is_the_same_as_long_as_nothing_that_makes_it_has_changed(tmp_path, more, changed):
    before = declared([ONE], around(tmp_path))
    after = declared([replace(ONE, **more)], around(tmp_path))
    assert {each.source for each in after if each not in before} == changed
