"""The past by what it says, and one run whole."""

import pytest

from tests.control.desk import DONE, FAILED, HOUR, MINUTE, NOON, an_agent, caller_of, replicas
from wakeful.core.agents import Limits
from wakeful.core.codec import write_time
from wakeful.core.errors import Mistake
from wakeful.core.items import Kind, NewItem, Origin
from wakeful.store import searching


def ids(answer):
    return [row["id"] for row in answer["items"]]


def wakes(answer):
    return [row["wake_id"] for row in answer["items"]]


# ---- runs


def test_runs_are_found_by_outcome_and_by_cause(desk):
    desk.declare("wren", "moss")
    good = desk.begin("wren")
    desk.end(good, DONE)
    bad = desk.begin("moss")
    desk.end(bad, FAILED)
    open_run = desk.begin("wren")
    assert ids(desk.ask("runs", outcome="failed")) == [bad.run.id]
    assert ids(desk.ask("runs", cause="operator")) == [open_run.run.id, bad.run.id, good.run.id]
    assert ids(desk.ask("runs", cause="operator", open=True, agent="wren")) == [open_run.run.id]
    assert ids(desk.ask("runs", cause="timer")) == []
    first = desk.ask("runs", cause="operator", limit=2)
    assert ids(desk.ask("runs", cause="operator", limit=2, before=first["next"])) == [good.run.id]
    for mistaken in ({"outcome": "well"}, {"cause": "chance"}):
        with pytest.raises(Mistake):
            desk.ask("runs", **mistaken)


def test_a_search_behind_an_address_misses_nobody_where_one_has_looked_further_than_another(desk, monkeypatch):
    monkeypatch.setattr(searching, "WITHIN", 2)
    desk.declare(*replicas("moss", 2))
    failed = []
    for name, ending in (("moss-1", FAILED), ("moss-2", FAILED), *[("moss-1", DONE)] * 3, ("moss-2", FAILED)):
        order = desk.begin(name)
        desk.end(order, ending)
        failed += [order.run.id] if ending is FAILED else []
    found: list[int] = []
    cursor, pages = None, 0
    while pages == 0 or cursor is not None:
        page = desk.ask("runs", agent="moss", outcome="failed", before=cursor)
        found, cursor, pages = [*found, *ids(page)], page["next"], pages + 1
    assert found == failed[::-1] and pages > 1


# ---- decisions


@pytest.fixture
def decided(desk):
    desk.declare(an_agent("wren", limits=Limits(wakes_per_day=0)), "moss")
    order = desk.begin("moss")
    desk.later(HOUR)
    refused = desk.ask("wake", caller_of(order), agent="wren", reason="blocker", body="help")["wake_id"]
    desk.later(HOUR)
    desk.ask("pause_agent", agent="wren", reason="geese on the lawn")
    paused = desk.ask("tick", agent="wren")["wake_id"]
    return desk, order.run.wake, refused, paused


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, "pro"),
        ({"guard": "wakes_per_day"}, "r"),
        ({"guard": "paused"}, "p"),
        ({"cause": "peer"}, "r"),
        ({"cause": "operator"}, "po"),
        ({"cause": "operator", "verdict": "admit"}, "o"),
        ({"text": "GEESE"}, "p"),
        ({"text": "moss"}, "ro"),
        ({"text": "nothing like it"}, ""),
        ({"verdict": "refuse", "text": "wren"}, "pr"),
        ({"since": write_time(NOON + HOUR)}, "pr"),
        ({"until": write_time(NOON + HOUR)}, "ro"),
        ({"since": write_time(NOON + MINUTE), "until": write_time(NOON + 90 * MINUTE)}, "r"),
        ({"since": write_time(NOON + MINUTE), "guard": "paused", "agent": "wren"}, "p"),
    ],
)
def test_decisions_are_found_by_guard_cause_words_and_time(decided, asked, found):
    desk, *known = decided
    named = dict(zip("orp", known, strict=True))
    assert wakes(desk.ask("decisions", **asked)) == [named[letter] for letter in found]


