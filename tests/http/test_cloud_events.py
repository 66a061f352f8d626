"""CloudEvents as a real SDK sends them, in all three modes."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, to_binary, to_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from tests.http.hooked import House, Standing, ci, hooked, standing
from tests.http.served import KEYS, Answer


@pytest.fixture(scope="module")
def server() -> Iterator[Standing]:
    with standing() as server:
        yield server


@pytest.fixture
def house(server: Standing, tmp_path: Path) -> Iterator[House]:
    with hooked(server, tmp_path) as house:
        yield house


def event(id: str = "e-1", data: Any = None, **more: Any) -> CloudEvent:
    attributes = {"id": id, "source": "/builds", "type": "build.failed", "specversion": "1.0", **more}
    return CloudEvent(attributes=attributes, data={"build": 7} if data is None else data)


def bring(
    house: House, message: HTTPMessage, *, token: str | None = KEYS.operator, query: str = "?agent=wren"
) -> Answer:
    body = message.body if isinstance(message.body, bytes) else message.body.encode()
    headers = [(name, value) for name, value in message.headers.items() if name.lower() != "content-type"]
    media = next((value for name, value in message.headers.items() if name.lower() == "content-type"), "")
    headers += [("Authorization", f"Bearer {token}")] if token else []
    return house.send(f"/hooks/cloudevents{query}", body, headers, media=media)


def batch(*events: CloudEvent) -> HTTPMessage:
    each = [json.loads(to_structured(event, JSONFormat()).body) for event in events]
    return HTTPMessage({"content-type": "application/cloudevents-batch+json"}, json.dumps(each).encode())


def test_the_events_tell_that_the_operator_brought_them_once(house):
    for _ in range(2):
        answer = bring(house, batch(event("e-1"), event("e-2"))).json
    (told,) = house.writer.store.events(kinds=("acted",))
    assert told.item == answer["id"]
    assert told.fields == {"by": "operator", "operation": "hook_events", "items": 2, "agents": ["wren"]}


def test_an_event_is_the_same_message_in_either_mode(house):
    structured = bring(house, to_structured(event("e-1", subject="main"), JSONFormat()))
    binary = bring(house, to_binary(event("e-2", subject="main"), JSONFormat()))
    assert (structured.status, binary.status) == (202, 202), (structured, binary)
    first, second = house.inbox("wren")
    assert first.subject == second.subject == "build.failed main"
    one, two = json.loads(first.body), json.loads(second.body)
    assert one["data"] == two["data"] == {"build": 7}
    assert (one.pop("id"), two.pop("id")) == ("e-1", "e-2")
    assert {key: value for key, value in one.items() if key != "datacontenttype" and key != "time"} == {
        key: value for key, value in two.items() if key != "datacontenttype" and key != "time"
    }
    assert (first.origin, first.ring, first.source) == ("external", "news", "webhook:cloudevents")


def test_a_batch_is_recorded_whole_or_not_at_all(house):
    answer = bring(house, batch(event("e-1"), event("e-2"), event("e-1")))
    assert answer.status == 202
    assert len(set(answer.json["ids"])) == 2 and house.told() == {"wren": 2, "moss": 0}
    bad = batch(event("e-3"), event("e-4"))
    broken = HTTPMessage(bad.headers, bad.body.replace(b'"e-4"', b'""'))
    answer = bring(house, broken)
    assert answer.status == 400 and "event 2 of the batch" in answer.json["detail"]
    assert house.told() == {"wren": 2, "moss": 0}


def test_id_and_source_say_which_event_it_is_in_any_mode(house):
    first = bring(house, to_structured(event(), JSONFormat())).json["id"]
    again = bring(house, to_binary(event(data={"build": 8}), JSONFormat()))
    assert (again.json["id"], again.json["duplicate"]) == (first, True)
    assert bring(house, to_structured(event(source="/others"), JSONFormat())).json["id"] != first


def test_an_event_that_one_agent_has_is_still_news_for_another(house):
    first = bring(house, to_structured(event(), JSONFormat())).json
    other = bring(house, to_structured(event(), JSONFormat()), query="?agent=moss").json
    again = bring(house, to_structured(event(), JSONFormat()), query="?agent=moss").json
    assert (other["duplicate"], other["agents"]) == (False, ["moss"]) and other["id"] != first["id"]
    assert (again["id"], again["duplicate"], again["agents"]) == (other["id"], True, ["moss"])
    assert house.told() == {"wren": 1, "moss": 1}


def test_a_batch_may_be_empty(house):
    answer = bring(house, batch())
    told = (answer.status, answer.json["id"], answer.json["ids"], answer.json["agents"])
    assert told == (202, None, [], []) and house.told() == {"wren": 0, "moss": 0}


def test_data_that_is_not_json_is_carried_as_what_it_is(house):
    text = HTTPMessage({**to_binary(event("e-1"), JSONFormat()).headers, "content-type": "text/plain"}, b"it failed")
    raw = HTTPMessage({**to_binary(event("e-2"), JSONFormat()).headers, "content-type": "image/png"}, b"\x89PNG")
    assert (bring(house, text).status, bring(house, raw).status) == (202, 202)
    first, second = (json.loads(item.body) for item in house.inbox("wren"))
    assert first["data"] == "it failed"
    assert base64.b64decode(second["data_base64"]) == b"\x89PNG"


def test_events_go_to_whoever_has_them_in_on(house):
    house.declare({"wren": ("webhook://cloudevents",), "moss": ("webhook://cloudevents",)})
    answer = bring(house, to_structured(event(), JSONFormat()), query="")
    assert answer.status == 202 and answer.json["agents"] == ["moss", "wren"]
    assert house.told() == {"wren": 1, "moss": 1}


def test_a_signature_does_instead_of_the_token_where_on_names_a_secret(house):
    house.declare({"wren": ("webhook://cloudevents?secret=CI",), "moss": ()})
    message = to_structured(event(), JSONFormat())
    body = message.body if isinstance(message.body, bytes) else message.body.encode()
    media = "application/cloudevents+json"
    first = house.send("/hooks/cloudevents", body, ci(body=body), media=media)
    again = house.send("/hooks/cloudevents", body, ci("m-2", body=body), media=media)
    assert (first.status, again.json["id"]) == (202, first.json["id"])
    assert house.send("/hooks/cloudevents", body, ci(body=body, secret="guessed"), media=media).status == 401
    assert house.send("/hooks/cloudevents", body, [], media=media).status == 401
    # What stands in headers is signed by nobody.
    binary = to_binary(event("e-9"), JSONFormat())
    data = binary.body if isinstance(binary.body, bytes) else binary.body.encode()
    headers = [*ci(body=data), *((name, value) for name, value in binary.headers.items() if name.startswith("ce-"))]
    assert house.send("/hooks/cloudevents", data, headers).status == 400
    assert house.told() == {"wren": 1, "moss": 0}


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("application/cloudevents+json", b"{}"),
        ("application/cloudevents+json", b"[]"),
        ("application/cloudevents+json", b'{"specversion": "0.3", "id": "1", "source": "/s", "type": "t"}'),
        ("application/cloudevents+json", b'{"specversion": "1.0", "id": 1, "source": "/s", "type": "t"}'),
        ("application/cloudevents+json", b'{"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "Bad": 1}'),
        (
            "application/cloudevents+json",
            b'{"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "time": "x"}',
        ),
        ("application/cloudevents-batch+json", b"{}"),
        ("application/json", b'{"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}'),
    ],
)
def test_what_is_no_event_is_a_mistake(house, media, body):
    assert bring(house, HTTPMessage({"content-type": media}, body)).status == 400
    assert house.told() == {"wren": 0, "moss": 0}


def test_a_text_without_the_mark_of_an_event_is_refused(house):
    assert bring(house, HTTPMessage({"content-type": "text/plain"}, b"x")).status == 415


def test_an_event_for_an_agent_that_is_not_there_is_404(house):
    assert bring(house, to_structured(event(), JSONFormat()), query="?agent=nobody").status == 404
