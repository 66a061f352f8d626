"""Windows and calendar days, against an oracle that reads the wall clock minute by minute."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from wakeful.core.errors import Mistake
from wakeful.core.windows import NEVER, Window, day_of, inside_until, next_day, opens_at, parse_window, spread

MINUTE = timedelta(minutes=1)
BERLIN = ZoneInfo("Europe/Berlin")

# Two days around a change of offset, and an ordinary one.
CHANGES = [
    ("Europe/Berlin", "2024-03-31"),
    ("Europe/Berlin", "2024-10-27"),
    ("America/New_York", "2025-11-02"),
    ("Africa/Cairo", "2024-04-26"),
    ("Africa/Cairo", "2024-11-01"),
    ("Australia/Lord_Howe", "2024-10-06"),
    ("Australia/Lord_Howe", "2024-04-07"),
    ("Pacific/Apia", "2011-12-30"),
    ("America/St_Johns", "2010-11-07"),
    ("Asia/Kolkata", "2024-06-01"),
]


def at(text: str, zone: ZoneInfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def on_the_wall(windows: tuple[Window, ...], moment: datetime, zone: ZoneInfo) -> bool:
    """Inside by the plainest reading: look at the clock, the weekday and yesterday's weekday."""
    local = moment.astimezone(zone)
    minute, today = local.hour * 60 + local.minute, local.weekday()
    for window in windows:
        if window.start is not None and window.end is not None:
            if window.start <= moment < window.end:
                return True
            continue
        start, end = window.start_minute or 0, window.end_minute or 0
        days = window.days or tuple(range(7))
        if start < end:
            if today in days and start <= minute < end:
                return True
        elif (today in days and minute >= start) or ((today - 1) % 7 in days and minute < end):
            return True
    return False


@st.composite
def recurring(draw):
    step = st.integers(0, 47).map(lambda half: half * 30)
    start, end = draw(step), draw(step | st.just(24 * 60))
    assume(start != end)
    return Window(start_minute=start, end_minute=end, days=tuple(sorted(draw(st.sets(st.integers(0, 6))))))


@st.composite
def moments(draw):
    name, day = draw(st.sampled_from(CHANGES))
    zone = ZoneInfo(name)
    noon = datetime.fromisoformat(day + "T12:00:00+00:00")
    return zone, noon + MINUTE * draw(st.integers(-36 * 60, 36 * 60))


@settings(max_examples=150)
@given(st.lists(recurring(), max_size=3).map(tuple), moments())
def test_quiet_lasts_exactly_as_long_as_the_wall_clock_says(windows, when):
    zone, now = when
    end = now
    while on_the_wall(windows, end, zone) and end < now + timedelta(days=8):
        end += MINUTE
    assert inside_until(windows, now, zone) == (end if end > now else None)


@settings(max_examples=150)
@given(st.lists(recurring(), min_size=1, max_size=3).map(tuple), moments())
def test_a_gate_opens_at_the_first_minute_inside_a_window(windows, when):
    zone, now = when
    expected = now
    while not on_the_wall(windows, expected, zone):
        expected += MINUTE
    assert opens_at(windows, now, zone) == expected


@given(st.lists(recurring(), max_size=3).map(tuple), moments(), st.integers(0, 10**9))
def test_the_end_of_quiet_never_moves_back_while_time_goes_on(windows, when, later):
    zone, now = when
    until = inside_until(windows, now, zone)
    assume(until is not None)
    inner = now + (until - now) * (later / 10**9)
    assume(inner < until)
    again = inside_until(windows, inner, zone)
    assert again is not None
    assert again >= until


@given(moments(), st.integers(0, 59_999_999))
def test_the_next_day_begins_where_the_date_on_the_wall_first_changes(when, microseconds):
    zone, now = when
    now += timedelta(microseconds=microseconds)
    found = next_day(now, zone)
    assert found > now
    assert day_of(found, zone) > day_of(now, zone)
    assert day_of(found - timedelta.resolution, zone) <= day_of(now, zone)


