"""`wakeful import`: the queue of another system, taken over.

Laws:
- A file that cannot be read, or understood to its last entry, exits 2, and nothing of it is recorded.
- Taken over again, it gives the same tasks: what was recorded before is found, and what has become of it here stays.
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
from wakeful.core.errors import Conflict, Mistake, Unknown, WakefulError

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
@click.option("--dry-run", is_flag=True, help="Say what would be recorded, and record nothing.")
@as_json
@placed
def import_tasks(place: Place, file: str, agent: str | None, role: str | None, dry_run: bool, as_json: bool) -> None:
    """Take over the tasks of FILE: a tasks.json of version 1 or 2; - reads it from stdin."""
    from wakeful.core.foreign import Whose, needed_elsewhere, read_queue

    outside_run(place, "to import a queue")
    if agent is not None and role is not None:
        raise Complaint("found both --agent and --role", "say one of them", BAD)
    told = _read(file)
    with connect(place) as connection:
        whose = Whose(_agents(connection), agent, role)
        _refuse_unknown(whose)
        whose = replace(whose, known=frozenset(id for id in needed_elsewhere(told) if _found(connection, id)))
        entries = read_queue(told, whose, datetime.now(UTC))
        rows = _dry(entries) if dry_run else _recorded(connection, entries, quiet=as_json)
    answer = {
        "file": file,
        "dry_run": dry_run,
        "tasks": len(rows),
        "recorded": sum(not row["duplicate"] for row in rows),
        "known": sum(row["duplicate"] for row in rows),
        "states": dict(Counter(row["state"] for row in rows)),
        "changed": [row["from"] for row in rows if row["changed"]],
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
        raise Mistake(str(unknown_agent(whose.agent, whose.agents)))


def _dry(entries: list[Entry]) -> list[dict[str, Any]]:
    from wakeful.core.foreign import LIVE

    def state(entry: Entry) -> str:
        past = str(entry.fields["past"]["state"])
        return "pending" if past in list(LIVE) else past

    return [
        {"from": entry.id, "id": None, "state": state(entry), "duplicate": False, "changed": False} for entry in entries
    ]


def _recorded(connection: Connection, entries: list[Entry], *, quiet: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    with bar("import", len(entries), quiet) as step:
        for part in _parts(entries):
            rows += _added(connection, part)
            step(len(part))
    return rows


def _added(connection: Connection, part: list[Entry]) -> list[dict[str, Any]]:
    try:
        return _add(connection, part)
    except (Conflict, Complaint) as refused:
        known = {} if _code(refused) != REFUSED else {entry.id: _found(connection, entry.id) for entry in part}
        if not any(known.values()):
            raise
    # Somebody has changed an entry since it was imported: what is here stays, and the others go on.
    fresh = [entry for entry in part if not known[entry.id]]
    rows = {row["from"]: row for row in (_add(connection, fresh) if fresh else [])}
    return [rows.get(entry.id) or _again(connection, entry, known[entry.id]) for entry in part]


def _again(connection: Connection, entry: Entry, known: dict[str, Any]) -> dict[str, Any]:
    try:
        return _add(connection, [entry])[0]
    except (Conflict, Complaint) as refused:
        if _code(refused) != REFUSED:
            raise
        return {"from": entry.id, "id": known["id"], "state": known["state"], "duplicate": True, "changed": True}


def _add(connection: Connection, part: list[Entry]) -> list[dict[str, Any]]:
    answer = connection.ask("add_tasks", tasks=[entry.fields for entry in part])
    return [
        {"from": entry.id, **{name: row[name] for name in ("id", "state", "duplicate")}, "changed": False}
        for entry, row in zip(part, answer["items"], strict=True)
    ]


def _found(connection: Connection, id: str) -> dict[str, Any]:
    """The task that an entry became when it was imported before; nothing where it was not."""
    from wakeful.core.foreign import key_of

    try:
        return connection.ask("keyed_task", message_id=key_of(id))
    except (WakefulError, Complaint) as refused:
        if isinstance(refused, (Unknown, Mistake)) or _code(refused) in (REFUSED, BAD):
            return {}
        raise


def _code(refused: Exception) -> int:
    return refused.exit_code if isinstance(refused, Complaint) else REFUSED


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
    if answer["dry_run"]:
        said = f"{counted(answer['tasks'], 'task')} would be recorded, unless they are here already: {states}"
    else:
        known = f"; {answer['known']:,} of them were here already" if answer["known"] else ""
        said = f"{counted(answer['tasks'], 'task')} from {answer['file']}: {states}{known}"
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
