"""Whoever watches the writer is told of commits: after them, and of several as of one."""

import asyncio

import pytest

from tests.store.desk import PATIENCE, DiskFull, record, turn
from wakeful.core.errors import Conflict


class Ear:
    """Hears of commits, on the loop on which it was made."""

    def __init__(self, desk) -> None:
        self.heard = 0
        self._changed = asyncio.Event()
        desk.writer.watch(self._hear)

    def _hear(self):
        self.heard += 1
        self._changed.set()

    async def until(self, times):
        while self.heard < times:
            await asyncio.wait_for(self._changed.wait(), PATIENCE)
            self._changed.clear()


def test_several_commits_that_the_loop_has_not_heard_of_are_told_as_one(desk):
    async def watch():
        ear = Ear(desk)
        # The loop is kept from hearing: it waits for three commits.
        for number in range(3):
            desk.record(f"k{number}").result(PATIENCE)
        assert ear.heard == 0
        await ear.until(1)
        await desk.writer.write(record("k9"))
        await ear.until(2)
        return ear.heard

    assert asyncio.run(watch()) == 2


def test_of_a_commit_that_failed_nobody_is_told(desk):
    async def watch():
        ear = Ear(desk)
        desk.gate.fails = True
        with pytest.raises(DiskFull):
            await desk.writer.write(record("k1"))
        desk.gate.fails = False
        with pytest.raises(ZeroDivisionError):
            await desk.writer.write(lambda store: 1 / 0)
        assert ear.heard == 0
        await desk.writer.write(record("k2"))
        await ear.until(1)
        return ear.heard

    assert asyncio.run(watch()) == 1


def test_of_quiet_calls_nobody_is_told_but_of_a_group_in_which_one_is_not(desk):
    async def watch():
        ear = Ear(desk)
        for number in range(3):
            await desk.writer.write(record(f"k{number}"), quiet=True)
        desk.writer.submit(record("k3"), quiet=True).result(PATIENCE)
        # There is one writing thread: whatever follows from a call has followed when the next one is answered.
        await desk.writer.write(record("k4"), quiet=True)
        assert ear.heard == 0
        desk.gate.close()
        group = [asyncio.ensure_future(desk.writer.write(record(f"g{part}"), quiet=part != 1)) for part in range(3)]
        await turn()
        desk.gate.open()
        await asyncio.gather(*group)
        await ear.until(1)
        return ear.heard

    assert asyncio.run(watch()) == 1


def test_a_quiet_call_that_succeeds_beside_a_loud_one_that_fails_is_quiet(desk):
    async def watch():
        ear = Ear(desk)
        await desk.writer.write(record("k1", "one"), quiet=True)
        desk.gate.close()
        first = asyncio.ensure_future(desk.writer.write(record("k2"), quiet=True))
        await asyncio.to_thread(desk.gate.reached.wait, PATIENCE)
        loud = asyncio.ensure_future(desk.writer.write(record("k1", "another")))
        quiet = asyncio.ensure_future(desk.writer.write(record("k3"), quiet=True))
        await turn()
        desk.gate.open()
        await asyncio.gather(first, quiet)
        with pytest.raises(Conflict):
            await loud
        await desk.writer.write(record("k4"), quiet=True)
        return ear.heard

    assert asyncio.run(watch()) == 0


def test_any_thread_may_tell_whoever_watches(desk):
    async def watch():
        ear = Ear(desk)
        for number in range(1, 4):
            await asyncio.to_thread(desk.writer.tell)
            await ear.until(number)
        return ear.heard

    assert asyncio.run(watch()) == 3


def test_a_watcher_whose_loop_is_closed_does_not_stop_the_writer_nor_other_watchers(desk):
    async def watch():
        return Ear(desk)

    async def watch_and_write():
        ear = Ear(desk)
        await desk.writer.write(record("k1"))
        await ear.until(1)
        return ear

    gone = asyncio.run(watch())
    assert asyncio.run(watch_and_write()).heard == 1
    assert desk.record("k2").result(PATIENCE)
    assert gone.heard == 0