@pytest.mark.parametrize(("name", "day"), CHANGES)
def test_from_day_to_day_no_moment_is_lost(name, day):
    zone = ZoneInfo(name)
    moment = datetime.fromisoformat(day + "T12:00:00+00:00") - timedelta(days=2)
    for _ in range(4):
        following = next_day(moment, zone)
        scan = moment
        while day_of(scan, zone) <= day_of(moment, zone):
            scan = (scan + MINUTE).replace(second=0, microsecond=0)
        assert following == scan
        moment = following


def test_the_day_after_a_skipped_midnight_begins_at_one():
    cairo = ZoneInfo("Africa/Cairo")
    begins = next_day(at("2024-04-25T20:00", cairo), cairo)
    assert begins.astimezone(cairo).isoformat() == "2024-04-26T01:00:00+03:00"


def test_the_day_after_the_29th_was_the_31st_in_apia():
    apia = ZoneInfo("Pacific/Apia")
    begins = next_day(at("2011-12-29T12:00", apia), apia)
    assert day_of(begins, apia) == "2011-12-31"
    assert begins == datetime(2011, 12, 30, 10, tzinfo=UTC)


def test_the_day_of_an_agent_is_the_day_in_its_zone():
    late = datetime(2024, 6, 1, 23, 30, tzinfo=UTC)
    assert day_of(late, ZoneInfo("UTC")) == "2024-06-01"
    assert day_of(late, BERLIN) == "2024-06-02"


def test_an_overnight_window_belongs_to_the_day_on_which_it_starts():
    fridays = (parse_window("Fri 22:00-06:00"),)
    assert inside_until(fridays, at("2024-06-07T23:00"), BERLIN) == at("2024-06-08T06:00")
    assert inside_until(fridays, at("2024-06-08T05:59"), BERLIN) == at("2024-06-08T06:00")
    assert inside_until(fridays, at("2024-06-08T23:00"), BERLIN) is None
    assert inside_until(fridays, at("2024-06-07T05:00"), BERLIN) is None


def test_the_start_is_inside_and_the_end_is_not():
    night = (parse_window("23:00-07:00"),)
    assert inside_until(night, at("2024-06-01T22:59:59"), BERLIN) is None
    assert inside_until(night, at("2024-06-01T23:00"), BERLIN) == at("2024-06-02T07:00")
    assert inside_until(night, at("2024-06-02T07:00"), BERLIN) is None


def test_adjacent_and_overlapping_windows_are_followed_to_their_common_end():
    weekend = tuple(parse_window(text) for text in ("Fri 20:00-24:00", "Sat,Sun 00:00-24:00", "Mon 00:00-06:00"))
    assert inside_until(weekend, at("2024-06-07T21:00"), BERLIN) == at("2024-06-10T06:00")
    christmas = parse_window("2024-06-08T12:00+02:00/2024-06-08T15:00+02:00")
    overlapping = (parse_window("10:00-13:00"), christmas)
    assert inside_until(overlapping, at("2024-06-08T10:00"), BERLIN) == at("2024-06-08T15:00")


def test_windows_that_cover_all_time_are_bounded_to_eight_days():
    now = at("2024-06-01T10:00")
    assert inside_until((parse_window("00:00-24:00"),), now, BERLIN) == now + timedelta(days=8)


def test_quiet_hours_end_by_the_wall_clock_on_both_nights_of_the_year():
    night = (parse_window("23:00-07:00"),)
    spring, autumn = at("2024-03-30T23:00"), at("2024-10-26T23:00")
    assert inside_until(night, spring, BERLIN) == spring + timedelta(hours=7)
    assert inside_until(night, autumn, BERLIN) == autumn + timedelta(hours=9)


def test_a_window_that_ends_in_the_gap_ends_where_the_gap_begins():
    assert inside_until((parse_window("22:00-02:30"),), at("2024-03-31T01:00"), BERLIN) == at("2024-03-31T03:00")


