"""What a declaration becomes: values, defaults, choices, replicas."""

from datetime import UTC, datetime, timedelta

import pytest

from wakeful.core.agents import Agent, Limits, Runner
from wakeful.core.cadence import Cadence
from wakeful.core.cron import Schedule
from wakeful.core.lifecycle import SINGLE
from wakeful.core.windows import parse_window
from wakeful.fleet.keys import AGENT_KEYS, KEYS

NIGHT, WEEKEND = parse_window("23:00-07:00"), parse_window("Sat,Sun 00:00-24:00")


def minutes(number):
    return timedelta(minutes=number)


def test_an_agent_that_says_nothing_gets_the_defaults_of_the_core(desk):
    assert desk.agent(head="") == Agent(name="wren", address="wren", cadence=Cadence(interval=timedelta(hours=1)))


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        (":ENABLED: no", "enabled", False),
        (":TIMEOUT: 5m", "timeout", minutes(5)),
        (":KILL-GRACE: 0s", "kill_grace", timedelta()),
        (":MAX-FAILURES: 2", "max_failures", 2),
        (":WORKDIR: desk", "workdir", "desk"),
        (":ENV: API_KEY, HOME", "environment", ("API_KEY", "HOME")),
        (":SECRETS: PIN PIN", "secrets", ("PIN",)),
        (":GRANT: wake, task", "grants", ("wake", "task")),
        (":INBOX: in/tasks", "inbox", "in/tasks"),
        (":BOARD: plan.org", "board", "plan.org"),
        (":GITOPS: yes", "gitops", True),
        (":ON: webhook://github?preset=github&secret=HOOK", "events", ("webhook://github?preset=github&secret=HOOK",)),
        (":ON: sqs://q, nats://h:4222/s?durable=d", "events", ("sqs://q", "nats://h:4222/s?durable=d")),
        (":ON: snapshot+exec:tools/pending", "events", ("snapshot+exec:tools/pending",)),
        (
            ":ON: snapshot+https://h/x?y=1#every=5s&token=T sqs://q",
            "events",
            ("snapshot+https://h/x?y=1#every=5s&token=T", "sqs://q"),
        ),
        (":ROLE: editor", "roles", ("editor",)),
        (":TASKS: editing proofs editing", "roles", ("editing", "proofs")),
        (":DREAM: dream --short", "dream", "dream --short"),
        (":CHECK: ./anything-new", "check", "./anything-new"),
        (":TIMEZONE: Asia/Tokyo", "timezone", "Asia/Tokyo"),
        (":AT: 2026-12-24T18:00Z", "one_offs", (datetime(2026, 12, 24, 18, tzinfo=UTC),)),
        (":AT: 2026-12-24 18:00+01:00", "one_offs", (datetime(2026, 12, 24, 17, tzinfo=UTC),)),
    ],
)
def test_a_key_sets_its_field_of_the_agent(desk, line, field, value):
    assert getattr(desk.agent(line), field) == value


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (":COOLDOWN: 10m", {"cooldown": minutes(10)}),
        (":COOLDOWN: 0s", {"cooldown": timedelta()}),
        (":MAX-WAKES-PER-DAY: 3", {"wakes_per_day": 3}),
        (":MAX-WAKES-PER-PAIR: 2", {"wakes_per_pair": 2}),
        (":MAX-WAKES-PER-RUN: 0", {"wakes_per_run": 0}),
        (":MAX-CHAIN: 4", {"chain": 4}),
        (":MAX-MINUTES-PER-DAY: 45.5", {"minutes_per_day": 45.5, "minutes_declared": True}),
        (":BURST: 5/1m", {"burst": 5, "burst_window": minutes(1)}),
        (":BUDGET-USD: 2.50", {"usd_per_day": 2_500_000}),
        (":BUDGET-TOKENS: 100000", {"tokens_per_day": 100_000}),
        (":RUN-USD: 0.000001", {"usd_per_run": 1}),
        (":RUN-TOKENS: 5000", {"tokens_per_run": 5_000}),
        (":RESERVE: 0.50", {"reserve_usd": 500_000}),
        (":RESERVE: 20000 tokens", {"reserve_tokens": 20_000}),
        (":RESERVE: 0.50, 20000 tokens", {"reserve_usd": 500_000, "reserve_tokens": 20_000}),
        (":QUIET-HOURS: 23:00-07:00", {"quiet_hours": (NIGHT,)}),
        (":QUIET-HOURS: 23:00-07:00, Sat,Sun 00:00-24:00", {"quiet_hours": (NIGHT, WEEKEND)}),
        (":QUIET-HOURS: Sat,Sun 00:00-24:00; 23:00-07:00", {"quiet_hours": (WEEKEND, NIGHT)}),
    ],
)
def test_a_key_sets_its_limits(desk, line, fields):
    assert desk.agent(line).limits == Limits(**fields)


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        (":MAX-RETRIES: 0", "max_retries", 0),
        (":RETRY-BASE: 1m", "base", minutes(1)),
        (":RETRY-JITTER: 5%", "jitter", 0.05),
        (":RETRY-JITTER: 0.2", "jitter", 0.2),
    ],
)
def test_a_key_sets_its_field_of_the_retries(desk, line, field, value):
    assert getattr(desk.agent(line).retries, field) == value


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("#+STORE: postgresql://wakeful@db/fleet", "store", "postgresql://wakeful@db/fleet"),
        ("#+STORE: postgresql://u@a:5432,[::1]:5433,c/fleet", "store", "postgresql://u@a:5432,[::1]:5433,c/fleet"),
        ("#+STORE: postgresql:///fleet?host=/run/pg", "store", "postgresql:///fleet?host=/run/pg"),
        ("#+STORE: postgresql://?service=fleet", "store", "postgresql://?service=fleet"),
        ("#+STORE: postgresql://h/d?options=-csearch_path%3Dx", "store", "postgresql://h/d?options=-csearch_path%3Dx"),
        ("#+SESSIONS: 5", "sessions", 5),
        ("#+WORKERS: 7", "workers", 7),
        ("#+GRACE: 0s", "grace", timedelta()),
        ("#+STAGGER: 5s", "stagger", timedelta(seconds=5)),
        ("#+PORT: 8080", "port", 8080),
        ("#+RETENTION: 90d", "retention", timedelta(days=90)),
        ("#+TITLE: ", "title", ""),
        ("#+title: Desk: the night one", "title", "Desk: the night one"),
    ],
)
def test_a_key_sets_its_field_of_the_fleet(desk, line, field, value):
    assert getattr(desk.org(f"{line}\n* wren\n").fleet, field) == value


