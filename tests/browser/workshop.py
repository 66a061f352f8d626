"""A small fleet for what changes it: `crier` prints what it is told until it is told to end, `mill` grinds tasks."""

from __future__ import annotations

from pathlib import Path

from tests.browser.desk import Running
from tests.engine.stage import heading

# What is written into the file `words` is printed as it comes. "!" before a word is a complaint, "many" is a lot.
CRIER = """
import os, sys, time

with open(os.path.join(os.environ["WAKEFUL_ROOT"], "words")) as words:
    while True:
        line = words.readline().strip()
        if not line:
            time.sleep(0.02)
        elif line == "end":
            break
        elif line == "many":
            sys.stdout.write("".join(f"line {number:05} of very many {'and on ' * 16}\\n" for number in range(10_000)))
        else:
            print(line.lstrip("!"), file=sys.stderr if line.startswith("!") else sys.stdout, flush=True)
"""

MILL = """
import json, os, sys

with open(os.environ["WAKEFUL_BRIEFING"]) as file:
    task = json.load(file)["tasks"][0]
print("grinding", task["title"])
if "stone" in task["title"] and not os.path.exists(os.path.join(os.environ["WAKEFUL_ROOT"], "harder")):
    sys.exit("a stone is in it")
with open(os.environ["WAKEFUL_RESULT"], "w") as file:
    json.dump({"outcome": "done", "summary": "ground: " + task["title"]}, file)
"""


class Workshop(Running):
    def __init__(self, folder: Path) -> None:
        keys = (
            "#+TITLE: workshop\n#+GRACE: 2h\n#+KILL-GRACE: 1s\n#+RETRY-BASE: 1s\n#+MAX-RETRIES: 0\n#+BURST: 500/10m\n"
        )
        agents = (
            heading("crier", run='python3 -S "$WAKEFUL_ROOT/crier.py"', interval="1d"),
            heading("mill", run='python3 -S "$WAKEFUL_ROOT/mill.py"', tasks="grinding"),
        )
        super().__init__(folder, keys + "".join(agents))
        (folder / "crier.py").write_text(CRIER)
        (folder / "mill.py").write_text(MILL)
        self.words = folder / "words"

    def begin(self) -> Workshop:
        self.up()
        return self

    def cries(self, *words: str) -> int:
        """A run of the crier that prints these words, and more as they are `said`."""
        self.words.write_text("")
        self.say(*words)
        run = self.client.tick("crier", reason="the market is open")["run_id"]
        self.until(lambda: self.client.show_run(run)["state"] == "running", "the crier to be at it")
        return int(run)

    def say(self, *words: str) -> None:
        with self.words.open("a") as file:
            file.write("".join(f"{word}\n" for word in words))

    def ended(self, run: int) -> None:
        self.until(lambda: self.client.show_run(run)["state"] == "ended", "the run to have ended")

    def dead(self, many: int) -> list[int]:
        """So many tasks that were given up."""
        batch = [{"title": f"stone {number}", "role": "grinding", "tags": ["stones"]} for number in range(1, many + 1)]
        ids = [row["id"] for row in self.client.add_tasks(batch)["items"]]
        self.until(lambda: self.counts().get("dead_letter", 0) >= many, "all of them to be dead")
        return ids

    def counts(self) -> dict[str, int]:
        return dict(self.client.count_tasks()["counts"])
