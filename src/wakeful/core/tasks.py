"""A task as somebody writes it, in JSON: in a request, in a file that is dropped, in a queue that is imported.

Laws:
- One reader for all of them, so that the same field means the same and is refused in the same words everywhere.
- Nothing is guessed: an unknown field is named with the nearest known one, and "3" is no number.
- `key` is the sender's own: two senders may use the same key for two things.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, overload
from zoneinfo import ZoneInfo

from wakeful.core.durations import read_duration
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import Item, Kind, NewItem, Origin, Past, Priority, State, read_priority
from wakeful.core.moments import read_instant, read_moment
from wakeful.core.names import read_name
from wakeful.core.wording import nearest, quoted, readable

FIELDS = dict.fromkeys(
    (
        *("title", "agent", "role", "description", "payload", "priority", "tags", "key", "causal_key"),
        *("depends_on", "not_before", "max_retries", "timeout"),
    )
)
WITH_PAST = {**FIELDS, "past": None}
PAST = dict.fromkeys(("state", "attempts", "error", "result", "created_at", "closed_at"))
TASK_STATES = tuple(state for state in State if state not in (State.open, State.closed))

MOST_RETRIES = 1_000
MOST_ATTEMPTS = 1_000_000
MOST_TAGS = 100
MOST_DEPENDENCIES = 1_000
LONGEST_KEY = 255
LARGEST = 2**63 - 1
MOST_COMPARED = 2_000
MOST_NAMED = 10
# Levels of a payload; every answer that holds one must still be able to carry it.
DEEPEST = 100

UTC_ZONE = ZoneInfo("UTC")

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class Sender:
    """Who adds a task, as we know it; `run` is the one in the course of which it does. `source` is by what way. `scope`
    is whose its keys are, where it shares them with others."""

    name: str
    origin: Origin
    run: int | None = None
    source: str | None = None
    scope: str | None = None

    @property
    def keys(self) -> str:
        return self.scope or self.name


def read_task(
    fields: object, now: datetime, sender: Sender, zone: ZoneInfo = UTC_ZONE, *, past: bool = False
) -> NewItem:
    """`zone` is that of a time of day; with `past` it may also be told what became of it elsewhere."""
    told = _mapping(fields, "a task", WITH_PAST if past else FIELDS)
    title = _text(told, "title") or ""
    if not title.strip():
        raise Mistake("the task has no title", "say in a few words what is to be done")
    tags = _tags(told.get("tags"))
    agent, role = _whose(_text(told, "agent"), _text(told, "role"), tags)
    key, not_before, timeout = _text(told, "key"), _text(told, "not_before"), _text(told, "timeout")
    tasks, needs = _dependencies(told.get("depends_on"))
    return NewItem(
        kind=Kind.task,
        agent=agent,
        role=role,
        sender=sender.name,
        origin=sender.origin,
        by_run=sender.run,
        source=sender.source,
        subject=title,
        body=_text(told, "description") or "",
        payload=write_payload(told.get("payload")),
        priority=_priority(_text(told, "priority")),
        tags=tags,
        dedupe=None if key is None else scoped_key(sender.keys, read_key(key)),
        key=read_key(_text(told, "causal_key"), "a causal key"),
        depends_on=tasks,
        needs=tuple(scoped_key(sender.keys, need) for need in needs),
        not_before=None if not_before is None else read_moment(not_before, now, zone),
        max_retries=_retries(told.get("max_retries")),
        timeout=None if timeout is None else _timeout(timeout),
        past=_past(told["past"]) if past and told.get("past") is not None else None,
    )


def scoped_key(sender: str, key: str) -> str:
    return f"{sender}:{key}"


def spoken_key(dedupe: str, sender: str | None = None) -> str:
    """The key without whose it is, for whoever has written it."""
    return own_key(sender, dedupe) or dedupe.partition(":")[2] or dedupe


def own_key(sender: str | None, dedupe: str | None) -> str | None:
    """The key as its sender wrote it; None where it has none that a person gave it."""
    prefix = f"{sender}:"
    return dedupe.removeprefix(prefix) if dedupe is not None and dedupe.startswith(prefix) else None


def message_id(item: Item | NewItem) -> str | None:
    """The key that its sender gave it; of what a schedule adds, the whole key, by which it is found."""
    if item.dedupe is None or item.sender == item.source:
        return item.dedupe
    # Of a run it is kept under its address or role, which have no colon.
    return item.dedupe.partition(":")[2] if item.origin is Origin.agent else own_key(item.sender, item.dedupe)


@overload
def read_key(key: str, what: str = ...) -> str: ...
@overload
def read_key(key: None, what: str = ...) -> None: ...
@overload
def read_key(key: str | None, what: str = ...) -> str | None: ...
def read_key(key: str | None, what: str = "a key") -> str | None:
    if key is None:
        return None
    if not key.strip() or len(key) > LONGEST_KEY:
        raise Mistake(f"expected {what} of 1 to {LONGEST_KEY} characters", "use an identifier of your own request")
    return readable(key, what.replace("a ", "the ", 1))


def write_payload(value: Any) -> str | None:
    """As it is kept: JSON that any store and any reader can take."""
    if value is None:
        return None
    try:
        written = _encode(value)
        # Most have no more brackets than that, and need no closer look.
        if written.count("[") + written.count("{") > DEEPEST and _depth(value) > DEEPEST:
            raise RecursionError
    except RecursionError:
        remedy = f"{DEEPEST} levels is the most: make it flatter"
        raise Mistake("the payload is nested too deeply", remedy) from None
    except (TypeError, ValueError):
        raise Mistake("the payload is not JSON", "write numbers, texts, lists and objects") from None
    return readable(written, "the payload")


def _depth(value: Any) -> int:
    """How many lists and objects are inside each other, without going down as deep."""
    depth, level = 0, [value]
    while level := [held for held in level if isinstance(held, (dict, list, tuple))]:
        depth += 1
        level = [held for holder in level for held in (holder.values() if isinstance(holder, dict) else holder)]
    return depth


def unknown_agent(name: str, known: Iterable[str]) -> Unknown:
    """No such agent, with the one that was probably meant."""
    names = sorted(set(known))
    near = nearest(name, names) if len(names) <= MOST_COMPARED and len(name) <= 64 else None
    told = f"no agent is called {quoted(name)}"
    if not names:
        return Unknown(f"{told}; no fleet has been taken up here yet", "wakeful up does that")
    if near:
        return Unknown(f"{told}; did you mean {near}?")
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return Unknown(f"{told}; there are {', '.join(names[:MOST_NAMED])}{more}")


# ---- one field each


def _mapping(value: object, what: str, known: Mapping[str, None]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Mistake(f"expected {what} as an object, found {_kind(value)}", 'write {"title": "…", "agent": "…"}')
    for field in value:
        if field not in known:
            near = nearest(str(field), known) if len(str(field)) <= 64 else None
            raise Mistake(
                f"unknown field {quoted(str(field))} of {what}",
                f"did you mean {near}?" if near else f"known are {', '.join(known)}",
            )
    return value


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else str(value).lower()
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, (int, float)):
        return f"the number {quoted(str(value))[1:-1]}" if abs(value) < LARGEST else "a number out of all bounds"
    return "a list" if isinstance(value, (list, tuple)) else "an object"


def _text(told: dict[str, Any], field: str) -> str | None:
    value = told.get(field)
    if value is None:
        return None
    what = field if "_" in field else f"the {field}"
    if not isinstance(value, str):
        raise Mistake(f"expected {what} as text, found {_kind(value)}", f'write "{field}": "…"')
    return readable(value, what)


def _whose(agent: str | None, role: str | None, tags: tuple[str, ...]) -> tuple[str | None, str | None]:
    """A task with nothing but a tag is for whoever takes tasks of that name."""
    if agent is None and role is None and len(tags) == 1:
        return None, read_name(tags[0], "a role")
    if agent is None and role is None and tags:
        raise Mistake("which of the tags is the role?", "name the agent or the role that the task is for")
    if (agent is None) == (role is None):
        raise Mistake("a task is for an agent or for a role", "name one of them, and only one")
    return agent, None if role is None else read_name(role, "a role")


def _tags(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)) or len(value) > MOST_TAGS:
        raise Mistake(f"expected up to {MOST_TAGS} tags in a list, found {_kind(value)}", 'write "tags": ["…"]')
    for tag in value:
        if not isinstance(tag, str) or not tag.strip():
            raise Mistake(f"expected a tag as text, found {_kind(tag)}", "write words")
    return tuple(dict.fromkeys(readable(tag, "a tag") for tag in value))


def _dependencies(value: object) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Tasks by their numbers, and by the keys of their sender."""
    if value is None:
        return (), ()
    if not isinstance(value, (list, tuple)) or len(value) > MOST_DEPENDENCIES:
        found = _kind(value)
        raise Mistake(f"expected up to {MOST_DEPENDENCIES} tasks in a list, found {found}", 'write "depends_on": [3]')
    for task in value:
        number = isinstance(task, int) and not isinstance(task, bool) and 0 < task <= LARGEST
        if not number and not isinstance(task, str):
            raise Mistake(f"expected a task to depend on, found {_kind(task)}", "write its number, or its key as text")
    numbers = dict.fromkeys(task for task in value if not isinstance(task, str))
    keys = dict.fromkeys(read_key(task) for task in value if isinstance(task, str))
    return tuple(numbers), tuple(keys)


