"""Keys: the same is found, something else is a conflict, and a key is told as whoever uses it has written it."""

import pytest

from tests.control.desk import HOUR, MINUTE, replicas
from wakeful.core.errors import Conflict, Mistake, Unknown


@pytest.mark.parametrize(
    ("operation", "first", "other"),
    [
        ("tick", {}, {"reason": "another"}),
        ("tick", {}, {"agent": "moss"}),
        ("wake", {"reason": "mail"}, {}),
        ("wake", {}, {"body": "the build is red"}),
        ("wake", {"body": "the build is red"}, {}),
        ("at", {"when": "in 2h"}, {"when": "in 3h"}),
        ("at", {"when": "in 2h"}, {"when": "in 2h", "reason": "because"}),
        ("at", {"when": "in 2h"}, {"when": "in 2h", "agent": "moss"}),
    ],
)
def test_a_key_that_comes_with_something_else_is_a_conflict_and_asks_for_nothing(desk, operation, first, other):
    desk.declare("wren", "moss")
    known = desk.ask(operation, **{"agent": "wren", "key": "k-1", **first})["wake_id"]
    with pytest.raises(Conflict, match=r"^the key 'k-1' was used before for something else, wake \d+$"):
        desk.ask(operation, **{"agent": "wren", "key": "k-1", **other})
    assert [row.wake.id for row in desk.store.wakes()] == [known]
    assert desk.ask(operation, **{"agent": "wren", "key": "k-1", **first})["duplicate"] is True


def test_a_tick_under_the_key_of_a_beat_at_an_instant_is_a_conflict(desk):
    desk.declare("wren")
    desk.ask("at", agent="wren", when="in 2h", key="k-1")
    with pytest.raises(Conflict):
        desk.ask("tick", agent="wren", key="k-1")


def test_a_beat_at_an_instant_that_is_asked_for_again_later_is_the_same_one_with_the_same_answer(desk):
    desk.declare("wren")
    first = desk.ask("at", agent="wren", when="in 2h", key="k-1")
    desk.now += 3 * MINUTE
    assert desk.ask("at", agent="wren", when="in 2h", key="k-1") == {**first, "duplicate": True}
    # Also when the instant has passed.
    desk.now += 3 * HOUR
    assert desk.ask("at", agent="wren", when="in 2h", key="k-1")["wake_id"] == first["wake_id"]


def test_the_key_of_a_message_or_a_task_is_told_as_it_was_written(desk):
    desk.declare("wren")
    message = desk.ask("send", agent="wren", body="one", key="k-1")["message"]["id"]
    with pytest.raises(Conflict, match=f"^the key 'k-1' was used before for something else, message {message}$"):
        desk.ask("send", agent="wren", body="two", key="k-1")
    task = desk.ask("add_task", title="one", role="writer", key="k-2")["id"]
    with pytest.raises(Conflict, match=f"^the key 'k-2' was used before for something else, task {task}$"):
        desk.ask("add_task", title="two", role="writer", key="k-2")
    with pytest.raises(Unknown, match="under the key 'k-3'"):
        desk.ask("add_task", title="three", role="writer", depends_on=["k-3"])


@pytest.mark.parametrize("body", ["", "  ", "\n\t"])
def test_an_empty_message_is_refused_and_not_recorded(desk, body):
    desk.declare("wren")
    with pytest.raises(Mistake, match="the message is empty"):
        desk.ask("send", agent="wren", body=body)
    if body:
        with pytest.raises(Mistake, match="the message is empty"):
            desk.ask("wake", agent="wren", body=body)
    assert desk.ask("inbox", agent="wren")["items"] == []


def test_a_key_is_known_where_an_address_is_asked_for(desk):
    desk.declare(*replicas("moss", 2))
    first = desk.ask("tick", agent="moss", key="k-1")
    again = desk.ask("tick", agent="moss", key="k-1")
    assert (again["wake_id"], again["duplicate"]) == (first["wake_id"], True)


def test_keys_hold_on_a_shared_store_too(shared):
    shared.declare("wren")
    first = shared.ask("at", agent="wren", when="in 2h", key="k-1")
    assert shared.ask("at", agent="wren", when="in 2h", key="k-1") == {**first, "duplicate": True}
    for operation, said in (("at", {"when": "in 3h"}), ("tick", {})):
        with pytest.raises(Conflict, match="the key 'k-1' was used before"):
            shared.ask(operation, agent="wren", key="k-1", **said)
