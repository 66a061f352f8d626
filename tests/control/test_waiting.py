"""Why an open task does not run, who takes it, and what a run may ask of whom."""

import pytest

from tests.control.desk import DONE, FAILED, MINUTE, Desk, SharedDesk, an_agent, caller_of, replicas
from wakeful.core.agents import Limits, RetryPolicy
from wakeful.core.errors import Forbidden, Mistake
from wakeful.core.items import Kind, NewItem, Origin
from wakeful.core.windows import parse_window

FAR = "2030-01-01T00:00:00Z"
BRIEF = RetryPolicy(max_retries=2)


def add(desk: Desk, title: str = "t", caller=None, **given) -> int:
    given = given if {"agent", "role"} & given.keys() else {"agent": "wren", **given}
    asked = desk.ask("add_task", title=title, **given) if caller is None else None
    return int((asked or desk.ask("add_task", caller, title=title, **given))["id"])


def waits(desk: Desk, task: int, *caller) -> str | None:
    """As it is told of the task by itself; a list begins with the same words."""
    whole: str | None = desk.ask("task", *caller, task=task)["waiting_for"]
    (short,) = (row["waiting_for"] for row in desk.ask("tasks", *caller)["items"] if row["id"] == task)
    assert (whole is None) == (short is None)
    return whole


# ---- what it waits for


def test_a_task_that_can_begin_waits_for_nothing_and_one_under_way_or_ended_neither(desk):
    desk.declare("wren")
    task = add(desk)
    assert waits(desk, task) is None
    desk.due()
    (order,) = desk.claim()
    assert waits(desk, task) is None
    desk.end(order, DONE)
    assert waits(desk, task) is None


def test_behind_another_of_its_causal_key_it_names_that_one_with_its_sender_and_what_that_waits_for(desk):
    desk.declare("wren", "fern")
    hog = add(desk, "hog", caller_of(desk.begin("fern")), agent="fern", causal_key="invoice-7", not_before=FAR)
    task = add(desk, causal_key="invoice-7")
    assert waits(desk, task) == (
        f"task {hog} of its causal key: that is pending, from fern, and waits for its time: not before {FAR}"
    )
    desk.ask("cancel_task", task=hog)
    assert waits(desk, task) is None


def test_behind_a_blocked_one_it_says_what_that_is_blocked_for(desk):
    desk.declare("wren")
    needed = add(desk, "needed")
    blocked = add(desk, depends_on=[needed], causal_key="doc")
    task = add(desk, causal_key="doc")
    assert waits(desk, blocked) == f"what it depends on: task {needed} (pending)"
    desk.ask("cancel_task", task=needed)
    assert waits(desk, blocked) == f"task {needed} that it depends on: that is cancelled"
    assert waits(desk, task) == (
        f"task {blocked} of its causal key: that is blocked, from operator, "
        f"and waits for task {needed} that it depends on: that is cancelled"
    )


def test_behind_what_was_taken_from_a_worker_it_waits_until_that_has_ended(desk):
    desk.declare(*replicas("moss", 2))
    first, task = (add(desk, agent="moss", causal_key="doc") for _ in range(2))
    desk.due()
    (order,) = desk.claim()
    desk.ask("cancel_task", task=first)
    told = f"task {first} of its causal key: that is cancelled, from operator, and its worker has not ended yet"
    assert waits(desk, task) == told
    desk.end(order, DONE)
    assert waits(desk, task) is None


def test_a_run_is_not_told_whose_task_stands_before_its_own(desk):
    desk.declare("wren", "fern")
    add(desk, "secret", agent="fern", causal_key="doc", not_before=FAR)
    wren = caller_of(desk.begin("wren"))
    task = add(desk, caller=wren, causal_key="doc")
    assert waits(desk, task, wren) == "another task of its causal key"


def test_several_dependencies_are_named_with_their_states(desk):
    desk.declare("wren")
    one, two, done = (add(desk) for _ in range(3))
    desk.ask("complete_task", task=done)
    assert waits(desk, add(desk, depends_on=[one, two, done])) == (
        f"what it depends on: tasks {one} (pending), {two} (pending)"
    )


