"""The graph of examples/langgraph goes on at the node that a kill cut short, on either store.

Nothing here imports LangGraph: only the worker of the fleet does.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from soak.standing import Ground, until

PATIENCE = 60.0
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "langgraph"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Ground]:
    yield from opened(Ground(tmp_path / "fleet", (EXAMPLE / "fleet.org").read_text()))


def opened(desk: Ground) -> Iterator[Ground]:
    shutil.copy(EXAMPLE / "essay.py", desk.folder)
    yield desk
    desk.close()


def visits(desk: Ground) -> list[tuple[str, int]]:
    """Each execution of a node, and the process in which it was."""
    seen = desk.folder / "work" / "visited"
    lines = seen.read_text().splitlines() if seen.exists() else []
    return [(node, int(process)) for _, node, process in map(str.split, lines)]


def kill_in(node: str, desk: Ground) -> None:
    """The process that executes it, at once."""
    until(lambda: visits(desk) and visits(desk)[-1][0] == node, f"{node} to be begun", PATIENCE)
    os.kill(visits(desk)[-1][1], signal.SIGKILL)


def test_nodes_that_were_checkpointed_are_not_executed_again_after_kill_9(desk):
    desk.up()
    asked = ("task", "add", "why queues", "--role", "essayist", "--payload", '{"topic": "queues", "seconds": 0.3}')
    task = str(desk.told(*asked)["id"])
    kill_in("write-1", desk)
    until(lambda: visits(desk)[-1][0] == "write-2", "write-2 to be begun", PATIENCE)
    # The whole machine, with the engine on it.
    desk.cut()
    desk.up()
    until(lambda: visits(desk)[-1][0] == "review-2", "its end", PATIENCE)
    until(lambda: desk.told("task", "show", task)["state"] == "completed", "its record", PATIENCE)

    cut_twice = ["gather", "write-1", "write-1", "review-1", "write-2", "write-2", "review-2"]
    assert [node for node, _ in visits(desk)] == cut_twice
    assert len({process for _, process in visits(desk)}) == 3
    shown = desk.told("task", "show", task)
    assert len(shown["attempts"]) == 3
    assert "queues wait; queues keep order; queues forget nothing" in str(shown["result"])


TWICE = """
from essay import handle
from wakeful import Run
task = {"id": 7, "title": "why queues", "body": '{"topic": "queues"}'}
first, second = (handle(Run.for_test(task)) for _ in range(2))
assert first == second == {"draft": "queues wait; queues keep order; queues forget nothing", "version": 2}, second
"""


def test_a_graph_that_reached_its_end_before_the_crash_only_tells_its_result_again(tmp_path):
    """The graph may be further than the queue knows: its last checkpoint comes before the task's end is recorded."""
    shutil.copy(EXAMPLE / "essay.py", tmp_path)
    done = subprocess.run([sys.executable, "-c", TWICE], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    seen = (tmp_path / "visited").read_text().splitlines()
    assert [line.split()[1] for line in seen] == ["gather", "write-1", "review-1", "write-2", "review-2"]
