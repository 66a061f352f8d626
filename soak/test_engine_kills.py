"""kill -9 of the engine at 300 random moments, with runs of 50 ms to 5 s under way: none is lost, repeated or
overlapping.

KILLS=20 SEED=7 in the environment change how often and when.
"""

import os
from statistics import median
from time import monotonic

from soak.standing import Killer, Place

KILLS = int(os.environ.get("KILLS", "300"))
SEED = int(os.environ.get("SEED", "2026"))


def test_no_run_is_lost_repeated_or_overlapping_however_often_the_engine_is_killed(tmp_path, capsys):
    place = Place(tmp_path / "fleet", agents=6)
    killer, started = Killer(place, SEED), monotonic()
    place.up()
    for kill in range(1, KILLS + 1):
        killer.kill_one()
        if kill % 20 == 0 or kill == KILLS:
            runs = sum(what == "begin" for what, _, _ in place.witness())
            waits, took = sorted(place.waits), monotonic() - started
            ready = f"ready in {median(waits):.2f} s, 99 of 100 in {waits[int(len(waits) * 0.99) - 1]:.2f} s"
            said = f"{kill} of {KILLS} kills, {runs} runs, {ready}, {took:.0f} s"
            with capsys.disabled():
                print(f"\n{said}", end="", flush=True)
    place.drain()
    assert place.check() == [], f"seed {SEED}"
    assert sum(what == "begin" for what, _, _ in place.witness()) > KILLS
