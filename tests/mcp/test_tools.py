"""The tools themselves: what is listed of them, what they may be told, and what comes of a call that goes wrong."""

import asyncio
import inspect
import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from mcp import Client, MCPError

from tests.mcp.session import TOOLS as NAMES
from tests.mcp.session import Told
from wakeful.control.callers import OPERATOR
from wakeful.control.control import Control
from wakeful.core.agents import Limits
from wakeful.core.errors import Busy, Conflict, Forbidden, Mistake
from wakeful.mcp.served import Asked
from wakeful.mcp.server import answered, build, listed
from wakeful.mcp.tools import TOOLS, Refusal
from wakeful.mcp.words import DESCRIPTIONS, INSTRUCTIONS

LISTED = {tool.name: tool for tool in listed()}


class Recorder:
    """Answers everything with nothing, and remembers what it was asked."""

    def __init__(self, agent="wren"):
        self.asked = []
        self.agent = agent

    async def whose(self):
        return self.agent

    async def ask(self, operation, /, **parameters):
        self.asked.append((operation, parameters))
        return {"items": [], "task": None}


def asked(tool, agent="wren", /, **given):
    recorder = Recorder(agent)
    asyncio.run(answered(TOOLS[tool], given, recorder))
    return recorder.asked


def refused(tool, agent="wren", /, **given):
    with pytest.raises(Refusal) as refusal:
        asyncio.run(answered(TOOLS[tool], given, Recorder(agent)))
    return str(refusal.value)


# ---- what is listed


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_tool_says_what_it_is_takes_and_gives_and_all_four_hints(name):
    tool = LISTED[name]
    hints = tool.annotations
    said = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    assert all(isinstance(hint, bool) for hint in said) and not (said[0] and said[1])
    assert tool.title and len(tool.description) > 80
    assert (tool.input_schema["type"], tool.output_schema["type"]) == ("object", "object")
    assert tool.input_schema["additionalProperties"] is False
    assert all("description" in field for field in tool.input_schema["properties"].values())


def test_these_are_the_tools_and_there_are_words_for_each():
    assert set(LISTED) == set(TOOLS) == set(DESCRIPTIONS) == NAMES


def test_a_model_is_told_to_prefer_a_message_and_what_a_wake_costs():
    wake = DESCRIPTIONS["wake_agent"]
    assert "message_agent for whatever can wait" in wake and "Expensive" not in DESCRIPTIONS["message_agent"]
    assert "Prefer message_agent" in INSTRUCTIONS and "the tool to prefer" in DESCRIPTIONS["message_agent"]
    limits = Limits()
    minutes = limits.cooldown // timedelta(minutes=1)
    told = f"{limits.wakes_per_run} wakes in one run of yours; the woken agent {limits.wakes_per_day} a day"
    assert f"{told} and one in {minutes} minutes; {limits.wakes_per_pair} a day between" in wake


# ---- what they may be told


def test_each_argument_reaches_its_operation_under_the_name_that_it_has_there():
    everything = {
        "message_agent": {"to": "moss", "message": "m", "subject": "s", "priority": "low", "type": "info", "key": "k"},
        "wake_agent": {"to": "moss", "message": "m", "reason": "blocker", "key": "k"},
        "read_inbox": {"state": "all", "from": "moss", "type": "info", "priority": "low", "thread": 1, "limit": 5},
        "add_task": {
            "title": "t",
            "role": "r",
            "payload": [1],
            "tags": ["a"],
            "depends_on": [1, "k"],
            "max_retries": 0,
        },
        "claim_task": {"task": 3},
        "complete_task": {"task": 3, "result": "r"},
        "list_agents": {"after": "a", "limit": 5},
        "my_standing": {},
        "save_step": {"name": "n", "result": 1, "begun": False, "task": 3},
        "load_step": {"name": "n", "task": 3},
    }
    assert set(everything) == NAMES
    for name, given in everything.items():
        for operation, parameters in asked(name, **given):
            signature = inspect.signature(getattr(Control, operation))
            signature.bind(None, OPERATOR, **parameters)


def test_the_names_of_the_api_are_taken_as_well():
    names = asked("message_agent", agent="moss", body="hello")
    assert names == asked("message_agent", to="moss", message="hello")
    assert names == [("send", {"agent": "moss", "body": "hello"})]
    assert asked("add_task", title="t", to="moss") == [("add_task", {"title": "t", "agent": "moss"})]


