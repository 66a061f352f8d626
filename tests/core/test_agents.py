"""What a declaration means where it is silent, and what a live setting may change."""

import json
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from wakeful.core.agents import (
    FLEET_WIDE,
    LIVE_POLICIES,
    Agent,
    Declared,
    Fleet,
    Limits,
    RetryPolicy,
    Runner,
    override,
)
from wakeful.core.cadence import Cadence
from wakeful.core.codec import decode, encode
from wakeful.core.errors import Mistake
from wakeful.core.lifecycle import SINGLE

MOSS = Agent(name="moss", address="moss")


def test_the_limits_default_to_what_the_documents_promise():
    limits = Limits()
    assert (limits.wakes_per_run, limits.cooldown, limits.wakes_per_day, limits.wakes_per_pair) == (
        3,
        timedelta(seconds=300),
        12,
        5,
    )
    assert (limits.chain, limits.minutes_per_day, limits.minutes_declared) == (8, 120, False)
    assert (limits.burst, limits.burst_window, limits.burst_pause) == (
        20,
        timedelta(minutes=10),
        timedelta(minutes=30),
    )
    assert (limits.sessions, limits.workers, limits.quiet_hours) == (2, 3, ())
    assert (limits.usd_per_day, limits.tokens_per_day) == (None, None)
    assert (limits.fleet_usd_per_day, limits.fleet_tokens_per_day) == (None, None)


def test_the_policies_default_to_what_the_documents_promise():
    assert RetryPolicy() == RetryPolicy(max_retries=5, base=timedelta(seconds=15), jitter=0.1)
    assert (MOSS.max_failures, MOSS.kill_grace) == (5, timedelta(seconds=10))
    fleet = Fleet()
    assert (fleet.sessions, fleet.workers, fleet.grace) == (2, 3, timedelta(seconds=60))
    assert (fleet.stagger, fleet.port) == (timedelta(seconds=30), 7717)


def test_an_agent_without_a_word_ticks_every_hour_through_one_state():
    assert MOSS.cadence == Cadence(interval=timedelta(hours=1))
    assert MOSS.lifecycle == SINGLE
    assert MOSS.enabled


@pytest.mark.parametrize(("subject", "minutes"), [("beat", 15), ("inbox", 15), ("task", 30)])
def test_the_wall_clock_is_a_quarter_of_an_hour_and_half_an_hour_for_tasks(subject, minutes):
    assert MOSS.wall_clock(subject) == timedelta(minutes=minutes)
    hasty = Agent(name="moss", address="moss", timeout=timedelta(seconds=90))
    assert hasty.wall_clock(subject) == timedelta(seconds=90)


@pytest.mark.parametrize("runner", [None, *Runner])
def test_only_a_handler_takes_a_shift_of_32_tasks(runner):
    agent = Agent(name="moss", address="moss", runner=runner)
    assert agent.shift == (32 if runner is Runner.handler else 1)


def test_a_fleet_finds_its_agents_by_name():
    fleet = Fleet(agents=(MOSS,))
    assert fleet.agent("moss") is MOSS
    assert fleet.agent("wren") is None


# ---- live settings

SAMPLES: dict[str, Any] = {
    "quiet_hours": (),
    "cooldown": timedelta(seconds=1),
    "burst_window": timedelta(minutes=1),
    "burst_pause": timedelta(minutes=1),
    "minutes_per_day": 1.5,
    "minutes_declared": True,
}
OWN = [field.name for field in fields(Limits) if field.name not in FLEET_WIDE]


@pytest.mark.parametrize("name", OWN)
def test_every_limit_can_be_set_live_and_changes_nothing_else(name):
    value = SAMPLES.get(name, 77)
    changed = override(MOSS, {name: value})
    implied = {"minutes_declared": True} if name == "minutes_per_day" else {}
    assert changed == replace(MOSS, limits=replace(MOSS.limits, **{name: value}, **implied))


def test_to_set_the_minutes_is_to_declare_them_unless_one_says_otherwise():
    assert override(MOSS, {"minutes_per_day": 60.0}).limits.minutes_declared
    assert not override(MOSS, {"minutes_per_day": 60.0, "minutes_declared": False}).limits.minutes_declared


def test_the_live_policies_reach_the_retries_and_the_failures():
    settings = {
        "max_retries": 1,
        "retry_base": timedelta(seconds=2),
        "retry_jitter": 0.0,
        "max_failures": 9,
    }
    assert set(settings) == set(LIVE_POLICIES)
    changed = override(MOSS, settings)
    assert changed.retries == RetryPolicy(max_retries=1, base=timedelta(seconds=2), jitter=0.0)
    assert changed.max_failures == 9
    assert changed.limits == MOSS.limits


def test_no_settings_change_nothing():
    assert override(MOSS, {}) is MOSS and MOSS.declared is None


def test_what_a_setting_replaces_is_kept_and_a_second_one_does_not_hide_it():
    once = override(MOSS, {"wakes_per_day": 1, "max_failures": 9})
    twice = override(once, {"wakes_per_day": 2})
    assert once.declared == Declared(limits=MOSS.limits, retries=MOSS.retries, max_failures=MOSS.max_failures)
    assert twice.declared == once.declared and twice.limits.wakes_per_day == 2


def test_who_declares_a_limit_and_what_is_under_a_setting_are_stored_and_an_older_agent_has_neither():
    told = replace(override(MOSS, {"wakes_per_day": 1}), origins=(("cooldown", "fleet"), ("wakes_per_day", "agent")))
    stored = json.loads(json.dumps(encode(told)))
    again = decode(Agent, stored)
    assert (again.origins, again.declared) == (told.origins, told.declared)
    older = decode(Agent, {key: value for key, value in stored.items() if key not in ("origins", "declared")})
    assert (older.origins, older.declared) == ((), None)
    # It is told, and no more: nobody is a different agent for it.
    assert older == again == told


@pytest.mark.parametrize("key", sorted(FLEET_WIDE))
def test_what_holds_for_the_whole_fleet_cannot_be_set_for_one_agent(key):
    assert hasattr(MOSS.limits, key)
    with pytest.raises(Mistake):
        override(MOSS, {key: 1})


@pytest.mark.parametrize("key", ["colour", "name", "enabled", "retries", "Cooldown"])
def test_an_unknown_setting_is_a_mistake_that_names_every_known_one(key):
    with pytest.raises(Mistake) as told:
        override(MOSS, {"cooldown": timedelta(seconds=1), key: 1})
    assert repr(key) in told.value.reason
    for known in (*OWN, *LIVE_POLICIES):
        assert known in told.value.remedy
