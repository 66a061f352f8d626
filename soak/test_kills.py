"""kill -9 at 2,000 random moments of stores that grow, a hundred of each: what was accepted is there, once, and every
store adds up.

A kill leaves what the kernel holds of the file, so this shows that acceptance follows the commit, that a commit is
whole or not at all, and that the next process goes on from any moment. It does not show what a loss of power does.
KILLS=20 SEED=7 in the environment change how often and when.
"""

import os
from statistics import median
from time import monotonic

from soak.killer import Killer

KILLS = int(os.environ.get("KILLS", "2000"))
# After so many the next store begins: each check reads the whole of it.
PORTION = 100
SEED = int(os.environ.get("SEED", "2026"))


def test_what_was_accepted_survives_every_kill_and_is_there_once(tmp_path, say):
    heard, started, waits = 0, monotonic(), list[float]()
    for first in range(0, KILLS, PORTION):
        killer = Killer(tmp_path / f"data-{first}", SEED + first)
        for kill in range(first + 1, min(first + PORTION, KILLS) + 1):
            heard += killer.kill_one()
            assert killer.check() == [], f"after kill {kill} of seed {SEED}"
            if kill % 10 == 0:
                assert killer.audit() == [], f"after kill {kill} of seed {SEED}"
        assert killer.audit() == [], f"seed {SEED + first}"
        waits += killer.waits
        size, took = killer.folder.database.stat().st_size / 1e6, monotonic() - started
        ready = f"ready in {median(waits):.2f} s, at most {max(waits):.2f} s"
        say(f"{kill} of {KILLS} kills, {heard:,} acceptances, {ready}, {size:.1f} MB, {took:.0f} s")
        assert len(killer.accepted.records) > killer.life
        assert len(killer.accepted.finishes) > killer.life / 2


def test_a_writer_that_accepts_before_the_commit_is_caught_each_time(tmp_path):
    for seed in range(10):
        assert kills_until_caught(Killer(tmp_path / str(seed), seed, lies=True), 20) is not None, f"seed {seed}"


def kills_until_caught(killer: Killer, most: int) -> int | None:
    for kill in range(1, most + 1):
        killer.kill_one()
        if killer.check():
            return kill
    return None
