"""`wakeful import`: the queue of another system, taken over.

Laws:
- A file that cannot be read, or understood to its last entry, exits 2, and nothing of it is recorded.
- Taken over again, it gives the same tasks: what was recorded before is found, and what has become of it here stays.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from wakeful.cli.changing import bar
from wakeful.cli.complaints import BAD, Complaint
from wakeful.cli.connection import Connection, connect
from wakeful.cli.output import say, say_json
from wakeful.cli.place import Place, as_json, outside_run, placed
from wakeful.cli.words import counted

if TYPE_CHECKING:
    from wakeful.core.foreign import Entry, Whose

LARGEST = 256_000_000
# Of one request: tasks, and bytes, of which a body may have so many and no more.
MOST_AT_ONCE = 500
MOST_BYTES = 500_000


@click.command("import")
@click.argument("file")
@click.option("--agent", metavar="AGENT", help="Who gets the tasks that name nobody who is here.")
@click.option("--role", metavar="ROLE", help="The role that gets them.")
@click.option("--dry-run", is_flag=True, help="Say what would be recorded, and record nothing.")
@as_json
@placed
def import_tasks(place: Place, file: str, agent: str | None, role: str | None, dry_run: bool, as_json: bool) -> None:
    """Take over the tasks of FILE: a tasks.json of version 1 or 2; - reads it from stdin."""
    from wakeful.core.foreign import Whose, read_queue

    outside_run(place, "to import a queue")
    if agent is not None and role is not None:
        raise Complaint("found both --agent and --role", "say one of them", BAD)
    told = _read(file)
    with connect(place) as connection:
        whose = Whose(_agents(connection), agent, role)
        _refuse_unknown(whose)
        entries = read_queue(told, whose, datetime.now(UTC))
        rows = _dry(entries) if dry_run else _recorded(connection, entries, quiet=as_json)
    answer = {
        "file": file,
        "dry_run": dry_run,
        "tasks": len(rows),
        "recorded": sum(not row["duplicate"] for row in rows),
        "known": sum(row["duplicate"] for row in rows),
        "states": dict(Counter(row["state"] for row in rows)),
        "items": rows,
    }
    say_json(answer) if as_json else say(_summary(answer))


def _read(file: str) -> object:
    try:
        with click.open_file(file, "rb") as stream:
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


def _agents(connection: Connection) -> frozenset[str]:
    names: set[str] = set()
    after: str | None = ""
    while after is not None:
        page = connection.ask("agents", after=after, limit=1_000)
        names |= {name for row in page["items"] for name in (row["name"], row["address"])}
        after = page["next"]
    return frozenset(names)


def _refuse_unknown(whose: Whose) -> None:
    from wakeful.core.errors import Mistake
    from wakeful.core.tasks import unknown_agent

    if whose.agent is not None and whose.agent not in whose.agents:
        raise Mistake(str(unknown_agent(whose.agent, whose.agents)))


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
    if answer["dry_run"]:
        return f"{counted(answer['tasks'], 'task')} would be recorded, unless they are here already: {states}"
    known = f"; {answer['known']:,} of them were here already" if answer["known"] else ""
    return f"{counted(answer['tasks'], 'task')} from {answer['file']}: {states}{known}"
