"""The queue of another system, `tasks.json`, as tasks of ours.

    {"version": 2, "tasks": {"a1b2c3": {"title": …, "status": …, "dependsOn": […], …}}}

Version 1, or none, has a list or a mapping, and fewer fields.

Laws:
- An entry's identity is its key: the same file read again gives the same tasks. One without an id is known by what it
  says, and not by its place in a list, where the next file has another.
- What had ended there has ended here. What was alive there waits here, with its attempts and its last error.
- What depends on something that is neither in the file nor here would wait for ever: it is dead, and says why.
- All of a file is understood, or none of it: whoever is told of a mistake has recorded nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from wakeful.core.codec import write_time
from wakeful.core.errors import Mistake
from wakeful.core.items import Origin, State
from wakeful.core.tasks import MOST_ATTEMPTS, Sender, read_task
from wakeful.core.wording import UNSTORABLE, quoted

VERSIONS = (1, 2)
STATES = (State.pending, State.in_progress, State.completed, State.failed, State.cancelled, State.dead_letter)
LIVE = (State.pending, State.in_progress, State.failed)
LONGEST_TITLE = 80
MOST_NAMED = 5

# Whoever hands it over.
_SENDER = Sender("operator", Origin.operator)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Entry:
    """One task of the file: what it was called there, and the fields that it is added with here."""

    id: str
    fields: dict[str, Any]
    # It is dead because it depends on this, which is nowhere.
    lacks: str | None = None


@dataclass(frozen=True, slots=True)
class Whose:
    """Whom tasks may be for, and who gets those that name nobody who is here; `known` were imported before. `prefix`
    tells the ids of one queue from those of another."""

    agents: frozenset[str]
    agent: str | None = None
    role: str | None = None
    known: frozenset[str] = frozenset()
    prefix: str = ""


def key_of(id: str, prefix: str = "") -> str:
    return f"import:{prefix}:{id}" if prefix else f"import:{id}"


def needed_elsewhere(told: object) -> list[str]:
    """What entries depend on that is not in the file, as far as it can be understood."""
    found, _ = _entries(told)
    needs: dict[str, None] = {}
    for entry in found.values():
        with suppress(Mistake):
            needs |= dict.fromkeys(_ids(entry))
    return [need for need in needs if need not in found]


def read_queue(told: object, whose: Whose, now: datetime) -> list[Entry]:
    """The entries, those that others depend on first; otherwise the oldest first."""
    found, identities = _entries(told)
    _refuse_homeless(found, whose)
    keys = {id: key_of(identities.get(id, id), whose.prefix) for id in found.keys() | whose.known}
    made, lacks = {}, {}
    for id, entry in found.items():
        try:
            fields, lacks[id] = _fields(id, entry, keys, whose)
            # Whatever is wrong with it is told now, before anything is recorded.
            read_task(fields, now, _SENDER, past=True)
        except Mistake as mistake:
            raise Mistake(f"task {quoted(id)}: {mistake.reason}", mistake.remedy) from None
        except RecursionError:
            raise Mistake(f"task {quoted(id)}: nested too deeply", "make it flatter, or take it out") from None
        made[id] = fields
    return [Entry(id, made[id], lacks[id]) for id in _in_order(made)]


# ---- the file


def _entries(told: object) -> tuple[dict[str, Mapping[str, Any]], dict[str, str]]:
    """By what they are called in the file, and what those are known by that have no id."""
    if not isinstance(told, Mapping) or not isinstance(told.get("tasks"), (Mapping, list)):
        raise Mistake("expected a queue with its tasks", 'name a tasks.json: {"version": 2, "tasks": {…}}')
    version = told.get("version", 1)
    if type(version) is not int or version not in VERSIONS:
        raise Mistake(f"unknown version {quoted(str(version))} of the queue", "version 1 and 2 can be read")
    found: dict[str, Mapping[str, Any]] = {}
    identities: dict[str, str] = {}
    alike: Counter[str] = Counter()
    for id, named, entry in _named(told["tasks"]):
        if not isinstance(entry, Mapping):
            raise Mistake(f"task {quoted(id)}: expected an object", "mend it, or take it out of the file")
        if id in found:
            raise Mistake(f"task {quoted(id)} stands twice in the file", "take one of them out")
        found[id] = entry
        if not named:
            digest = _digest(entry)
            alike[digest] += 1
            identities[id] = digest if alike[digest] == 1 else f"{digest}-{alike[digest]}"
    return found, identities


def _named(tasks: Mapping[str, Any] | list[Any]) -> Iterator[tuple[str, bool, Any]]:
    """What an entry is called, and whether it has that name of itself or for its place in the list."""
    if isinstance(tasks, Mapping):
        yield from ((id, True, entry) for id, entry in tasks.items())
        return
    for number, entry in enumerate(tasks, 1):
        id = entry.get("id") if isinstance(entry, Mapping) else None
        named = isinstance(id, (str, int)) and bool(str(id))
        yield str(id) if named else str(number), named, entry


def _digest(entry: Mapping[str, Any]) -> str:
    """Of what stays as it is, whatever becomes of the task."""
    told = [entry.get(name) for name in ("title", "description", "createdAt")]
    plain = [value if isinstance(value, (str, int, float)) else None for value in told]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()[:16]


# ---- one entry


def _fields(
    id: str, entry: Mapping[str, Any], keys: Mapping[str, str], whose: Whose
) -> tuple[dict[str, Any], str | None]:
    """What it is added with, and what it depends on that is nowhere."""
    state = _state(entry)
    needs = _ids(entry)
    lacks = next((need for need in needs if need not in keys), None) if state in LIVE else None
    past: dict[str, Any] = {"state": state.value, "attempts": _attempts(entry, state), "error": _error(entry)}
    if lacks is not None:
        state, past["state"] = State.dead_letter, State.dead_letter.value
        past["error"] = _lines(f"depends on {_kept(lacks)}, which is not in the imported queue", past["error"])
    if state not in LIVE:
        past["result"] = _result(entry)
        past["closed_at"] = _time(entry, "completedAt") or _time(entry, "updatedAt")
    past["created_at"] = _time(entry, "createdAt")
    agent, role = _for_whom(entry, whose)
    root = entry.get("projectRoot")
    fields = {
        "title": _title(id, entry),
        "agent": agent,
        "role": role,
        "description": entry.get("description"),
        "payload": {"projectRoot": root} if root else None,
        "priority": entry.get("priority"),
        "tags": entry.get("tags") or None,
        "key": keys[id],
        "depends_on": [keys[need] for need in needs if need in keys] or None,
        "not_before": _latest(entry) if state in LIVE else None,
        "max_retries": entry.get("maxRetries"),
        "past": {name: value for name, value in past.items() if value is not None},
    }
    return {name: value for name, value in fields.items() if value is not None}, lacks


def _state(entry: Mapping[str, Any]) -> State:
    status = entry.get("status") or State.pending.value
    if status not in list(STATES):
        raise Mistake(f"unknown status {quoted(str(status))}", f"use one of {', '.join(STATES)}")
    return State(status)


def _attempts(entry: Mapping[str, Any], state: State) -> int:
    """The retries are counted there, not the first try."""
    count = entry.get("retryCount") or 0
    if type(count) is not int or not 0 <= count < MOST_ATTEMPTS:
        raise Mistake(
            f"expected how often it was retried, found {quoted(str(count))}",
            f"write a number below {MOST_ATTEMPTS:,} as retryCount",
        )
    return count + 1 if state is State.completed else count


def _ids(entry: Mapping[str, Any]) -> list[str]:
    needs = entry.get("dependsOn") or []
    if not isinstance(needs, list) or not all(isinstance(need, (str, int)) for need in needs):
        raise Mistake("expected in dependsOn the tasks that come first", "write a list of their ids")
    return list(dict.fromkeys(str(need) for need in needs))


def _title(id: str, entry: Mapping[str, Any]) -> object:
    title = entry.get("title")
    if title is not None and (not isinstance(title, str) or title.strip()):
        return title
    lines = str(entry.get("description") or "").strip().splitlines() or [f"task {id}"]
    return lines[0] if len(lines[0]) <= LONGEST_TITLE else lines[0][: LONGEST_TITLE - 1] + "…"


def _result(entry: Mapping[str, Any]) -> str | None:
    result = entry.get("result")
    return None if result is None else _kept(result if isinstance(result, str) else json.dumps(result))


def _error(entry: Mapping[str, Any]) -> str | None:
    """Why it failed or died, and the last that it printed."""
    told = [entry.get(name) for name in ("deadLetterReason", "lastError", "error")]
    code = entry.get("workerExitCode")
    if isinstance(code, int) and code:
        told.append(f"exit code {code}")
    log = entry.get("errorLog")
    told += log if isinstance(log, list) else [log]
    return _lines(*told)


def _lines(*told: object) -> str | None:
    lines = [_kept(line if isinstance(line, str) else json.dumps(line)) for line in told if line]
    return "\n".join(dict.fromkeys(lines)) or None


def _kept(printed: str) -> str:
    """What a worker printed may hold what no store takes."""
    return UNSTORABLE.sub("\ufffd", printed)


def _latest(entry: Mapping[str, Any]) -> str | None:
    times = [_time(entry, name) for name in ("scheduledAt", "retryAfter")]
    return max((time for time in times if time is not None), default=None)


def _time(entry: Mapping[str, Any], name: str) -> str | None:
    """As text, or as milliseconds since 1970."""
    value = entry.get(name)
    if value is None or value == "":
        return None
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return write_time(_EPOCH + timedelta(milliseconds=value))
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return write_time(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        pass
    raise Mistake(f"expected an instant in {name}, found {quoted(str(value))}", "write it as 2026-12-24T18:00:00Z")


# ---- for whom


def _for_whom(entry: Mapping[str, Any], whose: Whose) -> tuple[str | None, str | None]:
    agent = entry.get("agentId")
    return (agent, None) if isinstance(agent, str) and agent in whose.agents else (whose.agent, whose.role)


def _refuse_homeless(entries: Mapping[str, Mapping[str, Any]], whose: Whose) -> None:
    homeless = [id for id, entry in entries.items() if _for_whom(entry, whose) == (None, None)]
    if not homeless:
        return
    named = sorted({str(entries[id].get("agentId")) for id in homeless if entries[id].get("agentId")})
    which = ", ".join(map(quoted, homeless[:MOST_NAMED])) + (", …" if len(homeless) > MOST_NAMED else "")
    strangers = f"; no agent here is called {', '.join(map(quoted, named[:MOST_NAMED]))}" if named else ""
    raise Mistake(
        f"{len(homeless)} of the {len(entries)} tasks are for nobody who is here: {which}{strangers}",
        "say who gets them: --agent or --role",
    )


# ---- what comes first


def _in_order(made: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """So that whatever is recorded in parts finds what it depends on."""
    oldest = sorted(made, key=lambda id: made[id]["past"].get("created_at", ""))
    ids = {fields["key"]: id for id, fields in made.items()}
    needs = {id: [ids[key] for key in fields.get("depends_on", ()) if key in ids] for id, fields in made.items()}
    ordered: dict[str, None] = {}
    for id in oldest:
        _visit(id, needs, ordered)
    return list(ordered)


def _visit(first: str, needs: Mapping[str, Iterable[str]], ordered: dict[str, None]) -> None:
    path = {first: iter(needs[first])} if first not in ordered else {}
    while path:
        id, ahead = next(reversed(path.items()))
        need = next((need for need in ahead if need not in ordered), None)
        if need is None:
            ordered[id] = None
            del path[id]
        elif need in path:
            circle = [*list(path)[list(path).index(need) :], need]
            raise Mistake(
                f"tasks depend on each other in a circle: {' -> '.join(circle)}",
                "take one of these dependencies out of the file",
            )
        else:
            path[need] = iter(needs[need])