def _priority(text: str | None) -> Priority:
    return Priority.normal if text is None else read_priority(text)


def _retries(value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_RETRIES:
        found = str(value) if type(value) is int and abs(value) < LARGEST else _kind(value)
        raise Mistake(f"expected a number of retries, found {found}", f"write one from 0 to {MOST_RETRIES}")
    return value


def _timeout(text: str) -> timedelta:
    try:
        return read_duration(text.strip())
    except Mistake as mistake:
        raise Mistake(f"the timeout: {mistake.reason}", mistake.remedy) from None


# ---- what became of it elsewhere


def _past(value: object) -> Past:
    told = _mapping(value, "the past of a task", PAST)
    state = _text(told, "state") or ""
    if state not in TASK_STATES:
        raise Mistake(f"unknown state of tasks {quoted(state)}", f"use one of {', '.join(TASK_STATES)}")
    attempts = told.get("attempts", 0)
    if not isinstance(attempts, int) or isinstance(attempts, bool) or not 0 <= attempts <= MOST_ATTEMPTS:
        raise Mistake(
            f"expected a number of attempts, found {_kind(attempts)}", f"write one from 0 to {MOST_ATTEMPTS:,}"
        )
    created, closed = _text(told, "created_at"), _text(told, "closed_at")
    return Past(
        state=State(state),
        attempts=attempts,
        error=_text(told, "error"),
        result=_text(told, "result"),
        created_at=None if created is None else read_instant(created),
        closed_at=None if closed is None else read_instant(closed),
    )
