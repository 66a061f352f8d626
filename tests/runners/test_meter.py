"""A run that says what it has used while it goes on is ended past what one run may use, whoever looks meanwhile."""

import json
import os
import shlex
import time
from datetime import timedelta
from pathlib import Path

import pytest

from soak.caller import Caller
from tests.runners.carrier_case import Desk, a_beat, a_process
from wakeful.core.agents import Limits
from wakeful.core.runs import Outcome, describe, is_attempt, read_outcome
from wakeful.core.standing import Spend
from wakeful.runners.endings import UNTOLD, read_ending
from wakeful.runners.meter import LOOK, Meter, read_usage
from wakeful.runners.protocol import EXIT, RESULT
from wakeful.runners.tally import Tally
from wakeful.testing.contracts.runner_case import SLACK, Yard, real

HALF_A_DOLLAR = 500_000
SOON = 2 * LOOK + SLACK
# As an agent rewrites it: whole, under another name, and renamed.
SAY = (
    """say() { printf '%s' "$1" > "said$RUN" && mv "said$RUN" "$WAKEFUL_RESULT"; }; echo "$RUN here" >> "$WITNESS"; """
)
UNTIL_ENOUGH = "; while [ ! -e enough ]; do sleep 0.02; done"


def usage(**amounts: object) -> str:
    return json.dumps({"usage": amounts})


def saying(*told: str, then: str = UNTIL_ENOUGH) -> list[str]:
    return ["/bin/sh", "-c", SAY + "; ".join(f"say {shlex.quote(each)}" for each in told) + then]


def step(name: str | None, tokens: int, **more: object) -> str:
    """A message as claude prints it while it goes on."""
    usage = {"input_tokens": tokens - 6, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 2}
    message = {"id": name, "content": [{"type": "text", "text": "…\n"}], "usage": usage | {"output_tokens": 3}}
    return json.dumps({"type": "assistant", "message": message, **more}, separators=(",", ":"))


async def looked_at(yard: Yard) -> None:
    """Longer than a run may go unseen."""
    until = time.monotonic() + 1.3 * LOOK
    await yard.until(lambda: time.monotonic() > until, "a look")


# ---- runs


@real
async def test_past_its_limit_a_run_is_ended_with_all_that_it_started_and_what_it_used_is_told(yard):
    said = usage(usd=0.61, tokens=80)
    # Deaf to a polite end, as what it has started is.
    deaf = ["/bin/sh", "-c", f"trap '' TERM; {saying(said, then='')[2]}; sleep 60 & sleep 60"]
    assignment = yard.assign(deaf, most_usd=HALF_A_DOLLAR)
    since = time.monotonic()
    ending = await (await yard.runner.start(assignment)).wait()
    assert time.monotonic() - since < SOON
    assert (ending.over_limit, ending.timed_out, ending.by, ending.signal) == (
        "it used $0.61, a run may use $0.50",
        False,
        None,
        9,
    )
    assert read_outcome(ending) is Outcome.killed and is_attempt(ending)
    assert ending.result.usage == Spend(usd=610_000, tokens=80)
    told = {"used": {"usd": 610_000, "tokens": 80}, "limits": {"usd": HALF_A_DOLLAR}}
    assert yard.record(assignment)["over_limit"] == told


@real
async def test_a_polite_end_is_heeded_and_the_last_word_is_the_bill(yard):
    last = f"{SAY} last() {{ say {shlex.quote(usage(tokens=150))}; exit 3; }}; trap last TERM; "
    script = f"{last} say {shlex.quote(usage(tokens=100))}{UNTIL_ENOUGH}"
    assignment = yard.assign(["/bin/sh", "-c", script], most_tokens=99, grace=timedelta(seconds=30))
    ending = await (await yard.runner.start(assignment)).wait()
    assert ending.over_limit == "it used 100 tokens, a run may use 99 tokens"
    assert (ending.exit_code, ending.result.usage) == (3, Spend(tokens=150))
    assert read_outcome(ending) is Outcome.killed


@real
async def test_a_run_at_its_limit_or_without_one_goes_on(yard):
    at_limit = yard.assign(saying(usage(usd=0.5, tokens=80)), most_usd=HALF_A_DOLLAR, most_tokens=80)
    unlimited = yard.assign(saying(usage(usd=999, tokens=10**9)))
    held = [await yard.runner.start(each) for each in (at_limit, unlimited)]
    for each in (at_limit, unlimited):
        await yard.until((each.folder / RESULT).exists, "what it says")
    await looked_at(yard)
    (yard.folder / "enough").touch()
    for each in held:
        ending = await each.wait()
        assert (ending.exit_code, ending.over_limit, read_outcome(ending)) == (0, None, Outcome.done)


