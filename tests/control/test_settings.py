"""Limits of a live agent, as a person types and reads them."""

from datetime import timedelta
from typing import Any

import pytest

from tests.control.desk import an_agent, caller_of, replicas
from wakeful.control.typed import SETTINGS, read_settings, setting
from wakeful.core.agents import FLEET_WIDE, LIVE_POLICIES, Limits, RetryPolicy
from wakeful.core.codec import encode
from wakeful.core.errors import Mistake, Outdated
from wakeful.core.windows import parse_window
from wakeful.fleet.load import load_fleet

# What is typed, what is shown for it, and the fields that it fills.
TYPED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "cooldown": ("10m", "10m", {"cooldown": timedelta(minutes=10)}),
    "max_wakes_per_day": ("20", "20", {"wakes_per_day": 20}),
    "max_wakes_per_pair": ("0", "0", {"wakes_per_pair": 0}),
    "max_wakes_per_run": ("7", "7", {"wakes_per_run": 7}),
    "max_chain": ("4", "4", {"chain": 4}),
    "max_minutes_per_day": ("90.5", "90.5", {"minutes_per_day": 90.5, "minutes_declared": True}),
    "burst": ("5/1m", "5/1m", {"burst": 5, "burst_window": timedelta(minutes=1)}),
    "burst_pause": ("1h", "1h", {"burst_pause": timedelta(hours=1)}),
    "budget_usd": ("$5", "$5", {"usd_per_day": 5_000_000}),
    "budget_tokens": ("200000", "200000", {"tokens_per_day": 200_000}),
    "run_usd": ("0.25", "$0.25", {"usd_per_run": 250_000}),
    "run_tokens": ("9000", "9000", {"tokens_per_run": 9_000}),
    "reserve": ("$0.5, 300 tokens", "$0.5, 300 tokens", {"reserve_usd": 500_000, "reserve_tokens": 300}),
    "quiet_hours": (
        "Mon-Wed 22:00-06:00, 12:00-13:30",
        "Mon,Tue,Wed 22:00-06:00, 12:00-13:30",
        {"quiet_hours": (parse_window("Mon-Wed 22:00-06:00"), parse_window("12:00-13:30"))},
    ),
    "max_failures": ("2", "2", {"max_failures": 2}),
    "max_retries": ("1", "1", {"max_retries": 1}),
    "retry_base": ("30s", "30s", {"retry_base": timedelta(seconds=30)}),
    "retry_jitter": ("20%", "0.2", {"retry_jitter": 0.2}),
}


def test_every_limit_and_policy_of_a_live_agent_can_be_set_and_none_of_the_fleet():
    filled = {field for known in SETTINGS.values() for field in known.fields}
    assert filled == {*Limits.__dataclass_fields__, *LIVE_POLICIES} - FLEET_WIDE
    assert set(SETTINGS) == set(TYPED)


@pytest.mark.parametrize("name", TYPED)
def test_a_setting_is_typed_held_and_shown_and_can_be_typed_again(desk, name):
    written, shown, fields = TYPED[name]
    desk.declare("wren")
    before = desk.ask("settings", agent="wren")["settings"][name]["value"]
    told = desk.ask("set", agent="wren", settings={name: written})["settings"]
    assert told[name] == {
        "value": shown,
        "origin": "override",
        "exact": encode(fields),
        "replaces": {"value": before, "origin": "default"},
    }
    changed = desk.store.agent("wren")
    policies = {"max_retries": "max_retries", "retry_base": "base", "retry_jitter": "jitter"}
    for field, value in fields.items():
        home = changed.retries if field in policies else changed if field == "max_failures" else changed.limits
        assert getattr(home, policies.get(field, field)) == value
    assert read_settings({name: shown}) == fields


