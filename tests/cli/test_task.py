"""`wakeful task` and `wakeful dead`: added, found, ended, taken up again, taken away; one, several, all of a kind."""

import json
import re

import pytest
from click.testing import CliRunner

from tests.cli.office import EVIL, now, wakeful
from wakeful.cli import changing, main
from wakeful.cli.task_words import took
from wakeful.core.items import Kind, NewItem


def told(*arguments, **environment):
    """The answer as JSON."""
    result = wakeful(*arguments, "--json", **environment)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def add(title="t", *more):
    return told("task", "add", title, "--agent", "wren", *more)["id"]


def state(*ids):
    return [told("task", "show", str(id))["state"] for id in ids]


@pytest.fixture(params=["office", "served"])
def desk(request):
    """The same with an engine and without."""
    return request.getfixturevalue(request.param)


# ---- adding


def test_a_task_has_all_that_was_said_of_it(desk):
    first = add("first", "--key", "order-1")
    told_of = told(
        *("task", "add", "second", "--role", "editor", "--description", "read it", "--payload", '{"page": 3}'),
        *("--priority", "critical", "--tag", "a", "--tag", "b", "--key", "order-2", "--causal-key", "doc"),
        *("--depends-on", "order-1", "--not-before", "in 1h", "--max-retries", "2", "--timeout", "90s"),
    )
    assert (told_of["description"], told_of["payload"], told_of["tags"]) == ("read it", {"page": 3}, ["a", "b"])
    assert (told_of["priority"], told_of["timeout"], told_of["max_retries"]) == ("urgent", "1m30s", 2)
    assert (told_of["key"], told_of["message_id"], told_of["causal_key"]) == ("order-2", "order-2", "doc")
    assert told_of["depends_on"] == [{"id": first, "state": "pending"}]
    assert told("task", "show", "--key", "order-2")["id"] == told_of["id"]
    shown = wakeful("task", "show", str(told_of["id"])).stdout
    for word in ("second", "role editor", "read it", '{"page": 3}', "tags a, b", "1m30s", f"depends on {first}"):
        assert word in shown
    assert "key order-2" in shown and "causal key doc" in shown and "at most 2 retries" in shown


@pytest.mark.parametrize(("written", "meant"), [("7", 7), ("order-1", "order-1"), ("key:7", "7"), ("٧", "٧")])
def test_a_dependency_is_a_number_or_a_key(written, meant):
    from wakeful.cli.task import _dependency

    assert _dependency(written) == meant


def test_a_tag_alone_is_the_role_too(desk):
    assert told("task", "add", "t", "--tag", "editor")["role"] == "editor"


def test_what_waits_is_blocked_or_was_there_before_is_said_so(desk):
    first = add("first", "--key", "k")
    assert wakeful("task", "add", "first", "--agent", "wren", "--key", "k").stdout == (
        f"task {first} was recorded before under this key; it is pending\n"
    )
    assert "it waits for 1 other task" in wakeful("task", "add", "x", "--agent", "wren", "--depends-on", "k").stdout
    wakeful("task", "cancel", str(first))
    blocked = wakeful("task", "add", "x", "--agent", "wren", "--depends-on", str(first)).stdout
    assert f"blocked: depends on task {first}, which is cancelled" in blocked


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["x"], "name --agent or --role, or one --tag"),
        (["x", "--tag", "a", "--tag", "b"], "name --agent or --role, or one --tag"),
        (["x", "--agent", "wren", "--role", "editor"], "only one of them"),
        (["x", "--agent", "wren", "--payload", "{"], "--payload is not JSON"),
        (["x", "--agent", "wren", "--payload", "-", "--description", "-"], "both"),
        (["x", "--agent", "wren", "--timeout", "5"], "write 5m for minutes or 5s for seconds"),
        (["x", "--agent", "wren", "--not-before", "20m"], "write: in 20m"),
        ([" ", "--agent", "wren"], "no title"),
    ],
)
def test_a_task_that_cannot_be_meant_exits_2(desk, arguments, reason):
    result = wakeful("task", "add", *arguments)
    assert (result.exit_code, reason in result.stderr) == (2, True), result.output
    assert told("task", "list", "--count")["total"] == 0


