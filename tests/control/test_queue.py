"""The queue looked at: which tasks, how many, one whole, and what of it a run may see."""

import pytest

from tests.control.desk import DONE, FAILED, SECOND, an_agent, caller_of
from wakeful.core.errors import Forbidden, Mistake, Unknown
from wakeful.core.items import Kind, NewItem
from wakeful.core.runs import Ending
from wakeful.core.tasks import message_id


@pytest.fixture
def filled(desk):
    """Five tasks, no two alike."""
    desk.declare("wren", an_agent("moss", roles=("editor",)))
    desk.ids = {
        "plain": desk.ask("add_task", agent="wren", title="plain")["id"],
        "tagged": desk.ask("add_task", agent="wren", title="tagged", tags=["book", "new"])["id"],
        "role": desk.ask("add_task", role="editor", title="read it", priority="critical")["id"],
        "keyed": desk.ask("add_task", agent="moss", title="100% _done_", causal_key="chapter-3")["id"],
        "cancelled": desk.ask("add_task", agent="moss", title="never")["id"],
    }
    desk.ask("cancel_task", task=desk.ids["cancelled"], reason="of no use")
    return desk


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["plain", "tagged", "role", "keyed", "cancelled"]),
        ({"agent": "wren"}, ["plain", "tagged"]),
        ({"role": "editor"}, ["role"]),
        ({"state": ["cancelled"]}, ["cancelled"]),
        ({"state": ["cancelled", "pending"], "agent": "moss"}, ["keyed", "cancelled"]),
        ({"tag": "new"}, ["tagged"]),
        ({"tag": "ne"}, []),
        ({"causal_key": "chapter-3"}, ["keyed"]),
        ({"priority": "urgent"}, ["role"]),
        ({"priority": "critical"}, ["role"]),
        ({"text": "lain"}, ["plain"]),
        ({"text": "of no use"}, ["cancelled"]),
        ({"text": "%"}, ["keyed"]),
        ({"text": "_"}, ["keyed"]),
        ({"source": "schedule:nightly"}, []),
    ],
)
def test_tasks_are_found_by_what_is_known_of_them(filled, asked, found):
    ids = [filled.ids[name] for name in found]
    assert [task["id"] for task in filled.ask("tasks", **asked)["items"]] == ids
    counted = filled.ask("count_tasks", **asked)
    assert counted["total"] == len(ids)
    assert counted["counts"].get("cancelled", 0) == ("cancelled" in found)


def test_what_a_source_added_is_found_by_its_source(desk):
    desk.declare("wren")
    desk.ask("run", agent="wren", prompt="now")
    source = desk.ask("tasks")["items"][0]["source"]
    assert desk.ask("count_tasks", source=source)["total"] == 1


def test_with_before_the_newest_come_first_a_page_at_a_time(filled):
    ids = sorted(filled.ids.values(), reverse=True)
    first = filled.ask("tasks", before=2**62, limit=3)
    assert ([task["id"] for task in first["items"]], first["next"]) == (ids[:3], ids[2])
    rest = filled.ask("tasks", before=first["next"], limit=3)
    assert ([task["id"] for task in rest["items"]], rest["next"]) == (ids[3:], None)


@pytest.mark.parametrize(
    "asked", [{"state": ["dead"]}, {"priority": "soon"}, {"text": "a\0b"}, {"before": 0}, {"before": 2**63}]
)
def test_what_cannot_be_asked_for_is_a_mistake(filled, asked):
    with pytest.raises(Mistake):
        filled.ask("tasks", **asked)


# ---- one task


def test_a_task_is_told_whole_with_its_attempts_and_what_it_depends_on(desk):
    desk.declare(an_agent("wren"))
    first = desk.ask("add_task", agent="wren", title="first", key="one")["id"]
    then = desk.ask("add_task", agent="wren", title="then", depends_on=["one"], timeout="1m30s", tags=["a"])
    assert (then["waits_for"], then["depends_on"]) == (1, [{"id": first, "state": "pending"}])
    desk.due()
    (order,) = desk.claim()
    desk.later(3 * SECOND)
    desk.end(order, Ending(exit_code=3, printed="so far so good", elapsed=3 * SECOND))
    row = desk.ask("task", task=first)
    (attempt,) = row["attempts"]
    assert (attempt["exit_code"], attempt["duration_ms"], attempt["outcome"]) == (3, 3_000, "failed")
    assert attempt["error"] and attempt["run_id"] == order.run.id
    assert attempt["output"] == "so far so good"
    assert (row["state"], row["message_id"]) == ("failed", "one")
    later = desk.ask("task", task=then["id"])
    assert (later["depends_on"], later["timeout"], later["tags"]) == (
        [{"id": first, "state": "failed"}],
        "1m30s",
        ["a"],
    )
    assert "output" not in desk.ask("tasks")["items"][0]["attempts"][0], "a list leaves it out"


