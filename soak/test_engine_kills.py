"""kill -9 of the engine at 300 random moments, and at 100 on PostgreSQL, with runs of 0.1 to 5 s under way: none is
lost, repeated or overlapping.

KILLS=20 SEED=7 in the environment change how often and when.
"""

import os
from statistics import median
from time import monotonic

import pytest

from soak.standing import Killer

KILLS = {"sqlite": 300, "postgres": 100}
SEED = int(os.environ.get("SEED", "2026"))


@pytest.mark.parametrize("store", KILLS)
def test_no_run_is_lost_repeated_or_overlapping_however_often_the_engine_is_killed(store, place, say, request):
    address = request.getfixturevalue("server").dsn if store == "postgres" else None
    kills = int(os.environ.get("KILLS", KILLS[store]))
    here = place(agents=6, store=address)
    killer, started = Killer(here, SEED), monotonic()
    here.up()
    for kill in range(1, kills + 1):
        killer.kill_one()
        if kill % 20 == 0 or kill == kills:
            waits, took = sorted(here.waits), monotonic() - started
            ready = f"ready in {median(waits):.2f} s, 99 of 100 in {waits[int(len(waits) * 0.99) - 1]:.2f} s"
            say(f"{kill} of {kills} kills on {store}, {len(here.begun())} runs, {ready}, {took:.0f} s")
    here.drain()
    # An engine that is away for less than a lease loses nothing, wherever its store is.
    assert here.check(losses=()) == [], f"seed {SEED}"
    assert len(here.begun()) > kills
