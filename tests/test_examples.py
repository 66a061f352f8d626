"""Every example runs, and shows what it says it shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(*command):
    return subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=120, cwd=EXAMPLES.parent
    )


def test_the_demonstration_ends_by_itself_with_every_outcome_and_verdict_in_its_summary():
    done = run("examples/demo.py", "--for", "20s", "--port", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    for what in ("runs done", "runs no_work", "runs failed", "runs killed"):
        assert re.search(rf"{what} +│ [1-9]", done.stdout), what
    for what in ("quiet beats", "lifecycle transitions", "decisions admit", "decisions defer", "decisions refuse"):
        assert re.search(rf"{what}.*│ [1-9]", done.stdout), what
    assert re.search(r"task a torn page +│ completed after 2 attempts", done.stdout)


@pytest.mark.parametrize("fleet", sorted(EXAMPLES.glob("*/fleet.*")), ids=lambda path: path.parent.name)
def test_every_example_fleet_passes_the_check_without_a_word_of_complaint(fleet):
    checked = run("-m", "wakeful", "check", fleet)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "warning" not in checked.stdout