def test_a_dependency_that_is_not_there_and_a_key_that_means_something_else_exit_1(desk):
    assert wakeful("task", "add", "x", "--agent", "wren", "--depends-on", "nobody").exit_code == 1
    add("first", "--key", "k")
    assert wakeful("task", "add", "other", "--agent", "wren", "--key", "k").exit_code == 1
    assert told("task", "list", "--count")["total"] == 1


def test_a_description_and_a_payload_may_come_from_stdin(office):
    for option, text, field, value in (
        ("--description", "two\nlines\n", "description", "two\nlines\n"),
        ("--payload", "[1, 2]", "payload", [1, 2]),
    ):
        added = CliRunner().invoke(main, ["task", "add", "t", "--agent", "wren", option, "-", "--json"], input=text)
        assert json.loads(added.stdout)[field] == value


# ---- looking


def test_tasks_are_listed_by_what_is_known_of_them(desk):
    one = add("one", "--tag", "a")
    two = add("two", "--causal-key", "doc", "--priority", "high")
    wakeful("task", "cancel", str(two), "--reason", "of no use")

    def ids(*options):
        return [row["id"] for row in told("task", "list", *options)["items"]]

    assert ids() == [one, two] and ids("--newest") == [two, one]
    assert ids("--tag", "a") == ids("--state", "pending") == ids("--agent", "wren", "--priority", "normal") == [one]
    assert ids("--causal-key", "doc") == ids("--text", "no use") == [two]
    assert ids("--state", "pending", "--state", "cancelled") == [one, two]
    assert ids("--role", "editor") == ids("--source", "schedule:x") == ids("--agent", "moss") == []
    assert told("task", "list", "--count") == {"counts": {"pending": 1, "cancelled": 1}, "total": 2}
    assert re.search(r"1 +pending\n +1 +cancelled\n +2 +in all", wakeful("task", "list", "--count").stdout)
    assert wakeful("task", "list", "--agent", "moss").stdout == "no tasks\n"


def test_the_next_page_is_the_command_that_the_last_line_says(desk):
    ids = [add("t", "--tag", "a b") for _ in range(3)]
    asked, seen = ["task", "list", "--tag", "a b", "-n", "1"], []
    while asked:
        shown = wakeful(*asked).stdout
        seen += [int(found) for found in re.findall(r"^ +(\d+) +pending", shown, re.MULTILINE)]
        more = re.search(r"^more: wakeful (.*)$", shown, re.MULTILINE)
        import shlex

        asked = shlex.split(more[1]) if more else []
    assert seen == ids


def test_a_task_that_is_not_there_exits_1_and_one_that_is_not_named_2(desk):
    assert wakeful("task", "show", "9").exit_code == 1
    assert wakeful("task", "show", "--key", "nobody").exit_code == 1
    for arguments in (["show"], ["show", "1", "--key", "k"], ["show", "0"], ["cancel"], ["list", "--state", "dead"]):
        assert wakeful("task", *arguments).exit_code == 2, arguments


def test_every_attempt_is_shown_with_how_it_ended(office):
    task = add("t", "--max-retries", "0")
    fail(office, task)
    shown = wakeful("task", "show", str(task)).stdout
    assert re.search(r"attempt 1 in run 1, .*: failed after \d+ms, exit code 3", shown), shown
    assert "    | so far\n" in shown
    assert f"wakeful dead replay {task}" in shown
    assert wakeful("task", "log", str(task), "--attempts").stdout == "so far\n"
    assert "has not been tried yet" in wakeful("task", "log", str(add())).stderr
    assert told("task", "log", str(task))["attempts"][0]["exit_code"] == 3


@pytest.mark.parametrize(("milliseconds", "words"), [(0, "0ms"), (999, "999ms"), (1_240, "1.2s"), (125_000, "2m 5s")])
def test_how_long_it_took_is_told_as_finely_as_it_matters(milliseconds, words):
    assert took(milliseconds) == words


