"""What a task waits for, in words; what nobody takes, and what cannot be asked for."""

import re

import pytest

from tests.cli.office import wakeful
from tests.cli.test_task import add, desk, state

__all__ = ["desk"]


def test_what_it_waits_for_is_told_whole_beside_it_and_in_short_in_a_list(desk):
    first = add("first", "--causal-key", "doc", "--not-before", "2099-01-01T00:00:00Z")
    then = add("then", "--causal-key", "doc")
    assert f"waits for task {first} of its causal key: that is pending" in wakeful("task", "show", str(then)).stdout
    listed = wakeful("task", "list").stdout
    assert "waits for" in listed and f"task {first} of its causal key" in listed and "that is pending" not in listed
    assert "waits for its time: not before 2099-01-01T00:00:00Z" in wakeful("task", "show", str(first)).stdout


def test_what_nobody_takes_is_recorded_and_said_beside_the_answer(desk):
    result = wakeful("task", "add", "t", "--role", "ghosts")
    assert (result.exit_code, result.stderr) == (0, "nobody takes it now: no agent has the role ghosts\n")
    assert re.fullmatch(r"task \d+ is recorded\n", result.stdout)
    assert wakeful("task", "add", "t", "--agent", "wren").stderr == ""


def test_what_depends_on_what_will_never_be_is_told_how_to_go_on(desk):
    needed = add("needed")
    task = add("then", "--depends-on", str(needed))
    wakeful("task", "fail", str(needed))
    assert f"wakeful task retry {needed}\n" in wakeful("task", "show", str(task)).stdout
    wakeful("task", "retry", str(needed))
    wakeful("task", "cancel", str(needed))
    advice = f"wakeful task rm {needed}, then wakeful task retry {task}\n"
    assert advice in wakeful("task", "show", str(task)).stdout
    refused = wakeful("task", "retry", str(task))
    assert refused.exit_code == 1
    assert f"{task} is blocked (depends on task {needed}, which is cancelled)" in refused.stdout
    assert wakeful("task", "rm", str(needed)).exit_code == 0
    assert wakeful("task", "show", str(task)).stdout.endswith(f"without that: wakeful task retry {task}\n")
    assert wakeful("task", "retry", str(task)).exit_code == 0 and state(task) == ["pending"]


def test_as_much_as_an_engine_takes_is_taken_without_one(desk):
    result = wakeful("task", "add", "t", "--agent", "wren", "--description", "x" * 1_100_000)
    assert result.exit_code == 2 and "takes 1 MB at a time" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        *(("task", "list", "--after"), ("dead", "list", "--after"), ("inbox", "wren", "--after")),
        *(("runs", "--before"), ("events", "--after"), ("decisions", "--before")),
    ],
)
def test_a_number_that_nothing_can_have_is_bad_usage_without_an_engine_too(desk, command):
    result = wakeful(*command, "9" * 23)
    assert result.exit_code == 2 and "Traceback" not in result.stderr


# ---- a step


def test_a_step_that_somebody_else_of_the_run_has_recorded_meanwhile_is_not_taken(monkeypatch):
    from wakeful.cli import step

    answers = {"steps": {"items": []}, "save_step": {"name": "x", "recorded": True, "result": "theirs\n", "task": 1}}
    monkeypatch.setattr(step, "_ask", lambda place, operation, **parameters: answers[operation])
    monkeypatch.setattr(step, "_run", lambda *arguments: pytest.fail("it was taken again"))
    inside = {"WAKEFUL_RUN": "1", "WAKEFUL_URL": "http://127.0.0.1:1", "WAKEFUL_TOKEN": "run.1.1.x"}
    result = wakeful("step", "x", "--", "true", WAKEFUL_TASK_ID="1", **inside)
    assert (result.exit_code, result.stdout) == (0, "theirs\n")
