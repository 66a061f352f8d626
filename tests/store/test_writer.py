"""The group-commit writer: durable first, then told; each call a part of its own; the group a matter of speed only."""

import asyncio

import apsw
import pytest

from tests.store.desk import PATIENCE, DiskFull, record
from wakeful.core.errors import Busy, Conflict, Sick
from wakeful.store.writer import MOST_IN_GROUP

# ---- sharing


def test_callers_that_arrive_during_a_commit_share_the_next_one(desk):
    held = desk.hold_a_commit()
    futures = [desk.record(f"k{number}") for number in range(20)]
    desk.gate.open()
    ids = [future.result(PATIENCE)[0].id for future in (held, *futures)]
    assert desk.gate.commits == 2
    assert ids == list(range(1, 22))


def test_coroutines_that_arrive_during_a_commit_share_the_next_one(desk):
    desk.hold_a_commit()

    async def open_gate():
        desk.gate.open()

    async def callers():
        calls = [desk.writer.write(record(f"k{number}")) for number in range(20)]
        return await asyncio.gather(*calls, open_gate())

    *answers, _ = asyncio.run(callers())
    assert desk.gate.commits == 2
    assert len({answer[0].id for answer in answers}) == 20


def test_coroutines_and_threads_share_one_commit(desk):
    desk.hold_a_commit()
    future = desk.record("thread")

    async def open_gate():
        desk.gate.open()

    async def callers():
        await asyncio.gather(desk.writer.write(record("coroutine")), open_gate())

    asyncio.run(callers())
    assert future.result(PATIENCE)
    assert desk.gate.commits == 2
    assert desk.keys() == ["held", "thread", "coroutine"]


def test_sixty_four_callers_need_at_most_an_eighth_of_the_commits(desk):
    async def caller(number):
        for part in range(10):
            await desk.writer.write(record(f"{number}/{part}"))

    async def callers():
        await asyncio.gather(*(caller(number) for number in range(64)))

    asyncio.run(callers())
    assert len(desk.keys()) == 640
    assert desk.gate.commits <= 80


def test_a_group_is_bounded_so_that_the_first_need_not_wait_for_a_flood(desk):
    desk.hold_a_commit()
    futures = [desk.record(f"k{number}") for number in range(MOST_IN_GROUP + 1)]
    desk.gate.open()
    for future in futures:
        future.result(PATIENCE)
    assert desk.gate.commits == 3


# ---- durable first, then told


def test_nobody_is_answered_before_the_commit_that_holds_the_call(desk):
    held = desk.hold_a_commit()
    futures = [held, *(desk.record(f"k{number}") for number in range(5))]
    seen = []
    # Looked at just before each commit: how many are told, how many any reader can see.
    desk.gate.look = lambda: seen.append((sum(future.done() for future in futures), len(desk.keys())))
    desk.gate.open()
    for future in futures:
        future.result(PATIENCE)
    assert seen == [(0, 0), (1, 1)]


def test_what_was_answered_is_there_for_every_reader(desk):
    desk.record("k1").result(PATIENCE)
    assert desk.keys() == ["k1"]


# ---- failing alone


def test_a_call_that_fails_is_rolled_back_alone_and_only_its_caller_is_told(desk):
    desk.hold_a_commit()
    before, taken, after = desk.record("k1", "one"), desk.record("k1", "another"), desk.record("k2")
    desk.gate.open()
    assert before.result(PATIENCE)[0].id == 2
    with pytest.raises(Conflict, match="k1"):
        taken.result(PATIENCE)
    assert after.result(PATIENCE)[0].id == 3
    assert desk.gate.commits == 2
    assert [item.body for item in desk.store.items()] == ["", "one", ""]


def test_a_call_that_fails_after_its_first_verb_leaves_nothing_of_it(desk):
    def half(store):
        record("half")(store)
        raise ValueError("changed my mind")

    desk.hold_a_commit()
    future, other = desk.writer.submit(half), desk.record("k2")
    desk.gate.open()
    with pytest.raises(ValueError, match="changed my mind"):
        future.result(PATIENCE)
    assert other.result(PATIENCE)
    assert desk.keys() == ["held", "k2"]


def test_the_error_reaches_a_coroutine_too(desk):
    async def caller():
        await desk.writer.write(record("k1", "one"))
        await desk.writer.write(record("k1", "another"))

    with pytest.raises(Conflict):
        asyncio.run(caller())
    assert desk.keys() == ["k1"]


# ---- failing together