@pytest.mark.parametrize(
    ("line", "runner", "target"),
    [
        (":RUN: echo 'a b'", Runner.process, "echo 'a b'"),
        (":HANDLER: desk.editing:proof", Runner.handler, "desk.editing:proof"),
        (":URL: https://example.org/run", Runner.url, "https://example.org/run"),
        (":TMUX: main", Runner.tmux, "main"),
    ],
)
def test_an_agents_own_runner_displaces_the_fleets(desk, line, runner, target):
    agent = desk.agent(line)
    assert (agent.runner, agent.target) == (runner, target)


# ---- cadence


@pytest.mark.parametrize(
    ("lines", "cadence"),
    [
        ([], Cadence(interval=timedelta(hours=1))),
        ([":INTERVAL: 5s"], Cadence(interval=timedelta(seconds=5))),
        ([":INTERVAL: 1h30m", ":OFFSET: 2m"], Cadence(interval=minutes(90), offset=minutes(2))),
        ([":INTERVAL: continuous"], Cadence(continuous=True)),
        ([":INTERVAL: continuous", ":BREATHER: 2m"], Cadence(continuous=True, breather=minutes(2))),
        ([":SCHEDULE: 30 9 * * MON-FRI"], Cadence(schedule=Schedule("30 9 * * MON-FRI"))),
        ([":INTERVAL: none"], Cadence()),
        ([":ON: sqs://q"], Cadence()),
        ([":INBOX: in"], Cadence()),
        ([":TASKS: editing"], Cadence()),
        ([":TASKS: editing", ":INTERVAL: 20m"], Cadence(interval=minutes(20))),
        ([":BOARD: plan.org"], Cadence(interval=timedelta(hours=1))),
    ],
)
def test_the_timer_is_one_hour_unless_declared_or_unless_something_rings(desk, lines, cadence):
    assert desk.agent(*lines).cadence == cadence


def test_a_fleets_schedule_is_displaced_by_an_agents_interval_and_kept_by_the_others(desk):
    loaded = desk.org("#+RUN: true\n#+SCHEDULE: @daily\n* wren\n:PROPERTIES:\n:INTERVAL: 10m\n:END:\n* moss\n")
    wren, moss = loaded.fleet.agents
    assert wren.cadence == Cadence(interval=minutes(10))
    assert moss.cadence.schedule is not None


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([":BREATHER: 1m"], "BREATHER has no effect without INTERVAL: continuous"),
        ([":SCHEDULE: @daily", ":OFFSET: 1m"], "OFFSET has no effect on a SCHEDULE"),
        ([":ON: webhook://github"], "a webhook without a secret stays closed"),
        ([":ON: kafka://localhost:9092/notes?group=desk"], "kafka:// is not read yet: nothing arrives from it"),
    ],
)
def test_a_key_without_effect_is_told(desk, said, lines, told):
    drawer = "\n".join(lines)
    loaded = desk.org(f"#+RUN: true\n* wren\n:PROPERTIES:\n{drawer}\n:END:\n")
    assert loaded.fleet is not None
    assert told in said(loaded)[0]


# ---- defaults of the fleet


def test_any_agent_key_on_the_fleet_is_a_default_that_an_agent_may_replace(desk):
    loaded = desk.org(
        "#+RUN: true\n#+COOLDOWN: 10m\n#+ENV: HOME\n#+INTERVAL: 20m\n"
        "* wren\n* moss\n:PROPERTIES:\n:COOLDOWN: 1m\n:ENV: PIN\n:END:\n"
    )
    wren, moss = loaded.fleet.agents
    assert (wren.limits.cooldown, wren.environment, wren.cadence.interval) == (minutes(10), ("HOME",), minutes(20))
    assert (moss.limits.cooldown, moss.environment, moss.cadence.interval) == (minutes(1), ("PIN",), minutes(20))


