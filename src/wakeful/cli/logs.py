"""`wakeful logs`: what a run printed.

Law: what an agent printed is shown without its control characters; `--raw` gives them only to a file or a pipe. Why it
did not end well goes to the standard error.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from wakeful.cli.complaints import BAD, Complaint, no_engine
from wakeful.cli.connection import Connection, ask, connect
from wakeful.cli.output import clean, one_line, say, say_json, write
from wakeful.cli.place import Place, as_json, placed

PAGE = 65_536


@click.command()
@click.argument("run", metavar="RUN|AGENT")
@click.option("-f", "--follow", is_flag=True, help="Go on as it prints more, until it has ended.")
@click.option("--stderr", is_flag=True, help="What it printed on its standard error.")
@click.option("--raw", is_flag=True, help="With its control characters; not on a terminal.")
@as_json
@placed
def logs(place: Place, run: str, follow: bool, stderr: bool, raw: bool, as_json: bool) -> None:
    """What RUN printed, or the newest run of AGENT."""
    if raw and sys.stdout.isatty():
        raise Complaint(
            "--raw would let the agent write to your terminal", "send it to a file: wakeful logs --raw RUN > FILE", BAD
        )
    if as_json and follow:
        raise Complaint("--json and --follow do not go together", "leave one of them out", BAD)
    stream = "stderr" if stderr else "stdout"
    with connect(place) as connection:
        number = _number(connection, run)
        if as_json:
            say_json(connection.ask("output", run=number, stream=stream))
            return
        offset, over = print_output(connection, number, stream, 0, raw)
        if over:
            tell_end(connection.ask("show_run", run=number))
        if follow and not over and not connection.live:
            raise no_engine(place.data, f"run {number} is under way without one")
    if follow and not over and follow_output(place, number, stream, offset, raw):
        tell_end(ask(place, "show_run", run=number))


def _number(connection: Connection, named: str) -> int:
    """A run by its number, else the newest run of the agent of that name."""
    if named.isascii() and named.isdigit():
        return int(named)
    found = connection.ask("runs", agent=named, limit=1)["items"]
    if not found:
        raise Complaint(f"{one_line(named)} has not run yet", f"ask for a beat: wakeful tick {one_line(named)}")
    return int(found[0]["id"])


def print_output(connection: Connection, run: int, stream: str, offset: int, raw: bool) -> tuple[int, bool]:
    """All there is from `offset` on; where it ends, and whether the run has ended too."""
    while True:
        answer = connection.ask("output", run=run, stream=stream, offset=offset, limit=PAGE)
        _show(answer, raw)
        moved, offset = answer["next_offset"] > offset, answer["next_offset"]
        if answer["over"] or not moved:
            return offset, answer["over"]


def _show(answer: dict[str, Any], raw: bool) -> None:
    if answer["text"]:
        write(answer["text"] if raw else clean(answer["text"]))


def tell_end(run: dict[str, Any]) -> None:
    """Why it ended as it did, where that is worth a word; beside what it printed, not in it."""
    if run.get("reason"):
        say(f"run {run['id']} {run['outcome'] or run['state']}: {one_line(run['reason'], 400)}", to_stderr=True)


def follow_output(place: Place, run: int, stream: str, offset: int, raw: bool) -> bool:
    """Whether it was followed to its end."""
    from wakeful.cli.waiting import Patient, rests

    patient = Patient(place)
    try:
        for _ in rests():
            answer = patient.ask("output", run=run, stream=stream, offset=offset, limit=PAGE)
            _show(answer, raw)
            offset = answer["next_offset"]
            if answer["over"]:
                return True
    except KeyboardInterrupt:
        pass
    return False