@real
async def test_a_half_written_file_is_waited_for_and_what_comes_of_it_counts(yard):
    half = """ printf '{"usage": {"usd": 9' > "$WAKEFUL_RESULT"; echo "$RUN half" >> "$WITNESS" """
    more = """; printf '.5}}' >> "$WAKEFUL_RESULT"; while true; do sleep 0.02; done"""
    assignment = yard.assign(["/bin/sh", "-c", SAY + half + UNTIL_ENOUGH + more], most_usd=HALF_A_DOLLAR)
    held = await yard.runner.start(assignment)
    await yard.hear(assignment, 2)
    await looked_at(yard)
    assert not (assignment.folder / EXIT).exists()
    (yard.folder / "enough").touch()
    assert (await held.wait()).over_limit == "it used $9.50, a run may use $0.50"


@real
async def test_what_was_read_is_settled_where_the_file_was_cut_off(yard):
    cut = """trap 'printf "{" > "$WAKEFUL_RESULT"; exit' TERM; """
    assignment = yard.assign(["/bin/sh", "-c", cut + saying(usage(usd=0.61))[2]], most_usd=HALF_A_DOLLAR)
    ending = await (await yard.runner.start(assignment)).wait()
    assert (assignment.folder / RESULT).read_text() == "{"
    assert ending.result.usage == Spend(usd=610_000)
    assert describe(ending) == "ended at its limit: it used $0.61, a run may use $0.50"


@real
async def test_a_run_whose_engine_was_killed_is_ended_at_its_limit_and_adopted_with_that_ending(yard):
    command = ["/bin/sh", "-c", f'echo "$RUN here" >> "$WITNESS"{UNTIL_ENOUGH}; rm enough; {saying(usage(usd=2))[2]}']
    assignment = yard.assign(command, most_usd=HALF_A_DOLLAR)
    caller = Caller([assignment])
    caller.hear(f"held {assignment.run}")
    await yard.hear(assignment)
    caller.kill()
    (yard.folder / "enough").touch()
    await yard.until((assignment.folder / EXIT).exists, "the exit record")
    ending = await (await yard.another_runner().adopt(assignment.run, assignment.folder)).wait()
    assert ending.over_limit == "it used $2.00, a run may use $0.50"


@real
async def test_who_ends_on_purpose_is_still_told_where_a_limit_came_first(yard):
    command = ["/bin/sh", "-c", f'trap \'echo "$RUN asked" >> "$WITNESS"\' TERM; {saying(usage(usd=2))[2]}']
    assignment = yard.assign(command, most_usd=HALF_A_DOLLAR, grace=timedelta(minutes=5))
    held = await yard.runner.start(assignment)
    await yard.hear(assignment, 2)
    await held.end("operator", at_once=True)
    ending = await held.wait()
    assert ending.by == "operator" and ending.over_limit and not is_attempt(ending)


@real
async def test_the_tokens_that_claude_prints_as_it_goes_count_too(yard):
    printed = "\n".join((step("a", 40), step("a", 60), step("b", 30)))
    script = f"printf '%s\\n' {shlex.quote(printed)}{UNTIL_ENOUGH}"
    below = yard.assign(["/bin/sh", "-c", script], most_tokens=90)
    above = yard.assign(["/bin/sh", "-c", script], most_tokens=89, most_usd=1)
    held = await yard.runner.start(below)
    ending = await (await yard.runner.start(above)).wait()
    assert ending.over_limit == "it used 90 tokens, a run may use 89 tokens"
    assert ending.result.usage == Spend(tokens=90) and read_outcome(ending) is Outcome.killed
    (yard.folder / "enough").touch()
    assert read_outcome(await held.wait()) is Outcome.done


def test_an_agent_is_held_to_what_it_declares(tmp_path):
    with Desk(tmp_path).open() as desk:
        for limits, most in (
            (Limits(), (None, None)),
            (Limits(usd_per_run=7), (7, None)),
            (Limits(usd_per_day=1, tokens_per_run=9), (None, 9)),
        ):
            made = desk.carrier._assign(a_beat(a_process("true", limits=limits)), None, None, None)
            assert (made.most_usd, made.most_tokens) == most


# ---- records


def test_a_record_without_the_field_reads_as_before_and_one_of_another_kind_is_believed_for_what_it_says(tmp_path):
    for told, said in (
        ({}, None),
        ({"over_limit": None}, None),
        ({"over_limit": "$3 of $2"}, UNTOLD),
        ({"over_limit": {"used": {"euro": 3}, "limits": {"euro": 2}}}, UNTOLD),
        ({"over_limit": {"used": {"tokens": 3}, "limits": {"tokens": 2}, "unit": "tokens"}}, "it used 3 tokens"),
    ):
        (tmp_path / EXIT).write_text(json.dumps({"version": 1, "exit_code": 0, **told}))
        ending = read_ending(tmp_path)
        assert (ending.over_limit or "").startswith(said or ""), told
        assert (read_outcome(ending) is Outcome.killed) is (said is not None)


# ---- the meter


