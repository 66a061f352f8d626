"""When the next beat is due: document 001's backoff and catch-up tables."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.cadence import Cadence, backoff, changed_beat, first_beat, next_beat, resume_beat
from wakeful.core.cron import parse_schedule
from wakeful.core.durations import parse_duration

NOW = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)
UTC_ZONE = ZoneInfo("UTC")
GRACE = timedelta(seconds=60)
HOUR = timedelta(hours=1)

CONTINUOUS = Cadence(continuous=True)
HOURLY = Cadence(interval=HOUR)
NONE = Cadence()


def daily(text: str = "0 9 * * *") -> Cadence:
    return Cadence(schedule=parse_schedule(text))


def delay(cadence: Cadence, streak: int) -> timedelta:
    due = next_beat(cadence, streak, NOW, UTC_ZONE)
    assert due is not None
    return due - NOW


@pytest.mark.parametrize(
    ("streak", "expected"),
    [(0, "45s"), (1, "1m"), (2, "2m"), (3, "4m"), (4, "8m"), (5, "16m"), (6, "30m"), (7, "30m"), (99, "30m")],
)
def test_an_idle_continuous_agent_quiets_itself_by_the_table(streak, expected):
    assert delay(CONTINUOUS, streak) == parse_duration(expected)


@pytest.mark.parametrize("streak", [0, 1, 6, 1_000_000])
def test_an_hourly_agent_is_never_shortened_by_backoff(streak):
    assert delay(HOURLY, streak) == HOUR


def test_a_ten_minute_agent_backs_off_only_beyond_its_interval():
    delays = [delay(Cadence(interval=timedelta(minutes=10)), streak) / timedelta(minutes=1) for streak in range(7)]
    assert delays == [10, 10, 10, 10, 10, 16, 30]


def test_the_breather_of_a_continuous_agent_can_be_declared():
    assert delay(Cadence(continuous=True, breather=timedelta(seconds=5)), 0) == timedelta(seconds=5)
    assert Cadence(continuous=True, interval=HOUR).base == timedelta(seconds=45)


def test_no_streak_is_no_backoff():
    assert backoff(0) == timedelta()
    assert backoff(-1) == timedelta()


def test_an_agent_without_interval_and_schedule_has_no_timer():
    assert next_beat(NONE, 0, NOW, UTC_ZONE) is None
    assert first_beat(NONE, NOW, GRACE, 0, 1, UTC_ZONE) is None


def test_a_schedule_that_is_due_exactly_now_fires_next_time():
    nine = datetime(2026, 3, 3, 9, 0, tzinfo=UTC)
    assert next_beat(daily(), 0, nine, UTC_ZONE) == nine + timedelta(days=1)


def test_an_idle_schedule_skips_the_instants_inside_its_backoff_and_takes_the_one_at_its_end():
    minutely = daily("* * * * *")
    assert next_beat(minutely, 4, NOW, UTC_ZONE) == NOW + timedelta(minutes=8)
    assert next_beat(minutely, 4, NOW + timedelta(seconds=1), UTC_ZONE) == NOW + timedelta(minutes=9)


def test_a_schedule_beats_at_its_local_time_on_both_sides_of_a_change_of_offset():
    berlin = ZoneInfo("Europe/Berlin")
    saturday = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
    sunday = next_beat(daily(), 0, saturday, berlin)
    assert sunday == datetime(2026, 3, 29, 7, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("elapsed", "waits"), [("40m", "20m"), ("59m30s", "1m"), ("1m", "59m"), ("3h", "1m"), ("5d", "1m")]
)
def test_a_redeploy_waits_the_rest_of_the_interval_and_at_least_the_grace(elapsed, waits):
    ran_at = NOW - parse_duration(elapsed)
    assert resume_beat(ran_at + HOUR, HOURLY, NOW, GRACE) == NOW + parse_duration(waits)


def test_a_continuous_agent_resumes_its_backoff_and_not_an_hour():
    due_at = NOW + timedelta(minutes=16)
    assert resume_beat(due_at, CONTINUOUS, NOW, GRACE) == due_at


@given(st.timedeltas(timedelta(days=-400), timedelta(days=400)), st.sampled_from([CONTINUOUS, HOURLY]))
def test_a_clock_set_back_never_lengthens_a_wait_beyond_its_interval(jump, cadence):
    due = resume_beat(NOW + jump, cadence, NOW, GRACE)
    assert NOW + GRACE <= due <= NOW + max(cadence.base, timedelta(minutes=30))
    if GRACE <= jump <= timedelta(minutes=30):
        assert due == NOW + jump


def test_a_schedule_missed_while_nobody_was_there_is_caught_up_once():
    days_ago = datetime(2026, 2, 20, 9, 0, tzinfo=UTC)
    caught_up = resume_beat(days_ago, daily(), NOW, GRACE, UTC_ZONE)
    assert caught_up == NOW + GRACE
    assert next_beat(daily(), 0, caught_up, UTC_ZONE) == datetime(2026, 3, 3, 9, 0, tzinfo=UTC)


def test_a_schedule_is_waited_for_however_far_it_is():
    january = datetime(2027, 1, 1, tzinfo=UTC)
    assert resume_beat(january, daily("@yearly"), NOW, GRACE, UTC_ZONE) == january
    assert resume_beat(january, daily("@yearly"), NOW, GRACE) == january


def test_a_clock_set_back_by_a_week_does_not_skip_the_schedule_of_the_week():
    next_week = datetime(2026, 3, 10, 9, 0, tzinfo=UTC)
    assert resume_beat(next_week, daily(), NOW, GRACE, UTC_ZONE) == datetime(2026, 3, 3, 9, 0, tzinfo=UTC)


def test_what_has_no_timer_keeps_the_instant_it_was_given():
    assert resume_beat(NOW + timedelta(days=3), NONE, NOW, GRACE) == NOW + timedelta(days=3)


def test_first_beats_are_staggered_by_thirty_seconds_after_the_grace():
    beats = [first_beat(Cadence(interval=HOUR), NOW, GRACE, index, 4, UTC_ZONE) for index in range(4)]
    assert [(beat - NOW).total_seconds() for beat in beats] == [60, 90, 120, 150]


def test_the_stagger_of_a_large_fleet_fits_into_one_interval():
    beats = [first_beat(Cadence(interval=HOUR), NOW, GRACE, index, 1000, UTC_ZONE) for index in (1, 999)]
    assert beats[0] == NOW + GRACE + HOUR / 1000
    assert beats[1] < NOW + GRACE + HOUR


def test_a_declared_offset_takes_the_place_of_the_stagger():
    cadence = Cadence(interval=HOUR, offset=timedelta(minutes=7))
    assert first_beat(cadence, NOW, GRACE, 3, 4, UTC_ZONE) == NOW + GRACE + timedelta(minutes=7)


def changed(
    cadence: Cadence, due: timedelta, *, before: Cadence = HOURLY, streak: int = 0, index: int = 0
) -> timedelta:
    beat = changed_beat(before, cadence, NOW + due, streak, NOW, GRACE, index, 100, UTC_ZONE)
    assert beat is not None
    return beat - NOW


def test_beats_that_one_edit_brings_forward_do_not_bunch():
    ten = Cadence(interval=timedelta(minutes=10))
    beats = [changed(ten, HOUR, index=index) for index in range(100)]
    assert len(set(beats)) == 100
    assert (beats[0], beats[-1]) == (ten.interval, timedelta(minutes=10) + 99 * timedelta(seconds=6))


def test_an_edit_of_the_interval_never_puts_a_beat_off():
    ten = Cadence(interval=timedelta(minutes=10))
    assert [changed(ten, timedelta(minutes=soon), index=99) for soon in (1, 10, 15)] == [
        timedelta(minutes=soon) for soon in (1, 10, 15)
    ]
    assert changed(Cadence(interval=2 * HOUR), timedelta(minutes=5)) == timedelta(minutes=5)


def test_an_idle_agent_keeps_its_backoff_through_an_edit():
    assert changed(Cadence(interval=timedelta(minutes=10)), HOUR, streak=6) == timedelta(minutes=30)


def test_an_edit_of_the_offset_moves_the_beat_and_of_anything_else_leaves_it():
    ten = timedelta(minutes=10)
    offset = Cadence(interval=HOUR, offset=ten)
    assert changed(offset, timedelta(minutes=1), index=7) == GRACE + ten
    assert changed(offset, timedelta(minutes=1), before=Cadence(interval=2 * HOUR, offset=ten)) == timedelta(minutes=1)
    assert changed(offset, 2 * HOUR, before=Cadence(interval=2 * HOUR, offset=ten)) == HOUR


def test_an_agent_that_gets_a_schedule_beats_by_it_and_one_that_loses_its_timer_does_not():
    assert changed(daily(), timedelta(minutes=1)) == timedelta(hours=19)
    assert changed_beat(HOURLY, NONE, NOW, 0, NOW, GRACE, 0, 1, UTC_ZONE) is None


def test_a_schedules_first_beat_is_its_next_instant():
    assert first_beat(daily(), NOW, GRACE, 3, 4, UTC_ZONE) == datetime(2026, 3, 3, 9, 0, tzinfo=UTC)


CADENCES = st.one_of(
    st.builds(Cadence, interval=st.timedeltas(timedelta(seconds=1), timedelta(days=30))),
    st.builds(Cadence, continuous=st.just(True), breather=st.timedeltas(timedelta(seconds=1), HOUR)),
    st.sampled_from(["*/7 * * * *", "30 2 * * *", "0 */3 * * *", "0 0 * * 1"]).map(daily),
)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo"]).map(ZoneInfo)
MOMENTS = st.datetimes(NOW.replace(tzinfo=None), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(CADENCES, st.integers(0, 50), MOMENTS, ZONES)
def test_the_next_beat_is_always_ahead_and_never_inside_the_backoff(cadence, streak, now, zone):
    due = next_beat(cadence, streak, now, zone)
    assert due is not None
    assert due > now
    assert due >= now + backoff(streak)
    assert due >= next_beat(cadence, 0, now, zone)


@given(CADENCES, st.integers(0, 50), MOMENTS, ZONES, st.timedeltas(timedelta(), timedelta(days=60)))
def test_a_restart_never_moves_a_beat_forward_except_for_the_grace(cadence, streak, ended, zone, away):
    due, boot = next_beat(cadence, streak, ended, zone), ended + away
    assert resume_beat(due, cadence, boot, GRACE, zone) == max(due, boot + GRACE)
