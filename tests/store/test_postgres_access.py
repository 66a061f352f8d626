"""Access to a shared store: whoever watches, here or at another node, hears of commits; also of those of a command."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from tests.store.node import PATIENCE, a_schema, count, look, named, nodes, record
from tests.store.postgres_server import dsn, release, store_in
from wakeful.core.errors import Conflict
from wakeful.store import postgres_access, postgres_hints
from wakeful.store.postgres import open_postgres
from wakeful.store.postgres_access import PostgresInline
from wakeful.store.postgres_hints import PAUSE
from wakeful.store.postgres_session import Crowded


@pytest.fixture
def schema(tmp_path) -> Iterator[str]:
    with a_schema(tmp_path) as name:
        yield name


# ---- told


def test_a_commit_is_told_to_whoever_watches_here_and_at_other_nodes(schema):
    async def act():
        with nodes(schema, dsn(), dsn()) as (here, there):
            here.watch()
            there.watch()
            # The first of a connection is no hint of a commit; so there are several.
            for number in range(1, 6):
                await here.access.write(record())
                await there.until_seen(number)
                await here.until_seen(number)

    asyncio.run(act())


def test_of_quiet_calls_and_of_what_failed_nobody_is_told_and_of_a_group_with_a_loud_one_everybody(schema, monkeypatch):
    async def act():
        with nodes(schema, dsn()) as (node,):
            sent: list[str] = []
            told: list[str] = []
            monkeypatch.setattr(node.access._hints, "send", lambda: sent.append("told"))
            monkeypatch.setattr(node.access, "tell", lambda: told.append("told"))
            for number in range(3):
                await node.access.write(record(key=f"k{number}"), quiet=True)
            with pytest.raises(Conflict):
                await node.access.write(record("other", "k0"))
            # There is one writing thread: whatever follows from a call has followed when the next one is answered.
            await node.access.write(record(), quiet=True)
            assert (sent, told) == ([], [])
            together = [node.access.write(record(), quiet=quiet) for quiet in (True, False, True)]
            await asyncio.gather(*together)
            await node.access.write(record(), quiet=True)
            return sent, told

    sent, told = asyncio.run(act())
    assert sent == told
    assert 1 <= len(sent) <= 3


def test_to_tell_rings_here_and_nowhere_else(schema, monkeypatch):
    async def act():
        with nodes(schema, dsn()) as (node,):
            sent: list[str] = []
            monkeypatch.setattr(node.access._hints, "send", lambda: sent.append("hint"))
            node.watch()
            for _ in range(3):
                before = node.rings
                threading.Thread(target=node.access.tell).start()

                async def more(before: int = before) -> bool:
                    return node.rings > before

                await node.until(more)
            return sent

    assert asyncio.run(act()) == []


def test_a_thousand_commits_are_few_hints(schema):
    async def act():
        with nodes(schema, dsn()) as (node,), look() as connection:
            heard: list[str] = []
            channel = postgres_hints.channel_of(node.store.session)
            connection.add_notify_handler(lambda notify: heard.append(notify.payload))
            connection.execute(f"LISTEN {channel}")
            began = time.monotonic()
            for _ in range(1_000):
                await node.access.write(lambda store: None)
            lasted = time.monotonic() - began
            deadline = time.monotonic() + PATIENCE
            while not any(not word.startswith("?") for word in heard) and time.monotonic() < deadline:
                connection.execute("SELECT 1")
            return len([word for word in heard if not word.startswith("?")]), lasted

    hints, lasted = asyncio.run(act())
    assert 1 <= hints <= lasted / PAUSE + 2
    assert hints < 500


def test_who_is_cut_off_again_and_again_still_hears_of_the_last_commit(schema):
    async def act():
        with nodes(schema, dsn(), named("unlucky")) as (here, there), look() as connection:
            there.watch()
            over = threading.Event()
            cuts = 0

            def cut() -> None:
                nonlocal cuts
                ending = "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE application_name = %s"
                while not over.is_set():
                    cuts += len(connection.execute(f"{ending} AND query LIKE '%%pg_notify%%'", ("unlucky",)).fetchall())

            thread = threading.Thread(target=cut)
            thread.start()
            try:
                for _ in range(200):
                    await here.access.write(record())
            finally:
                over.set()
                thread.join()
            await there.until_seen(200)
            return cuts

    assert asyncio.run(act()) >= 1


def test_two_stores_in_one_database_have_two_channels(schema, tmp_path):
    one = open_postgres(dsn(), schema=schema)
    other = store_in(tmp_path / "other")
    try:
        assert postgres_hints.channel_of(one.session) != postgres_hints.channel_of(other.session)
        again = open_postgres(dsn(), schema=schema)
        assert postgres_hints.channel_of(one.session) == postgres_hints.channel_of(again.session)
        again.close()
    finally:
        one.close()
        other.close()
        release(tmp_path / "other")


# ---- a command without an engine


def test_a_command_tells_the_nodes_unless_it_is_quiet(schema):
    async def act():
        with nodes(schema, dsn()) as (node,), look() as connection:
            heard: list[str] = []
            connection.add_notify_handler(lambda notify: heard.append(notify.payload))
            connection.execute(f"LISTEN {postgres_hints.channel_of(node.store.session)}")
            node.watch()
            command = open_postgres(dsn(), schema=schema)
            try:
                inline = PostgresInline(command)
                for number in range(1, 6):
                    await inline.write(record())
                    await node.until_seen(number)
                await inline.write(record(), quiet=True)
                connection.execute("SELECT 1")
                return len([word for word in heard if not word.startswith("?")])
            finally:
                command.close()

    assert asyncio.run(act()) == 5


def test_a_command_whose_connection_is_lost_after_its_commit_has_succeeded_and_connects_for_no_hint(schema):
    command = open_postgres(dsn(), schema=schema)
    connects: list[int] = []
    try:
        inline = PostgresInline(command)
        hint, connect = inline._hint, command.session.place.connect

        def lost() -> None:
            command.session.connection.close()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(command.session.place, "connect", lambda **_: connects.append(1) or connect())
                hint()

        inline._hint = lost
        assert asyncio.run(inline.write(record("kept")))
        assert [item.body for item in command.items()] == ["kept"]
        assert connects == []
    finally:
        command.close()


@pytest.mark.parametrize("times", [1, 5, 19])
def test_a_command_that_finds_others_in_its_way_begins_again(schema, times, monkeypatch):
    monkeypatch.setattr(postgres_access, "step_aside", lambda turn: None)
    command = open_postgres(dsn(), schema=schema)
    tries: list[int] = []

    def crowded(store):
        record("half")(store)
        tries.append(1)
        if len(tries) <= times:
            raise Crowded("others")
        return len(tries)

    try:
        assert asyncio.run(PostgresInline(command).write(crowded)) == times + 1
        assert count(command) == 1
    finally:
        command.close()


def test_a_command_that_is_always_in_the_way_gives_up(schema, monkeypatch):
    monkeypatch.setattr(postgres_access, "step_aside", lambda turn: None)
    command = open_postgres(dsn(), schema=schema)

    def crowded(store):
        raise Crowded("others")

    try:
        with pytest.raises(Crowded):
            asyncio.run(PostgresInline(command).write(crowded))
    finally:
        command.close()
