"""Document 000 told to a real store: what rings, what stays quiet, and what a pause holds."""

import pytest

from tests.claims.desk import DONE, FAILED, HOUR, KILLED, MINUTE, NO_WORK, NOON, SECOND, agent, why_not
from wakeful.core.items import Observation, State
from wakeful.core.wakes import FLEET, Cause, Pause, Subject

# No timer in these stories: whatever runs was rung.
CEO = agent("ceo", every=None)


def ledger(desk):
    open_items = desk.store.items(agent="ceo", state="open")
    return {item.external_id: (item.fingerprint, item.shown) for item in open_items}


def check(desk, **pending):
    """One check of the inbox folder, and every run that follows from it. Returns what each run was shown."""
    desk.later(MINUTE)
    desk.show("ceo", **pending)
    return [[item.external_id for item in order.items] for order in desk.finish_all()]


def test_a_stale_item_rings_once_then_stays_quiet(desk):
    desk.declare(CEO)
    assert check(desk, probe="1") == [["probe"]]
    assert [check(desk, probe="1") for _ in range(5)] == [[]] * 5
    assert ledger(desk) == {"probe": ("1", "1")}


def test_a_thousand_checks_of_a_stale_item_start_one_run(desk):
    desk.declare(CEO)
    for n in range(1_000):
        if n % 200 == 0:
            desk.restart()
        desk.later(2 * SECOND)
        desk.show("ceo", probe="1")
        if desk.store.due(desk.now).wakes:
            desk.finish_all(NO_WORK)
    assert len(desk.store.runs(agent="ceo")) == 1


def test_new_work_still_rings_beside_stale_work(desk):
    desk.declare(CEO)
    check(desk, probe="1")
    (shown,) = check(desk, probe="1", task="1")
    assert "task" in shown
    assert check(desk, probe="1", task="1") == []


def test_a_changed_item_rings_again(desk):
    desk.declare(CEO)
    check(desk, task="1")
    assert check(desk, task="2") == [["task"]]
    assert check(desk, task="2") == []


def test_a_drained_inbox_prunes_the_ledger(desk):
    desk.declare(CEO)
    check(desk, probe="1", task="1")
    assert check(desk, probe="1") == []
    assert ledger(desk).keys() == {"probe"}
    check(desk)
    assert ledger(desk) == {}


def test_an_item_that_went_and_came_back_rings_again(desk):
    desk.declare(CEO)
    check(desk, task="1")
    check(desk)
    assert check(desk, task="1") == [["task"]]


def test_the_ledger_grows_with_what_is_pending_not_with_everything_ever_seen(desk):
    desk.declare(CEO)
    for n in range(30):
        check(desk, probe="1", **{f"task{n}": "1"})
        assert len(ledger(desk)) == 2


def test_the_ledger_survives_a_restart(desk):
    desk.declare(CEO)
    check(desk, probe="1")
    desk.restart()
    assert ledger(desk) == {"probe": ("1", "1")}
    assert check(desk, probe="1") == []


def test_an_item_counts_as_seen_only_with_the_outcome_of_a_run_that_was_shown_it(desk):
    desk.declare(CEO)
    desk.show("ceo", task="1")
    desk.tick()
    assert ledger(desk) == {"task": ("1", None)}
    (order,) = desk.claim()
    desk.restart()
    assert ledger(desk) == {"task": ("1", None)}
    desk.end(order)
    assert ledger(desk) == {"task": ("1", "1")}


@pytest.mark.parametrize("ending", [FAILED, KILLED], ids=["failed", "killed"])
def test_an_item_is_put_before_the_next_run_when_the_run_that_was_shown_it_failed(desk, ending):
    desk.declare(agent("ceo", every=24 * HOUR))
    desk.later(2 * MINUTE)
    desk.finish_all()
    desk.show("ceo", task="1")
    causes = []
    for _ in range(10):
        causes += [order.run.cause for order in desk.finish_all(ending)]
        desk.later(HOUR)
    assert causes == [Cause.news] * 4, "the first, and three retries"
    # The retries are used up; the next beat is shown it still.
    desk.until(desk.standing("ceo").due_at)
    (order,) = desk.finish_all(DONE)
    assert (order.run.cause, [item.external_id for item in order.items]) == (Cause.timer, ["task"])
    desk.later(HOUR)
    assert desk.begin() == []


def test_a_clean_exit_looks_for_work_and_asks_for_the_next_run_two_seconds_out(desk):
    desk.declare(CEO)
    desk.show("ceo", first="1")
    (order,) = desk.begin()
    desk.later(MINUTE)
    desk.show("ceo", first="1", second="1")
    assert desk.begin() == []
    desk.end(order, DONE)
    desk.later(1.9 * SECOND)
    assert desk.begin() == []
    desk.later(SECOND / 10)
    (order,) = desk.begin()
    assert [item.external_id for item in order.items] == ["second"]
    desk.end(order, DONE)
    desk.later(2 * SECOND)
    assert desk.begin() == []


