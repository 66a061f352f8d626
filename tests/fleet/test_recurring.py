"""Recurring tasks in a fleet file: one model in two spellings, and every mistake with its place."""

from datetime import timedelta

import pytest

from wakeful.core.cron import parse_schedule
from wakeful.core.items import Priority
from wakeful.core.recurrences import Overlap, Recurrence

HEAD = "#+RUN: true\n#+TIMEZONE: Europe/Berlin\n* wren\n:PROPERTIES:\n:ROLE: sweeping\n:END:\n"
YAML = "run: true\ntimezone: Europe/Berlin\nagents:\n  wren:\n    role: sweeping\n"


def drawer(*lines, name="sweep", text=""):
    return f"* {name}\n:PROPERTIES:\n" + "".join(f"{line}\n" for line in lines) + f":END:\n{text}"


WHOLE = Recurrence(
    name="sweep",
    title="Sweep the floor",
    schedule=parse_schedule("30 9 * * MON-FRI"),
    role="sweeping",
    description="Under the desks too.\n\n- the corners",
    payload='{"floor": 2, "wet": true, "rooms": ["a", "7"]}',
    priority=Priority.urgent,
    tags=("a", "b"),
    key="floor",
    max_retries=2,
    timeout=timedelta(minutes=5),
    overlap=Overlap.queue,
    timezone="UTC",
)


def test_a_whole_recurring_task_is_the_same_in_both_spellings(desk, said):
    org = desk.org(
        HEAD
        + drawer(
            ":TASK: Sweep the floor",
            ":SCHEDULE: 30 9 * * MON-FRI",
            ":ROLE: sweeping",
            ':PAYLOAD: {"floor": 2, "wet": true, "rooms": ["a", "7"]}',
            ":PRIORITY: critical",
            ":TAGS: a, b",
            ":KEY: floor",
            ":MAX-RETRIES: 2",
            ":TIMEOUT: 5m",
            ":OVERLAP: queue",
            ":TIMEZONE: UTC",
            text="\nUnder the desks too.\n\n# not this\n- the corners\n\n",
        )
    )
    yml = desk.yml(
        YAML
        + """recurring:
  sweep:
    task: Sweep the floor
    schedule: 30 9 * * MON-FRI
    role: sweeping
    description: "Under the desks too.\\n\\n- the corners"
    payload: {floor: 2, wet: true, rooms: [a, "7"]}
    priority: urgent
    tags: [a, b]
    key: floor
    max_retries: 2
    timeout: 5m
    overlap: queue
    timezone: UTC
"""
    )
    assert said(org) == said(yml) == []
    assert org.fleet.recurrences == yml.fleet.recurrences == (WHOLE,)
    assert [agent.name for agent in org.fleet.agents] == ["wren"]
    assert org.fleet == yml.fleet


def test_what_it_leaves_out_is_left_to_the_agent_and_its_title_is_its_name(desk, said):
    org = desk.org(HEAD + drawer(":TASK:", ":SCHEDULE: @daily", ":AGENT: wren"))
    yml = desk.yml(f"{YAML}recurring:\n  sweep:\n    schedule: '@daily'\n    agent: wren\n")
    assert said(org) == said(yml) == []
    (found,) = org.fleet.recurrences
    assert org.fleet == yml.fleet
    assert (found.title, found.agent, found.role, found.description) == ("sweep", "wren", None, "")
    assert (found.payload, found.priority, found.max_retries, found.timeout) == (None, Priority.normal, None, None)
    assert (found.overlap, found.timezone) == (Overlap.skip, "Europe/Berlin")


def test_a_payload_in_yaml_may_also_be_written_as_json_and_keeps_its_kinds(desk):
    text = """  sweep:
    schedule: '@daily'
    agent: wren
    payload: """
    for written, kept in [
        ("'[1, \"x\"]'", '[1, "x"]'),
        ("{a: 1.5, b: -3, c: ~, d: 007, e: 'true'}", '{"a": 1.5, "b": -3, "c": null, "d": "007", "e": "true"}'),
    ]:
        assert desk.yml(f"{YAML}recurring:\n{text}{written}\n").fleet.recurrences[0].payload == kept