@pytest.mark.parametrize("nothing", [None, "", "  "])
@pytest.mark.parametrize("name", TYPED)
def test_nothing_takes_an_override_back(desk, name, nothing):
    desk.declare("wren")
    before = desk.ask("settings", agent="wren")["settings"]
    desk.ask("set", agent="wren", settings={name: TYPED[name][0]})
    after = desk.ask("set", agent="wren", settings={name: nothing})["settings"]
    assert after == before and after[name]["origin"] == "default"


FLEET_FILE = """
#+COOLDOWN: 10m
#+MAX-WAKES-PER-DAY: 30
#+MAX-WAKES-PER-PAIR: 5
#+MAX-RETRIES: 2
#+BUDGET-USD: 50
* wren
:PROPERTIES:
:RUN: true
:MAX-WAKES-PER-DAY: 12
:MAX-MINUTES-PER-DAY: 60
:BURST: 5/1m
:RETRY-BASE: 15s
:RETRY-JITTER: 0.2
:MAX-FAILURES: 3
:END:
* moss
:PROPERTIES:
:RUN: true
:END:
"""
PULSE_FILE = """
coordination:
  wake_guardrails: {cooldown_seconds: 300, max_wakes_per_day: 20}
agents:
  wren:
    run: "true"
    coordination: {wake_guardrails: {max_wakes_per_day: 12}}
"""


def from_file(desk, name, text):
    path = desk.folder / name
    path.write_text(text, encoding="utf-8")
    loaded = load_fleet(path)
    assert loaded.fleet is not None, loaded.diagnostics
    desk.store.declare(loaded.fleet, desk.now)


def origins_of(desk, agent):
    told = desk.ask("settings", agent=agent)["settings"]
    return {name: setting["origin"] for name, setting in told.items() if setting["origin"] != "default"}


def test_each_value_says_whether_the_fleet_or_the_agent_declares_it_even_where_it_equals_the_default(desk):
    from_file(desk, "fleet.org", FLEET_FILE)
    of_fleet = {
        "cooldown": "fleet",
        "max_wakes_per_day": "fleet",
        "max_wakes_per_pair": "fleet",
        "max_retries": "fleet",
    }
    own = ("max_wakes_per_day", "max_minutes_per_day", "burst", "retry_base", "retry_jitter", "max_failures")
    # A fleet's budget is no default of its agents.
    assert origins_of(desk, "moss") == of_fleet
    assert origins_of(desk, "wren") == of_fleet | dict.fromkeys(own, "agent")


def test_the_guardrails_of_a_pulse_file_have_an_origin_too(desk):
    from_file(desk, "fleet.yml", PULSE_FILE)
    assert origins_of(desk, "wren") == {"cooldown": "fleet", "max_wakes_per_day": "agent"}


def test_an_override_says_what_it_replaces_and_gives_it_back(desk):
    from_file(desk, "fleet.org", FLEET_FILE)
    told = desk.ask("set", agent="wren", settings={"cooldown": "1m", "max_wakes_per_day": "1", "max_chain": "2"})
    told = {name: told["settings"][name] for name in ("cooldown", "max_wakes_per_day", "max_chain")}
    assert {name: (setting["value"], setting["replaces"]) for name, setting in told.items()} == {
        "cooldown": ("1m", {"value": "10m", "origin": "fleet"}),
        "max_wakes_per_day": ("1", {"value": "12", "origin": "agent"}),
        "max_chain": ("2", {"value": "8", "origin": "default"}),
    }
    again = desk.ask("set", agent="wren", settings={"cooldown": "2m"})["settings"]["cooldown"]
    assert (again["value"], again["replaces"]["value"]) == ("2m", "10m")
    back = desk.ask("set", agent="wren", settings={"cooldown": ""})["settings"]
    assert (back["cooldown"]["value"], back["cooldown"]["origin"], back["cooldown"]["replaces"]) == (
        "10m",
        "fleet",
        None,
    )
    assert back["max_chain"]["origin"] == "override"


