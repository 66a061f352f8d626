"""The declarations of the client against what `control` can be asked."""

import inspect
from typing import get_args, get_origin, get_type_hints

import pytest

import wakeful
from wakeful.client.calls import Calls
from wakeful.client.declared import Declared, Stream, asked
from wakeful.control import answers, task_answers, told
from wakeful.control.answers import ANSWERS
from wakeful.control.control import Control
from wakeful.control.operations import OPERATIONS
from wakeful.http.schemas import LIVE

NAMES = {"answers": answers, "task_answers": task_answers, "told": told}
DECLARED = {name: each for name, each in inspect.getmembers(Calls) if isinstance(each, Declared)}


def said(signature: inspect.Signature) -> dict[str, object]:
    return {name: given.default for name, given in signature.parameters.items() if name not in ("self", "caller")}


def test_every_operation_and_every_stream_is_a_method_and_nothing_else_is():
    assert {name for name, each in DECLARED.items() if isinstance(each, asked)} == set(OPERATIONS)
    assert {name for name, each in DECLARED.items() if isinstance(each, Stream)} == set(LIVE)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_method_takes_what_its_operation_takes_with_the_same_defaults(name):
    method = inspect.unwrap(getattr(Control, name))
    assert said(DECLARED[name].signature) == said(inspect.signature(method))


@pytest.mark.parametrize("name", LIVE)
def test_a_stream_takes_what_its_path_takes(name):
    fields = {field: known.default for field, known in LIVE[name].model_fields.items()}
    assert said(DECLARED[name].signature).items() >= fields.items()


def alike(declared: object, answered: object) -> bool:
    """The same type, generic ones by their parts."""
    if get_origin(declared) is None:
        return declared is answered
    return get_origin(declared) is get_origin(answered) and get_args(declared) == get_args(answered)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_method_answers_what_its_operation_answers(name):
    hints = get_type_hints(inspect.unwrap(DECLARED[name]), localns=NAMES)
    assert alike(hints["return"], ANSWERS[name])


def test_a_method_looks_like_one():
    with wakeful.Client("http://127.0.0.1:1", "token") as client:
        assert client.send.__name__ == "send"
        assert "message" in client.send.__doc__
        assert list(inspect.signature(client.send).parameters)[:2] == ["agent", "body"]


def test_what_a_method_does_not_take_is_refused_before_anything_is_sent():
    with wakeful.Client("http://127.0.0.1:1", "token") as client, pytest.raises(TypeError, match="priorty"):
        client.send("wren", "x", priorty="high")  # type: ignore[call-arg]