def test_what_is_null_or_left_out_is_not_handed_on():
    assert asked("claim_task", task=None) == asked("claim_task") == [("claim_task", {})]
    assert asked("read_inbox", limit=None) == [("inbox", {"agent": "wren"})]


def test_a_result_is_text_or_json_and_an_error_is_a_failed_attempt():
    assert asked("complete_task", task=3, result={"a": 1}) == [("complete_task", {"task": 3, "result": '{"a": 1}'})]
    assert asked("complete_task", task=3) == [("complete_task", {"task": 3, "result": None})]
    assert asked("complete_task", task="3", error="no paper") == [("fail_task", {"task": 3, "reason": "no paper"})]
    assert "not both" in refused("complete_task", task=3, result="r", error="e")


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("message_agent", {"to": "moss"}, "message is missing (say there: What it is to know or to do)"),
        ("wake_agent", {"to": "moss", "message": "m"}, "next run; one of blocker, "),
        ("message_agent", {"to": "moss", "mesage": "m"}, "'mesage' is unknown (did you mean message?)"),
        ("list_agents", {"zzz": 1}, "'zzz' is unknown (known are after, limit)"),
        ("message_agent", {"to": "", "message": "m"}, "to: String should have at least 1 character"),
        (
            "claim_task",
            {"task": "three"},
            "task: Input should be a valid integer, unable to parse string as an integer (say there: The num",
        ),
        ("claim_task", {"task": 0}, "task: Input should be greater than or equal to 1"),
        ("message_agent", {"to": "moss", "message": "\ud800"}, "half of a surrogate pair"),
    ],
)
def test_a_wrong_argument_is_told_with_what_was_expected(tool, given, said):
    assert said in refused(tool, **given)


def test_what_is_nested_too_deeply_is_told_so():
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert "nested too deeply" in refused("add_task", title="t", role="r", payload=deep)


def test_the_operator_says_whose_and_a_run_need_not():
    assert asked("read_inbox", None, agent="moss") == [("inbox", {"agent": "moss"})]
    assert "name one as `agent`" in refused("read_inbox", None)
    assert asked("my_standing") == [("agent", {"agent": "wren"}), ("wake_stats", {"agent": "wren"})]


# ---- what comes of it


def called(asker, tool, /, **arguments):
    async def go():
        async with Client(build(lambda context: asker)) as client:
            try:
                return await client.call_tool(tool, arguments)
            except MCPError as error:
                return error

    return asyncio.run(go())


class Failing:
    """A control in which everything goes wrong in one way."""

    def __init__(self, error):
        self.error = error

    async def agents(self, caller, **parameters):
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Mistake("expected a name", "write one"), "expected a name (write one)"),
        (Conflict("the key was used before"), "the key was used before (use another key for another request)"),
        (Forbidden("not of fern"), "not of fern (do without it, or ask the operator)"),
        (Forbidden("not now", "send a message"), "not now (send a message)"),
        (Busy("somebody holds it"), "somebody holds it (try again in a moment)"),
        (OSError(28, "No space left on device"), "the store cannot be written or read now (try again in a moment)"),
    ],
)
def test_what_an_agent_can_do_something_about_is_the_result_of_its_call(error, said, caplog):
    told = Told(called(Asked(Failing(error), OPERATOR, (OSError,)), "list_agents"))
    assert (told.failed, told.text, told.value) == (True, said, None)


def test_what_nobody_foresaw_is_logged_and_told_without_detail(caplog):
    with caplog.at_level(logging.ERROR):
        told = Told(called(Asked(Failing(ValueError("a secret")), OPERATOR, (OSError,)), "list_agents"))
    assert told.failed and "secret" not in told.text and "nobody foresaw" in told.text
    assert "a secret" in caplog.text


def test_an_unknown_tool_is_told_the_nearest():
    error = called(Recorder(), "mesage_agent")
    assert str(error) == "no tool is called 'mesage_agent'; did you mean message_agent?"


def test_an_answer_is_told_as_text_too():
    result = called(Recorder(), "load_step", name="fetch")
    assert json.loads(result.content[0].text) == result.structured_content
    assert result.structured_content == {
        "name": "fetch",
        "recorded": False,
        "begun": False,
        "result": None,
        "task": None,
    }