def test_its_time_and_its_next_attempt_are_told(desk):
    desk.declare("wren")
    task = add(desk)
    desk.due()
    desk.end(desk.claim()[0], FAILED)
    assert (waits(desk, task) or "").startswith("its next attempt: not before 2026-03-02T12:00:")
    assert waits(desk, add(desk, not_before="in 1h")) == "its time: not before 2026-03-02T13:00:00Z"


def test_a_role_that_nobody_has_is_told_with_the_one_that_was_probably_meant(desk):
    desk.declare(an_agent("wren", roles=("editor",)))
    task = add(desk, role="edtior")
    assert waits(desk, task) == "somebody who takes it: no agent has the role edtior (did you mean editor?)"
    desk.declare(an_agent("wren", roles=("edtior",)))
    assert waits(desk, task) is None


def test_an_agent_that_is_held_disabled_or_gone_is_told(desk):
    desk.declare("wren", "moss")
    task = add(desk)
    desk.ask("pause_agent", agent="wren", reason="on holiday")
    assert waits(desk, task) == "somebody who takes it: wren is paused by operator: on holiday"
    desk.ask("resume_agent", agent="wren")
    desk.ask("pause", reason="all of it")
    assert waits(desk, task) == "somebody who takes it: the fleet is paused by operator: all of it"
    desk.ask("resume")
    desk.declare(an_agent("wren", enabled=False), "moss")
    assert waits(desk, task) == "somebody who takes it: wren is disabled"
    desk.declare("moss")
    assert waits(desk, task) == "somebody who takes it: wren is no longer in the fleet"


def test_a_quarantined_agent_is_told_as_that(desk):
    desk.declare(an_agent("wren", max_failures=1))
    add(desk, max_retries=0)
    desk.due()
    desk.end(desk.claim()[0], FAILED)
    order = desk.begin("wren")
    desk.end(order, FAILED)
    assert (waits(desk, add(desk)) or "").startswith("somebody who takes it: wren is quarantined")


def test_a_paused_source_holds_its_tasks_and_is_told(desk):
    desk.declare("wren")
    item = NewItem(kind=Kind.task, agent="wren", subject="t", origin=Origin.operator, source="schedule:nightly")
    (recorded,) = desk.store.record([item], desk.now)
    from wakeful.core.wakes import Pause

    held = Pause(scope="source:schedule:nightly", owner="operator", reason="too many", since=desk.now)
    desk.store.pause(held, desk.now)
    assert waits(desk, recorded.id) == "its source schedule:nightly: paused by operator: too many"


def test_a_busy_agent_and_a_fleet_without_a_free_worker_are_told(desk):
    desk.declare(*replicas("moss", 2), "wren", workers=2)
    run = desk.begin("wren").run.id
    task = add(desk)
    assert waits(desk, task) == f"wren: at work in run {run}"
    for _ in range(2):
        add(desk, agent="moss")
    desk.declare(*replicas("moss", 2), "wren", "fern", workers=2)
    desk.due()
    desk.due()
    assert waits(desk, add(desk, agent="moss")) == "somebody of moss: all 2 are at work or paused"
    assert waits(desk, add(desk, agent="fern")) == "a free worker: 2 of 2 are taken"


def test_what_a_guard_said_is_told(desk):
    desk.declare(an_agent("wren", limits=Limits(quiet_hours=(parse_window("11:00-13:00"),))))
    task = add(desk)
    desk.due()
    assert (desk.ask("task", task=task)["waiting_for"] or "").startswith("quiet_hours: ")


def test_without_an_engine_that_is_what_it_waits_for(desk):
    desk.declare("wren")
    task = add(desk)
    desk.engine_stops()
    assert waits(desk, task) == "an engine: none is at work"


def test_a_blocked_one_waits_for_somebody_who_lets_it_go_on(desk):
    desk.declare(an_agent("wren", limits=Limits(chain=0)))
    task = add(desk, caller=caller_of(desk.begin("wren")))
    assert (waits(desk, task) or "").startswith("somebody who lets it go on: chain: ")


