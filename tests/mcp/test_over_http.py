"""/mcp: the SDK's client lists and calls every tool; a token decides what is allowed, and when it ends."""

import json

import pytest

from tests.http.served import KEYS
from tests.mcp.conftest import FOUR
from tests.mcp.session import TOOLS, call, every_tool, over_http
from wakeful.http.auth import run_token


@pytest.mark.parametrize(("mode", "agent", "other"), [("legacy", "wren", "fern"), ("auto", "robin", "moss")])
def test_every_tool_is_listed_and_called_in_a_run(house, begin, mode, agent, other):
    run, epoch = begin(agent)
    token = run_token(KEYS, run, epoch, house.now)
    told = over_http(house.served.port, token, lambda client: every_tool(client, f"{agent}s", other), mode)
    assert set(told) == TOOLS and [name for name, answer in told.items() if answer.failed] == []
    assert told["wake_agent"].value["verdict"] == "admit"
    assert (told["my_standing"].value["name"], told["my_standing"].value["run"]) == (agent, run)
    assert told["load_step"].value["result"] == [1, 2] and told["load_step"].value["recorded"] is True
    done = told["complete_task"].value
    assert (done["state"], json.loads(done["result"])) == ("completed", {"commas": 42})
    messages = house.ask("GET", f"/v1/agents/{other}/inbox").json["items"]
    assert [(each["from"], each["body"]) for each in messages] == [
        (agent, "the draft is ready"),
        (agent, "the press is down"),
    ]


def test_a_run_wakes_three_times_and_is_then_told_to_leave_a_message(house, begin):
    run, epoch = begin("heron")
    token = run_token(KEYS, run, epoch, house.now)

    async def talk(client):
        told = [await call(client, "wake_agent", to=name, message="look", reason="blocker") for name in FOUR]
        return told[-1]

    told = over_http(house.served.port, token, talk)
    assert not told.failed
    assert (told.value["verdict"], told.value["guard"]) == ("refuse", "wakes_per_run")
    assert "message_agent" in told.value["advice"]


def test_a_run_sees_and_does_what_is_its_own_and_no_more(house, begin):
    run, epoch = begin("finch")
    token = run_token(KEYS, run, epoch, house.now)

    async def talk(client):
        return [
            await call(client, "read_inbox", agent="moss"),
            await call(client, "my_standing", agent="moss"),
            await call(client, "wake_agent", to="finch", message="m", reason="blocker"),
            await call(client, "wake_agent", to="moss", message="m", reason="I want to"),
            await call(client, "message_agent", to="mos", message="m"),
            await call(client, "message_agent", to="xyzzy", message="m"),
            await call(client, "complete_task", task=99),
        ]

    told = over_http(house.served.port, token, talk)
    assert all(each.failed for each in told)
    expected = [
        *("not of moss (do without it, or ask the operator)", "of moss", "itself", "message_agent"),
        *("did you mean moss?", "there are alder, ", "and 99 is none of them (name one"),
    ]
    for each, said in zip(told, expected, strict=True):
        assert said in each.text, each.text
        # Whoever has only tools can call no command.
        assert each.text.endswith(")") and "`wakeful" not in each.text, each.text


def test_the_operator_may_look_at_anybody_and_is_told_what_only_a_run_can_do(house):
    async def talk(client):
        return {
            "read": await call(client, "read_inbox", agent="moss"),
            "stands": await call(client, "my_standing", agent="moss"),
            "whose": await call(client, "my_standing"),
            "claims": await call(client, "claim_task"),
            "saves": await call(client, "save_step", name="s", result=1),
        }

    told = over_http(house.served.port, KEYS.operator, talk)
    assert not told["read"].failed and told["stands"].value["wakes"]["maxWakesPerDay"] == 12
    assert "name one as `agent`" in told["whose"].text
    assert "claimed by a run" in told["claims"].text and "belongs to a run" in told["saves"].text


def posted(house, message, token, **headers):
    accept = {"Accept": "application/json, text/event-stream", **headers}
    return house.ask("POST", "/mcp", message, token=token, headers=accept)


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def test_the_token_dies_with_the_run_and_nothing_was_left_open(house, begin):
    run, epoch = begin("crane")
    token = run_token(KEYS, run, epoch, house.now)
    assert posted(house, LIST, token).status == 200
    house.end(run, epoch)
    assert posted(house, LIST, token).status == 401


def test_a_plain_request_without_a_handshake_and_without_an_accept_header_is_answered(house):
    answer = house.ask("POST", "/mcp", LIST)
    assert answer.status == 200
    assert {tool["name"] for tool in answer.json["result"]["tools"]} == TOOLS


def test_it_stands_behind_the_entry_like_every_other_path(house):
    operator = KEYS.operator
    assert posted(house, LIST, None).status == 401
    assert posted(house, LIST, "wrong").status == 401
    assert posted(house, LIST, operator, Host="evil.example").status == 421
    assert posted(house, LIST, operator, Origin="http://evil.example").status == 403
    assert house.ask("POST", "/mcp", b"{}", headers={"Content-Type": "text/plain"}).status == 415
    assert house.ask("POST", "/mcp", b" " * 1_100_000).status == 413


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_is_no_session_and_no_stream_to_be_left_open(house, method):
    answer = house.ask(method, "/mcp", headers={"Accept": "text/event-stream"})
    assert (answer.status, answer.headers["allow"], answer.json["status"]) == (405, "POST", 405)


def test_what_is_no_mcp_is_4xx_and_never_5xx(house):
    for body in (b"", b"{", b"[]", b'"x"', b'{"jsonrpc": "2.0"}', b"[" * 5000):
        answer = house.ask("POST", "/mcp", body or None, headers={"Accept": "application/json"})
        assert 400 <= answer.status < 500, (body[:20], answer)
    assert house.ask("POST", "/mcp", LIST, headers={"Accept": "text/html"}).status == 406
