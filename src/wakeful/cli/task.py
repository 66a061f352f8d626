"""`wakeful task`: tasks added, listed and shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli.asking import text_of, with_key
from wakeful.cli.complaints import BAD, Complaint
from wakeful.cli.connection import ask
from wakeful.cli.messages import with_priority
from wakeful.cli.output import one_line, say, say_json
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.words import clock


@click.group()
def task() -> None:
    """Tasks: add, list, show."""


@task.command()
@click.argument("title")
@click.option("--agent", metavar="AGENT", help="Who is to do it.")
@click.option("--role", metavar="ROLE", help="Whoever of this role has rested longest is to do it.")
@click.option("--description", default="", metavar="TEXT", help="What is to be done; - reads it from stdin.")
@click.option("--payload", metavar="JSON", help="What the task is about, as JSON.")
@with_priority
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="May be repeated.")
@with_key
@click.option("--causal-key", metavar="TEXT", help="Tasks that share it are done one after the other.")
@click.option("--depends-on", type=int, multiple=True, metavar="TASK", help="Not before this one; may be repeated.")
@click.option("--not-before", metavar="TIME", help="Not before this instant.")
@click.option("--max-retries", type=click.IntRange(min=0), help="How often it is tried again.")
@as_json
@placed
def add(place: Place, title: str, as_json: bool, description: str, payload: str | None, **given: Any) -> None:
    """Add a task called TITLE, for an agent or a role."""
    if (given["agent"] is None) == (given["role"] is None):
        raise Complaint("who is to do it?", "name --agent or --role, and only one of them", BAD)
    given |= {"tags": list(given["tags"]), "depends_on": list(given["depends_on"])}
    answer = ask(place, "add_task", title=title, description=text_of(description), payload=_payload(payload), **given)
    say_json(answer) if as_json else say(f"task {answer['id']} is recorded")


@task.command("list")
@click.option("--agent", metavar="AGENT", help="Only of this agent.")
@click.option("--state", metavar="STATE", help="Only in this state.")
@click.option("--after", type=int, default=0, metavar="TASK", help="Only tasks after this one: the next page.")
@click.option("-n", "--limit", type=click.IntRange(1, 1_000), default=100, show_default=True, help="How many.")
@as_json
@placed
def list_tasks(place: Place, as_json: bool, **given: Any) -> None:
    """The tasks, oldest first."""
    answer = ask(place, "tasks", **given)
    if as_json:
        say_json(answer)
        return
    if not answer["items"]:
        say("no tasks")
        return
    from wakeful.cli.tables import draw, table

    now = datetime.now(UTC)
    rows = [
        (
            str(row["id"]),
            row["state"],
            row["agent"] or (f"role {row['role']}" if row["role"] else ""),
            row["priority"],
            str(len(row["attempts"])),
            clock(row["created_at"], now),
            row["title"],
        )
        for row in answer["items"]
    ]
    draw(table(("task", "state", "for", "priority", "attempts", "created", "title"), rows, right=("task", "attempts")))


@task.command()
@click.argument("task", type=int)
@as_json
@placed
def show(place: Place, task: int, as_json: bool) -> None:
    """TASK with its attempts and its result."""
    row = ask(place, "task", task=task)
    if as_json:
        say_json(row)
        return
    now = datetime.now(UTC)
    whose = row["agent"] or (f"role {row['role']}" if row["role"] else "nobody")
    say(f"task {row['id']}: {one_line(row['title'])}")
    say(
        f"{one_line(row['state'])}, {one_line(row['priority'])}, for {one_line(whose)}, {clock(row['created_at'], now)}"
    )
    if row.get("description"):
        say(str(row["description"]))
    for number, attempt in enumerate(row["attempts"], 1):
        ended = attempt.get("outcome") or ("under way" if not attempt["ended_at"] else "ended")
        told = f"attempt {number}, {clock(attempt['started_at'], now)}: {one_line(ended)}"
        say(told + (f": {one_line(attempt['error'])}" if attempt["error"] else ""))
    if row["result"]:
        say(f"result: {one_line(row['result'], 2_000)}")


def _payload(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise Complaint(f"--payload is not JSON: {error}", "write it as '{\"page\": 3}'", BAD) from None
