"""Documents 002 and 004 lived by a real engine with real workers, on either store: one engine for all of the stories.

What takes hours of the calendar is told in `test_ageing` and in tests/engine, in time that jumps.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soak.databases import own_database
from soak.queueing import Queue
from soak.standing import Ground, until
from tests.engine.stage import fleet, heading
from tests.store.postgres_server import dsn

PATIENCE = 60.0
CLERKS = ("clerk-1", "clerk-2", "clerk-3")


class Office(Queue):
    """Three clerks who are Python handlers, and three scribes who are programs."""

    def do(self, deed: str, **more: Any) -> dict[str, Any]:
        """Add one task and wait for its end."""
        return self.over(self.give(deed, **more))

    def give(self, deed: str, **more: Any) -> int:
        told = {"deed": deed, **more.pop("payload", {})}
        row = self.ask("POST", "/v1/tasks", {"title": deed, "role": "clerk", "payload": told, **more})
        return int(row["id"])

    def over(self, task: int) -> dict[str, Any]:
        until(lambda: self.show(task)["closed_at"], f"the end of task {task}", PATIENCE)
        return self.show(task)

    def told(self, task: object) -> list[list[str]]:
        """What was told of a task, in order."""
        path = self.ground.folder / "told"
        lines = path.read_text().splitlines() if path.exists() else []
        return [words[1:] for words in map(str.split, lines) if words[0] == str(task)]

    def idle(self) -> bool:
        states = {row["name"]: row["state"] for row in self.ask("GET", "/v1/agents")["items"]}
        return not self.ask("GET", "/v1/runs?open=true")["items"] and {states[name] for name in CLERKS} == {"idle"}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def office(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("office")
    if request.param == "sqlite":
        yield from opened(folder, None)
    else:
        with own_database(dsn()) as address:
            yield from opened(folder, address)


def opened(folder: Path, address: str | None) -> Iterator[Office]:
    agents = [heading(name, handler="deeds:do", tasks="clerk", kill_grace="1s") for name in CLERKS]
    scribes = [heading(f"scribe-{number}", run="bash scribe.sh", tasks="scribe") for number in (1, 2, 3)]
    keys = {"workdir": ".", "grace": "0s", "retry-base": "1s", "max-retries": "1", "workers": "3"}
    ground = Ground(folder, fleet(*agents, *scribes, **keys), store=address)
    shutil.copy(Path(__file__).parent / "deeds.py", folder)
    (folder / "scribe.sh").write_text('echo "the pen is wet"; echo "written by $WAKEFUL_AGENT"\n')
    try:
        ground.up()
        yield Office(ground)
    finally:
        ground.close()


# ---- document 002


def test_a_clerk_wakes_on_a_task_works_checkpoints_and_is_idle_again(office):
    until(office.idle, "idle clerks", PATIENCE)
    task = office.give("read", key="message-1")
    done = office.over(task)
    assert (done["state"], json.loads(done["result"])) == ("completed", {"pages": 412})
    assert office.told(task) == [["read", "1"], ["count", "1"]]
    until(office.idle, "idle clerks", PATIENCE)
    # The result is read by the id of the message.
    assert office.ground.told("task", "show", "--key", "message-1")["result"] == done["result"]


def test_a_tool_call_that_is_repeated_after_a_crash_carries_the_same_key_and_is_done_once(office):
    done = office.do("pays")
    assert (done["state"], done["result"]) == ("completed", "paid")
    assert len(done["attempts"]) == 2
    first, second = office.told(done["id"])
    key = f"wakeful:task:{done['id']}:pay"
    # The second attempt knows that the first may have paid.
    assert (first, second) == (["asks", "1", "False", key], ["asks", "2", "True", key])
    assert (office.ground.folder / "ledger").read_text().splitlines().count(key) == 1


def test_a_recorded_step_is_not_taken_again_after_its_process_died(office):
    done = office.do("dies_behind")
    assert (done["state"], done["result"]) == ("completed", "counted")
    assert office.told(done["id"]) == [["read", "1"], ["count", "1"], ["count", "2"]]
    assert "SIGKILL" in done["attempts"][0]["error"]


def test_a_task_that_failed_inside_goes_on_where_it_stumbled(office):
    done = office.do("stumbles")
    assert (done["state"], json.loads(done["result"])) == ("completed", {"pages": 412})
    assert office.told(done["id"]) == [["read", "1"], ["count", "2"]]
    assert "page 412 is torn" in done["attempts"][0]["error"]


@pytest.mark.parametrize(
    ("deed", "what"), [("unwritable", "what deeds:do returned"), ("unwritable_step", "step 'count'")]
)
def test_a_result_that_cannot_be_written_is_refused_before_anything_is_called_done(office, deed, what):
    dead = office.do(deed, max_retries=0)
    assert (dead["state"], dead["result"]) == ("dead_letter", None)
    assert "cannot be written as JSON" in dead["error"]


# ---- document 004


def test_the_loop_pulls_tasks_spawns_workers_monitors_retries_and_buries(office):
    tasks = {deed: office.give(deed) for deed in ("read", "stumbles", "fails")}
    tasks["hangs"] = office.give("hangs", timeout="1s")
    over = {deed: office.over(task) for deed, task in tasks.items()}
    states = {deed: (row["state"], len(row["attempts"])) for deed, row in over.items()}
    expected = {"read": ("completed", 1), "stumbles": ("completed", 2), "fails": ("dead_letter", 2)}
    assert states == {**expected, "hangs": ("completed", 2)}
    assert "wall clock" in over["hangs"]["attempts"][0]["error"]
    assert ["the disk is full" in attempt["error"] for attempt in over["fails"]["attempts"]] == [True, True]
    until(office.idle, "idle clerks", PATIENCE)


def test_three_workers_truly_run_three_tasks_at_once(office):
    tasks = [office.give("waits", payload={"group": "three"}) for _ in range(3)]
    assert [json.loads(office.over(task)["result"]) for task in tasks] == [3, 3, 3]
    assert sorted(words[-1] for words in office.told("three")) == list(CLERKS)


def test_what_a_worker_printed_is_kept_with_the_attempt(office):
    dead = office.do("fails")
    assert [attempt["output"].strip() for attempt in dead["attempts"]] == [
        "attempt 1 is about to fail",
        "attempt 2 is about to fail",
    ]
    written = office.do("read", role="scribe")
    (attempt,) = written["attempts"]
    assert "the pen is wet\nwritten by scribe-" in attempt["output"]
    assert (attempt["exit_code"], attempt["duration_ms"] >= 0) == (0, True)


def test_a_task_that_the_command_line_adds_is_noticed_by_the_running_loop(office):
    asked = ("task", "add", "read", "--role", "clerk", "--payload", '{"deed": "read"}')
    task = office.ground.told(*asked)["id"]
    assert office.over(task)["state"] == "completed"


def test_a_task_that_another_process_leaves_in_the_drop_folder_is_noticed(office):
    """Another process changes the queue without a word to the engine."""
    fresh = office.ground.folder / "half-written"
    fresh.write_text(json.dumps({"title": "read", "role": "clerk", "key": "dropped", "payload": {"deed": "read"}}))
    fresh.rename(office.ground.data / "drop" / "read.json")
    until(lambda: not (office.ground.data / "drop" / "read.json").exists(), "the file to be taken", PATIENCE)
    row = office.ground.told("task", "show", "--key", "dropped")
    assert office.over(row["id"])["state"] == "completed"
