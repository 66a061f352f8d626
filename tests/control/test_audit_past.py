"""The audit of what was decided: limits, retention, a store that is written to meanwhile, both stores, and who asks."""

import asyncio
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.control.audited import Kept, by_hand, lived, named, names, told
from tests.store.postgres_server import connection_of, release, store_in, tell_time
from wakeful.control.auditing.audit import audit, report_row
from wakeful.control.auditing.findings import LIMITS, MOST_KEPT, RULES, STANDINGS, Findings
from wakeful.control.audits import Audits
from wakeful.control.callers import OPERATOR
from wakeful.core.errors import Busy
from wakeful.core.items import Kind, NewItem, Origin
from wakeful.store.inline import Inline
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.testing.world import World

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def bounded(tmp_path_factory) -> Kept:
    """A world in which most limits are met."""
    return lived(9, tmp_path_factory.mktemp("bounded") / "store.db")


def change_events(
    connection: apsw.Connection, kind: str, change: Callable[[dict[str, Any]], bool], most: int = 10**6
) -> list[int]:
    """The events of that kind that were changed; `change` says whether it found something to change."""
    changed: list[int] = []
    for id, text in connection.execute("SELECT id, fields FROM event WHERE kind = ? ORDER BY id", (kind,)).fetchall():
        fields = json.loads(text)
        if len(changed) < most and change(fields):
            connection.execute("UPDATE event SET fields = ? WHERE id = ?", (json.dumps(fields), id))
            changed.append(id)
    connection.execute("COMMIT")
    assert changed
    return changed


# ---- limits


def fact(name: str, value: object) -> Callable[[dict[str, Any]], bool]:
    def change(fields: dict[str, Any]) -> bool:
        facts = fields.get("facts")
        if facts is None or facts.get("moot") or fields["verdict"]["kind"] != "admit":
            return False
        facts[name] = value
        return True

    return change


FACTS = {
    "wakes_by_run": 2,
    "wakes_allowed": 77,
    "last_peer_wake_at": "2020-01-01T00:00:00.000000Z",
    "wakes_today": 99,
    "pair_wakes_today": 99,
    "seconds_today": 1.5,
    "spent": {"usd": 77},
    "reserve": {"usd": 123_456_789},
    "burst_starts": 1_000,
    "gate_state": "nowhere",
    "open_run": 4_000,
    "moot": "no reason",
    "pause": {"scope": "fleet", "owner": "x", "reason": "", "since": "2020-01-01T00:00:00.000000Z"},
    "now": "2020-01-01T00:00:00.000000Z",
}


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_that_is_not_what_the_events_before_it_count_is_found(name, bounded, tmp_path):
    with by_hand(bounded, tmp_path) as (changed, connection):
        beats = name == "moot"
        wanted = fact(name, FACTS[name])
        (event,) = change_events(
            connection, "decided", lambda told: (not beats or told["cause"] == "timer") and wanted(told), most=1
        )
    report = changed.audit()
    assert f"event {event}" in names(report), told(report)
    assert LIMITS in report.counts


LIMIT_VALUES = {
    "wakes_per_day": 0,
    "wakes_per_pair": 0,
    "wakes_per_run": 0,
    "chain": -1,
    "burst": 0,
    "sessions": 0,
    "workers": 0,
    "usd_per_day": 1,
    "minutes_per_day": 0.0,
    "quiet_hours": [{"start_minute": 0, "end_minute": 1440}],
    "cooldown": 10**6,
}


# How the finding says so, where it does not name the guard of the same name.
SAID = {
    "wakes_per_run": "wakes allowed",
    "usd_per_day": "by spend",
    "sessions": "in the sessions",
    "workers": "in the workers",
}


@pytest.mark.parametrize("name", LIMIT_VALUES)
def test_a_limit_that_was_declared_and_not_kept_is_found(name, bounded, tmp_path):
    """The same admissions, but what was declared would not have let them pass."""

    def narrow(fields: dict[str, Any]) -> bool:
        body = json.loads(fields["body"])
        body.setdefault("limits", {})[name] = LIMIT_VALUES[name]
        body["limits"]["minutes_declared"] = True
        fields["body"] = json.dumps(body)
        return True

    with by_hand(bounded, tmp_path) as (changed, connection):
        change_events(connection, "declared", narrow)
    report = changed.audit()
    said = SAID.get(name, f"by {name}")
    assert any(said in each.expected for each in report.findings if each.rule == LIMITS), told(report)


