"""Minutes in which more agents are due than may run at once."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.agents import Agent, Limits
from wakeful.core.bunching import bunches, by_offset, by_schedule
from wakeful.core.cadence import Cadence
from wakeful.core.cron import parse_schedule
from wakeful.core.facts import Facts
from wakeful.core.guards import RELEASE, paused
from wakeful.core.wakes import Cause, Pause, Subject, Wake

NOW = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)


def scheduled(name: str, text: str, zone: str = "UTC", *, enabled: bool = True) -> Agent:
    cadence = Cadence(schedule=parse_schedule(text))
    return Agent(name=name, address=name, cadence=cadence, timezone=zone, enabled=enabled)


def timed(name: str, every: timedelta, offset: timedelta | None) -> Agent:
    return Agent(name=name, address=name, cadence=Cadence(interval=every, offset=offset))


def found(agents: list[Agent], sessions: int, within: timedelta = DAY) -> list[tuple[str, datetime, int]]:
    looked = bunches(by_schedule(agents), sessions, NOW, within)
    return [(" ".join(bunch.agents), bunch.at, bunch.times) for bunch in looked.found]


def test_agents_of_one_schedule_bunch_where_they_are_more_than_the_sessions():
    three = [scheduled(name, "0 * * * *") for name in ("a", "b", "c")]
    assert found(three, 2) == [("a b c", NOW + 30 * MINUTE, 24)]
    assert found(three, 3) == []


def test_different_schedules_bunch_in_the_minutes_that_they_share():
    mixed = [scheduled("a", "0 9 * * *"), scheduled("b", "*/20 9 * * *"), scheduled("c", "0,30 * * * *")]
    assert found(mixed, 2) == [("a b c", NOW + 30 * MINUTE, 1)]


def test_a_schedule_is_read_in_the_zone_of_its_agent():
    there = [scheduled("a", "0 10 * * *", "Europe/Berlin"), scheduled("b", "0 9 * * *"), scheduled("c", "0 10 * * *")]
    assert found(there, 1) == [("a b", NOW + 30 * MINUTE, 1)]


def test_a_minute_that_is_part_of_a_fuller_one_is_not_told_beside_it():
    many = [scheduled(name, "*/30 * * * *") for name in ("a", "b")] + [scheduled("c", "0 * * * *")]
    assert found(many, 1) == [("a b c", NOW + 30 * MINUTE, 24)]


def test_who_is_disabled_or_spread_by_itself_does_not_bunch():
    idle = [scheduled("a", "0 * * * *"), scheduled("b", "0 * * * *", enabled=False), timed("c", HOUR, None)]
    assert found(idle, 1) == []
    assert by_offset(idle, NOW) == []


def test_what_is_due_only_beyond_the_time_that_is_looked_at_is_not_found():
    weekly = [scheduled(name, "0 9 * * 3") for name in ("a", "b")]
    assert found(weekly, 1) == []
    assert found(weekly, 1, 7 * DAY) == [("a b", datetime(2026, 3, 4, 9, tzinfo=UTC), 1)]


def test_equal_offsets_bunch_and_different_intervals_meet_again():
    agents = [timed("a", 10 * MINUTE, 5 * MINUTE), timed("b", 15 * MINUTE, 5 * MINUTE), timed("c", HOUR, 6 * MINUTE)]
    looked = bunches(by_offset(agents, NOW), 1, NOW, DAY)
    assert [(bunch.agents, bunch.at, bunch.times) for bunch in looked.found] == [(("a", "b"), NOW + 5 * MINUTE, 48)]


def test_an_offset_longer_than_the_interval_is_waited_for():
    late = [timed(name, 10 * MINUTE, 25 * MINUTE) for name in ("a", "b")]
    (bunch,) = bunches(by_offset(late, NOW), 1, NOW, HOUR).found
    assert (bunch.at, bunch.times) == (NOW + 25 * MINUTE, 4)


def test_an_agent_that_is_due_twice_in_a_minute_is_one_agent():
    quick = [
        Agent(name="a", address="a", cadence=Cadence(continuous=True, offset=MINUTE, breather=timedelta(seconds=5)))
    ]
    assert bunches(by_offset(quick, NOW), 1, NOW, HOUR).found == ()


def test_the_work_is_bounded_and_how_far_was_looked_is_said():
    counted = 0

    def following(moment: datetime) -> datetime:
        nonlocal counted
        counted += 1
        return moment.replace(second=0, microsecond=0) + MINUTE

    groups = by_schedule(
        [scheduled(f"agent-{number}", f"{number % 60} {number % 24} * * *") for number in range(1_000)]
    )
    for group in groups:
        object.__setattr__(group, "following", following)
    looked = bunches(groups, 2, NOW, DAY, most=400)
    assert counted <= 400 + 100
    assert NOW < looked.until < NOW + DAY and looked.found


@given(st.lists(st.tuples(st.integers(0, 59), st.integers(1, 4)), max_size=5), st.integers(1, 6))
def test_a_minute_is_told_exactly_when_it_is_too_full(minutes, sessions):
    agents = [
        scheduled(f"{place}-{number}", f"{minute} * * * *")
        for place, (minute, count) in enumerate(minutes)
        for number in range(count)
    ]
    due: dict[int, set[str]] = {}
    for agent in agents:
        schedule = agent.cadence.schedule
        assert schedule is not None
        due.setdefault(int(schedule.expression.split()[0]), set()).add(agent.name)
    expected = sorted(sorted(names) for names in due.values() if len(names) > sessions)
    looked = bunches(by_schedule(agents), sessions, NOW - timedelta(seconds=1), HOUR)
    assert sorted(sorted(bunch.agents) for bunch in looked.found) == expected
    assert all(bunch.times == 1 for bunch in looked.found)


def test_what_one_pause_held_back_is_let_go_over_a_minute():
    pause = Pause(scope="fleet", owner="rana", reason="a bad deploy", since=NOW, until=NOW + HOUR)
    found = set()
    for number in range(100):
        wake = Wake(agent=f"agent-{number}", cause=Cause.timer, subject=Subject.beat, requested_at=NOW)
        verdict = paused(wake, Facts(now=NOW, pause=pause), Limits())
        assert verdict is not None and verdict.until is not None
        found.add(verdict.until - NOW - HOUR)
    assert len(found) == 100 and min(found) < RELEASE / 10 and RELEASE * 0.9 < max(found) < RELEASE
