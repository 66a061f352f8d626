"""The audit: green on every untouched store, red on one row taken away or one number changed, and it names the row."""

import apsw
import pytest

from tests.control.audited import KEYS, by_hand, key_of, named, names, told
from wakeful.core.events import EventKind

# ---- untouched


def test_a_busy_store_adds_up_and_has_rows_of_every_table_and_events_of_every_kind(busy):
    report = busy.audit()
    assert report.adds_up, told(report)
    assert not report.findings
    assert {table for table, count in report.rows.items() if not count} <= {"slot"}
    with apsw.Connection(str(busy.path)) as connection:
        kinds = {kind for (kind,) in connection.execute("SELECT DISTINCT kind FROM event")}
    assert kinds == set(EventKind)


# ---- one row is taken away

WAKES = [f"state = '{state}' AND slot = ''" for state in ("waiting", "joined", "admitted", "refused")]
RUNS = [f"state = '{state}'" for state in ("admitted", "running", "ended", "void")]
EVENTS = [f"kind = '{kind}' AND id > 1" for kind in EventKind]
TASK_STATES = ("completed", "cancelled", "dead_letter", "failed")
MISSED = [
    *(("wake", where) for where in WAKES),
    *(("run", where) for where in RUNS),
    *(("event", where) for where in EVENTS),
    ("item", "kind = 'message' AND state = 'closed' AND external_id IS NULL"),
    ("item", "kind = 'message' AND asked IS NOT NULL"),
    ("item", "kind = 'message' AND held_by IS NOT NULL"),
    ("item", "id IN (SELECT reply_to FROM item)"),
    ("item", "external_id IS NOT NULL AND state = 'closed'"),
    ("item", "external_id IS NOT NULL AND shown IS NOT NULL"),
    *(("item", f"kind = 'task' AND state = '{state}'") for state in TASK_STATES),
    ("item", "kind = 'task' AND id IN (SELECT needs FROM dependency)"),
    ("item", "kind = 'task' AND id IN (SELECT item FROM attempt)"),
    ("attempt", "outcome = 'done'"),
    ("attempt", "outcome = 'failed'"),
    ("run_item", "run IN (SELECT id FROM run WHERE state = 'ended')"),
    ("run_item", "run IN (SELECT id FROM run WHERE state = 'running')"),
    ("dependency", "item IN (SELECT id FROM item WHERE state = 'pending' AND waits_for = 1)"),
    (
        "dependency",
        "item IN (SELECT id FROM item WHERE error = 'depends on task ' || needs || ', which is dead_letter')",
    ),
    ("address", "name IN (SELECT name FROM agent)"),
    ("address", "name NOT IN (SELECT name FROM agent)"),
    ("fleet", "true"),
    ("agent", "true"),
    ("declaration", "version = 1"),
    ("declaration", "(agent, version) IN (SELECT name, version FROM agent)"),
    ("role", "true"),
    ("standing", "true"),
    ("pause", "until IS NULL"),
    ("pause", "scope LIKE 'source:%'"),
    ("total", "scope = 'fleet'"),
    ("total", "scope LIKE 'agent:%' AND ms > 0"),
    ("total", "scope LIKE 'pair:%' AND wakes > 0"),
    ("source", "outage IS NOT NULL"),
    ("output", "start = 0"),
    ("reckoning", "true"),
    ("recurrence", "true"),
    ("item", "kind = 'message' AND state = 'open' AND asked IS NULL AND shown IS NULL AND held_by IS NULL "
     "AND external_id IS NULL AND id NOT IN (SELECT item FROM run_item) AND id NOT IN (SELECT reply_to FROM item "
     "WHERE reply_to IS NOT NULL) AND id NOT IN (SELECT item FROM event WHERE item IS NOT NULL)"),
    ("step", "subject LIKE 'task:%' AND result IS NOT NULL"),
    ("step", "subject LIKE 'beat:%' AND result IS NOT NULL"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "where"), MISSED)
def test_a_row_that_is_taken_away_is_missed_by_name(table, where, busy, tmp_path):
    with by_hand(busy, tmp_path) as (changed, connection):
        key = key_of(table, connection, where)
        columns = " AND ".join(f"{column} = ?" for column in KEYS[table])
        connection.execute(f"DELETE FROM {table} WHERE {columns}", key)
        connection.execute("COMMIT")
    report = changed.audit()
    assert not report.adds_up
    # Of a dependency the task that had it is named, of a reckoning the event.
    wanted = {"dependency": f"item {key[0]}", "reckoning": f"event {key[0]}"}.get(table, named(table, key))
    assert wanted in names(report) or _spans(names(report), key), told(report)


def test_a_one_off_that_no_wake_waits_for_is_missed(busy, tmp_path):
    with by_hand(busy, tmp_path) as (changed, connection):
        agent, slot = connection.execute(
            "SELECT agent, slot FROM wake WHERE slot <> '' AND state = 'waiting'"
        ).fetchone()
        connection.execute("DELETE FROM wake WHERE slot = ?", (slot,))
        connection.execute("COMMIT")
    report = changed.audit()
    assert f"agent {agent}" in names(report)
    assert slot in told(report)


