"""When two reasons for an outage are one."""

import pytest

from wakeful.core.outages import same_reason


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("no such folder", "no such folder", True),
        ("failed at 12:00:59", "failed at 9:01:00", True),
        ("process 17 was killed", "process 4242 was killed", True),
        ("no such folder", "not allowed", False),
        ("ended with exit code 1", "ended with exit code 1: out of memory", False),
        ("answered 500", "answers 500", False),
    ],
)
def test_reasons_that_differ_in_their_numbers_alone_are_one(one, other, same):
    assert same_reason(one, other) is same_reason(other, one) is same
