"""Access to a shared store whose server is silent or away: nothing waits on the event loop, and nobody waits long."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.store.desk import turn
from tests.store.line import line_to
from tests.store.node import PATIENCE, Node, a_schema, count, look, named, nodes, record
from tests.store.postgres_server import dsn
from wakeful.core.errors import Busy
from wakeful.core.items import Kind, NewItem
from wakeful.store import postgres_access, postgres_hints
from wakeful.store.postgres import open_postgres
from wakeful.store.postgres_access import READERS
from wakeful.store.postgres_session import Crowded
from wakeful.testing.contracts.store_case import NOW, a_fleet
from wakeful.testing.postgres import PostgresServer


@pytest.fixture
def schema(tmp_path) -> Iterator[str]:
    with a_schema(tmp_path) as name:
        yield name


def backends(connection, name: str) -> list[int]:
    found = connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = %s", (name,))
    return [pid for (pid,) in found.fetchall()]


def ours() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("wakeful-"))


# ---- away


def test_the_loop_goes_on_while_the_server_is_silent(schema):
    async def act():
        with line_to(dsn()) as line, nodes(schema, line.dsn) as (node,):
            await node.access.read(count)
            line.silence()
            slow = [asyncio.ensure_future(node.access.read(count)) for _ in range(READERS + 1)]
            slow.append(asyncio.ensure_future(node.access.write(record())))
            # Were the loop to wait for the server, this would wake it.
            alarm = threading.Timer(PATIENCE / 2, line.speak)
            alarm.start()
            for _ in range(1_000):
                await turn()
            silent = not any(task.done() for task in slow) and alarm.is_alive()
            alarm.cancel()
            line.speak()
            await asyncio.wait_for(asyncio.gather(*slow), PATIENCE)
            return silent

    assert asyncio.run(act())


def test_while_nobody_answers_all_who_wait_in_line_are_told_after_one_attempt(schema):
    async def act():
        with line_to(dsn(), connect_timeout="2") as line, nodes(schema, line.dsn) as (node,):
            await node.access.read(count)
            line.silence()
            line.cut()
            began = time.monotonic()
            calls = [node.access.write(record()) for _ in range(1_200)] + [node.access.read(count) for _ in range(500)]
            async with asyncio.timeout(PATIENCE):
                answers = await asyncio.gather(*calls, return_exceptions=True)
            lasted = time.monotonic() - began
            line.speak()
            assert await node.access.read(count) == 0
            await node.access.write(record())
            assert await node.access.read(count) == 1
            return {type(answer) for answer in answers}, lasted

    kinds, lasted = asyncio.run(act())
    assert kinds == {Busy}
    # Two attempts at most: one that was under way, and one that a late comer paid for.
    assert lasted < 30


def test_those_who_were_in_each_others_way_share_the_answer_too(schema, monkeypatch):
    """Each of them begins again alone: without sharing, each would pay for an attempt to connect."""
    tries: list[int] = []

    async def act():
        with line_to(dsn(), connect_timeout="2") as line, nodes(schema, line.dsn) as (node,):
            held, opened = threading.Event(), threading.Event()

            def hold(store) -> None:
                held.set()
                assert opened.wait(PATIENCE)

            def crowded(store) -> None:
                tries.append(1)
                if len(tries) == 50:
                    line.silence()
                    line.cut()
                raise Crowded("others")

            async with asyncio.timeout(PATIENCE):
                first = asyncio.ensure_future(node.access.write(hold))
                await asyncio.get_running_loop().run_in_executor(None, held.wait, PATIENCE)
                calls = [asyncio.ensure_future(node.access.write(crowded)) for _ in range(50)]
                await turn()
                opened.set()
                await first
                answers = await asyncio.gather(*calls, return_exceptions=True)
            return [type(answer) for answer in answers]

    began = time.monotonic()
    assert set(asyncio.run(act())) <= {Busy, Crowded}
    assert time.monotonic() - began < 20


def test_what_nobody_waits_for_any_more_is_not_read_and_harms_nobody(schema):
    begun: list[str] = []

    async def act():
        with nodes(schema, dsn()) as (node,):
            gate = threading.Event()

            def wait(store) -> None:
                begun.append("wait")
                assert gate.wait(PATIENCE)

            busy = [asyncio.ensure_future(node.access.read(wait)) for _ in range(READERS)]
            late = asyncio.ensure_future(node.access.read(lambda store: begun.append("late")))
            await turn()
            for task in (late, busy[0]):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            gate.set()
            await asyncio.gather(*busy[1:])
            assert await asyncio.gather(*(node.access.read(count) for _ in range(20))) == [0] * 20

    asyncio.run(act())
    assert begun == ["wait"] * READERS


@pytest.mark.parametrize("error", [StopIteration, KeyboardInterrupt, ZeroDivisionError])
def test_whatever_a_read_raises_its_caller_hears_of_it(schema, error):
    def fail(store):
        raise error

    async def act():
        with nodes(schema, dsn()) as (node,):
            try:
                await asyncio.wait_for(node.access.read(fail), PATIENCE)
            except BaseException as raised:
                assert isinstance(raised, (error, RuntimeError))
            return await node.access.read(count)

    with suppress(KeyboardInterrupt):
        assert asyncio.run(act()) == 0


def test_a_server_that_falls_and_rises_is_away_meanwhile_and_everything_works_again():
    async def act(own):
        first = open_postgres(own.dsn, schema="fleet")
        first.declare(a_fleet("moss"), NOW)
        first.close()
        with nodes("fleet", own.dsn, own.dsn) as (here, there):
            there.watch()
            await here.access.write(record())
            await there.until_seen(1)
            own.kill()
            for node in (here, there):
                with pytest.raises(Busy, match="is away"):
                    await node.access.read(count)
                with pytest.raises(Busy, match="is away"):
                    await node.access.write(record())
            own.start()
            for number in range(2, 5):
                await here.access.write(record())
                await there.until_seen(number)

    with PostgresServer(durable=True) as own:
        asyncio.run(act(own))


# ---- the end


def test_the_end_leaves_neither_thread_nor_connection_and_a_second_one_does_nothing(schema):
    async def act():
        node = Node(named("leaver"), schema)
        await asyncio.gather(*(node.access.read(count) for _ in range(20)), node.access.write(record()))
        assert len([name for name in ours() if name.startswith("wakeful-reader")]) <= READERS
        node.close()
        node.close()
        with pytest.raises(RuntimeError, match="closed"):
            await node.access.read(count)
        with pytest.raises(RuntimeError, match="closed"):
            await node.access.write(record())
        node.access.tell()

    asyncio.run(act())
    assert ours() == []
    with look() as connection:
        deadline = time.monotonic() + PATIENCE
        while backends(connection, "leaver") and time.monotonic() < deadline:
            connection.execute("SELECT pg_stat_clear_snapshot()")
        assert backends(connection, "leaver") == []


def test_its_readers_are_gone_with_the_access_though_the_store_stays_open(schema):
    async def act():
        node = Node(named("stayer"), schema)
        await asyncio.gather(*(node.access.read(count) for _ in range(20)))
        node.access.close()
        with look() as connection:
            deadline = time.monotonic() + PATIENCE
            while len(backends(connection, "stayer")) > 1 and time.monotonic() < deadline:
                connection.execute("SELECT pg_stat_clear_snapshot()")
            left = backends(connection, "stayer")
        assert left == [node.store.session.connection.info.backend_pid]
        assert node.store.record([NewItem(kind=Kind.message, agent="moss")], NOW)
        node.store.close()

    asyncio.run(act())


def test_what_was_queued_is_finished_and_told_of_before_the_end(schema):
    heard: list[str] = []

    async def act(connection):
        node = Node(dsn(), schema)
        # Its hints have a connection when this was asked.
        while not any(word.startswith("?") for word in heard):
            connection.execute("SELECT 1")
        calls = [asyncio.ensure_future(node.access.write(record())) for _ in range(50)]
        await turn()
        node.access.close()
        await asyncio.gather(*calls)
        seen = count(node.store)
        node.store.close()
        connection.execute("SELECT 1")
        return seen

    with look() as connection:
        first = open_postgres(dsn(), schema=schema)
        connection.add_notify_handler(lambda notify: heard.append(notify.payload))
        connection.execute(f"LISTEN {postgres_hints.channel_of(first.session)}")
        first.close()
        assert asyncio.run(act(connection)) == 50
    assert [word.startswith("?") for word in heard][:2] == [True, False]


@pytest.mark.parametrize("cut", [False, True])
def test_the_end_comes_soon_though_the_server_is_silent_and_everybody_is_answered(schema, monkeypatch, cut):
    monkeypatch.setattr(postgres_access, "GRACE", 0.2)
    monkeypatch.setattr(postgres_hints, "GRACE", 0.2)

    async def act():
        with line_to(dsn(), connect_timeout="2" if cut else "30") as line:
            node = Node(line.dsn, schema)
            everybody = threading.Barrier(READERS)
            await node.access.write(count)
            # Each of them has its connection.
            await asyncio.gather(*(node.access.read(lambda store: everybody.wait(PATIENCE)) for _ in range(READERS)))
            line.silence()
            if cut:
                line.cut()
            begun = threading.Semaphore(0)

            def stuck(store) -> int:
                begun.release()
                return count(store)

            calls = [node.access.write(stuck) for _ in range(1_100)] + [node.access.read(stuck) for _ in range(20)]
            tasks = [asyncio.ensure_future(call) for call in calls]
            await turn()
            for _ in range(0 if cut else READERS + 1):
                assert begun.acquire(timeout=PATIENCE)
            began = time.monotonic()
            node.close()
            lasted = time.monotonic() - began
            answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), PATIENCE)
            return lasted, {type(answer) for answer in answers}

    lasted, kinds = asyncio.run(act())
    assert lasted < 15
    assert kinds <= {Busy, RuntimeError}
    assert ours() == []
