"""Opening a store in PostgreSQL: what passes is waited for, what does not is said at once, and no word is a secret."""

import logging
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.store.line import asking, line_to, refusing
from tests.store.postgres_server import dsn
from wakeful.core.errors import Mistake
from wakeful.store import postgres
from wakeful.store.postgres import connect_when_there, open_postgres
from wakeful.store.postgres_store import PostgresStore

SECRETS = ("hunter2", "hun", "ter2")


@pytest.fixture
def look() -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn(), autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        yield connection


@pytest.fixture
def role(look) -> Iterator[str]:
    look.execute("DROP SCHEMA IF EXISTS waited CASCADE")
    look.execute("DROP ROLE IF EXISTS visitor")
    look.execute("CREATE ROLE visitor LOGIN")
    look.execute("CREATE SCHEMA waited AUTHORIZATION visitor")
    yield "visitor"
    look.execute("DROP SCHEMA waited CASCADE")
    look.execute("DROP OWNED BY visitor")
    look.execute("DROP ROLE visitor")


class Time:
    """Passes only when somebody sleeps; whoever has slept often enough does something about it."""

    def __init__(self, mend: Callable[[int], None]) -> None:
        self.now = 1_000.0
        self.sleeps = 0
        self._mend = mend

    def sleep(self, seconds: float) -> None:
        assert 0 < seconds <= 5
        self.now += seconds
        self.sleeps += 1
        self._mend(self.sleeps)

    def clock(self) -> float:
        return self.now

    def open(self, address: str, **more) -> PostgresStore:
        return connect_when_there(address, sleep=self.sleep, clock=self.clock, **more)


class GivenUp(Exception):
    pass


def give_up(sleeps: int) -> None:
    raise GivenUp


def waiting(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if "waiting for" in record.getMessage()]


# ---- waited for


def test_a_server_that_is_away_is_waited_for_and_that_is_said_now_and_then(role, look, caplog):
    """As many connections as the role may have are taken: as after a restart at which everybody comes at once."""
    look.execute("ALTER ROLE visitor CONNECTION LIMIT 0")

    def mend(sleeps: int) -> None:
        if sleeps == 70:
            look.execute("ALTER ROLE visitor CONNECTION LIMIT -1")

    time = Time(mend)
    caplog.set_level(logging.INFO)
    with line_to(dsn(), user=role) as line:
        time.open(line.dsn, schema="waited").close()
    assert time.sleeps == 70
    said = waiting(caplog)
    assert len(said) == 3
    assert all("too many connections" in line and "127.0.0.1/postgres" in line for line in said)
    assert sum(record.getMessage().endswith("is there") for record in caplog.records) == 1


def test_who_need_not_wait_says_nothing_of_it(role, caplog):
    caplog.set_level(logging.INFO)
    with line_to(dsn(), user=role) as line:
        connect_when_there(line.dsn, schema="waited").close()
    assert [record for record in caplog.records if "may be lost" not in record.getMessage()] == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("57P03", "the database system is starting up"),
        ("57P03", "the database system is shutting down"),
        ("57P03", "the database system is in recovery mode"),
        ("57P03", "the database system is not yet accepting connections"),
        ("53300", "sorry, too many clients already"),
        ("53300", "remaining connection slots are reserved for roles with the SUPERUSER attribute"),
        ("57P01", "terminating connection due to administrator command"),
        ("55000", 'database "fleet" is not currently accepting connections'),
        ("XX000", "server conn crashed?"),
        ("28P01", "le mot est faux"),
    ],
)
def test_what_passes_is_waited_for(code, words, caplog):
    with refusing(code, words) as address, pytest.raises(GivenUp):
        Time(give_up).open(address)
    (said,) = waiting(caplog)
    assert words in said
    assert not any(secret in caplog.text for secret in SECRETS)


def test_a_server_that_only_reads_may_be_about_to_take_over_and_is_waited_for(role, look, caplog):
    look.execute("ALTER ROLE visitor SET default_transaction_read_only = on")
    time = Time(lambda sleeps: look.execute("ALTER ROLE visitor RESET default_transaction_read_only"))
    with line_to(dsn(), user=role) as line:
        with pytest.raises(Mistake, match="only reads") as refused:
            open_postgres(line.dsn, schema="waited")
        assert "read-write" in refused.value.remedy
        time.open(line.dsn, schema="waited").close()
    assert time.sleeps == 1
    assert len(waiting(caplog)) == 1


def test_nobody_at_the_address_is_waited_for(caplog):
    for address in ("postgresql://127.0.0.1:1/fleet", "postgresql:///fleet?host=/nonexistent"):
        with pytest.raises(GivenUp):
            Time(give_up).open(address)
    assert len(waiting(caplog)) == 2


def test_a_server_that_does_not_answer_is_waited_for(caplog):
    with line_to(dsn(), connect_timeout="2") as line:
        line.silence()
        time = Time(lambda sleeps: line.speak())
        time.open(line.dsn, schema="waited").close()
        assert time.sleeps == 1
    (said,) = waiting(caplog)
    assert "timeout" in said


