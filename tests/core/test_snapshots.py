"""The address of a list that is polled: where it is, and what stands behind `#`."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.errors import Mistake
from wakeful.core.snapshots import SnapshotAddress, is_snapshot, read_snapshot


def test_a_program_is_a_path():
    assert read_snapshot("snapshot+exec:tools/pending#every=30s") == SnapshotAddress(
        name="snapshot+exec:tools/pending", program="tools/pending", every=timedelta(seconds=30)
    )


def test_a_url_is_sent_without_its_options():
    assert read_snapshot("snapshot+http://tms:8080/tasks#every=2m&token=TMS_TOKEN") == SnapshotAddress(
        name="snapshot+http://tms:8080/tasks",
        url="http://tms:8080/tasks",
        every=timedelta(minutes=2),
        token="TMS_TOKEN",
    )


def test_what_is_not_said_is_every_minute_without_a_token_and_what_tasks_call_pending():
    found = read_snapshot("snapshot+https://h")
    assert (found.url, found.every, found.token) == ("https://h/", timedelta(minutes=1), None)
    assert found.pending == ("assigned", "accepted")


def test_the_words_for_pending_can_be_named():
    assert read_snapshot("snapshot+exec:x#status=open&status=new&status=open").pending == ("open", "new")


def test_signs_of_a_path_that_an_address_cannot_hold_are_written_as_numbers():
    assert read_snapshot("snapshot+exec:my%20tools/a%2Cb%23c").program == "my tools/a,b#c"
    assert read_snapshot("snapshot+exec:/usr/bin/pending").program == "/usr/bin/pending"


def test_the_name_is_where_the_list_is():
    def name(address):
        return read_snapshot(address).name

    assert name("snapshot+exec:x#every=5s") == name("snapshot+exec:x")
    assert name("SNAPSHOT+HTTP://H/x#token=A") == name("snapshot+http://h/x")
    assert len({name(f"snapshot+http://h/x{query}") for query in ("", "?role=a", "?role=b")}) == 3
    assert "secret" not in name("snapshot+http://h/x?key=secret")
    assert " " not in name("snapshot+exec:my%20tools")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("snapshot+exec:", "no program is named"),
        ("snapshot+exec:/", "no program is named"),
        ("snapshot+exec:a%00b", "no program is named"),
        ("snapshot+exec:a%ff", "no program is named"),
        ("snapshot+exec://host/x", "a program has no host"),
        ("snapshot+exec:////x", "a program has no host"),
        ("snapshot+exec:x?role=a", "a program has no parameters"),
        ("snapshot+exec:x#token=A", "a program takes no token"),
        ("snapshot+http:///x", "no host is named"),
        ("snapshot+http:x", "no host is named"),
        ("snapshot+http://me:pw@h/x", "a password stands in the address"),
        ("snapshot+http://@h/x", "a password stands in the address"),
        ("snapshot+http://h/ü", "signs that cannot be sent"),
        ("snapshot+http://ü/x", "signs that cannot be sent"),
        ("snapshot+http://h/x?a=ü", "signs that cannot be sent"),
        ("snapshot+http://h:0/x", "not an address"),
        ("snapshot+http://h:99999/x", "not an address"),
        ("snapshot+http://[::1/x", "not an address"),
        ("http://h/x", "not the address of a snapshot"),
        ("snapshot+exec:x#every=30", "expected a duration with a unit, found '30'"),
        ("snapshot+exec:x#every=0s", "expected a duration above zero"),
        ("snapshot+exec:x#every=", "the option every is empty"),
        ("snapshot+exec:x#every", "not name=value"),
        ("snapshot+exec:x#evry=5s", "unknown option 'evry'"),
        ("snapshot+exec:x#every=5s&every=6s", "the option every is there twice"),
    ],
)
def test_what_is_wrong_with_an_address_is_said_without_repeating_it(address, reason):
    with pytest.raises(Mistake) as raised:
        read_snapshot(address)
    assert reason in raised.value.reason
    assert raised.value.remedy
    assert "pw" not in str(raised.value)


@given(
    st.text(max_size=40)
    | st.text(max_size=30).map("snapshot+http://h".__add__)
    | st.text().map("snapshot+exec:".__add__)
)
def test_any_text_is_an_address_or_a_mistake(text):
    is_snapshot(text)
    try:
        found = read_snapshot(text)
    except Mistake:
        return
    assert (found.program is None) != (found.url is None)
    if found.url is not None:
        assert "#" not in found.url
        found.url.encode("ascii")