def test_it_may_be_for_one_replica_or_for_the_address_of_all(desk, said):
    head = "#+RUN: true\n* moss\n:PROPERTIES:\n:REPLICAS: 2\n:TASKS: mopping\n:END:\n"
    tasks = [(name, f":{key}: {whom}") for name, key, whom in (
        ("a", "AGENT", "moss"),
        ("b", "AGENT", "moss-2"),
        ("c", "ROLE", "mopping"),
    )]  # fmt: skip
    loaded = desk.org(head + "".join(drawer(":TASK:", ":SCHEDULE: @daily", whom, name=name) for name, whom in tasks))
    assert said(loaded) == []
    assert [(one.agent, one.role) for one in loaded.fleet.recurrences] == [
        ("moss", None),
        ("moss-2", None),
        (None, "mopping"),
    ]


def test_everything_below_its_drawer_describes_it_but_for_comments(desk):
    text = "First.\n** Deeper\nmore\n#+begin_src sh\nls\n#+end_src\n  # a comment\n#\n:smile:\n"
    loaded = desk.org(
        HEAD + drawer(":TASK:", ":SCHEDULE: @daily", ":AGENT: wren", text=text) + "* moss\nprose of moss\n"
    )
    assert loaded.fleet.recurrences[0].description == (
        "First.\n** Deeper\nmore\n#+begin_src sh\nls\n#+end_src\n:smile:"
    )
    assert [agent.name for agent in loaded.fleet.agents] == ["wren", "moss"]