def test_what_joined_another_is_found_as_it_stands_now(desk):
    desk.declare("wren", sessions=1)
    desk.begin("wren")
    waits = desk.ask("wake", agent="wren")["wake_id"]
    joins = desk.ask("wake", agent="wren")["wake_id"]
    assert wakes(desk.ask("decisions", verdict="defer")) == [joins, waits]
    assert joins not in wakes(desk.ask("decisions", verdict="refuse"))
    assert wakes(desk.ask("decisions", text=f"joined wake {waits}")) == [joins]


def test_a_guard_that_there_is_not_is_told_with_those_there_are(desk):
    with pytest.raises(Mistake, match="unknown guard 'coldown'") as mistake:
        desk.ask("decisions", guard="coldown")
    assert "cooldown" in mistake.value.remedy and "check" in mistake.value.remedy


def test_a_search_of_the_log_goes_on_from_where_it_stopped(desk, monkeypatch):
    monkeypatch.setattr(searching, "WITHIN", 2)
    desk.declare("wren", "moss")
    desk.ask("pause_agent", agent="wren")
    first = desk.ask("tick", agent="wren")["wake_id"]
    for _ in range(3):
        desk.end(desk.begin("moss"))
    found: list[int] = []
    cursor, pages = None, 0
    while pages == 0 or cursor is not None:
        page = desk.ask("decisions", guard="paused", before=cursor)
        found, cursor, pages = [*found, *wakes(page)], page["next"], pages + 1
    assert found == [first] and pages > 1


# ---- one run


def test_a_run_is_told_with_what_it_was_shown_and_who_led_to_it(desk):
    desk.declare("wren", "moss")
    asking = desk.begin("moss")
    desk.ask("wake", caller_of(asking), agent="wren", reason="blocker", body="b" * 600)
    (order,) = desk.claim()
    told = desk.ask("show_run", run=order.run.id)
    (item,) = told["items"]
    assert (item["id"], item["kind"], item["from"], item["subject"]) == (told["shown"][0], "message", "moss", "blocker")
    assert (len(item["body"]), item["type"], item["priority"]) == (500, "help_request", "urgent")
    root = desk.store.run(asking.run.id).wake
    assert told["chain"] == {"root": root, "depth": 1, "by_run": asking.run.id, "from": "moss"}
    assert (told["tasks"], told["steps"]) == ([], [])


def test_a_run_is_told_with_its_tasks_and_how_far_it_has_come(desk):
    desk.declare("wren")
    task = desk.ask("add_task", title="count the geese", agent="wren")["id"]
    desk.due()
    (order,) = desk.claim()
    caller = caller_of(order)
    desk.ask("save_step", caller, name="fetch", begun=True)
    desk.later(MINUTE)
    desk.ask("save_step", caller, name="count", result={"geese": "g" * 600})
    told = desk.ask("show_run", run=order.run.id)
    assert told["tasks"] == [{"id": task, "title": "count the geese", "state": "in_progress", "attempts": 1}]
    fetch, count = told["steps"]
    assert fetch == {"name": "fetch", "state": "intent", "at": write_time(NOON), "result": None, "task": task}
    assert (count["state"], count["at"], len(count["result"])) == ("done", write_time(NOON + MINUTE), 500)
    assert count["result"].startswith('{"geese"')


def test_an_earlier_run_that_read_something_from_outside_taints_whoever_looks_at_it(desk):
    desk.declare("wren")
    letter = NewItem(kind=Kind.message, agent="wren", body="hi", origin=Origin.external)
    (sent,) = desk.store.record([letter], NOON)
    first = desk.begin("wren")
    assert desk.ask("show_run", run=first.run.id)["items"][0]["id"] == sent.id
    desk.end(first)
    desk.ask("mark_read", agent="wren", messages=[sent.id])
    second = desk.begin("wren")
    assert not desk.store.is_tainted(second.run.id)
    desk.ask("show_run", caller_of(second), run=first.run.id)
    assert desk.store.is_tainted(second.run.id)
