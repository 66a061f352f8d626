"""The drop folder and the engine: what is moved in is a task, once, whatever happens in between."""

import asyncio
import json
import os
from typing import Any

import pytest

from tests.engine.stage import MINUTE, heading, lived
from wakeful.core.errors import Busy
from wakeful.core.items import Origin, Priority, State
from wakeful.core.wakes import Pause
from wakeful.engine import dropping
from wakeful.sources.drop import Drop, drop_in
from wakeful.store.protocol import TaskFilter

WREN = heading("wren", tasks="sweeping", timezone="Europe/Berlin")
SWEEP = {"title": "sweep", "agent": "wren"}


@pytest.fixture
def stage(stage, deaf):
    stage.drop = drop_in(stage.data)
    stage.declare(WREN)
    return stage


def put(stage, name, content):
    """As whoever does it well: written elsewhere, and moved in."""
    folder = stage.data / "drop"
    folder.mkdir(exist_ok=True)
    text = content if isinstance(content, (str, bytes)) else json.dumps(content)
    (folder / ".new").write_bytes(text if isinstance(text, bytes) else text.encode())
    os.rename(folder / ".new", folder / name)


def tasks(stage):
    return stage.store.tasks(TaskFilter(), limit=2_000)


def left(stage):
    """Every file that is still there, by its path in the folder."""
    folder = stage.data / "drop"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def why(stage, name):
    return (stage.data / "drop" / "refused" / f"{name}.why.txt").read_text().strip()


@lived
async def test_up_makes_the_folder_and_a_file_that_is_moved_in_is_recorded_done_and_removed(stage):
    await stage.up()
    await stage.until(1)
    assert (stage.data / "drop" / "refused").is_dir()
    put(
        stage,
        "a.json",
        {
            **SWEEP,
            "description": "All of it.",
            "payload": {"floor": 2},
            "priority": "critical",
            "tags": ["a"],
            "key": "one",
            "causal_key": "floor-2",
            "not_before": "01:30",
            "max_retries": 2,
            "timeout": "5m",
        },
    )
    await stage.until(10)
    (task,) = tasks(stage)
    assert (task.subject, task.agent, task.body, task.payload) == ("sweep", "wren", "All of it.", '{"floor": 2}')
    assert (task.priority, task.tags, task.key, task.max_retries) == (Priority.urgent, ("a",), "floor-2", 2)
    assert (task.timeout, task.origin, task.sender, task.source) == (5 * MINUTE, Origin.operator, "operator", "drop")
    # A time of day is one on the agent's own wall clock.
    assert task.not_before is not None and task.not_before.isoformat() == "2026-03-02T00:30:00+00:00"
    assert task.dedupe == "operator:one"
    assert left(stage) == []
    await stage.hours(1)
    assert tasks(stage)[0].state is State.completed


@lived
async def test_files_are_recorded_in_the_order_of_their_names_and_a_list_is_recorded_whole(stage):
    put(stage, "2.json", [{"title": "b", "role": "sweeping"}, {"title": "c", "tags": ["sweeping"]}])
    put(stage, "3.json", {"title": "d", "role": "sweeping"})
    put(stage, "1.json", {"title": "a", "role": "sweeping"})
    await stage.up()
    await stage.until(3)
    assert [(task.subject, task.role) for task in tasks(stage)] == [(name, "sweeping") for name in "abcd"]


@lived
async def test_tasks_may_depend_on_each_other_by_their_keys_across_files(stage):
    put(stage, "1.json", [{**SWEEP, "depends_on": ["mop"]}, {"title": "mop", "agent": "wren", "key": "mop"}])
    put(stage, "2.json", {"title": "wax", "agent": "wren", "depends_on": ["mop", 1]})
    await stage.up()
    await stage.until(3)
    sweep, mop, wax = tasks(stage)
    assert [dependency for dependency, _ in stage.store.dependencies(sweep.id)] == [mop.id]
    assert sorted(dependency for dependency, _ in stage.store.dependencies(wax.id)) == [sweep.id, mop.id]


