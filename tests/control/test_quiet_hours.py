"""Document 003's blackouts and one-offs from its file through the door: both spellings, weekdays, nights, zones."""

from datetime import UTC, datetime, timedelta

import pytest

from wakeful.core.codec import write_time
from wakeful.core.wakes import Cause, VerdictKind
from wakeful.fleet.load import load_fleet

HEAD = "run: 'true'\npulse_interval_minutes: 30\n"


def at(text):
    return datetime.fromisoformat(text).astimezone(UTC)


def take_up(desk, text, now):
    path = desk.folder / "finn" / "config.yml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(HEAD + text, encoding="utf-8")
    loaded = load_fleet(path)
    assert loaded.fleet is not None, loaded.diagnostics
    desk.now = now
    desk.store.declare(loaded.fleet, desk.now)


def verdicts(desk, now):
    """What the door says at that instant: whether each cause is held by the quiet hours, and until when."""
    desk.now = now
    told = []
    for cause in (Cause.peer, Cause.news, Cause.operator):
        answer = desk.ask("why", agent="finn", cause=cause.value)
        (opinion,) = [row for row in answer["opinions"] if row["guard"] == "quiet_hours"]
        told.append((opinion["verdict"], opinion["until"]))
    return told


def held(until):
    ends = write_time(at(until))
    return [("refuse", ends), ("defer", ends), (None, None)]


FREE = [(None, None)] * 3

NIGHT = '{type: recurring, start_time: "23:00", end_time: "07:00", days_of_week: [5]}'
# What is declared, where, and for each instant when it ends; None where it is not quiet.
QUIET = {
    "a night of a weekday goes on into the morning after, and begins in no other": (
        NIGHT,
        "Europe/Berlin",
        {
            "2026-03-06T22:59:59+01:00": None,
            "2026-03-06T23:00:00+01:00": "2026-03-07T07:00:00+01:00",
            "2026-03-07T06:59:59+01:00": "2026-03-07T07:00:00+01:00",
            "2026-03-07T07:00:00+01:00": None,
            "2026-03-06T03:00:00+01:00": None,
            "2026-03-07T23:30:00+01:00": None,
        },
    ),
    "the same hours elsewhere are other instants": (
        NIGHT,
        "Asia/Tokyo",
        {"2026-03-06T23:00:00+01:00": None, "2026-03-06T15:00:00+01:00": "2026-03-06T23:00:00+01:00"},
    ),
    "a night on which the clock goes forward is an hour shorter": (
        '{type: recurring, start_time: "23:00", end_time: "07:00", days_of_week: [6]}',
        "Europe/Berlin",
        {"2026-03-28T23:00:00+01:00": "2026-03-29T05:00:00+00:00", "2026-03-29T07:00:00+02:00": None},
    ),
    "a night on which it goes back is an hour longer": (
        '{type: recurring, start_time: "23:00", end_time: "07:00"}',
        "Europe/Berlin",
        {"2026-10-24T23:00:00+02:00": "2026-10-25T06:00:00+00:00"},
    ),
    "sunday is day zero": (
        '{type: recurring, start_time: "09:00", end_time: "10:00", days_of_week: [0]}',
        "UTC",
        {"2026-03-08T09:30:00+00:00": "2026-03-08T10:00:00+00:00", "2026-03-09T09:30:00+00:00": None},
    ),
    "one window with start and end": (
        "{type: one-off, start: 2026-12-24T18:00:00Z, end: 2026-12-27T08:00:00Z}",
        "Europe/Berlin",
        {
            "2026-12-24T17:59:59+00:00": None,
            "2026-12-24T18:00:00+00:00": "2026-12-27T08:00:00+00:00",
            "2026-12-27T07:59:59+00:00": "2026-12-27T08:00:00+00:00",
            "2026-12-27T08:00:00+00:00": None,
        },
    ),
    "the same window in the other spelling, with an offset instead of a Z": (
        '{type: one_off, start_time: "2026-12-24T19:00:00+01:00", end_time: "2026-12-27T09:00:00+01:00"}',
        "UTC",
        {
            "2026-12-24T18:00:00+00:00": "2026-12-27T08:00:00+00:00",
            "2026-12-27T08:00:00+00:00": None,
        },
    ),
    "two windows that touch are quiet until the end of the second": (
        '{type: recurring, start_time: "22:00", end_time: "23:00"}, '
        '{type: one_off, start_time: "2026-03-06T23:00:00Z", end_time: "2026-03-08T00:00:00Z"}',
        "UTC",
        {"2026-03-06T22:30:00+00:00": "2026-03-08T00:00:00+00:00", "2026-03-09T22:30:00+00:00": "2026-03-09T23:00:00Z"},
    ),
}


