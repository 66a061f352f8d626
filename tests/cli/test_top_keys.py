"""What each key of `wakeful top` does: pure, without a terminal or a fleet."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.cli.top_rows import an_agent
from wakeful.cli import top_loop
from wakeful.cli.top_input import LONGEST_PASTE, Keys
from wakeful.cli.top_keys import press
from wakeful.cli.top_state import CAUSES, FLEET, HELP, LOG, QUIT, REDRAW, SORTS, WHY, Ask, Seen, State

NAMES = [f"a{number}" for number in range(30)]
ON = State(selected="a3")
SEEN = Seen(names=NAMES, room=10, row=an_agent("a3"))


def pressed(*keys: str, state: State = ON, seen: Seen = SEEN) -> tuple[State, Ask | str | None]:
    act: Ask | str | None = None
    for key in keys:
        state, act = press(state, key, seen)
    return state, act


def typed(text: str) -> list[str]:
    return list(text)


# ---- moving


@pytest.mark.parametrize(
    ("keys", "selected"),
    [
        (["down"], "a4"),
        (["j", "j"], "a5"),
        (["up"], "a2"),
        (["k", "up", "up", "up", "up"], "a0"),
        (["page-down"], "a13"),
        (["page-up"], "a0"),
        (["end"], "a29"),
        (["G", "down"], "a29"),
        (["end", "home"], "a0"),
    ],
)
def test_the_selection_moves_and_stays_within_the_rows(keys, selected):
    assert pressed(*keys)[0].selected == selected


def test_without_rows_nothing_moves_and_nothing_is_asked_of_nobody():
    alone = Seen()
    for key in ("down", "end", "p", "t", "r", "w", "x", "l", "y"):
        state, act = press(State(), key, alone)
        assert (state.selected, state.prompt, state.view, act) == ("", None, FLEET, None)


def test_q_is_the_end_and_ctrl_l_draws_again():
    assert pressed("q")[1] == QUIT
    assert pressed("ctrl-l")[1] == REDRAW


# ---- asking


@pytest.mark.parametrize(("key", "operation"), [("t", "tick"), ("r", "resume_agent")])
def test_one_key_asks_for_a_beat_or_lifts_a_pause_of_the_selected_agent(key, operation):
    _, act = pressed(key)
    assert isinstance(act, Ask) and (act.operation, act.parameters) == (operation, {"agent": "a3"})


def test_a_pause_asks_how_long_and_why():
    state, act = pressed("p", *typed("10m"), "enter")
    assert act is None and state.prompt is not None
    state, act = pressed(*typed("a look"), "enter", state=state)
    assert isinstance(act, Ask)
    assert (act.operation, act.parameters) == ("pause_agent", {"agent": "a3", "reason": "a look", "duration": "10m"})
    assert state.prompt is None


def test_a_pause_without_an_end_or_a_reason_takes_two_enters():
    _, act = pressed("P", "enter", "enter")
    assert isinstance(act, Ask) and (act.operation, act.parameters) == ("pause", {"reason": "", "duration": None})


def test_whoever_was_selected_when_it_began_is_paused_whatever_is_selected_then():
    state, _ = pressed("p", "enter")
    _, act = press(replace(state, selected="a9"), "enter", SEEN)
    assert isinstance(act, Ask) and act.parameters["agent"] == "a3"


@pytest.mark.parametrize("wrong", ["10", "soon", "-5m"])
def test_a_duration_that_is_none_is_said_while_it_can_be_mended(wrong):
    state, act = pressed("p", *typed(wrong), "enter")
    assert act is None and state.prompt is not None
    assert "duration" in state.prompt.problem and state.prompt.text == wrong
    state, _ = pressed("ctrl-u", *typed("5m"), "enter", state=state)
    assert state.prompt is not None and state.prompt.duration == "5m"


@pytest.mark.parametrize("stage", [["p"], ["p", "1", "m", "enter"], ["P"], ["w", "h", "i"], ["R"], ["x"]])
def test_esc_leaves_everything_as_it_was(stage):
    seen = replace(SEEN, row=an_agent("a3", "running"))
    state, act = pressed(*stage, "escape", seen=seen)
    assert (state.prompt, act) == (None, None)


def test_a_wake_may_leave_a_message():
    _, act = pressed("w", *typed("look here"), "enter")
    assert isinstance(act, Ask) and (act.operation, act.parameters) == ("wake", {"agent": "a3", "body": "look here"})
    _, act = pressed("w", "enter")
    assert isinstance(act, Ask) and act.parameters == {"agent": "a3", "body": None}


@pytest.mark.parametrize(("answer", "asks"), [("y", True), ("n", False), ("enter", False), ("t", False), ("q", False)])
def test_to_resume_the_fleet_and_to_end_a_run_are_asked_for_twice(answer, asks):
    running = replace(SEEN, row=an_agent("a3", "running"))
    for key, operation in (("R", "resume"), ("x", "kill")):
        state, act = pressed(key, answer, seen=running)
        assert state.prompt is None
        assert (isinstance(act, Ask) and act.operation == operation) is asks, answer


def test_without_a_run_there_is_none_to_end():
    state, act = pressed("x")
    assert (state.prompt, act) == (None, None) and "no run" in state.said


# ---- finding and sorting


def test_a_filter_narrows_as_it_is_typed_and_esc_brings_back_what_was_there():
    state, _ = pressed("/", *typed("ab"), "backspace", state=replace(ON, filter=""))
    assert state.filter == "a"
    state, _ = pressed("enter", state=state)
    assert (state.filter, state.prompt) == ("a", None)
    state, _ = pressed("/", *typed("xyz"), "escape", state=state)
    assert state.filter == "a"
    assert pressed("escape", state=state)[0].filter == ""


def test_a_line_is_edited_by_words_and_as_a_whole():
    state, _ = pressed("/", *typed("one two"), "ctrl-w")
    assert state.filter == "one"
    assert pressed("ctrl-u", state=state)[0].filter == ""


def test_sorts_go_round_and_turn_around():
    state, seen = ON, []
    for _ in SORTS:
        seen.append(state.sort)
        state, _ = press(state, "s", SEEN)
    assert (tuple(seen), state.sort) == (SORTS, SORTS[0])
    assert pressed("S")[0].backwards and not pressed("S", "S")[0].backwards


def test_a_paste_is_text_in_a_line_and_nothing_elsewhere():
    state, act = pressed("paste:tPqx\nrm")
    assert (act, state.prompt, state.view) == (None, None, FLEET)
    assert pressed("/", "paste:two\nlines\x1b[2J")[0].filter == "two lines"


@given(some.lists(some.text(min_size=1, max_size=1) | some.sampled_from(["enter", "escape", "up", "end", "paste:q"])))
def test_no_keys_at_all_are_too_much(keys):
    state, _ = pressed(*keys)
    assert state.view in (FLEET, LOG, WHY, HELP)


# ---- pages


@pytest.mark.parametrize(("key", "view"), [("l", LOG), ("enter", LOG), ("y", WHY), ("?", HELP)])
def test_a_page_opens_and_q_and_esc_lead_back_to_the_same_agent(key, view):
    for back in ("q", "escape"):
        state, act = pressed(key)
        assert (state.view, act) == (view, None)
        state, act = pressed(back, state=state)
        assert (state.view, state.selected, act) == (FLEET, "a3", None)


def test_a_log_is_followed_until_it_is_scrolled_and_again_from_its_end():
    page = Seen(room=10, lines=100)
    state, _ = pressed("l")
    assert state.line is None
    state, _ = press(state, "up", page)
    assert state.line == 89
    state, _ = press(state, "page-up", page)
    assert state.line == 80
    assert press(state, "home", page)[0].line == 0
    assert press(state, "end", page)[0].line is None
    assert press(replace(state, line=89), "down", page)[0].line is None


def test_a_log_has_two_streams_and_the_newest_run_is_one_key_away():
    state, _ = pressed("l", "e")
    assert state.stream == "stderr" and pressed("e", state=state)[0].stream == "stdout"
    assert press(state, "n", Seen(newest_run=14))[0].run == 14


def test_a_why_is_asked_for_each_cause():
    state, _ = pressed("y")
    seen = []
    for _ in CAUSES:
        seen.append(state.cause)
        state, _ = press(state, "c", Seen(lines=5, room=20))
    assert tuple(seen) == CAUSES


def test_what_acts_on_the_fleet_does_nothing_on_a_page():
    for key in ("p", "t", "P", "R", "x", "w"):
        state, act = pressed("y", key)
        assert (state.view, state.prompt, act) == (WHY, None, None)


# ---- bytes


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]),
        (b"\r\x7f\x0c", ["enter", "backspace", "ctrl-l"]),
        (b"\x1b[A\x1bOB\x1b[5~\x1b[6;5~\x1b[1;2H", ["up", "down", "page-up", "page-down", "home"]),
        (b"\x1b[<0;3;4M\x1b[99~\x1b[?1;2cx", ["x"]),
        ("é漢".encode(), ["é", "漢"]),
        (b"\x1b[200~t\nP\x1b[201~q", ["paste:t\nP", "q"]),
        (b"\xff\xfeq", ["q"]),
        (b"\x1bq", ["escape", "q"]),
    ],
)
def test_bytes_are_keys_however_they_are_cut(data, keys):
    assert Keys().read(data) == keys
    one_by_one = Keys()
    assert [key for byte in data for key in one_by_one.read(bytes([byte]))] == keys


def test_a_lone_esc_is_known_by_nothing_following():
    keys = Keys()
    assert keys.read(b"\x1b") == [] and keys.unfinished
    assert keys.settle() == ["escape"] and not keys.unfinished


def test_a_sequence_that_is_never_finished_is_nothing():
    keys = Keys()
    assert keys.read(b"\x1b[1;") == []
    assert keys.settle() == [] and keys.read(b"q") == ["q"]


def test_a_paste_without_an_end_is_given_up_at_some_length():
    keys = Keys()
    found = keys.read(b"\x1b[200~" + b"x" * LONGEST_PASTE)
    assert [key[:8] for key in found] == ["paste:xx"] and keys.read(b"q") == ["q"]


def turned(monkeypatch, *waits):
    """The keys that the loop hears: each wait takes so long and ends with what was typed, or with an answer (None)."""
    clock = [100.0]
    monkeypatch.setattr("wakeful.cli.top_loop.time.monotonic", lambda: clock[0])
    asked: list[float] = []
    found: list[str] = []

    def wait(seconds):
        asked.append(seconds)
        took, typed = waits[len(asked) - 1] if len(asked) <= len(waits) else (0.0, b"")
        clock[0] += took
        return typed, set()

    top: Any = object.__new__(top_loop.Top)
    top._terminal, top._keys = SimpleNamespace(wait=wait), Keys()
    top._asking, top._feed = SimpleNamespace(answers=list, crash=None), SimpleNamespace(crash=None)
    monkeypatch.setattr(top, "_draw", lambda: 1.0)
    monkeypatch.setattr(top, "_pressed", found.extend)
    top._turn()
    return found, asked


def test_an_answer_in_the_middle_of_a_key_does_not_end_it(monkeypatch):
    found, _ = turned(monkeypatch, (0.0, b"\x1b"), (0.01, None), (0.01, b"[A"))
    assert found == ["up"]


def test_an_esc_is_one_as_soon_as_nothing_has_followed_for_long_enough(monkeypatch):
    found, asked = turned(monkeypatch, (0.0, b"\x1b"), (0.06, None), (0.05, None))
    assert found == ["escape"] and asked[1:3] == pytest.approx([0.1, 0.04])


def test_an_unfinished_paste_is_waited_for_and_not_looked_for_without_rest(monkeypatch):
    found, asked = turned(monkeypatch, (0.0, b"\x1b[200~x"), (0.11, None), (0.11, None), (0.0, b"\x1b[201~"))
    assert found == ["paste:x"] and asked[1:4] == pytest.approx([0.1, 0.1, 0.1])


@given(some.binary())
def test_no_bytes_at_all_are_too_much(data):
    keys = Keys()
    assert all(keys.read(data) + keys.settle())
