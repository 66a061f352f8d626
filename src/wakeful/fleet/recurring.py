"""Recurring tasks as a fleet file declares them: in org a heading with TASK in its drawer, in YAML a name below
`recurring:`.

Laws:
- A recurring task says when (SCHEDULE) and for whom (AGENT or ROLE, which the fleet has). What it leaves out is what a
  task leaves out that somebody adds by hand: the agent's own limits hold.
- What stands below the heading is the description. A payload is JSON; in YAML it may be written as YAML.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from wakeful.core.agents import Agent
from wakeful.core.errors import Mistake
from wakeful.core.recurrences import Recurrence
from wakeful.core.tasks import MOST_TAGS, write_payload
from wakeful.fleet import tree
from wakeful.fleet.diagnostics import Notes
from wakeful.fleet.folder import Folder
from wakeful.fleet.keys import TASK_BY_NAME
from wakeful.fleet.parse import Values, Worth
from wakeful.fleet.tree import Block, Entry, Raw, Scalar, printed_key

MOST_RECURRENCES = 10_000

# JSON's own words; anything else that stands without quotes is text.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


def build_recurring(
    blocks: Sequence[Block], agents: Sequence[Agent], notes: Notes, folder: Folder, timezone: str
) -> tuple[Recurrence, ...]:
    """Every recurring task that is whole; what is wrong with the others is in the notes."""
    worth = Worth(notes, folder, TASK_BY_NAME)
    known = _Known(agents)
    if len(blocks) > MOST_RECURRENCES:
        last = blocks[-1].name
        notes.error(last, f"the fleet has {len(blocks)} recurring tasks", f"keep it to {MOST_RECURRENCES}")
        return ()
    made = [_recurrence(block, worth, known, notes, timezone) for block in blocks]
    return tuple(one for one in made if one is not None)


class _Known:
    """Whom a task may be for."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self.agents = {name for agent in agents for name in (agent.name, agent.address)}
        self.roles = {role for agent in agents for role in agent.roles}


def _recurrence(block: Block, worth: Worth, known: _Known, notes: Notes, timezone: str) -> Recurrence | None:
    before = notes.errors
    entries = {name: _told(entry, notes) for name, entry in block.entries.items()}
    told = worth.read(entries)
    _check_whole(block, notes)
    _check_whom(block, told, known, notes)
    if notes.errors > before:
        return None
    fields: dict[str, Any] = {TASK_BY_NAME[name].field: value for name, value in told.items()}
    fields["title"] = fields.get("title") or block.name.text
    fields.setdefault("description", block.text)
    fields.setdefault("timezone", timezone)
    return Recurrence(name=block.name.text, **fields)


def _check_whole(block: Block, notes: Notes) -> None:
    entries = block.entries
    if "SCHEDULE" not in entries:
        notes.error(block.name, "a recurring task needs SCHEDULE", "add it, such as SCHEDULE: 30 9 * * MON-FRI")
    if "AGENT" in entries and "ROLE" in entries:
        second = max((entries["AGENT"], entries["ROLE"]), key=lambda entry: (entry.key.line, entry.key.column))
        notes.error(second.key, "AGENT and ROLE exclude each other", "keep one of them")
    elif "AGENT" not in entries and "ROLE" not in entries:
        notes.error(block.name, "a recurring task is for an agent or for a role", "add AGENT or ROLE")
    if "DESCRIPTION" in entries and block.text:
        notes.error(
            entries["DESCRIPTION"].key,
            "the task is described twice: here and below its heading",
            "keep one of them",
        )


def _check_whom(block: Block, told: Values, known: _Known, notes: Notes) -> None:
    for key, names, what in (
        ("AGENT", known.agents, "no agent is called"),
        ("ROLE", known.roles, "nobody has or takes the role"),
    ):
        name = told.get(key)
        if isinstance(name, str) and name not in names:
            place = block.entries[key].value
            notes.error(place, f"{what} {name}", _instead(name, names, notes, key))
    tags = told.get("TAGS")
    if isinstance(tags, tuple) and len(tags) > MOST_TAGS:
        notes.error(block.entries["TAGS"].value, f"expected up to {MOST_TAGS} tags, found {len(tags)}", "keep fewer")


def _instead(name: str, names: Collection[str], notes: Notes, key: str) -> str:
    near = notes.nearest(name, sorted(names))
    if near:
        return f"did you mean {near}?"
    return "name one of the fleet's agents" if key == "AGENT" else "add it to ROLE or TASKS of an agent"


# ---- a payload that is written as YAML


def _told(entry: Entry, notes: Notes) -> Entry:
    if entry.name != "PAYLOAD" or isinstance(entry.value, Scalar):
        return entry
    try:
        return entry._replace(known=write_payload(_plain(entry.value)))
    except Mistake as mistake:
        notes.mistake(entry.value, mistake, printed_key(entry.key))
        return entry._replace(known="null")


def _plain(value: Raw) -> Any:
    if isinstance(value, tree.Sequence):
        return [_plain(item) for item in value.items]
    if isinstance(value, tree.Mapping):
        return {key.text: _plain(item) for key, item in value.pairs}
    if not value.plain:
        return value.text
    if value.text in _WORDS:
        return _WORDS[value.text]
    if found := _NUMBER.fullmatch(value.text):
        return float(value.text) if found[1] else int(value.text)
    return value.text
