"""A board at the real engine: an org file, of which each open entry that nobody else has claimed is one wake."""

from tests.engine.outside import Box, at_work, shown
from tests.engine.stage import heading, lived
from wakeful.core.items import State
from wakeful.core.wakes import Pause, agent_scope


def entry(name, word="NEXT", agent=""):
    claimed = f":PROPERTIES:\n:AGENT: {agent}\n:END:\n" if agent else ""
    return f"* {word} {name}\n{claimed}"


class Desk(Box):
    """The folder of a board, which is written whole."""

    def __init__(self, stage):
        super().__init__(stage, "desk")
        self.make()

    def write(self, *entries):
        self.put("board.org", "".join(entries))


def reader(name="moss"):
    # Who may be given tasks has no beat of its own.
    return heading(name, board="desk/board.org", interval="none", tasks="errands")


@lived
async def test_each_open_entry_is_one_wake_however_long_it_stands_there(stage):
    desk = Desk(stage)
    desk.write(entry("task-7"), entry("task-8", "DONE"))
    await at_work(stage, reader())
    await stage.hours(5)
    assert shown(stage) == [["task-7"]]
    desk.write(entry("task-9", "TODO"), entry("task-7"))
    await stage.hours(5)
    assert shown(stage) == [["task-7"], ["task-9"]]
    await stage.crash()
    await stage.up()
    await stage.hours(5)
    assert shown(stage) == [["task-7"], ["task-9"]]


@lived
async def test_an_entry_that_is_done_is_no_longer_open_and_one_that_changes_rings_again(stage):
    desk = Desk(stage)
    desk.write(entry("task-7"), entry("task-8"))
    await at_work(stage, reader())
    await stage.hours(1)
    desk.write(entry("task-7", "DONE"), entry("task-8") + "And soon, please.\n")
    await stage.hours(1)
    assert shown(stage) == [["task-7", "task-8"], ["task-8"]]
    assert [item.state for item in stage.store.items(agent="moss")] == [State.closed, State.open]


@lived
async def test_the_claim_that_an_agent_makes_in_its_run_does_not_ring_it_again_and_hides_the_entry_from_others(stage):
    desk = Desk(stage)
    desk.write()
    await at_work(stage, reader("wren"), reader("moss"))
    await stage.until(100)
    pause = Pause(scope=agent_scope("moss"), owner="ada", reason="away", since=stage.now)
    await stage.access.write(lambda store: store.pause(pause, stage.now))
    desk.write(entry("task-7"))
    await stage.minutes(0.5)
    desk.write(entry("task-7", "DOING", "wren"))
    await stage.minutes(5)
    await stage.access.write(lambda store: store.resume(agent_scope("moss"), "ada", stage.now))
    await stage.hours(1)
    assert [(seen.agent, seen.cause) for seen in stage.seen] == [("wren", "news")]
    desk.write(entry("task-7"))
    await stage.hours(1)
    assert [(seen.agent, seen.cause) for seen in stage.seen[1:]] == [("wren", "news"), ("moss", "news")]


@lived
async def test_a_board_that_is_away_is_told_and_rings_nobody_when_it_is_back(stage):
    desk = Desk(stage)
    desk.write(entry("task-7"))
    await at_work(stage, reader())
    await stage.hours(1)
    away = desk.folder / "away"
    (desk.folder / "board.org").rename(away)
    await stage.hours(1)
    (row,) = stage.store.sources()
    assert row.outage is not None and "board.org: no such file" in row.outage
    away.rename(desk.folder / "board.org")
    await stage.hours(1)
    assert shown(stage) == [["task-7"]]
    assert stage.store.sources() == []
