"""What is asked on every beat costs the same in a fleet of ten and of ten thousand: no hot query reads a whole table.

Plans are looked at empty and full, with statistics and without. What they promise is then counted: the virtual
machine's own steps for each verb, in a small fleet and in one many times its size.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from wakeful.core.admission import admit
from wakeful.core.agents import Limits
from wakeful.core.items import Kind, NewItem, Observation, Ring
from wakeful.core.settlement import settle
from wakeful.store.named_sql import Query, load_queries
from wakeful.store.protocol import Finish
from wakeful.store.sqlite import SqliteSession, open_sqlite
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import (
    DONE,
    HOUR,
    LEASE,
    NOW,
    TODAY,
    a_fleet,
    an_agent,
    operator,
    peer,
    timer,
    work,
)

QUERIES = load_queries("sqlite")
GROWING = {
    "agent",
    "declaration",
    "standing",
    "item",
    "wake",
    "run",
    "run_item",
    "attempt",
    "event",
    "total",
    "role",
    "output",
}
# Read once at a start or an edit of the fleet, or by a person: these may look at every agent, or count all tasks.
WHOLE = {"known_agents", "live_agents", "timer_standings", "count_tasks"}
HOT = {
    "deciding": ["facts", "agent_row", "candidates", "role_candidates", "waiting_like", "waiting_wake", "lineage"],
    "asked before": ["keyed_wake"],
    "deciding on": ["retry_spend", "pass_spend", "next_joined", "wait_instead", "join_instead", "decide_wake"],
    "due": [
        "due_standings",
        "due_wakes",
        "ringing_items",
        "wakes_for_slots",
        "first_ready",
        "first_later",
        "ready_targets",
        "later_targets",
        "ready_tasks",
        "later_tasks",
    ],
    "sleeping": ["next_instant", "free_slots", "oldest_unclaimed"],
    "leases": ["renew_runs", "renew_node", "orphaned_runs"],
    "output": ["put_output", "output_size", "output_pieces"],
    "claiming": ["admitted_runs", "run_agent", "items_to_show", "tasks_of_run", "beat_steps", "unclaimed_runs"],
    "ending": [
        "run_with_wake",
        "tasks_under_way",
        "dependents",
        "shown_items",
        "settle_item",
        "retry_busy",
        "move_standing",
        "end_run",
        "settle_task",
        "end_done",
        "settle_done",
    ],
    "shifts": ["lease_tasks", "put_attempts", "run_owner"],
    "recording": ["put_item", "put_task", "items_by_dedupe", "needed_tasks", "put_event"],
    "mirroring": ["mirrored", "source_row", "change_mirrored", "close_mirrored", "tend_sources", "mirrored_sources"],
    "mirroring what is back": ["hold_source", "gone_things", "reopen_mirrored", "next_tenure", "forget_source"],
    "by hand": ["items_by_hand", "mark_read", "snooze_item"],
    "inboxes": [
        "item_rows",
        "inbox_items",
        "latest_inbox_items",
        "open_items",
        "latest_open_items",
        "all_open_items",
        "thread_items",
        "stuck_items",
        "wakes_from",
    ],
    "queues": [
        "list_tasks",
        "latest_tasks",
        "aside_tasks",
        "latest_aside_tasks",
        "count_aside_tasks",
        "queued_tasks",
        "latest_queued_tasks",
        "open_tasks",
        "latest_open_tasks",
        "count_open_tasks",
        "held_tasks",
        "keyed_task",
        "needed_by",
    ],
    "changing tasks": ["end_task", "retry_task", "attempt_under_way", "stop_attempt", "unblock_task", "block_task"],
    "recurring": ["open_of_source", "depth_of_run"],
    "stopping": [
        "stop_run",
        "stopping_runs",
        "stopping_tasks",
        "task_steps",
        "ended_runs",
        "dead_tasks",
        "restless_items",
    ],
    "forgetting": ["old_items", "forget_keys", "old_runs", "old_wakes", "old_events", "forget_declarations"],
    "reading": ["tainted_run", "open_runs", "run_rows", "wake_rows", "list_events"],
    "reading on": ["agent_events", "item_row", "standing_row", "pair_rows"],
    "listing": ["overview_rows", "oldest_waiting", "unread_counts", "task_counts", "waiting_wakes", "event_from"],
    "listing some": ["named_overview_rows", "oldest_waiting_of", "unread_counts_of", "task_counts_of", "open_runs_of"],
    "sums": ["totals", "count_all_tasks", "waiting_one_offs", "steps_of", "tried_in"],
    "lanes": ["run_from", "last_run", "lane_runs", "count_lane_runs", "lane_wakes", "count_lane_wakes", "pause_events"],
    "searching": ["runs_like", "agent_runs_like", "decided_like", "agent_decided_like"],
    "searching on": [
        "first_run_within",
        "first_agent_run_within",
        "first_decided_within",
        "first_agent_decided_within",
    ],
}


def connection(store: SqlStore) -> apsw.Connection:
    session = store.session
    assert isinstance(session, SqliteSession)
    return session.connection


def crowd(store: SqlStore, size: int) -> None:
    """A fleet that has been at it for a while: history, mail, tasks for later, and a queue before the slots."""
    names = [f"a{n:04}" for n in range(size)]
    many = [an_agent(name, roles=(f"r{n % 7}",)) for n, name in enumerate(names)]
    store.declare(a_fleet("moss", "wren", *many, sessions=size), NOW)
    items = [NewItem(kind=Kind.message, agent=name) for name in names for _ in range(2)]
    store.record([*items, *(NewItem(kind=Kind.task, agent=name, not_before=NOW + HOUR) for name in names)], NOW)
    for _ in range(2):
        store.decide([operator(name) for name in names], admit, NOW)
        orders = store.claim("one", NOW, LEASE, limit=size)
        ends = [Finish(run=order.run.id, epoch=order.run.epoch, ending=DONE) for order in orders]
        store.finish(ends, settle, NOW)
    store.declare(a_fleet("moss", "wren", *many, sessions=2), NOW)
    waiting = [operator(name, NOW + timedelta(seconds=1)) for name in names]
    store.decide(waiting, admit, NOW + timedelta(seconds=1))
    assert len(store.wakes(state="waiting", limit=size)) == size - 2
    for order in store.claim("one", NOW, LEASE):
        store.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=DONE)], settle, NOW)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SqlStore]]:
    folder: Path = tmp_path_factory.mktemp("plans")
    opened = {
        name: open_sqlite(folder / f"{name}.db", durable=False) for name in ("empty", "small", "full", "analysed")
    }
    crowd(opened["small"], 20)
    crowd(opened["full"], 800)
    crowd(opened["analysed"], 200)
    connection(opened["analysed"]).execute("ANALYZE")
    yield opened
    for store in opened.values():
        store.close()


# ---- plans


def tables_by_name(query: Query) -> dict[str, str]:
    """What a plan calls a table: its alias, where it has one."""
    words = (
        r"\b(?:FROM|JOIN|UPDATE|INTO)\s+(\w+)(?:\s+(?:AS\s+)?(?!WHERE|SET|ON|JOIN|LEFT|ORDER|USING|LIMIT|GROUP)(\w+))?"
    )
    return {alias or table: table for table, alias in re.findall(words, query.text)}


def whole_reads(store: SqlStore, query: Query) -> list[str]:
    """The lines of the plan that read a growing table from end to end; a partial index holds only what is open."""
    raw = connection(store)
    partial = {
        name for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql LIKE '% WHERE %'")
    }
    names = tables_by_name(query)
    found = []
    bindings = (None,) * len(query.parameters)
    for *_, line in raw.execute(f"EXPLAIN QUERY PLAN {query.text}", bindings):
        scan = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", line)
        if scan and names.get(scan[1], scan[1]) in GROWING and scan[2] not in partial:
            found.append(line)
    return found


@pytest.mark.parametrize("size", ["empty", "small", "full", "analysed"])
def test_no_hot_query_reads_a_whole_table(stores, size):
    read = {name: whole_reads(stores[size], QUERIES[name]) for names in HOT.values() for name in names}
    assert {name: found for name, found in read.items() if found} == {}


@pytest.mark.parametrize("size", ["empty", "small", "full", "analysed"])
def test_only_a_start_an_edit_a_listing_of_all_agents_and_a_count_of_all_tasks_read_whole_tables(stores, size):
    assert {name for name, query in QUERIES.items() if whole_reads(stores[size], query)} == WHOLE


def test_that_rule_sees_a_whole_table_behind_an_alias_and_behind_a_whole_index(stores):
    for text in (
        "SELECT * FROM item",
        "SELECT i.id FROM item i WHERE i.body = ?1",
        "SELECT count(*) FROM wake AS w",
        "UPDATE run SET reason = '' WHERE summary = ?1",
        "SELECT a.name FROM standing s JOIN agent a ON a.enabled = s.hits",
    ):
        assert whole_reads(stores["empty"], Query("wrong", text, ("body",) if "?1" in text else ())), text
    bounded = "SELECT id FROM run WHERE ended_at IS NULL AND agent = ?1"
    assert whole_reads(stores["empty"], Query("right", bounded, ("agent",))) == []


# ---- steps


def steps_of(store: SqlStore, act: Callable[[SqlStore], object]) -> Counter[str]:
    """The virtual machine's steps for each statement of an act, and the rows it read by going through a table."""
    session = store.session
    assert isinstance(session, SqliteSession)
    counted: Counter[str] = Counter()

    def note(profile: dict[str, object]) -> None:
        status = profile["stmt_status"]
        assert isinstance(status, dict)
        counted["steps"] += status["SQLITE_STMTSTATUS_VM_STEP"]
        counted["scanned"] += status["SQLITE_STMTSTATUS_FULLSCAN_STEP"]

    watched = [session.connection, connection_of_reader(session)]
    for raw in watched:
        raw.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
    try:
        act(store)
    finally:
        for raw in watched:
            raw.trace_v2(0, None)
    return counted


