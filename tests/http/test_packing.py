"""Long answers are packed for whoever takes them so; nothing else about them changes."""

import gzip
import json

import pytest

from tests.http.served import Stream
from wakeful.http.packing import LONG, SHORTEST

PACKED = {"Accept-Encoding": "gzip, deflate, br"}


@pytest.fixture
def long(control):
    control.answers["status"] = {"fleet": "moss and wren " * 200}
    return control.answers["status"]


def test_a_long_answer_is_packed_and_says_so(served, long):
    plain = served.ask("GET", "/v1/status")
    packed = served.ask("GET", "/v1/status", headers=PACKED)
    assert packed.headers["content-encoding"] == "gzip" and "accept-encoding" in packed.headers["vary"]
    assert int(packed.headers["content-length"]) == len(packed.body) < len(plain.body) / 5
    assert json.loads(gzip.decompress(packed.body)) == plain.json == long
    assert "content-encoding" not in plain.headers
    told = ("content-type", "cache-control", "content-security-policy", "x-content-type-options")
    assert [packed.headers[name] for name in told] == [plain.headers[name] for name in told]


def test_what_is_very_long_is_packed_beside_the_loop_and_is_the_same(served, control):
    control.answers["status"] = {"fleet": ["wren"] * LONG}
    packed = served.ask("GET", "/v1/status", headers=PACKED)
    assert json.loads(gzip.decompress(packed.body)) == control.answers["status"]


def test_what_is_asked_for_by_post_is_packed_too(served, control):
    control.answers["tick"] = {"reason": "x" * SHORTEST}
    packed = served.ask("POST", "/v1/agents/wren/tick", {}, headers=PACKED)
    assert json.loads(gzip.decompress(packed.body)) == control.answers["tick"]


def test_the_head_says_what_the_answer_would(served, long):
    head = served.ask("HEAD", "/v1/status", headers=PACKED)
    whole = served.ask("GET", "/v1/status", headers=PACKED)
    same = ("content-encoding", "content-length", "vary")
    assert head.body == b"" and [head.headers[name] for name in same] == [whole.headers[name] for name in same]


def test_what_is_short_or_has_a_tag_of_its_bytes_is_sent_as_it_is(served, control):
    control.answers["status"] = {"fleet": "x" * (SHORTEST - 100)}
    control.answers["settings"] = {"version": 3, "settings": "x" * SHORTEST}
    for path in ("/v1/status", "/v1/agents/wren/settings"):
        answer = served.ask("GET", path, headers=PACKED)
        assert "content-encoding" not in answer.headers and answer.json
    assert answer.headers["etag"] == '"3"'


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("GZIP ; q = 1.0", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip;q=0.000, *", False),
        ("*;q=0", False),
        ("identity", False),
        ("br", False),
        ("xgzipx", False),
        ("", False),
    ],
)
def test_whoever_does_not_take_it_packed_is_not_sent_it_so(served, long, accepted, packed):
    answer = served.ask("GET", "/v1/status", headers={"Accept-Encoding": accepted})
    assert ("content-encoding" in answer.headers) is packed


def test_the_page_and_the_description_are_packed(served):
    for path in ("/", "/dashboard/app.js", "/openapi.json"):
        answer = served.ask("GET", path, headers=PACKED)
        assert answer.status == 200 and answer.headers["content-encoding"] == "gzip", path


def test_a_stream_begins_at_once_and_is_sent_as_it_comes(served, control):
    control.answers["events"] = {"items": [], "next": None, "last": 3}
    with Stream(served, "/v1/stream", headers=PACKED) as stream:
        assert stream.answer.getheader("content-encoding") is None
        assert stream.answer.getheader("content-type").startswith("text/event-stream")


def test_what_is_refused_is_told_the_same(served):
    for token in (None, "wrong"):
        answer = served.ask("GET", "/v1/status", token=token, headers=PACKED)
        assert answer.status == 401 and answer.json["remedy"]