def test_two_open_runs_of_one_agent_are_found(busy, tmp_path):
    with by_hand(busy, tmp_path) as (changed, connection):
        run, agent = connection.execute("SELECT run, agent FROM event WHERE kind = 'ended' ORDER BY id").fetchone()
        connection.execute("UPDATE event SET kind = 'stopped' WHERE kind = 'ended' AND run = ?", (run,))
        connection.execute("COMMIT")
    expected = [each.expected for each in changed.audit().findings if each.rule == LIMITS]
    assert f"no open run of {agent}" in expected


@pytest.mark.parametrize("key", ["stands", "idle_streak", "failure_streak", "due_at"])
def test_a_standing_that_is_not_the_fold_of_the_outcomes_is_found(key, bounded, tmp_path):
    others = {"stands": ["nowhere", 3], "idle_streak": 17, "failure_streak": 9, "due_at": "2020-01-01T00:00:00.000000Z"}
    with by_hand(bounded, tmp_path) as (changed, connection):
        (event,) = change_events(
            connection, "ended", lambda told: bool(told.update({key: others[key]})) or True, most=1
        )
    report = changed.audit()
    assert f"event {event}" in names(report)
    assert STANDINGS in report.counts


# ---- what retention has taken


def test_what_retention_takes_is_not_missed_whatever_it_has_come_to(tmp_path):
    kept = lived(7, tmp_path / "store.db", days=2.0)
    store = open_sqlite(kept.path, durable=False)
    try:
        for ahead in (0, 30):
            later, more = kept.now + ahead * HOUR, True
            while more:
                more = store.forget(later - 26 * HOUR, later - 26 * HOUR, later, limit=40).more
                report = audit(store, later)
                assert report.adds_up, told(report)
        assert store.runs(limit=1)[0].id != 1
    finally:
        store.close()


def test_what_is_wrong_with_the_rest_is_still_found_after_a_sweep(tmp_path):
    kept = lived(5, tmp_path / "store.db", days=1.5)
    store = open_sqlite(kept.path, durable=False)
    before = kept.now - 26 * HOUR
    while store.forget(before, before, kept.now).more:
        pass
    store.close()
    assert kept.audit().since is not None
    cases = (
        ("run", "SELECT id FROM run WHERE state = 'ended' ORDER BY id DESC LIMIT 1", "DELETE FROM run WHERE id = ?"),
        ("standing", "SELECT agent FROM standing", "UPDATE standing SET hits = hits + 1 WHERE agent = ?"),
        ("wake", "SELECT max(id) FROM wake WHERE state = 'refused'", "UPDATE wake SET state = 'admitted' WHERE id = ?"),
    )
    for table, which, change in cases:
        with by_hand(kept, tmp_path) as (changed, connection):
            key = connection.execute(which).fetchone()
            connection.execute(change, key)
            connection.execute("COMMIT")
        assert named(table, key) in names(changed.audit()), table
    with by_hand(kept, tmp_path) as (changed, connection):
        day, scope = connection.execute("SELECT max(day), scope FROM total WHERE ms > 0").fetchone()
        connection.execute("UPDATE total SET ms = ms + 1 WHERE day = ? AND scope = ?", (day, scope))
        connection.execute("COMMIT")
    assert f"total {scope} {day}" in names(changed.audit())


# ---- meanwhile


def test_what_is_written_while_it_reads_gives_no_finding_and_is_not_held_up(busy, tmp_path):
    path = tmp_path / "store.db"
    shutil.copy(busy.path, path)
    store, now = open_sqlite(path, durable=False), busy.now
    written: list[Any] = []

    def write(table: str, rows: int) -> None:
        nonlocal now
        now += timedelta(seconds=1)
        name = store.agents()[0].name if not written else written[0]
        written.append(name)
        store.set(name, {"wakes_per_day": len(written)}, "operator", now)
        item = NewItem(kind=Kind.message, agent=name, sender="operator", origin=Origin.operator, subject=table)
        store.record([item], now)

    try:
        report = audit(store, now, write)
        assert report.adds_up, told(report)
        assert len(written) > 10
        assert audit(store, now).adds_up
    finally:
        store.close()