def connection_of_reader(session: SqliteSession) -> apsw.Connection:
    return session.reader().connection


def knock(store: SqlStore) -> list[object]:
    at = NOW + HOUR + timedelta(minutes=10)
    store.record([NewItem(kind=Kind.message, agent="moss", sender="wren", ring=Ring.peer)], at)
    return list(store.decide([peer("moss", "wren", at), timer("wren", at)], admit, at))


def live_through_a_run(store: SqlStore) -> None:
    (order,) = store.claim("one", NOW + HOUR, LEASE)
    store.save_step(order.run.id, order.run.epoch, "fetch", "a page", NOW + HOUR)
    store.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=DONE)], settle, NOW + HOUR)


def look_back(store: SqlStore) -> None:
    """The newest page of everything, and what was last told before an instant."""
    store.runs(agent="moss", before=1 << 62, limit=3)
    store.wakes(agent="moss", before=1 << 62, limit=3)
    store.events(before=1 << 62, limit=3)
    store.events(agent="moss", before=1 << 62, limit=3)
    store.events(agent="moss", kinds=("declared", "set"), before=1 << 62, limit=3)
    store.events_until(NOW - timedelta(minutes=1))


def stay(store: SqlStore) -> None:
    store.join("one", "attic", "", NOW, LEASE)
    store.renew("one", [(1, 1), (2, 1)], NOW, LEASE)


