"""`wakeful mcp`: whom it acts for, with an engine and without."""

import asyncio
import io
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from mcp import Client

from tests.cli.office import TOKEN, Office, Served, wakeful
from tests.mcp.session import TOOLS, call
from wakeful.cli import main
from wakeful.cli.mcp import Asked
from wakeful.cli.place import Place, place_of
from wakeful.mcp.server import build

OURS = ("WAKEFUL_DATA", "WAKEFUL_URL", "WAKEFUL_TOKEN")


@pytest.fixture
def office(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in OURS:
        monkeypatch.delenv(name, raising=False)
    office = Office(tmp_path)
    office.declare()
    return office


def talk(place: Place, *calls: tuple[str, dict[str, object]]):
    async def go():
        asked = Asked(place)
        async with Client(build(lambda context: asked)) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            return [await call(client, name, **given) for name, given in calls]

    return asyncio.run(go())


def test_without_an_engine_it_is_the_operator_and_what_is_sent_is_kept(office):
    sent, woken, listed, claimed = talk(
        place_of(None, None),
        ("message_agent", {"to": "wren", "message": "hello"}),
        ("wake_agent", {"to": "moss", "message": "come", "reason": "user_request"}),
        ("list_agents", {}),
        ("claim_task", {}),
    )
    assert sent.value["message"]["from"] == "operator" and woken.value["verdict"] == "defer"
    assert [agent["name"] for agent in listed.value["items"]] == ["moss", "wren"]
    assert claimed.failed and "claimed by a run" in claimed.text
    with office.store() as store:
        assert [item.body for item in store.items(agent="wren")] == ["hello"]


def test_with_an_engine_it_asks_that_with_the_operators_token(office):
    served = Served(office)
    try:
        read, unknown = talk(
            place_of(None, None), ("read_inbox", {"agent": "wren"}), ("message_agent", {"to": "mos", "message": "m"})
        )
    finally:
        served.close()
    assert read.value == {"items": [], "next": None} and set(served.tokens) == {f"Bearer {TOKEN}"}
    assert unknown.failed and "did you mean moss?" in unknown.text


def test_inside_a_run_it_speaks_with_the_runs_token_about_the_runs_own_agent(office):
    run = office.begin("wren")
    served = Served(office)
    token = f"run.{run}.1.{'0' * 64}"
    try:
        read, standing = talk(Place("elsewhere", None, served.url, token), ("read_inbox", {}), ("my_standing", {}))
    finally:
        served.close()
    assert not read.failed and standing.value["name"] == "wren" and set(served.tokens) == {f"Bearer {token}"}


def test_an_engine_that_is_gone_is_told_and_not_the_end_of_it(office):
    gone = Place("elsewhere", None, "http://127.0.0.1:9", "run.1.1.0")
    first, second = talk(gone, ("list_agents", {}), ("read_inbox", {}))
    assert first.failed and "cannot be reached" in first.text and "wakeful doctor" in first.text
    assert second.failed


def test_an_engine_that_nobody_asks_over_mcp_does_not_load_it():
    look = "import sys, wakeful.mcp.served; assert 'mcp' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", look], timeout=60).returncode == 0


def test_where_there_is_no_fleet_it_does_not_begin(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = wakeful("mcp")
    assert (said.exit_code, said.stdout) == (2, "") and "there is no fleet here" in said.stderr


BEGIN = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
BEGUN = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
SEND = {
    "jsonrpc": "2.0",
    "id": "two",
    "method": "tools/call",
    "params": {"name": "message_agent", "arguments": {"to": "wren", "message": "hello"}},
}


def test_it_answers_all_that_was_asked_before_its_input_ended_and_says_nothing_else(office):
    said = wakeful_told("mcp", *(json.dumps(each) for each in (BEGIN, BEGUN, LIST, SEND)), "no protocol")
    assert said.exit_code == 0, said.output
    answers = {answer.get("id"): answer for answer in map(json.loads, said.stdout.splitlines())}
    begun, listed, sent = (answers[id]["result"] for id in (0, 1, "two"))
    assert begun["serverInfo"]["name"] == "wakeful" and "message_agent" in begun["instructions"]
    assert {tool["name"] for tool in listed["tools"]} == TOOLS
    assert sent["structuredContent"]["message"]["body"] == "hello" and sent["isError"] is False


def wakeful_told(command: str, *lines: str):
    return CliRunner().invoke(main, [command], input=io.BytesIO("".join(f"{line}\n" for line in lines).encode()))
