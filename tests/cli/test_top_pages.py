"""The pages of `wakeful top`: the log of a run, why an agent does not run, the keys. Pure, by their lines."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.cli.office import EVIL
from tests.cli.test_top_screen import HOSTILE, assert_inert, text, texts
from tests.cli.top_rows import NOON, Row, a_fleet, an_agent, at
from wakeful.cli.top_asking import words_of
from wakeful.cli.top_cells import RICH, width_of
from wakeful.cli.top_keys import AGENT_KEYS, FLEET_KEYS
from wakeful.cli.top_pages import MOST_LINES, Log, help_picture, log_picture, why_picture
from wakeful.cli.top_screen import Picture
from wakeful.cli.top_state import HELP, LOG, WHY, Ask, Size, State

SIZE = Size(40, 12)
FLEET = a_fleet(an_agent())
READING = State(view=LOG, page_of="wren", line=None)
RUN: Row = {"id": 12, "state": "running", "outcome": None, "started_at": at(-75), "ended_at": None}
ENDED: Row = {**RUN, "state": "ended", "outcome": "failed", "ended_at": at(-5), "reason": "exit code 1", "summary": ""}


def a_log(written: str = "", **given: object) -> Log:
    log = Log("wren", "stdout", run=RUN)
    log.take({"text": written, **given})
    return log


def drawn(log: Log | None, state: State = READING, size: Size = SIZE) -> Picture:
    return log_picture(state, FLEET, log, NOON, size, RICH)


# ---- a log


def test_its_end_is_in_sight_while_it_is_followed_and_its_beginning_when_scrolled_there():
    log = a_log("".join(f"line {number}\n" for number in range(100)))
    shown = texts(drawn(log))
    assert shown[0] == " wren run 12, stdout: running 1m 15s"
    assert shown[1:10] == [f"line {number}" for number in range(91, 100)]
    assert "lines 92 to 100 of 100, following" in shown[10]
    assert texts(drawn(log, replace(READING, line=0)))[1] == "line 0"
    log.take({"text": "line 100\n"})
    assert texts(drawn(log))[9] == "line 100"


def test_pieces_are_joined_where_they_were_cut():
    log = a_log("one \x1b[3")
    for piece in ("1mred\x1b[0m\ntwo", " more\r\n", "three"):
        log.take({"text": piece})
    assert log.told(40) == ["one red", "two more", "three"]


def test_long_lines_go_on_below_and_are_cut_anew_when_the_window_changes():
    log = a_log("x" * 50 + "\n" + "漢" * 30)
    assert log.told(40) == ["x" * 40, "x" * 10, "漢" * 20, "漢" * 10]
    assert log.told(60) == ["x" * 50, "漢" * 30]


def test_only_so_much_of_it_is_kept_and_a_line_without_an_end_does_not_grow():
    log = a_log("".join(f"{number}\n" for number in range(MOST_LINES + 10)))
    assert len(log.told(40)) == MOST_LINES and log.told(40)[0] == "10"
    log = Log("wren", "stdout")
    for _ in range(100):
        log.add("x" * 1_000)
    assert max(len(line) for line in log.lines) < 10_000


def test_an_ended_run_says_how_below_what_it_printed():
    log = a_log("all\n")
    log.take({"run": ENDED, "over": True})
    shown = texts(drawn(log))
    assert shown[0] == " wren run 12, stdout: failed 11:59:55"
    assert shown[1:3] == ["all", "[run 12 failed: exit code 1]"]


def test_a_newer_run_is_offered():
    assert texts(drawn(a_log(newest=13), size=Size(80, 12)))[0].endswith("run 13 has begun: n")
    assert "has begun" not in texts(drawn(a_log(newest=12), size=Size(80, 12)))[0]


def test_an_agent_without_a_run_and_trouble_on_the_way_are_told():
    log = Log("wren", "stdout")
    log.take({"nothing": "it has not run yet; t asks for a beat"})
    assert "it has not run yet" in texts(drawn(log))[0]
    log.take({"problem": "the engine cannot be reached"})
    assert any("the engine cannot be reached" in line for line in texts(drawn(log, size=Size(80, 12))))
    assert "looking for its newest run" in texts(drawn(None))[0]


@pytest.mark.parametrize("evil", HOSTILE)
def test_what_an_agent_printed_is_as_wide_as_the_terminal_and_inert(evil):
    log = a_log(f"{evil}\n{evil * 20}\n{evil}")
    log.take({"run": {**ENDED, "reason": evil, "summary": evil}, "over": True})
    for state in (replace(READING, page_of=evil), replace(READING, line=0)):
        picture = drawn(log, state)
        assert {sum(width_of(span.text) for span in line) for line in picture.lines} == {40}
        assert_inert("".join(span.text for line in picture.lines for span in line))


@given(some.lists(some.text(max_size=30), max_size=8), some.integers(2, 30))
def test_however_it_is_cut_into_pieces_a_log_reads_the_same(pieces, width):
    whole, parts = Log("wren", "stdout"), Log("wren", "stdout")
    whole.add("".join(pieces))
    for piece in pieces:
        parts.add(piece)
        parts.told(width)
    assert parts.told(width) == whole.told(width)


# ---- why


def an_opinion(guard: str, verdict: str | None = None, **given: object) -> Row:
    return {"guard": guard, "verdict": verdict, "reason": "", "numbers": {}, "until": None, **given}


def a_why(**given: object) -> Row:
    told = an_opinion(
        "wakes_per_day", "defer", reason="12 wakes today", numbers={"used": 12, "limit": 12}, until=at(600)
    )
    last = {"at": at(-30), "verdict": "admit", "guard": None, "reason": "", "run_id": 12}
    return {
        "agent": "wren",
        "cause": "peer",
        "verdict": "defer",
        "guard": "wakes_per_day",
        "reason": "12 wakes today",
        "next_eligible": at(600),
        "at": at(0),
        "opinions": [an_opinion("moot"), told, an_opinion("slots", "defer", reason="2 of 2")],
        "assumptions": [],
        "last_decision": last,
        **given,
    }


def test_every_guard_has_its_line_and_the_one_that_decides_stands_out():
    state = State(view=WHY, page_of="wren", cause="peer")
    picture = why_picture(state, FLEET, a_why(), NOON, Size(80, 24), RICH)
    shown = texts(picture)
    assert shown[1].startswith("wren: a wake by peer now would be deferred by wakes_per_day: 12 wakes today;")
    assert shown[2] == "  next eligible 12:10 (in 10m)"
    assert "✓ moot           no objection" in shown
    line = next(line for line in picture.lines if "✗ wakes_per_day" in text(line))
    assert "defer; 12 wakes today; used 12, limit 12" in text(line)
    assert {span.style for span in line if span.text.strip()} == {"bold magenta"}
    assert any(line.startswith("last decision, 11:59:30: admit (run 12)") for line in shown)


def test_a_why_that_could_not_be_asked_says_so():
    state = State(view=WHY, page_of="wren")
    assert (
        "no agent is called wren"
        in texts(why_picture(state, FLEET, {"problem": "no agent is called wren"}, NOON, SIZE, RICH))[1]
    )
    assert texts(why_picture(state, FLEET, None, NOON, SIZE, RICH))[1] == "asking…"


@pytest.mark.parametrize("size", [Size(80, 24), Size(20, 6)])
def test_a_why_by_whoever_means_ill_is_inert(size):
    opinions = [an_opinion("moot", "refuse", reason=EVIL, numbers={EVIL: EVIL})]
    answer = a_why(agent=EVIL, reason=EVIL, opinions=opinions, guard="moot", assumptions=[EVIL])
    picture = why_picture(State(view=WHY, page_of=EVIL), FLEET, answer, NOON, size, RICH)
    assert_inert("".join(span.text for line in picture.lines for span in line))
    assert {sum(width_of(span.text) for span in line) for line in picture.lines} == {size.columns}


# ---- the keys


def test_every_key_is_in_the_help():
    told = "\n".join(texts(help_picture(State(view=HELP), FLEET, Size(100, 60), RICH)))
    first = {word for line in told.split("\n") for word in line[:12].split()}
    assert {key for key in (*FLEET_KEYS, *AGENT_KEYS) if len(key) == 1} <= first


def test_a_page_says_when_what_is_shown_may_be_old():
    stale = replace(FLEET, silent=5.0, problem="the engine is away")
    assert any("STALE 5s" in line for line in texts(help_picture(State(view=HELP), stale, SIZE, RICH)))


# ---- what a key asked


def test_an_answer_is_told_as_its_command_tells_it_on_one_line():
    pause = {
        "scope": "agent:wren",
        "until": None,
        "reason": "a look",
        "ended": [],
        "running": [RUN | {"agent": "wren"}],
    }
    told = words_of(Ask("pause_agent", {"agent": "wren"}), pause)
    assert told.startswith("wren is paused: a look; under way: 1 run: 12 of wren (") and "\n" not in told
    refused = {"verdict": "refuse", "guard": "paused", "reason": "held", "numbers": {}, "next_eligible": None}
    assert words_of(Ask("tick", {"agent": "wren"}), refused) == "wren is refused by paused: held"
    resumed = {"scope": "fleet", "resumed": True, "held_by": [], "files": []}
    assert words_of(Ask("resume", {}), resumed) == "the fleet goes on"
