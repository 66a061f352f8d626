"""Twenty seeded worlds of three nodes keep every promise; a seed is enough to live one of them again."""

import os
import re
import subprocess
import sys

import pytest

from wakeful.testing import simulate as command
from wakeful.testing.actions import ACTIONS
from wakeful.testing.checkers import Violation
from wakeful.testing.simulate import Report, main, show, simulate
from wakeful.testing.world import World

DAYS = 1.0
# Together they meet all that there is.
TOGETHER = (0, 1, 2, 3, 4, 5, 7, 9, 10, 19)
OTHERS = ((6, 8), (11, 12), (13, 14, 15), (16, 17, 18))


def hold(reports: list[Report]) -> None:
    failed = [report for report in reports if report.violations]
    assert not failed, "\n".join(show(report, DAYS) for report in failed)


@pytest.mark.parametrize("seeds", OTHERS, ids=str)
def test_every_promise_holds_in_the_worlds_of(seeds):
    hold([simulate(seed, days=DAYS) for seed in seeds])


GUARDS = {
    *("timer: defer state_gate", "timer: defer quiet_hours", "timer: defer spend", "timer: defer burst"),
    *("peer: refuse cooldown", "peer: refuse wakes_per_day", "peer: refuse wakes_per_pair"),
    *("peer: refuse wakes_per_run", "peer: refuse chain", "peer: refuse minutes_per_day"),
    *("peer: refuse quiet_hours", "peer: refuse moot", "operator: refuse paused", "task: defer paused"),
    *("news: defer minutes_per_day", "news: defer busy", "peer: defer slots", "task: defer busy"),
}
OUTCOMES = {
    f"{subject}: {outcome}"
    for subject in ("beat", "inbox", "task")
    for outcome in ("done", "no_work", "failed", "killed")
}
KINDS = {"declared", "removed", "set", "paused", "resumed", "voided", "task_ended", "task_changed", "gone"}
TROUBLES = ("crash before", "crash after", "away before", "away after", "full", "crash read", "crash before a start")
INJECTED = {
    *("crash", "crash before", "crash after", "away before", "away after", "full", "slow start"),
    *("hint lost", "hint twice", "hint late", "delivered twice", "old things told again"),
    *("clock set", "clock set by a day", "clock off by five minutes"),
    *("store away", "node frozen", "node deaf", "node crashed", "node left", "node joined later", "machine lost"),
    *("agent hung", "agent crashed", "agent flooded", "agent said NO-WORK"),
    *("fleet edited", "current state removed"),
    *(f"somebody did: {kind}" for kind in ACTIONS),
}


def test_every_promise_holds_in_the_first_worlds_and_they_meet_every_guard_outcome_and_trouble():
    reports = [simulate(seed, days=DAYS) for seed in TOGETHER]
    hold(reports)
    met = frozenset[str]().union(*(report.met for report in reports))
    assert (GUARDS | OUTCOMES | KINDS) - met == set()
    troubles = {trouble for report in reports for trouble in report.troubles}
    assert [each for each in TROUBLES if not any(trouble.startswith(each) for trouble in troubles)] == []
    injected = {kind for report in reports for kind, count in report.injected.items() if count}
    assert INJECTED ^ injected == set(), "a trouble that no longer comes proves nothing; a new one is named here"


def test_at_the_pace_of_a_real_engine_every_promise_holds_too():
    """Leases of twenty seconds, renewed every two: an hour of it costs as much as a day of a world at ease."""
    report = simulate(7, days=0.05, pace=1.0)
    assert not report.violations, show(report, 0.05, 1.0)
    assert report.runs


def test_a_seed_leaves_the_same_trace_twice_whatever_the_order_of_hashes():
    traces = {_trace(seed=7, hashes=hashes) for hashes in ("1", "2")}
    assert len(traces) == 1
    assert simulate(7, days=0.3).trace in traces
    assert simulate(8, days=0.3).trace not in traces


def _trace(seed: int, hashes: str) -> str:
    words = [sys.executable, "-m", "wakeful.testing.simulate", "--seed", str(seed), "--days", "0.3"]
    environment = {**os.environ, "PYTHONHASHSEED": hashes, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=60)
    found = re.search(r"trace (\w+)", told.stdout)
    assert found, told.stdout
    return found[1]


def test_the_command_closes_with_how_many_passed_and_failed(capsys):
    assert main(["--seeds", "2", "--jobs", "1", "--days", "0.2"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 passed, 0 failed"


def test_a_failure_prints_the_seed_the_rule_the_rows_and_the_command_that_replays_it(capsys, monkeypatch):
    broken = Violation(rule="one run per agent at a time", what="wren lived two", rows=("run 7", "run 8"))
    report = Report(seed=41, violations=(broken,), trace="", runs=9, troubles=(), met=frozenset())
    monkeypatch.setattr(command, "simulate", lambda seed, days, pace: report)
    assert main(["--seed", "41", "--days", "2"]) == 1
    printed = capsys.readouterr().out
    assert "seed 41 failed after 9 runs" in printed
    assert "rule: one run per agent at a time" in printed
    assert "row: run 7" in printed and "row: run 8" in printed
    assert "replay: python -m wakeful.testing.simulate --seed 41 --days 2\n" in printed
    assert printed.splitlines()[-1] == "0 passed, 1 failed"


def test_the_first_failure_stops_the_command_when_it_is_told_to(capsys, monkeypatch):
    broken = Violation(rule="a rule", what="is broken")
    tried = []

    def fail(seed: int, days: float | None, pace: float) -> Report:
        tried.append(seed)
        return Report(seed=seed, violations=(broken,), trace="", runs=0, troubles=(), met=frozenset())

    monkeypatch.setattr(command, "simulate", fail)
    assert main(["--seeds", "5", "--start", "3", "--jobs", "1", "--stop-at-first"]) == 1
    assert tried == [3]


def test_an_exception_of_the_store_is_a_violation_with_its_seed(monkeypatch):
    def break_down(world: World) -> None:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(World, "run", break_down)
    [violation] = simulate(5, days=0.1).violations
    assert violation.rule == "no verb fails by itself"
    assert "the disk is on fire" in violation.what
