"""Files and lists at the real engine: each generation of a thing is one wake, and nothing else is.

The folders are real and the kernel tells of them; time jumps.
"""

import logging

import pytest

from tests.engine.outside import Board, Box, at_work, causes, moss, shown, told
from tests.engine.stage import heading, lived
from wakeful.core.items import Kind, NewItem, Priority, Ring, State
from wakeful.testing.runner import no_work

# ---- one wake for each generation


@lived
async def test_a_stale_file_and_an_urgent_message_a_thousand_checks_and_five_restarts_are_one_wake_each(stage, scans):
    stage.all_end(no_work())
    box = Box(stage).make()
    await at_work(stage)
    await stage.minutes(5)
    box.put("comms-test", "COMMS TEST (ignore)")
    await stage.minutes(5)
    urgent = NewItem(kind=Kind.message, agent="moss", sender="wren", priority=Priority.urgent, ring=Ring.peer)
    await stage.access.write(lambda store: store.record([urgent], stage.now))
    for restart in range(5):
        await stage.hours(3.5)
        await (stage.crash() if restart % 2 else stage.down())
        await stage.up()
    await stage.hours(1)
    assert len(scans) >= 1_000
    assert causes(stage) == ["news", "peer"]
    assert len(stage.store.wakes(limit=10_000)) == 2
    assert [item.state for item in stage.store.items(agent="moss")] == [State.open, State.closed]


@lived
async def test_a_file_is_seen_at_once_and_its_run_begins(stage):
    box = Box(stage).make()
    await at_work(stage)
    await stage.until(1000)
    box.put("note")
    await stage.minutes(10)
    assert [at for at in stage.beats() if at < 1000.2] == stage.beats()
    assert shown(stage) == [["note"]]


@lived
async def test_where_nobody_hears_of_files_they_are_seen_within_two_seconds(stage, deaf):
    box = Box(stage).make()
    await at_work(stage)
    await stage.until(1000.5)
    box.put("note")
    await stage.minutes(10)
    assert [at for at in stage.beats() if at <= 1002.6] == stage.beats() != []


@lived
async def test_a_rewrite_in_the_same_second_at_the_same_size_is_exactly_one_more(stage):
    box = Box(stage).make()
    await at_work(stage)
    await stage.minutes(1)
    box.put("note", "one")
    await stage.minutes(5)
    box.put("note", "two")
    await stage.hours(5)
    assert shown(stage) == [["note"], ["note"]]


@lived
async def test_what_lay_there_before_the_first_start_rings_once_and_what_came_while_we_were_away_does(stage):
    box = Box(stage).make()
    box.put("old")
    await at_work(stage)
    await stage.hours(2)
    assert shown(stage) == [["old"]]
    await stage.down()
    box.put("new")
    await stage.up()
    await stage.hours(2)
    assert shown(stage) == [["old"], ["new"]]


@lived
async def test_a_file_that_is_taken_away_leaves_nothing_open(stage):
    box = Box(stage).make()
    await at_work(stage)
    box.put("note")
    await stage.minutes(5)
    (box.folder / "note").unlink()
    await stage.minutes(5)
    assert [item.state for item in stage.store.items(agent="moss")] == [State.closed]
    assert len(stage.seen) == 1


@lived
async def test_a_half_written_file_is_one_wake_when_it_is_whole(stage):
    box = Box(stage).make()
    await at_work(stage)
    await stage.until(100)
    with (box.folder / "note").open("w") as file:
        file.write("half")
        file.flush()
        await stage.until(103)
        assert stage.seen == []
        file.write(" and half")
    await stage.hours(1)
    assert shown(stage) == [["note"]]
    assert [item.body for item in stage.store.items(agent="moss")] == ["half and half"]


@lived
async def test_tasks_of_a_list_that_are_assigned_or_accepted_are_pending_and_no_others_are(stage):
    board = Board(stage)
    for status in ("assigned", "accepted", "in_progress", "done"):
        board.put(f"task {status}", status=status)
    await at_work(stage, heading("moss", on=board.address))
    await stage.hours(2)
    assert [sorted(names) for names in shown(stage)] == [["task accepted", "task assigned"]]


# ---- an agent's own edits


@pytest.mark.parametrize("moment", [30, 0.01], ids=["in mid-run", "at the very end"])
@lived
async def test_an_agent_that_edits_its_own_inbox_file_rings_nobody(stage, moment):
    box = Box(stage).make()
    await at_work(stage)
    await stage.until(100)
    box.put("note", "to do")
    await stage.minutes(0.5)
    (begun,) = stage.beats()
    await stage.until(begun + 60 - moment)
    # The kernel's hint takes longer to be gathered than the run takes to end.
    (box.folder / "note").write_text("done")
    await stage.hours(3)
    assert shown(stage) == [["note"]]


@lived
async def test_a_new_file_of_a_run_rings_after_it(stage):
    box = Box(stage).make()
    await at_work(stage)
    await stage.until(100)
    box.put("note", "to do")
    await stage.minutes(0.5)
    box.put("more", "to do")
    await stage.hours(3)
    assert shown(stage) == [["note"], ["more"]]
    assert stage.waits() == [62]


@pytest.mark.parametrize("ended", [False, True], ids=["while it still runs", "after it ended"])
@lived
async def test_the_edits_of_a_run_that_a_dead_engine_began_are_its_own_too(stage, ended):
    box = Box(stage).make()
    await at_work(stage)
    await stage.until(100)
    box.put("note", "to do")
    await stage.minutes(0.5)
    await stage.crash()
    (box.folder / "note").write_text("done")
    await stage.until(300 if ended else 140)
    await stage.up()
    await stage.hours(3)
    assert stage.outcomes() == ["done"]
    assert shown(stage) == [["note"]]


