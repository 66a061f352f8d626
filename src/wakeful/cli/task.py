"""`wakeful task`: tasks added, listed, shown, and what they printed; what is done to them is in `changing`."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli import changing
from wakeful.cli.asking import text_of, with_key
from wakeful.cli.complaints import BAD, REFUSED, Complaint
from wakeful.cli.connection import ask
from wakeful.cli.messages import with_priority
from wakeful.cli.output import one_line, say, say_json
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.task_words import going_on, listed_tasks, told_task
from wakeful.cli.which import NEWEST, given_filter, paged, with_filter, with_states
from wakeful.cli.words import counted

Row = dict[str, Any]


@click.group()
def task() -> None:
    """Tasks: add, list, show, and what becomes of them."""


for command in (changing.done, changing.cancel, changing.fail, changing.retry, changing.remove):
    task.add_command(command)


@task.command()
@click.argument("title")
@click.option("--agent", metavar="AGENT", help="Who is to do it.")
@click.option("--role", metavar="ROLE", help="Whoever of this role has rested longest is to do it.")
@click.option("--description", default="", metavar="TEXT", help="What is to be done; - reads it from stdin.")
@click.option("--payload", metavar="JSON", help="What the task is about, as JSON; - reads it from stdin.")
@with_priority
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="May be repeated; one alone is the role too.")
@with_key
@click.option("--causal-key", metavar="TEXT", help="Tasks that share it are done one after the other.")
@click.option("--depends-on", multiple=True, metavar="TASK|KEY", help="Not before this one is done; may be repeated.")
@click.option("--not-before", metavar="TIME", help="Not before this instant.")
@click.option("--max-retries", type=click.IntRange(min=0), metavar="NUMBER", help="How often it is tried again.")
@click.option("--timeout", metavar="DURATION", help="How long one attempt may take, such as 5m.")
@as_json
@placed
def add(place: Place, title: str, as_json: bool, description: str, payload: str | None, **given: Any) -> None:
    """Add a task called TITLE, for an agent or a role."""
    if given["agent"] and given["role"]:
        raise Complaint("who is to do it?", "name --agent or --role, and only one of them", BAD)
    if not (given["agent"] or given["role"]) and len(given["tags"]) != 1:
        raise Complaint("who is to do it?", "name --agent or --role, or one --tag that is the role", BAD)
    if description == "-" and payload == "-":
        raise Complaint("both --description and --payload would be read from stdin", "write one of them out", BAD)
    given |= {"tags": list(given["tags"]), "depends_on": [_dependency(each) for each in given["depends_on"]]}
    answer = ask(place, "add_task", title=title, description=text_of(description), payload=_payload(payload), **given)
    if as_json:
        say_json(answer)
        return
    _say_added(answer)
    if answer.get("warning") and answer["state"] == "pending":
        say(one_line(answer["warning"], 400), to_stderr=True)


def _say_added(answer: Row) -> None:
    if answer["duplicate"]:
        say(f"task {answer['id']} was recorded before under this key; it is {one_line(answer['state'])}")
    elif answer["state"] == "blocked":
        say(f"task {answer['id']} is recorded, and blocked: {one_line(answer['error'] or '')}")
    else:
        waits = f"; it waits for {counted(answer['waits_for'], 'other task')}" if answer["waits_for"] else ""
        say(f"task {answer['id']} is recorded{waits}")


@task.command("list")
@with_states
@with_filter
@paged
@click.option("--count", "is_count", is_flag=True, help="Only how many there are, by state.")
@as_json
@placed
def list_tasks(place: Place, as_json: bool, is_count: bool, **given: Any) -> None:
    """The tasks, oldest first."""
    wanted = given_filter(given)
    if is_count:
        _count(place, wanted, as_json)
        return
    before = given["before"] or (NEWEST if given["newest"] else None)
    answer = ask(place, "tasks", **wanted, after=given["after"], before=before, limit=given["limit"])
    if as_json:
        say_json(answer)
        return
    listed_tasks(answer["items"], datetime.now(UTC))
    if answer["next"] is not None:
        say(f"more: {going_on('task list', wanted, given['limit'], before, answer['next'])}")


def _count(place: Place, wanted: Row, as_json: bool) -> None:
    answer = ask(place, "count_tasks", **wanted)
    if as_json:
        say_json(answer)
        return
    for state, number in answer["counts"].items():
        say(f"{number:>9,}  {one_line(state)}")
    say(f"{answer['total']:>9,}  in all")


@task.command()
@click.argument("task", type=click.IntRange(min=1), required=False)
@as_json
@placed
def claim(place: Place, task: int | None, as_json: bool) -> None:
    """Inside a run: take a ready task of this agent's, or TASK."""
    answer = ask(place, "claim_task", task=task)
    if as_json:
        say_json(answer)
    elif answer["task"] is not None:
        say("\n".join(told_task(answer["task"], datetime.now(UTC))))
    else:
        say(one_line(answer["reason"], 400), to_stderr=True)
    sys.exit(REFUSED if answer["task"] is None else 0)


@task.command()
@click.argument("task", type=click.IntRange(min=1), required=False)
@click.option("--key", metavar="TEXT", help="The key that it was added under, in place of its number.")
@as_json
@placed
def show(place: Place, task: int | None, key: str | None, as_json: bool) -> None:
    """TASK with its dependencies, its attempts and its result."""
    row = found(place, task, key)
    say_json(row) if as_json else say("\n".join(told_task(row, datetime.now(UTC))))


@task.command()
@click.argument("task", type=click.IntRange(min=1), required=False)
@click.option("--key", metavar="TEXT", help="The key that it was added under, in place of its number.")
@click.option("-f", "--follow", is_flag=True, help="Go on as it prints more, until the attempt has ended.")
@click.option("--attempts", "is_all", is_flag=True, help="The last of what each attempt printed.")
@as_json
@placed
def log(place: Place, task: int | None, key: str | None, follow: bool, is_all: bool, as_json: bool) -> None:
    """What the newest attempt at TASK printed."""
    from wakeful.cli.task_log import followed, newest, tails

    if follow and (is_all or as_json):
        raise Complaint("--follow goes with neither --attempts nor --json", "leave one of them out", BAD)
    row = found(place, task, key)
    if as_json:
        say_json({"task": row["id"], "state": row["state"], "attempts": row["attempts"]})
    elif is_all:
        tails(row)
    elif follow:
        followed(place, row)
    else:
        newest(place, row)


def found(place: Place, task: int | None, key: str | None) -> Row:
    """A task by its number, or by the key that it was added under."""
    if (task is None) == (key is None):
        raise Complaint("which task?", "name its number, or --key with the key that it was added under", BAD)
    return ask(place, "keyed_task", message_id=key) if task is None else ask(place, "task", task=task)


def _dependency(written: str) -> int | str:
    """A number is a task; anything else is the key of one, as is what stands after `key:`."""
    return int(written) if written.isascii() and written.isdigit() else written.removeprefix("key:")


def _payload(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text_of(text) or "")
    except (ValueError, RecursionError) as error:
        raise Complaint(f"--payload is not JSON: {error}", "write it as '{\"page\": 3}'", BAD) from None