def test_a_commit_that_fails_fails_all_its_callers_and_nothing_is_kept(desk):
    held = desk.hold_a_commit()
    desk.gate.fails = True
    futures = [desk.record(f"k{number}") for number in range(3)]
    desk.gate.open()
    for future in (held, *futures):
        with pytest.raises(DiskFull):
            future.result(PATIENCE)
    assert desk.keys() == []


def test_the_writer_goes_on_after_a_commit_that_failed(desk):
    desk.gate.fails = True
    with pytest.raises(DiskFull):
        desk.record("k1").result(PATIENCE)
    desk.gate.fails = False
    assert not desk.record("k1").result(PATIENCE)[0].duplicate
    assert desk.keys() == ["k1"]


def test_an_engine_that_gives_up_the_whole_transaction_fails_the_whole_group_and_nothing_is_kept(desk):
    def give_up(store):
        # What SQLite does by itself on some errors, such as a full disk or no memory.
        store.session.connection.execute("ROLLBACK")
        raise DiskFull("no space left on device")

    desk.hold_a_commit()
    futures = [desk.record("k1"), desk.writer.submit(give_up), desk.record("k2")]
    desk.gate.open()
    for future in futures:
        with pytest.raises(DiskFull):
            future.result(PATIENCE)
    assert desk.keys() == ["held"]
    assert desk.record("k3").result(PATIENCE)


def test_a_disk_that_is_full_fails_who_met_it_and_the_writer_goes_on_when_there_is_room(desk):
    raw = desk.store.session.connection
    pages, page_size = raw.pragma("page_count"), raw.pragma("page_size")
    raw.pragma("max_page_count", pages + 2)
    with pytest.raises(Sick):
        desk.record("k1", "x" * 10 * page_size).result(PATIENCE)
    with pytest.raises(Sick):
        asyncio.run(desk.writer.write(record("k1", "x" * 10 * page_size)))
    assert desk.keys() == []
    raw.pragma("max_page_count", pages + 1_000)
    desk.record("k1", "x" * 10 * page_size).result(PATIENCE)
    assert desk.keys() == ["k1"]


def test_a_database_that_another_process_has_locked_fails_who_met_it_and_the_writer_goes_on(desk):
    desk.store.session.connection.set_busy_timeout(1)
    other = apsw.Connection(str(desk.store.session.path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy):
        desk.record("k1").result(PATIENCE)
    other.execute("ROLLBACK")
    other.close()
    assert desk.record("k1").result(PATIENCE)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, StopIteration])
def test_whatever_a_call_raises_its_group_is_answered_and_the_writer_goes_on(desk, error):
    def fail(store):
        raise error

    async def callers():
        desk.gate.open()
        calls = [desk.writer.write(fail), desk.writer.write(record("k1"))]
        return await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), PATIENCE)

    desk.hold_a_commit()
    future = desk.writer.submit(fail)
    desk.gate.open()
    with pytest.raises(BaseException) as raised:
        future.result(PATIENCE)
    assert isinstance(raised.value, (error, RuntimeError))
    if error in (asyncio.CancelledError, StopIteration):
        failed, recorded = asyncio.run(callers())
        assert isinstance(failed, (error, RuntimeError))
        assert recorded[0].id
    assert desk.record("k2").result(PATIENCE)


# ---- callers that give up, and the end


def test_a_thread_that_gave_up_waiting_does_not_stop_the_writer(desk):
    desk.hold_a_commit()
    given_up, other = desk.record("k1"), desk.record("k2")
    assert given_up.cancel()
    desk.gate.open()
    assert other.result(PATIENCE)
    assert desk.record("k3").result(PATIENCE)


def test_a_coroutine_that_was_cancelled_or_whose_loop_is_closed_does_not_stop_the_writer(desk):
    desk.hold_a_commit()
    loop = asyncio.new_event_loop()
    task = loop.create_task(desk.writer.write(record("k1")))
    loop.call_soon(task.cancel)
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()
    desk.gate.open()
    assert desk.record("k2").result(PATIENCE)


def test_close_finishes_what_was_queued_and_a_second_close_does_nothing(desk):
    desk.hold_a_commit()
    futures = [desk.record(f"k{number}") for number in range(10)]
    desk.gate.open()
    desk.writer.close()
    assert all(future.done() for future in futures)
    assert len(desk.keys()) == 11
    desk.writer.close()


def test_a_call_after_close_is_refused_instead_of_left_waiting(desk):
    desk.writer.close()
    with pytest.raises(RuntimeError, match="closed"):
        desk.record("k1")
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(desk.writer.write(record("k2")))


def test_what_would_be_written_outside_a_transaction_is_refused_here(desk):
    with pytest.raises(AssertionError, match="is a transaction by itself"):
        desk.store.session.write("forget_item", item=1)
