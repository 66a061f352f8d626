"""The manifests, lifecycles and blocks of the source documents load as they stand."""

from datetime import UTC, datetime, timedelta

import pytest

from wakeful.core.agents import Runner
from wakeful.core.lifecycle import SINGLE, Kind
from wakeful.core.windows import Window
from wakeful.fleet import load_fleet

MANIFEST = """\
* wren
:PROPERTIES:
:DEF: defs/writer.org
:LIFECYCLE: lifecycle.org
:INTERVAL: 10m
:END:
* moss
:PROPERTIES:
:DEF: defs/editor.org
:INTERVAL: 20m
:END:
"""

LIFECYCLE = """\
#+START: wake_add
* wake_add
:PROPERTIES:
:KIND: wake
:REPEAT: 3
:NEXT: wake_audit
:END:
* wake_audit
:PROPERTIES:
:KIND: wake
:NEXT: rem
:END:
* rem
:PROPERTIES:
:KIND: rem
:NEXT: wake_plan
:MIN-INTERVAL: 10m
:END:
* wake_plan
:PROPERTIES:
:KIND: wake
:NEXT: wake_add
:END:
"""

GUARDRAILS = """\
coordination:
  max_concurrent_pulse_sessions: 2
  wake_guardrails:
    cooldown_seconds: 300           # Min time between wakes
    max_daily_session_minutes: 120  # Total daily runtime cap
    max_wakes_per_day: 12           # Daily wake limit
    max_wakes_per_pair_per_day: 5   # Per source-target pair
"""

CONFIG = (
    GUARDRAILS
    + """\
pulse_enabled: true
pulse_interval_minutes: 30
pulse_offset_minutes: 3
pulse_blackouts:
  - label: Nighttime
    type: recurring
    start_time: 23:00
    end_time: "07:00"
  - type: recurring
    start_time: "22:00"
    end_time: "06:00"
    days_of_week: [0, 5]
  - type: one-off
    start: 2026-12-24T18:00:00Z
    end: 2026-12-27T08:00:00Z
  - type: one_off
    start_time: "2026-05-01T00:00:00Z"
    end_time: "2026-05-02T00:00:00+02:00"
pulse_one_offs: ["2026-02-15T09:00:00Z", 2026-03-15T09:00:00Z]
pulse_container_timeout_ms: 120000
pulse_max_consecutive_skips: 5
pulse_columns: [Ready, Doing]
pulse_transitions_to: [Review]
thread_mode: passive
model: some/model
planning_model: some/model
executor_model: some/model
thinking_model: some/model
"""
)


@pytest.fixture
def desk(desk):
    desk.write("defs/writer.org", "You write.")
    desk.write("defs/editor.org", "You edit.")
    desk.write("lifecycle.org", LIFECYCLE)
    return desk


def test_the_manifest_of_the_schedule_document_loads_unchanged(desk, said):
    loaded = desk.org(MANIFEST, run="claude -p")
    wren, moss = loaded.fleet.agents
    assert said(loaded) == []
    assert (wren.name, wren.definition, wren.cadence.interval) == ("wren", "defs/writer.org", timedelta(minutes=10))
    assert (moss.name, moss.definition, moss.cadence.interval) == ("moss", "defs/editor.org", timedelta(minutes=20))
    assert wren.lifecycle.start == "wake_add"
    assert moss.lifecycle == SINGLE
    assert loaded.states == 4


def test_its_lifecycle_loads_unchanged(desk):
    states = desk.org(MANIFEST).fleet.agents[0].lifecycle.states
    assert [(state.name, state.kind, state.repeat, state.next) for state in states] == [
        ("wake_add", Kind.wake, 3, "wake_audit"),
        ("wake_audit", Kind.wake, 1, "rem"),
        ("rem", Kind.rem, 1, "wake_plan"),
        ("wake_plan", Kind.wake, 1, "wake_add"),
    ]
    assert [state.min_interval for state in states] == [None, None, timedelta(minutes=10), None]


def test_its_spellings_of_keys_are_understood_and_an_interval_in_milliseconds_is_only_told(desk, said):
    text = LIFECYCLE.replace(":MIN-INTERVAL:", ":min_interval:").replace(":KIND: rem", ":KIND: REM\n:INTERVAL-MS: 5000")
    loaded = desk.day(text)
    assert not loaded.broken
    assert said(loaded) == [
        "16:2: warning: INTERVAL-MS is advisory and not used (use MIN-INTERVAL for a gate, or remove it)"
    ]


def test_the_guardrails_of_the_wake_document_load_unchanged_as_the_agent_named_after_its_folder(desk):
    loaded = desk.yml(GUARDRAILS)
    (agent,) = loaded.fleet.agents
    assert agent.name == desk.folder.name.lower()
    assert loaded.fleet.sessions == agent.limits.sessions == 2
    assert agent.limits.cooldown == timedelta(minutes=5)
    assert (agent.limits.wakes_per_day, agent.limits.wakes_per_pair) == (12, 5)
    assert (agent.limits.minutes_per_day, agent.limits.minutes_declared) == (120.0, True)


def test_its_whole_config_loads_unchanged(desk):
    agent = desk.yml(CONFIG).fleet.agents[0]
    assert agent.enabled
    assert agent.cadence.interval == timedelta(minutes=30)
    assert agent.cadence.offset == timedelta(minutes=3)
    assert agent.timeout == timedelta(minutes=2)
    assert agent.one_offs == (datetime(2026, 2, 15, 9, tzinfo=UTC), datetime(2026, 3, 15, 9, tzinfo=UTC))