@pytest.mark.parametrize("dies", ["before", "after"])
@lived
async def test_a_crash_around_the_record_loses_nothing_and_doubles_nothing(stage, dies):
    async def hang(number):
        if len(tasks(stage)) == recorded and os.listdir(stage.data / "drop" / ".taken"):
            await asyncio.Event().wait()

    recorded = 2 if dies == "after" else 0
    await stage.up()
    await stage.until(1)
    setattr(stage.access, dies, hang)
    put(stage, "a.json", [SWEEP, SWEEP])
    await stage.until(5)
    assert len(tasks(stage)) == recorded
    assert [name[:6] for name in left(stage)] == [".taken"]
    await stage.crash()
    await stage.up()
    await stage.minutes(5)
    assert [task.state for task in tasks(stage)] == [State.completed] * 2
    assert left(stage) == []


@lived
async def test_the_same_file_again_is_the_same_work_again_unless_its_tasks_have_keys(stage):
    await stage.up()
    for moment in (5, 10):
        put(stage, "a.json", SWEEP)
        put(stage, "b.json", {**SWEEP, "key": "mine"})
        await stage.until(moment)
    assert sorted(task.dedupe.partition(":")[0] for task in tasks(stage)) == ["drop", "drop", "operator"]
    put(stage, "b.json", {**SWEEP, "title": "something else", "key": "mine"})
    await stage.until(20)
    assert len(tasks(stage)) == 3
    assert left(stage) == ["refused/b.json", "refused/b.json.why.txt"]
    assert "mine" in why(stage, "b.json")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"titel": "x", "agent": "wren"}, "unknown field 'titel' of a task (did you mean title?)"),
        ({"title": "x", "agent": "wrne"}, "no agent is called 'wrne'; did you mean wren?"),
        ({"title": "x"}, "a task is for an agent or for a role (name one of them, and only one)"),
        ({"title": " ", "agent": "wren"}, "the task has no title (say in a few words what is to be done)"),
        ([SWEEP, {**SWEEP, "max_retries": "3"}], "task 2: expected a number of retries, found the text '3'"),
        ({**SWEEP, "timeout": "90"}, "the timeout: expected a duration with a unit, found '90'"),
        ({**SWEEP, "depends_on": ["nobody"]}, "nobody"),
        ({**SWEEP, "past": {"state": "completed"}}, "unknown field 'past' of a task"),
        ({**SWEEP, "payload": float("nan")}, "the payload is not JSON"),
        ("[]", "there is no task in it"),
        ('"sweep"', "expected a task as an object, found the text 'sweep'"),
        ('{"title": "x",', "not JSON"),
        (b"\xff\xfe{}", "not UTF-8"),
        ("", "the file is empty"),
        ("[" * 100_000, "nested too deeply"),
        (f'{{"title": "x", "agent": "wren", "payload": {"[" * 500 + "]" * 500}}}', "the payload is nested too deeply"),
        (" " * 1_000_001, "1,000,001 bytes, and a file may have 1,000,000"),
    ],
)
@lived
async def test_what_cannot_be_used_is_kept_with_the_reason_and_the_others_go_on(stage, content, reason):
    await stage.up()
    put(stage, "1.json", SWEEP)
    put(stage, "2.json", content)
    put(stage, "3.json", SWEEP)
    await stage.until(10)
    assert len(tasks(stage)) == 2
    assert left(stage) == ["refused/2.json", "refused/2.json.why.txt"]
    assert reason in why(stage, "2.json")


@lived
async def test_a_name_that_is_not_utf_8_is_refused_and_the_others_go_on(stage):
    engine = await stage.up()
    put(stage, "a.json", SWEEP)
    put(stage, os.fsdecode(b"bad\xff.json"), SWEEP)
    put(stage, "c.json", SWEEP)
    await stage.until(5)
    assert len(tasks(stage)) == 2
    assert "not UTF-8" in why(stage, os.fsdecode(b"bad\xff.json"))
    (told,) = engine.health()["diagnostics"]
    assert "1 file was refused" in told


