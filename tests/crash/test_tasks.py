"""Tasks that kill whoever works at them, tasks that are taken away from a worker, and two hundred who add one at once.

`make soak` kills all of them for minutes, with 10,000 tasks.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from soak.databases import own_database
from soak.queueing import Beside, Queue, fleet, on_duty
from soak.standing import Ground, until
from soak.traces import ENDED
from tests.store.postgres_server import dsn

PATIENCE = 90.0
GOOD = 100
RETRIES = 1
# Whom each of them kills, and how its attempts are told.
POISON = {
    "worker": ["worker"],
    "guardian": ["guardian"],
    "engine": ["engine", "itself"],
    "everybody": ["engine", "guardian"],
}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    """One for all that is told here: an engine takes longer to begin than most of it."""
    folder = tmp_path_factory.mktemp("house")
    if request.param == "sqlite":
        yield from opened(Ground(folder, fleet(3)))
    else:
        with own_database(dsn()) as address:
            yield from opened(Ground(folder, fleet(3), store=address))


def opened(ground: Ground) -> Iterator[Queue]:
    try:
        yield Queue(ground)
        assert ground.unsound() == []
    finally:
        ground.close()


@pytest.fixture
def queue(house: Queue) -> Queue:
    if not house.ground.is_up:
        house.ground.up()
    return house


_numbers = count()


def task(**told: Any) -> dict[str, Any]:
    number = next(_numbers)
    more = {"max_retries": told.pop("max_retries")} if "max_retries" in told else {}
    return {"title": f"task {number}", "role": "clerk", "payload": {"number": number, **told}, **more}


def ended(queue: Queue) -> int:
    counts = queue.counts()
    return sum(counts.get(state, 0) for state in ENDED)


def begun(queue: Queue, task: int) -> bool:
    return any(trace.task == task for trace in queue.traces())


def states(queue: Queue, tasks: list[int]) -> list[str]:
    return [queue.show(each)["state"] for each in tasks]


def test_a_task_that_kills_its_worker_its_guardian_or_the_engine_is_dead_after_its_attempts_and_the_others_finish(
    queue,
):
    here, known_before = queue.ground, ended(queue)
    tasks = [task() for _ in range(GOOD)]
    for place, victims in enumerate(POISON.values(), 1):
        tasks.insert(20 * place, task(kills=victims, max_retries=RETRIES))
    ids = queue.add(tasks)
    poison = {name: ids[20 * place] for place, name in enumerate(POISON, 1)}
    good = [id for id in ids if id not in poison.values()]
    with Beside(lambda: here.is_up or here.up(), lambda: 0.05):
        until(lambda: ended(queue) == known_before + len(ids), "the end of all", PATIENCE)
    shown = {name: queue.show(id) for name, id in poison.items()}
    here.drain()
    known, attempts = queue.known(after=ids[0] - 1)
    assert {known[id].state for id in poison.values()} == {"dead_letter"}
    assert {known[id].state for id in good} == {"completed"}
    for name, id in poison.items():
        counted = [attempt for attempt in attempts[id] if attempt.counted]
        assert len(counted) == known[id].attempts == 1 + RETRIES, (name, attempts[id])
        assert all(attempt.error for attempt in counted)
        assert [attempt["error"] for attempt in shown[name]["attempts"]] == [attempt.error for attempt in attempts[id]]
    # Nobody else has paid for it.
    assert {known[id].attempts for id in good} == {1}
    assert queue.check(known, attempts, after=ids[0] - 1) == []


def test_what_a_machine_that_lost_its_power_had_leased_is_taken_back_within_five_seconds(queue):
    (id,) = queue.add([task(seconds=60, max_retries=0)])
    until(lambda: begun(queue, id), "its beginning", PATIENCE)
    queue.ground.cut()
    queue.ground.up()
    ready = time.monotonic()
    until(lambda: states(queue, [id]) == ["dead_letter"], "the task to be taken back", PATIENCE)
    assert time.monotonic() - ready < 5
    (attempt,) = queue.show(id)["attempts"]
    assert attempt["error"] == "its guardian was gone without an exit record"


def test_a_cancelled_task_is_stopped_and_the_shift_goes_on_without_it(queue):
    ids = queue.add([task(), task(seconds=60), task()])
    until(lambda: begun(queue, ids[1]), "the second to begin", PATIENCE)
    (handler,) = {trace.process for trace in queue.traces() if trace.task == ids[1]}
    assert queue.cancel(ids[1])
    until(lambda: handler not in on_duty(queue.ground)["handler"], "its process to be gone", PATIENCE)
    until(lambda: states(queue, ids) == ["completed", "cancelled", "completed"], "the others", PATIENCE)
    assert "end" not in [trace.what for trace in queue.traces() if trace.task == ids[1]]


def test_what_a_worker_says_of_a_task_that_is_no_longer_its_own_changes_nothing(queue):
    """An operator calls it done while it is under way: that is its end, whatever becomes of the worker."""
    (id,) = queue.add([task(seconds=PATIENCE, until="called-done", fails="always")])
    until(lambda: begun(queue, id), "its beginning", PATIENCE)
    assert queue.ground.told("task", "done", str(id), "--result", '"by hand"')
    (queue.ground.folder / "called-done").touch()
    until(lambda: not queue.ground.told("runs", "--open")["items"], "the end of its run", PATIENCE)
    shown = queue.show(id)
    assert (shown["state"], json.loads(shown["result"])) == ("completed", "by hand")
    assert [attempt for attempt in shown["attempts"] if attempt["outcome"] == "failed"] == []


# ---- two hundred who add one at once

# Each is a process of its own and all begin at the same moment; what they share is only that Python was read before
# they were forked. One that is told to try later does so, under the same key.
CROWD = """
import os, sys
from wakeful.cli import main
import wakeful.cli.task, wakeful.cli.connection, wakeful.control.control
count, name = int(sys.argv[1]), sys.argv[2]
heard, ring = os.pipe()
children = []
for number in range(count):
    if (child := os.fork()) == 0:
        os.close(ring)
        os.read(heard, 1)
        words = ["task", "add", name, "--role", "clerk", "--key", f"{name}-{number}", "--payload"]
        code = 75
        while code == 75:
            try:
                main([*words, '{"number": %d}' % number], prog_name="wakeful")
            except SystemExit as end:
                code = end.code or 0
        os._exit(code)
    children.append(child)
