"""How many tasks a shift takes."""

from datetime import timedelta

import pytest

from wakeful.core.pace import FIRST_SHIFT, LONGEST_SHIFT, shift_size

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("waiting", "idle", "tasks", "took", "size"),
    [
        (100, 0, 32, SECOND / 10, 32),
        (100, 0, 32, timedelta(), 32),
        (100, 0, 32, 2 * SECOND, 32),
        (100, 0, 32, 4 * SECOND, 16),
        (100, 0, 1, 600 * SECOND, 1),
        (100, 0, 32, 3_600 * SECOND, 1),
        # Nobody knows how long they take.
        (100, 0, 0, None, FIRST_SHIFT),
        # Those who are idle have a share.
        (30, 2, 32, SECOND / 10, 10),
        (31, 2, 32, SECOND / 10, 11),
        (1, 2, 32, SECOND / 10, 1),
        (3_000, 2, 32, SECOND / 10, 32),
        (0, 0, 32, SECOND, 1),
    ],
)
def test_a_shift_takes_what_is_done_in_a_moment_and_leaves_a_share_to_the_idle(waiting, idle, tasks, took, size):
    assert shift_size(32, waiting, idle, tasks, took) == size


def test_a_shift_of_the_last_ones_pace_is_over_in_a_moment():
    for milliseconds in range(1, 3_000, 37):
        took = 8 * timedelta(milliseconds=milliseconds)
        assert shift_size(32, 1_000, 0, 8, took) * took / 8 <= LONGEST_SHIFT or milliseconds > 2_000
