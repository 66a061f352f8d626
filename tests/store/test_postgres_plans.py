"""No hot query of PostgreSQL reads a whole table either, in a fleet that has been at work for a while.

Plans are looked at as they are made for known values, and as they are kept for any (`plan_cache_mode`). What they
promise is then counted: the rows that each verb read, in a fleet with a short past and with a long one.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.store.postgres_server import connection_of, release, store_in
from tests.store.test_query_plans import ACTS, crowd
from wakeful.store.named_sql import Query
from wakeful.store.postgres_link import postgres_queries
from wakeful.store.postgres_session import PostgresSession
from wakeful.store.postgres_wire import Connection
from wakeful.store.rows import to_micros
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import LEASE, NOW

QUERIES = postgres_queries()
AGENTS = 200
SIZES = {"small": 600, "full": 20_000}  # Both are longer than what one sweep of the past looks at.
GROWING = {"wake", "run", "item", "event", "run_item", "attempt", "output", "total", "declaration"}
HOT = {
    "deciding": ["facts", "agent_row", "candidates", "role_candidates", "waiting_like", "waiting_wake", "lineage"],
    "asked before": ["keyed_wake"],
    "in one go": ["still_waiting", "waiting_alike", "agents_named", "lineages", "asked_standings", "asked_items"],
    "holding": ["addresses_of_names", "addresses_of_runs", "addresses", "take_slots"],
    "deciding on": ["put_wake", "decide_wake", "ask_item", "ask_standing", "add_total", "open_run", "put_attempts"],
    "in turn": ["retry_spend", "pass_spend", "next_joined", "wait_instead", "join_instead", "pair_rows"],
    "due": ["due_standings", "due_wakes", "ringing_items", "wakes_for_slots", "first_ready", "first_later"],
    "tasks": ["ready_targets", "later_targets", "ready_tasks", "later_tasks", "lease_tasks", "settle_done"],
    "sleeping": ["next_instant", "free_slots", "oldest_unclaimed"],
    "claiming": ["admitted_runs", "run_agent", "items_to_show", "tasks_of_run", "beat_steps", "unclaimed_runs"],
    "starting": ["next_epoch", "start_run", "show_item", "hold_item"],
    "leases": ["renew_runs", "renew_node", "orphaned_runs", "node_rows"],
    "ending": ["run_with_wake", "shown_items", "settle_item", "retry_busy", "retry_shared", "move_standing", "end_run"],
    "ending tasks": ["tasks_under_way", "end_attempt", "settle_task", "dependents", "free_dependent", "forget_steps"],
    "changing tasks": ["end_task", "retry_task", "attempt_under_way", "stop_attempt", "unblock_task", "block_task"],
    "freeing tasks": ["to_unblock", "ripen_tasks", "free_keys", "step_behind"],
    "recording": ["put_item", "put_task", "items_by_dedupe", "needed_tasks", "count_needs", "put_event"],
    "recurring": ["open_of_source", "depth_of_run"],
    "queues": ["list_tasks", "latest_tasks", "held_tasks", "keyed_task", "needed_by"],
    "what went wrong": ["aside_tasks", "latest_aside_tasks", "count_aside_tasks"],
    "what is open": ["open_tasks", "latest_open_tasks", "count_open_tasks", "queued_tasks", "latest_queued_tasks"],
    "mirroring": ["mirrored", "source_row", "change_mirrored", "close_mirrored", "tend_sources", "mirrored_sources"],
    "mirroring what is back": ["hold_source", "gone_things", "reopen_mirrored", "next_tenure", "forget_source"],
    "by hand": ["items_by_hand", "mark_read", "snooze_item"],
    "inboxes": ["item_rows", "inbox_items", "latest_inbox_items", "open_items", "latest_open_items", "thread_items"],
    "stuck": ["all_open_items", "stuck_items", "wakes_from"],
    "stopping": ["stop_run", "stopping_runs", "task_steps", "ended_runs", "dead_tasks", "restless_items"],
    "forgetting": ["old_items", "forget_keys", "old_runs", "old_wakes", "old_events", "forget_declarations"],
    "reading": ["open_runs", "run_rows", "wake_rows", "agent_events", "latest_agent_events", "item_row", "tainted_run"],
    "paging": ["list_events", "latest_events", "list_runs", "latest_runs", "list_wakes", "latest_wakes"],
    "paging items": ["list_items", "latest_items"],
    "one agent's": ["agent_runs", "latest_agent_runs", "agent_wakes", "latest_agent_wakes", "agent_act_events"],
    "listing": ["overview_rows", "oldest_waiting", "unread_counts", "task_counts", "waiting_wakes", "event_from"],
    "listing some": ["named_overview_rows", "oldest_waiting_of", "unread_counts_of", "task_counts_of", "open_runs_of"],
    "sums": ["totals", "waiting_one_offs", "steps_of", "tried_in"],
    "lanes": ["run_from", "last_run", "lane_runs", "count_lane_runs", "lane_wakes", "count_lane_wakes", "pause_events"],
    "searching": ["runs_like", "agent_runs_like", "decided_like", "agent_decided_like"],
    "searching on": [
        "first_run_within",
        "first_agent_run_within",
        "first_decided_within",
        "first_agent_decided_within",
    ],
    "output": ["put_output", "output_size", "output_pieces"],
}
SOME = '["a0001", "a0003"]'
# A value for each parameter, as it might be asked.
BOUND: dict[str, Any] = {
    "agent": "a0001",
    "address": "a0001",
    "target": "a0001",
    "role": "r1",
    "node": "one",
    "now": to_micros(NOW),
    "limit": 100,
    "window": 32,
    "within": 500,
    "run": 17,
    "wake": 17,
    "item": 17,
    "task": 17,
    "after": 40,
    "before": 1 << 40,
    "last": "a0003",
    "first": "a0001",
    "ids": "[1, 2, 3]",
    "runs": "[[1, 1], [2, 1]]",
    "kinds": '["declared", "set"]',
    "settled": 1 << 40,
    "pool": "sessions",
    "cause": "peer",
    "answered": 1,
    "news_at": to_micros(NOW),
    "subject": "inbox",
    "slot": "",
    "source": "folder",
    "dedupe": "k1",
    "lease": 20_000_000,
    "stream": "stdout",
    "epoch": 1,
    "log": 1 << 62,
    "state": "ended",
    "kind": "message",
    "day": "2026-01-01",
    "fleet_day": "2026-01-01",
    "data": "\\x00",
    "by_run": 17,
    "pause_agent": "agent:a0001",
    "pause_address": "agent:a0001",
    "pause_source": "source:folder",
    "agent_total": "agent:a0001",
    "pair_total": "pair:a0001|a0002",
    "burst_since": to_micros(NOW - LEASE),
    "burst_until": to_micros(NOW + LEASE),
    "requested_at": to_micros(NOW),
    "place": "a0001",
    "wakes": "{17}",
    "items": "{17}",
    "agents": "{a0001}",
    "slots": 10,
    "priority": 0,
    "thread": 17,
    "root": 17,
    "until": to_micros(NOW + LEASE),
    "ring_at": to_micros(NOW),
    "sources": '[["folder", "a0001"]]',
    "prints": '["1"]',
    "metadata": "{}",
    "fingerprint": "1",
    "later": to_micros(NOW + LEASE),
    "guard": "wakes_per_pair",
    "sender": "a0002",
    "depth": 3,
    "next": 18,
    "tasks": "[17, 18]",
    "keys": '["k1", "k2"]',
    "key": "k",
    "needs": 17,
    "sight": 1000,
    "rank": 3_600_000_000,
    "origin": "operator",
    "type": "info",
    "tags": "[]",
}
BOUND["rows"] = json.dumps([{**BOUND, "body": ""}])
# Of tasks, those of one agent and in one state.
QUEUES = ("queues", "what went wrong", "what is open")
ONE_AGENTS = {**dict.fromkeys(("priority", "role", "sender", "source")), "agents": '["a0001"]', "state": "blocked"}
# The same name for something else.
ELSE: dict[str, dict[str, Any]] = {
    "old_items": {"before": to_micros(NOW - LEASE)},
    "old_runs": {"before": to_micros(NOW - LEASE)},
    "old_wakes": {"before": to_micros(NOW - LEASE)},
    "old_events": {"before": to_micros(NOW - LEASE), "last": 40},
    "forget_keys": {"keys_before": to_micros(NOW - LEASE)},
    "event_from": {"first": 40, "end": 60},
    # One page of everything from a place on: what is wanted of it is filtered as it is read.
    "list_items": {"agent": None, "kind": None, "state": None},
    "latest_items": {"agent": None, "kind": None, "state": None},
    "inbox_items": {"state": None},
    "latest_inbox_items": {"state": None},
    "change_mirrored": {"subject": "word", "body": ""},
    **{name: ONE_AGENTS for group in QUEUES for name in HOT[group]},
    "list_wakes": {"state": None},
    "latest_wakes": {"state": None},
    "agent_wakes": {"state": None},
    "latest_agent_wakes": {"state": None},
    "overview_rows": {"after": ""},
    "named_overview_rows": {"after": "", "names": SOME},
    **{key: {"names": SOME} for key in ("oldest_waiting_of", "unread_counts_of", "task_counts_of", "open_runs_of")},
    "totals": {"scopes": '["agent:a0001", "fleet"]', "first": "2026-01-01", "last": "2026-01-14"},
    "steps_of": {"subjects": '["task:17"]', "longest": 500, "limit": 200},
    "waiting_one_offs": {"agent": None},
    "run_from": {"first": 100_040},
    **{key: {"first": 100_040, "end": 100_060} for key in ("lane_runs", "count_lane_runs")},
    **{key: {"last": 60} for key in ("lane_wakes", "count_lane_wakes")},
    **{key: {"outcome": "failed", "cause": None, "open": None} for key in ("runs_like", "agent_runs_like")},
    **{key: {"cause": None} for key in ("decided_like", "agent_decided_like")},
    "dead_tasks": {"after": 100_000 + SIZES["full"] - 5 * AGENTS},
    "addresses": {"runs": "{17}", "items": "{17}", "names": "{a0001}", "roles": "{r1}"},
    "addresses_of_names": {"names": "{a0001}"},
    "addresses_of_runs": {"runs": "{17}"},
    "agents_named": {"names": "{a0001}"},
    "lineages": {"runs": "{17}"},
    "pair_rows": {"day": "2026-01-02", "begin": "pair:a0001|", "end": "|a0001"},
    "put_item": {"state": "open", "item": None, "subject": "word"},
    "retry_task": {"place": to_micros(NOW)},
    "to_unblock": {"needs": "depends on task %", "removed": "%removed"},
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SqlStore]]:
    """One fleet with two pasts. It is lived in a file, which is quicker, and copied."""
    folder = tmp_path_factory.mktemp("plans")
    lite = open_sqlite(folder / "wakeful.db", durable=False)
    crowd(lite, AGENTS)
    lite.close()
    opened = {}
    for name, size in SIZES.items():
        (folder / name).mkdir()
        shutil.copyfile(folder / "wakeful.db", folder / name / "wakeful.db")
        opened[name] = store_in(folder / name)
        grow_old(connection_of(opened[name]), size)
    yield opened
    for name, store in opened.items():
        store.close()
        release(folder / name)


def grow_old(connection: Connection, size: int) -> None:
    """A past of so many runs, each with its wake, item, output, total and four events."""
    ago = f"({to_micros(NOW)} - 1000000::bigint * ({size} - n))"
    name = f"'a' || lpad((n % {AGENTS})::text, 4, '0')"
    past = (
        f"FROM (SELECT 100000 + n AS id, n, {ago} AS at, {name} AS name FROM generate_series(1, {size}) AS n) AS past"
    )
    statements = [
        # What refers to what is not looked up again for each row, where we may say so.
        """SELECT set_config('session_replication_role', 'replica', true)
        WHERE current_setting('is_superuser') = 'on'""",
        f"""INSERT INTO wake (id, agent, cause, subject, state, rank, pool, requested_at, decided_at)
        SELECT id, name, 'timer', 'beat', CASE WHEN n % 3 = 0 THEN 'refused' ELSE 'admitted' END, 1, 'sessions', at, at
        {past}""",
        f"""INSERT INTO run (id, agent, address, wake, cause, subject, pool, state, outcome, version, position, hits,
            beat, epoch, attempt, charged, pair, node, lease_until, day, fleet_day, admitted_at, started_at, ended_at)
        SELECT id, name, name, id, 'timer', 'beat', 'sessions', 'ended', 'done', 1, 'beat', 0, 1, n, 1, n % 2, '',
            'one', at, '2026-01-01', '2026-01-01', at, at, at {past}""",
        f"""INSERT INTO item (id, kind, state, agent, target, origin, subject, body, type, priority, ring, ring_at,
            dedupe, fingerprint, shown, asked, created_at, closed_at)
        SELECT id, CASE WHEN n % 2 = 0 THEN 'message' ELSE 'task' END,
            CASE WHEN n % 2 = 0 THEN 'closed' ELSE 'completed' END, name, CASE WHEN n % 2 = 1 THEN name END, 'external',
            'word', '', '', 1, 'news', at, 'k' || n, '1', '1', 1, at, at {past}""",
        f"""INSERT INTO attempt (item, run, started_at, ended_at, outcome)
        SELECT id, id, at, at, 'done' {past} WHERE n % 2 = 1""",
        f"INSERT INTO run_item (run, item, fingerprint) SELECT id, id, '1' {past} WHERE n % 2 = 0",
        f"INSERT INTO output (run, stream, start, data) SELECT id, 'stdout', 0, 'words' {past}",
        f"INSERT INTO total (scope, day) SELECT 'agent:' || name, 'day ' || n {past}",
        f"""INSERT INTO event (kind, at, agent, run, fields)
        SELECT kind, at, name, id, '{{}}' {past}, unnest(ARRAY['decided', 'started', 'ended', 'told']) AS kind""",
    ]
    with connection.transaction():
        for statement in statements:
            connection.execute(statement.encode())
    connection.execute("VACUUM ANALYZE")


# ---- plans


def plan(connection: Connection, query: Query, mode: str, bound: dict[str, Any]) -> dict[str, Any]:
    """As the server makes it for these values, or as it keeps it for any."""
    values = ", ".join("NULL" if bound.get(key) is None else f"'{bound[key]}'" for key in query.parameters)
    given = f"({values})" if values else ""
    with connection.transaction(force_rollback=True):
        connection.execute(f"SET LOCAL plan_cache_mode = force_{mode}_plan".encode())
        connection.execute(f"PREPARE looked_at AS {query.text}".encode())
        try:
            (row,) = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE looked_at{given}".encode()).fetchall()
        finally:
            connection.execute("DEALLOCATE looked_at")
    explained: list[dict[str, Any]] = row["QUERY PLAN"]
    return dict(explained[0]["Plan"])


def parts(node: dict[str, Any], limited: bool = False) -> Iterator[tuple[dict[str, Any], bool]]:
    """Every part of a plan, and whether whoever asks it may stop early."""
    yield node, limited
    for child in node.get("Plans", ()):
        streams = node["Node Type"] in ("Limit", "LockRows", "Result", "Subquery Scan") or "Nested" in node["Node Type"]
        # A subquery's first row may be all that is wanted of it (`min(id)`).
        yield from parts(child, node["Node Type"] == "Limit" or (limited and streams))


def whole_reads(connection: Connection, query: Query, mode: str) -> list[str]:
    """The parts of the plan that read a growing table, or an index of all of it, from end to end."""
    bound = {**BOUND, **ELSE.get(query.name, {})}
    small = bounded_indexes(connection)
    found = []
    for part, limited in parts(plan(connection, query, mode, bound)):
        kind, index = part["Node Type"], part.get("Index Name")
        if kind == "Seq Scan" and part["Relation Name"] in GROWING:
            found.append(f"{kind} of {part['Relation Name']}")
        elif index and "Index Cond" not in part and index not in small and not limited:
            found.append(f"{kind} of all of {index}")
    return found


def bounded_indexes(connection: Connection) -> set[str]:
    """Those that hold only what is open, or belong to a table that grows with the fleet alone."""
    rows = connection.execute(
        """SELECT c.relname AS name, t.relname AS table, c.reltuples AS entries, t.reltuples AS rows
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
        WHERE t.relnamespace = current_schema()::regnamespace"""
    ).fetchall()
    return {row["name"] for row in rows if row["table"] not in GROWING or row["entries"] < 0.1 * row["rows"]}


@pytest.mark.parametrize("mode", ["custom", "generic"])
def test_no_hot_query_reads_a_whole_table(stores, mode):
    connection = connection_of(stores["full"])
    names = [name for names in HOT.values() for name in names]
    read = {name: whole_reads(connection, QUERIES[name], mode) for name in names}
    assert {name: found for name, found in read.items() if found} == {}


def test_a_foreign_key_is_found_by_an_index(stores):
    """Whatever is forgotten is looked for in every table that may name it."""
    rows = (
        connection_of(stores["full"])
        .execute(
            """SELECT c.conrelid::regclass::text AS "table", a.attname AS "column" FROM pg_constraint c
        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
        WHERE c.contype = 'f' AND c.connamespace = current_schema()::regnamespace
            AND c.confrelid IN ('run'::regclass, 'wake'::regclass, 'item'::regclass)
            AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.conrelid AND i.indkey[0] = c.conkey[1])"""
        )
        .fetchall()
    )
    assert rows == []


def test_that_rule_sees_a_whole_table_and_a_whole_index(stores):
    connection = connection_of(stores["full"])
    for text in (
        "SELECT * FROM item",
        "SELECT i.id FROM item i WHERE i.body = $1",
        "UPDATE run SET reason = '' WHERE summary = $1",
        "SELECT count(*) FROM wake",
        "SELECT id FROM event WHERE fields = $1 ORDER BY id",
    ):
        wrong = Query("wrong", text, ("agent",) if "$1" in text else ())
        assert [whole_reads(connection, wrong, mode) for mode in ("custom", "generic")] != [[], []], text
    right = Query("right", "SELECT id FROM run WHERE ended_at IS NULL AND agent = $1", ("agent",))
    assert whole_reads(connection, right, "generic") == []


# ---- rows


def rows_read(store: SqlStore, act: Callable[[SqlStore], object]) -> tuple[int, int]:
    """How many rows and index entries of growing tables an act looked at, and how many by going through a table."""
    session = store.session
    assert isinstance(session, PostgresSession)
    links = [session.connection, session.reader().connection]

    def counted() -> tuple[int, int]:
        for link in links:
            link.execute("SELECT pg_stat_force_next_flush()")
        row = session.connection.execute(
            """SELECT sum(t.seq_tup_read + t.idx_tup_fetch + (SELECT sum(i.idx_tup_read) FROM pg_stat_user_indexes i
                WHERE i.relid = t.relid))::bigint AS rows, sum(t.seq_tup_read)::bigint AS whole
            FROM pg_stat_user_tables t WHERE t.schemaname = current_schema() AND t.relname = ANY($1)""",
            (sorted(GROWING),),
        ).fetchone()
        assert row is not None
        return row["rows"], row["whole"]

    before = counted()
    act(store)
    after = counted()
    return after[0] - before[0], after[1] - before[1]


def test_no_act_reads_more_behind_a_past_many_times_as_long(stores):
    taken = {act: (rows_read(stores["small"], do), rows_read(stores["full"], do)) for act, do in ACTS.items()}
    assert sum(full[0] for _, full in taken.values()) > 100, taken
    assert {act: reads for act, reads in taken.items() if reads[1][1] > 0} == {}
    assert {act: (few, many) for act, ((few, _), (many, _)) in taken.items() if many > 2 * few + 200} == {}


def test_a_queue_of_equals_is_read_from_its_head(stores):
    """All of a fleet waits for a slot since the same instant, or was told to try again at one."""
    store, connection = stores["full"], connection_of(stores["full"])
    assert len(store.wakes(state="waiting", limit=AGENTS)) > AGENTS / 2
    connection.execute("VACUUM (INDEX_CLEANUP ON, ANALYZE)")
    assert rows_read(store, lambda store: store.due(NOW, limit=5))[0] < AGENTS / 2
    connection.execute("UPDATE wake SET guard = 'busy', retry_at = 1 WHERE state = 'waiting' AND guard = 'slots'")
    connection.execute("VACUUM (INDEX_CLEANUP ON, ANALYZE) wake")
    try:
        assert rows_read(store, lambda store: store.due(NOW, limit=5))[0] < AGENTS / 2
    finally:
        connection.execute("UPDATE wake SET guard = 'slots', retry_at = NULL WHERE state = 'waiting' AND retry_at = 1")
        connection.execute("VACUUM (INDEX_CLEANUP ON, ANALYZE) wake")


def test_that_count_sees_a_query_that_grows(stores):
    text = b"SELECT count(*) FROM wake WHERE reason = 'none'"
    few, many = (rows_read(stores[size], lambda store: connection_of(store).execute(text)) for size in SIZES)
    assert many[0] > 10 * few[0] > 0
    assert many[1] == many[0]
