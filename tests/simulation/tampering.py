"""One thing changed in a lived history: for every rule, a tampering that it must object to.

A tampering takes a fresh copy of a history and says whether it found something to change in it.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from wakeful.core.agents import RetryPolicy
from wakeful.core.events import Event, EventKind
from wakeful.core.items import State
from wakeful.core.wakes import Pause
from wakeful.testing.checkers import History

Tamper = Callable[[History], bool]
HOUR = timedelta(hours=1)


def fresh(history: History) -> History:
    """A copy whose containers, witness and executions may be changed."""
    copied = copy.copy(history)
    for name in ("events", "runs", "wakes", "items", "pauses", "standings", "said"):
        setattr(copied, name, copy.copy(getattr(history, name)))
    copied.witness = copy.copy(history.witness)
    for name in ("complaints", "accepted", "early_events"):
        setattr(copied.witness, name, copy.copy(getattr(history.witness, name)))
    copied.witness.declared = [copy.copy(declared) for declared in history.witness.declared]
    copied.witness.executions = {run: copy.copy(seen) for run, seen in history.witness.executions.items()}
    return copied


def change(history: History, wanted: Callable[[Event], bool], make: Callable[[Event], Event | None]) -> bool:
    """Replace, or with None remove, the first event that is wanted."""
    for index, event in enumerate(history.events):
        if wanted(event):
            made = make(event)
            history.events[index : index + 1] = [] if made is None else [made]
            return True
    return False


def verdict(event: Event) -> dict[str, Any]:
    found = (event.fields or {}).get("verdict")
    return found if isinstance(found, dict) else {}


def decided(event: Event, **changed: Any) -> Event:
    return replace(event, fields={**(event.fields or {}), "verdict": {**verdict(event), **changed}})


# ---- tamperings


def a_complaint_of_the_driver(history: History) -> bool:
    history.witness.complaints.append("an endless turn")
    return True


def another_guard_is_named(history: History) -> bool:
    return change(history, lambda e: verdict(e).get("guard") == "busy", lambda e: decided(e, guard="spend"))


def a_deferral_is_told_as_a_refusal(history: History) -> bool:
    return change(history, lambda e: verdict(e).get("guard") == "busy", lambda e: decided(e, kind="refuse"))


def a_due_beat_is_called_moot(history: History) -> bool:
    return change(
        history,
        lambda e: verdict(e).get("kind") == "defer" and (e.fields or {})["cause"] == "timer",
        lambda e: decided(e, kind="refuse", guard="moot"),
    )


def a_stranger_is_decided_on(history: History) -> bool:
    return change(history, lambda e: verdict(e).get("kind") == "defer", lambda e: replace(e, agent="nobody"))


def an_idle_beat_was_really_longer_ago(history: History) -> bool:
    """The same outcomes, but the fleet had said a day between two beats."""
    for declared in history.witness.declared:
        slow = [replace(agent, cadence=replace(agent.cadence, interval=24 * HOUR)) for agent in declared.fleet.agents]
        declared.fleet = replace(declared.fleet, agents=tuple(slow))
    return any(agent.cadence.interval for agent in history.witness.declared[0].fleet.agents)


def a_done_beat_had_failed(history: History) -> bool:
    for execution in history.witness.executions.values():
        told = execution.told
        if execution.order.run.subject == "beat" and told and told.exit_code == 0:
            execution.told = replace(told, exit_code=1)
            return True
    return False


def a_quarantine_is_forgotten(history: History) -> bool:
    return change(
        history,
        lambda e: e.kind is EventKind.paused and (e.fields or {})["owner"] in ("quarantine", "quota"),
        lambda e: None,
    )


def a_run_got_another_declaration(history: History) -> bool:
    execution = next(iter(history.witness.executions.values()))
    order = execution.order
    execution.order = replace(order, agent=replace(order.agent, max_failures=99))
    return True


def an_early_event_is_rewritten(history: History) -> bool:
    early = history.witness.early_events or list(history.events)
    history.witness.early_events = [replace(early[0], agent="somebody else"), *early[1:]]
    return True


def a_run_started_twice(history: History) -> bool:
    for index, event in enumerate(history.events):
        if event.kind is EventKind.ended:
            started = next(e for e in history.events if e.kind is EventKind.started and e.run == event.run)
            history.events.insert(index, started)
            return True
    return False


def an_admitted_wake_has_no_run(history: History) -> bool:
    for id, row in history.wakes.items():
        if row.state == "refused" and row.run is None:
            history.wakes[id] = replace(row, state="admitted")
            return True
    return False


def a_beat_is_due_a_second_later(history: History) -> bool:
    for name, standing in history.standings.items():
        if standing.due_at is not None:
            history.standings[name] = replace(standing, due_at=standing.due_at + timedelta(seconds=1))
            return True
    return False


def a_beat_is_due_in_ten_days(history: History) -> bool:
    for name, standing in history.standings.items():
        if standing.due_at is not None:
            history.standings[name] = replace(standing, due_at=standing.due_at + timedelta(days=10))
    return True


def a_total_is_off_by_one(history: History) -> bool:
    kept = history.store
    history.store = SimpleNamespace(total=lambda *key: kept.total(*key) + 1)
    return True


def nobody_ever_ends(history: History) -> bool:
    for execution in history.witness.executions.values():
        execution.ended = None
    return True


def a_one_off_fired_twice(history: History) -> bool:
    for run in list(history.runs.values()):
        if history.wakes[run.wake].wake.slot and run.state == "ended":
            history.runs[10**6] = replace(run, id=10**6)
            return True
    return False


def a_one_off_never_fired(history: History) -> bool:
    for id, row in history.wakes.items():
        if row.wake.slot and row.state == "waiting":
            history.wakes[id] = replace(row, wake=replace(row.wake, slot=""))
            return True
    return False


def a_pause_was_lost(history: History) -> bool:
    now = history.now
    history.pauses.append(Pause(scope="fleet", owner="somebody", reason="", since=now))
    return True


def a_pause_was_lifted_by_nobody(history: History) -> bool:
    known = list(history.witness.released)
    history.witness.released = []
    return bool(known)


def a_run_began_under_a_pause(history: History) -> bool:
    for index, event in enumerate(history.events):
        if event.kind is EventKind.started and event.run in history.witness.executions:
            fields: dict[str, object] = {"scope": "fleet", "owner": "operator"}
            history.events.insert(index, Event(kind=EventKind.paused, at=event.at, id=event.id, fields=fields))
            return True
    return False


def a_message_is_closed_unseen(history: History) -> bool:
    for id, item in history.items.items():
        if item.kind == "message" and item.state is State.open and item.shown is None:
            history.items[id] = replace(item, state=State.closed)
            return True
    return False


def an_accepted_message_is_gone(history: History) -> bool:
    for kept in history.witness.accepted:
        item = history.items[kept.id]
        if item.kind == "message" and item.state is State.open and item.shown is None:
            history.items[kept.id] = replace(item, body="other words")
            return True
    return False


def a_run_was_not_shown_all(history: History) -> bool:
    for execution in history.witness.executions.values():
        if execution.seen:
            execution.seen = {}
            return True
    return False


def an_item_rings_twice(history: History) -> bool:
    """A later wake is said to be for an item that had asked, and was refused, before."""
    firsts: dict[str | None, int] = {}
    for event in history.events:
        if event.kind is not EventKind.decided or not verdict(event) or event.wake is None:
            continue
        row = history.wakes[event.wake]
        item = row.wake.item
        if item is None or history.items[item].external_id is not None or item not in history.said:
            continue
        if verdict(event)["kind"] == "refuse" and verdict(event).get("guard") != "moot":
            firsts.setdefault(row.wake.agent, item)
        elif row.wake.agent in firsts and item != firsts[row.wake.agent]:
            history.wakes[event.wake] = replace(row, wake=replace(row.wake, item=firsts[row.wake.agent]))
            return True
    return False


def the_backoff_was_longer(history: History) -> bool:
    """The same retries, but the fleet had said a day between two tries."""
    for declared in history.witness.declared:
        slow = [replace(agent, retries=RetryPolicy(base=24 * HOUR)) for agent in declared.fleet.agents]
        declared.fleet = replace(declared.fleet, agents=tuple(slow))
    return True


def a_ringing_item_is_left(history: History) -> bool:
    """Its wake is said to be over, and it was never shown."""
    found = False
    for id, row in history.wakes.items():
        if row.state == "waiting" and row.wake.item is not None:
            history.wakes[id] = replace(row, state="refused", guard="moot")
            found = True
    return found


def a_task_is_in_another_state(history: History) -> bool:
    for id, item in history.items.items():
        if item.kind == "task":
            history.items[id] = replace(item, attempts=item.attempts + 1)
            return True
    return False


def a_task_did_not_wait_for_its_time(history: History) -> bool:
    for run in history.runs.values():
        if run.tasks and run.state == "ended":
            history.said[run.tasks[0]] = replace(history.said[run.tasks[0]], not_before=run.admitted_at + HOUR)
            return True
    return False


def a_task_was_tried_too_often(history: History) -> bool:
    tried: set[int] = set()
    for run in history.runs.values():
        for task in run.tasks:
            if task in tried:
                history.said[task] = replace(history.said[task], max_retries=-1)
                return True
            tried.add(task)
    return False


def a_wake_waits_for_nothing(history: History) -> bool:
    free = {run.agent for run in history.runs.values()} - {
        run.agent for run in history.runs.values() if run.ended_at is None
    }
    for id, row in history.wakes.items():
        if row.state == "refused" and row.wake.cause == "operator" and row.wake.agent in free:
            history.wakes[id] = replace(row, state="waiting", guard="busy", retry_at=None)
            return True
    return False


def two_messages_changed_places(history: History) -> bool:
    for execution in history.witness.executions.values():
        items = execution.order.items
        if len(items) > 1:
            alike = [replace(item, sender="finch", unanswered=0, priority=items[0].priority) for item in items]
            execution.order = replace(execution.order, items=tuple(sorted(alike, key=lambda item: -item.id)))
            return True
    return False


def a_chain_is_shorter_than_it_was(history: History) -> bool:
    for id, row in history.wakes.items():
        if row.wake.depth:
            history.wakes[id] = replace(row, wake=replace(row.wake, depth=0))
            return True
    return False


def a_caller_is_told_otherwise(history: History) -> bool:
    asked = history.witness.asked
    if not asked:
        return False
    other = replace(asked[0].decision, run=10**6)
    history.witness.asked = [replace(asked[0], decision=other), *asked[1:]]
    return True


def an_ending_is_unknown(history: History) -> bool:
    for execution in history.witness.executions.values():
        if execution.settled is not None:
            execution.told = None
            return True
    return False


TAMPERINGS: list[tuple[str, Tamper]] = [
    ("the driver meets nothing impossible", a_complaint_of_the_driver),
    ("the door", another_guard_is_named),
    ("the door", a_deferral_is_told_as_a_refusal),
    ("a wake is moot only", a_due_beat_is_called_moot),
    ("only a living agent", a_stranger_is_decided_on),
    ("no beat before it is due", an_idle_beat_was_really_longer_ago),
    ("position and streaks", a_done_beat_had_failed),
    ("a failure pauses its agent", a_quarantine_is_forgotten),
    ("a run begins with the declaration", a_run_got_another_declaration),
    ("events are append-only", an_early_event_is_rewritten),
    ("events are append-only", a_run_started_twice),
    ("every admitted wake has a run", an_admitted_wake_has_no_run),
    ("due_at is the fold", a_beat_is_due_a_second_later),
    ("no wait is longer", a_beat_is_due_in_ten_days),
    ("totals are", a_total_is_off_by_one),
    ("one run per agent", nobody_ever_ends),
    ("slots are never exceeded", nobody_ever_ends),
    ("a declared one-off", a_one_off_fired_twice),
    ("a declared one-off", a_one_off_never_fired),
    ("a pause stands", a_pause_was_lost),
    ("a pause stands", a_pause_was_lifted_by_nobody),
    ("once a pause has returned", a_run_began_under_a_pause),
    ("an accepted message", a_message_is_closed_unseen),
    ("an accepted message", an_accepted_message_is_gone),
    ("a run is shown what its inbox holds", a_run_was_not_shown_all),
    ("one generation of an item", an_item_rings_twice),
    ("messages of one sender", two_messages_changed_places),
    ("a wake carries the root", a_chain_is_shorter_than_it_was),
    ("whoever asks is told", a_caller_is_told_otherwise),
    ("an inbox run is retried", the_backoff_was_longer),
    ("whatever rings is shown", a_ringing_item_is_left),
    ("a task ends once", a_task_is_in_another_state),
    ("a task runs in its turn", a_task_did_not_wait_for_its_time),
    ("a task is tried", a_task_was_tried_too_often),
    ("nothing waits for ever", a_wake_waits_for_nothing),
    ("the events tell a story", an_ending_is_unknown),
]
