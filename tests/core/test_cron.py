"""Cron schedules, against an oracle that reads the wall clock minute by minute."""

from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.core.cron import Schedule, parse_schedule
from wakeful.core.errors import Mistake

MINUTE = timedelta(minutes=1)

# A day around which the offset changes.
CHANGES = [
    ("Europe/Berlin", date(2024, 3, 31)),
    ("Europe/Berlin", date(2024, 10, 27)),
    ("America/New_York", date(2025, 3, 9)),
    ("America/New_York", date(2025, 11, 2)),
    ("Africa/Cairo", date(2024, 4, 26)),
    ("Africa/Cairo", date(2024, 11, 1)),
    ("Australia/Lord_Howe", date(2024, 10, 6)),
    ("Australia/Lord_Howe", date(2024, 4, 7)),
    ("America/Havana", date(2024, 3, 10)),
    ("America/Havana", date(2024, 11, 3)),
    ("Pacific/Apia", date(2011, 12, 30)),
    ("America/St_Johns", date(2010, 11, 7)),
]
FIXED = [
    "30 2 * * *",
    "0 2,3 * * *",
    "*/30 2 * * *",
    "0 0 * * *",
    "30 0 * * *",
    "*/20 0-23 * * *",
]
ELAPSED = [
    "0 * * * *",
    "*/30 * * * *",
    "0 */2 * * *",
    "30 */3 * * *",
    "0 */3 * * *",
    "15 */24 * * *",
    "*/7 * * * *",
]


def numbers(field: str, top: int) -> set[int]:
    chosen: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = ("0", "", str(top)) if span == "*" else span.partition("-")
        chosen.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return chosen


