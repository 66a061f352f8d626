"""`wakeful import`: another system's queue, taken over once, whole, with and without an engine."""

import json
import os

import pytest

from tests.cli.office import wakeful
from wakeful.control.operations import OPERATIONS
from wakeful.core.items import State
from wakeful.store.protocol import TaskFilter

TASKS: dict[str, dict[str, object]] = {
    "a": {"title": "first", "status": "completed", "result": "fine", "createdAt": "2026-02-01T00:00:00Z"},
    "b": {"title": "second", "status": "in_progress", "dependsOn": ["a"], "retryCount": 2, "agentId": "moss"},
    "c": {"title": "third", "status": "dead_letter", "deadLetterReason": "Max retries exceeded", "retryCount": 4},
    "d": {"title": "fourth", "status": "pending", "dependsOn": ["c"], "priority": "critical", "tags": ["x"]},
}


@pytest.fixture
def file(office):
    path = office.folder / "tasks.json"
    path.write_text(json.dumps({"version": 2, "tasks": TASKS}))
    return path


def tasks(office):
    with office.store() as store:
        return {item.dedupe.removeprefix("operator:import:"): item for item in store.tasks(TaskFilter())}


def test_a_queue_is_taken_over_with_what_became_of_it(office, file):
    result = wakeful("import", str(file), "--agent", "wren")
    assert result.exit_code == 0, result.output
    assert result.output == f"4 tasks from {file}: 1 blocked, 1 completed, 1 dead_letter, 1 pending\n"
    found = tasks(office)
    assert {id: item.state for id, item in found.items()} == {
        "a": State.completed,
        "b": State.pending,
        "c": State.dead_letter,
        "d": State.blocked,
    }
    assert (found["a"].result, found["a"].agent, found["a"].created_at.isoformat()[:10]) == (
        "fine",
        "wren",
        "2026-02-01",
    )
    assert (found["b"].agent, found["b"].attempts, found["b"].waits_for) == ("moss", 2, 0)
    assert (found["c"].error, found["c"].attempts) == ("Max retries exceeded", 4)
    assert (found["d"].priority.value, found["d"].tags) == ("urgent", ("x",))
    assert found["d"].error == f"depends on task {found['c'].id}, which is dead_letter"


def test_taken_over_again_it_is_the_same_tasks_whatever_became_of_them_here(office, file):
    wakeful("import", str(file), "--agent", "wren")
    before = tasks(office)
    again = wakeful("import", str(file), "--agent", "wren", "--json")
    answer = json.loads(again.output)
    assert (answer["tasks"], answer["recorded"], answer["known"]) == (4, 0, 4)
    assert {row["from"]: row["id"] for row in answer["items"]} == {id: item.id for id, item in before.items()}
    assert tasks(office) == before


def test_an_engine_takes_it_over_as_well(served, office, file):
    result = wakeful("import", str(file), "--role", "builders", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.output)
    assert answer["states"] == {"completed": 1, "pending": 1, "dead_letter": 1, "blocked": 1}
    assert wakeful("task", "show", str(answer["items"][0]["id"])).exit_code == 0


def test_a_dry_run_records_nothing(office, file):
    result = wakeful("import", str(file), "--agent", "wren", "--dry-run")
    assert result.output == (f"4 tasks would be taken over from {file}: 1 completed, 1 dead_letter, 2 pending\n")
    assert tasks(office) == {}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"version": 2, "tasks": {', "is not JSON"),
        ("", "is not JSON"),
        (b"\xff", "is not JSON"),
        ("[" * 100_000, "is nested too deeply"),
        ("[]", "expected a queue with its tasks"),
        (json.dumps({"tasks": {**TASKS, "e": {"status": "?"}}}), "task 'e': unknown status '?'"),
        (json.dumps({"tasks": {"a": {"dependsOn": ["b"]}, "b": {"dependsOn": ["a"]}}}), "in a circle: a -> b -> a"),
    ],
)
def test_a_file_that_is_not_understood_exits_2_and_nothing_is_recorded(office, file, content, told):
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = wakeful("import", str(file), "--agent", "wren")
    assert result.exit_code == 2
    assert told in result.output
    assert tasks(office) == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "3 of the 4 tasks are for nobody who is here: 'a', 'c', 'd' (say who gets them: --agent or --role)"),
        (("--agent", "wrne"), "no agent is called 'wrne'; did you mean wren?"),
        (("--agent", "wren", "--role", "x"), "found both --agent and --role"),
        (("--role", "No Role"), "the name of a role is more than one word"),
    ],
)
def test_whoever_is_to_get_them_is_known_before_anything_is_recorded(office, file, arguments, told):
    result = wakeful("import", str(file), *arguments)
    assert result.exit_code == 2
    assert told in result.output
    assert tasks(office) == {}


def test_a_file_that_is_not_there_is_said_to_be_so(office):
    result = wakeful("import", "nowhere.json", "--agent", "wren")
    assert result.exit_code == 2
    assert "nowhere.json: no such file or directory" in result.output
    assert wakeful("import", str(office.folder), "--agent", "wren").exit_code == 2


