"""An agent uses its tools from inside a run of a real engine, through `wakeful mcp` and through /mcp."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.office import ROOT, wakeful

FLEET = """\
#+TITLE: desk
#+GRACE: 1h

* fine
:PROPERTIES:
:RUN: true
:END:
* talk
:PROPERTIES:
:RUN: agents/talk.py
:TASKS: proofreading
:END:
"""

TALK = '''\
#!PYTHON
"""Uses its tools as a model would: some over stdio, some over HTTP."""
import asyncio, json, os, subprocess, sys

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main():
    server = StdioServerParameters(command=sys.executable, args=["-m", "wakeful", "mcp"], env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        sent = await client.call_tool("message_agent", {"to": "fine", "message": "over stdio"})
        await client.call_tool("add_task", {"title": "proofread", "role": "proofreading"})
        task = await client.call_tool("claim_task", {})
        number = task.structured_content["task"]["id"]
        done = await client.call_tool("complete_task", {"task": number, "result": "no commas left"})
        await client.call_tool("add_task", {"title": "print it", "role": "proofreading"})
        standing = await client.call_tool("my_standing", {})
    headers = {"Authorization": "Bearer " + os.environ["WAKEFUL_TOKEN"]}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        async with Client(streamable_http_client(os.environ["WAKEFUL_URL"] + "/mcp", http_client=http)) as client:
            woken = await client.call_tool("wake_agent", {"to": "fine", "message": "over http", "reason": "blocker"})
            other = await client.call_tool("read_inbox", {"agent": "fine"})
    claimed = wakeful("claim", "--json")
    number = str(json.loads(claimed.stdout)["task"]["id"])
    typed = [claimed, wakeful("done", number, "--result", "printed"), wakeful("claim")]
    told = [sent, done, standing, woken]
    codes = [each.returncode for each in typed]
    print(json.dumps([each.structured_content for each in told] + [other.is_error, codes, number, typed[-1].stderr]))


def wakeful(*said):
    return subprocess.run([sys.executable, "-m", "wakeful", "task", *said], capture_output=True, text=True)


asyncio.run(main())
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "fleet.org").write_text(FLEET)
    (folder / "agents").mkdir()
    script = folder / "agents" / "talk.py"
    script.write_text(TALK.replace("PYTHON", sys.executable))
    script.chmod(0o755)
    return folder


def environment() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
    return {**ours, "PYTHONPATH": str(ROOT / "src")}


def asked(folder: Path, *arguments: str):
    said = wakeful(*arguments, "--json", WAKEFUL_DATA=str(folder / ".wakeful"))
    assert said.exit_code == 0, said.output
    return json.loads(said.stdout)


@pytest.fixture(scope="module")
def engine(folder):
    command = [sys.executable, "-m", "wakeful", "up", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True) as engine:
        said = []
        for line in engine.stderr:
            said.append(line)
            if '"ready"' in line:
                break
        assert engine.poll() is None, "".join(said)
        try:
            yield engine
        finally:
            engine.terminate()
            engine.stderr.read()


def test_an_agent_messages_wakes_and_takes_a_task_through_mcp_from_inside_its_run(folder, engine):
    ended = asked(folder, "tick", "talk", "--wait")
    run = ended["id"]
    printed = wakeful("logs", str(run), WAKEFUL_DATA=str(folder / ".wakeful")).stdout
    sent, done, standing, woken, refused, codes, typed, said = json.loads(printed)
    assert (sent["message"]["from"], sent["message"]["body"]) == ("talk", "over stdio")
    assert (done["state"], done["result"]) == ("completed", "no commas left")
    assert (standing["name"], standing["run"]) == ("talk", run)
    assert woken["verdict"] == "admit" and refused is True
    (attempt,) = done["attempts"]
    assert (attempt["run_id"], attempt["outcome"]) == (run, "done") and ended["subject"] == "beat"
    assert (codes, said) == ([0, 0, 1], "no task of yours is ready\n")
    assert asked(folder, "task", "show", typed)["result"] == "printed"
    runs = asked(folder, "runs")["items"]
    assert (runs[0]["agent"], runs[0]["cause"], runs[0]["subject"]) == ("fine", "peer", "inbox")
    assert asked(folder, "audit")["adds_up"]