os.close(ring)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
sys.exit(str(codes) if any(codes) else 0)
"""
MANY = 200
FEWER = 30


def crowd(queue: Queue, count: int, name: str) -> None:
    """So many add a task each."""
    here = queue.ground
    command = [sys.executable, "-c", CROWD, str(count), name]
    environment = {**os.environ, "WAKEFUL_DATA": str(here.data)}
    with subprocess.Popen(
        command,
        cwd=here.folder,
        env=environment,
        process_group=0,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            told, complaints = process.communicate(timeout=PATIENCE)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, complaints[-4000:]
    assert told.count("is recorded") == count, told[-1000:]


def test_of_two_hundred_tasks_that_are_added_at_once_beside_a_busy_engine_none_is_lost(queue):
    over, busy = ended(queue), queue.add([task(seconds=0.01) for _ in range(300)])
    crowd(queue, MANY, "crowd")
    until(lambda: ended(queue) == over + len(busy) + MANY, "all of them", PATIENCE)
    queue.ground.drain()
    known, attempts = queue.known(after=busy[0] - 1)
    mine = [item for item in known.values() if item.subject == "crowd"]
    assert sorted(json.loads(item.payload)["number"] for item in mine) == list(range(MANY))
    assert {item.state for item in known.values()} == {"completed"}
    assert queue.check(known, attempts, after=busy[0] - 1) == []


def test_of_tasks_that_are_added_at_once_where_no_engine_is_up_none_is_lost(queue):
    """Fewer of them: in a folder without an engine one after the other is the writer."""
    queue.ground.leave()
    crowd(queue, FEWER, "early")
    known, _ = queue.known()
    mine = [item for item in known.values() if item.subject == "early"]
    assert sorted(json.loads(item.payload)["number"] for item in mine) == list(range(FEWER))
    assert {item.state for item in mine} == {"pending"}
