"""A task as somebody writes it: one reader, and nothing guessed."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.errors import Mistake, in_words
from wakeful.core.items import Kind, NewItem, Origin, Past, Priority, State
from wakeful.core.tasks import Sender, own_key, read_task, unknown_agent, write_payload

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
WREN = Sender("wren", Origin.agent, 7, "somewhere")
SWEEP = {"title": "sweep", "agent": "wren"}


def test_every_field_has_its_place():
    fields = {
        **SWEEP,
        "description": "All of it.",
        "payload": {"floor": [2, None]},
        "priority": "critical",
        "tags": ["a", "b", "a"],
        "key": "mine",
        "causal_key": "floor-2",
        "depends_on": [3, "other", 3, "other"],
        "not_before": "14:30",
        "max_retries": 0,
        "timeout": "1h30m",
    }
    assert read_task(fields, NOW, WREN, ZoneInfo("Europe/Berlin")) == NewItem(
        kind=Kind.task,
        agent="wren",
        sender="wren",
        origin=Origin.agent,
        by_run=7,
        source="somewhere",
        subject="sweep",
        body="All of it.",
        payload='{"floor": [2, null]}',
        priority=Priority.urgent,
        tags=("a", "b"),
        dedupe="wren:mine",
        key="floor-2",
        depends_on=(3,),
        needs=("wren:other",),
        not_before=datetime(2026, 3, 2, 13, 30, tzinfo=UTC),
        max_retries=0,
        timeout=timedelta(minutes=90),
    )


def test_a_field_that_is_null_is_left_out():
    fields = dict.fromkeys(("role", "description", "payload", "priority", "tags", "key", "depends_on", "timeout"))
    assert read_task({**SWEEP, **fields}, NOW, WREN) == read_task(SWEEP, NOW, WREN)


def test_one_tag_alone_is_the_role_of_that_name():
    item = read_task({"title": "x", "tags": ["sweeping"]}, NOW, WREN)
    assert (item.role, item.agent, item.tags) == ("sweeping", None, ("sweeping",))
    assert read_task({"title": "x", "tags": ["sweeping"], "agent": "wren"}, NOW, WREN).role is None
    with pytest.raises(Mistake, match="which of the tags is the role"):
        read_task({"title": "x", "tags": ["a", "b"]}, NOW, WREN)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([], "expected a task as an object, found a list"),
        (None, "expected a task as an object, found nothing"),
        (7, "expected a task as an object, found the number 7"),
        ({**SWEEP, "titel": 1}, "unknown field 'titel' of a task"),
        ({**SWEEP, "zzzz": 1}, "unknown field 'zzzz' of a task"),
        ({**SWEEP, "past": {}}, "unknown field 'past' of a task"),
        ({"title": "x"}, "a task is for an agent or for a role"),
        ({**SWEEP, "role": "r"}, "a task is for an agent or for a role"),
        ({"title": "x", "role": "No Role"}, "the name of a role is more than one word"),
        ({"title": " \n", "agent": "a"}, "the task has no title"),
        ({**SWEEP, "title": 3}, "expected the title as text, found the number 3"),
        ({**SWEEP, "title": "a\0b"}, "the title holds U\\+0000"),
        ({**SWEEP, "description": "\ud800"}, "the description holds U\\+D800"),
        ({**SWEEP, "description": ["x"]}, "expected the description as text, found a list"),
        ({**SWEEP, "payload": float("inf")}, "the payload is not JSON"),
        ({**SWEEP, "payload": {"a": "\udfff"}}, "the payload holds U\\+DFFF"),
        ({**SWEEP, "priority": "top"}, "unknown priority 'top'"),
        ({**SWEEP, "tags": "a"}, "expected up to 100 tags in a list, found the text 'a'"),
        ({**SWEEP, "tags": ["a"] * 101}, "expected up to 100 tags in a list, found a list"),
        ({**SWEEP, "tags": [" "]}, "expected a tag as text, found the text ' '"),
        ({**SWEEP, "tags": [None]}, "expected a tag as text, found nothing"),
        ({**SWEEP, "key": ""}, "expected a key of 1 to 255 characters"),
        ({**SWEEP, "key": "x" * 256}, "expected a key of 1 to 255 characters"),
        ({**SWEEP, "key": "\0"}, "the key holds U\\+0000"),
        ({**SWEEP, "causal_key": " "}, "expected a causal key of 1 to 255 characters"),
        ({**SWEEP, "depends_on": 3}, "expected up to 1000 tasks in a list, found the number 3"),
        ({**SWEEP, "depends_on": [0]}, "expected a task to depend on, found the number 0"),
        ({**SWEEP, "depends_on": [True]}, "expected a task to depend on, found true"),
        ({**SWEEP, "depends_on": [2**63]}, "expected a task to depend on, found a number out of all bounds"),
        ({**SWEEP, "depends_on": [""]}, "expected a key of 1 to 255 characters"),
        ({**SWEEP, "not_before": "5m"}, "expected an instant, found the duration '5m'"),
        ({**SWEEP, "not_before": 5}, "expected not_before as text, found the number 5"),
        ({**SWEEP, "max_retries": -1}, "expected a number of retries, found -1"),
        ({**SWEEP, "max_retries": 1001}, "expected a number of retries, found 1001"),
        ({**SWEEP, "max_retries": True}, "expected a number of retries, found true"),
        ({**SWEEP, "max_retries": "3"}, "expected a number of retries, found the text '3'"),
        ({**SWEEP, "timeout": "0s"}, "the timeout: expected a duration above zero, found '0s'"),
        ({**SWEEP, "timeout": "-5m"}, "the timeout: expected a duration above zero, found '-5m'"),
        ({**SWEEP, "timeout": 90}, "expected the timeout as text, found the number 90"),
    ],
)
def test_a_mistake_says_what_was_expected_and_what_was_found(fields, reason):
    with pytest.raises(Mistake, match=f"^{reason}") as found:
        read_task(fields, NOW, WREN)
    assert found.value.remedy


def test_a_payload_that_is_too_deep_is_a_mistake():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(Mistake, match="the payload is nested too deeply"):
        write_payload(deep)


@pytest.mark.parametrize("inside", [lambda value: [1, value], lambda value: {"a": value, "b": 1}])
def test_a_payload_has_at_most_a_hundred_levels_however_wide_it_is(inside):
    value = 1
    for _ in range(100):
        value = inside(value)
    assert write_payload(value)
    assert write_payload([[]] * 1_000)
    with pytest.raises(Mistake, match="nested too deeply"):
        write_payload(inside(value))


@given(
    st.dictionaries(
        st.sampled_from(["title", "agent", "role", "tags", "key", "depends_on", "max_retries", "timeout", "not_before"])
        | st.text(max_size=5),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.text(max_size=2)),
    )
)
def test_nothing_that_json_can_hold_is_more_than_a_mistake(fields):
    try:
        item = read_task(fields, NOW, WREN)
    except Mistake as mistake:
        assert str(mistake).isprintable()
    else:
        assert item.subject.strip()
        assert (item.agent is None) != (item.role is None)


def test_what_became_of_it_elsewhere_is_read_where_it_may_be_told():
    past = {
        "state": "dead_letter",
        "attempts": 4,
        "error": "no",
        "result": "half",
        "created_at": "2026-01-01T00:00Z",
        "closed_at": "2026-01-02T00:00+01:00",
    }
    assert read_task({**SWEEP, "past": past}, NOW, WREN, past=True).past == Past(
        state=State.dead_letter,
        attempts=4,
        error="no",
        result="half",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        closed_at=datetime(2026, 1, 1, 23, tzinfo=UTC),
    )
    assert read_task({**SWEEP, "past": None}, NOW, WREN, past=True).past is None


@pytest.mark.parametrize(
    ("past", "reason"),
    [
        ("done", "expected the past of a task as an object"),
        ({"state": "open"}, "unknown state of tasks 'open'"),
        ({}, "unknown state of tasks ''"),
        ({"state": "completed", "attempts": -1}, "expected a number of attempts"),
        ({"state": "completed", "attempts": 1_000_001}, "expected a number of attempts, found the number 1000001"),
        ({"state": "pending", "attempts": 2**63 - 1}, "expected a number of attempts, found a number out of all"),
        ({"state": "completed", "created_at": "2026-01-01"}, "'2026-01-01' does not say its time zone"),
        ({"state": "completed", "lease": 1}, "unknown field 'lease' of the past of a task"),
    ],
)
def test_a_mistake_in_its_past_is_told(past, reason):
    with pytest.raises(Mistake, match=f"^{reason}"):
        read_task({**SWEEP, "past": past}, NOW, WREN, past=True)


def test_a_key_is_its_senders_own_and_is_given_back_as_it_was_written():
    item = read_task({**SWEEP, "key": "a:b", "depends_on": ["c"]}, NOW, Sender("moss", Origin.agent))
    assert (item.dedupe, item.needs) == ("moss:a:b", ("moss:c",))
    assert own_key(item.sender, item.dedupe) == "a:b"
    assert own_key("operator", "drop:x:1") is None
    assert own_key(None, None) is None
    assert read_task(SWEEP, NOW, WREN).dedupe is None


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ([], "no agent is called 'wrne'; no fleet has been taken up here yet (wakeful up does that)"),
        (["wren", "moss"], "no agent is called 'wrne'; did you mean wren? (nothing was done; name one that exists)"),
        (["zz", "y"], "no agent is called 'wrne'; there are y, zz (nothing was done; name one that exists)"),
    ],
)
def test_an_unknown_agent_is_told_with_the_one_that_was_meant(known, told):
    assert in_words(unknown_agent("wrne", known)) == told
