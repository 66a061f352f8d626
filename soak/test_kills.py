"""kill -9 at 200 random moments of one growing store: what was accepted is there, once.

A kill leaves what the kernel holds of the file, so this shows that acceptance follows the commit, that a commit is
whole or not at all, and that the next process goes on from any moment. It does not show what a loss of power does.
KILLS=20 SEED=7 in the environment change how often and when.
"""

import os
from time import monotonic

from soak.killer import Killer

KILLS = int(os.environ.get("KILLS", "200"))
SEED = int(os.environ.get("SEED", "2026"))


def test_what_was_accepted_survives_every_kill_and_is_there_once(tmp_path, capsys):
    killer = Killer(tmp_path / "data", SEED)
    heard, started = 0, monotonic()
    for kill in range(1, KILLS + 1):
        heard += killer.kill_one()
        found = killer.check()
        assert found == [], f"after kill {kill} of seed {SEED}"
        if kill % 10 == 0 or kill == KILLS:
            size = killer.folder.database.stat().st_size / 1e6
            said = f"{kill} of {KILLS} kills, {heard:,} acceptances, {size:.1f} MB, {monotonic() - started:.0f} s"
            with capsys.disabled():
                print(f"\n{said}", end="", flush=True)
    assert len(killer.accepted.records) > KILLS
    assert len(killer.accepted.finishes) > KILLS


def test_a_writer_that_accepts_before_the_commit_is_caught_each_time(tmp_path):
    for seed in range(10):
        assert kills_until_caught(Killer(tmp_path / str(seed), seed, lies=True), 20) is not None, f"seed {seed}"


def kills_until_caught(killer: Killer, most: int) -> int | None:
    for kill in range(1, most + 1):
        killer.kill_one()
        if killer.check():
            return kill
    return None
