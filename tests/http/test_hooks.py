"""Webhooks over real sockets: what is signed is recorded once, and nothing else leaves a trace."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from tests.http.hooked import BODY, ON, House, Standing, ci, github, hooked, payments, spelled, standing
from tests.http.served import KEYS
from wakeful.core.admission import admit
from wakeful.core.wakes import FLEET, Pause
from wakeful.testing.contracts.store_case import NOW


@pytest.fixture(scope="module")
def server() -> Iterator[Standing]:
    with standing() as server:
        yield server


@pytest.fixture
def house(server: Standing, tmp_path: Path) -> Iterator[House]:
    with hooked(server, tmp_path) as house:
        yield house


# ---- one delivery


def test_a_delivery_that_is_signed_is_a_message_from_outside_to_all_who_asked_for_it(house):
    answer = house.send("/hooks/github", BODY, github())
    assert answer.status == 202
    assert answer.json["agents"] == ["moss", "wren"] and not answer.json["duplicate"]
    (message,), (other,) = house.inbox("moss"), house.inbox("wren")
    assert answer.json["id"] == message.id and answer.json["ids"] == [message.id, other.id]
    assert (message.body, message.subject) == (BODY.decode(), "github: issues opened")
    assert (message.origin, message.sender, message.source) == ("external", "webhook:github", "webhook:github")
    assert json.loads(message.metadata) == {"hook": "github", "delivery": "d-1", "event": "issues"}


def test_it_rings_as_news(house):
    house.send("/hooks/ci", BODY, ci())
    wakes = house.writer.store.due(NOW).wakes
    assert [(wake.agent, wake.cause, wake.source) for wake in wakes if wake.item] == [("wren", "news", "webhook:ci")]


@pytest.mark.parametrize(
    ("path", "headers"), [("/hooks/github", github()), ("/hooks/ci", ci()), ("/hooks/payments", payments())]
)
def test_a_delivery_that_is_replayed_is_refused_and_told_as_what_it_was_taken(house, path, headers):
    first = house.send(path, BODY, headers)
    before = house.told()
    for _ in range(3):
        again = house.send(path, BODY, headers)
        assert again.status == 409 and f"message {first.json['id']}" in again.json["detail"]
    assert house.told() == before


@pytest.mark.parametrize(("path", "signed"), [("/hooks/ci", ci), ("/hooks/payments", payments)])
def test_a_sender_that_tries_again_signs_anew_and_is_told_the_same(house, path, signed):
    first = house.send(path, BODY, signed())
    before = house.told()
    again = house.send(path, BODY, signed(at=NOW + timedelta(seconds=30)))
    assert (again.status, again.json["id"], again.json["duplicate"]) == (202, first.json["id"], True)
    assert house.told() == before


def test_two_deliveries_that_say_the_same_are_two(house):
    first, other = (house.send("/hooks/github", BODY, github(delivery=name)) for name in ("d-1", "d-2"))
    assert (first.status, other.status) == (202, 202) and first.json["id"] != other.json["id"]
    assert house.told() == {"wren": 2, "moss": 2}


def test_of_many_that_come_at_once_one_is_recorded(house):
    with ThreadPoolExecutor(8) as senders:
        answers = list(senders.map(lambda _: house.send("/hooks/github", BODY, github()), range(16)))
    assert sorted(answer.status for answer in answers) == [202] + [409] * 15
    assert house.told() == {"wren": 1, "moss": 1}


def test_it_is_the_same_when_it_was_dealt_with_and_when_another_agent_has_the_hook_by_then(house):
    house.declare({"wren": ON["wren"], "moss": ()})
    run, epoch = house.begin("wren")
    first = house.send("/hooks/github", BODY, github()).json["id"]
    house.end(run, epoch)
    house.declare({"wren": (), "moss": ON["moss"]})
    again = house.send("/hooks/github", BODY, github())
    assert again.status == 409 and f"message {first}" in again.json["detail"]
    assert house.told() == {"wren": 1, "moss": 0}


def test_a_repetition_is_told_who_has_it(house):
    house.send("/hooks/ci", BODY, ci())
    assert house.send("/hooks/ci", BODY, ci(at=NOW + timedelta(seconds=1))).json["agents"] == ["wren"]


def test_two_senders_of_one_name_do_not_swallow_each_others_ids(house):
    house.declare({"wren": ("webhook://ci?secret=CI",), "moss": ("webhook://ci?secret=CI_OLD",)})
    first = house.send("/hooks/ci", BODY, ci("1")).json
    other = house.send("/hooks/ci", BODY, ci("1", secret="the-old-one")).json
    third = house.send("/hooks/ci", b"{}", ci("2", body=b"{}")).json
    fourth = house.send("/hooks/ci", BODY, ci("2", secret="the-old-one"))
    assert [each["agents"] for each in (first, other, third, fourth.json)] == [["wren"], ["moss"], ["wren"], ["moss"]]
    assert not any(each["duplicate"] for each in (first, other, third, fourth.json)) and fourth.status == 202
    later = NOW + timedelta(seconds=9)
    again = house.send("/hooks/ci", BODY, ci("1", later, secret="the-old-one")).json
    assert (again["id"], again["duplicate"], again["agents"]) == (other["id"], True, ["moss"])
    assert house.told() == {"wren": 2, "moss": 2}


def test_a_new_secret_makes_no_new_sender(house):
    house.declare({"wren": ("webhook://ci?secret=CI_OLD",), "moss": ()})
    first = house.send("/hooks/ci", BODY, ci("1", secret="the-old-one")).json["id"]
    house.declare({"wren": ("webhook://ci?secret=CI&secret=CI_OLD",), "moss": ()})
    later = NOW + timedelta(seconds=9)
    assert house.send("/hooks/ci", BODY, ci("1", later)).json["id"] == first
    second = house.send("/hooks/ci", BODY, ci("2", secret="the-old-one")).json["id"]
    house.declare({"wren": ("webhook://ci?secret=CI",), "moss": ()})
    assert house.send("/hooks/ci", BODY, ci("2", later)).json["id"] == second
    assert house.told() == {"wren": 2, "moss": 0}


def test_it_is_the_same_for_as_long_as_its_time_could_be_repeated_and_longer(house):
    first = house.send("/hooks/ci", BODY, ci(at=NOW + timedelta(seconds=300))).json["id"]
    run, epoch = house.begin("wren")
    house.end(run, epoch)
    house.now = NOW + timedelta(seconds=600)
    later = house.now + timedelta(minutes=10)
    house.write(lambda store: store.forget(later - timedelta(days=30), later - timedelta(days=14), later))
    again = house.send("/hooks/ci", BODY, ci(at=NOW + timedelta(seconds=300)))
    assert again.status == 409 and f"message {first}" in again.json["detail"]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/hooks/github", spelled(github(), "X-Hub-Signature-256", lambda v: "sha256=" + v[7:].upper())),
        ("/hooks/github", spelled(github(), "X-GitHub-Delivery", lambda v: f"  {v}  ")),
        ("/hooks/ci", spelled(ci(), "X-Webhook-Signature", lambda v: v[7:].upper())),
        ("/hooks/ci", spelled(ci(), "X-Webhook-Id", lambda v: f"\t{v} ")),
        ("/hooks/payments", spelled(payments(), "webhook-signature", lambda v: v.replace("+", "-").replace("/", "_"))),
        ("/hooks/payments", spelled(payments(), "webhook-signature", lambda v: f"{v}   {v}")),
        ("/hooks/payments", spelled(payments(), "webhook-signature", lambda v: v.rstrip("="))),
    ],
)
def test_what_is_only_written_in_another_way_is_the_same_event_and_refused(house, path, headers):
    usual = {"/hooks/github": github(), "/hooks/ci": ci(), "/hooks/payments": payments()}[path]
    first = house.send(path, BODY, usual).json["id"]
    before = house.told()
    again = house.send(path, BODY, headers)
    assert again.status == 409 and f"message {first}" in again.json["detail"]
    assert house.told() == before


def test_two_deliveries_are_two_events(house):
    house.send("/hooks/ci", BODY, ci("m-1"))
    house.send("/hooks/ci", BODY, ci("m-2"))
    assert house.told() == {"wren": 2, "moss": 0}


def test_an_id_is_that_of_its_own_webhook(house):
    house.send("/hooks/ci", BODY, ci("m-1"))
    assert not house.send("/hooks/payments", BODY, payments("m-1")).json["duplicate"]
    assert house.told() == {"wren": 1, "moss": 1}


def test_one_id_with_two_bodies_is_a_conflict_and_the_first_stands(house):
    house.send("/hooks/ci", BODY, ci())
    answer = house.send("/hooks/ci", b"{}", ci(body=b"{}"))
    assert answer.status == 409
    assert [item.body for item in house.inbox("wren")] == [BODY.decode()]


def test_both_of_two_secrets_hold_until_the_old_one_is_taken_away(house):
    assert house.send("/hooks/ci", BODY, ci("m-1", secret="the-new-one")).status == 202
    assert house.send("/hooks/ci", BODY, ci("m-2", secret="the-old-one")).status == 202
    del house.secrets["CI_OLD"]
    assert house.send("/hooks/ci", BODY, ci("m-3", secret="the-old-one")).status == 401
    assert house.send("/hooks/ci", BODY, ci("m-4", secret="the-new-one")).status == 202


def test_a_paused_fleet_still_records_and_begins_nothing(house):
    house.write(lambda store: store.pause(Pause(scope=FLEET, owner="operator", reason="night", since=NOW), NOW))
    assert house.send("/hooks/ci", BODY, ci()).status == 202
    decided = house.write(lambda store: store.decide(store.due(NOW).wakes, admit, NOW))
    assert {each.verdict.guard for each in decided} == {"paused"}
    assert house.told() == {"wren": 1, "moss": 0}


def test_a_webhook_can_be_paused_by_itself(house):
    assert house.ask("POST", "/v1/agents/source:webhook:ci/pause", {"reason": "noisy"}).status == 200
    assert house.ask("POST", "/v1/agents/source:webhook:cj/pause", {"reason": "noisy"}).status == 404
    house.send("/hooks/ci", BODY, ci())
    house.send("/hooks/payments", BODY, payments())
    ringing = [wake for wake in house.writer.store.due(NOW).wakes if wake.item]
    decided = house.write(lambda store: store.decide(ringing, admit, NOW))
    held = {wake.source for wake, each in zip(ringing, decided, strict=True) if each.verdict.guard == "paused"}
    assert held == {"webhook:ci"}


def test_a_trial_of_github_is_answered_and_wakes_nobody(house):
    body = b'{"zen": "Design for failure.", "hook_id": 1}'
    headers = spelled(github(body), "X-GitHub-Event", lambda v: "ping")
    assert house.send("/hooks/github", body, headers).status == 202
    assert house.told() == {"wren": 0, "moss": 0}


# ---- what is not let in


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/hooks/github", [], 401),
        ("/hooks/github", github(secret="guessed"), 401),
        ("/hooks/github", [*github(), github()[2]], 401),
        ("/hooks/github", [*github(), ("X-GitHub-Delivery", "d-1")], 401),
        ("/hooks/ci", ci(at=NOW - timedelta(seconds=301)), 401),
        ("/hooks/ci", ci(at=NOW + timedelta(seconds=301)), 401),
        ("/hooks/ci", ci(secret="guessed"), 401),
        ("/hooks/ci", [*ci(), ci()[0]], 401),
        ("/hooks/ci", [*ci(), ("webhook-id", "m-1")], 401),
        ("/hooks/ci", spelled(ci(), "X-Webhook-Id", lambda v: "m-2"), 401),
        ("/hooks/payments", payments(at=NOW - timedelta(seconds=301)), 401),
        ("/hooks/payments", payments(at=NOW + timedelta(seconds=301)), 401),
        ("/hooks/payments", spelled(payments(), "webhook-signature", lambda v: v.replace("v1,", "v1=")), 401),
        ("/hooks/shut", ci(), 403),
        ("/hooks/unset", ci(secret=""), 403),
        ("/hooks/nobody", ci(), 404),
        ("/hooks/GitHub", github(), 404),
        ("/hooks/github", [*github(), ("Origin", "https://example.org")], 403),
        # A token is no signature.
        ("/hooks/github", [("Authorization", f"Bearer {KEYS.operator}")], 401),
    ],
)
def test_what_proves_nothing_leaves_nothing(house, path, headers, status):
    answer = house.send(path, BODY, headers)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json" and answer.json["remedy"]
    assert not any(secret in answer.body.decode() for secret in house.secrets.values())
    assert house.told() == {"wren": 0, "moss": 0}


def test_a_signature_is_of_the_bytes_that_were_sent(house):
    assert house.send("/hooks/ci", BODY.replace(b" ", b""), ci()).status == 401
    assert house.told() == {"wren": 0, "moss": 0}


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b"payload=%7B%7D"])
def test_what_is_signed_and_not_json_is_a_mistake(house, body):
    assert house.send("/hooks/ci", body, ci(body=body)).status == 400
    assert house.told() == {"wren": 0, "moss": 0}


def test_a_form_is_not_json_whoever_signs_it(house):
    body = b"payload=%7B%7D"
    assert house.send("/hooks/github", body, github(body), media="application/x-www-form-urlencoded").status == 415


def test_wrong_signatures_are_counted_and_right_ones_are_let_in_all_the_same(house):
    found = {house.send("/hooks/ci", BODY, ci(secret="guessed")).status for _ in range(25)}
    assert found == {401, 429}
    assert house.send("/hooks/ci", BODY, ci()).status == 202


@pytest.mark.parametrize(("name", "status"), [("nobody", 404), ("shut", 403)])
def test_names_are_not_to_be_had_by_guessing(house, name, status):
    found = [house.send(f"/hooks/{name}", BODY, []).status for _ in range(25)]
    assert found[0] == status and found[-1] == 429
    assert house.send("/hooks/ci", BODY, ci()).status == 202


def test_a_sender_whose_signature_does_not_hold_is_told_nothing_of_tokens(house):
    problem = house.send("/hooks/ci", BODY, ci(secret="guessed")).json
    assert (problem["type"], problem["title"]) == ("urn:wakeful:error:signature", "The signature does not hold")


def test_who_was_not_let_in_is_told_of_in_the_events(house):
    house.send("/hooks/ci", BODY, ci(secret="guessed"))
    (event,) = house.writer.store.events(kinds=("denied",))
    assert event.fields["why"] == "signature" and event.fields["path"] == "/hooks/ci"


def test_the_operator_is_told_once_why_a_webhook_is_closed_and_the_stranger_is_not(house, caplog):
    for _ in range(3):
        assert "NOT_SET" not in house.send("/hooks/unset", BODY, ci()).body.decode()
    house.send("/hooks/shut", BODY, ci())
    told = [record.getMessage() for record in caplog.records if "is closed" in record.getMessage()]
    assert told == [
        "the webhook unset is closed: NOT_SET is not set",
        "the webhook shut is closed: ON names no secret for it",
    ]