@pytest.mark.parametrize("name", QUIET)
def test_a_blackout_holds_what_it_says_exactly_as_long_as_it_says(desk, name):
    windows, zone, instants = QUIET[name]
    take_up(desk, f"timezone: {zone}\npulse_blackouts: [{windows}]\n", at("2026-03-01T00:00:00Z"))
    for instant, until in instants.items():
        assert verdicts(desk, at(instant)) == (held(until) if until else FREE), instant


def test_a_beat_that_falls_into_a_blackout_is_run_once_at_its_end(desk):
    begin = at("2026-03-06T22:30:00Z")
    take_up(desk, 'pulse_blackouts: [{type: recurring, start_time: "23:00", end_time: "07:00"}]\n', begin)
    starts = []
    while desk.now < at("2026-03-07T08:00:00Z"):
        desk.later(timedelta(minutes=1))
        admitted = [decision for decision in desk.due() if decision.verdict.kind is VerdictKind.admit]
        starts += [desk.now for _ in admitted]
        for order in desk.claim():
            desk.end(order)
    # 22:31 after the grace; then nothing until the morning, and from there on the usual half hour.
    assert [f"{start:%H:%M}" for start in starts] == ["22:31", "07:00", "07:30", "08:00"]


ONE_OFFS = 'pulse_one_offs: ["2026-03-06T23:30:00Z", 2026-03-07T09:15:00+01:00]\n'


def test_one_offs_fire_once_each_also_in_a_blackout_and_leave_the_next_beat_where_it_was(desk):
    quiet = 'pulse_blackouts: [{type: recurring, start_time: "00:00", end_time: "24:00"}]\n'
    take_up(desk, ONE_OFFS + quiet, at("2026-03-06T22:00:00Z"))
    starts = []
    while desk.now < at("2026-03-07T12:00:00Z"):
        desk.later(timedelta(minutes=5))
        desk.due()
        for order in desk.claim():
            assert order.wake.one_off
            starts.append(desk.now)
            desk.end(order)
    assert starts == [at("2026-03-06T23:30:00Z"), at("2026-03-07T08:15:00Z")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('pulse_one_offs: ["2026-03-06T23:30:00"]', "time zone"),
        ("pulse_one_offs: [tomorrow]", "tomorrow"),
        (
            'pulse_blackouts: [{type: one_off, start_time: "2026-03-06T23:30:00", end_time: "2026-03-07T00:00:00"}]',
            "zone",
        ),
        ('pulse_blackouts: [{type: once, start: "2026-03-06T23:30:00Z"}]', "recurring or one-off"),
        ('pulse_blackouts: [{type: recurring, start_time: 1380, end_time: "07:00"}]', 'quote the time: "23:00"'),
        ('pulse_blackouts: [{start_time: "23:00"}]', "no end_time"),
        ('pulse_blackouts: [{type: recurring, start_time: "23:00", end_time: "07:00", weekdays: [1]}]', "days_of_week"),
        ('pulse_blackouts: [{type: recurring, start_time: "7:00", end_time: "9:00", days_of_week: [7]}]', "0 (Sunday)"),
    ],
)
def test_what_does_not_say_its_time_is_refused_and_never_passed_over(desk, line, reason):
    path = desk.folder / "config.yml"
    path.write_text(f"{HEAD}{line}\n", encoding="utf-8")
    loaded = load_fleet(path)
    assert loaded.fleet is None
    assert any(reason in str(diagnostic) for diagnostic in loaded.diagnostics), loaded.diagnostics


def test_a_one_off_asked_for_by_hand_passes_a_blackout_too(desk):
    take_up(
        desk, 'pulse_blackouts: [{type: recurring, start_time: "00:00", end_time: "24:00"}]\n', at("2026-03-06T22:00Z")
    )
    desk.ask("at", agent="finn", when="in 20m")
    desk.later(timedelta(minutes=20))
    desk.due()
    (order,) = desk.claim()
    assert order.wake.one_off and order.run.agent == "finn"
