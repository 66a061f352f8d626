"""What is done to tasks: `task done|cancel|fail|retry|rm` and `dead replay|discard`; of one, of several, or of all that
a filter finds.

Laws:
- Several are changed a page at a time, each page whole. What could not be changed is told with its state, and exits 1.
- All of something is meant only with `--all`; on a terminal it is asked for first, with how many there are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from wakeful.cli.asking import text_of
from wakeful.cli.complaints import BAD, REFUSED, Complaint
from wakeful.cli.connection import Connection, connect
from wakeful.cli.output import one_line, say, say_json
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.which import STATES, given_filter, with_filter, with_states
from wakeful.cli.words import counted

Row = dict[str, Any]
Step = Callable[[int], None]

# So many tasks are changed by one request, at most; of few the bar moves in steps of less.
MOST, LEAST, STEPS = 500, 50, 20
MOST_TOLD = 10

_OPEN = ("pending", "in_progress", "failed", "blocked")
# What each leads from, the operation for one task inside a run, and what it then is.
_FROM = {
    "cancel": _OPEN,
    "done": _OPEN,
    "fail": _OPEN,
    "retry": ("failed", "blocked", "dead_letter"),
    "remove": ("completed", "cancelled", "dead_letter"),
}
_ALONE = {"cancel": "cancel_task", "done": "complete_task", "fail": "fail_task"}
_THEN = {
    "cancel": "cancelled",
    "done": "completed",
    "fail": "dead",
    "retry": "taken up again",
    "remove": "taken away",
}


def changes(command: Callable[..., Any]) -> Callable[..., Any]:
    """What every one of these commands takes."""
    command = as_json(placed(command))
    command = click.option("--yes", is_flag=True, help="Do not ask first.")(command)
    command = click.option("--all", "is_all", is_flag=True, help="All that the options find.")(with_filter(command))
    return click.argument("tasks", nargs=-1, type=click.IntRange(min=1), metavar="[TASK]...")(command)


@click.command()
@with_states
@click.option("--result", metavar="TEXT", help="What came of it, as text or JSON; - reads it from stdin.")
@changes
def done(place: Place, result: str | None, **given: Any) -> None:
    """Call tasks done, whoever did them. A worker that is at one is stopped."""
    change(place, "done", given, result=text_of(result))


@click.command()
@with_states
@click.option("--reason", default="", metavar="TEXT", help="Why.")
@changes
def cancel(place: Place, reason: str, **given: Any) -> None:
    """Cancel tasks. A worker that is at one is stopped."""
    change(place, "cancel", given, reason=reason)


@click.command()
@with_states
@click.option("--reason", default="", metavar="TEXT", help="Why.")
@changes
def fail(place: Place, reason: str, **given: Any) -> None:
    """Give tasks up: they are dead, with the reason, and not tried again by themselves."""
    change(place, "fail", given, reason=reason)


@click.command()
@with_states
@changes
def retry(place: Place, **given: Any) -> None:
    """Take up tasks that are dead, failed or blocked. Their attempts are counted anew; the history stays."""
    change(place, "retry", given)


@click.command("rm")
@with_states
@changes
def remove(place: Place, **given: Any) -> None:
    """Take away tasks that have ended, with their history. Only the events tell of them then."""
    change(place, "remove", given)


def change(place: Place, word: str, given: Row, **more: Any) -> None:
    """The whole of such a command: which tasks, whether that is meant, the pages, and the summary."""
    tasks, wanted = list(dict.fromkeys(given["tasks"])), given_filter(given)
    if tasks and (given["is_all"] or set(wanted) - {"state"}):
        raise Complaint("found both tasks and what they have in common", "name the tasks, or say --all", BAD)
    if not tasks and not given["is_all"]:
        remedy = "say --all to change all that the options find" if wanted else "name them by their numbers"
        raise Complaint("which tasks?", remedy, BAD)
    said = {name: value for name, value in more.items() if value}
    if "result" in more and more["result"] is not None:
        said["result"] = more["result"]
    if place.inside_run:
        told, then = _inside_run(place, word, tasks, said)
    else:
        then = _THEN[word]
        with connect(place) as connection:
            told = _changed(connection, word, tasks, wanted, said, sure=given["yes"], quiet=given["as_json"])
    if given["as_json"]:
        say_json(told)
    else:
        say(summary(told, then))
    sys.exit(REFUSED if told["unchanged"] else 0)


def _changed(
    connection: Connection, word: str, tasks: list[int], wanted: Row, said: Row, *, sure: bool, quiet: bool
) -> Row:
    if tasks:
        told = _nothing(word)
        only = {"state": wanted["state"]} if "state" in wanted else {}
        with bar(word, len(tasks), quiet) as step:
            for page in _pages(tasks):
                _add(told, connection.ask("change_tasks", change=word, tasks=page, **only, **said), step)
        return told
    states = [state for state in STATES if state in _FROM[word] and state in wanted.get("state", STATES)]
    if not states:
        wrong, right = ", ".join(wanted["state"]), ", ".join(_FROM[word])
        raise Complaint(f"no task that is {wrong} can be {_THEN[word]}", f"use --state {right}", BAD)
    meant = {**wanted, "state": states}
    total = connection.ask("count_tasks", **meant)["total"]
    last = connection.ask("tasks", **meant, before=2**62, limit=1)["items"]
    if not last:
        return _nothing(word)
    if not sure and not quiet:
        _must_be_meant(word, total)
    return _all_of(connection, word, meant, said, total, last[0]["id"], quiet)


def _all_of(connection: Connection, word: str, meant: Row, said: Row, total: int, last: int, quiet: bool) -> Row:
    """Up to the newest that there was when it began: what is added meanwhile was not meant."""
    told, after = _nothing(word), 0
    with bar(word, total, quiet) as step:
        while True:
            answer = connection.ask(
                "change_tasks", change=word, all=True, **meant, **said, after=after, until=last, limit=_size(total)
            )
            _add(told, answer, step)
            if answer["next"] is None:
                return told
            after = answer["next"]


def _inside_run(place: Place, word: str, tasks: list[int], said: Row) -> tuple[Row, str]:
    """One by one, as the agent that runs: of many at once it may not dispose."""
    if word not in _ALONE or not tasks:
        what = f"to change tasks by what they have in common, or to {word} them,"
        raise Complaint(f"{what} is for the operator, and this is inside a run", "ask the operator to do it")
    told, states = _nothing(word), set()
    with connect(place) as connection:
        for task in tasks:
            states.add(connection.ask(_ALONE[word], task=task, **said)["state"])
            told["changed"].append(task)
    # What it held is tried again like any other that failed, unless that was the last try.
    return told, "failed" if "failed" in states else _THEN[word]


def _nothing(word: str) -> Row:
    return {"change": word, "changed": [], "unchanged": []}


def _add(told: Row, answer: Row, step: Step) -> None:
    told["changed"] += answer["changed"]
    told["unchanged"] += answer["unchanged"]
    step(len(answer["changed"]) + len(answer["unchanged"]))


def _size(total: int) -> int:
    return max(LEAST, min(MOST, total // STEPS))


def _pages(tasks: list[int]) -> Iterator[list[int]]:
    size = _size(len(tasks))
    for start in range(0, len(tasks), size):
        yield tasks[start : start + size]


def on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _must_be_meant(word: str, total: int) -> None:
    if not on_terminal():
        return
    if not click.confirm(f"{counted(total, 'task')} would be {_THEN[word]}. Go on?", err=True):
        raise Complaint("nothing was changed")


@contextmanager
def bar(word: str, total: int, quiet: bool) -> Iterator[Step]:
    """How far it has come, on a terminal, beside the answer."""
    if quiet or total < 2 or not sys.stderr.isatty():
        yield lambda number: None
        return
    with click.progressbar(length=total, label=word, file=sys.stderr, show_pos=True) as shown:
        yield shown.update


def summary(told: Row, then: str) -> str:
    """`1,204 tasks cancelled; 2 were not: 7 is completed, 9 is not there`."""
    done, left = len(told["changed"]), told["unchanged"]
    if not done and not left:
        return "no tasks to change"
    text = f"task {told['changed'][0]} is {then}" if done == 1 else f"{done:,} tasks are {then}"
    if not left:
        return text
    each = ", ".join(_left(row) for row in left[:MOST_TOLD])
    rest = ", …" if len(left) > MOST_TOLD else ""
    were = "was" if len(left) == 1 else "were"
    return f"{text if done else 'nothing was changed'}; {len(left):,} {were} not: {each}{rest}"


def _left(row: Row) -> str:
    """Of what is blocked, also why: that may be what has to be changed first."""
    why = f" ({one_line(row['why'])})" if row.get("why") and row["state"] == "blocked" else ""
    return f"{row['id']} is {one_line(row['state'] or 'not there')}{why}"
