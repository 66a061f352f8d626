"""Ten agents at once under one daily limit in dollars, as processes that cost more than anybody expects, say nothing of
their cost, fail or die, while the engine is killed: what is spent stays within the limit and what admitted runs cost
beyond their reservations.
"""

import os
import random
import time

from soak.accounts import Told, every_event, every_run, fleet
from soak.standing import Ground, until

SEED = int(os.environ.get("SEED", "2026"))
LIMIT = 5.0
MILLION = 1_000_000
SPENDERS = {
    "cheap-0": "1 2 done",
    "cheap-1": "1 3 done",
    "steady": "4 4 done",
    "wild-0": "1 30 done",
    "wild-1": "1 60 done",
    "silent-0": "1 1 silent",
    "silent-1": "30 30 silent",
    "fails": "1 20 fails",
    "dies": "1 1 dies",
    "free": "0 0 done",
}


def test_ten_agents_at_once_stay_within_one_daily_limit_and_what_runs_cost_beyond_their_reservations(
    ground, address, say
):
    programs = {name: f"spends {how}" for name, how in SPENDERS.items()}
    keys = {"interval": "1s", "budget_usd": f"{LIMIT:g}", "burst": "100000/10m", "max_failures": "100000"}
    here = ground(fleet(programs, **keys), store=address)
    told, dice = Told(here), random.Random(SEED)
    here.up()
    for _ in range(3):
        time.sleep(1 + 3 * dice.random())
        here.kill()
        here.up()
    # Who costs next to nothing may go on for a while.
    until(lambda: len(_waiting(here)) >= 7, "the limit", 120)
    verdict = here.told("why", "wild-1")
    here.drain()
    with here.store() as store:
        runs = [row for row in every_run(store) if row.state == "ended"]
        decided = [event for event in every_event(store, "decided") if event.run is not None]
        day = runs[-1].ended_at.date().isoformat()
        spent = store.total("fleet", day, "usd")
    reserved = {event.run: event.fields["facts"]["reserve"]["usd"] for event in decided}
    beyond = sum(max(0, row.spend.usd - reserved[row.id]) for row in runs)
    say(f"{len(runs)} runs, ${spent / MILLION:.2f} of ${LIMIT:.2f} spent, ${beyond / MILLION:.2f} beyond reservations")
    assert spent == sum(row.spend.usd for row in runs)
    assert LIMIT * 0.8 <= spent / MILLION <= LIMIT + beyond / MILLION
    # Whoever said what it cost is charged that; who said nothing, what was reserved.
    said = {int(run): round(float(usd) * MILLION) for _, run, usd in told.lines("cost")}
    assert all(row.spend.usd == said.get(row.id, reserved[row.id]) for row in runs)
    assert {name for name, *_ in told.lines("cost")} == SPENDERS.keys() - {"silent-0", "silent-1"}
    text = str(verdict)
    assert "spend" in text and f"the limit is ${LIMIT:.2f} for the fleet" in text


def _waiting(here: Ground) -> list[str]:
    return [row["name"] for row in here.told("status")["agents"] if row["state"] == "waiting"]
