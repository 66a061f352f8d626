"""A node that dies, freezes or comes back: its agents run elsewhere soon, and never twice at once."""

import asyncio

import pytest

from tests.engine.stage import MINUTE, SECOND, heading, lived
from wakeful.core.items import Kind, NewItem
from wakeful.core.runs import TaskEnd
from wakeful.runners.protocol import Checked
from wakeful.testing.loop import passes
from wakeful.testing.runner import Plan, done

NAMES = ("wren", "moss", "finch", "alder")


async def never(order):
    await asyncio.Event().wait()


def reasons(node):
    return [(run.agent, run.node, run.outcome and run.outcome.value, run.reason) for run in node.store.runs()]


# ---- a crash


@lived
async def test_the_runs_of_a_node_that_died_are_ended_and_run_elsewhere_within_thirty_seconds(company):
    one, two = company.nodes
    await company.at_work(NAMES)
    await one.until(30)
    await one.crash()
    await two.until(60)
    assert sorted(seen.agent for seen in two.seen) == sorted(NAMES)
    # Whoever is silent for twenty seconds is gone; its guardians were fifteen seconds after the last word.
    assert all(48 <= seen.at <= 30 + 26 for seen in two.seen), two.seen
    assert all(43 <= end <= 46 for _, _, end in one.lives()), one.lives()
    assert company.overlaps() == []
    lost = [row for row in reasons(two) if row[1] == "one"]
    assert sorted(lost) == sorted((name, "one", "killed", "its node was gone") for name in NAMES)
    assert [two.standing(name).failure_streak for name in NAMES] == [1] * 4
    await two.until(400)
    assert two.outcomes() == ["killed"] * 4 + ["done"] * 4
    assert [two.standing(name).failure_streak for name in NAMES] == [0] * 4


@lived
async def test_a_check_that_takes_its_time_does_not_hold_up_what_a_dead_node_left(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), heading("moss", interval="2h", check="look"), grace="20s")

    async def long(agent):
        await passes(600)
        return Checked(wake=False)

    for node in company.nodes:
        node.all_end(done(), duration=5 * MINUTE)
        node.checks = long
    await company.up()
    await one.begin("wren")
    await one.until(58)
    assert two.asked == ["moss"]
    await one.crash()
    await two.until(58 + 30)
    assert [seen.agent for seen in two.seen] == ["wren"]


@lived
async def test_what_takes_its_node_with_it_each_time_is_tried_at_once_only_the_first_time(company):
    one, two = company.nodes
    company.declare(heading("wren", interval="10m"), grace="2h")
    for node in company.nodes:
        node.all_end(done(), duration=5 * MINUTE)
    await company.up()
    await one.begin("wren")
    await one.until(20)
    await one.crash()
    await two.until(60)
    (second,) = two.seen
    # It comes back where the first died, and the second dies of it.
    await one.up()
    await one.until(70)
    await two.crash()
    await one.until(70 + 30)
    assert [run.reason for run in one.store.runs()] == ["its node was gone"] * 2
    assert len(one.seen) == 1
    assert one.standing().failure_streak == 2
    await one.until(second.at + 900)
    assert len(one.seen) == 2
    assert company.overlaps() == []


@lived
async def test_the_tasks_of_a_shift_that_had_ended_stay_ended_and_the_others_are_done_elsewhere(company):
    one, two = company.nodes
    company.declare("* moss\n:PROPERTIES:\n:HANDLER: package.module:function\n:TASKS: write\n:END:\n")

    def shift(order):
        ends = [(SECOND * 10 * (n + 1), TaskEnd(task=task.id, ending=done())) for n, task in enumerate(order.tasks)]
        return Plan(duration=SECOND * 61, ending=done(), tasks=tuple(ends))

    one.script = two.script = shift
    await company.up()
    new = [NewItem(kind=Kind.task, role="write", subject=f"task {n}") for n in range(4)]
    with company.unheard():
        ids = [row.id for row in await one.access.write(lambda store: store.record(new, one.now))]
        await one.until(2)
    await one.until(25)
    assert [one.store.item(id).state.value for id in ids] == ["completed"] * 2 + ["in_progress"] * 2
    await one.crash()
    await two.until(50)
    # By now it is known how long they take: one at a time.
    assert [two.store.item(id).state.value for id in ids[:3]] == ["completed"] * 2 + ["in_progress"]
    assert [task.id for task in two.carrier.runner.guardians[two.seen[0].run].order.tasks] == ids[2:3]
    await two.until(250)
    assert [two.store.item(id).state.value for id in ids] == ["completed"] * 4
    assert [two.store.item(id).attempts for id in ids] == [1, 1, 2, 2]


