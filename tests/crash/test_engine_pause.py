"""A pause of a real engine: once `wakeful pause` has returned nothing begins, by any path, until it is lifted."""

import os
import subprocess
import sys

from soak.standing import until
from soak.witness import TELL

# Begins, and goes on until it is told to end; with a child that has left its session and a deaf ear for TERM.
STUBBORN = f"""{TELL}
trap '' TERM
tell begin
setsid sleep 300 &
echo $! >> children
while :; do rest 0.1; done
"""
QUICK = f"""{TELL}
tell begin
tell end
"""


def test_after_a_pause_no_timer_tick_task_message_restart_or_second_engine_begins_a_run(place):
    here = place(agents=3, agent=QUICK)
    here.up()
    until(lambda: len(here.begun()) >= 3, "a few runs")
    receipt = here.told("pause", "--reason", "a look")
    before = here.begun()
    assert receipt["scope"] == "fleet"
    assert here.ask("tick", "agent-0").returncode == 1
    assert here.ask("task", "add", "something", "--agent", "agent-1").returncode == 0
    assert here.ask("send", "agent-2", "look", "--priority", "urgent").returncode in (0, 1)
    assert here.ask("wake", "agent-2").returncode == 1
    second = subprocess.run(
        [sys.executable, "-m", "wakeful", "up", "--port", "0"], cwd=here.folder, capture_output=True, timeout=60
    )
    assert second.returncode == 75
    here.kill()
    here.up()
    assert here.ask("tick", "agent-0").returncode == 1
    here.leave()
    here.up()
    # Timers of one second were due all the while; another way to see it than to wait is to ask what they wait for.
    waiting = {row["guard"] for row in here.told("decisions", "--verdict", "defer")["items"][:3]}
    assert waiting == {"paused"}
    assert here.begun() == before
    assert here.told("status")["open_runs"] == []
    here.ask("resume")
    until(lambda: len(here.begun()) > len(before), "what waited")


def test_a_pause_now_ends_live_trees_and_its_receipt_says_what_is_left(place):
    here = place(agents=2, interval="1h", agent=STUBBORN)
    fleet = here.folder / "fleet.org"
    fleet.write_text(fleet.read_text().replace("#+GRACE: 0s", "#+GRACE: 0s\n#+KILL-GRACE: 1s"))
    here.up()
    until(lambda: len(here.begun()) == 2, "both runs")
    children = here.folder / "children"
    until(lambda: children.exists() and len(children.read_text().split()) == 2, "their children")
    receipt = here.told("pause", "--now", "--reason", "stop it")
    assert receipt["running"] == []
    assert len(receipt["ended"]) == 2
    for pid in children.read_text().split():
        assert not os.path.exists(f"/proc/{pid}"), f"process {pid} of a run is alive"
    rows = here.told("runs")["items"]
    assert {(row["outcome"], row["reason"]) for row in rows} == {("killed", "ended by operator")}


def test_a_pause_file_holds_the_fleet_until_it_is_removed(place):
    here = place(agents=1, agent=QUICK)
    (here.folder / "PAUSE").write_text("the disk is being replaced\n")
    here.up()
    until(lambda: here.told("status")["pauses"], "the pause")
    (pause,) = here.told("status")["pauses"]
    assert pause["owner"] == "file"
    assert "the disk is being replaced" in pause["reason"]
    assert here.ask("tick", "agent-0").returncode == 1
    assert here.begun() == []
    refused = here.ask("resume")
    assert refused.returncode != 0
    assert "PAUSE" in refused.stderr
    (here.folder / "PAUSE").unlink()
    until(lambda: here.begun(), "its first run")


def test_a_run_that_is_killed_is_over_with_its_whole_tree_and_counts_as_no_attempt(place):
    here = place(agents=1, interval="1h", agent=STUBBORN)
    fleet = here.folder / "fleet.org"
    fleet.write_text(fleet.read_text().replace("#+GRACE: 0s", "#+GRACE: 0s\n#+KILL-GRACE: 1s"))
    here.up()
    until(lambda: here.begun(), "its run")
    run = here.begun()[0]
    assert here.ask("kill", str(run)).returncode == 0
    until(lambda: here.told("runs")["items"][0]["state"] == "ended", "its end")
    row = here.told("runs")["items"][0]
    assert (row["outcome"], row["reason"]) == ("killed", "ended by operator")
    assert here.told("why", "agent-0")["guard"] != "paused"
