"""Each planted bug is seen within 300 seeds."""

import pytest

from tests.simulation.planting import BUGS, must_be_seen


@pytest.mark.parametrize("bug", BUGS, ids=[bug["name"].replace(" ", "_") for bug in BUGS])
def test_a_planted_bug_is_seen_within_three_hundred_seeds(bug, tmp_path):
    must_be_seen(bug, tmp_path)
