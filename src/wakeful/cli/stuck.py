"""`wakeful stuck`: what was put before runs that ended, and is still there."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli.complaints import REFUSED
from wakeful.cli.connection import ask
from wakeful.cli.output import one_line, say, say_json
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.words import clock, counted, lasting, read_time

Row = dict[str, Any]


@click.command()
@click.argument("agent", required=False)
@click.option("--check", is_flag=True, help="Exit 1 when something is stuck.")
@click.option("-n", "--limit", type=click.IntRange(1, 1_000), default=100, show_default=True, help="How many.")
@as_json
@placed
def stuck(place: Place, agent: str | None, check: bool, limit: int, as_json: bool) -> None:
    """What woke an agent, or AGENT, and was never dealt with; the longest first, with what to do about it."""
    answer = ask(place, "stuck", agent=agent, limit=limit)
    if as_json:
        say_json(answer)
    elif not answer["items"]:
        say("nothing is stuck")
    else:
        now = datetime.now(UTC)
        for row in answer["items"]:
            say(_words(row, now))
        if answer["more"]:
            say(f"these are the first {len(answer['items'])}; there are more (-n shows more at a time)")
    sys.exit(REFUSED if check and answer["items"] else 0)


def _words(row: Row, now: datetime) -> str:
    since = f"since {clock(row['since'], now)}, for {lasting(now - read_time(row['since']))}"
    seen = f"seen by {counted(row['runs'], 'run')}, last by {row['last_run']}"
    return f"{one_line(row['to'])}: {_what(row)}: {since}; {seen}\n    {one_line(row['advice'], 1_000)}"


def _what(row: Row) -> str:
    if row["source"] is None:
        about = one_line(row["subject"] or row["body"] or "", 60)
        told = f"message {row['id']} from {one_line(row['from'] or '?')}"
        return f"{told} ({about})" if about else told
    return f"item {row['id']}, {one_line(row['external_id'] or row['subject'] or '?')} of {one_line(row['source'])}"
