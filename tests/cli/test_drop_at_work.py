"""A real engine and its drop folder: the example of recurring work, and files that are dropped while it is killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.office import ROOT, wakeful
from wakeful.store.protocol import TaskFilter
from wakeful.store.sqlite import open_sqlite

PATIENCE = 30.0


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.drop = folder / ".wakeful" / "drop"
        shutil.copytree(ROOT / "examples" / "recurring", folder, dirs_exist_ok=True)

    def up(self) -> None:
        command = [sys.executable, "-m", "wakeful", "up", "--port", "0"]
        ours = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
        environment = {**ours, "PYTHONPATH": str(ROOT / "src")}
        self.engine = subprocess.Popen(command, cwd=self.folder, env=environment, stderr=subprocess.DEVNULL)
        self.wait(lambda: (self.drop / "refused").is_dir())

    def kill(self) -> None:
        self.engine.kill()
        self.engine.wait()

    def wait(self, came) -> None:
        rest, deadline = threading.Event(), time.monotonic() + PATIENCE
        while not came():
            assert time.monotonic() < deadline, self.told()
            rest.wait(0.01)

    def told(self) -> str:
        """What there is of tasks."""
        return wakeful("task", "list", "--json", WAKEFUL_DATA=str(self.folder / ".wakeful")).output

    def put(self, name: str, tasks: object) -> None:
        (self.folder / "unfinished").write_text(json.dumps(tasks))
        (self.folder / "unfinished").rename(self.drop / name)

    def empty(self) -> bool:
        return not any(self.drop.glob("*.json")) and not any((self.drop / ".taken").iterdir())


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path)
    desk.up()
    yield desk
    desk.kill()


def test_what_is_dropped_is_done_at_once_and_its_result_is_kept(desk):
    desk.put("count.json", {"title": "Count", "role": "counting", "payload": {"folder": "texts"}, "key": "mine"})
    data = {"WAKEFUL_DATA": str(desk.folder / ".wakeful")}
    desk.wait(lambda: '"completed"' in desk.told())
    told = json.loads(wakeful("task", "show", "--key", "mine", "--json", **data).output)
    assert told["attempts"][0]["output"] == "fox.txt: 9 words\n9 words in all\n"
    assert desk.empty()
    desk.engine.send_signal(signal.SIGTERM)
    assert desk.engine.wait(30) == 0


def test_files_that_are_dropped_while_the_engine_is_killed_again_and_again_are_recorded_once_each(desk):
    titles = [f"{number}-{part}" for number in range(400) for part in "ab"]
    files = [[{"title": title, "role": "nobody"} for title in titles[at : at + 2]] for at in range(0, 800, 2)]

    def pour() -> None:
        for number, tasks in enumerate(files):
            desk.put(f"{number:04}.json", tasks)
            paused.wait(0.005)

    paused = threading.Event()
    pouring = threading.Thread(target=pour)
    pouring.start()
    for _ in range(4):
        # In the middle of it: something was moved aside and is not dealt with yet.
        desk.wait(lambda: any((desk.drop / ".taken").iterdir()) or not pouring.is_alive())
        desk.kill()
        desk.up()
    pouring.join()
    desk.wait(desk.empty)
    desk.kill()
    store = open_sqlite(desk.folder / ".wakeful" / "wakeful.db")
    found = Counter(item.subject for item in store.tasks(TaskFilter(role="nobody"), limit=2_000))
    store.close()
    assert found == Counter(titles)
    assert list((desk.drop / "refused").iterdir()) == []
    desk.up()