DAILY = ":SCHEDULE: @daily"
WREN = ":AGENT: wren"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([WREN], "7:3: a recurring task needs SCHEDULE (add it, such as SCHEDULE: 30 9 * * MON-FRI)"),
        ([DAILY], "7:3: a recurring task is for an agent or for a role (add AGENT or ROLE)"),
        ([DAILY, WREN, ":ROLE: sweeping"], "12:2: AGENT and ROLE exclude each other (keep one of them)"),
        ([DAILY, ":AGENT: wrne"], "11:9: no agent is called wrne (did you mean wren?)"),
        ([DAILY, ":AGENT: zz"], "11:9: no agent is called zz (name one of the fleet's agents)"),
        ([DAILY, ":ROLE: sweepin"], "11:8: nobody has or takes the role sweepin (did you mean sweeping?)"),
        ([DAILY, ":ROLE: zz"], "11:8: nobody has or takes the role zz (add it to ROLE or TASKS of an agent)"),
        ([WREN, ":SCHEDULE: 99 * * * *"], "11:12: SCHEDULE: the minute of the schedule cannot be '99'"),
        ([DAILY, WREN, ":OVERLAP: both"], "12:11: OVERLAP: unknown overlap 'both' (use skip or queue)"),
        ([DAILY, WREN, ":PRIORITY: top"], "12:12: PRIORITY: unknown priority 'top' (use one of low, normal"),
        ([DAILY, WREN, ":PAYLOAD: {a: 1}"], "12:11: PAYLOAD: expected JSON, found '{a: 1}'"),
        ([DAILY, WREN, ":PAYLOAD: NaN"], "12:11: PAYLOAD: the payload is not JSON"),
        ([DAILY, WREN, ":TIMEOUT: 5"], "12:11: TIMEOUT: expected a duration with a unit, found '5'"),
        ([DAILY, WREN, ":MAX-RETRIES: -1"], "12:15: MAX-RETRIES: expected a number from 0 to 1000, found '-1'"),
        ([DAILY, WREN, ":TIMEZONE: Berlin"], "12:12: TIMEZONE: unknown time zone 'Berlin'"),
        ([DAILY, WREN, ":INTERVAL: 10m"], "12:2: INTERVAL belongs to an agent, not to a recurring task (remove it)"),
        ([DAILY, WREN, ":SESSIONS: 2"], "12:2: SESSIONS belongs to the fleet, not to a recurring task (remove it)"),
        ([DAILY, WREN, ":OVRLAP: skip"], "12:2: unknown key OVRLAP of a recurring task (did you mean OVERLAP?)"),
        ([DAILY, WREN, ":KEY:"], "12:6: KEY has no value"),
        (
            [DAILY, WREN, ":DESCRIPTION: x", ":END:", "y"],
            "12:2: the task is described twice: here",
        ),
    ],
)
def test_a_mistake_in_a_recurring_task_is_told_with_its_place(desk, said, lines, expected):
    loaded = desk.org(HEAD + drawer(":TASK:", *lines))
    assert loaded.fleet is None
    assert any(line.startswith(expected) for line in said(loaded)), said(loaded)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("recurring: sweep\n", "6:12: recurring: expected a mapping by name, found 'sweep'"),
        ("recurring:\n", "6:1: recurring: expected a mapping by name, found nothing"),
        ("recurring:\n  sweep: daily\n", "7:10: 'sweep': expected the keys of a recurring task, found 'daily'"),
        (
            "recurring:\n  sweep:\n    schdule: x\n",
            "8:5: unknown key schdule of a recurring task (did you mean sche",
        ),
        ("recurring:\n  Sweep:\n    agent: wren\n", "7:3: the name of a recurring task has capital letters: 'Sweep'"),
        ("recurring:\n  wren:\n    agent: wren\n", "7:3: a second recurring task 'wren', first on line 4"),
        ("recuring:\n  sweep:\n    agent: wren\n", "6:1: unknown key recuring (did you mean recurring?)"),
        ("recurring:\nrecurring:\n", "7:1: recurring stands twice, first on line 6"),
        ('recurring:\n  s:\n    payload: {a: "\\ud800"}\n', "8:"),
    ],
)
def test_a_mistake_in_yaml_is_told_with_its_place(desk, said, text, expected):
    loaded = desk.yml(YAML + text)
    assert loaded.fleet is None
    assert any(line.startswith(expected) for line in said(loaded)), said(loaded)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (drawer(DAILY, WREN), "10:2: AGENT belongs to a recurring task, not to an agent (add :TASK: to make this one"),
        ("* sweep\n:TASK: x\n", "8:2: TASK stands outside a drawer"),
        (drawer(":TASK:", DAILY, text=":AGENT: wren\n"), "12:2: AGENT stands outside a drawer"),
        (drawer(":TASK:", DAILY, WREN, name="two words"), "7:3: the name of a recurring task is more than one word"),
        (drawer(":TASK:", DAILY, WREN, name="wren"), "7:3: a second recurring task 'wren', first on line 3"),
        ("** deep\n:PROPERTIES:\n:TASK: x\n:END:\n", "9:2: TASK stands below a heading with two stars or more"),
    ],
)
def test_nothing_that_looks_like_a_recurring_task_is_dropped_in_silence(desk, said, text, expected):
    loaded = desk.org(HEAD + text)
    assert loaded.fleet is None
    assert any(line.startswith(expected) for line in said(loaded)), said(loaded)


def test_a_fleet_of_recurring_tasks_alone_has_nobody_to_do_them(desk, said):
    loaded = desk.org("#+RUN: true\n" + drawer(":TASK:", DAILY, ":ROLE: x"))
    assert "1:1: the fleet has no agents (add a heading such as * wren)" in said(loaded)


def test_ten_thousand_are_read_and_more_are_refused(desk, said, monkeypatch):
    from wakeful.fleet import recurring

    monkeypatch.setattr(recurring, "MOST_RECURRENCES", 10)
    lines = [drawer(":TASK:", DAILY, WREN, name=f"t{number}") for number in range(11)]
    assert len(desk.org(HEAD + "".join(lines[:10])).fleet.recurrences) == 10
    assert any("the fleet has 11 recurring tasks" in line for line in said(desk.org(HEAD + "".join(lines))))