def test_to_move_a_value_to_the_fleet_changes_its_origin_and_is_no_new_version(desk):
    from_file(desk, "fleet.org", "#+RUN: true\n* wren\n:PROPERTIES:\n:COOLDOWN: 5m\n:END:\n")
    before, told = desk.ask("settings", agent="wren"), len(desk.ask("events", limit=1_000)["items"])
    from_file(desk, "fleet.org", "#+RUN: true\n#+COOLDOWN: 5m\n* wren\n")
    after = desk.ask("settings", agent="wren")
    assert [row["settings"]["cooldown"]["origin"] for row in (before, after)] == ["agent", "fleet"]
    assert after["version"] == before["version"] and len(desk.ask("events", limit=1_000)["items"]) == told


def test_an_edit_under_an_override_changes_what_it_replaces(desk):
    from_file(desk, "fleet.org", FLEET_FILE)
    desk.ask("set", agent="moss", settings={"cooldown": "1m"})
    from_file(desk, "fleet.org", FLEET_FILE.replace("COOLDOWN: 10m", "COOLDOWN: 20m"))
    told = desk.ask("settings", agent="moss")["settings"]["cooldown"]
    assert (told["value"], told["replaces"]) == ("1m", {"value": "20m", "origin": "fleet"})


def test_one_overridden_half_of_a_setting_replaces_the_whole_of_it(desk):
    from_file(desk, "fleet.org", FLEET_FILE)
    told = desk.ask("set", agent="wren", settings={"burst_window": "2m"})["settings"]["burst"]
    assert (told["value"], told["replaces"]) == ("5/2m", {"value": "5/1m", "origin": "agent"})


def test_what_is_typed_is_the_whole_of_a_setting_also_where_one_half_was_set_before(desk):
    desk.declare("wren")
    desk.ask("set", agent="wren", settings={"reserve": "$0.5, 300 tokens"})
    told = desk.ask("set", agent="wren", settings={"reserve": "$0.7"})["settings"]["reserve"]
    assert told["value"] == "$0.7"


def test_settings_say_where_each_value_comes_from_and_the_version(desk):
    desk.declare(an_agent("wren", limits=Limits(wakes_per_day=3), retries=RetryPolicy(jitter=0.0)))
    first = desk.ask("settings", agent="wren")
    assert (first["agent"], first["version"]) == ("wren", 1)
    assert first["settings"]["max_wakes_per_day"] == {
        "value": "3",
        "origin": "agent",
        "exact": {"wakes_per_day": 3},
        "replaces": None,
    }
    assert first["settings"]["cooldown"] == {
        "value": "5m",
        "origin": "default",
        "exact": {"cooldown": 300.0},
        "replaces": None,
    }
    assert first["settings"]["budget_usd"]["value"] is None and first["settings"]["quiet_hours"]["value"] == "none"
    second = desk.ask("set", agent="wren", settings={"cooldown": "1m"})
    assert second["version"] == 2 and second["settings"]["retry_jitter"]["origin"] == "agent"
    assert desk.ask("agent", agent="wren")["overrides"] == ["cooldown"]


def test_whoever_has_seen_another_version_changes_nothing(desk):
    desk.declare("wren", *replicas("moss", 2))
    seen = desk.ask("settings", agent="wren")["version"]
    desk.ask("set", agent="wren", settings={"cooldown": "1m"}, version=seen)
    with pytest.raises(Outdated, match="at version 2, not 1"):
        desk.ask("set", agent="wren", settings={"cooldown": "2m"}, version=seen)
    assert desk.ask("settings", agent="wren")["settings"]["cooldown"]["value"] == "1m"
    # What one of those behind an address has become counts too.
    seen = desk.ask("settings", agent="moss")["version"]
    desk.ask("set", agent="moss-2", settings={"cooldown": "1m"})
    with pytest.raises(Outdated):
        desk.ask("set", agent="moss", settings={"cooldown": "2m"}, version=seen)


