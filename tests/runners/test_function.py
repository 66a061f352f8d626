"""What a handler returns, raises, prints and breaks is its task's own end, and nobody else's."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runners.function_case import OwnRunner, a_shift, ends, outcomes, results
from wakeful.core.errors import Mistake
from wakeful.core.runs import Ending, ErrorClass, Outcome, describe, read_outcome
from wakeful.core.standing import Spend
from wakeful.runners.duty import Duty
from wakeful.runners.function import FunctionRunner, Recycling
from wakeful.runners.link import PART
from wakeful.runners.protocol import Found
from wakeful.testing.contracts.runner_case import GRACE, Yard, real

DONE, NO_WORK, FAILED, KILLED = Outcome.done, Outcome.no_work, Outcome.failed, Outcome.killed


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with Yard(tmp_path, lambda: OwnRunner(tmp_path / "workers")).open() as yard:
        yield yard


def runner_of(yard: Yard) -> FunctionRunner:
    assert isinstance(yard.runner, FunctionRunner)
    return yard.runner


async def carried_out(yard: Yard, *deeds: str, **changes):
    held = await runner_of(yard).start(a_shift(yard, deeds, **changes))
    return held, await ends(held)


# ---- warm workers


@real
async def test_a_second_shift_finds_the_same_warm_process(yard):
    runner = runner_of(yard)
    first = await results(await runner.start(a_shift(yard, ["pid", "calls", "worker"])))
    second = await results(await runner.start(a_shift(yard, ["pid", "calls", "worker"])))
    assert (first[0], first[2]) == (second[0], second[2])
    assert (first[1], second[1]) == (2, 5)


@real
async def test_what_differs_for_good_is_another_worker(yard):
    runner = runner_of(yard)
    (first,) = await results(await runner.start(a_shift(yard, ["worker"])))
    (other,) = await results(await runner.start(a_shift(yard, ["worker"], variables={"GREETING": "hi"})))
    (again,) = await results(await runner.start(a_shift(yard, ["worker"])))
    assert first == again != other


@real
async def test_a_shift_of_32_is_done_in_order_and_each_task_has_its_own_ending(yard):
    deeds = ["text", "no work", "raise", "list"] * 8
    held, heard = await carried_out(yard, *deeds)
    assert list(heard) == list(range(1, 33))
    assert [read_outcome(end.ending) for end in heard.values()] == [DONE, NO_WORK, FAILED, DONE] * 8
    assert [end.result for end in heard.values()][:4] == ["read it", "NO-WORK: nothing new", None, '[1, {"two": null}]']
    ending = await held.wait()
    assert (ending.exit_code, read_outcome(ending)) == (0, DONE)
    assert ending.result.summary == "32 tasks: 16 done, 8 failed, 8 no_work"


@real
async def test_after_so_many_shifts_the_process_is_forked_afresh_and_the_worker_stays(yard):
    runner = OwnRunner(yard.folder / "workers", recycling=Recycling(shifts=2))
    seen = [await results(await runner.start(a_shift(yard, ["pid", "worker", "calls"]))) for _ in range(4)]
    await runner.close()
    pids, workers, calls = zip(*seen, strict=True)
    assert pids[0] == pids[1] != pids[2] == pids[3]
    assert len(set(workers)) == 1
    assert calls == (3, 6, 3, 6)


@real
async def test_a_process_that_has_grown_is_forked_afresh(yard):
    runner = OwnRunner(yard.folder / "workers", recycling=Recycling(growth=8 * 1024 * 1024))
    seen = [await results(await runner.start(a_shift(yard, ["pid", "hoard"]))) for _ in range(3)]
    await runner.close()
    assert len({pid for pid, _ in seen}) > 1


@real
async def test_an_old_worker_is_replaced_as_a_whole(yard):
    runner = OwnRunner(yard.folder / "workers", recycling=Recycling(age=GRACE * 0))
    workers = [(await results(await runner.start(a_shift(yard, ["worker"]))))[0] for _ in range(2)]
    await runner.close()
    assert workers[0] != workers[1]


@real
async def test_a_handler_that_was_edited_is_imported_anew(yard):
    module = yard.folder / "desk.py"
    module.write_text("def work(run):\n    return 1\n")
    runner = runner_of(yard)
    assert await results(await runner.start(a_shift(yard, ["x"], "desk:work", root=yard.folder))) == [1]
    module.write_text("def work(run):\n    return 22\n")
    os.utime(module, ns=(1, 1))
    assert await results(await runner.start(a_shift(yard, ["x"], "desk:work", root=yard.folder))) == [22]


@real
async def test_no_more_workers_are_kept_idle_than_allowed_and_none_after_closing(yard):
    runner = OwnRunner(yard.folder / "workers", recycling=Recycling(idle=1))
    for greeting in ("a", "b"):
        await (await runner.start(a_shift(yard, ["pid"], variables={"GREETING": greeting}))).wait()
    await yard.until(lambda: len(list((yard.folder / "workers").iterdir())) == 1, "the end of the older worker")
    await runner.close()


# ---- what a handler returns


@real
async def test_what_a_handler_returns_is_its_result(yard):
    _, heard = await carried_out(yard, "nothing", "text", "number", "list", "spent", "declared no work", "leave well")
    kept = [heard[task].result for task in sorted(heard)]
    assert kept == [None, "read it", "3", '[1, {"two": null}]', '{"pages": 2}', None, None]
    assert [read_outcome(end.ending) for end in heard.values()] == [DONE] * 5 + [NO_WORK, DONE]
    assert heard[5].ending.result.usage == Spend(usd=40_000, tokens=1_200)
    assert heard[5].ending.result.summary == "cheap"


@real
async def test_the_usage_of_a_shift_is_that_of_its_tasks_together(yard):
    held, _ = await carried_out(yard, "spent", "nothing", "spent")
    assert (await held.wait()).result.usage == Spend(usd=80_000, tokens=2_400)


@real
async def test_a_quota_that_is_used_up_holds_the_agent(yard):
    held, heard = await carried_out(yard, "quota", "nothing")
    ending = await held.wait()
    assert heard[1].ending.result.error_class is ErrorClass.quota
    assert (read_outcome(ending), ending.result.error_class) == (FAILED, ErrorClass.quota)


@real
async def test_what_json_cannot_hold_is_refused_before_the_task_is_called_done(yard):
    _, heard = await carried_out(yard, "set", "not a number", "huge", "nothing")
    assert [read_outcome(end.ending) for end in heard.values()] == [FAILED, FAILED, FAILED, DONE]
    assert {heard[task].ending.result.error_class for task in (1, 2, 3)} == {ErrorClass.other}
    assert "the result cannot be written as JSON: " in describe(heard[1].ending)
    assert "type set" in describe(heard[1].ending) and "handlers.py" not in describe(heard[1].ending)
    assert "and more than" in describe(heard[3].ending)


@real
async def test_a_failure_is_told_by_its_last_line_and_where_it_happened(yard):
    _, heard = await carried_out(yard, "raise", "leave badly", "leave with words", "interrupt", "declared failure")
    assert [read_outcome(end.ending) for end in heard.values()] == [FAILED] * 5
    told = describe(heard[1].ending).splitlines()
    assert told[0] == "KeyError: 'missing'"
    assert "function_deeds.py" in told[1] and "handlers.py" not in describe(heard[1].ending)
    assert heard[2].ending.exit_code == 4
    assert describe(heard[3].ending) == "the printer is on fire"
    assert describe(heard[4].ending).startswith("KeyboardInterrupt")
    assert describe(heard[5].ending) == "the other half"


@real
async def test_an_async_handler_is_awaited(yard):
    _, heard = await carried_out(yard, "x", "y", handler="function_deeds:gently")
    assert [end.result for end in heard.values()] == ["awaited 1", "awaited 2"]


@real
async def test_a_handler_is_told_what_its_run_is_about(yard):
    variables = {"WAKEFUL_RUN_ID": "9", "WAKEFUL_BRIEFING": "nowhere", "GREETING": "hi"}
    held = await runner_of(yard).start(
        a_shift(yard, ["x", "y"], "function_deeds:about", variables=variables, attempt=2)
    )
    first, second = await results(held)
    common = {"attempt": [2, 6], "in_time": True, "WAKEFUL_ATTEMPT": "2", "WAKEFUL_RUN_ID": "9"}
    common |= {"WAKEFUL_BRIEFING": None, "GREETING": "hi"}
    assert first == {"id": 1, "title": "task 1", "WAKEFUL_TASK_ID": "1", **common}
    assert second == {"id": 2, "title": "task 2", "WAKEFUL_TASK_ID": "2", **common}


@real
async def test_a_beat_is_one_call_and_its_ending_is_the_runs(yard):
    inbox = [{"id": 7, "from": "wren", "origin": "agent", "trust": "limited", "body": "look"}]
    held = await runner_of(yard).start(a_shift(yard, handler="function_deeds:beat", inbox=inbox))
    assert await ends(held) == {}
    ending = await held.wait()
    assert read_outcome(ending) is DONE
    told = '{"agent": "moss", "state": "tidy", "hits": 2, "cause": "timer", "subject": "beat"'
    assert ending.result.summary == told + ', "inbox": [[7, "wren", "limited", "look"]], "task": null}'
    assert runner_of(yard).find(held.folder) is Found.ended


# ---- what a handler prints


@real
async def test_what_a_task_prints_is_its_own_that_of_its_children_too(yard):
    held, heard = await carried_out(yard, "nothing", "print", "text", "bytes", "print")
    printed = [heard[task].ending.output for task in sorted(heard)]
    assert printed == ["", "to out\nto err\nfrom a child\n", "", "\ufffd\ufffdbad", printed[1]]
    assert (held.folder / "stdout").read_bytes() == b"to out\nto err\nfrom a child\n\xff\x00bad" + printed[1].encode()


@real
async def test_the_ends_of_short_tasks_are_heard_while_a_long_one_follows_them(yard):
    held = await yard.runner.start(a_shift(yard, ["nothing"] * 9 + ["wait"]))
    heard = 0
    async for batch in held.batches():
        heard += len(batch)
        if heard == 9:
            assert not held.over
            (yard.folder / "enough").touch()
    assert heard == 10


@real
async def test_of_a_flood_the_last_is_kept_and_how_much_is_not(yard):
    held, heard = await carried_out(yard, "flood", "print", output_limit=64 * 1024)
    kept = heard[1].ending.output
    assert 4_000 < len(kept) < 4_100 and kept.startswith("[... ") and kept.endswith("xxxthe last words\n")
    assert heard[2].ending.output.startswith("to out")
    assert (held.folder / "stdout").stat().st_size <= 64 * 1024


@real
async def test_a_handler_that_closes_its_output_costs_nothing_else(yard):
    _, heard = await carried_out(yard, "close stdout", "nothing", "text")
    assert [read_outcome(end.ending) for end in heard.values()] == [DONE] * 3


@real
async def test_a_secret_is_in_nothing_that_a_task_leaves_behind(yard):
    word = "open sesame 4711"
    deeds = ["secret", "secret error"]
    held, heard = await carried_out(yard, *deeds, variables={"PASSWORD": word}, secrets=(word,))
    assert heard[1].ending.output == "the word is [redacted]\n"
    assert heard[1].result == '{"word": "[redacted]"}'
    assert describe(heard[2].ending) == "[redacted]"
    left = [path for path in yard.folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]
    assert left == []
    assert (held.folder / "stdout").read_text() == "the word is [redacted]\n"


@real
async def test_somebody_elses_secret_is_not_in_what_a_handler_prints_and_it_is_not_told_of_it(yard):
    word = "open sesame 4711"
    held, heard = await carried_out(yard, "secret", variables={"PASSWORD": word}, hidden=(word,))
    assert heard[1].ending.output == "the word is [redacted]\n"
    assert (held.folder / "stdout").read_text() == "the word is [redacted]\n"
    control, _, body = a_shift(yard, ["nothing"], hidden=(word,)).message()[1:-1].partition(PART)
    duty = Duty(control, body, str(yard.folder))
    assert word in duty.secrets and word.encode() in control
    assert word.encode() not in duty.message()
    duty.record.close(sync=False)


# ---- what a handler breaks


@real
@pytest.mark.parametrize(
    ("deed", "ending"),
    [
        ("exit 0", Ending()),
        ("exit 9", Ending(exit_code=9)),
        ("abort", Ending(signal=signal.SIGABRT)),
        ("segfault", Ending(signal=signal.SIGSEGV)),
    ],
)
async def test_a_crash_of_the_interpreter_costs_only_its_own_task(yard, deed, ending):
    _, heard = await carried_out(yard, "text", deed, "text", deed, "text")
    assert [read_outcome(end.ending) for end in heard.values()] == [DONE, FAILED, DONE, FAILED, DONE]
    assert (heard[2].ending.exit_code, heard[2].ending.signal) == (ending.exit_code, ending.signal)
    assert "its process" in describe(heard[2].ending)
    if deed == "segfault":
        assert "Segmentation fault" in heard[2].ending.output


@real
async def test_a_task_past_its_limit_is_killed_and_unwound_alone(yard):
    held, heard = await carried_out(yard, "text", "hang", "text", wall_clock=GRACE)
    assert [read_outcome(end.ending) for end in heard.values()] == [DONE, KILLED, DONE]
    assert (heard[2].ending.timed_out, heard[2].ending.by) == (True, None)
    assert heard[2].ending.elapsed >= GRACE
    assert (yard.folder / "witness").read_text() == "0 hangs\n0 unwound\n"
    assert read_outcome(await held.wait()) is DONE


@real
async def test_a_task_that_hangs_in_c_and_ignores_a_polite_end_is_killed_after_the_grace(yard):
    started = time.monotonic()
    _, heard = await carried_out(yard, "hang in c", "text", wall_clock=GRACE)
    assert (heard[1].ending.timed_out, read_outcome(heard[2].ending)) == (True, DONE)
    assert 2 * GRACE.total_seconds() <= time.monotonic() - started < 10


@real
async def test_a_handler_that_stops_its_own_worker_is_ended_at_its_limit_all_the_same(yard):
    _, heard = await carried_out(yard, "stop worker", "text", wall_clock=GRACE)
    assert (heard[1].ending.timed_out, read_outcome(heard[2].ending)) == (True, DONE)


@real
async def test_a_task_that_runs_out_of_memory_is_told_so_and_the_next_goes_on(yard):
    _, heard = await carried_out(yard, "memory", "text", memory=512 * 1024 * 1024)
    assert heard[1].ending.out_of_memory
    assert (read_outcome(heard[1].ending), describe(heard[1].ending)) == (FAILED, "ran out of memory")
    assert read_outcome(heard[2].ending) is DONE


@real
async def test_a_handler_whose_fork_comes_back_ends_once(yard):
    _, heard = await carried_out(yard, "fork", "witness", "fork", "witness", "pid")
    assert [read_outcome(end.ending) for end in heard.values()] == [DONE] * 5
    assert (yard.folder / "witness").read_text() == "0 ran\n" * 2


@real
async def test_a_daemon_that_a_task_leaves_behind_is_ended(yard):
    _, heard = await carried_out(yard, "daemon", "text")
    daemon = heard[1].result
    await yard.until(lambda: not Path(f"/proc/{daemon}").exists(), "the end of the daemon")


@pytest.mark.parametrize("first", ["hang", "stop worker"])
@real
async def test_one_task_can_be_ended_and_the_others_go_on(yard, first):
    held = await runner_of(yard).start(a_shift(yard, [first, "text", "text"]))
    await yard.until((yard.folder / "witness").exists, "the first task")
    await held.end("a cancel", task=3)
    await held.end("a cancel", task=1)
    heard = await ends(held)
    assert [(heard[task].ending.by, read_outcome(heard[task].ending)) for task in (1, 2, 3)] == [
        ("a cancel", KILLED),
        (None, DONE),
        ("a cancel", KILLED),
    ]


@real
async def test_ending_a_shift_ends_what_runs_and_what_would_have_run(yard):
    runner = runner_of(yard)
    held = await runner.start(a_shift(yard, ["text", "hang in c", "text"]))
    await yard.until((yard.folder / "witness").exists, "the second task")
    await held.end("operator")
    heard = await ends(held)
    assert [heard[task].ending.by for task in (1, 2, 3)] == [None, "operator", "operator"]
    assert (await held.wait()).by == "operator"
    assert await outcomes(await runner.start(a_shift(yard, ["text"]))) == [DONE]


@real
async def test_a_thousand_tasks_that_do_nothing(yard):
    runner = runner_of(yard)
    deeds = ["nothing"] * 32
    await (await runner.start(a_shift(yard, deeds))).wait()
    shifts = [a_shift(yard, deeds) for _ in range(32)]
    started = time.perf_counter()
    for shift in shifts:
        ending = await (await runner.start(shift)).wait()
        assert ending.result.summary == "32 tasks: 32 done"
    taken = time.perf_counter() - started
    print(f"{len(shifts) * len(deeds) / taken:,.0f} tasks a second in shifts of {len(deeds)}")


@real
async def test_only_shifts_of_a_reasonable_size_are_taken(yard):
    with pytest.raises(Mistake, match="at most"):
        await runner_of(yard).start(a_shift(yard, ["nothing"] * 600))
    with pytest.raises(Mistake, match="expected a shift"):
        await runner_of(yard).start(yard.assign(["true"]))
