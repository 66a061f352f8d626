"""Planted bugs are seen, those that are `quick` to see here, and all of them in `make soak`."""

import pytest

from tests.simulation.planting import BUGS, live, must_be_seen, plant, spoiled

QUICK = [bug for bug in BUGS if bug.get("quick")]


@pytest.mark.parametrize("bug", QUICK, ids=[bug["name"].replace(" ", "_") for bug in QUICK])
def test_a_planted_bug_is_seen_within_three_hundred_seeds(bug, tmp_path):
    must_be_seen(bug, tmp_path)


@pytest.mark.parametrize("bug", BUGS, ids=[bug["name"].replace(" ", "_") for bug in BUGS])
def test_a_bug_can_still_be_planted(bug):
    assert spoiled(bug)


def test_without_a_bug_nothing_is_seen(tmp_path):
    """The seeds that see them are those of `test_simulation`; one of them shows that the copy itself is sound."""
    plant({"file": "core/guards.py", "old": "def cooldown(", "new": "def cooldown("}, tmp_path)
    assert "1 passed, 0 failed" in live(tmp_path, "--seed", "7")