def test_a_one_off_window_holds_between_its_instants_and_never_again():
    window = parse_window("2026-12-24T18:00Z/2026-12-27T08:00Z")
    start, end = datetime(2026, 12, 24, 18, tzinfo=UTC), datetime(2026, 12, 27, 8, tzinfo=UTC)
    assert (window.start, window.end) == (start, end)
    assert inside_until((window,), start, BERLIN) == end
    assert inside_until((window,), end, BERLIN) is None
    assert opens_at((window,), start - timedelta(days=300), BERLIN) == start
    assert opens_at((window,), end, BERLIN) == NEVER


def test_a_weekly_window_that_is_over_opens_again_in_a_week():
    mondays = (parse_window("Mon 09:00-10:00"),)
    assert opens_at(mondays, at("2024-06-03T10:00"), BERLIN) == at("2024-06-10T09:00")
    assert opens_at(mondays, at("2024-06-03T09:59"), BERLIN) == at("2024-06-03T09:59")


def test_no_window_is_never_quiet():
    assert inside_until((), at("2024-06-01T10:00"), BERLIN) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("23:00-07:00", Window(start_minute=1380, end_minute=420)),
        ("Mon-Fri 22:00-06:00", Window(start_minute=1320, end_minute=360, days=(0, 1, 2, 3, 4))),
        ("Sat,Sun 00:00-24:00", Window(start_minute=0, end_minute=1440, days=(5, 6))),
        ("fri - mon 9:00 - 17:30", Window(start_minute=540, end_minute=1050, days=(0, 4, 5, 6))),
        ("Wednesday 08:00-09:00", Window(start_minute=480, end_minute=540, days=(2,))),
        ("22:00-00:00", Window(start_minute=1320, end_minute=0)),
    ],
)
def test_a_window_is_read_as_people_write_it(text, expected):
    assert parse_window(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("07:00-07:00", "no width"),
        ("00:00-00:00", "no width"),
        ("24:00-07:00", "starts at 24:00"),
        ("25:00-07:00", "no time 25:00"),
        ("23:60-07:00", "no time 23:60"),
        ("23:00-24:01", "no time 24:01"),
        ("Moon 23:00-07:00", "unknown day 'moon'"),
        ("Mon, 23:00-07:00", "expected a window"),
        ("1380", "expected a window"),
        ("", "expected a window"),
        ("2026-12-24T18:00/2026-12-27T08:00", "time zone"),
        ("2026-12-27T08:00Z/2026-12-24T18:00Z", "ends before it has started"),
        ("0001-01-01T00:00+14:00/2026-12-24T18:00Z", "before 1970"),
        ("tomorrow/later", "two instants"),
        ("2026-12-24T18:00Z/", "two instants"),
    ],
)
def test_what_is_no_window_is_refused_with_its_reason_and_a_remedy(text, words):
    with pytest.raises(Mistake) as mistake:
        parse_window(text)
    assert words in mistake.value.reason
    assert mistake.value.remedy


@given(st.text(alphabet="0123456789:-/, TZMonFri+", max_size=40))
def test_any_text_is_either_a_window_or_a_mistake(text):
    try:
        window = parse_window(text)
    except Mistake as mistake:
        assert mistake.remedy
    else:
        assert opens_at((window,), at("2024-06-01T10:00"), BERLIN) >= at("2024-06-01T10:00")


@given(st.text(), st.timedeltas(timedelta.resolution, timedelta(days=30)))
def test_a_spread_is_stable_and_lies_within_its_bound(name, within):
    assert timedelta() <= spread(name, within) < within
    assert spread(name, within) == spread(name, within)


def test_a_spread_is_the_same_on_every_machine_and_uses_the_whole_bound():
    ten = timedelta(minutes=10)
    assert spread("wren", ten) == timedelta(seconds=228, microseconds=692_315)
    thirds = {int(spread(f"agent-{number}", ten) / (ten / 3)) for number in range(50)}
    assert thirds == {0, 1, 2}
