"""Whoever watches the writer is told of commits: after them, and of several as of one."""

import asyncio

import pytest

from tests.store.desk import PATIENCE, DiskFull, record


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
