"""Hints in a burst are one hint; and no burst, however long, is waited out."""

import asyncio

import pytest

from wakeful.sources.directory import LATEST, QUIET, Bell
from wakeful.testing.loop import live, passes


async def heard(bell, limit=100.0):
    """When it was heard."""
    await bell.heard(limit)
    return asyncio.get_running_loop().time()


def test_it_is_heard_after_a_moment_of_quiet():
    async def scenario():
        bell = Bell()
        waiting = asyncio.ensure_future(heard(bell))
        await passes(3)
        bell.ring()
        assert await waiting == pytest.approx(3 + QUIET)

    live(scenario)


def test_a_burst_is_heard_once_after_its_end():
    async def scenario():
        bell = Bell()
        waiting = asyncio.ensure_future(heard(bell))
        for _ in range(10):
            bell.ring()
            await passes(QUIET / 2)
        assert await waiting == pytest.approx(9 * QUIET / 2 + QUIET)
        assert await heard(bell, 5) == pytest.approx(9 * QUIET / 2 + QUIET + 5)

    live(scenario)


def test_a_burst_without_end_is_heard_after_a_second():
    async def scenario():
        bell = Bell()

        async def rings():
            while True:
                bell.ring()
                await passes(QUIET / 5)

        ringing = asyncio.ensure_future(rings())
        times = [await heard(bell) for _ in range(3)]
        ringing.cancel()
        assert times == pytest.approx([LATEST, 2 * LATEST, 3 * LATEST], abs=QUIET)

    live(scenario)


def test_what_rings_while_nobody_waits_is_heard_by_the_next_who_does():
    async def scenario():
        bell = Bell()
        bell.ring()
        await passes(3)
        assert await heard(bell) == pytest.approx(3 + QUIET)

    live(scenario)


def test_without_a_ring_the_limit_holds():
    async def scenario():
        assert await heard(Bell(), 60) == pytest.approx(60)

    live(scenario)


def test_a_muted_bell_holds_up_nobody():
    async def scenario():
        bell = Bell()
        waiting = asyncio.ensure_future(heard(bell))
        await passes(1)
        bell.mute()
        assert await waiting == pytest.approx(1)
        assert await heard(bell) == pytest.approx(1)

    live(scenario)
