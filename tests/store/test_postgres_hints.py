"""Hints: whoever commits tells the others at once; what is lost on the way is made good by a look."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue

import psycopg
import pytest

from tests.store.line import line_to
from tests.store.node import named
from tests.store.postgres_server import dsn
from wakeful.store import postgres_hints
from wakeful.store.postgres_hints import PAUSE, Hints, delay_after
from wakeful.store.postgres_place import Place

PATIENCE = 60
CHANNEL = "wakeful_test_of_hints"


class Noted(Hints):
    """Writes down what arrives, whatever follows from it."""

    def __init__(self, *given) -> None:
        self.arrived: SimpleQueue[str] = SimpleQueue()
        super().__init__(*given)

    def _take(self, payload: str) -> None:
        super()._take(payload)
        self.arrived.put(payload)


class Ear:
    """Hints of one node, and how often it was told of some. It is listening when it is made."""

    def __init__(self, address=None, *, channel=CHANNEL, place=None) -> None:
        self.rings: SimpleQueue[float] = SimpleQueue()
        self.hints = Noted(place or Place(address or dsn(), None, True), channel, self._hear)
        self.next()

    def _hear(self) -> None:
        self.rings.put(time.monotonic())

    def next(self) -> float:
        return self.rings.get(timeout=PATIENCE)

    def none(self, wall: Wall) -> bool:
        """Whether it was told of nothing that was said so far. Whatever is said is heard in that order."""
        wall.say("?so far", channel=self.hints._channel)
        while self.hints.arrived.get(timeout=PATIENCE) != "?so far":
            pass
        return self.rings.empty()


class Wall:
    """Somebody else on the same channel, who writes down every word."""

    def __init__(self, channel=CHANNEL) -> None:
        self.channel = channel
        self.connection = psycopg.connect(dsn(), autocommit=True)
        self._heard: list[str] = []
        self.connection.add_notify_handler(lambda notify: self._heard.append(notify.payload))
        self.connection.execute(f'LISTEN "{channel}"')

    def say(self, payload="!", channel=None) -> None:
        self.connection.execute("SELECT pg_notify(%s, %s)", (channel or self.channel, payload))

    def words(self) -> list[str]:
        """What others said since we last asked, without what asks only whether it is heard."""
        self.say("end")
        deadline = time.monotonic() + PATIENCE
        while "end" not in self._heard and time.monotonic() < deadline:
            self.connection.execute("SELECT 1")
        place = self._heard.index("end")
        words, self._heard = self._heard[:place], self._heard[place + 1 :]
        return [word for word in words if word != "!" and not word.startswith("?")]

    def until_said(self, times: int = 1) -> list[str]:
        words: list[str] = []
        deadline = time.monotonic() + PATIENCE
        while len(words) < times and time.monotonic() < deadline:
            words += self.words()
        return words

    def backends(self, name: str) -> list[int]:
        found = self.connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = %s", (name,))
        return [pid for (pid,) in found.fetchall()]

    def end(self, name: str) -> int:
        """Wait for a connection of that name, and end it."""
        deadline = time.monotonic() + PATIENCE
        while not (found := self.backends(name)):
            assert time.monotonic() < deadline
        for pid in found:
            self.connection.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
        return len(found)


@pytest.fixture
def ears() -> Iterator[list[Ear]]:
    opened: list[Ear] = []
    yield opened
    for ear in opened:
        ear.hints.close()


@pytest.fixture
def wall() -> Iterator[Wall]:
    made = Wall()
    yield made
    made.connection.close()


# ---- said and heard


def test_a_hint_is_heard_by_every_other_and_not_by_its_sender(ears, wall):
    ears += [Ear(), Ear(), Ear()]
    ears[0].hints.send()
    assert ears[1].next()
    assert ears[2].next()
    assert all(ear.none(wall) for ear in ears)


def test_another_store_in_the_same_database_is_not_disturbed(ears, wall):
    ears += [Ear(), Ear(channel="wakeful_another"), Ear(channel="wakeful_another")]
    ears[1].hints.send()
    assert ears[2].next()
    assert ears[0].none(wall)


def test_a_new_node_disturbs_nobody_by_asking_whether_it_hears_itself(ears, wall):
    ears.append(Ear())
    ears.append(Ear())
    assert all(ear.none(wall) for ear in ears)


def test_many_commits_are_few_words(ears, wall):
    ears.append(Ear())
    began = time.monotonic()
    for _ in range(1_000):
        ears[0].hints.send()
        wall.connection.execute("SELECT 1")
    lasted = time.monotonic() - began
    assert 1 <= len(wall.words()) <= lasted / PAUSE + 2


def test_what_comes_right_after_a_word_is_a_word_of_its_own(ears, wall):
    ears.append(Ear())
    for _ in range(3):
        ears[0].hints.send()
        assert wall.until_said() == [ears[0].hints._name]


def test_what_was_still_to_be_said_is_said_before_the_end(ears, wall):
    for _ in range(5):
        ears.append(Ear())
        assert ears[-1].none(wall)
        ears[-1].hints.send()
        assert wall.until_said()
        # Too soon after the last word for one more, were it not the end.
        ears[-1].hints.send()
        ears[-1].hints.close()
        assert wall.words() == [ears[-1].hints._name]


def test_who_hears_says_nothing(ears, wall):
    ears.append(Ear(named("quiet_ear")))
    look = "SELECT state_change FROM pg_stat_activity WHERE application_name = 'quiet_ear'"
    # The last word of its own, by which it knows that it hears, has been answered once another's has been heard.
    wall.say()
    ears[0].next()
    before = wall.connection.execute(look).fetchall()
    for _ in range(20):
        wall.say()
        ears[0].next()
    assert wall.connection.execute(look).fetchall() == before
    assert ears[0].hints._patience() is None


# ---- lost and found


def test_after_a_lost_connection_whoever_watches_is_told_once_without_a_word(ears, wall):
    ears.append(Ear(named("short_lived")))
    for _ in range(3):
        assert wall.end("short_lived") == 1
        assert ears[0].next()
    assert ears[0].none(wall)


def test_what_could_not_be_said_is_said_when_there_is_a_connection_again(ears, wall):
    with line_to(dsn(), connect_timeout="2") as line:
        ears.append(Ear(line.dsn))
        line.silence()
        line.cut()
        ears[0].hints.send()
        assert wall.words() == []
        line.speak()
        assert len(wall.until_said()) == 1
        ears.pop().hints.close()


def test_a_silent_server_holds_up_neither_who_sends_nor_the_end(ears, monkeypatch):
    monkeypatch.setattr(postgres_hints, "GRACE", 0.1)
    with line_to(dsn()) as line:
        ears.append(Ear(line.dsn))
        line.silence()
        began = time.monotonic()
        for _ in range(100):
            ears[0].hints.send()
        ears[0].hints.close()
        assert time.monotonic() - began < 5
        assert not any(thread.name == "wakeful-hints" for thread in threading.enumerate())


def test_the_end_waits_neither_for_a_word_nor_for_the_next_attempt(ears, wall, monkeypatch):
    monkeypatch.setattr(postgres_hints, "GRACE", 20)
    monkeypatch.setattr(postgres_hints, "BACKOFF_LEAST", 20)
    monkeypatch.setattr(postgres_hints, "BACKOFF_MOST", 20)
    tried = threading.Event()

    class Nowhere(Place):
        def connect(self, *, read_only=False):
            tried.set()
            return super().connect(read_only=read_only)

    hints = Hints(Nowhere("postgresql://127.0.0.1:1/nowhere", None, True), CHANNEL, lambda: None)
    hints.send()
    assert tried.wait(PATIENCE)
    ears.append(Ear())
    assert ears[0].none(wall)
    began = time.monotonic()
    ears[0].hints.close()
    hints.close()
    # Also when it was the end already.
    hints.close()
    hints.send()
    assert time.monotonic() - began < 10


def test_whoever_watches_cannot_break_it(ears, wall, caplog):
    ears.append(Ear())
    heard, ears[0].hints._heard = ears[0].hints._heard, lambda: 1 / 0
    wall.say()
    deadline = time.monotonic() + PATIENCE
    while not caplog.records and time.monotonic() < deadline:
        wall.words()
    ears[0].hints._heard = heard
    assert ears[0].next()
    assert "ZeroDivisionError" in caplog.text


def test_a_server_that_is_away_is_said_once_until_it_was_there_again(ears, wall, caplog, monkeypatch):
    monkeypatch.setattr(postgres_hints, "BACKOFF_LEAST", 0.001)
    monkeypatch.setattr(postgres_hints, "BACKOFF_MOST", 0.002)
    tries = threading.Semaphore(0)

    class Away(Place):
        away = False

        def connect(self, *, read_only=False):
            if self.away:
                tries.release()
                raise psycopg.OperationalError("nobody\nat home")
            return super().connect(read_only=read_only)

    place = Away(named("away"), None, True)
    ears.append(Ear(place=place))
    for _ in range(2):
        place.away = True
        wall.end("away")
        for _ in range(20):
            assert tries.acquire(timeout=PATIENCE)
        place.away = False
        assert ears[0].next()
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 2
    assert all("no hints from other nodes" in line and "\n" not in line for line in said)


def test_it_waits_longer_each_time_but_never_long_and_little_after_what_lasted():
    waits = [0.0]
    for _ in range(7):
        waits.append(delay_after(waits[-1], 0.5))
    assert waits[1:] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert delay_after(2.0, 3_600) == 0.1


# ---- where nothing arrives


class Pooled(Place):
    """As through a pooler that hands on no hints: LISTEN is answered, or refused, and nothing comes of it."""

    refuses = False

    def connect(self, *, read_only=False):
        connection = super().connect(read_only=read_only)
        execute = connection.execute

        def heedless(query, parameters=None, **options):
            if "LISTEN" not in (query.as_string(connection) if hasattr(query, "as_string") else str(query)):
                return execute(query, parameters, **options)
            if self.refuses:
                raise psycopg.errors.FeatureNotSupported("no LISTEN here")
            return execute("SELECT 1")

        setattr(connection, "execute", heedless)  # noqa: B010
        return connection


@pytest.mark.parametrize("refuses", [False, True])
def test_where_no_hint_can_arrive_that_is_said_once_and_others_are_told_all_the_same(
    ears, wall, caplog, monkeypatch, refuses
):
    monkeypatch.setattr(postgres_hints, "ECHO", 0.02)
    place = Pooled(named("pooled"), None, True)
    place.refuses = refuses
    ears.append(Ear(place=place))
    for _ in range(3):
        ears[0].hints.send()
        assert wall.until_said()
        deadline = time.monotonic() + PATIENCE
        while not caplog.records and time.monotonic() < deadline:
            wall.words()
        wall.end("pooled")
        # It looks, though it hears nothing.
        assert ears[0].next()
    said = [record.getMessage() for record in caplog.records if "some seconds later" in record.getMessage()]
    assert len(said) == 1
    assert ("no LISTEN here" if refuses else "does not come back") in said[0]


def test_where_hints_arrive_nothing_is_said(ears, wall, caplog, monkeypatch):
    # The answer comes with the word's own: no time passes in between.
    monkeypatch.setattr(postgres_hints, "ECHO", 0.5)
    ears.append(Ear())
    ears.append(Ear())
    ears[0].hints.send()
    ears[1].next()
    with pytest.raises(Empty):
        ears[1].rings.get(timeout=0.6)
    assert caplog.records == []
