"""Leases of tasks among nodes: kept for as long as the task takes, taken back soon when nobody keeps them."""

from datetime import timedelta

from tests.engine.stage import MINUTE, SECOND, heading, lived
from wakeful.core.items import Kind, NewItem, State
from wakeful.engine.presence import LEASE
from wakeful.testing.runner import done

SOON = timedelta(seconds=5)


async def a_task_on_one(company, length):
    """Under way on the first node; the second could do it as well."""
    one, two = company.nodes
    company.declare(heading("wren", tasks="index"), heading("moss", tasks="index"))
    for node in (one, two):
        node.all_end(done(), duration=length)
    await company.up()
    with company.unheard():
        new = NewItem(kind=Kind.task, role="index", subject="all of the archive")
        (row,) = await one.access.write(lambda store: store.record([new], one.now))
        await one.until(2)
    (run,) = one.store.runs(open=True)
    assert (run.node, run.tasks) == ("one", (row.id,))
    return row.id


@lived
async def test_the_lease_of_a_task_is_renewed_for_as_long_as_the_task_takes(company):
    one, two = company.nodes
    assert 10 * LEASE < 5 * MINUTE
    task = await a_task_on_one(company, 5 * MINUTE)
    for seconds in range(15, 300, 15):
        await one.until(seconds)
        assert one.store.item(task).state is State.in_progress
        assert one.store.orphans(one.now) == two.store.orphans(one.now) == []
    await one.until(310)
    assert (one.store.item(task).state, one.store.item(task).attempts) == (State.completed, 1)
    assert (len(one.seen), two.seen) == (1, [])


@lived
async def test_the_task_of_a_node_that_died_is_taken_back_within_five_seconds_of_the_end_of_its_lease(company):
    one, two = company.nodes
    task = await a_task_on_one(company, 29 * MINUTE)
    await one.until(30)
    await one.crash()
    died = two.now
    while two.store.attempts(task)[0].ended_at is None:
        assert two.now < died + LEASE + SOON
        await two.until(two.elapsed + 1)
    attempt = two.store.attempts(task)[0]
    assert (attempt.error, attempt.counted) == ("its node was gone", True)
    assert attempt.ended_at <= died + LEASE + SOON
    # Renewed two seconds before it died at the earliest: nobody took it while its lease lasted.
    assert attempt.ended_at >= died - 2 * SECOND + LEASE


@lived
async def test_what_a_node_says_of_a_task_that_was_taken_from_it_is_refused(company, caplog):
    one, two = company.nodes
    task = await a_task_on_one(company, MINUTE)
    two.all_end(done("by two"), duration=10 * SECOND)
    await one.until(30)
    one.freeze()
    await two.until(120)
    ended = two.store.item(task)
    assert (ended.state, ended.attempts) == (State.completed, 2)
    one.thaw()
    await one.until(130)
    assert one.holding == []
    assert two.store.item(task) == ended
    assert [attempt.outcome.value for attempt in two.store.attempts(task)] == ["killed", "done"]
    assert "refused" in caplog.text
