"""`make inspect`: the MCP inspector's command line lists and calls every tool of a fleet at work, over stdio and HTTP.

Law: it acts as a run of a real engine, with that run's own token; each tool is called through each way, and answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 120.0
STEP = 0.1

FLEET = """\
#+TITLE: desk
#+GRACE: 1h

* moss
:PROPERTIES:
:RUN: true
:END:
* reed
:PROPERTIES:
:RUN: true
:END:
* wren
:PROPERTIES:
:RUN: ./agent.sh
:TASKS: editing
:END:
"""
# Tells its own environment, and waits to be ended.
AGENT = '#!/bin/sh\nenv > "$WAKEFUL_ROOT/run.new"\nmv "$WAKEFUL_ROOT/run.new" "$WAKEFUL_ROOT/run.env"\nexec sleep 600\n'


def main(inspector: str) -> int:
    with tempfile.TemporaryDirectory() as name, _engine(Path(name)) as folder:
        url, token = _run(folder)
        environment = ("-e", f"WAKEFUL_URL={url}", "-e", f"WAKEFUL_TOKEN={token}")
        ways = {
            "stdio": (sys.executable, "-m", "wakeful", "mcp", *environment),
            "http": (f"{url}/mcp", "--transport", "http", "--header", f"Authorization: Bearer {token}"),
        }
        failed = [complaint for way, server in ways.items() for complaint in _through(inspector, way, server)]
        _wakeful(folder, "pause", "--now")
    print("\n".join(failed) or "every tool was listed and called, over stdio and HTTP")
    return 1 if failed else 0


def _through(inspector: str, way: str, server: tuple[str, ...]) -> Iterator[str]:
    """What went wrong that way."""

    def ask(*said: str) -> Any:
        command = [os.path.abspath(inspector), "--cli", *server, *said]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        try:
            return json.loads(done.stdout)
        except ValueError:
            return {"error": done.stdout + done.stderr}

    def call(tool: str, arguments: dict[str, Any]) -> Any:
        given = [part for key, value in arguments.items() for part in ("--tool-arg", f"{key}={value}")]
        return ask("--method", "tools/call", "--tool-name", tool, *given)

    listed = {tool["name"] for tool in ask("--method", "tools/list").get("tools", ())}
    other = {"stdio": "moss", "http": "reed"}[way]
    asked: dict[str, dict[str, Any]] = {
        "list_agents": {},
        "my_standing": {},
        "message_agent": {"to": other, "message": "the draft is ready"},
        "wake_agent": {"to": other, "message": "the press is down", "reason": "blocker"},
        "read_inbox": {},
        "add_task": {"title": "proofread", "role": "editing"},
        "claim_task": {},
        "save_step": {"name": "read it", "result": "[1, 2]"},
        "load_step": {"name": "read it"},
        "complete_task": {"result": "no commas left"},
    }
    for name in sorted(listed ^ set(asked)):
        yield f"{way}: {name} is not on both lists"
    task: dict[str, Any] = {}
    for name, arguments in asked.items():
        answer = call(name, arguments | (task if name in ("save_step", "load_step", "complete_task") else {}))
        told = answer.get("structuredContent")
        if answer.get("isError") is not False or not isinstance(told, dict):
            yield f"{way}: {name}: {json.dumps(answer)[:400]}"
            continue
        if name == "claim_task":
            task = {"task": told["task"]["id"]}
        print(f"{way:6} {name:14} ok")


@contextmanager
def _engine(folder: Path) -> Iterator[Path]:
    (folder / "fleet.org").write_text(FLEET)
    (folder / "agent.sh").write_text(AGENT)
    (folder / "agent.sh").chmod(0o755)
    command = [sys.executable, "-m", "wakeful", "up", "--port", "0"]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, cwd=folder, stderr=log) as engine:
        try:
            yield folder
        finally:
            engine.terminate()


def _run(folder: Path) -> tuple[str, str]:
    """A run under way: where its engine is, and its token."""
    told, deadline = folder / "run.env", time.monotonic() + PATIENCE
    while not (folder / ".wakeful" / "engine.json").exists() and time.monotonic() < deadline:
        time.sleep(STEP)
    _wakeful(folder, "tick", "wren")
    while not told.exists() and time.monotonic() < deadline:
        time.sleep(STEP)
    known = dict(line.split("=", 1) for line in told.read_text().splitlines() if line.startswith("WAKEFUL_"))
    return known["WAKEFUL_URL"], known["WAKEFUL_TOKEN"]


def _wakeful(folder: Path, *said: str) -> None:
    subprocess.run([sys.executable, "-m", "wakeful", *said], cwd=folder, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