def _spans(said: set[str], key: tuple[object, ...]) -> bool:
    """`events 7 to 9`."""
    for row in said:
        words = row.split()
        if words[0] == "events" and int(words[1]) <= int(str(key[0])) <= int(words[3]):
            return True
    return False


def test_the_newest_event_is_missed_too(busy, tmp_path):
    with by_hand(busy, tmp_path) as (changed, connection):
        (last,) = key_of("event", connection, "true", last=True)
        connection.execute("DELETE FROM event WHERE id = ?", (last,))
        connection.execute("COMMIT")
    assert f"event {last}" in names(changed.audit())


@pytest.mark.parametrize("last", [1, 3])
def test_so_are_the_first_while_nothing_is_old_enough_to_be_swept(last, busy, tmp_path):
    with by_hand(busy, tmp_path) as (changed, connection):
        connection.execute("DELETE FROM event WHERE id <= ?", (last,))
        connection.execute("COMMIT")
    missing = "event 1" if last == 1 else f"events 1 to {last}"
    assert missing in names(changed.audit())


BLIND = [
    ("node", "name NOT IN (SELECT node FROM source WHERE node IS NOT NULL)"),
    ("output", "start > 6"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "where"), BLIND)
def test_what_no_event_and_no_other_row_tells_of_can_be_gone_unseen(table, where, busy, tmp_path):
    """The holes that decision 23 names. Whoever closes one moves its line to the list above."""
    with by_hand(busy, tmp_path) as (changed, connection):
        key = key_of(table, connection, where, last=True)
        columns = " AND ".join(f"{column} = ?" for column in KEYS[table])
        connection.execute(f"DELETE FROM {table} WHERE {columns}", key)
        connection.execute("COMMIT")
    assert {row for row in names(changed.audit()) if not row.startswith(("run ", "node "))} == set()


# ---- one column is changed

CHANGED = [
    *(("run", column, "state = 'ended'") for column in (
        "agent", "address", "wake", "cause", "subject", "pool", "version", "position", "hits", "beat", "epoch",
        "charged", "pair", "node", "day", "fleet_day", "reserved_usd", "reserved_tokens", "spent_usd", "spent_tokens",
        "estimated", "outcome", "reason", "admitted_at", "started_at", "ended_at")),
    ("run", "attempt", "state = 'ended' AND subject <> 'task'"),
    ("run", "stop_by", "state = 'ended' AND stop_by IS NULL"),
    ("run", "spent_usd", "state = 'void'"),
    *(("wake", column, "state = 'refused' AND cause = 'peer'") for column in (
        "agent", "cause", "subject", "sender", "item", "source", "by_run", "root", "depth", "slot", "attempt",
        "charged", "guard", "verdict", "retry_at", "rank", "pool", "requested_at", "decided_at")),
    ("wake", "joined", "state = 'joined'"),
    ("wake", "task", "cause = 'task' AND state = 'admitted'"),
    *(("item", column, "kind = 'message' AND state = 'closed' AND external_id IS NULL AND shown IS NOT NULL")
      for column in ("agent", "fingerprint", "shown", "unanswered", "held_by", "attempts", "waits_for", "thread",
                     "closed_at")),
    ("item", "shown", "kind = 'message' AND state = 'open' AND shown IS NULL AND external_id IS NULL"),
    ("item", "shown", "external_id IS NOT NULL AND shown IS NULL AND state = 'open'"),
    *(("item", column, "kind = 'task' AND state = 'completed' AND attempts > 0")
      for column in ("attempts", "waits_for", "closed_at", "target", "shown", "error", "asked")),
    *(("item", column, "kind = 'task' AND state = 'pending' AND priority = 1 AND not_before IS NOT NULL "
       "AND id NOT IN (SELECT item FROM event WHERE item IS NOT NULL UNION SELECT item FROM dependency "
       "UNION SELECT item FROM attempt)")
      for column in ("place", "priority")),
    ("item", "waits_for", "kind = 'task' AND state = 'pending' AND waits_for = 1"),
    ("item", "behind", "kind = 'task' AND state = 'pending' AND behind = 0"),
    ("item", "depth", "kind = 'task' AND by_run IS NULL"),
    *(("attempt", column, "outcome = 'done'") for column in ("started_at", "ended_at", "outcome", "error", "stop_by")),
    ("attempt", "counted", "outcome = 'done'"),
    ("run_item", "fingerprint", "run IN (SELECT id FROM run WHERE state = 'ended')"),
    *(("standing", column, "last_outcome IS NOT NULL AND due_at IS NOT NULL") for column in (
        "state", "hits", "idle_streak", "failure_streak", "due_at", "epoch", "beat", "gates", "costs", "last_outcome",
        "last_ended_at")),
    *(("agent", column, "removed_at IS NULL") for column in (
        "address", "version", "declaration", "overrides", "removed_at")),
    *(("declaration", column, "version = 1") for column in ("body", "declared_at")),
    *(("fleet", column, "true") for column in ("timezone", "sessions", "workers")),
    *(("pause", column, "until IS NULL") for column in ("reason", "since", "until")),
    *(("total", column, "scope LIKE 'agent:%' AND ms > 0") for column in ("wakes", "ms", "usd", "tokens")),
    ("total", "wakes", "scope LIKE 'pair:%' AND wakes > 0"),
    ("total", "usd", "scope = 'fleet'"),
    ("recurrence", "next_at", "true"),
    ("recurrence", "declaration", "true"),
    ("source", "told_at", "outage IS NOT NULL"),
    ("source", "told", "outage IS NOT NULL"),
    ("reckoning", "at", "true"),
    ("item", "asked", "kind = 'message' AND external_id IS NOT NULL AND shown IS NULL AND asked IS NULL"),
    ("item", "asked", "kind = 'message' AND asked IS NOT NULL"),
    ("item", "error", "kind = 'task' AND state = 'pending' AND error IS NULL AND id NOT IN (SELECT item FROM attempt) "
     "AND id NOT IN (SELECT item FROM event WHERE item IS NOT NULL)"),
    ("item", "not_before", "kind = 'task' AND state = 'failed' AND not_before IS NOT NULL"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "column", "where"), CHANGED)
