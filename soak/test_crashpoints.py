"""kill -9 at every site that commits, before the commit, after it, and after the answer, on both stores: of a process
that calls the verb, and of a whole engine in the middle of its day, as far as that comes by the site.

SITES="record finish" in the environment names the sites to try, and SEED=7 changes their order.
"""

import json
import os
import random
import subprocess
import sys
from contextlib import suppress
from itertools import product
from statistics import median
from time import monotonic

import pytest

from soak.audits import unsound_database
from soak.busy_day import Day, fleet, prepare, wait
from soak.crasher import SITES
from soak.killer import ROOT
from soak.queueing import Beside
from soak.standing import Ground
from wakeful.testing.crashpoints import MOMENTS

CHOSEN = os.environ.get("SITES", "").split()
# What a day of a few minutes, with an engine that is never away for long, does not come by: the end of a lease, an
# hour of retention, a minute of a schedule, a command without an engine, a store that is moved.
SELDOM = {"orphans", "forget", "recur_one", "ask", "load", "take_task", "leave", "amend", "note", "void"}
# What only nodes do that share a store.
SHARING = {"tend", "renew", "keep_output"}
# Seconds in which it should come by, on a machine that has other things to do.
LONGEST = 40.0
SEED = int(os.environ.get("SEED", "2026"))
REACHED = 20


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_process_that_is_killed_at_any_site_leaves_the_state_before_or_after(store, tmp_path, say, request):
    where = request.getfixturevalue("bare_server").dsn if store == "postgres" else str(tmp_path)
    began = monotonic()
    command = [sys.executable, "-m", "soak.crasher", store, where, *CHOSEN]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    kills = f"{found['cases']} kills at {len(found['sites'])} sites on {store}"
    say(f"{kills}, open again in at most {found['slowest']:.2f} s, {monotonic() - began:.0f} s")
    assert found["complaints"] == []
    assert CHOSEN or set(found["sites"]) == set(SITES) - ({"load"} if store == "sqlite" else set())


class Doomed:
    """An engine that is told where to die, and started again when it has."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.day = Day(ground)
        self.died: list[str] = []
        self.missed: list[str] = []

    def die_at(self, site: str, moment: str) -> None:
        """It may die before it is ready: what an earlier one left is settled first."""
        (self.ground.folder / "doom").write_text(f"{moment} {site} 1")
        with suppress(AssertionError):
            self.ground.up()
        if wait(lambda: not self.ground.is_up, LONGEST):
            self.died.append(f"{moment} {site}")
        else:
            self.missed.append(f"{moment} {site}")
            self.ground.kill()

    def unsound(self) -> list[str]:
        """Right after a kill."""
        address = self.ground.store_address
        return self.ground.unsound() if address is None else unsound_database(address)


def test_an_engine_that_is_killed_at_any_site_goes_on_as_if_it_had_not_been(
    ground, address, say, tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))))
    prepare(tmp_path / "fleet-0")
    os.mkfifo(tmp_path / "fleet-0" / "silence")
    here = ground(fleet(), store=address, program="soak.doomed")
    doomed, began = Doomed(here), monotonic()
    unlikely = SELDOM if address else SELDOM | SHARING
    points = list(product(CHOSEN or sorted(set(SITES) - unlikely), MOMENTS))
    # Whoever opens a store waits for its schema, and nobody tells him.
    points = [point for point in points if point != ("migrate", "told")]
    # What is died at in the beginning is spread among the rest, so that there are engines that answer.
    random.Random(SEED).shuffle(points)
    with Beside(doomed.day.once, lambda: 0.2) as asking:
        for number, (site, moment) in enumerate(points, 1):
            assert asking.failed is None, repr(asking.failed)
            doomed.die_at(site, moment)
            assert doomed.unsound() == [], f"{moment} {site}"
            if number % REACHED == 0 or number == len(points):
                reached = f"{len(doomed.died)} of {len(points)} points, {len(doomed.missed)} missed"
                ready = f"ready in {median(here.waits):.2f} s, at most {max(here.waits):.2f} s"
                say(f"{reached}, {ready}, {monotonic() - began:.0f} s")
        here.up()
    assert wait(doomed.day.over, 120), doomed.day.queue.counts()
    here.drain()
    say(f"{len(set(doomed.day.added))} tasks; not come by in {LONGEST:.0f} s: {', '.join(doomed.missed) or 'none'}")
    assert doomed.day.complaints() == []
    assert len(doomed.missed) <= len(points) / 20