@pytest.mark.parametrize(
    ("written", "used"),
    [
        (usage(usd=0.25, tokens=9), {"usd": 250_000, "tokens": 9}),
        (usage(usd=3), {"usd": 3_000_000, "tokens": 0}),
        (usage(tokens=True, usd="9"), {"usd": 0, "tokens": 0}),
        (usage(tokens=-9, usd=float("nan")), {"usd": 0, "tokens": 0}),
        (usage(tokens=10**400, usd=float("inf")), {"usd": 0, "tokens": 0}),
        ('{"usage": null}', {}),
        ('{"usage": [1]}', {}),
        ('{"outcome": "done"}', {}),
        ("[1, 2]", {}),
        ('{"usage": {"usd": 9', {}),
        ("", {}),
        ("[" * 100_000, {}),
        ("\udcff{}", {}),
    ],
)
def test_only_plain_and_sane_numbers_of_a_whole_file_are_usage(written, used):
    assert read_usage(written.encode(errors="surrogateescape")) == used


def test_a_file_is_read_when_it_has_changed_and_no_oftener_than_once_a_second(tmp_path, monkeypatch):
    reads: list[str] = []
    opened = os.open
    monkeypatch.setattr(os, "open", lambda path, *more: (reads.append(path), opened(path, *more))[1])
    path = str(tmp_path / RESULT)
    meter = Meter(path, {"tokens": 9})
    assert not meter.is_over(100.0) and reads == []
    Path(path).write_text(usage(tokens=9))
    # Older than what the clock of files cannot tell apart.
    settled = os.stat(path).st_ctime + 1
    monkeypatch.setattr(time, "time", lambda: settled)
    assert not meter.is_over(100.5) and reads == []
    assert not any(meter.is_over(101.0 + second) for second in range(5)) and len(reads) == 1
    Path(path).write_text(usage(tokens=8))
    assert not meter.is_over(110.0) and len(reads) == 2
    # So young that the next change could bear the same stamps: it is looked at again.
    monkeypatch.setattr(time, "time", lambda: os.stat(path).st_ctime)
    Path(path).write_text(usage(tokens=7))
    assert not meter.is_over(111.0) and not meter.is_over(112.0) and len(reads) == 4
    Path(path).write_text(usage(tokens=10))
    assert meter.is_over(113.0)
    assert meter.over == {"used": {"usd": 0, "tokens": 10}, "limits": {"tokens": 9}}
    assert not meter.is_over(200.0)


def test_what_is_no_file_or_too_large_does_not_hold_it_up(tmp_path):
    path = tmp_path / RESULT
    meter = Meter(str(path), {"tokens": 9})
    for second, make in enumerate((lambda: os.mkfifo(path), lambda: path.mkdir(), lambda: path.symlink_to(path))):
        make()
        assert not meter.is_over(float(second))
        path.rmdir() if path.is_dir() else path.unlink()
    path.write_text(usage(tokens=10, padding="x" * 1024 * 1024))
    assert not meter.is_over(10.0)


def test_without_limits_nobody_looks(tmp_path):
    (tmp_path / RESULT).write_text(usage(tokens=10))
    meter = Meter(str(tmp_path / RESULT), {})
    assert meter.look_at == float("inf") and not meter.is_over(1e18)


# ---- the tally


PRINTED = "\n".join(
    (
        "a line of text",
        step("a", 50),
        "",
        step("a", 106),
        step("c", 900, parent_tool_use_id="toolu_1"),
        step("b", 206),
        step("b", 16),
        step(None, 16),
        "x" * 100_000,
        f" {step('d', 1_000)}",
        '{"type":"assistant","message":"none"}',
        '{"type":"assistant","message":{"id":"e","usage":{"input_tokens":-9,"output_tokens":"7"}}}',
        '{"type":"assistant","message":{"id":"e","usage":{"input_tok',
        step("f", 6),
        step("g", 1_000),
    )
).encode()


@pytest.mark.parametrize("chunk", [1, 7, 64, 1_000_000])
def test_each_step_counts_once_by_the_most_that_was_said_of_it_however_the_output_is_cut(chunk):
    tally = Tally()
    for start in range(0, len(PRINTED), chunk):
        tally.hear(PRINTED[start : start + chunk])
    # The last line is not whole yet.
    assert tally.tokens == 106 + 206 + 6
    tally.hear(b"\n")
    assert tally.tokens == 106 + 206 + 6 + 1_000


def test_a_line_of_any_length_costs_no_memory():
    tally = Tally()
    tally.hear(b"text that is no message")
    assert tally._part == b""
    tally.hear(b'\n{"type":"assistant",')
    for _ in range(100):
        tally.hear(b"x" * 100_000)
        assert len(tally._part) <= 4 * 1024 * 1024 + 100_000
    assert tally._part == b""
    tally.hear(b"\n" + step("a", 9).encode() + b"\n")
    assert tally.tokens == 9
