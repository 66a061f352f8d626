"""Another system's queue, read as tasks of ours: whole, in an order that can be recorded, or not at all."""

from datetime import UTC, datetime

import pytest

from wakeful.core.errors import Mistake
from wakeful.core.foreign import Whose, needed_elsewhere, read_queue

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
HERE = Whose(frozenset({"wren", "moss"}), agent="wren")

# As the other system writes it, with every field that it has.
ENTRY = {
    "id": "a1b2c3d4e5f6",
    "title": "Fix the build",
    "description": "It is red.",
    "priority": "critical",
    "status": "dead_letter",
    "createdAt": "2026-02-01T10:00:00.000Z",
    "scheduledAt": "2026-02-01T11:00:00.000Z",
    "startedAt": "2026-02-01T11:00:05.000Z",
    "completedAt": "2026-02-02T00:00:00.000Z",
    "result": None,
    "error": "exit 3",
    "lastError": "timed out",
    "tags": ["ci", "red"],
    "dependsOn": [],
    "agentId": "moss",
    "retryCount": 3,
    "maxRetries": 3,
    "retryAfter": "2026-02-01T12:00:00.000Z",
    "backoffFactor": 2,
    "projectRoot": "project",
    "leaseOwner": "daemon-1",
    "leaseExpiresAt": "2026-02-01T12:05:00.000Z",
    "deadLetterReason": "Max retries exceeded",
    "workerExitCode": 3,
    "errorLog": ["line 1", "line 2"],
}


def queue(**entries):
    return {"version": 2, "updatedAt": "2026-02-02T00:00:00Z", "tasks": entries}


def read(told, whose=HERE):
    return {entry.id: entry.fields for entry in read_queue(told, whose, NOW)}


def test_every_field_that_means_something_here_is_taken_over():
    assert read(queue(a1=ENTRY)) == {
        "a1": {
            "title": "Fix the build",
            "agent": "moss",
            "description": "It is red.",
            "payload": {"projectRoot": "project"},
            "priority": "critical",
            "tags": ["ci", "red"],
            "key": "import:a1",
            "max_retries": 3,
            "past": {
                "state": "dead_letter",
                "attempts": 3,
                "error": "Max retries exceeded\ntimed out\nexit 3\nexit code 3\nline 1\nline 2",
                "created_at": "2026-02-01T10:00:00.000000Z",
                "closed_at": "2026-02-02T00:00:00.000000Z",
            },
        }
    }


@pytest.mark.parametrize("status", ["pending", "in_progress", "failed"])
def test_what_was_alive_waits_for_the_later_of_its_two_instants(status):
    fields = read(queue(a1={**ENTRY, "status": status}))["a1"]
    assert fields["not_before"] == "2026-02-01T12:00:00.000000Z"
    assert fields["past"]["state"] == status
    assert "closed_at" not in fields["past"]


def test_what_was_completed_keeps_its_result_and_waits_for_nothing():
    entry = {**ENTRY, "status": "completed", "result": {"ok": True}, "retryCount": 1}
    fields = read(queue(a1=entry))["a1"]
    assert "not_before" not in fields
    assert (fields["past"]["result"], fields["past"]["attempts"]) == ('{"ok": true}', 2)


@pytest.mark.parametrize("version", [{"version": 1}, {}])
@pytest.mark.parametrize(
    "tasks",
    [
        [{"id": "a", "title": "A"}, {"id": 2, "description": "second\n"}],
        {"a": {"title": "A"}, "2": {"description": "second\n"}},
    ],
)
def test_the_first_version_has_a_list_or_a_mapping_and_what_is_missing_has_its_default(version, tasks):
    assert read({**version, "tasks": tasks}) == {
        "a": {"title": "A", "agent": "wren", "key": "import:a", "past": {"state": "pending", "attempts": 0}},
        "2": {
            "title": "second",
            "agent": "wren",
            "description": "second\n",
            "key": "import:2",
            "past": {"state": "pending", "attempts": 0},
        },
    }


def test_an_entry_of_a_list_without_an_id_is_known_by_what_it_says_wherever_it_stands_and_whatever_becomes_of_it():
    first, second = {"title": "A", "createdAt": "2026-01-01"}, {"title": "A"}
    keys = {id: fields["key"] for id, fields in read({"tasks": [first, second, second]}).items()}
    assert len(set(keys.values())) == 3
    again = read({"tasks": [{"title": "B"}, {**second, "status": "failed"}, first, second]})
    assert {again[id]["key"] for id in ("2", "3", "4")} == set(keys.values())
    assert read({"tasks": [second, {"title": "C", "dependsOn": [1]}]})["2"]["depends_on"] == [keys["2"]]


def test_the_queue_that_an_id_belongs_to_may_be_told():
    told = queue(a={"title": "x"}, b={"title": "y", "dependsOn": ["a", "old"]})
    whose = Whose(frozenset({"wren"}), "wren", known=frozenset({"old"}), prefix="home")
    fields = read(told, whose)["b"]
    assert (fields["key"], fields["depends_on"]) == ("import:home:b", ["import:home:a", "import:home:old"])
    assert needed_elsewhere(told) == ["old"]


def test_a_task_without_any_words_is_called_by_its_id():
    assert read(queue(a1={}))["a1"]["title"] == "task a1"