def look_into_an_inbox(store: SqlStore) -> None:
    """From either end, what is open of it, one conversation, and what is stuck in it."""
    store.items(agent="moss", kind="message", before=1 << 62, limit=3)
    store.items(agent="moss", kind="message", limit=3)
    store.items(agent="moss", state="open", sender="wren", before=1 << 62, limit=3)
    store.items(state="open", before=1 << 62, limit=3)
    store.items(thread=3)
    store.stuck(agent="moss")


def mirror(store: SqlStore) -> None:
    store.tend([("folder", "moss"), ("board", "wren")], "one", NOW, LEASE)
    for things in ("ab", "ab", "b", "ab"):
        observed = [Observation(external_id=name, fingerprint=f"1 of {name}", lasting=True) for name in things]
        store.observe("folder", "moss", observed, NOW - HOUR, node="one")
    for item in store.items(agent="moss", state="open"):
        if item.external_id is not None:
            store.snooze([item.id], NOW + HOUR, "rana", NOW)
    store.mirrored_sources()
    store.amend("folder", "moss", [Observation(external_id="a", fingerprint="2")], NOW - HOUR)
    store.abandon([("folder", "moss")], NOW - HOUR, node="one")


def keep_a_word(store: SqlStore) -> None:
    store.keep_output(1, "stdout", b"a word")
    store.output(1, "stdout", -3, 3)
    store.output(2, "stdout", 0, 9)


