"""The night desk at work: a real engine, four small real agents, for as long as you watch.

The fleet of `examples/desk` is copied to a folder of its own and kept at work by `wakeful up`; tasks, a message and a
pause are added from outside, with the same commands that you would type. What happens is told line by line from the
engine's log, and summed up at the end from its store.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from wakeful.core.durations import parse_duration

DESK = Path(__file__).parent / "desk"
WAKEFUL = [sys.executable, "-m", "wakeful"]
SHADES = {"done": "green", "no_work": "dim", "failed": "red", "killed": "magenta"}
READY = 30.0


class Desk:
    """The fleet in a folder of its own, and the engine that keeps it at work."""

    def __init__(self, folder: Path, port: int, console: Console) -> None:
        self.folder = folder
        self.console = console
        shutil.copytree(DESK, folder, dirs_exist_ok=True)
        (folder / "work").mkdir()
        (folder / "inbox").mkdir()
        command = [*WAKEFUL, "up", "--port", str(port)]
        self.engine = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        self.ready = threading.Event()
        self.url = ""
        self.last = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.engine.stderr is not None
        for line in self.engine.stderr:
            try:
                self._tell(json.loads(line))
            except ValueError:
                self.last = line.strip()

    def _tell(self, line: dict[str, Any]) -> None:
        kind, at, who = line["event"], line["at"][11:19], f"{line.get('agent', ''):5}"
        if kind == "ready":
            self.url = line["url"]
            self.ready.set()
        elif kind == "ended":
            outcome, (state, _), (stands, _) = line["outcome"], line["position"], line["stands"]
            moved = f" → {stands}" if line["subject"] == "beat" and stands != state else ""
            what = state if line["subject"] == "beat" else line["subject"]
            why = f" ({line['reason']})" if line.get("reason") else ""
            shade = f"[{SHADES[outcome]}]{outcome}[/]"
            self.console.print(f"{at}  {who} {line['cause']:8} {what:6} {shade}{moved}{why}")
        elif kind == "decided" and line.get("verdict") in ("refuse", "defer") and line.get("guard") != "moot":
            word = {"refuse": "refused", "defer": "deferred"}[line["verdict"]]
            self.console.print(f"{at}  {who} [yellow]{word}[/] by {line['guard']}: {line['why']}")
        elif kind in ("paused", "resumed"):
            self.console.print(f"{at}  {who} [bold]{kind}[/] {line.get('reason', '')}")

    def ask(self, *words: str) -> Any:
        """A command as you would type it; what it says with --json, or None when it was refused."""
        done = subprocess.run([*WAKEFUL, *words], cwd=self.folder, capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout) if "--json" in words and done.stdout else None

    def dashboard(self) -> str:
        """Its address, with the token where no server is told of it."""
        done = subprocess.run([*WAKEFUL, "token"], cwd=self.folder, capture_output=True, text=True, timeout=60)
        return f"{self.url}/#token={done.stdout.strip()}"

    def close(self) -> int:
        self.engine.send_signal(signal.SIGTERM)
        code = self.engine.wait(30)
        self._reader.join(5)
        return code


def work(desk: Desk, length: timedelta | None) -> None:
    began = time.monotonic()
    for title in ("page one", "a torn page", "page three"):
        desk.ask("task", "add", title, "--role", "filing")
    desk.ask("send", "moss", "please read the first page with care")
    (desk.folder / "inbox" / "proofs.txt").write_text("three pages, two mistakes\n", encoding="utf-8")
    desk.ask("pause", "moss", "--reason", "a coffee", "--for", "2s")
    desk.ask("tick", "moss")
    while length is None or time.monotonic() - began < length.total_seconds():
        time.sleep(0.1)
        if desk.engine.poll() is not None:
            return


def gathered(desk: Desk) -> tuple[Counter[str], list[dict[str, Any]]]:
    """What happened, counted from the events; and the tasks."""
    counts: Counter[str] = Counter()
    after = 0
    while page := desk.ask("events", "--after", str(after), "--limit", "500", "--json")["items"]:
        for event in page:
            count(counts, event)
        after = page[-1]["id"]
    return counts, desk.ask("task", "list", "--json")["items"]


def count(counts: Counter[str], event: dict[str, Any]) -> None:
    fields = event.get("fields") or {}
    if event["kind"] == "ended":
        counts[f"runs {fields['outcome']}"] += 1
        if fields["subject"] == "beat" and fields["position"][0] != fields["stands"][0]:
            counts["lifecycle transitions"] += 1
        if fields["subject"] == "beat" and fields["position"][0] == "rest":
            counts["quiet beats (rem, no model)"] += 1
    elif event["kind"] == "decided" and "verdict" in fields:
        verdict = fields["verdict"]
        counts[f"decisions {verdict['kind']} {verdict.get('guard') or ''}".strip()] += 1


def show(console: Console, counts: Counter[str], tasks: list[dict[str, Any]]) -> None:
    table = Table(title="what happened", show_header=False)
    for name, number in sorted(counts.items()):
        table.add_row(name, str(number))
    for task in tasks:
        table.add_row(f"task {task['title']}", f"{task['state']} after {len(task['attempts'])} attempts")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--for", dest="length", type=parse_duration, default=None, help="end by itself, after 20s say")
    parser.add_argument("--port", type=int, default=7717)
    options = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="wakeful-demo-") as folder:
        desk = Desk(Path(folder), options.port, console)
        if not desk.ready.wait(READY):
            sys.exit(f"the engine did not come up: {desk.last}")
        ends = f"for {options.length.total_seconds():g} s" if options.length else "until Ctrl-C"
        console.print(f"[bold]night desk[/] at {desk.url}, {ends}")
        console.print(f"watch it: {desk.dashboard()}", markup=False)
        try:
            work(desk, options.length)
        except KeyboardInterrupt:
            console.print()
        counts, tasks = gathered(desk)
        code = desk.close()
    show(console, counts, tasks)
    sys.exit(code)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