def fail(office, task):
    """The task is tried once, and the try fails."""
    from wakeful.core.admission import admit
    from wakeful.core.runs import Ending
    from wakeful.core.settlement import settle
    from wakeful.store.protocol import Finish

    with office.store() as store:
        at = now()
        # A beat of the same agent may be due by now.
        store.decide([wake for wake in store.due(at).wakes if wake.task == task], admit, at)
        (order,) = store.claim("here", at, at - at)
        ending = Ending(exit_code=3, printed="so far")
        store.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=ending)], settle, at)


# ---- one, and several


@pytest.mark.parametrize(
    ("command", "then", "words"),
    [
        ("done", "completed", "completed"),
        ("cancel", "cancelled", "cancelled"),
        ("fail", "dead_letter", "dead"),
    ],
)
def test_a_task_is_ended_once(desk, command, then, words):
    task = add()
    result = wakeful("task", command, str(task))
    assert (result.exit_code, result.stdout) == (0, f"task {task} is {words}\n")
    assert state(task) == [then]
    again = wakeful("task", command, str(task))
    assert (again.exit_code, again.stdout) == (1, f"nothing was changed; 1 was not: {task} is {then}\n")


def test_a_result_is_a_text_or_comes_from_stdin(office):
    task, other = add(), add()
    wakeful("task", "done", str(task), "--result", '{"pages": 3}')
    assert told("task", "show", str(task))["result"] == '{"pages": 3}'
    assert 'result: {"pages": 3}' in wakeful("task", "show", str(task)).stdout
    CliRunner().invoke(main, ["task", "done", str(other), "--result", "-"], input="from\nstdin")
    assert told("task", "show", str(other))["result"] == "from\nstdin"


def test_several_are_changed_and_those_that_cannot_be_are_named(desk):
    ids = [add() for _ in range(3)]
    wakeful("task", "done", str(ids[1]))
    result = wakeful("task", "cancel", *map(str, ids), "99")
    assert result.exit_code == 1
    assert result.stdout == f"2 tasks are cancelled; 2 were not: {ids[1]} is completed, 99 is not there\n"
    assert state(*ids) == ["cancelled", "completed", "cancelled"]


def test_a_dead_task_is_listed_shown_replayed_and_discarded(desk):
    alive, task = add("alive"), add("dies")
    wakeful("task", "fail", str(task), "--reason", "the source is gone")
    listed = wakeful("dead", "list").stdout
    assert "dies" in listed and "the source is gone" in listed and "alive" not in listed
    assert "the source is gone" in wakeful("dead", "show", str(task)).stdout
    wrong = wakeful("dead", "show", str(alive))
    assert (wrong.exit_code, wrong.stderr) == (
        1,
        f"task {alive} is pending, not dead (see wakeful task show {alive})\n",
    )
    assert wakeful("dead", "replay", str(task)).stdout == f"task {task} is taken up again\n"
    assert state(task) == ["pending"]
    for command in ("replay", "discard"):
        refused = wakeful("dead", command, str(task))
        assert (refused.exit_code, "1 was not" in refused.stdout) == (1, True)
    wakeful("task", "fail", str(task))
    assert wakeful("dead", "discard", str(task)).stdout == f"task {task} is taken away\n"
    assert wakeful("task", "show", str(task)).exit_code == 1
    assert wakeful("dead", "list").stdout == "no dead tasks\n"


def test_only_what_has_ended_is_taken_away(desk):
    task, open_ = add(), add()
    wakeful("task", "cancel", str(task))
    result = wakeful("task", "rm", str(task), str(open_))
    assert (result.exit_code, state(open_)) == (1, ["pending"])
    assert wakeful("task", "show", str(task)).exit_code == 1


def test_what_is_blocked_is_shown_why_and_let_go_on(desk):
    first = add()
    then = add("then", "--depends-on", str(first))
    wakeful("task", "fail", str(first))
    shown = wakeful("task", "show", str(then)).stdout
    assert f"why: depends on task {first}, which is dead_letter" in shown
    wakeful("dead", "replay", str(first))
    assert state(first, then) == ["pending", "pending"]


