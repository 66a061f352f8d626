"""What attempts at a task printed.

Law: a run of one task has the whole of it; of one among many in a shift there is what was kept of that attempt, and
while it is under way what the shift prints.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from wakeful.cli.connection import ask, connect, connect_live
from wakeful.cli.logs import follow_output, print_output, tell_end
from wakeful.cli.output import clean, say, write
from wakeful.cli.place import Place
from wakeful.cli.task_words import attempt_words

Row = dict[str, Any]

_OVER = ("completed", "cancelled", "dead_letter")


def tails(row: Row) -> None:
    """Each attempt with the last of what it printed."""
    if not row["attempts"]:
        say(f"task {row['id']} has not been tried yet", to_stderr=True)
    for number, attempt in enumerate(row["attempts"], 1):
        _head(number, attempt)
        _tail(attempt)


def newest(place: Place, row: Row) -> None:
    if not row["attempts"]:
        say(f"task {row['id']} has not been tried yet", to_stderr=True)
        return
    attempt = row["attempts"][-1]
    _head(len(row["attempts"]), attempt)
    if place.inside_run or not _is_alone(place, row, attempt):
        _tail(attempt)
        return
    with connect(place) as connection:
        print_output(connection, attempt["run_id"], "stdout", 0, False)


def followed(place: Place, row: Row) -> None:
    """The attempt that is under way, or comes next, until it has ended."""
    if row["state"] in _OVER:
        newest(place, row)
        return
    with connect_live(place, f"task {row['id']} is {row['state']} without one"):
        pass
    row = _begun(place, row)
    if not row["attempts"] or row["attempts"][-1]["ended_at"]:
        newest(place, row)
        return
    attempt = row["attempts"][-1]
    _head(len(row["attempts"]), attempt)
    if not _is_alone(place, row, attempt):
        say(f"run {attempt['run_id']} is a shift: what follows is of all its tasks", to_stderr=True)
    if follow_output(place, attempt["run_id"], "stdout", 0, False):
        tell_end(ask(place, "show_run", run=attempt["run_id"]))


def _begun(place: Place, row: Row) -> Row:
    """The task once it is under way or over; one that waits for its retry is waited for."""
    from wakeful.cli.waiting import Patient, rests

    patient = Patient(place)
    try:
        for _ in rests():
            if row["state"] == "in_progress" or row["state"] in _OVER:
                return row
            row = patient.ask("task", task=row["id"])
    except KeyboardInterrupt:
        pass
    return row


def _is_alone(place: Place, row: Row, attempt: Row) -> bool:
    run = ask(place, "show_run", run=attempt["run_id"])
    return bool(run["task_ids"] == [row["id"]])


def _head(number: int, attempt: Row) -> None:
    say(attempt_words(number, attempt, datetime.now(UTC)), to_stderr=True)


def _tail(attempt: Row) -> None:
    printed = clean(attempt["output"])
    if printed:
        write(printed if printed.endswith("\n") else f"{printed}\n")