@cache
def walls(zone: ZoneInfo, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """What the wall clock reads at every minute of [start, end)."""
    moments = (start + MINUTE * ahead for ahead in range((end - start) // MINUTE))
    return [(moment, moment.astimezone(zone).replace(tzinfo=None, fold=0)) for moment in moments]


def oracle(expression: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """Every instant in [start, end), by looking at the wall once a minute."""
    minute_field, hour_field, *_ = expression.split()
    minutes, hours = numbers(minute_field, 59), numbers(hour_field, 23)
    fires = []
    latest = None
    for moment, reading in walls(zone, start - timedelta(days=1), end):
        if hour_field.startswith("*"):
            new = [reading]
        else:
            # A reading is new once: when the wall first comes to it or jumps over it.
            latest = latest or reading
            new = [latest + MINUTE * ahead for ahead in range(1, (reading - latest) // MINUTE + 1)]
            latest = max(latest, reading)
        if any(each.hour in hours and each.minute in minutes for each in new):
            fires.append(moment)
    return [fire for fire in fires if fire >= start]


def around(day: date) -> tuple[datetime, datetime]:
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    return noon - timedelta(days=1.5), noon + timedelta(days=1.5)


def chain(schedule: Schedule, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    found = []
    moment = schedule.after(start - timedelta.resolution, zone)
    while moment < end:
        found.append(moment)
        moment = schedule.after(moment, zone)
    return found


@pytest.mark.parametrize(("name", "day"), CHANGES, ids=lambda value: str(value))
@pytest.mark.parametrize("expression", FIXED + ELAPSED)
def test_every_instant_around_a_change_of_offset_is_the_oracles(name, day, expression):
    zone, (start, end) = ZoneInfo(name), around(day)
    assert chain(parse_schedule(expression), zone, start, end) == oracle(expression, zone, start, end)


@pytest.mark.parametrize(("name", "day"), CHANGES, ids=lambda value: str(value))
@pytest.mark.parametrize("expression", ["30 2 * * *", "0 0 * * *", "*/30 * * * *", "0 */3 * * *"])
def test_the_instants_before_and_after_any_moment_are_the_oracles(name, day, expression):
    zone, (start, end) = ZoneInfo(name), around(day)
    fires = oracle(expression, zone, start, end)
    schedule = parse_schedule(expression)
    moment = fires[0]
    while moment < fires[-1]:
        index = bisect_right(fires, moment)
        assert schedule.after(moment, zone) == fires[index]
        assert schedule.last(moment, zone) == fires[index - 1]
        moment += timedelta(hours=2, minutes=47, seconds=13)


@pytest.mark.parametrize(
    "name",
    ["Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia", "UTC"],
)
@pytest.mark.parametrize(("hour", "minute"), [(2, 30), (0, 0)])
def test_a_fixed_time_fires_once_for_every_day_from_2024_to_2030(name, hour, minute):
    zone = ZoneInfo(name)
    start, end = datetime(2024, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)
    fires = chain(parse_schedule(f"{minute} {hour} * * *"), zone, start, end)
    local = [fire.astimezone(zone) for fire in fires]
    assert [fire.date() for fire in local] == [local[0].date() + timedelta(days=ahead) for ahead in range(2557)]
    for fire, reading in zip(fires, local, strict=True):
        changes = (fire - MINUTE).astimezone(zone).utcoffset() != reading.utcoffset()
        assert changes or (reading.hour, reading.minute) == (hour, minute)


def test_a_skipped_local_time_fires_once_at_the_end_of_the_gap():
    zone = ZoneInfo("Europe/Berlin")
    eve = datetime(2024, 3, 30, 12, tzinfo=UTC)
    first = parse_schedule("30 2 * * *").after(eve, zone)
    assert first == datetime(2024, 3, 31, 1, 0, tzinfo=UTC)
    assert first.astimezone(zone).strftime("%H:%M") == "03:00"
    assert parse_schedule("30 2 * * *").after(first, zone) == datetime(2024, 4, 1, 0, 30, tzinfo=UTC)


def test_a_repeated_local_time_fires_once_the_first_time():
    zone = ZoneInfo("Europe/Berlin")
    eve = datetime(2024, 10, 26, 12, tzinfo=UTC)
    first = parse_schedule("30 2 * * *").after(eve, zone)
    assert first == datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
    assert parse_schedule("30 2 * * *").after(first, zone) == datetime(2024, 10, 28, 1, 30, tzinfo=UTC)


def test_inside_the_repeated_hour_the_past_is_never_the_answer():
    zone = ZoneInfo("Europe/Berlin")
    second_pass = datetime(2024, 10, 27, 1, 15, tzinfo=UTC)
    assert second_pass.astimezone(zone).strftime("%H:%M") == "02:15"
    assert parse_schedule("30 2 * * *").after(second_pass, zone) == datetime(2024, 10, 28, 1, 30, tzinfo=UTC)
    assert parse_schedule("30 2 * * *").last(second_pass, zone) == datetime(2024, 10, 27, 0, 30, tzinfo=UTC)


def test_a_skipped_midnight_fires_when_the_day_begins():
    zone = ZoneInfo("Africa/Cairo")
    found = parse_schedule("@daily").after(datetime(2024, 4, 25, 12, tzinfo=UTC), zone)
    assert found.astimezone(zone) == datetime(2024, 4, 26, 1, 0, tzinfo=zone)


def test_all_times_of_a_skipped_day_fire_once_when_the_next_day_begins():
    zone = ZoneInfo("Pacific/Apia")
    schedule = parse_schedule("0 8,12,18 * * *")
    evening = datetime(2011, 12, 29, 18, 0, tzinfo=zone).astimezone(UTC)
    found = schedule.after(evening, zone)
    assert found.astimezone(zone).replace(tzinfo=None) == datetime(2011, 12, 31, 0, 0)  # noqa: DTZ001
    assert schedule.after(found, zone).astimezone(zone).hour == 8


def test_an_hourly_schedule_follows_elapsed_time_through_the_repeated_hour():
    zone = ZoneInfo("Europe/Berlin")
    start = datetime(2024, 10, 26, 22, tzinfo=UTC)
    fires = chain(parse_schedule("@hourly"), zone, start, start + timedelta(hours=6))
    assert fires == [start + timedelta(hours=hour) for hour in range(6)]


def test_a_yearly_wildcard_in_a_repeated_first_hour_fires_both_times():
    zone = ZoneInfo("America/Havana")
    winter = datetime(2024, 2, 1, tzinfo=UTC)
    fires = chain(parse_schedule("30 * 3 11 *"), zone, winter, datetime(2024, 11, 3, 7, tzinfo=UTC))
    assert [fire.astimezone(zone).strftime("%H:%M") for fire in fires] == ["00:30", "00:30", "01:30"]


@pytest.mark.parametrize(
    ("text", "moment", "expected"),
    [
        ("0 9 * * MON-FRI", "2024-06-07T09:00", "2024-06-10T09:00"),
        ("0 0 29 2 *", "2024-03-01T00:00", "2028-02-29T00:00"),
        ("0 0 L * *", "2024-02-01T00:00", "2024-02-29T00:00"),
        ("0 0 1 1 *", "2024-01-01T00:00", "2025-01-01T00:00"),
        ("*/15 * * * *", "2024-06-07T09:00:01", "2024-06-07T09:15"),
        ("0 0 13 * FRI", "2024-06-01T00:00", "2024-06-07T00:00"),
        ("0 0 * * 7", "2024-06-07T00:00", "2024-06-09T00:00"),
        ("@weekly", "2024-06-07T00:00", "2024-06-09T00:00"),
    ],
)
def test_the_calendar_fields_mean_what_cron_means(text, moment, expected):
    found = parse_schedule(text).after(datetime.fromisoformat(moment + "+00:00"), ZoneInfo("UTC"))
    assert found == datetime.fromisoformat(expected + "+00:00")


def test_a_schedule_that_fired_too_long_ago_has_no_last_instant():
    rare = parse_schedule("0 0 * 2 MON#5")
    assert rare.last(datetime(2026, 1, 1, tzinfo=UTC), ZoneInfo("UTC")) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 0 30 2 *", "month 2 has no day 30"),
        ("0 0 31 4,6 *", "month 4,6 has no day 31"),
        ("0 0 30-31 FEB *", "month FEB has no day 30-31"),
        ("0 0 9 * * *", "found 6"),
        ("0 9 * *", "found 4"),
        ("", "found 0"),
        ("61 * * * *", "minute of the schedule cannot be '61'"),
        ("0 24 * * *", "hour of the schedule cannot be '24'"),
        ("0 0 32 * *", "day-of-month of the schedule cannot be '32'"),
        ("0 0 * 13 *", "month of the schedule cannot be '13'"),
        ("0 0 * * MOON", "day-of-week of the schedule cannot be 'MOON'"),
        ("*/0 * * * *", "minute of the schedule cannot be '*/0'"),
        ("@reboot", "unknown schedule '@reboot'"),
        ("9" * 5000 + " * * * *", "too long"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_with_its_reason_and_a_remedy(text, words):
    with pytest.raises(Mistake) as mistake:
        parse_schedule(text)
    assert words in mistake.value.reason
    assert mistake.value.remedy


def test_six_fields_are_told_to_leave_out_the_seconds():
    with pytest.raises(Mistake, match="leave out the seconds"):
        parse_schedule("0 30 9 * * *")


def test_a_macro_and_its_fields_are_the_same_schedule():
    assert parse_schedule("@daily") == parse_schedule(" 0  0 * * * ") == Schedule("0 0 * * *")


@settings(max_examples=60)
@given(
    st.sampled_from(FIXED + ELAPSED + ["0 9 * * MON-FRI", "0 0 1 * *", "30 * 31 * *"]),
    st.sampled_from(sorted({name for name, _ in CHANGES})),
    st.datetimes(datetime(2009, 1, 1), datetime(2031, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_the_last_and_the_next_instant_enclose_every_moment(expression, name, moment):
    zone, schedule = ZoneInfo(name), parse_schedule(expression)
    following = schedule.after(moment, zone)
    last = schedule.last(moment, zone)
    assert last is not None
    assert last <= moment < following
    assert schedule.after(last, zone) == following
    assert schedule.last(following, zone) == following


@given(st.text(alphabet="0123456789*/-,LW#@ MONJAdaily", max_size=30))
def test_any_text_is_either_a_schedule_that_fires_or_a_mistake(text):
    try:
        schedule = parse_schedule(text)
    except Mistake as mistake:
        assert mistake.remedy
    else:
        moment = datetime(2024, 6, 1, tzinfo=UTC)
        assert schedule.after(moment, ZoneInfo("Europe/Berlin")) > moment
