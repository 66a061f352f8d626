"""A task that ends everybody who could have told: the engine, the guardian, the worker and itself."""

from datetime import UTC, datetime

from soak.standing import Ground, until
from wakeful.core.items import Kind, NewItem, State
from wakeful.store.sqlite import open_sqlite

FLEET = """#+GRACE: 0s
* moss
:PROPERTIES:
:HANDLER: deeds:do
:TASKS: desk
:MAX-RETRIES: 1
:RETRY-BASE: 1s
:END:
"""
DEEDS = """
import json, os, signal
from pathlib import Path

HERE = Path(__file__).parent

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def do(run):
    with (HERE / "witness").open("a") as file:
        file.write(f"{run.task.title} {run.attempt}\\n")
    if run.task.title == "killer":
        engine = json.loads((HERE / ".wakeful" / "engine.json").read_text())["pid"]
        for pid in (engine, parent(os.getppid()), os.getppid(), os.getpid()):
            os.kill(pid, signal.SIGKILL)
"""


def test_a_task_that_kills_the_engine_and_all_below_it_counts_each_time_and_is_dead_in_the_end(tmp_path):
    here = Ground(tmp_path / "fleet", FLEET)
    try:
        (here.folder / "deeds.py").write_text(DEEDS)
        here.data.mkdir()
        store = open_sqlite(here.data / "wakeful.db")
        titles = ["first", "killer", "last"]
        tasks = [NewItem(kind=Kind.task, role="desk", subject=title) for title in titles]
        ids = [task.id for task in store.record(tasks, datetime.now(UTC))]
        store.close()
        for _ in range(2):
            here.machine.up()
            until(lambda: not here.is_up, "the end of the engine")
        here.up()
        with_end = ["first 1", "killer 1", "killer 2", "last 1"]
        until(lambda: sorted((here.folder / "witness").read_text().splitlines()) == with_end, "the last task")
        here.leave()
        with here.store() as store:
            first, killer, last = (store.item(id) for id in ids)
            assert [item.state for item in (first, killer, last)] == [
                State.completed,
                State.dead_letter,
                State.completed,
            ]
            tried = store.attempts(killer.id)
            assert [(each.counted, each.outcome, bool(each.error)) for each in tried] == [(True, "killed", True)] * 2
            assert [sum(each.counted for each in store.attempts(item.id)) for item in (first, last)] == [1, 1]
    finally:
        here.close()
