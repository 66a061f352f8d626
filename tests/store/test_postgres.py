"""PostgreSQL as a place to keep things: opened by many at once, lost and found again, copied from and into."""

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.store.postgres_server import connection_of, dsn, release, store_in
from wakeful.core.admission import admit
from wakeful.core.errors import Busy, Mistake, TooOld
from wakeful.core.items import Kind, NewItem
from wakeful.core.settlement import settle
from wakeful.store import postgres_migrate
from wakeful.store.named_sql import load_migrations
from wakeful.store.postgres import PostgresWriter, open_postgres
from wakeful.store.postgres_copy import load
from wakeful.store.postgres_session import PostgresSession
from wakeful.store.postgres_text import read, written
from wakeful.store.protocol import Finish
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import LEASE, NOW, a_fleet, operator, reported
from wakeful.testing.postgres import PostgresServer

PATIENCE = 60
NEWEST = load_migrations("postgres")[-1][0]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    opened = store_in(tmp_path)
    yield opened
    opened.close()
    release(tmp_path)


@pytest.fixture
def schema() -> Iterator[Callable[[str], str]]:
    """A name that nobody else uses; whatever is in it goes afterwards."""
    made: list[str] = []

    def name(of: str) -> str:
        made.append(of)
        return of

    yield name
    with PostgresServerLook() as connection:
        for each in made:
            connection.execute(f'DROP SCHEMA IF EXISTS "{each}" CASCADE'.encode())


class PostgresServerLook:
    """A connection to the server beside all stores."""

    def __enter__(self):
        self.connection = psycopg.connect(dsn(), autocommit=True)
        self.connection.execute("SET client_min_messages = warning")
        return self.connection

    def __exit__(self, *_):
        self.connection.close()


# ---- opening


def test_many_who_open_a_fresh_store_at_once_migrate_it_once(schema):
    name, ready = schema("Fresh and new"), threading.Barrier(4)

    def one() -> list[dict[str, object]]:
        ready.wait(PATIENCE)
        opened = open_postgres(dsn(), schema=name)
        try:
            return connection_of(opened).execute("SELECT version FROM schema").fetchall()
        finally:
            opened.close()

    with ThreadPoolExecutor(4) as pool:
        assert [future.result(PATIENCE) for future in [pool.submit(one) for _ in range(4)]] == [
            [{"version": NEWEST}]
        ] * 4


def test_an_older_store_gets_what_it_lacks_and_a_failure_leaves_it_as_it_was(schema, monkeypatch):
    name = schema("older")
    open_postgres(dsn(), schema=name).close()
    known = load_migrations("postgres")
    more = [(NEWEST + 1, "-- minimum_reader: 1\nCREATE TABLE shelf (id BIGINT)"), (NEWEST + 2, "CREATE TABLE broken (")]
    monkeypatch.setattr(postgres_migrate, "load_migrations", lambda dialect: known + more)
    with pytest.raises(Exception, match="syntax error"):
        open_postgres(dsn(), schema=name)
    monkeypatch.setattr(postgres_migrate, "load_migrations", lambda dialect: known + more[:1])
    opened = open_postgres(dsn(), schema=name)
    assert connection_of(opened).execute("SELECT count(*) AS n FROM shelf").fetchone() == {"n": 0}
    opened.close()


def test_code_that_is_too_old_is_refused_by_name(schema):
    name = schema("newer")
    opened = open_postgres(dsn(), schema=name)
    connection_of(opened).execute(f"UPDATE schema SET version = {NEWEST + 6}, minimum_reader = {NEWEST + 5}".encode())
    opened.close()
    with pytest.raises(TooOld, match=f"has schema {NEWEST + 6} and needs a wakeful that knows schema {NEWEST + 5}"):
        open_postgres(dsn(), schema=name)


def test_the_tables_of_another_program_are_left_alone(schema):
    name = schema("photos")
    with PostgresServerLook() as connection:
        connection.execute(f"CREATE SCHEMA {name}; CREATE TABLE {name}.photo (id BIGINT)".encode())
        with pytest.raises(Mistake, match="another program's table photo"):
            open_postgres(dsn(), schema=name)
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (name,)).fetchall()
    assert tables == [("photo",)]


@pytest.mark.parametrize(
    "address", ["postgresql://user:secret@/nowhere?host=/nonexistent", "postgresql://x?colour=red"]
)
def test_an_address_that_leads_nowhere_is_a_mistake_that_keeps_the_secret(address):
    with pytest.raises(Mistake) as refused:
        open_postgres(address)
    assert "secret" not in str(refused.value)
    assert refused.value.remedy


def test_a_weak_server_is_used_but_not_in_silence(store, caplog):
    caplog.clear()
    open_postgres(dsn(), schema=connection_of(store).execute("SELECT current_schema() AS s").fetchone()["s"]).close()
    said = [(record.levelname, "fsync = off" in record.message) for record in caplog.records]
    assert said == [("ERROR", True)]


