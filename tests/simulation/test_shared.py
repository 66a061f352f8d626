"""The store that the nodes of a world share counts leases as PostgreSQL does, by one clock."""

from datetime import UTC, datetime, timedelta
from importlib.resources import files

import pytest

from wakeful.core.agents import Agent, Fleet
from wakeful.store.named_sql import parse_queries
from wakeful.testing import shared
from wakeful.testing.shared import LEASES, leased_queries, open_shared

NOW = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_whatever_counts_a_lease_in_one_dialect_does_so_in_the_other():
    folder = files("wakeful.store") / "sql" / "postgres"
    texts = [file.read_text(encoding="utf-8") for file in folder.iterdir() if not file.name[:4].isdigit()]
    queries = {name: body for text in texts for name, body in parse_queries(text).items()}
    assert {name for name, body in queries.items() if "lease_clock()" in body} == set(LEASES)


def test_a_query_that_changed_so_that_its_lease_is_lost_is_an_error(monkeypatch):
    monkeypatch.setitem(shared.LEASES, "orphaned_runs", (("what is no longer there", "lease_clock()"),))
    leased_queries.cache_clear()
    try:
        with pytest.raises(ValueError, match="orphaned_runs no longer has"):
            leased_queries()
    finally:
        leased_queries.cache_clear()


def test_a_node_whose_calendar_is_off_is_seen_by_the_clock_of_the_leases(tmp_path):
    clock = [NOW]
    store = open_shared(tmp_path / "wakeful.db", lambda: clock[0])
    try:
        store.declare(Fleet(agents=(Agent(name="wren", address="wren"),)), NOW)
        store.join("ash", "ash", "", NOW + 5 * HOUR, timedelta(seconds=20))
        clock[0] += timedelta(seconds=19)
        assert [row.alive for row in store.nodes(NOW - HOUR)] == [True]
        clock[0] += timedelta(seconds=2)
        assert [row.alive for row in store.nodes(NOW - HOUR)] == [False]
    finally:
        store.close()