@pytest.mark.parametrize("name", ["MAX-WAKES-PER-DAY", "max-wakes-per-day", "wakes_per_day", " Max_Wakes_Per_Day "])
def test_a_setting_has_the_names_of_the_fleet_file_and_of_the_core(name):
    assert setting(name).name == "max_wakes_per_day"


@pytest.mark.parametrize(
    ("name", "written", "fields"),
    [
        ("burst_window", "2m", {"burst_window": timedelta(minutes=2)}),
        ("reserve_usd", "$1", {"reserve_usd": 1_000_000}),
        ("reserve_tokens", "12", {"reserve_tokens": 12}),
        ("minutes_per_day", "30", {"minutes_per_day": 30.0, "minutes_declared": True}),
    ],
)
def test_a_field_of_the_core_can_be_set_by_itself(name, written, fields):
    assert read_settings({name: written}) == fields


def test_quiet_hours_can_be_set_to_none_although_they_are_declared(desk):
    desk.declare(an_agent("wren", limits=Limits(quiet_hours=(parse_window("11:00-14:00"),))))
    assert desk.ask("why", agent="wren", cause="task")["guard"] == "quiet_hours"
    told = desk.ask("set", agent="wren", settings={"quiet_hours": "none"})["settings"]["quiet_hours"]
    assert (told["value"], told["origin"]) == ("none", "override")
    assert desk.ask("why", agent="wren", cause="task")["verdict"] == "admit"


def test_a_raised_limit_lets_the_next_wake_in_without_a_restart(desk):
    desk.declare("wren", "moss")
    order = desk.begin("wren")
    desk.ask("set", agent="moss", settings={"max_wakes_per_day": "0"})
    assert desk.ask("wake", caller_of(order), agent="moss", reason="blocker", body="stuck")["guard"] == "wakes_per_day"
    desk.ask("set", agent="moss", settings={"max_wakes_per_day": "1"})
    assert (
        desk.ask("wake", caller_of(order), agent="moss", reason="critical_finding", body="found")["verdict"] == "admit"
    )


def test_an_address_sets_all_of_its_replicas_at_once(desk):
    desk.declare(*replicas("moss", 3))
    told = desk.ask("set", agent="moss", settings={"cooldown": "1m"})
    assert told["agent"] == "moss" and told["settings"]["cooldown"]["value"] == "1m"
    assert {row["name"]: row["overrides"] for row in desk.ask("agents")["items"]} == {
        f"moss-{number}": ["cooldown"] for number in (1, 2, 3)
    }


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"cooldwon": "10m"}, r"unknown setting 'cooldwon' \(did you mean cooldown\?\)"),
        ({"interval": "10m"}, "cannot be set on a live agent"),
        ({"sessions": "4"}, "cannot be set on a live agent"),
        ({"fleet_usd_per_day": "4"}, "unknown setting"),
        ({"cooldown": "10"}, "with a unit"),
        ({"max_wakes_per_day": "-1"}, "from 0 to"),
        ({"max_wakes_per_day": "many"}, "whole number"),
        ({"budget_usd": "$"}, "expected dollars"),
        ({"burst": "20"}, "20/10m"),
        ({"reserve": ","}, "^reserve: expected a value"),
        ({"cooldown": ["10m"]}, "expected one value"),
        ({}, "nothing to set"),
        ({"cooldown": "1m", "max_chain": "x"}, "^max_chain: expected a whole number, found 'x'"),
    ],
)
def test_what_cannot_be_set_is_a_mistake_and_nothing_of_it_is_set(desk, settings, reason):
    desk.declare("wren")
    with pytest.raises(Mistake, match=reason):
        desk.ask("set", agent="wren", settings=settings)
    assert desk.ask("agent", agent="wren")["overrides"] == []


@pytest.mark.parametrize("twice", [{"cooldown": "1m", "COOLDOWN": "2m"}, {"burst": "5/1m", "burst_window": "2m"}])
def test_a_setting_that_is_said_twice_is_a_mistake(twice):
    with pytest.raises(Mistake, match="is said twice"):
        read_settings(twice)
