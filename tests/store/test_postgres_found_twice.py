"""What several nodes find to be due at the same time is decided once, and told once."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.store.postgres_server import release, store_in
from wakeful.core.admission import admit
from wakeful.core.cadence import Cadence
from wakeful.core.items import Kind, NewItem, Ring
from wakeful.core.wakes import VerdictKind
from wakeful.store.protocol import Decision
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import HOUR, NOW, a_fleet, an_agent

LATER = NOW + HOUR


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[SqlStore]]:
    stores = [store_in(tmp_path), store_in(tmp_path)]
    yield stores
    for store in stores:
        store.close()
    release(tmp_path)


def both_decide(pair: list[SqlStore]) -> list[list[Decision]]:
    """Both look before either has decided."""
    found = [store.due(LATER).wakes for store in pair]
    assert found[0] == found[1] and len(found[0]) == 1
    return [store.decide(wakes, admit, LATER) for store, wakes in zip(pair, found, strict=True)]


def of_a_timer(store: SqlStore) -> None:
    store.declare(a_fleet("moss"), NOW)


def of_news(store: SqlStore) -> None:
    store.declare(a_fleet(an_agent("moss", cadence=Cadence(interval=None))), NOW)
    store.record([NewItem(kind=Kind.message, agent="moss", body="look", ring=Ring.news)], NOW)


def of_a_task(store: SqlStore) -> None:
    store.declare(a_fleet(an_agent("moss", cadence=Cadence(interval=None))), NOW)
    store.record([NewItem(kind=Kind.task, agent="moss", body="work")], NOW)


@pytest.mark.parametrize("something", [of_a_timer, of_news, of_a_task])
def test_a_beat_news_or_a_task_that_two_nodes_find_is_one_wake_and_one_run(
    pair: list[SqlStore], something: Callable[[SqlStore], None]
) -> None:
    something(pair[0])
    told = pair[0].events(limit=100)

    (first,), (second,) = both_decide(pair)

    assert first.verdict.kind is VerdictKind.admit
    assert (second.verdict.kind, second.verdict.guard, second.wake) == (VerdictKind.refuse, "moot", 0)
    assert [row.wake.id for row in pair[0].wakes(limit=10)] == [first.wake]
    assert [event.kind.value for event in pair[0].events(after=told[-1].id, limit=100)] == ["decided"]
