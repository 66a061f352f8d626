"""Every rule can be broken: each checker is shown a lived world with one thing changed, and must object."""

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.simulation.tampering import TAMPERINGS, fresh
from tests.simulation.tampering_nodes import OF_NODES
from wakeful.core.cron import parse_schedule
from wakeful.core.runs import Ending
from wakeful.core.windows import inside_until, parse_window
from wakeful.testing import checkers
from wakeful.testing.checkers import History, judge
from wakeful.testing.checkers.calendar import fires_after, within
from wakeful.testing.fleets import QUIET, SCHEDULES, ZONES
from wakeful.testing.simulate import open_store
from wakeful.testing.world import World

SEEDS, DAYS = (0, 2, 3, 4, 5, 7, 19), 1.0
ALL = [*TAMPERINGS, *OF_NODES]


@pytest.fixture(scope="module")
def histories(tmp_path_factory) -> Iterator[list[History]]:
    worlds = []
    for seed in SEEDS:
        worlds.append(World(seed, tmp_path_factory.mktemp("world") / "wakeful.db", open_store, days=DAYS))
        worlds[-1].run()
    yield [History(world.store, world.witness) for world in worlds]
    for world in worlds:
        world.store.close()


@pytest.mark.parametrize(("rule", "tamper"), ALL, ids=[tamper.__name__ for _, tamper in ALL])
def test_a_checker_objects_when(rule, tamper, histories):
    tampered = [changed for history in histories if tamper(changed := fresh(history))]
    assert tampered, "no world has what this tampering needs: live more seeds"
    assert any(violation.rule.startswith(rule) for changed in tampered for violation in judge(changed))


def rules() -> set[str]:
    """Every rule that a checker names, read off the source."""
    found = set[str]()
    for path in CHECKERS:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named: dict[str, set[str]] = defaultdict(set)
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                    named[name].add(text)
        for node in ast.walk(tree):
            match node:
                case ast.keyword(arg="rule", value=ast.Constant(value=str(text))):
                    found.add(text)
                case ast.keyword(arg="rule", value=ast.Name(id=name)):
                    assert named[name], f"{path.stem} makes up the rule {name}"
                    found |= named[name]
    return found


def test_there_is_a_tampering_for_every_rule():
    assert len(rules()) > 30
    assert [rule for rule in sorted(rules()) if not any(rule.startswith(known) for known, _ in ALL)] == []


def test_no_checker_objects_to_what_was_lived(histories):
    assert not [violation.what for history in histories for violation in judge(fresh(history))]


# ---- apart from the core


CHECKERS = sorted(Path(checkers.__file__).parent.glob("*.py"))
# Reading a stored instant is no rule.
NO_RULES = {"read_time"}


@pytest.mark.parametrize("path", CHECKERS, ids=[path.stem for path in CHECKERS])
def test_a_checker_takes_types_from_the_core_and_never_a_rule(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wakeful.core"):
            module = importlib.import_module(node.module or "")
            for name in node.names:
                assert isinstance(getattr(module, name.name), type) or name.name in NO_RULES, name.name
        assert not (isinstance(node, ast.Import) and any("wakeful.core" in name.name for name in node.names))


@pytest.mark.parametrize("zone", sorted(set(ZONES)))
def test_the_checkers_calendar_and_the_cores_agree_through_every_change_of_offset(zone):
    moments = [
        datetime(2026, month, day, hour, 31, tzinfo=UTC)
        for month, day in ((3, 8), (3, 29), (4, 5), (4, 24), (10, 4), (10, 25), (10, 30), (11, 1))
        for hour in range(0, 24, 3)
    ]
    for moment in moments:
        for text in SCHEDULES:
            assert fires_after(text, moment, zone) == parse_schedule(text).after(moment, ZoneInfo(zone))
        for window in map(parse_window, QUIET):
            assert within(window, moment, zone) == (inside_until((window,), moment, ZoneInfo(zone)) is not None)


def test_an_ending_the_checkers_know_is_read_as_the_contract_says():
    read = checkers.history.outcome_of
    assert read(Ending(exit_code=0)) == "done"
    assert read(Ending(exit_code=0, output="NO-WORK: nothing")) == "no_work"
    assert read(Ending(exit_code=1)) == "failed"
    assert read(Ending(exit_code=0, timed_out=True)) == "killed"
    assert read(Ending(exit_code=0, by="operator")) == "killed"
