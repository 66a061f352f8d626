"""What rings, how priorities are read, and which states are the end."""

from itertools import product

import pytest

from wakeful.core.errors import Mistake
from wakeful.core.items import (
    PRIORITY_RANKS,
    TERMINAL,
    Kind,
    NewItem,
    Origin,
    Priority,
    Ring,
    State,
    read_priority,
    ring_of,
)

LOUD = {Origin.agent: Ring.peer, Origin.operator: Ring.operator, Origin.external: Ring.news}


@pytest.mark.parametrize(("origin", "priority"), list(product(Origin, Priority)))
def test_high_and_urgent_messages_ring_as_their_origin_and_the_rest_not_at_all(origin, priority):
    loud = priority in (Priority.high, Priority.urgent)
    assert ring_of(origin, priority) is (LOUD[origin] if loud else Ring.silent)


def test_priorities_are_ranked_from_low_to_urgent():
    assert sorted(Priority, key=PRIORITY_RANKS.__getitem__) == [
        Priority.low,
        Priority.normal,
        Priority.high,
        Priority.urgent,
    ]
    assert len(set(PRIORITY_RANKS.values())) == len(Priority)


@pytest.mark.parametrize("priority", Priority)
def test_a_priority_is_read_by_its_name(priority):
    assert read_priority(priority.value) is priority


def test_critical_is_what_other_systems_call_urgent():
    assert read_priority("critical") is Priority.urgent


@pytest.mark.parametrize("text", ["", "HIGH", "highest", "1"])
def test_an_unknown_priority_is_a_mistake_that_names_the_known_ones(text):
    with pytest.raises(Mistake) as told:
        read_priority(text)
    assert repr(text) in told.value.reason
    assert all(priority in told.value.remedy for priority in Priority)


def test_what_is_closed_completed_cancelled_or_dead_is_at_its_end():
    assert {State.closed, State.completed, State.cancelled, State.dead_letter} == TERMINAL


def test_an_item_rings_only_when_it_is_told_to():
    assert NewItem(kind=Kind.message, agent="moss").ring is Ring.silent