def test_the_same_is_read_of_a_shared_store(shared: SharedDesk):
    shared.join("here")
    shared.declare(*replicas("moss", 2), an_agent("wren", roles=("editor",)))
    first, second = (add(shared, agent="moss", causal_key="doc") for _ in range(2))
    ghost = add(shared, role="ghosts")
    assert shared.store.ahead([first, second, ghost]) == {second: first}
    assert [agent.name for agent in shared.store.of_role("editor")] == ["wren"]
    assert shared.store.untaken() == [(None, "ghosts", 1)]
    assert waits(shared, second) == f"task {first} of its causal key: that is pending, from operator"
    shared.due()
    shared.claim()
    shared.ask("cancel_task", task=first)
    assert shared.store.ahead([second]) == {second: first}


def test_a_page_of_tasks_costs_as_many_reads_as_one_task(desk, monkeypatch):
    desk.declare("wren")
    reads: list[str] = []
    reader = type(desk.store.session.reader())
    real = reader.all

    def noted(self, query, **more):
        reads.append(query)
        return real(self, query, **more)

    monkeypatch.setattr(reader, "all", noted)
    counts = []
    for _ in range(2):
        for _ in range(20):
            add(desk, causal_key="doc")
        reads.clear()
        desk.ask("tasks")
        counts.append(len(reads))
    assert counts[0] == counts[1] and "task_attempts" not in reads


# ---- nobody takes it


def test_what_nobody_takes_is_recorded_and_whoever_adds_it_is_told(desk):
    desk.declare(an_agent("wren", roles=("editor",)), an_agent("moss", enabled=False))
    told = {
        "ghosts": desk.ask("add_task", role="ghosts", title="t")["warning"],
        "moss": desk.ask("add_task", agent="moss", title="t")["warning"],
        "editor": desk.ask("add_task", role="editor", title="t")["warning"],
        "wren": desk.ask("add_task", agent="wren", title="t")["warning"],
    }
    assert told == {
        "ghosts": "nobody takes it now: no agent has the role ghosts",
        "moss": "nobody takes it now: moss is disabled",
        "editor": None,
        "wren": None,
    }
    batch = [{"title": "t", "role": "ghosts"}, {"title": "t", "agent": "wren"}]
    assert [bool(row["warning"]) for row in desk.ask("add_tasks", tasks=batch)["items"]] == [True, False]
    assert desk.ask("status")["untaken"] == [
        {"agent": "moss", "role": None, "tasks": 1},
        {"agent": None, "role": "ghosts", "tasks": 2},
    ]


def test_what_is_for_an_agent_that_is_gone_is_untaken_until_it_is_back(desk):
    desk.declare(*replicas("moss", 2), "wren")
    add(desk, agent="moss")
    add(desk, agent="moss-2")
    desk.ask("complete_task", task=add(desk, role="ghosts"))
    assert desk.ask("status")["untaken"] == []
    desk.declare("wren")
    assert [row["agent"] for row in desk.ask("status")["untaken"]] == ["moss", "moss-2"]
    desk.declare(*replicas("moss", 2), "wren")
    assert desk.ask("status")["untaken"] == []


# ---- what a run may ask of others


def test_a_run_gives_nobody_more_retries_or_time_than_that_one_has(desk):
    desk.declare(
        "wren",
        an_agent("moss", retries=BRIEF, timeout=5 * MINUTE, roles=("editor",)),
        an_agent("fern", roles=("editor",)),
    )
    wren = caller_of(desk.begin("wren"))
    for whom in ({"agent": "moss"}, {"role": "editor"}):
        with pytest.raises(Mistake, match="tried again 2 times, found 1,000"):
            desk.ask("add_task", wren, title="t", max_retries=1_000, **whom)
        with pytest.raises(Mistake, match=r"task 1 of the batch: .* may take 5m, found 1h"):
            desk.ask("add_tasks", wren, tasks=[{"title": "t", "timeout": "1h", **whom}])
        assert desk.ask("add_task", wren, title="t", max_retries=2, timeout="5m", **whom)["max_retries"] == 2
    assert desk.ask("add_task", title="t", agent="moss", max_retries=1_000, timeout="1h")["timeout"] == "1h"


