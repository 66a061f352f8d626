"""A real engine and what lies outside: a file in an inbox, a list that a program prints."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.office import ROOT, wakeful

FLEET = """\
#+TITLE: desk
#+GRACE: 0s

* moss
:PROPERTIES:
:INBOX: inbox/moss
:RUN: agents/moss.sh
:END:
* wren
:PROPERTIES:
:ON: snapshot+exec:pending#every=1s
:ENV: PENDING_TOKEN
:RUN: true
:END:
"""
# It keeps what it was told, and then edits what it was shown.
MOSS = """\
#!/bin/sh
cp "$WAKEFUL_BRIEFING" "$WAKEFUL_ROOT/told/$WAKEFUL_RUN_ID"
grep -q "water the plants" "$WAKEFUL_BRIEFING" && echo done >>"$WAKEFUL_ROOT/inbox/moss/note"
exit 0
"""
PENDING = '#!/bin/sh\necho "refused: $PENDING_TOKEN" >&2\nexit 1\n'
SECRET = "a-token-of-some-length"
QUICK, PATIENCE = 2.5, 30.0


class Desk:
    """The engine is a process of its own, and can be begun again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        (folder / "fleet.org").write_text(FLEET)
        for name in ("agents", "told"):
            (folder / name).mkdir()
        for name, text in (("agents/moss.sh", MOSS), ("pending", PENDING)):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

    def up(self) -> None:
        command = [sys.executable, "-m", "wakeful", "up", "--port", "0"]
        ours = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
        environment = {**ours, "PYTHONPATH": str(ROOT / "src"), "PENDING_TOKEN": SECRET}
        self.engine = subprocess.Popen(command, cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True)
        ready = threading.Event()

        def read() -> None:
            for line in self.engine.stderr:
                self.said.append(line)
                if '"ready"' in line:
                    ready.set()
            ready.set()

        self.reader = threading.Thread(target=read)
        self.reader.start()
        assert ready.wait(60) and self.engine.poll() is None, "".join(self.said)

    def down(self) -> None:
        self.engine.send_signal(signal.SIGTERM)
        assert self.engine.wait(30) == 0
        self.reader.join()
        self.engine.stderr.close()

    def drop(self, name: str, words: str) -> datetime:
        """Written elsewhere and put there whole."""
        inbox = self.folder / "inbox" / "moss"
        inbox.mkdir(parents=True, exist_ok=True)
        (self.folder / "unfinished").write_text(words)
        (self.folder / "unfinished").rename(inbox / name)
        return datetime.now(UTC)

    def ended(self, count: int) -> list[dict[str, Any]]:
        """The runs of moss, oldest first, as soon as so many have ended."""
        rest, deadline = threading.Event(), time.monotonic() + PATIENCE
        while True:
            asked = wakeful("runs", "moss", "--json", WAKEFUL_DATA=str(self.folder / ".wakeful"))
            rows: list[dict[str, Any]] = json.loads(asked.stdout)["items"][::-1]
            if len(rows) >= count and all(row["outcome"] for row in rows):
                return rows
            assert time.monotonic() < deadline, "".join(self.said)
            rest.wait(0.05)

    def shown(self, run: dict[str, Any]) -> list[str]:
        briefing = json.loads((self.folder / "told" / str(run["id"])).read_text())
        return [item["subject"] for item in briefing["inbox"]]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    desk = Desk(tmp_path_factory.mktemp("desk"))
    desk.up()
    yield desk
    desk.down()


def test_a_file_runs_its_agent_within_seconds_and_never_again(desk):
    """The folder comes with its first file, which the agent edits. Had that rung, or had a restart, the next run would
    be shown it as well, or there would be one more of them."""
    shown = []
    for number, name in enumerate(("note", "second", "third"), 1):
        dropped = desk.drop(name, "water the plants\n" if name == "note" else "rest\n")
        runs = desk.ended(number)
        assert len(runs) == number
        shown.append(desk.shown(runs[-1]))
        assert (datetime.fromisoformat(runs[-1]["started_at"]) - dropped).total_seconds() < QUICK
        if name == "second":
            desk.down()
            desk.up()
    assert (desk.folder / "inbox" / "moss" / "note").read_text() == "water the plants\ndone\n"
    assert shown == [["note"], ["second"], ["third"]]


def test_a_list_that_cannot_be_read_is_said_once_and_without_what_is_secret(desk):
    lines = [line for line in desk.said if "cannot be read" in line and "pending" in line]
    assert 1 <= len(lines) <= 2  # once for each engine
    assert "refused: [redacted]" in lines[0]
    assert SECRET not in "".join(desk.said)


def test_who_is_at_work_can_be_asked_for_what_waits(desk):
    shown = wakeful("inbox", "moss", WAKEFUL_DATA=str(desk.folder / ".wakeful"))
    assert shown.exit_code == 0 and "third" in shown.output
