"""`wakeful import`: the queue of another system, taken over.

Laws:
- A file that cannot be read, or understood to its last entry, exits 2, and nothing of it is recorded.
- Taken over again, it gives the same tasks: what was recorded before is found, and what has become of it here stays.
- Where another task is here under an entry's id, nothing is recorded: what depends on it would depend on a stranger.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from wakeful.cli.changing import bar
from wakeful.cli.complaints import BAD, REFUSED, Complaint
from wakeful.cli.connection import Connection, connect
from wakeful.cli.output import one_line, say, say_json
from wakeful.cli.place import Place, as_json, outside_run, placed
from wakeful.cli.words import counted
from wakeful.core.errors import Mistake, Unknown

if TYPE_CHECKING:
    from wakeful.core.foreign import Entry, Whose

LARGEST = 256_000_000
# Of one request: tasks, and bytes, of which a body may have so many and no more.
MOST_AT_ONCE = 500
MOST_BYTES = 500_000
MOST_NAMED = 10


@click.command("import")
@click.argument("file")
@click.option("--agent", metavar="AGENT", help="Who gets the tasks that name nobody who is here.")
@click.option("--role", metavar="ROLE", help="The role that gets them.")
@click.option("--prefix", metavar="NAME", default="", help="What tells the ids of this queue from those of another.")
@click.option("--dry-run", is_flag=True, help="Say what would be recorded, and record nothing.")
@as_json
@placed
def import_tasks(
    place: Place, file: str, agent: str | None, role: str | None, prefix: str, dry_run: bool, as_json: bool
) -> None:
    """Take over the tasks of FILE: a tasks.json of version 1 or 2; - reads it from stdin."""
    from wakeful.core.foreign import Whose, key_of, needed_elsewhere, read_queue

    outside_run(place, "to import a queue")
    if agent is not None and role is not None:
        raise Complaint("found both --agent and --role", "say one of them", BAD)
    told = _read(file)
    with connect(place) as connection:
        whose = Whose(_agents(connection), agent, role, prefix=prefix)
        _refuse_unknown(whose)
        before = (id for id in needed_elsewhere(told) if _found(connection, key_of(id, prefix)) is not None)
        whose = replace(whose, known=frozenset(before))
        entries = read_queue(told, whose, datetime.now(UTC))
        here = _here(connection, entries, quiet=as_json)
        _refuse_others(entries, here)
        fresh = [entry for entry in entries if entry.id not in here]
        made = _dry(fresh) if dry_run else _recorded(connection, fresh, quiet=as_json)
    rows = made + [
        {"from": id, "id": known["id"], "state": known["state"], "duplicate": True} for id, known in here.items()
    ]
    answer = {
        "file": file,
        "dry_run": dry_run,
        "tasks": len(rows),
        "recorded": sum(not row["duplicate"] for row in rows),
        "known": sum(row["duplicate"] for row in rows),
        "states": dict(Counter(row["state"] for row in rows)),
        "changed": [entry.id for entry in entries if entry.id in here and _changed(entry, here[entry.id])],
        "lacking": {entry.id: entry.lacks for entry in entries if entry.lacks is not None},
        "items": rows,
    }
    say_json(answer) if as_json else say(_summary(answer))


def _read(file: str) -> object:
    try:
        with click.open_file("-", "rb") if file == "-" else open(file, "rb", opener=_open) as stream:
            content = stream.read(LARGEST + 1)
    except OSError as error:
        raise Complaint(f"{file}: {(error.strerror or str(error)).lower()}", "name a tasks.json", BAD) from None
    if len(content) > LARGEST:
        raise Complaint(f"{file} has more than {LARGEST:,} bytes", "split it", BAD)
    try:
        return json.loads(content.decode("utf-8-sig"))
    except RecursionError:
        raise Complaint(f"{file} is nested too deeply", "nothing was recorded", BAD) from None
    except ValueError as error:
        raise Complaint(f"{file} is not JSON: {error}", "mend it; nothing was recorded", BAD) from None


def _open(file: str, flags: int) -> int:
    """A pipe that nobody writes to is empty, and not waited for."""
    opened = os.open(file, flags | os.O_NONBLOCK | os.O_NOCTTY)
    os.set_blocking(opened, True)
    return opened


def _agents(connection: Connection) -> frozenset[str]:
    names: set[str] = set()
    after: str | None = ""
    while after is not None:
        page = connection.ask("agents", after=after, limit=1_000)
        names |= {name for row in page["items"] for name in (row["name"], row["address"])}
        after = page["next"]
    return frozenset(names)


def _refuse_unknown(whose: Whose) -> None:
    from wakeful.core.tasks import unknown_agent

    if whose.agent is not None and whose.agent not in whose.agents:
        nobody = unknown_agent(whose.agent, whose.agents)
        raise Mistake(str(nobody), nobody.remedy)


def _here(connection: Connection, entries: list[Entry], *, quiet: bool) -> dict[str, dict[str, Any]]:
    """The tasks that entries became when they were imported before."""
    if not connection.ask("count_tasks")["total"]:
        return {}
    found = {}
    with bar("look", len(entries), quiet) as step:
        for entry in entries:
            row = _found(connection, entry.fields["key"])
            if row is not None:
                found[entry.id] = row
            step(1)
    return found


def _found(connection: Connection, key: str) -> dict[str, Any] | None:
    try:
        return connection.ask("keyed_task", message_id=key)
    except (Unknown, Mistake):
        return None
    except Complaint as refused:
        if refused.exit_code not in (REFUSED, BAD):
            raise
        return None


def _refuse_others(entries: list[Entry], here: dict[str, dict[str, Any]]) -> None:
    """Under the same id there may be another task: of another queue, most likely."""
    others = [entry for entry in entries if entry.id in here and not _same(entry, here[entry.id])]
    if others:
        first = others[0]
        title, known = one_line(first.fields["title"], 60), here[first.id]
        raise Complaint(
            f"{counted(len(others), 'task')} of the file are others than those imported before under their ids: "
            f"{first.id} is {title!r}, and here it is task {known['id']}, {one_line(known['title'], 60)!r}; "
            "nothing was recorded",
            "another queue gets keys of its own with --prefix NAME",
        )


def _same(entry: Entry, known: dict[str, Any]) -> bool:
    """Whether it may be the task that was imported under its key, though somebody gave it another title since."""
    if entry.fields["title"] == known["title"]:
        return True
    created = entry.fields["past"].get("created_at")
    return created is not None and datetime.fromisoformat(created) == datetime.fromisoformat(known["created_at"])


def _changed(entry: Entry, known: dict[str, Any]) -> bool:
    from wakeful.core.items import Priority, read_priority

    fields = entry.fields
    priority = read_priority(fields.get("priority", Priority.normal.value)).value
    told = (fields["title"], fields.get("description", ""), priority)
    return told != (known["title"], known["description"], known["priority"])


def _dry(entries: list[Entry]) -> list[dict[str, Any]]:
    from wakeful.core.foreign import LIVE

    def state(entry: Entry) -> str:
        past = str(entry.fields["past"]["state"])
        return "pending" if past in list(LIVE) else past

    return [{"from": entry.id, "id": None, "state": state(entry), "duplicate": False} for entry in entries]


def _recorded(connection: Connection, entries: list[Entry], *, quiet: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    with bar("import", len(entries), quiet) as step:
        for part in _parts(entries):
            answer = connection.ask("add_tasks", tasks=[entry.fields for entry in part])
            for entry, row in zip(part, answer["items"], strict=True):
                rows.append({"from": entry.id, **{name: row[name] for name in ("id", "state", "duplicate")}})
            step(len(part))
    return rows


def _parts(entries: list[Entry]) -> Iterator[list[Entry]]:
    part: list[Entry] = []
    size = 0
    for entry in entries:
        length = len(json.dumps(entry.fields))
        if part and (len(part) >= MOST_AT_ONCE or size + length > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(entry)
        size += length
    if part:
        yield part


def _summary(answer: dict[str, Any]) -> str:
    if not answer["tasks"]:
        return f"there are no tasks in {answer['file']}"
    states = ", ".join(f"{number:,} {state}" for state, number in sorted(answer["states"].items()))
    known = (
        f"; {answer['known']:,} of them {'are' if answer['dry_run'] else 'were'} here already"
        if answer["known"]
        else ""
    )
    whence = "would be taken over from" if answer["dry_run"] else "from"
    said = f"{counted(answer['tasks'], 'task')} {whence} {answer['file']}: {states}{known}"
    if answer["changed"]:
        said += (
            f"\nchanged in the file since they were imported, and left here as they are: {_named(answer['changed'])}"
        )
    if answer["lacking"]:
        pairs = [f"{id} (on {need})" for id, need in answer["lacking"].items()]
        said += f"\ndead, since they depend on what is neither in the file nor here: {_named(pairs)}"
    return said


def _named(ids: list[str]) -> str:
    return one_line(
        ", ".join(ids[:MOST_NAMED]) + (f" and {len(ids) - MOST_NAMED:,} more" * (len(ids) > MOST_NAMED)), 400
    )