def test_a_run_depends_only_on_what_it_may_see(desk):
    desk.declare("wren", "fern")
    hidden = add(desk, agent="fern")
    wren = caller_of(desk.begin("wren"))
    own = add(desk, caller=wren)
    for task in (hidden, 99):
        with pytest.raises(Forbidden, match=f"and {task} is none of them$"):
            desk.ask("add_task", wren, title="t", agent="wren", depends_on=[task])
    assert desk.ask("add_task", wren, title="t", agent="wren", depends_on=[own])["waits_for"] == 1


# ---- whose keys they are


def test_a_task_that_a_sibling_adds_again_is_the_same(desk):
    desk.declare(*replicas("moss", 2), "fern")
    one, two = caller_of(desk.begin("moss-1")), caller_of(desk.begin("moss-2"))
    first = desk.ask("add_task", one, agent="fern", title="sub", key="sub-1")
    again = desk.ask("add_task", two, agent="fern", title="sub", key="sub-1")
    assert (again["id"], again["duplicate"], again["key"]) == (first["id"], True, "sub-1")
    assert desk.ask("keyed_task", two, message_id="sub-1")["id"] == first["id"]
    assert desk.ask("add_task", two, agent="fern", title="then", depends_on=["sub-1"])["waits_for"] == 1
    assert desk.ask("cancel_task", two, task=first["id"])["state"] == "cancelled"
    message = {"agent": "fern", "body": "x", "key": "m"}
    assert desk.ask("send", one, **message)["message"]["id"] == desk.ask("send", two, **message)["message"]["id"]


def test_what_a_roles_task_adds_is_the_same_whoever_of_the_role_tries_it(desk):
    desk.declare(an_agent("moss", roles=("editor",)), an_agent("wren", roles=("editor",)), "fern")
    task = add(desk, role="editor")
    added = []
    for _ in range(2):
        desk.later(MINUTE)
        desk.due()
        (order,) = desk.claim()
        added.append((order.run.agent, add(desk, "sub", caller_of(order), agent="fern", key="sub-1")))
        desk.ask("cancel_task", task=added[-1][1]) if len(added) == 1 else None
        desk.end(order, FAILED)
        assert order.tasks[0].id == task
    (first, one), (second, two) = added
    assert first != second and one == two
    beat = caller_of(desk.begin(first))
    assert add(desk, "sub", beat, agent="fern", key="sub-1") != one, "a beat's keys are its agent's own"


# ---- what is left behind


def test_what_goes_on_with_what_it_depends_on_is_not_left_behind(desk):
    desk.declare("wren")
    needed = add(desk)
    dependent = add(desk, depends_on=[needed])
    desk.ask("fail_task", task=needed)
    told = desk.ask("change_tasks", change="retry", all=True)
    assert (told["changed"], told["unchanged"]) == ([needed, dependent], [])


def test_what_stays_blocked_is_told_with_the_reason(desk):
    desk.declare("wren")
    needed = add(desk)
    dependent = add(desk, depends_on=[needed])
    desk.ask("cancel_task", task=needed)
    (left,) = desk.ask("change_tasks", change="retry", tasks=[dependent])["unchanged"]
    assert (left["state"], left["why"]) == ("blocked", f"depends on task {needed}, which is cancelled")


@pytest.mark.parametrize(
    ("operation", "asked"),
    [
        ("tasks", {"after": 10**23}),
        ("dead", {"after": -1}),
        ("inbox", {"agent": "wren", "after": 10**23}),
        ("runs", {"before": 10**23}),
        ("events", {"after": 10**23}),
        ("decisions", {"before": 10**23}),
        ("change_tasks", {"change": "cancel", "all": True, "after": 10**23}),
        ("change_tasks", {"change": "cancel", "all": True, "until": 10**23}),
    ],
)
def test_a_number_that_nothing_can_have_is_a_mistake(desk, operation, asked):
    desk.declare("wren")
    with pytest.raises(Mistake, match="expected the number of a"):
        desk.ask(operation, **asked)


def test_a_name_that_is_the_operators_word_shows_an_agent_no_more_than_any_other(desk):
    desk.declare("operator", "wren")
    add(desk)
    assert desk.ask("tasks", caller_of(desk.begin("operator")))["items"] == []