def test_the_same_name_in_two_sources_is_two_items(desk):
    desk.declare(CEO)
    desk.show("ceo", source="folder", task="1")
    desk.show("ceo", source="list", task="1")
    assert len(desk.store.items(agent="ceo", state="open")) == 2
    desk.show("ceo", source="list")
    (left,) = desk.store.items(agent="ceo", state="open")
    assert left.source == "folder"


def test_an_outage_is_unknown_and_not_empty(desk):
    desk.declare(CEO)
    check(desk, probe="1")
    edges = desk.store.observe("folder", "ceo", None, desk.now)
    assert (edges.gone, ledger(desk)) == ((), {"probe": ("1", "1")})
    assert check(desk, probe="1") == []


def test_the_ledger_looks_at_no_subject_no_text_and_no_age(desk):
    desk.declare(CEO)
    texts = ["COMMS TEST (ignore)", "URGENT", "", "line\nline: 1\n", "a" * 10_000]
    seen = [Observation(external_id=text, fingerprint="1", subject=text, body=text) for text in texts]
    desk.store.observe("folder", "ceo", seen, desk.now)
    (order,) = desk.finish_all()
    assert {item.external_id for item in order.items} == set(texts)
    desk.later(400 * 24 * HOUR)
    desk.store.observe("folder", "ceo", seen, desk.now)
    assert desk.begin() == []


def test_a_failed_rewrite_leaves_the_ledger_as_it_was(desk):
    desk.declare(CEO)
    check(desk, probe="1")
    broken = [Observation(external_id="task", fingerprint="1"), object()]
    with pytest.raises(Exception):  # noqa: B017 - whatever a broken source makes of it
        desk.store.observe("folder", "ceo", broken, desk.now)
    assert ledger(desk) == {"probe": ("1", "1")}
    assert check(desk, probe="1") == []


def test_a_reader_never_sees_half_a_rewrite(desk):
    desk.declare(CEO)
    check(desk, probe="1", task="1")
    seen = []
    desk.store.session.probe = lambda moment, site: seen.append((moment, site, set(ledger(desk))))
    desk.show("ceo", fresh="1", other="1")
    assert seen == [("before", "observe", {"probe", "task"}), ("after", "observe", {"fresh", "other"})]


def test_dead_and_blocked_tasks_ask_for_no_run(desk):
    desk.declare(CEO)
    dead = desk.task(to="ceo", max_retries=0)
    waiting = desk.task(to="ceo", depends_on=(dead,))
    desk.finish_all(FAILED)
    assert desk.store.item(dead).state is State.dead_letter
    assert desk.store.item(waiting).state is not State.in_progress
    for _ in range(20):
        desk.later(HOUR)
        assert desk.begin() == []


# ---- the pause


def pause(scope=FLEET):
    return Pause(scope=scope, owner="operator", reason="look into the hot loop", since=NOON)


@pytest.mark.parametrize(
    ("cause", "subject"),
    [
        (Cause.timer, Subject.beat),
        (Cause.operator, Subject.beat),
        (Cause.operator, Subject.inbox),
        (Cause.peer, Subject.inbox),
        (Cause.news, Subject.inbox),
        (Cause.task, Subject.task),
    ],
)
@pytest.mark.parametrize("scope", [FLEET, "agent:ceo"])
def test_a_paused_fleet_starts_nothing_by_any_cause(desk, cause, subject, scope):
    desk.declare(agent("ceo"))
    desk.show("ceo", task="1")
    desk.message("ceo", priority="urgent")
    desk.task(to="ceo")
    desk.store.pause(pause(scope), desk.now)
    desk.later(2 * HOUR)
    held = [why_not(decision) for decision in desk.tick()]
    assert all(guard == "paused" for _, guard in held)
    if subject is not Subject.task:
        kind = "refuse" if cause is Cause.operator else "defer"
        decision = desk.ask(cause, "ceo", subject)
        assert decision.joined or why_not(decision) == (kind, "paused")
    assert desk.claim() == []
    desk.restart()
    desk.later(HOUR)
    assert desk.begin() == []


def test_a_pause_holds_the_fast_restart_and_loses_nothing(desk):
    desk.declare(CEO)
    desk.show("ceo", first="1")
    (order,) = desk.begin()
    desk.show("ceo", first="1", second="1")
    desk.store.pause(pause(), desk.now)
    desk.end(order)
    for _ in range(10):
        desk.later(MINUTE)
        assert desk.begin() == []
    desk.store.resume(FLEET, "operator", desk.now)
    desk.later(10 * MINUTE)
    (order,) = desk.begin()
    assert [item.external_id for item in order.items] == ["second"]
