"""Lifecycle files: states, gates, rounds."""

from datetime import timedelta

from wakeful.core.cron import Schedule
from wakeful.core.lifecycle import Kind
from wakeful.core.windows import parse_window


def state(name, **properties):
    drawer = "".join(f":{key.replace('_', '-')}: {value}\n" for key, value in properties.items())
    return f"* {name}\n:PROPERTIES:\n{drawer}:END:\n"


def lifecycle(desk, text):
    desk.write("day.org", text)
    loaded = desk.org("#+RUN: true\n* wren\n:PROPERTIES:\n:LIFECYCLE: day.org\n:END:\n")
    assert loaded.fleet is not None, loaded.diagnostics
    return loaded.fleet.agents[0].lifecycle


def test_a_state_has_a_kind_a_repeat_and_gates(desk):
    day = lifecycle(
        desk,
        "#+START: a\n"
        + state("a", KIND="rem", REPEAT=1_000_000, NEXT="b", MIN_INTERVAL="10m")
        + state("b", NEXT="c", WHEN="0 9 * * *")
        + state("c", NEXT="d", WHEN="Mon-Fri 09:00-17:00", MIN_INTERVAL="1h")
        + state("d", NEXT="a"),
    )
    a, b, c, d = day.states
    assert (a.kind, a.repeat, a.min_interval) == (Kind.rem, 1_000_000, timedelta(minutes=10))
    assert (b.when_schedule, b.when_window) == (Schedule("0 9 * * *"), None)
    assert (c.when_window, c.min_interval) == (parse_window("Mon-Fri 09:00-17:00"), timedelta(hours=1))
    assert (d.kind, d.repeat, d.next) == (Kind.wake, 1, "a")


def test_without_start_the_day_begins_at_the_first_heading_not_at_the_first_letter(desk, said):
    text = state("wake", NEXT="audit") + state("audit", NEXT="wake")
    assert lifecycle(desk, text).start == "wake"
    assert said(desk.day(text)) == [
        "1:3: warning: no START: the day begins at the first heading, wake (write #+START: wake)"
    ]


def test_a_lone_state_may_repeat_for_ever_with_or_without_saying_so(desk):
    assert lifecycle(desk, "#+START: work\n* work\n").states[0].next == "work"
    assert lifecycle(desk, "#+START: work\n" + state("work", NEXT="work")).states[0].next == "work"


def test_states_that_lead_into_the_round_are_reached_once_and_are_fine(desk, said):
    text = "#+START: setup\n" + state("setup", NEXT="a") + state("a", NEXT="b") + state("b", NEXT="a")
    assert said(desk.day(text)) == []


def test_a_lead_in_does_not_open_a_round_of_gates(desk, said):
    text = (
        "#+START: setup\n"
        + state("setup", NEXT="a")
        + state("a", NEXT="b", MIN_INTERVAL="1h")
        + state("b", NEXT="a", MIN_INTERVAL="1h")
    )
    assert "5:3" not in said(desk.day(text))[0]
    assert "every state of the round a -> b is gated by MIN-INTERVAL" in said(desk.day(text))[0]


def test_a_day_made_of_hours_is_allowed_with_a_warning(desk, said):
    text = (
        "#+START: a\n"
        + state("a", NEXT="b", WHEN="09:00-12:00")
        + state("b", NEXT="a", WHEN="13:00-17:00", MIN_INTERVAL="10m")
    )
    loaded = desk.day(text)
    assert not loaded.broken
    assert "2:3: warning: every state of the round a -> b is gated: outside its hours" in said(loaded)[0]


def test_a_round_that_only_dreams_is_told(desk, said):
    text = "#+START: a\n" + state("a", NEXT="b", KIND="rem") + state("b", NEXT="a", KIND="rem")
    assert "every state of the round is rem" in said(desk.day(text))[0]


def test_behind_a_dangling_edge_nothing_is_called_unreachable(desk, said):
    text = "#+START: a\n" + state("a", NEXT="bb") + state("b", NEXT="c") + state("c", NEXT="a")
    assert said(desk.day(text)) == ["4:8: NEXT names no state: 'bb' (did you mean b?)"]


def test_a_lifecycle_shared_by_many_agents_is_read_and_told_once(desk, said):
    desk.write("day.org", "#+START: a\n" + state("a", NEXT="b"))
    drawer = ":PROPERTIES:\n:LIFECYCLE: day.org\n:END:\n"
    loaded = desk.org(f"#+RUN: true\n* wren\n{drawer}* moss\n{drawer}")
    assert loaded.fleet is None
    assert len(said(loaded)) == 1
    assert loaded.diagnostics[0].file.endswith("day.org")


def test_a_day_of_more_than_a_thousand_states_is_refused(desk, said):
    text = "#+START: s0\n" + "".join(state(f"s{n}", NEXT=f"s{(n + 1) % 1_001}") for n in range(1_001))
    assert said(desk.day(text)) == ["1:1: the lifecycle has more than 1000 states (a day needs a handful)"]