def fails(stage, monkeypatch, error, title="b"):
    """The store cannot record a task of that title; how many are recorded at once, as it was asked."""
    record, asked = stage.store.record, []

    def recorded(items, now):
        asked.append(len(items))
        if any(item.subject == title for item in items):
            raise error
        return record(items, now)

    monkeypatch.setattr(stage.store, "record", recorded)
    return asked


@lived
async def test_a_file_that_fails_for_no_known_reason_is_tried_thrice_and_the_others_go_on(stage, monkeypatch):
    asked = fails(stage, monkeypatch, RuntimeError("no such column"))
    for name in "abc":
        put(stage, f"{name}.json", {**SWEEP, "title": name})
    engine = await stage.up()
    await stage.until(5)
    assert [task.subject for task in tasks(stage)] == ["a", "c"]
    (told,) = engine.health()["diagnostics"]
    assert told.endswith("'b.json': it cannot be recorded: RuntimeError: no such column")
    put(stage, "d.json", {**SWEEP, "title": "d"})
    await stage.until(9)
    assert len(tasks(stage)) == 3
    await stage.until(60)
    assert left(stage) == ["refused/b.json", "refused/b.json.why.txt"]
    assert why(stage, "b.json") == "it cannot be recorded: RuntimeError: no such column"
    # Together, each of the three by itself, the one that came later, and the bad one twice more.
    assert asked == [3, 1, 1, 1, 1, 1, 1]


@lived
async def test_a_value_that_no_store_takes_is_refused_at_once(stage, monkeypatch):
    fails(stage, monkeypatch, OverflowError("too large"))
    for name in "abc":
        put(stage, f"{name}.json", {**SWEEP, "title": name})
    await stage.up()
    await stage.until(3)
    assert len(tasks(stage)) == 2
    assert why(stage, "b.json") == "it cannot be recorded: OverflowError: too large"


@lived
async def test_a_few_thousand_tasks_are_recorded_at_once_and_each_file_whole(stage, monkeypatch):
    monkeypatch.setattr(dropping, "MOST_AT_ONCE", 10)
    asked = fails(stage, monkeypatch, RuntimeError(), title="nothing")
    for number, size in enumerate((4, 6, 1, 25, 9, 1)):
        put(stage, f"{number}.json", [{**SWEEP, "title": f"{number}-{task}"} for task in range(size)])
    await stage.up()
    await stage.until(3)
    assert asked == [10, 1, 25, 10]
    assert len(tasks(stage)) == 46
    assert left(stage) == []


@lived
async def test_a_folder_that_cannot_be_worked_is_told_of_until_it_can(stage, caplog):
    (stage.data / "drop").write_text("in the way")
    engine = await stage.up()
    await stage.minutes(5)
    (told,) = engine.health()["diagnostics"]
    assert "cannot be worked: " in told
    assert [record.getMessage() for record in caplog.records if "cannot be worked" in record.getMessage()] == [
        told.replace(f"{stage.data / 'drop'}:", "the drop folder", 1)
    ]
    (stage.data / "drop").unlink()
    await stage.until(stage.elapsed + 15)
    put(stage, "a.json", SWEEP)
    await stage.until(stage.elapsed + 5)
    assert len(tasks(stage)) == 1
    assert engine.health()["diagnostics"] == []