@lived
async def test_a_task_that_the_agent_accepts_in_its_run_does_not_ring_again(stage):
    board = Board(stage)
    await at_work(stage, heading("moss", on=board.address))
    await stage.until(90)
    board.put("t1")
    await stage.until(150)
    assert len(stage.seen) == 1
    board.put("t1", status="accepted")
    await stage.hours(2)
    assert shown(stage) == [["t1"]]


# ---- what cannot be read


@lived
async def test_a_folder_that_disappears_and_returns_rings_nobody(stage, caplog):
    box = Box(stage).make()
    box.put("note")
    await at_work(stage)
    await stage.minutes(5)
    away = stage.folder / "away"
    with caplog.at_level(logging.INFO, "wakeful.engine"):
        for _ in range(2):
            box.folder.rename(away)
            await stage.hours(1)
            (row,) = stage.store.sources()
            assert (row.source, row.agent, row.node) == ("inbox", "moss", None)
            assert row.outage == f"{box.folder}: no such folder"
            away.rename(box.folder)
            await stage.hours(1)
    assert stage.store.sources() == []
    assert shown(stage) == [["note"]]
    assert told(stage, "outage", "restored") == ["outage", "restored"] * 2
    words = [record.getMessage() for record in caplog.records if "of moss can" in record.getMessage()]
    assert [line.partition(" of ")[2].split(":")[0] for line in words] == [
        "moss cannot be read", "moss can be read again",
    ] * 2  # fmt: skip


@lived
async def test_a_folder_that_is_away_at_a_start_is_unknown_and_rings_nobody_when_it_is_back(stage):
    box = Box(stage).make()
    box.put("note")
    await at_work(stage)
    await stage.minutes(5)
    await stage.down()
    box.folder.rename(stage.folder / "away")
    await stage.up()
    await stage.hours(1)
    (stage.folder / "away").rename(box.folder)
    await stage.hours(1)
    assert shown(stage) == [["note"]]


@lived
async def test_a_start_while_a_mount_is_away_closes_what_is_there_again_when_it_is_back_and_rings_nobody(stage):
    box = Box(stage).make()
    for name in ("note", "other"):
        box.put(name)
    await at_work(stage)
    await stage.minutes(5)
    share = stage.folder / "share"
    for _ in range(5):
        await stage.down()
        # What is left of a mount is the empty folder below it.
        box.folder.rename(share)
        box.make()
        await stage.up()
        await stage.minutes(5)
        assert {item.state for item in stage.store.items(agent="moss")} == {State.closed}
        box.folder.rmdir()
        share.rename(box.folder)
        await stage.minutes(5)
        assert {item.state for item in stage.store.items(agent="moss")} == {State.open}
    assert [sorted(names) for names in shown(stage)] == [["note", "other"]]
    assert len(stage.store.items(agent="moss")) == 2


@lived
async def test_a_folder_that_is_replaced_by_an_empty_one_and_returns_rings_nobody(stage):
    box = Box(stage).make()
    box.put("note")
    await at_work(stage)
    await stage.minutes(5)
    box.folder.rename(stage.folder / "away")
    box.make()
    await stage.minutes(5)
    box.put("other")
    await stage.minutes(5)
    (box.folder / "other").unlink()
    box.folder.rmdir()
    (stage.folder / "away").rename(box.folder)
    await stage.minutes(5)
    assert shown(stage) == [["note"], ["other"]]
    assert sorted(told(stage, "gone", "returned")) == ["gone", "gone", "returned"]


@pytest.mark.parametrize("place", ["inbox/moss", "deep/down/inbox/moss"])
@lived
async def test_a_folder_that_did_not_exist_at_the_start_rings_when_it_appears(stage, place):
    await at_work(stage, moss(inbox=place))
    await stage.until(1000)
    Box(stage, place).make().put("note")
    await stage.until(1001.5)
    assert shown(stage) == [["note"]]
    # And from then on it is heard like any other.
    await stage.until(2000)
    Box(stage, place).put("other")
    await stage.until(2000.5)
    assert shown(stage) == [["note"], ["other"]]


@lived
async def test_a_folder_whose_parent_was_moved_away_and_made_anew_is_heard_again(stage):
    box = Box(stage).make()
    await at_work(stage)
    await stage.until(1000)
    (stage.folder / "inbox").rename(stage.folder / "elsewhere")
    Box(stage).make()
    # That it is another one is seen by the next look.
    await stage.until(1100)
    box.put("note")
    await stage.until(1100.5)
    assert shown(stage) == [["note"]]


@lived
async def test_a_list_that_disappears_and_returns_rings_nobody(stage):
    board = Board(stage)
    board.put("t1")
    await at_work(stage, heading("moss", on=board.address))
    await stage.minutes(30)
    board.away()
    await stage.minutes(30)
    (row,) = stage.store.sources()
    assert "ended with exit code 1" in row.outage
    board.print()
    await stage.hours(2)
    assert stage.store.sources() == []
    assert shown(stage) == [["t1"]]


@lived
async def test_a_dependency_that_clears_without_a_byte_changed_in_the_item_is_one_wake(stage):
    board = Board(stage)
    board.put("t1", depends_on=["t0"])
    board.put("t0", status="in_progress")
    before = dict(board.tasks["t1"])
    await at_work(stage, heading("moss", on=board.address))
    await stage.hours(1)
    assert stage.seen == []
    board.put("t0", status="verified")
    assert board.tasks["t1"] == before
    await stage.hours(3)
    assert shown(stage) == [["t1"]]
