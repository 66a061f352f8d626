"""Agents that wake each other at every run, as processes at a cent a run: each loop dies out by itself, and says at
what cost. The limits are the defaults, without a cooldown.
"""

import time
from collections import Counter

import pytest

from soak.accounts import Told, every_run, every_wake, fleet
from soak.standing import free_port, until

CENT = 10_000
# Seconds without a run: a loop that was to go on would have.
SILENCE = 4.0

LOOPS = {
    "A<->B": {"a": "b", "b": "a"},
    "A->B->C->A": {"a": "b", "b": "c", "c": "a"},
    "a fan-out that answers": {"a": "b,c,d,e", **dict.fromkeys("bcde", "a")},
}
# Runs until silence: the first, and one for each wake that the pair (5) or the chain (8) lets pass. How the fan-out
# goes depends on who is quicker; four pairs leave it 20.
RUNS = {"A<->B": 6, "A->B->C->A": 9}
MOST = 1 + 4 * 5
GUARDS = {"A<->B": {"wakes_per_pair"}, "A->B->C->A": {"chain"}}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_dies_out_by_itself_and_its_cost_is_told(name, ground, address, say):
    agents = LOOPS[name]
    programs = {each: f"wakes {others} 0.01" for each, others in agents.items()}
    here = ground(fleet(programs, cooldown="0s"), store=address, port=free_port())
    told = Told(here)
    # The first beats find the loop over; they show that everybody is there.
    (here.folder / "over").touch()
    here.up()
    until(lambda: len(told.lines("shown")) == len(agents), "the first beats")
    time.sleep(1)
    before = len(told.lines("shown"))
    (here.folder / "over").unlink()
    assert here.ask("tick", "a").returncode == 0
    runs, quiet_since = 0, time.monotonic()
    while time.monotonic() - quiet_since < SILENCE:
        if len(told.lines("shown")) - before > runs:
            runs, quiet_since = len(told.lines("shown")) - before, time.monotonic()
        assert runs <= MOST, "it goes on"
        time.sleep(0.05)
    (here.folder / "over").touch()
    refused = told.guards(list(agents))
    here.drain()
    with here.store() as store:
        rows = every_run(store)[before:]
        woken = {row.wake.id: row.wake for row in every_wake(store)}
        kept = store.items(state="open")
    cost = sum(row.spend.usd for row in rows)
    say(f"{name} died out after {runs} runs and ${cost / 1_000_000:.2f}; refused by {dict(refused)}")
    assert (len(rows), cost) == (runs, runs * CENT)
    assert runs == RUNS.get(name, runs)
    assert refused.keys() == GUARDS.get(name, refused.keys())
    pairs = Counter(frozenset((woken[row.wake].sender, row.agent)) for row in rows if row.cause == "peer")
    assert max(pairs.values()) <= 5 and max(woken[row.wake].depth for row in rows) <= 8
    # What was refused is a message, and the next beat shows it.
    assert kept and {item.id for item in kept}.isdisjoint(told.shown(list(agents)))
    here.up()
    last = str(rows[-1].id)
    say(here.ask("blame", last).stdout.partition("\n")[0])
    lineage = here.told("blame", last)["lineage"]
    # Some were refused only after they had waited.
    assert (lineage["runs"], round(lineage["usage"]["usd"] * 100)) == (runs, runs)
    assert lineage["refused"] >= refused.total()
    for item in kept:
        assert here.ask("tick", item.agent, "--wait").returncode == 0
    here.drain()
    assert {item.id for item in kept} <= told.shown(list(agents)).keys()
