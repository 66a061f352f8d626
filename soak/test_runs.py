"""Every badly behaved agent a hundred times, at full size: no failure, no survivor, no control group left.

The sentences are those of tests/runners; only how often and how much differ. `REPEATS=5 make soak` is a quick look.
"""

import os
import shutil
from time import monotonic

import pytest

from tests.runners import test_leases as leases
from tests.runners import test_process_behaviours as behaviours
from tests.runners import test_recovery as recovery
from wakeful.runners.process import ProcessRunner
from wakeful.testing.contracts.runner_case import Yard

REPEATS = int(os.environ.get("REPEATS", "100"))

MB = 1_000_000
FULL = {"flood": 2_000 * MB, "line": 200 * MB, "processes": 512, "generations": 12, "zombies": 5_000}
# A flood of two times two gigabytes takes its time on a slow disk.
PATIENCE = 600.0

SENTENCES = [
    *(test for name, test in vars(behaviours).items() if name.startswith("test_")),
    recovery.test_a_run_outlives_its_caller_and_is_adopted_with_its_own_ending,
    recovery.test_a_run_that_ended_while_nobody_looked_is_adopted_with_its_own_ending,
    recovery.test_what_a_killed_caller_and_a_killed_guardian_left_is_ended_and_the_run_is_lost,
    recovery.test_an_agent_does_not_outlive_its_guardian,
    leases.test_a_lease_that_ran_out_before_the_start_could_be_carried_out_means_no_start,
    leases.test_a_process_that_is_frozen_before_it_becomes_the_agent_never_does_when_it_wakes_too_late,
    leases.test_a_guardian_that_was_frozen_past_the_lease_ends_the_run_as_soon_as_it_wakes,
]


@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda sentence: sentence.__name__.removeprefix("test_"))
def test_a_hundred_times(sentence, tmp_path, monkeypatch, capsys):
    for name, size in FULL.items():
        monkeypatch.setitem(behaviours.SIZES, name, size)
    started = monotonic()
    for number in range(1, REPEATS + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        with Yard(folder, ProcessRunner).open() as yard:
            yard.patience = PATIENCE
            sentence(yard=yard)
        shutil.rmtree(folder)
    with capsys.disabled():
        words = sentence.__name__.removeprefix("test_").replace("_", " ")
        print(f"\n{REPEATS} times in {monotonic() - started:.0f} s: {words}", end="", flush=True)


def test_every_row_of_the_list_of_behaviours_is_repeated():
    assert len(SENTENCES) >= 16
