"""CloudEvents as HTTP carries them: the same event whichever way it comes, or a mistake that names what is wrong."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.cloud_events import BATCH, NO_CHARACTERS, STRUCTURED, CloudEvent, read_events
from wakeful.core.errors import Mistake

WHOLE = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
HEADERS = [(f"ce-{name}", value) for name, value in WHOLE.items()]


def structured(**more: Any) -> CloudEvent:
    (event,) = read_events(STRUCTURED, (), json.dumps(WHOLE | more).encode())
    return event


def binary(body: bytes = b"", *headers: tuple[str, str]) -> dict[str, Any]:
    (event,) = read_events("", [*HEADERS, *headers], body)
    told: dict[str, Any] = json.loads(event.text)
    return told


def test_source_and_id_together_are_its_key_and_nothing_else():
    assert structured(data=1, subject="x").key == structured(data=2, time="2026-03-01T09:30:00.123456789Z").key
    assert structured(id="2").key != structured().key
    assert structured(source="/").key != structured().key
    assert structured(source='/s","', id="1").key != structured(source="/s", id='","1').key


def test_its_title_is_its_type_and_its_subject_and_no_longer_than_a_line():
    assert (structured().title, structured(subject="main").title) == ("t", "t main")
    assert len(structured(subject="x" * 1_000).title) == 200


@pytest.mark.parametrize("text", ["12\u00a0kg", "\U0001f469\u200d\U0001f4bb", "grüße", "\ue000", "a\u3000b"])
def test_a_text_may_hold_what_the_specification_lets_it_hold(text):
    assert structured(subject=text).subject == text
    assert re.fullmatch(f"[^{NO_CHARACTERS}]*", text)


@pytest.mark.parametrize(
    "sign", ["\x00", "\n", "\x7f", "\x9f", "\ud800", "\ufdd0", "\uffff", "\U0001fffe", "\U0010ffff"]
)
def test_a_text_holds_no_control_and_nothing_that_is_no_character(sign):
    with pytest.raises(Mistake, match="which no text may hold"):
        structured(subject=f"a{sign}b")


def test_a_batch_may_be_empty():
    assert read_events(BATCH, (), b"[]") == []


def test_a_header_is_read_as_the_text_that_it_stands_for():
    assert binary(b"", ("ce-subject", "gr%C3%BC%C3%9Fe%20%25"))["subject"] == "grüße %"
    assert binary(b"", ("ce-subject", "grüße".encode().decode("latin-1")))["subject"] == "grüße"


@pytest.mark.parametrize(
    ("media", "body", "told"),
    [
        ("application/json; charset=utf-8", b'{"a": 1}', {"data": {"a": 1}}),
        ("application/vnd.x+json", b"[1]", {"data": [1]}),
        ("text/plain", "grüße".encode(), {"data": "grüße"}),
        ("text/plain", b"\xff", {"data_base64": "/w=="}),
        ("image/png", b"\x89", {"data_base64": "iQ=="}),
        ("", b'{"a": 1}', {"data": {"a": 1}}),
        ("", b"\x89", {"data_base64": "iQ=="}),
        ("application/json", b"", {}),
    ],
)
def test_data_is_carried_as_what_it_is(media, body, told):
    found = binary(body, ("content-type", media))
    assert {key: value for key, value in found.items() if key.startswith("data") and key != "datacontenttype"} == told


@pytest.mark.parametrize(
    ("media", "headers", "body", "reason"),
    [
        ("application/json", (), b"{}", "that this is a CloudEvent"),
        ("", HEADERS[1:], b"", "that this is a CloudEvent"),
        ("", HEADERS[:-1], b"", "no type"),
        ("", [*HEADERS, HEADERS[1]], b"", "not twice"),
        ("", [*HEADERS, ("ce-data", "x")], b"", "not to be there"),
        ("", [*HEADERS, ("ce-subject", "%ff")], b"", "not UTF-8"),
        ("", [*HEADERS, ("ce-subject", "a%0Ab")], b"", "U+000A, which no text may hold"),
        ("", [*HEADERS, ("content-type", "application/json")], b"{", "not JSON"),
        (STRUCTURED, (), json.dumps(WHOLE | {"data": 1, "data_base64": ""}).encode(), "both"),
        (STRUCTURED, (), json.dumps(WHOLE | {"data_base64": "*"}).encode(), "not base64"),
        (STRUCTURED, (), json.dumps(WHOLE | {"time": "2026-03-01T09:30:00"}).encode(), "time"),
        (STRUCTURED, (), json.dumps(WHOLE | {"own": [1]}).encode(), "own"),
        (BATCH, (), json.dumps([WHOLE] * 1_001).encode(), "at most 1,000"),
        (BATCH, (), json.dumps([WHOLE, 1]).encode(), "event 2 of the batch"),
    ],
)
def test_a_mistake_names_what_is_wrong(media, headers, body, reason):
    with pytest.raises(Mistake) as raised:
        read_events(media, headers, body)
    assert reason in raised.value.reason and raised.value.remedy


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([STRUCTURED, BATCH, "", "text/plain"]), ANYTHING, st.dictionaries(st.text(max_size=8), ANYTHING))
def test_whatever_comes_is_an_event_or_a_mistake(media, said, more):
    for body in (said, WHOLE | more, [WHOLE | more]):
        try:
            for event in read_events(media, HEADERS, json.dumps(body).encode()):
                assert json.loads(event.text)["id"] == event.id
        except Mistake:
            pass
