"""Tasks in words: a table of many, and one with all that is known of it."""

from __future__ import annotations

import json
import shlex
from datetime import datetime
from typing import Any

from wakeful.cli.output import clean, one_line, say
from wakeful.cli.which import PAGE
from wakeful.cli.words import clock, counted, lasting

Row = dict[str, Any]

# So many lines of what an attempt printed are shown beside it; `wakeful task log` has more.
LINES = 5
# In these the error is the reason that somebody gave, or that we did.
_SAID = ("blocked", "cancelled")
SHADES = {"completed": "green", "dead_letter": "red", "failed": "red", "blocked": "yellow", "in_progress": "cyan"}
_NEEDS = "depends on task "


def listed_tasks(rows: list[Row], now: datetime, *, dead: bool = False) -> None:
    if not rows:
        say("no dead tasks" if dead else "no tasks")
        return
    from wakeful.cli.output import Span
    from wakeful.cli.tables import draw, table

    if dead:
        told = [
            (
                str(row["id"]),
                whose(row),
                str(len(row["attempts"])),
                clock(row["closed_at"], now),
                _error(row),
                one_line(row["title"]),
            )
            for row in rows
        ]
        draw(table(("task", "for", "attempts", "died", "error", "title"), told, right=("task", "attempts")))
        return
    heads = ("task", "state", "for", "priority", "attempts", "created", "waits for", "title")
    cells = [
        (
            str(row["id"]),
            Span(row["state"], SHADES.get(row["state"], "")),
            whose(row),
            row["priority"],
            str(len(row["attempts"])),
            clock(row["created_at"], now),
            _waits(row),
            one_line(row["title"]),
        )
        for row in rows
    ]
    draw(table(heads, cells, right=("task", "attempts")))


def going_on(command: str, wanted: Row, limit: int, before: int | None, last: int) -> str:
    """The same question about what comes next."""
    asked = ["wakeful", *command.split()]
    for name, value in wanted.items():
        for each in value if isinstance(value, list) else [value]:
            asked += [f"--{name.replace('_', '-')}", one_line(each)]
    asked += ["-n", str(limit)] if limit != PAGE else []
    return shlex.join([*asked, "--before" if before else "--after", str(last)])


def _waits(row: Row) -> str:
    """What it waits for, in short."""
    return one_line((row.get("waiting_for") or "").partition(":")[0], 40)


def whose(row: Row) -> str:
    return one_line(row["agent"] or (f"role {row['role']}" if row["role"] else "nobody"))


def told_task(row: Row, now: datetime) -> list[str]:
    lines = [f"task {row['id']}: {one_line(row['title'])}", _standing(row, now)]
    if about := _about(row, now):
        lines.append("; ".join(about))
    if row["depends_on"]:
        each = ", ".join(f"{needs['id']} ({one_line(needs['state'])})" for needs in row["depends_on"])
        lines.append(f"depends on {each}")
    if row["description"]:
        lines.append(clean(row["description"]))
    if row["payload"] is not None:
        lines.append(f"payload: {one_line(json.dumps(row['payload'], ensure_ascii=False), 2_000)}")
    for number, attempt in enumerate(row["attempts"], 1):
        lines += _attempt(number, attempt, now)
    if row["steps"]:
        each = ", ".join(one_line(step["name"]) + ("" if step["recorded"] else " (begun)") for step in row["steps"])
        lines.append(f"steps: {each}")
    if row["result"] is not None:
        lines.append(f"result: {one_line(row['result'], 2_000)}")
    if row.get("waiting_for") and row["state"] != "blocked":
        lines.append(f"waits for {one_line(row['waiting_for'], 2_000)}")
    if row["error"] and row["state"] != "completed":
        lines.append(f"{'why' if row['state'] in _SAID else 'last error'}: {one_line(row['error'], 2_000)}")
    advice = _advice(row)
    return [*lines, advice] if advice else lines


def _advice(row: Row) -> str | None:
    """What a person can do about one that does not go on by itself."""
    id, error = row["id"], row["error"] or ""
    if row["state"] == "dead_letter":
        return f"to try it again: wakeful dead replay {id}; to take it away: wakeful dead discard {id}"
    if row["state"] != "blocked":
        return None
    if not error.startswith(_NEEDS):
        return f"to let it go on: wakeful task retry {id}"
    task, _, state = one_line(error).removeprefix(_NEEDS).partition(", which is ")
    if state == "cancelled":
        return f"to let it go on without that: wakeful task rm {task}, then wakeful task retry {id}"
    if state == "removed":
        return f"to let it go on without that: wakeful task retry {id}"
    return f"it goes on when that does: wakeful task {'retry' if state == 'dead_letter' else 'show'} {task}"


def _standing(row: Row, now: datetime) -> str:
    added = f"added {clock(row['created_at'], now)}" + (f" by {one_line(row['from'])}" if row["from"] else "")
    ended = f", ended {clock(row['closed_at'], now)}" if row["closed_at"] else ""
    return f"{one_line(row['state'])}, {one_line(row['priority'])}, for {whose(row)}, {added}{ended}"


def _about(row: Row, now: datetime) -> list[str]:
    """What was said of it beside its title."""
    told = []
    for name, word in (("key", "key"), ("causal_key", "causal key"), ("timeout", "timeout"), ("source", "source")):
        told += [f"{word} {one_line(row[name])}"] if row[name] else []
    told += [f"tags {', '.join(one_line(tag) for tag in row['tags'])}"] if row["tags"] else []
    told += [f"not before {clock(row['due_at'], now)}"] if row["due_at"] else []
    told += (
        [f"at most {counted(row['max_retries'], 'retry').replace('retrys', 'retries')}"]
        if row["max_retries"] is not None
        else []
    )
    return told


def attempt_words(number: int, attempt: Row, now: datetime) -> str:
    """`attempt 2 in run 12, 14:05: failed after 1.2s, exit code 1: no such file`."""
    ended = attempt["outcome"] or ("under way" if not attempt["ended_at"] else "ended")
    told = f"attempt {number} in run {attempt['run_id']}, {clock(attempt['started_at'], now)}: {one_line(ended)}"
    if attempt["duration_ms"] is not None:
        told += f" after {took(attempt['duration_ms'])}"
    if attempt["exit_code"]:
        told += f", exit code {attempt['exit_code']}"
    if attempt["ended_at"] and not attempt["counted"]:
        told += ", not counted"
    return told + (f": {one_line(attempt['error'], 400)}" if attempt["error"] else "")


def _attempt(number: int, attempt: Row, now: datetime) -> list[str]:
    printed = clean(attempt["output"]).splitlines()
    return [attempt_words(number, attempt, now), *(f"    | {line}" for line in printed[-LINES:])]


def took(milliseconds: int) -> str:
    if milliseconds < 1_000:
        return f"{milliseconds}ms"
    return f"{milliseconds / 1_000:.1f}s" if milliseconds < 60_000 else lasting(milliseconds / 1_000)


def _error(row: Row) -> str:
    return one_line(row["error"] or "", 200)