def test_the_result_is_found_by_the_message_id(desk):
    desk.declare("wren")
    desk.ask("add_task", agent="wren", title="t", key="order-7")
    desk.due()
    desk.end(desk.claim()[0], Ending(exit_code=0, output="42 pages"))
    row = desk.ask("keyed_task", message_id="order-7")
    assert (row["state"], row["result"]) == ("completed", "42 pages")
    with pytest.raises(Unknown, match="'order-8'"):
        desk.ask("keyed_task", message_id="order-8")


def test_a_key_is_its_senders_own_and_the_operator_finds_it_as_it_is_kept(desk):
    desk.declare("wren", "moss")
    wren, moss = caller_of(desk.begin("wren")), caller_of(desk.begin("moss"))
    own = desk.ask("add_task", wren, role="editor", title="w", key="k")
    other = desk.ask("add_task", moss, role="editor", title="m", key="k")
    assert own["id"] != other["id"] and own["message_id"] == other["message_id"] == "k"
    assert desk.ask("keyed_task", wren, message_id="k")["id"] == own["id"]
    assert desk.ask("keyed_task", message_id="moss:k")["id"] == other["id"]
    for caller in (wren, moss):
        with pytest.raises(Unknown):
            desk.ask("keyed_task", caller, message_id="moss:k")
    with pytest.raises(Unknown):
        desk.ask("keyed_task", message_id="k")


def test_the_key_of_what_a_schedule_added_is_told_as_it_is_kept(desk):
    desk.declare("wren")
    kept = "schedule:nightly:2026-03-02T12:00:00Z"
    item = NewItem(
        kind=Kind.task, agent="wren", subject="t", sender="schedule:nightly", source="schedule:nightly", dedupe=kept
    )
    (recorded,) = desk.store.record([item], desk.now)
    assert message_id(desk.store.item(recorded.id)) == kept
    assert desk.ask("keyed_task", message_id=kept)["id"] == recorded.id


# ---- what is dead


def test_the_dead_are_listed_with_their_last_error_and_nothing_else_is(desk):
    desk.declare("wren")
    for title in ("dies", "lives"):
        desk.ask("add_task", agent="wren", title=title, max_retries=0)
    for ending in (FAILED, DONE):
        desk.due()
        desk.end(desk.claim()[0], ending)
        desk.later(SECOND)
    (row,) = desk.ask("dead")["items"]
    assert (row["title"], row["state"], len(row["attempts"])) == ("dies", "dead_letter", 1)
    assert row["error"] == row["attempts"][0]["error"] != ""
    assert desk.ask("dead", text="nothing like it")["items"] == []


# ---- what a run may see


def test_a_run_sees_what_its_agent_added_or_is_to_do_and_nothing_else(desk):
    desk.declare("wren", an_agent("moss", roles=("editor",)), an_agent("fern", roles=("editor",)))
    caller = caller_of(desk.begin("moss"))
    own = desk.ask("add_task", agent="moss", title="for moss")["id"]
    role = desk.ask("add_task", role="editor", title="for editors")["id"]
    added = desk.ask("add_task", caller, agent="wren", title="by moss")["id"]
    itself = desk.ask("add_task", caller, agent="moss", title="by moss for moss")["id"]
    other = desk.ask("add_task", agent="wren", title="for wren")["id"]

    def seen(**asked):
        return [task["id"] for task in desk.ask("tasks", caller, **asked)["items"]]

    assert seen() == [own, role, added, itself]
    assert seen(agent="moss") == [own, itself]
    assert seen(agent="wren") == [added]
    assert seen(role="editor") == [role]
    assert seen(role="writer") == []
    assert seen(limit=2) == [own, role] and seen(after=role) == [added, itself]
    assert seen(before=2**62) == [itself, added, role, own]
    assert desk.ask("task", caller, task=added)["id"] == added
    for task in (other, 99):
        with pytest.raises(Forbidden, match=f"and {task} is none of them"):
            desk.ask("task", caller, task=task)
    (told,) = desk.store.events(kinds=("denied",))
    assert (told.agent, told.run, told.fields["operation"]) == ("moss", caller.run, "task")