def test_its_blackouts_are_read_in_both_spellings_with_sunday_as_day_zero(desk):
    night, days, holidays, labour_day = desk.yml(CONFIG).fleet.agents[0].limits.quiet_hours
    assert night == Window(start_minute=23 * 60, end_minute=7 * 60, label="Nighttime")
    assert days == Window(start_minute=22 * 60, end_minute=6 * 60, days=(4, 6))
    assert holidays == Window(start=datetime(2026, 12, 24, 18, tzinfo=UTC), end=datetime(2026, 12, 27, 8, tzinfo=UTC))
    assert labour_day.end == datetime(2026, 5, 1, 22, tzinfo=UTC)


def test_a_blackout_without_a_type_is_known_by_its_times(desk, said):
    night = Window(start_minute=23 * 60, end_minute=7 * 60)
    for written in ('{start: "23:00", end: "07:00"}', '{start_time: "23:00", end_time: "07:00"}', '"23:00-07:00"'):
        loaded = desk.yml(f"pulse_interval_minutes: 30\npulse_blackouts:\n  - {written}\n", run="true")
        assert loaded.fleet is not None, said(loaded)
        assert loaded.fleet.agents[0].limits.quiet_hours == (night,)
    mixed = desk.yml('pulse_blackouts:\n  - {start: "23:00", end: 2026-12-27T08:00:00Z}\n', run="true")
    assert any("expected an instant, found '23:00'" in line for line in said(mixed))


def test_its_keys_that_mean_nothing_here_are_told_and_let_pass(desk, said):
    told = [line for line in said(desk.yml(CONFIG, run="true")) if "not used" in line]
    assert len(told) == 8
    assert all("warning" in line for line in told)
    assert "pulse_max_consecutive_skips" in told[0]


def test_its_default_pace_differs_from_ours_and_that_is_told(desk, said):
    assert "1:1: warning: no pulse_interval_minutes: the default here is one hour" in said(desk.yml(GUARDRAILS))[1]
    assert not any("pulse_interval" in line for line in said(desk.yml(CONFIG)))


def test_its_keys_hold_for_each_agent_or_for_all(desk):
    loaded = desk.yml(
        "run: 'true'\npulse_interval_minutes: 20\nagents:\n"
        "  finn:\n    pulse_enabled: false\n    coordination: {wake_guardrails: {cooldown_seconds: 0}}\n"
        "  stas:\n    interval: 5m\n"
    )
    finn, stas = loaded.fleet.agents
    assert (finn.enabled, finn.cadence.interval, finn.limits.cooldown) == (False, timedelta(minutes=20), timedelta())
    assert (stas.enabled, stas.cadence.interval, stas.limits.cooldown) == (
        True,
        timedelta(minutes=5),
        timedelta(minutes=5),
    )


def test_sessions_of_one_agent_are_told_to_belong_to_the_fleet(desk, said):
    loaded = desk.yml("run: 'true'\nagents:\n  finn:\n    coordination:\n      max_concurrent_pulse_sessions: 3\n")
    assert loaded.fleet.sessions == 2
    assert "5:7: warning: max_concurrent_pulse_sessions of one agent is not used" in said(loaded)[0]


def test_a_folder_whose_name_is_no_agents_name_is_told(desk, said):
    path = desk.write("My Agent/config.yml", CONFIG)
    loaded = load_fleet(path)
    assert loaded.fleet is None
    assert any("the name of an agent is more than one word: 'my agent'" in line for line in said(loaded))


CONTRACT_ORG = """\
#+TITLE: night desk
#+TIMEZONE: Europe/Berlin
#+SESSIONS: 2
#+WORKERS: 3
#+RUN: claude -p --output-format json

* wren
:PROPERTIES:
:DEF: defs/writer.org
:LIFECYCLE: lifecycle.org
:INTERVAL: 10m
:END:
* moss
:PROPERTIES:
:DEF: defs/editor.org
:INTERVAL: 20m
:COOLDOWN: 5m
:MAX-WAKES-PER-DAY: 12
:QUIET-HOURS: 23:00-07:00
:END:
"""

CONTRACT_YAML = """\
title: night desk
timezone: Europe/Berlin
sessions: 2
workers: 3
run: claude -p --output-format json

agents:
  wren:
    def: defs/writer.org
    lifecycle: lifecycle.org
    interval: 10m
  moss:
    def: defs/editor.org
    interval: 20m
    cooldown: 5m
    max_wakes_per_day: 12
    quiet_hours: 23:00-07:00
"""


def test_one_fleet_in_two_spellings_is_one_model(desk, said):
    org, yml = desk.org(CONTRACT_ORG), desk.yml(CONTRACT_YAML)
    assert said(org) == said(yml) == []
    assert org.fleet == yml.fleet
    wren, moss = org.fleet.agents
    assert (org.fleet.title, org.fleet.timezone, org.fleet.workers) == ("night desk", "Europe/Berlin", 3)
    assert (wren.runner, wren.target) == (Runner.process, "claude -p --output-format json")
    assert moss.timezone == moss.limits.fleet_timezone == "Europe/Berlin"