@lived
async def test_a_file_that_cannot_be_moved_is_told_of_once_while_it_is_there(stage, monkeypatch, caplog):
    rename = os.rename

    def refuse(source, target):
        if os.path.basename(source) == "a.json":
            raise PermissionError(1, "Operation not permitted", str(source))
        rename(source, target)

    await stage.up()
    put(stage, "a.txt", SWEEP)
    put(stage, "b.json", SWEEP)
    os.rename(stage.data / "drop" / "a.txt", stage.data / "drop" / "a.json")
    monkeypatch.setattr(os, "rename", refuse)
    engine = stage.engine
    await stage.minutes(5)
    assert len(tasks(stage)) == 1
    assert len([record for record in caplog.records if "it cannot be moved" in record.getMessage()]) == 1
    assert [line.rpartition("'a.json': ")[2] for line in engine.health()["diagnostics"]] == [
        "it cannot be moved: operation not permitted"
    ]
    (stage.data / "drop" / "a.json").unlink()
    await stage.minutes(1)
    assert engine.health()["diagnostics"] == []


@lived
async def test_a_half_written_file_is_left_alone_until_it_is_whole(stage):
    await stage.up()
    await stage.until(1)
    folder = stage.data / "drop"
    text = json.dumps({**SWEEP, "description": "x" * 1000})
    for end in range(100, len(text), 100):
        (folder / "slow.json").write_text(text[:end])
        await stage.until(stage.elapsed + 1.9)
        assert left(stage) == ["slow.json"]
    (folder / "slow.json").write_text(text)
    await stage.until(stage.elapsed + 3)
    assert [task.subject for task in tasks(stage)] == ["sweep"]
    assert left(stage) == []


@lived
async def test_what_is_no_json_or_hidden_is_nobodys_business(stage):
    await stage.up()
    put(stage, "README.txt", "hello")
    put(stage, ".hidden.json", SWEEP)
    await stage.until(10)
    assert tasks(stage) == []
    assert left(stage) == [".hidden.json", "README.txt"]


@lived
async def test_a_store_that_is_away_is_waited_for(stage):
    away = True

    async def refuse(number):
        if away and os.listdir(stage.data / "drop" / ".taken"):
            raise Busy("the database is away")

    await stage.up()
    await stage.until(1)
    stage.access.before = refuse
    put(stage, "a.json", SWEEP)
    await stage.until(30)
    assert tasks(stage) == []
    away = False
    await stage.until(60)
    assert len(tasks(stage)) == 1
    assert left(stage) == []


@lived
async def test_a_thousand_files_cost_a_few_transactions(stage):
    await stage.up()
    await stage.until(1)
    before = stage.access.writes
    for number in range(1_000):
        put(stage, f"{number:04}.json", {**SWEEP, "not_before": "in 1d"})
    await stage.until(4)
    assert len(tasks(stage)) == 1_000
    assert stage.access.writes - before < 20
    assert left(stage) == []


@lived
async def test_a_folder_that_is_taken_away_is_made_again(stage):
    await stage.up()
    await stage.until(1)
    for name in ("refused", ".taken", ""):
        (stage.data / "drop" / name).rmdir()
    await stage.until(5)
    put(stage, "a.json", SWEEP)
    await stage.until(10)
    assert len(tasks(stage)) == 1


@lived
async def test_a_file_that_comes_while_somebody_looks_is_heard_of(stage):
    # Nobody looks again for a minute: who listens only after the first look would not know of it until then.
    told, looked = list[Any](), list[float]()

    class Hints:
        hears = True

        def folders(self, folders, ring):
            told[:] = [ring]

    class Folder(Drop):
        def take(self, elapsed):
            haul = super().take(elapsed)
            if not looked:
                looked.append(elapsed)
                put(stage, "a.json", SWEEP)
                for ring in told:
                    ring()
            return haul

    stage.drop = None
    await stage.up()
    folder = Folder(stage.data / "drop")
    working = asyncio.ensure_future(dropping.Dropping(stage.access, folder, Hints(), stage.clock).run())
    await stage.until(5)
    working.cancel()
    assert len(tasks(stage)) == 1


@lived
async def test_a_source_that_is_paused_holds_what_was_dropped(stage):
    await stage.up()
    stage.store.pause(Pause(scope="source:drop", owner="operator", reason="later", since=stage.now), stage.now)
    put(stage, "a.json", SWEEP)
    await stage.minutes(5)
    assert [task.state for task in tasks(stage)] == [State.pending]