MESSAGE = NewItem(kind=Kind.message, agent="moss")

ACTS: dict[str, Callable[[SqlStore], object]] = {
    "renew": stay,
    "look for orphans": lambda store: store.orphans(NOW + HOUR),
    "keep output": keep_a_word,
    "record": lambda store: store.record([NewItem(kind=Kind.message, agent="moss", ring=Ring.news)], NOW),
    "due": lambda store: store.due(NOW, limit=20),
    "sleep": lambda store: store.due(NOW - HOUR, limit=20),
    "decide": lambda store: store.decide([operator("moss", NOW)], admit, NOW + HOUR),
    "claim and finish": live_through_a_run,
    "knock": knock,
    "why": lambda store: store.why(peer("moss", "wren"), NOW),
    # What falls due at the hour would be put at its place, each once.
    "expire": lambda store: store.expire(NOW + HOUR - LEASE),
    "stop": lambda store: (store.stop([1, 2, 3], "rana", NOW + HOUR), store.stopping("one")),
    "look at the pairs": lambda store: store.pairs("moss", TODAY),
    "look at one": lambda store: store.overview(agent="moss"),
    "look back": look_back,
    "look into an inbox": look_into_an_inbox,
    "look at a lineage": lambda store: store.lineage(3),
    "mirror": mirror,
    "read": lambda store: store.mark_read([made.id for made in store.record([MESSAGE], NOW)], "rana", NOW),
    "forget nothing": lambda store: store.forget(NOW - 1_000 * HOUR, NOW - 1_000 * HOUR, NOW),
}


def growth(stores: dict[str, SqlStore], acts: dict[str, Callable[[SqlStore], object]]) -> dict[str, tuple[int, int]]:
    """The acts that take more steps where there is more, with how many they took."""
    taken = {act: (steps_of(stores["small"], do), steps_of(stores["full"], do)) for act, do in acts.items()}
    counts = {act: (small["steps"], full["steps"]) for act, (small, full) in taken.items()}
    assert all(small > 0 for small, _ in counts.values())
    return {act: (small, full) for act, (small, full) in counts.items() if full > 2 * small + 200}


def test_no_act_takes_more_steps_in_a_fleet_forty_times_the_size(stores):
    assert growth(stores, ACTS) == {}


@pytest.fixture
def pasts(tmp_path: Path) -> Iterator[dict[str, SqlStore]]:
    """Two stores whose only agents have a short and a long past behind them."""
    opened = {name: open_sqlite(tmp_path / f"{name}.db", durable=False) for name in ("small", "full")}
    for store, length in zip(opened.values(), (15, 300), strict=True):
        store.declare(
            a_fleet(an_agent("moss", limits=Limits(wakes_per_day=length, wakes_per_pair=length)), "wren"), NOW
        )
        for past in range(length, 0, -1):
            at = NOW - past * timedelta(minutes=15)
            call = NewItem(kind=Kind.message, agent="moss", sender="wren", ring=Ring.peer)
            item, task = (answer.id for answer in store.record([call, NewItem(kind=Kind.task, agent="wren")], at))
            store.decide([peer("moss", "wren", at, item=item), work(task, "wren", at)], admit, at)
            orders = store.claim("one", at, LEASE)
            ends = [Finish(run=order.run.id, epoch=order.run.epoch, ending=DONE) for order in orders]
            store.finish(ends, settle, at)
        assert len(store.runs(limit=9999)) == 2 * length
    yield opened
    for store in opened.values():
        store.close()


def test_no_act_takes_more_steps_behind_a_past_twenty_times_as_long(pasts):
    assert growth(pasts, ACTS) == {}


def test_that_count_sees_a_query_that_grows(stores):
    def count_all(store: SqlStore) -> object:
        return list(connection(store).execute("SELECT count(*) FROM wake WHERE reason IS NULL"))

    small, full = steps_of(stores["small"], count_all), steps_of(stores["full"], count_all)
    assert full["steps"] > 10 * small["steps"]
    assert full["scanned"] > 10 * small["scanned"]