def test_times_may_be_milliseconds():
    entry = {"title": "x", "createdAt": 1_770_000_000_000, "scheduledAt": 1_770_000_000_500.0}
    fields = read(queue(a=entry))["a"]
    assert fields["past"]["created_at"] == "2026-02-02T02:40:00.000000Z"
    assert fields["not_before"] == "2026-02-02T02:40:00.500000Z"


def test_what_others_depend_on_comes_first_and_otherwise_the_oldest():
    tasks = {
        "new": {"title": "x", "createdAt": "2026-02-03T00:00:00Z"},
        "top": {"title": "x", "createdAt": "2026-02-01T00:00:00Z", "dependsOn": ["mid", "new"]},
        "mid": {"title": "x", "createdAt": "2026-02-02T00:00:00Z", "dependsOn": ["low"]},
        "low": {"title": "x", "createdAt": "2026-02-04T00:00:00Z"},
        "old": {"title": "x", "createdAt": "2026-01-01T00:00:00Z"},
    }
    found = read(queue(**tasks))
    assert list(found) == ["old", "low", "mid", "new", "top"]
    assert found["top"]["depends_on"] == ["import:mid", "import:new"]


def test_a_long_chain_of_dependencies_is_no_harm():
    tasks = {str(n): {"title": "x", "dependsOn": [str(n + 1)] if n < 5_000 else []} for n in range(5_001)}
    assert list(read(queue(**tasks))) == [str(n) for n in reversed(range(5_001))]


def test_what_depends_on_what_is_gone_is_dead_and_says_why():
    fields = read(queue(a={"title": "x", "dependsOn": ["gone", "b"], "lastError": "no"}, b={"title": "y"}))["a"]
    assert fields["past"] == {
        "state": "dead_letter",
        "attempts": 0,
        "error": "depends on gone, which is not in the imported queue\nno",
    }
    assert fields["depends_on"] == ["import:b"]
    ended = read(queue(a={"title": "x", "status": "completed", "dependsOn": ["gone"]}))["a"]
    assert ended["past"]["state"] == "completed"


def test_what_a_worker_printed_is_kept_without_what_no_store_takes():
    entry = {"title": "x", "status": "dead_letter", "errorLog": ["a\0b", {"code": 1}], "result": "\ud800"}
    past = read(queue(a=entry))["a"]["past"]
    assert (past["error"], past["result"]) == ('a\ufffdb\n{"code": 1}', "\ufffd")


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ([], "expected a queue with its tasks"),
        ({}, "expected a queue with its tasks"),
        ({"version": 2, "tasks": "x"}, "expected a queue with its tasks"),
        ({"version": 3, "tasks": {}}, "unknown version '3' of the queue"),
        ({"version": True, "tasks": {}}, "unknown version 'True' of the queue"),
        (queue(a=1), "task 'a': expected an object"),
        ({"tasks": [{"id": "a", "title": "x"}, {"id": "a", "title": "y"}]}, "task 'a' stands twice in the file"),
        (queue(a={"title": 3}), "task 'a': expected the title as text, found the number 3"),
        (queue(a={"title": "x", "status": "sleeping"}), "task 'a': unknown status 'sleeping'"),
        (queue(a={"title": "x", "priority": "top"}), "task 'a': unknown priority 'top'"),
        (queue(a={"title": "x", "retryCount": "3"}), "task 'a': expected how often it was retried, found '3'"),
        (queue(a={"title": "x", "retryCount": 2**63 - 1}), "task 'a': expected how often it was retried, found '9223"),
        (queue(a={"status": "completed", "retryCount": 10**6}), "task 'a': expected how often it was retried, found"),
        (queue(a={"title": "x", "maxRetries": -1}), "task 'a': expected a number of retries, found -1"),
        (queue(a={"title": "x", "createdAt": "noon"}), "task 'a': expected an instant in createdAt, found 'noon'"),
        (queue(a={"title": "x", "createdAt": 1e30}), "task 'a': expected an instant in createdAt"),
        (queue(a={"title": "x", "dependsOn": "b"}), "task 'a': expected in dependsOn the tasks that come first"),
        (queue(a={"title": "x", "dependsOn": ["a"]}), "tasks depend on each other in a circle: a -> a"),
        (
            queue(a={"title": "x", "dependsOn": ["b"]}, b={"dependsOn": ["c"]}, c={"dependsOn": ["b"]}),
            "tasks depend on each other in a circle: b -> c -> b",
        ),
        (queue(**{"x" * 250: {"title": "x"}}), f"task '{'x' * 59}…': expected a key of 1 to 255 characters"),
    ],
)
def test_what_cannot_be_understood_is_told_with_its_place(told, reason):
    with pytest.raises(Mistake, match=f"^{reason}") as found:
        read(told)
    assert found.value.remedy


def test_whoever_is_not_here_needs_somebody_else_to_do_his_tasks():
    told = queue(a={"title": "x", "agentId": "heron"}, b={"title": "y"}, c={"title": "z", "agentId": "moss"})
    with pytest.raises(Mistake) as found:
        read(told, Whose(frozenset({"moss"})))
    assert str(found.value) == (
        "2 of the 3 tasks are for nobody who is here: 'a', 'b'; no agent here is called 'heron' "
        "(say who gets them: --agent or --role)"
    )
    assert [fields.get("role") for fields in read(told, Whose(frozenset({"moss"}), role="builders")).values()] == [
        "builders",
        "builders",
        None,
    ]