@pytest.mark.parametrize("away", [2, 12])
@lived
async def test_a_node_that_is_back_before_its_leases_end_adopts_its_runs_and_loses_nothing(company, away):
    one, two = company.nodes
    await company.at_work(NAMES)
    await one.until(31)
    await one.crash()
    await one.until(31 + away)
    await one.up()
    assert len(one.holding) == 4
    await one.until(400)
    assert two.seen == []
    assert len(one.seen) == 4
    assert one.outcomes() == ["done"] * 4
    assert {end - start for _, start, end in one.lives()} == {300}


@lived
async def test_a_node_that_leaves_and_is_back_soon_loses_nothing_either(company):
    one, two = company.nodes
    await company.at_work(NAMES)
    await one.until(32.9)
    await one.down()
    # Its last word was as late as it left.
    await one.until(32.9 + 14.5)
    await one.up()
    assert list(one.carrier.leases.values()) == pytest.approx([32.9 + 14.5 + 20] * 4)
    await one.until(400)
    assert two.seen == []
    assert one.outcomes() == ["done"] * 4


@lived
async def test_what_is_slow_to_be_adopted_has_the_lease_that_was_renewed_meanwhile(company):
    one, _ = company.nodes
    await company.at_work(NAMES)
    await one.until(32.9)
    await one.down()
    await one.until(32.9 + 14.5)
    adopt = one.carrier.adopt

    async def slowly(run):
        await passes(0.3)
        return await adopt(run)

    one.carrier.adopt = slowly
    await one.up()
    await one.until(400)
    assert one.outcomes() == ["done"] * 4


@lived
async def test_a_node_that_is_back_too_late_finds_that_its_runs_were_taken_and_goes_on(company):
    one, two = company.nodes
    await company.at_work(NAMES)
    await one.until(30)
    await one.crash()
    await one.until(70)
    assert len(two.seen) == 4
    await one.up()
    assert one.holding == []
    await one.until(400)
    assert two.outcomes() == ["killed"] * 4 + ["done"] * 4
    assert company.overlaps() == []
    # And is as good as any other.
    await one.begin("wren")
    assert one.seen[-1].agent == "wren"


@lived
async def test_a_claim_that_nobody_began_is_made_good_by_the_same_node_or_by_another(company):
    """Claimed and gone before there was a process: void where the node comes back, an orphan where it does not."""
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), heading("moss", interval="2h"), grace="2h")
    await company.up()
    one.before = never
    await one.begin("wren")
    await one.until(5)
    await one.crash()
    await one.until(10)
    one.before = None
    await one.up()
    await one.until(12)
    assert [run.state for run in one.store.runs(agent="wren")] == ["void", "running"]
    assert [seen.agent for seen in (*one.seen, *two.seen)] == ["wren"]
    one.before = never
    await one.begin("moss")
    await one.until(14)
    await one.crash()
    await two.until(45)
    assert [seen.agent for seen in two.seen if seen.agent == "moss"] == ["moss"]
    assert [run.state for run in one.store.runs(agent="moss")] == ["ended", "running"]
    assert company.overlaps() == []


# ---- a node that stands still


@lived
async def test_a_frozen_node_cannot_settle_what_was_taken_from_it(company, caplog):
    one, two = company.nodes
    await company.at_work(NAMES)
    await one.until(30)
    one.freeze()
    await two.until(90)
    assert sorted(seen.agent for seen in two.seen) == sorted(NAMES)
    assert company.overlaps() == []
    one.thaw()
    await one.until(91)
    assert one.holding == []
    assert "refused" in caplog.text
    told = reasons(one)
    assert sorted(told[:4]) == sorted((name, "one", "killed", "its node was gone") for name in NAMES)
    assert {row[1:3] for row in told[4:]} == {("two", None)}
    await one.until(500)
    assert two.outcomes() == ["killed"] * 4 + ["done"] * 4
    assert company.overlaps() == []


@lived
async def test_what_was_claimed_too_long_after_it_was_asked_for_never_executes(company):
    """The lease counts from before the claim: where that took too long there is nothing left of it."""
    one, two = company.nodes
    company.declare(heading("wren", interval="2h"), grace="12s")
    await company.up()
    two.away = True
    await one.until(11)

    async def slow(number):
        one.access.before = None
        await passes(17)

    one.access.before = slow
    await one.until(12 + 17 + 1)
    (first, second) = one.store.runs()
    assert (first.state, second.state) == ("void", "running")
    assert [seen.run for seen in one.seen] == [second.id]
    await one.until(100)
    assert one.outcomes() == ["done"]


@lived
async def test_a_renewal_whose_answer_is_late_lengthens_nothing(company):
    """What was granted was granted when it was asked for, and not when we heard of it."""
    one, two = company.nodes
    await company.at_work(NAMES)

    async def late(number):
        one.access.after = None
        await passes(9)
        one.away = True

    await one.until(29.9)
    one.access.after = late
    await two.until(80)
    assert all(end <= 32 + 15 for _, _, end in one.lives()), one.lives()
    assert sorted(seen.agent for seen in two.seen) == sorted(NAMES)
    assert company.overlaps() == []
