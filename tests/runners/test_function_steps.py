"""Steps are recorded once and never executed again; what a handler asks of the engine is answered once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runners.function_case import LONG, OwnRunner, a_shift, ends, results
from wakeful import Mistake, Run
from wakeful.core.errors import Stale
from wakeful.core.runs import ErrorClass, Outcome, describe, read_outcome
from wakeful.testing.contracts.runner_case import GRACE, Yard, real


class Desk:
    """The engine's end of the line: keeps steps as the store would."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, dict[str, Any]]] = []
        self.steps: dict[int, dict[str, str | None]] = {}

    async def answer(self, run: int, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((run, request))
        if request["verb"] == "step":
            kept = self.steps.setdefault(request["task"], {})
            kept[request["name"]] = kept.get(request["name"]) or request["result"]
            return {}
        if request.get("agent") == "nobody":
            raise Stale("run 1 is not open")
        return {"verdict": "refuse", "guard": "cooldown"} if request["verb"] == "wake" else {"message": 5}

    def verbs(self) -> list[str]:
        return [f"{request['verb']} {request.get('name', '')}".strip() for _, request in self.asked]


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def yard(tmp_path: Path, desk: Desk) -> Iterator[Yard]:
    with Yard(tmp_path, lambda: OwnRunner(tmp_path / "workers", link=desk.answer)).open() as yard:
        yield yard


def witnessed(yard: Yard) -> list[str]:
    path = yard.folder / "witness"
    return [line.split(" ", 1)[1] for line in path.read_text().splitlines()] if path.exists() else []


# ---- steps


@real
async def test_a_step_is_told_before_and_after_it_is_taken_and_means_the_same_each_time(yard, desk):
    (result,) = await results(await yard.runner.start(a_shift(yard, ["x"], "function_deeds:stepping")))
    assert desk.verbs() == ["step first", "step first", "step second", "step second"]
    assert [request["result"] for _, request in desk.asked] == [None, "[1, [2, 3]]", None, "false"]
    assert result == {"first": [1, [2, 3]], "second": False, "key": "wakeful:task:1:first"}


@real
async def test_a_recorded_step_is_not_taken_again_after_its_worker_was_killed(yard, desk):
    first = await yard.runner.start(a_shift(yard, ["kill worker", "x"], "function_deeds:stepping"))
    heard = await ends(first)
    assert heard[1].ending.lost
    assert witnessed(yard) == ["first"]
    again = a_shift(yard, ["kill worker", "x"], "function_deeds:stepping", attempt=2, steps=desk.steps)
    one, two = await results(await yard.runner.start(again))
    assert one["first"] == two["first"] == [1, [2, 3]]
    assert witnessed(yard) == ["first", "second", "first", "second"]


@real
async def test_a_step_that_was_begun_and_not_recorded_can_be_known_to_have_been(yard, desk):
    steps = {1: {"first": "1", "second": None}}
    (result,) = await results(await yard.runner.start(a_shift(yard, ["x"], "function_deeds:stepping", steps=steps)))
    assert (result["first"], result["second"]) == (1, True)


@real
async def test_a_step_whose_result_json_cannot_hold_is_refused_and_never_recorded(yard, desk):
    heard = await ends(await yard.runner.start(a_shift(yard, ["x"], "function_deeds:bad_step")))
    assert "the result of step 'bad' cannot be written as JSON" in describe(heard[1].ending)
    assert desk.steps == {1: {"bad": None}}


@real
async def test_messages_and_wakes_are_answered_and_a_refusal_of_the_engine_is_an_error(yard, desk):
    (told,) = await results(await yard.runner.start(a_shift(yard, ["x"], "function_deeds:telling")))
    assert told == [{"message": 5}, {"verdict": "refuse", "guard": "cooldown"}, "Stale", "run 1 is not open"]
    sent, woken, _ = (request for _, request in desk.asked)
    assert (sent["to"], sent["body"], sent["priority"]) == ("wren", "hello", "high")
    assert (woken["agent"], woken["reason"], woken["body"]) == ("wren", "blocker", "look")
    assert sent["key"] and sent["key"] != woken["key"]


# ---- without an engine


@real
async def test_a_step_waits_for_an_engine_and_the_next_one_answers_it(yard, desk):
    first = yard.runner
    shift = a_shift(yard, ["wait"], "function_deeds:stepping")
    await first.start(shift)
    await yard.until(lambda: witnessed(yard) == ["first"] and desk.steps[1].get("first"), "the first step")
    await first.close()
    (yard.folder / "enough").touch()
    held = await yard.another_runner().adopt(shift.run, shift.folder)
    (result,) = await results(held)
    assert result["first"] == [1, [2, 3]]
    assert desk.verbs() == ["step first", "step first", "step second", "step second"]


@real
async def test_a_step_that_nobody_answers_in_time_fails_the_task_to_be_tried_again(yard, desk):
    first = yard.runner
    shift = a_shift(yard, ["wait"], "function_deeds:stepping", patience=GRACE, wall_clock=LONG)
    await first.start(shift)
    await yard.until(lambda: witnessed(yard) == ["first"] and desk.steps[1].get("first"), "the first step")
    await first.close()
    (yard.folder / "enough").touch()
    await yard.until(lambda: (shift.folder / "exit.json").exists(), "the end of the shift")
    heard = await ends(await yard.another_runner().adopt(shift.run, shift.folder))
    assert read_outcome(heard[1].ending) is Outcome.failed
    assert "no engine has answered for 0.2 s" in describe(heard[1].ending)
    assert heard[1].ending.result.error_class not in (ErrorClass.config, ErrorClass.auth, ErrorClass.quota)
    assert witnessed(yard) == ["first"]


# ---- a run in a test of a handler


def test_a_handler_can_be_tried_without_an_engine():
    run = Run.for_test({"id": 7, "title": "read", "body": json.dumps({"page": 3})}, agent={"name": "moss"})
    assert (run.agent, run.task.id, run.task.payload) == ("moss", 7, {"page": 3})
    assert run.step("count", lambda: (1, 2)) == [1, 2]
    assert run.step("count", lambda: 1 / 0) == [1, 2]
    assert run.send("wren", "hello") == {}
    assert repr(run) == "<Run 0 of moss: task 7>"


def test_a_step_that_a_process_of_the_same_run_has_recorded_is_not_taken_again():
    run = Run({}, {"id": 7}, lambda request: {"recorded": '"by a process"'})
    assert run.step("pay", lambda: 1 / 0) == "by a process"
    late = Run({}, {"id": 7}, lambda request: {"recorded": None if request["result"] is None else '"first"'})
    assert late.step("pay", lambda: "second") == late.step("pay", lambda: "third") == "first"


def test_a_step_of_a_beat_has_the_key_of_that_beat_and_one_of_an_inbox_run_has_none():
    beat = Run.for_test(agent={"name": "moss"}, run={"subject": "beat", "beat": 7})
    assert beat.key("x") == "wakeful:beat:moss:7:x"
    with pytest.raises(Mistake, match="an inbox run has no key"):
        Run.for_test(run={"subject": "inbox"}).key("charge")


def test_a_body_that_is_no_json_is_its_own_payload():
    run = Run.for_test({"id": 7, "body": "plain words"}, inbox=[{"id": 1, "body": "[1]"}, {"id": 2, "body": "{"}])
    assert run.task.payload == "plain words"
    assert [message.payload for message in run.inbox] == [[1], "{"]
