"""What the API says of itself is whole, and true: real answers are held against it."""

from itertools import zip_longest
from typing import Any

import jsonschema_rs
import pytest

from tests.http.recorded import Told, recorded
from tests.http.reference import PAGE, reference, whole
from wakeful.control.answers import ANSWERS
from wakeful.control.operations import OPERATIONS
from wakeful.control.shapes import Shapes
from wakeful.http.description import examples, summary_of
from wakeful.http.entry import OPEN_PATHS

AGAIN = "run `make reference`"


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> list[Told]:
    return recorded(tmp_path_factory.mktemp("morning"))


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return whole()


def operations(described) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, each) for path, methods in described["paths"].items() for method, each in methods.items()]


def strict(shapes: Shapes) -> dict[str, Any]:
    """The same shapes, with nothing allowed that they do not name."""
    return {name: closed(shape) for name, shape in shapes.components.items()}


def closed(shape: Any) -> Any:
    if isinstance(shape, list):
        return [closed(each) for each in shape]
    if not isinstance(shape, dict):
        return shape
    found = {key: closed(value) for key, value in shape.items()}
    return {**found, "additionalProperties": False} if isinstance(shape.get("properties"), dict) else found


def validator(name: str) -> jsonschema_rs.Validator:
    shapes = Shapes()
    shape = closed(shapes.of(ANSWERS[name]))
    return jsonschema_rs.Draft202012Validator(
        {**shape, "components": {"schemas": strict(shapes)}}, validate_formats=True
    )


def test_every_operation_says_what_it_answers():
    assert set(ANSWERS) == set(OPERATIONS)


def test_every_answer_is_described_to_its_last_field(told):
    assert {each.name for each in told} == set(OPERATIONS)
    for name, said, answer in told:
        wrong = [f"{error.instance_path}: {error.message}" for error in validator(name).iter_errors(answer.json)]
        assert not wrong, (name, said, wrong)


def test_a_field_that_is_not_described_or_not_there_is_found():
    right = {"stopping": True, "drain": False}
    assert validator("stop").is_valid(right)
    assert not validator("stop").is_valid({**right, "more": 1})
    assert not validator("stop").is_valid({"stopping": True})


def test_every_operation_has_an_example_that_is_what_it_answers(described):
    assert set(examples()) == set(OPERATIONS), AGAIN
    for name, example in examples().items():
        wrong = [f"{error.instance_path}: {error.message}" for error in validator(name).iter_errors(example["answer"])]
        assert not wrong, (name, wrong, AGAIN)
        operation = described["paths"][OPERATIONS[name].path][OPERATIONS[name].method.lower()]
        assert operation["responses"][str(example["status"])]["content"]["application/json"]["example"], name


def test_everything_is_explained(described):
    for path, method, operation in operations(described):
        where = f"{method} {path}"
        assert operation["summary"] and operation["description"], where
        assert len(operation["summary"]) <= 100, where
        assert operation["tags"], where
        for parameter in operation.get("parameters", ()):
            assert parameter["description"], f"{where}: {parameter['name']}"
    for name, shape in described["components"]["schemas"].items():
        for field, each in shape.get("properties", {}).items() if name.endswith("Body") else ():
            assert each["description"], f"{name}.{field}"


def test_every_group_is_explained_and_the_reference_is_what_the_description_says(described):
    assert {tag for _, _, each in operations(described) for tag in each["tags"]} <= {
        tag["name"] for tag in described["tags"] if tag["description"]
    }
    written, made = PAGE.read_text(encoding="utf-8").splitlines(), reference().splitlines()
    assert [pair for pair in zip_longest(written, made) if pair[0] != pair[1]][:3] == [], AGAIN


def test_a_summary_is_the_first_sentence():
    assert summary_of("tick") == ("The agent's beat, now", "The agent's beat, now.")


def test_whatever_creates_takes_an_idempotency_key(described):
    """What is left does the same however often it is asked, or is refused the second time."""
    again = {
        *("mark_read", "snooze", "set", "pause", "pause_agent", "resume", "resume_agent", "kill", "change_tasks"),
        *("cancel_task", "retry_task", "complete_task", "fail_task", "remove_task", "replay", "discard"),
        *("save_step", "claim_task", "reload", "stop", "backup"),
    }
    for name, operation in OPERATIONS.items():
        described_at = described["paths"][operation.path][operation.method.lower()]
        headers = {each["name"].lower() for each in described_at.get("parameters", ()) if each["in"] == "header"}
        expected = operation.method != "GET" and name not in again
        assert ("idempotency-key" in headers) == expected, name


def test_every_list_goes_on_by_its_cursor(described):
    lists = [name for name, example in examples().items() if {"items", "next"} <= set(example["answer"])]
    whole = {"nodes", "forecast", "steps", "add_tasks", "mark_read", "snooze"}
    for name in lists:
        operation = described["paths"][OPERATIONS[name].path][OPERATIONS[name].method.lower()]
        taken = {each["name"] for each in operation.get("parameters", ())}
        assert ("cursor" in taken) == (name not in whole), name


def test_the_description_names_every_status_and_never_422(described):
    for path, _, operation in operations(described):
        assert "422" not in operation["responses"], path
        refusals = {"400", "403", "408", "421", "500"}
        if path in OPEN_PATHS:
            own = {"200", "503"} if path == "/readyz" else {"200"}
            assert set(operation["responses"]) == refusals | own, path
        else:
            assert refusals | {"401", "404", "429", "503"} <= set(operation["responses"]), path
        proves_itself = path in {*OPEN_PATHS, "/peer-todo", "/hooks/{source}"}
        assert ({"token": []} in operation.get("security", ())) == (not proves_itself), path
    tick = described["paths"]["/v1/agents/{agent}/tick"]["post"]
    assert {"200", "202", "409", "413", "415"} <= set(tick["responses"])
    assert tick["operationId"] == "tick"
    assert "412" in described["paths"]["/v1/agents/{agent}/settings"]["patch"]["responses"]
    assert "ValidationError" not in str(described["components"])


def test_each_operation_has_a_plain_name_and_every_answer_an_example(described):
    names = [operation["operationId"] for _, _, operation in operations(described)]
    assert len(set(names)) == len(names)
    assert set(names) == set(OPERATIONS) | {
        *("healthz", "readyz", "metrics", "stream", "log", "mcp"),
        *("peer_todo", "hook", "hook_wake", "hook_agent", "hook_events"),
    }
    without = {
        operation["operationId"]
        for _, _, operation in operations(described)
        if not any(
            "example" in content
            for status, answer in operation["responses"].items()
            if status.startswith("2")
            for content in answer.get("content", {}).values()
        )
    }
    assert without == set()
    event = described["paths"]["/v1/stream"]["get"]["responses"]["200"]["content"]["text/event-stream"]["example"]
    assert event.startswith("id: ") and event.endswith("\n\n")


def test_every_reference_ends(described):
    known = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    assert set(references(described)) <= known


def references(part: Any) -> list[str]:
    if isinstance(part, dict):
        own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return own + [each for value in part.values() for each in references(value)]
    return [each for value in part for each in references(value)] if isinstance(part, list) else []