def test_a_column_that_is_changed_by_hand_is_found_in_its_row(table, column, where, busy, tmp_path):
    with by_hand(busy, tmp_path) as (changed, connection):
        key = key_of(table, connection, where)
        columns = " AND ".join(f"{name} = ?" for name in KEYS[table])
        (value,) = connection.execute(f"SELECT {column} FROM {table} WHERE {columns}", key).fetchone()
        (kind,) = connection.execute(f"SELECT type FROM pragma_table_info('{table}') WHERE name = ?", (column,))
        other = _other(value, kind[0])
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {columns}", (other, *key))
        connection.execute("COMMIT")
    report = changed.audit()
    assert named(table, key) in names(report), told(report)


def _other(value: object, kind: str) -> object:
    if kind == "INTEGER":
        return 1 if value is None else int(str(value)) + 1
    return f"{value or ''}x"


# What would then wait for ever, begin too soon, or be another's.
ELSEWHERE = [
    ("item", "ring_at = ring_at + 315576000000000", "ring_at IS NOT NULL AND asked IS NULL AND closed_at IS NULL"
     " AND held_by IS NULL"),
    ("item", "ring = 'silent', ring_at = NULL", "external_id IS NOT NULL AND asked IS NULL AND closed_at IS NULL"),
    ("item", "agent = 'brook'", "kind = 'message' AND shown IS NOT NULL AND agent <> 'brook'"),
    ("item", "state = 'pending', error = NULL", "kind = 'task' AND state = 'failed' AND attempts > 0 "
     "AND id IN (SELECT item FROM attempt)"),
    ("item", "state = 'failed'", "kind = 'task' AND state = 'pending' AND id NOT IN (SELECT item FROM attempt) "
     "AND id NOT IN (SELECT item FROM event WHERE item IS NOT NULL)"),
    ("wake", "retry_at = retry_at + 315576000000000", "state = 'waiting' AND slot <> ''"),
    ("wake", "retry_at = retry_at + 315576000000000", "state = 'waiting' AND slot = '' AND retry_at IS NOT NULL"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "change", "where"), ELSEWHERE)
def test_what_was_put_where_nobody_looks_is_found(table, change, where, busy, tmp_path):
    with by_hand(busy, tmp_path) as (changed, connection):
        key = key_of(table, connection, where)
        connection.execute(f"UPDATE {table} SET {change} WHERE {KEYS[table][0]} = ?", key)
        connection.execute("COMMIT")
    report = changed.audit()
    assert named(table, key) in names(report), told(report)


def test_a_flag_that_is_turned_is_found(busy, tmp_path):
    flags = (("standing", "asked"), ("agent", "enabled"), ("address", "timerless"))
    for table, column in flags:
        with by_hand(busy, tmp_path) as (changed, connection):
            key = key_of(table, connection, "true")
            connection.execute(f"UPDATE {table} SET {column} = 1 - {column} WHERE {KEYS[table][0]} = ?", key)
            connection.execute("COMMIT")
        assert named(table, key) in names(changed.audit()), (table, column)


def test_a_row_that_nothing_tells_of_is_found(busy, tmp_path):
    copies = {
        "run": "state = 'ended'",
        "wake": "state = 'refused'",
        "pause": "true",
        "role": "true",
        "total": "scope LIKE 'agent:%' AND ms > 0",
    }
    made = {"run": "id = 9999", "wake": "id = 9999", "pause": "owner = 'nobody'", "role": "role = 'king'"}
    made["total"] = "day = '2031-01-01'"
    for table, where in copies.items():
        with by_hand(busy, tmp_path) as (changed, connection):
            connection.execute(f"CREATE TEMP TABLE copied AS SELECT * FROM {table} WHERE {where} LIMIT 1")
            connection.execute(f"UPDATE copied SET {made[table]}")
            connection.execute(f"INSERT INTO {table} SELECT * FROM copied")
            key = key_of(table, connection, made[table])
            connection.execute("COMMIT")
        assert named(table, key) in names(changed.audit()), table