# ---- all of a kind


def test_all_that_the_options_find_are_changed_and_nothing_else(desk):
    tagged = [add("t", "--tag", "old") for _ in range(4)]
    other = add()
    wakeful("task", "done", str(tagged[0]))
    answer = told("task", "cancel", "--all", "--tag", "old")
    assert answer == {"change": "cancel", "changed": tagged[1:], "unchanged": []}
    assert state(other) == ["pending"]
    assert wakeful("task", "cancel", "--all", "--tag", "old").stdout == "no tasks to change\n"
    assert wakeful("task", "rm", "--all", "--tag", "old").stdout == "4 tasks are taken away\n"
    assert told("task", "list", "--count")["total"] == 1


def test_all_dead_ones_are_replayed_and_what_is_blocked_stays(desk):
    dead, parent = add("dead"), add("parent")
    blocked = add("blocked", "--depends-on", str(parent))
    for task in (dead, parent):
        wakeful("task", "fail", str(task))
    wakeful("task", "rm", str(parent))
    assert told("dead", "replay", "--all")["changed"] == [dead]
    assert state(dead, blocked) == ["pending", "blocked"]


def test_many_pages_are_changed_to_the_last(office, monkeypatch):
    with office.store() as store:
        items = [NewItem(kind=Kind.task, agent="wren", subject=f"t{number}") for number in range(130)]
        ids = [recorded.id for recorded in store.record(items, now())]
    monkeypatch.setattr(changing, "MOST", 50)
    assert told("task", "fail", "--all", "--reason", "late")["changed"] == ids
    assert told("dead", "discard", "--all")["changed"] == ids
    assert told("task", "list", "--count")["total"] == 0
    with office.store() as store:
        ids = [recorded.id for recorded in store.record(items, now())]
    assert told("task", "done", *map(str, ids))["changed"] == ids


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["cancel", "--tag", "x"], "say --all"),
        (["cancel"], "name them by their numbers"),
        (["cancel", "1", "--all"], "found both"),
        (["cancel", "1", "--tag", "x"], "found both"),
        (["rm", "--all", "--state", "pending"], "no task that is pending can be taken away"),
        (["retry", "--all", "--state", "completed"], "--state failed, blocked, dead_letter"),
    ],
)
def test_a_change_of_nobody_knows_which_exits_2_and_changes_nothing(office, arguments, reason):
    task = add()
    result = wakeful("task", *arguments)
    assert (result.exit_code, reason in result.stderr) == (2, True), result.output
    assert state(task) == ["pending"]


# ---- on a terminal


@pytest.fixture
def terminal(monkeypatch):
    """What is asked there, and what is answered; the bar goes to the standard error."""
    asked: list[str] = []
    answers: list[bool] = []
    monkeypatch.setattr(changing, "on_terminal", lambda: True)

    def confirm(text, err):
        asked.append(text)
        return answers.pop(0)

    monkeypatch.setattr("click.confirm", confirm)
    return asked, answers


def test_all_is_asked_for_first_with_how_many_there_are(office, terminal):
    asked, answers = terminal
    ids = [add() for _ in range(3)]
    answers += [False, True]
    refused = wakeful("task", "cancel", "--all")
    assert (refused.exit_code, refused.stderr) == (1, "nothing was changed\n")
    assert state(*ids) == ["pending"] * 3
    assert wakeful("task", "cancel", "--all").exit_code == 0
    assert asked == ["3 tasks would be cancelled. Go on?"] * 2
    assert wakeful("task", "rm", "--all", "--yes").exit_code == 0
    assert len(asked) == 2


def test_nothing_evil_reaches_the_terminal(foul):
    wakeful("task", "retry", "3")
    shown = wakeful("task", "show", "3").output + wakeful("task", "list").output
    assert EVIL not in shown and "\x1b" not in shown