def test_a_large_queue_goes_in_parts_of_which_each_finds_what_it_depends_on(office, file, monkeypatch):
    asked = []
    many = {f"t{n}": {"title": f"{n}", "dependsOn": [f"t{n + 1}"] if n < 1_199 else []} for n in range(1_200)}
    file.write_text(json.dumps({"version": 2, "tasks": many}))
    from wakeful.control.control import Control

    add = Control.add_tasks

    async def counted(self, caller, *, tasks):
        asked.append(len(tasks))
        return await add(self, caller, tasks=tasks)

    monkeypatch.setattr(Control, "add_tasks", counted)
    result = wakeful("import", str(file), "--agent", "wren", "--json")
    assert json.loads(result.output)["recorded"] == 1_200
    assert asked == [500, 500, 200]
    assert "add_tasks" in OPERATIONS


def test_a_part_is_no_larger_than_a_request_may_be(office, file):
    from wakeful.cli.importing import MOST_BYTES, _parts
    from wakeful.core.foreign import Entry

    parts = list(_parts([Entry(str(n), {"description": "x" * 200_000}) for n in range(7)]))
    assert [len(part) for part in parts] == [2, 2, 2, 1]
    assert all(sum(len(json.dumps(entry.fields)) for entry in part) <= MOST_BYTES for part in parts)


def test_a_run_imports_nothing(office, file):
    result = wakeful("import", str(file), WAKEFUL_URL="http://127.0.0.1:9", WAKEFUL_TOKEN="x")
    assert result.exit_code == 1
    assert "to import a queue is for the operator" in result.output


def test_an_empty_queue_is_no_mistake(office, file):
    file.write_text('{"version": 2, "tasks": {}}')
    result = wakeful("import", str(file))
    assert (result.exit_code, result.output) == (0, f"there are no tasks in {file}\n")


def changed(file):
    answer = json.loads(wakeful("import", str(file), "--agent", "wren", "--json").output)
    before = {row["from"]: row["id"] for row in answer["items"]}
    told = {**TASKS, "a": {**TASKS["a"], "title": "something else"}, "e": {"title": "fifth", "dependsOn": ["a"]}}
    file.write_text(json.dumps({"version": 2, "tasks": told}))
    result = wakeful("import", str(file), "--agent", "wren")
    assert result.exit_code == 0, result.output
    assert "; 4 of them were here already" in result.output
    assert result.output.splitlines()[1] == "changed in the file since they were imported, and left here as they are: a"
    answer = json.loads(wakeful("import", str(file), "--agent", "wren", "--json").output)
    after = {row["from"]: row["id"] for row in answer["items"]}
    assert json.loads(wakeful("task", "show", str(after.pop("e")), "--json").output)["title"] == "fifth"
    assert json.loads(wakeful("task", "show", str(after["a"]), "--json").output)["title"] == "first"
    assert (after, answer["changed"]) == (before, ["a"])


def test_an_entry_that_was_changed_since_is_named_and_holds_up_no_other(office, file):
    changed(file)


def test_an_engine_says_the_same_of_an_entry_that_was_changed(served, file):
    changed(file)


def test_what_was_imported_before_from_another_file_can_be_depended_on_and_what_is_nowhere_is_named(office, file):
    wakeful("import", str(file), "--agent", "wren")
    told = {"x": {"title": "x", "dependsOn": ["a", "b"]}, "y": {"title": "y", "dependsOn": ["gone"]}}
    file.write_text(json.dumps({"version": 2, "tasks": told}))
    result = wakeful("import", str(file), "--agent", "wren")
    assert result.output.splitlines() == [
        f"2 tasks from {file}: 1 dead_letter, 1 pending",
        "dead, since they depend on what is neither in the file nor here: y (on gone)",
    ]
    found = tasks(office)
    with office.store() as store:
        assert [need for need, _ in store.dependencies(found["x"].id)] == [found["a"].id, found["b"].id]
    assert found["x"].waits_for == 1


def test_another_queue_with_the_same_ids_is_refused_whole_and_taken_over_with_a_prefix(office, file):
    wakeful("import", str(file), "--agent", "wren")
    before = tasks(office)
    file.write_text(json.dumps({"tasks": {"b": {"title": "pay the rent"}, "z": {"title": "z", "dependsOn": ["b"]}}}))
    result = wakeful("import", str(file), "--agent", "wren")
    assert result.exit_code == 1
    assert "b is 'pay the rent', and here it is task 2, 'second'; nothing was recorded" in result.output
    assert "--prefix" in result.output
    assert tasks(office) == before
    for known in (0, 2):
        result = wakeful("import", str(file), "--agent", "wren", "--prefix", "home", "--json")
        assert (result.exit_code, json.loads(result.output)["known"]) == (0, known)
    found = tasks(office)
    assert len(found) == 6
    with office.store() as store:
        assert [need for need, _ in store.dependencies(found["home:z"].id)] == [found["home:b"].id]


def test_entries_without_an_id_are_known_by_what_they_say(office, file):
    for titles, recorded in ((["a", "b", "a"], 3), (["b", "a", "a"], 0), (["rent", "cat"], 2), (["b"], 0)):
        file.write_text(json.dumps({"tasks": [{"title": title} for title in titles]}))
        answer = json.loads(wakeful("import", str(file), "--agent", "wren", "--json").output)
        assert (answer["recorded"], answer["changed"]) == (recorded, [])
    assert sorted(item.subject for item in tasks(office).values()) == ["a", "a", "b", "cat", "rent"]


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(office):
    os.mkfifo(office.folder / "pipe")
    result = wakeful("import", str(office.folder / "pipe"))
    assert (result.exit_code, "is not JSON" in result.output) == (2, True)
