"""Which of the four outcomes an ending amounts to."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.runs import (
    Ending,
    ErrorClass,
    Outcome,
    Result,
    describe,
    is_attempt,
    read_outcome,
    says_no_work,
    summarise,
)
from wakeful.core.standing import Spend

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
DONE, NO_WORK, FAILED, KILLED = Outcome.done, Outcome.no_work, Outcome.failed, Outcome.killed


def ended(exit_code: int | None = 0, output: str = "", **more) -> Ending:
    result = Result(**more.pop("result")) if "result" in more else None
    return Ending(exit_code=exit_code, output=output, result=result, **more)


ENDINGS = [
    ("exit 0", ended(0, "wrote a page"), DONE),
    ("exit 0 without a word", ended(0), DONE),
    ("exit 1", ended(1), FAILED),
    ("exit 127", ended(127, "not found"), FAILED),
    ("exit 75", ended(75), FAILED),
    ("no exit code, a signal", ended(None, signal=9), FAILED),
    ("no exit code at all", ended(None), FAILED),
    ("exit 1 that says NO-WORK", ended(1, "NO-WORK"), FAILED),
    ("out of memory", ended(137, out_of_memory=True), FAILED),
    ("past the wall clock", ended(None, timed_out=True), KILLED),
    ("past the wall clock, exit 0", ended(0, timed_out=True), KILLED),
    ("past the wall clock, says NO-WORK", ended(0, "NO-WORK", timed_out=True), KILLED),
    ("past its limit", ended(None, signal=15, over_limit="it used $2.00"), KILLED),
    ("past its limit, exit 0", ended(0, over_limit="it used $2.00", result={"outcome": "done"}), KILLED),
    ("lost", ended(None, lost=True), KILLED),
    ("ended by an operator", ended(None, signal=15, by="operator"), KILLED),
    ("ended by an operator, exit 0", ended(0, by="operator"), KILLED),
    ("says done", ended(0, result={"outcome": "done"}), DONE),
    ("says no_work", ended(0, result={"outcome": "no_work"}), NO_WORK),
    ("says failed", ended(0, result={"outcome": "failed"}), FAILED),
    ("says killed, which is not its to say", ended(0, result={"outcome": "killed"}), FAILED),
    ("says something unknown", ended(0, result={"outcome": "great"}), FAILED),
    ("says done, the text NO-WORK", ended(0, "NO-WORK", result={"outcome": "done"}), DONE),
    ("says done, the summary NO-WORK", ended(0, result={"outcome": "done", "summary": "NO-WORK"}), DONE),
    ("says no_work, the text much", ended(0, "wrote a page", result={"outcome": "no_work"}), NO_WORK),
    ("a summary NO-WORK", ended(0, "reading the board", result={"summary": "NO-WORK: empty"}), NO_WORK),
    ("a summary of work before the text", ended(0, "NO-WORK", result={"summary": "wrote a page"}), DONE),
    ("usage only, the text NO-WORK", ended(0, "NO-WORK", result={"usage": Spend(tokens=5)}), NO_WORK),
    ("an error and nothing else", ended(0, result={"error": "429"}), FAILED),
    ("an error class and nothing else", ended(0, result={"error_class": ErrorClass.quota}), FAILED),
    ("an error and NO-WORK", ended(0, "NO-WORK", result={"error": "429"}), FAILED),
    ("a done cannot rescue exit 1", ended(1, result={"outcome": "done"}), FAILED),
    ("a no_work cannot rescue exit 1", ended(1, result={"outcome": "no_work"}), FAILED),
    ("a done cannot rescue a timeout", ended(0, timed_out=True, result={"outcome": "done"}), KILLED),
    ("a done cannot rescue a lost run", ended(None, lost=True, result={"outcome": "done"}), KILLED),
]


@pytest.mark.parametrize(("ending", "outcome"), [row[1:] for row in ENDINGS], ids=[row[0] for row in ENDINGS])
def test_an_ending_is_one_of_four_outcomes(ending, outcome):
    assert read_outcome(ending) is outcome


LONG = "x" * 400
TEXTS = [
    ("NO-WORK", True),
    ("no-work", True),
    ("No-Work", True),
    ("  \n\t NO-WORK", True),
    ("NO-WORK\n", True),
    ("NO-WORK\nI looked at the board.", True),
    ("NO-WORK: the board is empty", True),
    ("NO-WORK. Nothing today.", True),
    ("NO-WORK, again", True),
    ("NO-WORK the board is empty", True),
    ("NO-WORK-AROUND found and applied", False),
    ("NO-WORKERS were free, hired two", False),
    ("NO-WORK; see below", False),
    ("NO-WORK!", False),
    ("NO WORK", False),
    ("NO_WORK", False),
    ("NOWORK", False),
    ("Checked. NO-WORK", False),
    ("*NO-WORK*", False),
    ("", False),
    ("   ", False),
    ("HEARTBEAT_OK", True),
    ("  HEARTBEAT_OK\n", True),
    ("HEARTBEAT_OK all quiet", True),
    ("all quiet HEARTBEAT_OK", True),
    (f"HEARTBEAT_OK {LONG}", False),
    (f"{LONG} HEARTBEAT_OK", False),
    ("HEARTBEAT_OK" + "x" * 300, True),
    ("HEARTBEAT_OK" + "x" * 301, False),
    ("said HEARTBEAT_OK in passing", False),
    ("[SILENT]", True),
    (" [SILENT] nothing to say", True),
    ("[SILENT]ly moved on", False),
    ("then [SILENT]", False),
]


@pytest.mark.parametrize(("text", "idle"), TEXTS, ids=[repr(text[:40]) for text, _ in TEXTS])
def test_a_text_says_no_work_with_its_first_word_alone(text, idle):
    assert says_no_work(text) is idle
    assert read_outcome(ended(0, text)) is (NO_WORK if idle else DONE)


@pytest.mark.parametrize(
    ("ending", "counts"),
    [
        (ended(0), True),
        (ended(1), True),
        (ended(None, timed_out=True), True),
        (ended(None, lost=True), True),
        (ended(None, over_limit="it used $2.00"), True),
        (ended(None, by="operator"), False),
        (ended(None, by="operator", over_limit="it used $2.00"), False),
        (ended(None, by="fencing", timed_out=True), False),
    ],
)
def test_only_what_we_ended_ourselves_is_no_attempt(ending, counts):
    assert is_attempt(ending) is counts


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (ended(0), ""),
        (ended(3), "exit code 3"),
        (ended(None, signal=11), "signal 11"),
        (ended(None, timed_out=True, signal=9), "wall clock"),
        (ended(None, lost=True), "guardian"),
        (ended(0, over_limit="it used $2.00, a run may use $1.00"), "at its limit: it used $2.00, a run may use $1.00"),
        (ended(None, over_limit="it used $2.00", timed_out=True), "at its limit"),
        (ended(137, out_of_memory=True), "out of memory"),
        (ended(None, by="operator", signal=15), "operator"),
        (ended(1, result={"error": "401 from the model"}), "401 from the model"),
    ],
)
def test_an_ending_is_described_in_one_line(ending, words):
    assert words in describe(ending)
    assert bool(words) is bool(describe(ending))


results = st.none() | st.builds(
    Result,
    outcome=st.none() | st.sampled_from(["done", "no_work", "failed", "killed", "x"]),
    summary=st.sampled_from(["", "NO-WORK", "much"]),
    error=st.none() | st.just("broke"),
    error_class=st.none() | st.sampled_from(ErrorClass),
)
endings = st.builds(
    Ending,
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 64),
    timed_out=st.booleans(),
    over_limit=st.none() | st.just("it used $2.00"),
    lost=st.booleans(),
    orphaned=st.booleans(),
    out_of_memory=st.booleans(),
    by=st.none() | st.just("operator"),
    output=st.text(max_size=20) | st.sampled_from(["NO-WORK", "HEARTBEAT_OK", "[SILENT]"]),
    result=results,
)


@given(endings)
def test_nothing_turns_a_process_that_did_not_exit_0_into_a_success(ending):
    if ending.exit_code != 0 or ending.timed_out or ending.over_limit or ending.lost or ending.orphaned or ending.by:
        assert read_outcome(ending) in (FAILED, KILLED)


@given(endings)
def test_killed_means_the_wall_clock_a_limit_a_lost_run_or_a_hand_of_ours(ending):
    by_us = bool(ending.by or ending.timed_out or ending.over_limit or ending.lost or ending.orphaned)
    assert (read_outcome(ending) is KILLED) is by_us


def test_a_run_is_summed_up_by_its_summary_else_by_the_first_line_that_it_printed():
    assert summarise(Ending(exit_code=0, output="\n  read two letters \nand a card")) == "read two letters"
    declared = Result(outcome="done", summary="two letters")
    assert summarise(Ending(exit_code=0, output="read", result=declared)) == "two letters"
    assert summarise(Ending(exit_code=1)) == ""
    assert summarise(Ending(exit_code=0, output="x" * 1000)) == "x" * 200 + "…"
