"""A start that takes its time, a run that was taken: what is no longer ours is ended, and never executes."""

from dataclasses import replace

import pytest

from tests.engine.stage import MINUTE, SECOND, heading, lived
from wakeful.core.runs import FENCING
from wakeful.core.settlement import settle
from wakeful.store.protocol import Finish
from wakeful.testing.loop import passes
from wakeful.testing.runner import done

NAMES = ("wren", "moss", "finch", "alder")


async def slowly(order):
    await passes(40)


@lived
async def test_a_start_that_takes_longer_than_a_lease_is_renewed_meanwhile(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), grace="2h")
    await company.up()
    one.before = slowly
    await one.begin("wren")
    await one.until(40)
    assert (one.seen, two.seen, len(one.holding)) == ([], [], 1)
    await one.until(42)
    assert [seen.at for seen in one.seen] == [41]
    await one.until(200)
    assert one.outcomes() == ["done"]
    assert two.seen == []


@lived
async def test_a_start_that_was_taken_meanwhile_never_executes(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), grace="2h")
    await company.up()
    one.before = slowly
    await one.begin("wren")
    await one.until(5)
    one.away = True
    await two.until(35)
    assert [seen.agent for seen in two.seen] == ["wren"]
    one.away = False
    await one.until(60)
    assert one.seen == []
    assert one.holding == []
    await two.until(200)
    assert two.outcomes() == ["killed", "done"]


async def ended_elsewhere(company, run):
    end = Finish(run=run.id, epoch=run.epoch, ending=replace(done(), by="ada"))
    two = company.nodes[1]
    await two.access.write(lambda store: store.finish([end], settle, two.now), quiet=True)


@lived
async def test_a_run_that_somebody_else_has_ended_is_ended_here_and_followed_no_further(company, caplog):
    one, _ = company.nodes
    await company.at_work(NAMES)
    await one.until(20)
    (run, *others) = one.store.runs()
    await ended_elsewhere(company, run)
    await one.until(22.5)
    assert f"run {run.id} of {run.agent} is no longer ours" in caplog.text
    assert run.id not in one.holding
    assert sorted(one.holding) == sorted(other.id for other in others)
    assert one.carrier.ends == [(run.id, FENCING, True)]
    assert company.overlaps() == []
    assert "refused" not in caplog.text


@pytest.mark.parametrize("executed", [False, True])
@lived
async def test_a_start_that_somebody_else_has_ended_comes_to_nothing(company, caplog, executed):
    one, _ = company.nodes
    company.declare(heading("wren", interval="2h"), grace="2h")
    await company.up()
    one.all_end(done(), duration=5 * MINUTE)

    async def a_little(order):
        await passes(8.5)

    one.before, one.after = (None, a_little) if executed else (a_little, None)
    await one.begin("wren")
    (run,) = one.store.runs()
    await ended_elsewhere(company, run)
    # Its lease would have lasted.
    await one.until(15)
    assert [seen.run for seen in one.seen] == ([run.id] if executed else [])
    assert set(one.carrier.ends) == ({(run.id, FENCING, True)} if executed else set())
    assert one.holding == []
    assert caplog.text.count("no longer ours") == 1
    assert "refused" not in caplog.text


@lived
async def test_an_end_whose_answer_is_late_is_not_mistaken_for_a_run_that_was_taken(company, caplog):
    one, _ = company.nodes
    await company.at_work(NAMES, 9 * SECOND)

    async def late(number):
        await passes(5)

    await one.until(18.9)
    one.access.after = late
    await one.until(40)
    one.access.after = None
    assert one.carrier.ends == []
    assert "no longer ours" not in caplog.text
    assert one.outcomes() == ["done"] * 4
