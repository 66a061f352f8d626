"""Whoever decides beside the engine: what is admitted there is begun here, without a look for it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.stage import Stage, heading, lived
from wakeful.core.admission import admit
from wakeful.core.wakes import Cause, Subject, Wake
from wakeful.store.protocol import Store
from wakeful.testing.loop import passes

Claim = Callable[[Store, Any], None]


def ticking(stage: Stage, claim: Claim, agent: str = "wren") -> Callable[[Store], int | None]:
    """A transaction that admits a run and claims it."""

    def verb(store: Store) -> int | None:
        now = stage.now
        wake = Wake(agent=agent, cause=Cause.operator, subject=Subject.beat, requested_at=now, sender="operator")
        decision = store.decide([wake], admit, now)[0]
        if decision.run is not None:
            claim(store, now)
        return decision.run

    return verb


@lived
async def test_what_is_admitted_beside_the_engine_is_claimed_by_the_same_commit(stage):
    stage.declare(heading("wren", interval="1d"))
    engine = await stage.up()
    states = []

    async def write(claim):
        run = await stage.access.write(ticking(stage, claim))
        states.append((await stage.access.read(lambda store: store.run(run or 0))).state)
        return run

    run = await engine.taking(write)
    assert states == ["running"]
    await stage.until(stage.clock.elapsed() + 1)
    assert [seen.run for seen in stage.seen] == [run]


@lived
async def test_a_run_is_begun_although_its_caller_has_given_up(stage):
    stage.declare(heading("wren", interval="1d"))
    engine = await stage.up()
    reached = asyncio.Event()

    async def write(claim):
        reached.set()
        await passes(1)
        return await stage.access.write(ticking(stage, claim))

    caller = asyncio.ensure_future(engine.taking(write))
    await reached.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await stage.until(stage.clock.elapsed() + 2)
    assert [seen.agent for seen in stage.seen] == ["wren"]


@lived
async def test_an_engine_that_leaves_waits_for_those_who_decide_beside_it(stage):
    stage.declare(heading("wren", interval="1d"))
    engine = await stage.up()

    async def write(claim):
        await passes(1)
        return await stage.access.write(ticking(stage, claim))

    caller = asyncio.ensure_future(engine.taking(write))
    await passes(0)
    await stage.down(drain=True)
    assert caller.done() and [seen.run for seen in stage.seen] == [caller.result()]
    assert stage.store.runs(open=True) == []


@lived
async def test_a_decision_that_fails_begins_nothing(stage):
    stage.declare(heading("wren", interval="1d"))
    engine = await stage.up()

    async def write(claim):
        verb = ticking(stage, claim)

        def failing(store: Store) -> None:
            verb(store)
            raise OSError("the disk is full")

        await stage.access.write(failing)
        return None

    with pytest.raises(OSError, match="full"):
        await engine.taking(write)
    await stage.until(stage.clock.elapsed() + 10)
    assert stage.seen == [] and stage.store.runs(open=True) == []


@lived
async def test_what_was_claimed_in_a_commit_whose_answer_was_lost_is_found_again(stage):
    stage.declare(heading("wren", interval="1d"))
    engine = await stage.up()

    async def write(claim):
        await stage.access.write(ticking(stage, claim))
        raise OSError("the line went dead")

    with pytest.raises(OSError, match="dead"):
        await engine.taking(write)
    await stage.until(stage.clock.elapsed() + 60)
    # It never executed: its start is vetoed, and it is decided again.
    assert [seen.agent for seen in stage.seen] == ["wren"]
    assert stage.store.runs(open=True) == [] or stage.seen[-1].run == stage.store.runs(open=True)[0].id
