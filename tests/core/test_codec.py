"""One codec for every stored value: what goes in comes out, also through JSON and through other versions."""

import json
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.core.agents import Agent, Fleet, Limits, RetryPolicy, Runner
from wakeful.core.budgets import Bill
from wakeful.core.cadence import Cadence
from wakeful.core.codec import decode, encode, read_time, write_time
from wakeful.core.cron import Schedule
from wakeful.core.events import Event, EventKind
from wakeful.core.facts import Facts
from wakeful.core.items import Item, NewItem, Observation
from wakeful.core.lifecycle import Lifecycle, Position, State
from wakeful.core.runs import Ending, Result, Run
from wakeful.core.standing import Spend, Standing
from wakeful.core.wakes import Pause, Verdict, VerdictKind, Wake
from wakeful.core.windows import Window

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
STORED = [
    *(Agent, Fleet, Limits, RetryPolicy, Cadence, Schedule, Lifecycle, State, Position, Window),
    *(Standing, Spend, Bill, Run, Result, Ending, Wake, Pause, Verdict, Facts),
    *(Item, NewItem, Observation),
]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
instants = st.integers(0, 7 * 10**15).map(lambda micros: EPOCH + timedelta(microseconds=micros))
durations = st.timedeltas(timedelta(days=-3650), timedelta(days=3650))
numbers = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0)  # there is one zero
scalars = st.none() | st.booleans() | st.integers() | numbers | st.text(max_size=8)
PLAIN: dict[object, st.SearchStrategy[object]] = {
    datetime: instants,
    timedelta: durations,
    float: numbers,
    str: st.text(max_size=8),
    int: st.integers(),
    bool: st.booleans(),
    type(None): st.none(),
}


@cache
def values(kind) -> st.SearchStrategy[object]:
    """Any value of a stored type. `from_type` knows them too, but is slow where an agent holds a whole day."""
    if kind in PLAIN:
        return PLAIN[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, inner))
    if origin is tuple:
        return st.lists(values(inner[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(values(inner[0]), values(inner[1]), max_size=2)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: values(hints[field.name]) for field in fields(kind)})
    return st.sampled_from(kind)


def through_json(kind, value):
    return decode(kind, json.loads(json.dumps(encode(value))))


@pytest.mark.parametrize("kind", STORED, ids=lambda kind: kind.__name__)
def test_what_is_stored_comes_back_as_it_was(kind):
    @settings(max_examples=30)
    @given(values(kind))
    def comes_back(value):
        found = through_json(kind, value)
        assert found == value
        assert repr(found) == repr(value)

    comes_back()


@given(st.sampled_from(EventKind), instants, st.none() | st.dictionaries(st.text(), scalars))
def test_an_event_comes_back_with_its_fields(kind, at, told):
    event = Event(kind=kind, at=at, id=4, agent="moss", fields=told)
    assert through_json(Event, event) == event


def test_enums_and_nested_values_come_back_as_their_types():
    agent = Agent(
        name="moss",
        address="moss",
        runner=Runner.handler,
        one_offs=(NOW,),
        limits=Limits(cooldown=timedelta(seconds=1.5), quiet_hours=(Window(start_minute=1, end_minute=2),)),
    )
    found = through_json(Agent, agent)
    assert found.runner is Runner.handler
    assert isinstance(found.one_offs, tuple) and found.one_offs[0] == NOW
    assert isinstance(found.limits.quiet_hours[0], Window)
    verdict = Verdict(kind=VerdictKind.defer, numbers={"used": 3, "pool": "sessions", "minutes": 1.5})
    assert through_json(Verdict, verdict).numbers == {"used": 3, "pool": "sessions", "minutes": 1.5}


# ---- neighbouring versions


@dataclass(frozen=True)
class Newer:
    name: str
    colour: str = "green"
    rings: tuple[int, ...] = ()


@dataclass(frozen=True)
class Older:
    name: str


def test_a_field_that_is_missing_takes_its_default():
    assert decode(Newer, encode(Older("moss"))) == Newer("moss")


def test_a_field_that_is_unknown_is_passed_over():
    assert decode(Older, encode(Newer("moss", "red", (1, 2)))) == Older("moss")


@pytest.mark.parametrize("kind", STORED, ids=lambda kind: kind.__name__)
def test_every_stored_kind_passes_over_what_a_newer_version_added(kind):
    @settings(max_examples=10)
    @given(values(kind))
    def passes_over(value):
        written = encode(value) | {"of_a_later_version": {"deep": [1]}}
        assert decode(kind, written) == value

    passes_over()


# ---- times


@given(instants)
def test_a_time_comes_back_to_the_microsecond_in_utc(moment):
    assert read_time(write_time(moment)) == moment
    assert read_time(write_time(moment)).utcoffset() == timedelta()


@given(instants, instants)
def test_written_times_sort_as_the_instants_do(one, other):
    assert (write_time(one) < write_time(other)) is (one < other)
    assert len(write_time(one)) == len(write_time(other))


def test_a_time_of_another_zone_is_written_in_utc():
    berlin = datetime(2026, 3, 2, 13, 0, tzinfo=ZoneInfo("Europe/Berlin"))
    assert write_time(berlin) == "2026-03-02T12:00:00.000000Z"


def test_what_is_not_data_is_not_written():
    for strange in (object(), {1, 2}, lambda: None, b"bytes"):
        with pytest.raises(TypeError, match="cannot encode"):
            encode(strange)


def test_nothing_executable_is_read():
    wake = {"agent": "__import__('os')", "cause": "timer", "subject": "beat", "requested_at": write_time(NOW)}
    assert decode(Wake, wake).agent == "__import__('os')"
    with pytest.raises(ValueError):
        decode(Wake, wake | {"cause": "__import__('os')"})


def test_values_that_are_equal_are_written_alike():
    position = Position("add", 1)
    assert encode(position) == encode(replace(position)) == {"state": "add", "hits": 1}
