"""What a run says of itself, in its result file and in what its program prints."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.results import combine, read_output, read_result
from wakeful.core.runs import Ending, ErrorClass, Outcome, Result, read_outcome
from wakeful.core.standing import Spend

Json = dict[str, Any]
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
EPOCH = int(NOON.timestamp())


def outcome_of(result: Result | None, output: str = "") -> Outcome:
    return read_outcome(Ending(exit_code=0, result=result, output=output))


# ---- the result file


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ('{"result": {"pages": [1, "ü"]}}', '{"pages": [1, "\\u00fc"]}'),
        ('{"value": 3}', "3"),
        ('{"result": "a text"}', "a text"),
        ('{"result": false, "value": 3}', "false"),
        ('{"result": null, "summary": "words"}', None),
        ('{"summary": "words"}', None),
    ],
)
def test_what_a_result_file_says_the_work_came_to_is_kept_whatever_it_is(written, kept):
    assert read_result(written).value == kept
    said = combine(read_result(written), Result(summary="printed"))
    assert said is not None and said.value == kept


def test_a_whole_result_is_read():
    text = """{"outcome": "failed", "summary": "half of it", "usage": {"tokens": 1200, "usd": 0.0421},
               "error": {"class": "quota", "message": "429", "retry_at": "2026-03-02T13:00:00+01:00"}}"""
    assert read_result(text) == Result(
        outcome="failed",
        summary="half of it",
        usage=Spend(usd=42_100, tokens=1200),
        error="429",
        error_class=ErrorClass.quota,
        retry_at=NOON,
    )
    assert read_result(text).retry_at.tzinfo is UTC


READABLE = [
    ('{"outcome": "done"}', Result(outcome="done")),
    ('{"outcome": "no_work", "summary": "quiet"}', Result(outcome="no_work", summary="quiet")),
    ("{}", Result()),
    ('\ufeff{"outcome": "done"}\n', Result(outcome="done")),
    ('{"outcome": null, "summary": null, "usage": null, "error": null}', Result()),
    ('{"usage": {}}', Result()),
    ('{"usage": {"tokens": 7}}', Result(usage=Spend(tokens=7))),
    ('{"usage": {"tokens": 7.0, "usd": 2}}', Result(usage=Spend(usd=2_000_000, tokens=7))),
    ('{"usage": {"usd": 0.1}}', Result(usage=Spend(usd=100_000))),
    (
        '{"outcome": "done", "mood": "good", "usage": {"tokens": 1, "watts": "NaN"}}',
        Result(outcome="done", usage=Spend(tokens=1)),
    ),
    ('{"error": "no luck"}', Result(error="no luck", error_class=ErrorClass.other)),
    ('{"error": {"class": "auth"}}', Result(error="error of class auth", error_class=ErrorClass.auth)),
    ('{"error": {"class": "weather"}}', Result(error="error of class weather", error_class=ErrorClass.other)),
    ('{"error": {}}', Result(error="failed without a message", error_class=ErrorClass.other)),
    ('{"summary": "a\\u0000b\\ud800c"}', Result(summary="a\ufffdb\ufffdc")),
]


@pytest.mark.parametrize(("text", "result"), READABLE, ids=[row[0][:50] for row in READABLE])
def test_what_a_result_leaves_out_is_left_out_and_what_is_unknown_is_passed_over(text, result):
    assert read_result(text) == result


UNREADABLE = [
    ("", "found nothing"),
    (" \n", "found nothing"),
    ('{"outcome": "done"', "no JSON"),
    ("done", "no JSON"),
    ('["done"]', 'found ["done"]'),
    ('"done"', 'found "done"'),
    ('{"outcome": "great"}', 'done, no_work or failed, found "great"'),
    ('{"outcome": true}', "a text as outcome, found true"),
    ('{"summary": ["a"]}', "a text as summary"),
    ('{"usage": 12}', "an object as usage, found 12"),
    ('{"usage": {"tokens": true}}', "a number as tokens, found true"),
    ('{"usage": {"tokens": 1.5}}', "a whole number as tokens, found 1.5"),
    ('{"usage": {"tokens": -1}}', "tokens from 0 to"),
    ('{"usage": {"tokens": 1000000000001}}', "tokens from 0 to"),
    ('{"usage": {"usd": -0.01}}', "usd from 0 to"),
    ('{"usage": {"usd": NaN}}', "found NaN"),
    ('{"usage": {"usd": -Infinity}}', "found -Infinity"),
    ('{"usage": {"usd": 1e999}}', "usd from 0 to"),
    ('{"usage": {"usd": 1' + "0" * 400 + "}}", "usd from 0 to"),
    ('{"usage": {"usd": ' + "9" * 5000 + "}}", "no JSON"),
    ('{"error": 7}', "an object as error, found 7"),
    ('{"error": {"class": 429}}', "a text as class, found 429"),
    ('{"error": {"class": "quota", "retry_at": "soon"}}', 'retry_at, such as 2026-03-02T12:00:00Z, found "soon"'),
    ('{"error": {"class": "quota", "retry_at": "2026-03-02T12:00:00"}}', "with its offset"),
    ('{"error": {"class": "quota", "retry_at": 1772452800}}', "found 1772452800"),
    ('{"error": {"class": "quota", "retry_at": "0001-01-01T00:00:00+14:00"}}', "with its offset"),
    ("[" * 100_000, "nested too deeply"),
]


@pytest.mark.parametrize(("text", "complaint"), UNREADABLE, ids=[row[0][:50] for row in UNREADABLE])
def test_a_result_that_cannot_be_read_is_a_failure_that_says_why(text, complaint):
    result = read_result(text)
    assert result.error_class is ErrorClass.other
    assert result.error.startswith("the result file cannot be read: expected ")
    assert complaint in result.error
    assert len(result.error) < 300
    assert outcome_of(result, output="NO-WORK") is Outcome.failed


KEYS = st.sampled_from(
    ["outcome", "summary", "usage", "tokens", "usd", "error", "class", "retry_at", "message", "type", "result"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


@given(st.text() | JSON.map(json.dumps))
def test_no_text_at_all_makes_reading_raise_and_no_usage_is_negative_or_absurd(text):
    for result in (read_result(text), read_output(text)):
        if result is not None and result.usage is not None:
            assert 0 <= result.usage.usd <= 10**12 and 0 <= result.usage.tokens <= 10**12
        if result is not None:
            (result.summary + (result.error or "")).encode()


# ---- claude -p --output-format json


def claude(**more) -> Json:
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "duration_ms": 4047,
        "result": "wrote a page",
        "session_id": "0f1e",
        "total_cost_usd": 0.1234567,
        "usage": {
            "input_tokens": 3,
            "cache_creation_input_tokens": 2783,
            "cache_read_input_tokens": 14707,
            "output_tokens": 200,
            "service_tier": "standard",
        },
        **more,
    }


INIT = {"type": "system", "subtype": "init", "session_id": "0f1e", "tools": ["Bash"]}
ASSISTANT = {
    "type": "assistant",
    "message": {"role": "assistant", "content": [{"type": "text", "text": "NO-WORK: quiet"}]},
}
TOOL = {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "tool_use", "name": "Bash"}]}}
REJECTED = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": EPOCH}}
BILL = Spend(usd=123_457, tokens=3 + 2783 + 14707 + 200)


def lines(*events: Json) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(claude()),
        json.dumps(claude(), indent=2) + "\n",
        lines(INIT, ASSISTANT, TOOL, claude()),
        json.dumps([INIT, ASSISTANT, claude()]),
        "a warning before it\n" + lines(claude()) + "\n",
    ],
    ids=["json", "laid out", "stream-json", "verbose json", "after a warning"],
)
def test_the_result_object_of_claude_is_found_in_each_of_its_formats(text):
    assert read_output(text) == Result(summary="wrote a page", usage=BILL)


def test_no_work_is_looked_for_in_the_result_and_not_in_the_json_around_it():
    assert outcome_of(read_output(lines(claude(result="NO-WORK: nothing new")))) is Outcome.no_work
    assert outcome_of(read_output(lines(claude(result="I fixed the NO-WORK bug")))) is Outcome.done


def test_an_empty_result_is_replaced_by_the_last_words_of_the_agent():
    assert read_output(lines(INIT, ASSISTANT, TOOL, claude(result=""))).summary == "NO-WORK: quiet"
    assert read_output(lines(claude(result=""))).summary == ""


def test_other_line_separators_inside_a_text_do_not_break_it():
    text = json.dumps(claude(result="one\u2028two\x85three"), ensure_ascii=False)
    assert read_output(text).summary == "one\u2028two\x85three"


CLAUDE_FAILURES = [
    (claude(is_error=True, result="API Error: 500"), "API Error: 500", ErrorClass.other),
    (claude(is_error=True, result="Overloaded", api_error_status=529), "Overloaded (status 529)", ErrorClass.other),
    (
        claude(is_error=True, result="", api_error_status=401),
        "the program reports an error (status 401)",
        ErrorClass.auth,
    ),
    (claude(is_error=True, result="API Error: 403 no", api_error_status=403), "API Error: 403 no", ErrorClass.auth),
    (claude(is_error=True, result="slow down", api_error_status=429), "slow down (status 429)", ErrorClass.quota),
    (
        claude(is_error=True, result="You've hit your limit · resets 3pm"),
        "You've hit your limit · resets 3pm",
        ErrorClass.quota,
    ),
    (claude(subtype="error_max_turns", is_error=True, result=None), "error_max_turns", ErrorClass.other),
    (claude(subtype="error_max_turns", result=None), "error_max_turns", ErrorClass.other),
    (
        claude(subtype="error_during_execution", is_error=True, result=None, errors=["first", 2, "second"]),
        "first; second",
        ErrorClass.other,
    ),
]


@pytest.mark.parametrize(("event", "error", "kind"), CLAUDE_FAILURES, ids=[row[1] for row in CLAUDE_FAILURES])
def test_an_error_of_claude_is_a_failure_that_is_still_paid_for(event, error, kind):
    result = read_output(lines(INIT, event))
    assert (result.error, result.error_class, result.usage) == (error, kind, BILL)
    assert outcome_of(result) is Outcome.failed


def test_a_quota_that_is_used_up_says_when_it_returns():
    old = read_output(lines(claude(is_error=True, result=f"Claude AI usage limit reached|{EPOCH}")))
    assert (old.error_class, old.retry_at) == (ErrorClass.quota, NOON)
    new = read_output(lines(INIT, REJECTED, claude(is_error=True, result="429", api_error_status=429)))
    assert (new.error_class, new.retry_at) == (ErrorClass.quota, NOON)
    other = read_output(lines(INIT, REJECTED, claude(is_error=True, result="500", api_error_status=500)))
    assert (other.error_class, other.retry_at) == (ErrorClass.other, None)


@pytest.mark.parametrize(
    "bill",
    [
        {"total_cost_usd": -1},
        {"total_cost_usd": "free"},
        {"usage": {"input_tokens": -5}},
        {"total_cost_usd": float("nan")},
    ],
    ids=str,
)
def test_an_odd_bill_is_not_believed_and_does_not_fail_the_run(bill):
    result = read_output(json.dumps(claude(**bill)))
    assert result.usage is None
    assert outcome_of(result) is Outcome.done


def test_a_bill_of_the_wrong_shape_counts_only_what_can_be_read():
    assert read_output(lines(claude(usage=[1]))).usage == Spend(usd=123_457)
    assert read_output(lines(claude(usage={"output_tokens": 5}, total_cost_usd=None))).usage == Spend(tokens=5)


# ---- codex exec --json

THREAD = {"type": "thread.started", "thread_id": "0199a213"}
TURN = {"type": "turn.started"}
COMMAND = {
    "type": "item.completed",
    "item": {"id": "item_1", "type": "command_execution", "command": "ls", "status": "completed"},
}


def message(text: str) -> Json:
    return {"type": "item.completed", "item": {"id": "item_3", "type": "agent_message", "text": text}}


def completed(tokens: int = 24_763) -> Json:
    usage = {"input_tokens": tokens, "cached_input_tokens": 24_448, "output_tokens": 122, "reasoning_output_tokens": 64}
    return {"type": "turn.completed", "usage": usage}


def test_codex_is_read_for_its_last_message_and_its_usage_with_cached_input_counted_once():
    text = lines(THREAD, TURN, message("looking"), COMMAND, message("NO-WORK: quiet"), completed())
    assert read_output(text) == Result(summary="NO-WORK: quiet", usage=Spend(tokens=24_763 + 122))
    assert outcome_of(read_output(text)) is Outcome.no_work


def test_the_usage_of_codex_is_that_of_the_whole_thread_and_is_not_added_up():
    assert read_output(lines(THREAD, TURN, completed(100), TURN, completed(300))).usage == Spend(tokens=422)


def test_codex_that_prints_only_zeros_has_not_said_what_it_used():
    usage = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
    assert read_output(lines(THREAD, TURN, {"type": "turn.completed", "usage": usage})).usage is None


def test_a_failed_turn_of_codex_is_a_failure():
    failed = {"type": "turn.failed", "error": {"message": "stream disconnected"}}
    result = read_output(lines(THREAD, TURN, message("half"), {"type": "error", "message": "first"}, failed))
    assert (result.outcome, result.error, result.error_class) == ("failed", "stream disconnected", ErrorClass.other)
    assert read_output(lines(THREAD, {"type": "error", "message": "fatal"})).error == "fatal"
    assert (
        read_output(lines(THREAD, {"type": "error", "message": "x"}, {"type": "turn.failed", "error": None})).error
        == "x"
    )


def test_an_error_that_codex_overcame_is_none():
    text = lines(THREAD, TURN, {"type": "error", "message": "Reconnecting... 1/5"}, message("done"), completed())
    assert outcome_of(read_output(text)) is Outcome.done


def test_a_used_up_limit_of_codex_is_a_quota():
    failed = {"type": "turn.failed", "error": {"message": "You've hit your usage limit. Try again later."}}
    assert read_output(lines(THREAD, TURN, failed)).error_class is ErrorClass.quota


def test_an_output_that_lost_its_middle_is_still_read():
    text = lines(THREAD, TURN)[:-8] + "\n[... 4711 bytes left out ...]\n" + '"}}\n' + lines(message("end"), completed())
    assert read_output(text) == Result(summary="end", usage=Spend(tokens=24_885))


# ---- everything else is text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n \n",
        "NO-WORK",
        "wrote a page\n",
        "{}",
        "[]",
        "[1, 2]",
        '{"type": "result"}',
        '{"type": "result", "subtype": "success"',
        '{"outcome": "done"}',
        lines(claude()) + "and then some more\n",
        lines(INIT, ASSISTANT),
        "first\n" + lines(THREAD, message("NO-WORK"), completed()),
        "[" * 100_000,
        "{" * 100_000,
        "a\n}",
    ],
)
def test_what_is_not_known_is_plain_text(text):
    assert read_output(text) is None


# ---- both together


def test_the_file_is_believed_first_and_the_output_fills_in():
    file = Result(outcome="no_work", usage=Spend(tokens=5))
    output = Result(summary="wrote a page", usage=Spend(usd=9, tokens=7))
    assert combine(file, output) == Result(outcome="no_work", summary="wrote a page", usage=Spend(usd=9, tokens=5))
    assert combine(None, output) == output
    assert combine(file, None) == file
    assert combine(None, None) is None
    assert combine(Result(summary="mine"), output).summary == "mine"
    assert combine(Result(), output) == output


def test_an_unreadable_file_stays_a_failure_and_is_paid_for_as_the_output_says():
    both = combine(read_result("{"), Result(summary="wrote a page", usage=Spend(usd=9)))
    assert outcome_of(both) is Outcome.failed
    assert both.usage == Spend(usd=9)
    assert "cannot be read" in both.error


def test_an_error_is_taken_whole_from_one_of_the_two():
    quota = Result(outcome="failed", error="429", error_class=ErrorClass.quota, retry_at=NOON)
    assert combine(Result(outcome="failed"), quota) == quota
    assert combine(Result(summary="half"), quota).retry_at == NOON
    blamed = combine(Result(error="no key", error_class=ErrorClass.auth), quota)
    assert (blamed.outcome, blamed.error, blamed.error_class, blamed.retry_at) == (
        "failed",
        "no key",
        ErrorClass.auth,
        None,
    )


@pytest.mark.parametrize("outcome", ["done", "no_work"])
def test_a_file_that_says_it_went_well_has_left_out_no_error(outcome):
    both = combine(Result(outcome=outcome), Result(outcome="failed", error="max turns", error_class=ErrorClass.other))
    assert both == Result(outcome=outcome)