def test_a_budget_on_the_fleet_is_the_fleets_and_not_a_default_for_each_agent(desk):
    agent = desk.agent(":BUDGET-USD: 1", head="#+RUN: true\n#+BUDGET-USD: 5\n#+BUDGET-TOKENS: 900\n")
    assert (agent.limits.usd_per_day, agent.limits.fleet_usd_per_day) == (1_000_000, 5_000_000)
    assert (agent.limits.tokens_per_day, agent.limits.fleet_tokens_per_day) == (None, 900)


def test_slots_of_the_fleet_are_in_the_limits_of_every_agent(desk):
    agent = desk.agent(head="#+RUN: true\n#+SESSIONS: 4\n#+WORKERS: 9\n")
    assert (agent.limits.sessions, agent.limits.workers) == (4, 9)


def test_the_command_is_the_agents_then_the_fleets_then_the_callers(desk, said):
    text = "* wren\n:PROPERTIES:\n:RUN: own\n:END:\n* moss\n"
    assert [agent.target for agent in desk.org(f"#+RUN: fleet\n{text}", run="caller").fleet.agents] == ["own", "fleet"]
    loaded = desk.org(text, run="caller")
    assert [agent.target for agent in loaded.fleet.agents] == ["own", "caller"]
    assert loaded.fleet.run == "caller"
    assert said(loaded) == []


def test_agents_without_a_command_are_told_once_and_have_no_runner(desk, said):
    loaded = desk.org("* wren\n* moss\n* hale\n")
    assert [agent.runner for agent in loaded.fleet.agents] == [None, None, None]
    (line,) = said(loaded)
    assert line.startswith("1:3: warning: no command to run for 'wren' and 2 more (add RUN")


def test_a_callers_broken_command_is_told(desk, said):
    assert "--run or WAKEFUL_RUN: a quote is opened" in said(desk.org("* wren\n", run="sh -c 'x"))[0]


# ---- replicas


def test_replicas_are_agents_of_their_own_behind_one_address(desk):
    loaded = desk.org("#+RUN: true\n* moss\n:PROPERTIES:\n:REPLICAS: 3\n:TASKS: editing\n:END:\n")
    assert [agent.name for agent in loaded.fleet.agents] == ["moss-1", "moss-2", "moss-3"]
    assert {agent.address for agent in loaded.fleet.agents} == {"moss"}
    assert {agent.lifecycle for agent in loaded.fleet.agents} == {SINGLE}


def test_an_address_is_no_other_agents_replica_either(desk, said):
    drawer = ":PROPERTIES:\n:REPLICAS: 2\n:END:\n"
    loaded = desk.org(f"#+RUN: true\n* moss-2\n{drawer}* moss\n{drawer}")
    assert said(loaded)[0].startswith("6:3: moss-2 is an agent and also replica 2 of moss (line 2)")


# ---- yaml spells the same


def test_lists_of_yaml_and_commas_are_the_same(desk):
    lists = desk.yml(
        "run: 'true'\nagents:\n  wren:\n    env: [HOME, PIN]\n    on:\n      - sqs://q\n"
        "    quiet_hours: ['23:00-07:00', 'Sat,Sun 00:00-24:00']\n    at: [2026-12-24T18:00Z]\n"
    )
    commas = desk.yml(
        "run: 'true'\nagents:\n  wren:\n    env: HOME, PIN\n    on: sqs://q\n"
        "    quiet_hours: 23:00-07:00; Sat,Sun 00:00-24:00\n    at: 2026-12-24T18:00Z\n"
    )
    assert lists.fleet == commas.fleet
    assert lists.fleet.agents[0].limits.quiet_hours == (NIGHT, WEEKEND)


def test_words_that_yaml_may_take_for_truths_and_numbers_stay_what_was_written(desk):
    loaded = desk.yml("title: 2026\nagents:\n  on:\n    run: true\n  '7':\n    run: 23:00\n    enabled: 'off'\n")
    on, seven = loaded.fleet.agents
    assert (loaded.fleet.title, on.name, on.target) == ("2026", "on", "true")
    assert (seven.name, seven.target, seven.enabled) == ("7", "23:00", False)


def test_every_key_of_an_agent_can_be_read_in_yaml_and_in_org(desk):
    """An empty value is told with the name of the key, which shows that the key is known in both spellings."""
    for key in AGENT_KEYS:
        snake = key.lower().replace("-", "_")
        org = desk.org(f"* wren\n:PROPERTIES:\n:{key}:\n:END:\n")
        yml = desk.yml(f"agents:\n  wren:\n    {snake}:\n")
        assert f"{key} has no value" in str(org.diagnostics)
        assert f"{snake} has no value" in str(yml.diagnostics)


def test_every_key_has_one_name_and_the_tables_agree():
    names = [key.name for key in KEYS]
    assert len(names) == len(set(names))
    assert all(name == name.upper() and "_" not in name for name in names)
