"""Two nodes over one store, of which one dies at 50 random moments: no agent ever runs twice at once, and whoever is
due runs elsewhere within 30 s. Every third death takes the whole machine with it: engine, guardians and runs.

KILLS=6 SEED=7 in the environment change how often and when.
"""

import os
import random
import signal
import time
from collections import Counter
from statistics import median

import pytest

from soak.line import Line
from soak.standing import TWO, until
from soak.witness import FENCED, LOSSES, NODE_GONE, TELL, agent, gaps, lost_runs, overlaps

KILLS = int(os.environ.get("KILLS", "50"))
SEED = int(os.environ.get("SEED", "2026"))
AGENTS = 50
INTERVAL = 2.0
# By when an agent whose node died runs elsewhere: its lease of 20 s, and whatever else it takes.
ELSEWHERE = 30.0
# Long enough that most of a node's deaths leave runs behind.
TENTHS = (10, 15, 20, 30, 40, 60, 80, 100, 150)


def test_no_agent_runs_twice_at_once_and_all_run_elsewhere_while_nodes_die_and_come_back(place, server, say):
    here = place(
        agents=AGENTS, interval=f"{INTERVAL:g}s", agent=agent(TENTHS), store=server.dsn, more={TWO: server.dsn}
    )
    dice, began = random.Random(SEED), time.monotonic()
    for node in here.nodes:
        node.up()
    for kill in range(1, KILLS + 1):
        time.sleep(dice.random() * 8)
        victim = dice.choice(here.nodes)
        victim.cut() if kill % 3 == 0 else victim.kill()
        time.sleep(dice.random() * 40)
        victim.up()
        if kill % 5 == 0 or kill == KILLS:
            apart, took = gaps(here.witness())[0].seconds, time.monotonic() - began
            say(f"{kill} of {KILLS} deaths, {len(here.begun())} runs, at most {apart:.1f} s apart, {took:.0f} s")
    # Until whatever was left behind has been taken over.
    time.sleep(ELSEWHERE)
    for node in here.nodes:
        node.drain()
    assert here.check(LOSSES) == [], f"seed {SEED}"
    waits = gaps(here.witness())
    with here.store() as store:
        lost = lost_runs(store)
    after_loss = sorted(gap.seconds for gap in waits if gap.before in lost and gap.moved)
    say(f"lost: {dict(Counter(lost.values()))}; apart at most {waits[0].seconds:.1f} s")
    if after_loss:
        say(f"elsewhere after {median(after_loss):.1f} s, at most {after_loss[-1]:.1f} s ({len(after_loss)} times)")
    assert [gap for gap in waits if gap.seconds > ELSEWHERE + INTERVAL] == []
    assert KILLS < 10 or len(after_loss) > KILLS / 10


# Goes on until it is told to end.
ENDLESS = f"""{TELL}
tell begin
while [ ! -e go ]; do rest 0.1; tell alive; done
tell end
"""


@pytest.mark.parametrize("how", ["it stands still", "its line to the database is silent"])
def test_the_run_of_a_node_that_is_not_heard_is_fenced_and_taken_over_and_the_node_goes_on_later(
    how, place, server, say
):
    with Line(server.folder) as line:
        here = place(agents=1, interval="1s", agent=ENDLESS, store=line.address(server.dsn), more={TWO: server.dsn})
        here.up()
        until(here.begun, "the first run")
        (other,) = here.nodes[1:]
        other.up()
        here.machine.signal(signal.SIGSTOP) if how == "it stands still" else line.open.clear()
        silent = uptime()
        until(lambda: len(here.begun()) == 2, "the second run", 40)
        taken_over(here, silent, say)
        time.sleep(max(0.0, silent + 40 - uptime()))
        here.machine.signal(signal.SIGCONT) if how == "it stands still" else line.open.set()
        # It is a node again: it is seen, and runs what is due once the other one has left.
        until(lambda: alive(other) == {node.name for node in here.nodes}, "both nodes")
        (here.folder / "go").touch()
        until(lambda: len(here.begun()) > 3, "runs of a second")
        other.drain()
        known = len(here.begun())
        until(lambda: len(here.begun()) > known, "a run of the one that was silent")
        here.drain()
        signs = here.witness()
        assert signs[-1].node == here.data.name
        with here.store() as store:
            lost = lost_runs(store)
        assert set(lost) == {signs[0].run}
        assert lost[signs[0].run] in (NODE_GONE, FENCED)
        assert overlaps(signs, lost) == []


def taken_over(here, silent, say):
    signs = here.witness()
    first, second = (sign for sign in signs if sign.what == "begin")
    last = max(sign.at for sign in signs if sign.run == first.run)
    say(f"silent at 0 s, fenced after {last - silent:.1f} s, elsewhere after {second.at - silent:.1f} s")
    assert second.node == TWO
    assert last < second.at < silent + ELSEWHERE


def test_the_run_of_a_machine_that_was_suspended_ends_as_soon_as_it_wakes(place, server, say):
    here = place(agents=1, interval="1s", agent=ENDLESS, store=server.dsn, more={TWO: server.dsn})
    here.up()
    until(here.begun, "the first run")
    (other,) = here.nodes[1:]
    other.up()
    here.machine.suspend()
    until(lambda: len(here.begun()) == 2, "the second run", 40)
    first, woken = here.begun()[0], uptime()
    here.machine.resume()
    until(lambda: alive(other) == {node.name for node in here.nodes}, "both nodes")
    late = [sign for sign in here.witness() if sign.run == first and sign.at >= woken]
    # Nobody can end a process that sleeps: the two overlap for the moment that its guardian takes to wake.
    lasted = max((sign.at for sign in late), default=woken) - woken
    say(f"it was seen {len(late)} times after it woke, for {lasted:.2f} s")
    assert len(late) <= 2
    (here.folder / "go").touch()
    until(lambda: len(here.begun()) > 3, "runs of a second")
    for node in here.nodes:
        node.drain()


def alive(node):
    return {row["name"] for row in node.told("nodes")["items"] if row["state"] == "up"}


def uptime():
    return time.clock_gettime(time.CLOCK_BOOTTIME)