def test_a_row_that_cannot_be_read_is_a_finding_and_the_rest_is_read(busy, tmp_path):
    broken = {
        "event": ("fields", "id", "SELECT id FROM event WHERE kind = 'decided'"),
        "agent": ("declaration", "name", "SELECT name FROM agent"),
        "standing": ("gates", "agent", "SELECT agent FROM standing"),
        "recurrence": ("declaration", "name", "SELECT name FROM recurrence"),
    }
    for table, (column, key, which) in broken.items():
        with by_hand(busy, tmp_path) as (changed, connection):
            row = connection.execute(which).fetchone()
            connection.execute(f"UPDATE {table} SET {column} = '[1' WHERE {key} = ?", row)
            connection.execute("COMMIT")
        assert named(table, row) in names(changed.audit())


def test_many_findings_of_a_rule_are_counted_and_not_all_kept():
    findings = Findings()
    for number in range(MOST_KEPT + 7):
        findings.add(LIMITS, f"event {number}", "this", "that")
    assert len(findings.kept) == MOST_KEPT
    assert findings.counts[LIMITS] == MOST_KEPT + 7


# ---- PostgreSQL


def test_the_same_store_adds_up_on_postgresql_and_a_changed_one_does_not(busy, tmp_path):
    shutil.copy(busy.path, tmp_path / "wakeful.db")
    store = store_in(tmp_path)
    try:
        report = audit(store, busy.now)
        assert report.adds_up, told(report)
        connection = connection_of(store)
        connection.execute("SET session_replication_role = replica")
        (run,) = (row["id"] for row in connection.execute("SELECT max(id) AS id FROM run WHERE state = 'ended'"))
        for change, rows in (
            (f"DELETE FROM run WHERE id = {run}", {f"run {run}"}),
            ("UPDATE total SET ms = ms + 1 WHERE scope = 'fleet' AND part = 0", set()),
            ("DELETE FROM event WHERE id = (SELECT max(id) FROM event WHERE kind = 'started')", set()),
        ):
            connection.execute(change)
            assert rows <= names(audit(store, busy.now))
        assert audit(store, busy.now).counts.keys() >= {"runs", "totals"}
    finally:
        store.close()
        release(tmp_path)


@pytest.mark.parametrize("seed", [3, 7])
def test_everything_adds_up_in_a_world_on_postgresql_and_a_slot_that_is_gone_is_missed(seed, tmp_path):
    world = World(seed, tmp_path / "wakeful.db", lambda path, _: store_in(path), days=0.2, tell_time=tell_time)
    try:
        world.run()
        report = audit(world.store, world.clock.wall)
        assert report.adds_up, told(report)
        connection = connection_of(world.store)
        connection.execute("DELETE FROM slot WHERE pool = 'workers' AND number = 1")
        assert "slot workers/1" in names(audit(world.store, world.clock.wall))
    finally:
        world.store.close()
        release(tmp_path)


# ---- who asks


def ask(store: SqlStore, kept: Kept) -> dict[str, Any]:
    control = Audits(Inline(store), runs=Path("runs"), clock=lambda: kept.now)
    return asyncio.run(control.audit(OPERATOR))


def test_the_operation_answers_in_what_json_holds(busy, tmp_path):
    with by_hand(busy, tmp_path) as (changed, connection):
        connection.execute("UPDATE total SET ms = ms + 1")
        connection.execute("COMMIT")
    for kept, adds_up in ((busy, True), (changed, False)):
        store = open_sqlite(kept.path, durable=False)
        try:
            answer = ask(store, kept)
        finally:
            store.close()
        assert answer["adds_up"] is adds_up
        assert json.loads(json.dumps(answer)) == answer
    first = answer["findings"][0]
    assert set(first) == {"rule", "says", "rows", "expected", "found", "what_to_do"}
    assert (first["says"], first["what_to_do"]) == RULES["totals"]


def test_one_audit_is_under_way_at_a_time(busy):
    store = open_sqlite(busy.path, durable=False)
    control = Audits(Inline(store), runs=Path("runs"), clock=lambda: busy.now)

    async def twice() -> list[object]:
        both = await asyncio.gather(control.audit(OPERATOR), control.audit(OPERATOR), return_exceptions=True)
        return [*both, await control.audit(OPERATOR)]

    first, second, third = asyncio.run(twice())
    store.close()
    assert first == third
    assert isinstance(second, Busy)


def test_an_empty_store_adds_up(tmp_path):
    store = open_sqlite(tmp_path / "store.db", durable=False)
    report = audit(store, datetime(2026, 3, 2, tzinfo=UTC))
    store.close()
    assert report.adds_up
    assert report_row(report)["findings"] == []