def test_a_connection_notices_a_silent_server_within_seconds(store):
    given = connection_of(store).info.get_parameters()
    wanted = {"keepalives_idle": "5", "keepalives_interval": "2", "keepalives_count": "3", "tcp_user_timeout": "10000"}
    assert {key: given[key] for key in wanted} == wanted


def test_it_works_without_prepared_statements(tmp_path):
    with_them = store_in(tmp_path)
    name = connection_of(with_them).execute("SELECT current_schema() AS s").fetchone()["s"]
    with_them.close()
    plain = open_postgres(dsn(), schema=name, prepare=False)
    plain.declare(a_fleet("moss"), NOW)
    for _ in range(9):
        plain.record([NewItem(kind=Kind.message, agent="moss")], NOW)
    assert connection_of(plain).execute("SELECT count(*) AS n FROM pg_prepared_statements").fetchone() == {"n": 0}
    plain.close()
    release(tmp_path)


# ---- texts


@pytest.mark.parametrize(
    "text", ["", "plain", "\x00", "a\x00b\x00", "\ufdd0", "\ufdd00\x00\ufdd01", "\ufdd0\ufdd0\x001"]
)
def test_every_text_comes_back_as_it_was(text):
    assert read(written(text)) == text
    assert "\x00" not in written(text)


def test_texts_with_odd_characters_are_kept_wherever_people_write(store):
    odd = "a\x00b\ufdd0c 🐦"
    store.declare(a_fleet("moss"), NOW)
    item = NewItem(kind=Kind.message, agent="moss", subject=odd, body=odd, dedupe=odd)
    (first,) = store.record([item], NOW)
    (second,) = store.record([item], NOW)
    assert (second.id, second.duplicate) == (first.id, True)
    found = store.item(first.id)
    assert (found.subject, found.body) == (odd, odd)


# ---- lost and found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[PostgresServer]:
    with PostgresServer(durable=True) as server:
        yield server


def test_a_server_that_falls_is_waited_out_and_nothing_that_was_accepted_is_lost(own):
    store = open_postgres(own.dsn, schema="fleet")
    writer = PostgresWriter(store)
    try:
        store.declare(a_fleet("moss"), NOW)
        item = NewItem(kind=Kind.message, agent="moss")
        accepted = writer.submit(lambda store: store.record([item], NOW)).result(PATIENCE)
        own.kill()
        with pytest.raises(Busy, match="is away"):
            writer.submit(lambda store: store.record([item], NOW)).result(PATIENCE)
        with pytest.raises(Busy, match="is away"):
            store.items()
        own.start()
        after = writer.submit(lambda store: store.record([item], NOW)).result(PATIENCE)
        assert [found.id for found in store.items()] == [accepted[0].id, after[0].id]
    finally:
        writer.close()
        store.close()


def test_a_connection_that_was_cut_is_made_anew(store):
    store.declare(a_fleet("moss"), NOW)
    session = store.session
    assert isinstance(session, PostgresSession)
    assert len(store.agents()) == 1
    pids = [session.connection.info.backend_pid, session.reader().connection.info.backend_pid]
    with PostgresServerLook() as connection:
        for pid in pids:
            connection.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
    # A read that stands alone is asked again; a transaction has failed, and the next one goes through.
    assert len(store.agents()) == 1
    with pytest.raises(Busy):
        store.decide([operator("moss")], admit, NOW)
    (decision,) = store.decide([operator("moss")], admit, NOW)
    assert decision.run is not None


# ---- copies


def test_a_backup_is_a_store_of_sqlite_and_loads_into_an_empty_store(store, tmp_path, schema):
    store.declare(a_fleet("moss", "wren"), NOW)
    store.record([NewItem(kind=Kind.message, agent="moss", body="a\x00b")], NOW)
    store.decide([operator("moss"), operator("wren")], admit, NOW)
    (first, second) = store.claim("one", NOW, LEASE)
    end = Finish(run=first.run.id, epoch=first.run.epoch, ending=reported(usd=7))
    store.finish([end], settle, NOW)
    connection_of(store).execute("SELECT nextval(pg_get_serial_sequence('item', 'id'))")
    path = tmp_path / "copy.db"
    store.backup(path)
    lite = open_sqlite(Path(shutil.copy(path, tmp_path / "lite.db")), durable=False)
    again = open_postgres(dsn(), schema=schema("again"))
    try:
        counts = load(path, connection_of(again))
        assert counts["event"] == len(store.events())
        for other in (lite, again):
            assert other.events() == store.events()
            assert (other.runs(), other.items(), other.wakes()) == (store.runs(), store.items(), store.wakes())
            assert other.total("fleet", NOW.date().isoformat(), "usd") == 7
            # What is open goes on there, and no id is given twice.
            (recorded,) = other.record([NewItem(kind=Kind.message, agent="moss")], NOW)
            assert recorded.id == 3
            other.finish([Finish(run=second.run.id, epoch=second.run.epoch, ending=reported())], settle, NOW)
        with pytest.raises(Mistake, match="not empty"):
            load(path, connection_of(again))
    finally:
        lite.close()
        again.close()
