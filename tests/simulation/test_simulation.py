"""A hundred seeded worlds keep every promise; a seed is enough to live one of them again."""

import os
import re
import subprocess
import sys

import pytest

from wakeful.testing import simulate as command
from wakeful.testing.checkers import Violation
from wakeful.testing.simulate import Report, main, show, simulate
from wakeful.testing.world import World

# The first worlds are also asked what they met.
SEEDS, TOGETHER, PORTION = 100, 28, 4


def hold(reports: list[Report]) -> None:
    failed = [report for report in reports if report.violations]
    assert not failed, "\n".join(show(report) for report in failed)


@pytest.mark.parametrize("first", range(TOGETHER, SEEDS, PORTION))
def test_every_promise_holds_in_the_worlds_of(first):
    hold([simulate(seed) for seed in range(first, first + PORTION)])


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
CRASHES = {f"{moment} {verb}" for moment in ("before", "after") for verb in ("decide", "finish", "claim")}


def test_every_promise_holds_in_the_first_worlds_and_they_meet_every_guard_outcome_and_crash():
    lived = [simulate(seed) for seed in range(TOGETHER)]
    hold(lived)
    met = frozenset[str]().union(*(report.met | set(report.crashes) for report in lived))
    assert (GUARDS | OUTCOMES | KINDS | CRASHES | {"before a start"}) - met == set()


def test_a_seed_leaves_the_same_trace_twice_whatever_the_order_of_hashes():
    traces = {_trace(seed=8, hashes=hashes) for hashes in ("1", "2")}
    assert len(traces) == 1
    assert simulate(8).trace in traces
    assert simulate(9).trace not in traces


def _trace(seed: int, hashes: str) -> str:
    words = [sys.executable, "-m", "wakeful.testing.simulate", "--seed", str(seed)]
    environment = {**os.environ, "PYTHONHASHSEED": hashes, "PYTHONPATH": os.pathsep.join(sys.path)}
    lived = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=60)
    found = re.search(r"trace (\w+)", lived.stdout)
    assert found, lived.stdout
    return found[1]


def test_the_command_closes_with_how_many_passed_and_failed(capsys):
    assert main(["--seeds", "2", "--jobs", "1", "--days", "0.2"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 passed, 0 failed"


def test_a_failure_prints_the_seed_the_rule_the_rows_and_the_command_that_replays_it(capsys, monkeypatch):
    broken = Violation(rule="one run per agent at a time", what="wren lived two", rows=("run 7", "run 8"))
    report = Report(seed=41, violations=(broken,), trace="", runs=9, crashes=(), met=frozenset())
    monkeypatch.setattr(command, "simulate", lambda seed, days: report)
    assert main(["--seed", "41", "--days", "2"]) == 1
    printed = capsys.readouterr().out
    assert "seed 41 failed after 9 runs" in printed
    assert "rule: one run per agent at a time" in printed
    assert "row: run 7" in printed and "row: run 8" in printed
    assert "replay: python -m wakeful.testing.simulate --seed 41 --days 2\n" in printed
    assert printed.splitlines()[-1] == "0 passed, 1 failed"


def test_the_first_failure_stops_the_command_when_it_is_told_to(capsys, monkeypatch):
    broken = Violation(rule="a rule", what="is broken")
    lived = []

    def fail(seed: int, days: float | None) -> Report:
        lived.append(seed)
        return Report(seed=seed, violations=(broken,), trace="", runs=0, crashes=(), met=frozenset())

    monkeypatch.setattr(command, "simulate", fail)
    assert main(["--seeds", "5", "--start", "3", "--jobs", "1", "--stop-at-first"]) == 1
    assert lived == [3]


def test_an_exception_of_the_store_is_a_violation_with_its_seed(monkeypatch):
    def break_down(world: World) -> None:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(World, "run", break_down)
    [violation] = simulate(5).violations
    assert violation.rule == "no verb fails by itself"
    assert "the disk is on fire" in violation.what