def test_whoever_is_told_to_end_while_waiting_ends():
    def interrupt(sleeps: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Time(interrupt).open("postgresql://127.0.0.1:1/fleet")


# ---- said at once


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("28P01", 'password authentication failed for user "rana"'),
        ("28000", 'no pg_hba.conf entry for host "127.0.0.1", user "rana", database "fleet", no encryption'),
        ("28000", 'pg_hba.conf rejects connection for host "127.0.0.1", user "rana", database "fleet"'),
        ("28000", 'role "rana" is not permitted to log in'),
        ("28000", 'role "rana" does not exist'),
        ("28000", 'Peer authentication failed for user "rana"'),
        ("3D000", 'database "fleet" does not exist'),
        ("42501", 'permission denied for database "fleet"'),
        ("42704", 'unrecognized configuration parameter "colour"'),
        ("08P01", "no such database: fleet"),
        ("08P01", "unsupported startup parameter in options: search_path"),
    ],
)
def test_what_cannot_come_right_by_itself_is_said_at_once(code, words):
    with refusing(code, words) as address, pytest.raises(Mistake) as refused:
        Time(give_up).open(address)
    assert words in refused.value.reason
    assert refused.value.remedy
    assert not any(secret in str(refused.value) for secret in SECRETS)


def test_a_database_or_user_that_the_server_does_not_know_is_said_at_once():
    for change in ({"dbname": "nowhere"}, {"user": "nobody"}):
        with line_to(dsn(), **change) as line, pytest.raises(Mistake, match="does not exist"):
            Time(give_up).open(line.dsn)


def test_a_password_that_is_asked_for_and_not_given_is_said_at_once(monkeypatch):
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with asking() as address, pytest.raises(Mistake, match="no password"):
        Time(give_up).open(address)


def test_a_database_that_cannot_hold_every_text_is_refused(look):
    look.execute("DROP DATABASE IF EXISTS latin")
    look.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    try:
        with line_to(dsn(), dbname="latin") as line, pytest.raises(Mistake, match="encoding is LATIN1") as refused:
            Time(give_up).open(line.dsn)
        assert "UTF8" in refused.value.remedy
    finally:
        look.execute("DROP DATABASE latin WITH (FORCE)")


@pytest.mark.parametrize("broken", [False, True])
def test_an_old_server_is_named_also_where_it_does_not_know_our_words(role, monkeypatch, broken):
    monkeypatch.setattr(postgres, "_STRENGTH", "SELECT 140009 AS version, 'UTF8' AS encoding")
    if broken:

        def fail(*_, **__):
            raise psycopg.errors.SyntaxError("what is that?")

        monkeypatch.setattr("wakeful.store.postgres_session.migrate", fail)
    with line_to(dsn(), user=role) as line, pytest.raises(Mistake, match="PostgreSQL 14") as refused:
        Time(give_up).open(line.dsn, schema="waited")
    assert "15 or newer" in refused.value.remedy


def test_a_mistake_of_ours_is_not_taken_for_the_servers(role, monkeypatch):
    def fail(*_, **__):
        raise psycopg.errors.SyntaxError("what is that?")

    monkeypatch.setattr("wakeful.store.postgres_session.migrate", fail)
    with line_to(dsn(), user=role) as line, pytest.raises(psycopg.errors.SyntaxError):
        Time(give_up).open(line.dsn, schema="waited")


@pytest.mark.parametrize("schema", ["only_to_look_at", "one_more"])
def test_a_user_who_may_not_make_tables_is_told_so(role, look, schema):
    look.execute("CREATE SCHEMA only_to_look_at")
    look.execute("GRANT USAGE ON SCHEMA only_to_look_at TO visitor")
    try:
        with line_to(dsn(), user=role) as line, pytest.raises(Mistake, match="cannot be made: permission") as refused:
            Time(give_up).open(line.dsn, schema=schema)
        assert "grant" in refused.value.remedy
    finally:
        look.execute("DROP SCHEMA only_to_look_at")


# ---- secrets


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://rana:hun@ter2@127.0.0.1:1/fleet",
        "postgresql://rana:hun/ter2@127.0.0.1:1/fleet",
        "postgresql://rana:1234/hunter2@127.0.0.1:1/fleet",
        "postgresql://rana:hunter2",
        "postgresql://rana:hun%zzter2@127.0.0.1:1/fleet",
        'postgresql://rana:hun"%zzter2@127.0.0.1:1/fleet',
        "postgresql://rana:hun ter2@127.0.0.1:1/fleet",
        "postgres:/rana:hunter2@127.0.0.1:1/fleet",
        "mysql://rana:hunter2@127.0.0.1:1/fleet",
        "rana:hunter2@127.0.0.1:1/fleet",
        "host=127.0.0.1 port=1 password=hun ter2",
        "host=127.0.0.1 port=1 password='hunter2",
        "postgresql://rana:hunter2@127.0.0.1:x/fleet",
        "postgresql://rana:hunter2@127.0.0.1:1/fleet?connect_timeout=soon",
        "postgresql://rana:hunter2@127.0.0.1:1/fleet?colour=red",
        "postgresql://rana:hunter2@127.0.0.1:1/fleet?sslmode=funny",
    ],
)
@pytest.mark.parametrize("way", [open_postgres, lambda address: Time(give_up).open(address)])
def test_an_address_that_cannot_be_right_is_a_mistake_and_its_password_is_not_repeated(address, way, caplog):
    with pytest.raises(Mistake) as refused:
        way(address)
    said = str(refused.value) + caplog.text
    assert not any(secret in said for secret in SECRETS)
    assert refused.value.remedy


@pytest.mark.parametrize(
    "address", ["postgresql://rana:hunter2@127.0.0.1:1/fleet", "host=127.0.0.1 port=1 password=hunter2"]
)
def test_while_waiting_the_password_is_not_repeated(address, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(GivenUp):
        Time(give_up).open(address)
    assert waiting(caplog)
    assert not any(secret in caplog.text for secret in SECRETS)
    with pytest.raises(Mistake) as refused:
        open_postgres(address)
    assert "hunter2" not in str(refused.value)
