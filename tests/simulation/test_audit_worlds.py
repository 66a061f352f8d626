"""Everything adds up in fifty worlds, whatever crashed in them: the audit has their stores alone."""

import pytest

from tests.control.audited import lived, told

SEEDS, PORTION = 50, 5


@pytest.mark.parametrize("first", range(0, SEEDS, PORTION))
def test_everything_adds_up_in_the_worlds_of(first, tmp_path):
    """The first of each portion for longer."""
    for seed in range(first, first + PORTION):
        report = lived(seed, tmp_path / f"{seed}.db", days=1.0 if seed == first else 0.15).audit()
        assert report.adds_up, f"seed {seed}\n{told(report)}"
