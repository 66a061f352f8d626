"""Lists as others print them: what is pending in them, and what makes a list unknown."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.sources.aside import Unreadable
from wakeful.sources.entries import LONGEST_BODY, read_list


def read(document, **more):
    printed = document if isinstance(document, bytes) else json.dumps(document).encode()
    return read_list(printed, **more)


def ids(document, **more):
    return [thing.external_id for thing in read(document, **more)]


def print_of(entry):
    (found,) = read([entry])
    return found.fingerprint


# ---- the shapes of a list


@pytest.mark.parametrize(
    "printed",
    [
        b'[{"id": "a"}, {"id": "b"}]',
        b'{"items": [{"id": "a"}, {"id": "b"}]}',
        b'{"items": [{"id": "a"}, {"id": "b"}], "next": null}',
        b'{"tasks": [{"task_id": "a"}, {"task_id": "b"}], "total": 2}',
        b'{"id": "a"}\n{"id": "b"}\n',
        b'\n{"id": "a"}\n\n{"id": "b"}',
        b'["a", "b"]',
        b'\xef\xbb\xbf["b", "a"]',
        b'"a"\n"b"',
    ],
)
def test_every_shape_of_a_list_is_understood(printed):
    assert ids(printed) == ["a", "b"]


def test_only_a_new_line_parts_two_lines():
    printed = '{"id": "a\u2028b"}\r\n{"id": "c\x85d"}\r\n'.encode()
    assert ids(printed) == ["a\\u2028b", "c\\u0085d"]


def test_one_entry_on_one_line_is_a_list_of_one():
    assert ids(b'{"id": "a"}\n') == ["a"]


def test_an_empty_list_is_empty():
    assert ids([]) == ids({"items": []}) == []


def test_a_bare_list_of_numbers_is_a_list_of_ids():
    assert ids([7, "8"]) == ["7", "8"]


# ---- the list of tasks of a role, as it is


TASKS = [
    {"task_id": "t1", "title": "Review the draft", "description": "All of it.", "status": "assigned"},
    {"task_id": "t2", "title": "Fix the build", "status": "accepted", "priority": "high"},
    *({"task_id": f"other-{status}", "title": "x", "status": status} for status in ("in_progress", "blocked")),
    *({"task_id": f"over-{status}", "title": "x", "status": status} for status in ("completed_unverified", "verified")),
]


def test_assigned_and_accepted_tasks_are_pending_and_others_are_not():
    assert ids(TASKS) == ["t1", "t2"]


def test_a_task_is_shown_by_its_title_and_its_description():
    first, second = read(TASKS)
    assert (first.subject, first.body) == ("Review the draft", "All of it.")
    assert second.subject == "Fix the build"
    assert json.loads(second.body) == TASKS[1]


def test_other_words_for_pending_can_be_named():
    entries = [{"id": "a", "status": "open"}, {"id": "b", "status": "assigned"}, {"id": "c"}]
    assert ids(entries) == ["b", "c"]
    assert ids(entries, pending=("open",)) == ["a", "c"]


# ---- what is not pending yet


def test_what_is_blocked_is_not_offered():
    assert ids([{"id": "a", "blocked": True}, {"id": "b", "blocked": False}, {"id": "c", "blocked": None}]) == [
        "b",
        "c",
    ]


def test_that_nothing_blocks_an_entry_is_no_part_of_what_it_is():
    assert print_of({"id": "a", "blocked": False}) == print_of({"id": "a"})


@pytest.mark.parametrize("key", ["depends_on", "dependencies"])
@pytest.mark.parametrize("need", ["a", {"task_id": "a"}, {"id": "a"}])
def test_an_entry_waits_for_what_it_depends_on_in_the_same_list(key, need):
    def listed(status):
        return [{"id": "a", "status": status}, {"id": "b", "status": "assigned", key: [need]}]

    assert ids(listed("in_progress")) == []
    assert ids(listed("assigned")) == ["a"]
    assert ids(listed("completed_unverified")) == []
    assert ids(listed("verified")) == ["b"]
    assert ids(listed("verified")[1:]) == ["b"]


def test_an_entry_does_not_wait_for_itself():
    assert ids([{"id": "a", "depends_on": ["a", "elsewhere"]}]) == ["a"]


def test_numbers_and_texts_name_the_same_entry():
    assert ids([{"id": 1}, {"id": 2, "depends_on": ["1"]}]) == ["1"]


# ---- fingerprints


def test_the_order_of_keys_is_nothing_and_every_value_is_something():
    one = print_of({"id": "a", "x": 1, "y": [1, 2]})
    assert print_of({"y": [1, 2], "x": 1, "id": "a"}) == one
    assert print_of({"id": "a", "x": 1, "y": [2, 1]}) != one
    assert print_of({"id": "a", "x": 1, "y": [1, 2], "z": None}) != one


def test_a_fingerprint_of_its_own_is_all_that_counts():
    one = print_of({"id": "a", "fingerprint": "7", "age": 1})
    assert print_of({"id": "a", "fingerprint": "7", "age": 2}) == one
    assert print_of({"id": "a", "fingerprint": "8", "age": 1}) != one


def test_with_its_own_fingerprint_too_another_instant_is_another_entry():
    """Else the store would never hear that it is to ring earlier, or later."""
    seen = {
        print_of({"id": "a", "fingerprint": "7", **more})
        for more in ({}, {"not_before": "2026-01-01T00:00Z"}, {"not_before": "2026-01-02T00:00Z"})
    }
    assert len(seen) == 3


def test_fingerprints_do_not_differ_between_processes():
    assert print_of({"id": "a"}) == "6f580d13632c968264547f9795770f8a"


# ---- what is in an entry


def test_an_instant_is_read_in_its_zone():
    (thing,) = read([{"id": "a", "not_before": "2026-03-01T12:00:00+02:00"}])
    assert thing.not_before == datetime(2026, 3, 1, 10, tzinfo=UTC)


def test_a_payload_that_is_no_text_is_shown_as_it_is():
    (thing,) = read([{"id": "a", "payload": {"n": 1, "ä": "ö"}}])
    assert json.loads(thing.body) == {"n": 1, "ä": "ö"}
    assert "ä" in thing.body


def test_an_entry_that_says_nothing_more_has_no_body():
    assert [(thing.subject, thing.body) for thing in read([{"id": "a", "fingerprint": 1}, "b"])] == [
        ("a", ""),
        ("b", ""),
    ]


def test_what_is_too_long_is_cut_and_says_so():
    (thing,) = read([{"id": "a", "title": "t" * 10_000, "body": "b" * 100_000}])
    assert len(thing.subject) == 501
    assert thing.body == "b" * LONGEST_BODY + "\n[cut here: it has 100,000 characters]"


def test_signs_that_cannot_be_stored_or_shown_are_replaced():
    (thing,) = read(rb'[{"id": "\ud800x", "title": "a\u001b[2J \u202eb", "body": "x\udfffy"}]')
    assert (thing.external_id, thing.subject, thing.body) == (r"\ud800x", r"a\u001b[2J \u202eb", "x\ufffdy")


# ---- what makes a list unknown


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (b"", "nothing was printed; where nothing is pending"),
        (b" \n", "nothing was printed"),
        (b"\xff[]", "not UTF-8"),
        (b"<html>", "not JSON"),
        (b'{"id": "a"', "not JSON"),
        (b'{"id": "a"}\n{"id": ', "line 2 of the list is not JSON"),
        (b'[{"id": NaN}]', "NaN is no number"),
        (b"[" * 100_000, "nested too deep"),
        (b"null", "expected a list"),
        (b'"a"', "expected a list"),
        (b'{"error": "away"}', "expected a list"),
        (b'{"items": null}', "expected a list"),
        (b'{"items": [], "next": "cursor"}', "goes on"),
        (b'[{"title": "x"}]', "entry 1 of the list has no id"),
        (b'[{"id": "a"}, {"id": ""}]', "entry 2 of the list has no id"),
        (b'[{"id": true}]', "has no id"),
        (b'[{"id": 1.5}]', "has no id"),
        (b"[null]", "has no id"),
        (b"[[]]", "has no id"),
        (b'[{"id": "a"}, {"id": "a"}]', "two entries with the id 'a'"),
        (b'[{"id": 1}, {"id": "1"}]', "two entries with the id '1'"),
        (b'["' + b"x" * 501 + b'"]', "longer than 500"),
        (b'[{"id": "a", "blocked": "yes"}]', "blocked neither true nor false"),
        (b'[{"id": "a", "status": 1}]', "the status of the entry 'a'"),
        (b'[{"id": "a", "status": []}]', "the status of the entry 'a'"),
        (b'[{"id": "a", "depends_on": "b"}]', "not a list"),
        (b'[{"id": "a", "fingerprint": []}]', "neither a text nor a number"),
        (b'[{"id": "a", "not_before": "tomorrow"}]', "no instant with a time zone"),
        (b'[{"id": "a", "not_before": "2026-01-01T00:00"}]', "no instant with a time zone"),
        (b'[{"id": "a", "not_before": 1}]', "no instant with a time zone"),
        (b"[" + b"9" * 5_000 + b"]", "not JSON"),
    ],
)
def test_a_list_that_is_not_clear_is_unknown_as_a_whole(printed, why):
    with pytest.raises(Unreadable, match=why) as raised:
        read(printed)
    assert "\n" not in str(raised.value)


def test_lines_are_no_list_where_a_part_could_not_be_told_from_the_whole():
    with pytest.raises(Unreadable, match="not JSON"):
        read(b'{"id": "a"}\n{"id": "b"}\n', by_lines=False)
    assert ids(b'[{"id": "a"}]', by_lines=False) == ["a"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec=None)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["id", "task_id", "title", "body", "status", "blocked", "items", "depends_on", "not_before", "x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_is_printed_is_a_list_that_can_be_kept_or_unknown(document):
    try:
        found = read(document)
    except Unreadable as error:
        str(error).encode("utf-8")
        return
    for thing in found:
        "".join((thing.external_id, thing.fingerprint, thing.subject, thing.body)).encode("utf-8")


@given(st.binary(max_size=200))
def test_any_bytes_are_a_list_or_unknown(printed):
    try:
        read(printed)
    except Unreadable:
        return
