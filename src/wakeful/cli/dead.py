"""`wakeful dead`: tasks that were given up. Each keeps its whole history until it is taken up again or taken away."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli.changing import change, changes
from wakeful.cli.complaints import Complaint
from wakeful.cli.connection import ask
from wakeful.cli.output import one_line, say, say_json
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.task import found
from wakeful.cli.task_words import going_on, listed_tasks, told_task
from wakeful.cli.which import NEWEST, given_filter, paged, with_filter

DEAD = "dead_letter"


@click.group()
def dead() -> None:
    """Dead tasks: list, show, replay, discard."""


@dead.command("list")
@with_filter
@paged
@as_json
@placed
def list_dead(place: Place, as_json: bool, **given: Any) -> None:
    """The tasks that were given up, oldest first, each with its last error."""
    wanted = given_filter(given)
    before = given["before"] or (NEWEST if given["newest"] else None)
    answer = ask(place, "dead", **wanted, after=given["after"], before=before, limit=given["limit"])
    if as_json:
        say_json(answer)
        return
    listed_tasks(answer["items"], datetime.now(UTC), dead=True)
    if answer["next"] is not None:
        say(f"more: {going_on('dead list', wanted, given['limit'], before, answer['next'])}")


@dead.command()
@click.argument("task", type=click.IntRange(min=1), required=False)
@click.option("--key", metavar="TEXT", help="The key that it was added under, in place of its number.")
@as_json
@placed
def show(place: Place, task: int | None, key: str | None, as_json: bool) -> None:
    """A dead TASK with every attempt at it."""
    row = found(place, task, key)
    if row["state"] != DEAD:
        raise Complaint(f"task {row['id']} is {one_line(row['state'])}, not dead", f"see wakeful task show {row['id']}")
    say_json(row) if as_json else say("\n".join(told_task(row, datetime.now(UTC))))


@dead.command()
@changes
def replay(place: Place, **given: Any) -> None:
    """Take dead tasks up again. Their attempts are counted anew; the history stays."""
    change(place, "retry", {**given, "state": [DEAD]})


@dead.command()
@changes
def discard(place: Place, **given: Any) -> None:
    """Take dead tasks away, with their history. Only the events tell of them then."""
    change(place, "remove", {**given, "state": [DEAD]})
