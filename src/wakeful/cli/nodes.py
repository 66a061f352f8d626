"""`wakeful nodes`: the engines that are or were at work on this store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli.connection import ask
from wakeful.cli.output import Span, say, say_json
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.words import ago, clock, counted

SHADES = {"up": "green", "left": "dim", "lost": "yellow"}

Row = dict[str, Any]


@click.command()
@as_json
@placed
def nodes(place: Place, as_json: bool) -> None:
    """Who is at work on this store: since when, when it was last heard of, and how many runs it has."""
    answer = ask(place, "nodes")
    if as_json:
        say_json(answer)
        return
    if not answer["items"]:
        say("no node has been up yet (start one: wakeful up)")
        return
    from wakeful.cli.tables import draw, table

    now = datetime.now(UTC)
    heads = ("node", "", "seen", "runs", "address")
    draw(table(heads, [_row(row, now) for row in answer["items"]]))


def _row(row: Row, now: datetime) -> list[str | Span]:
    return [
        Span(row["name"] + (" (here)" if row["here"] else ""), "bold"),
        Span(_state(row, now), SHADES.get(row["state"], "")),
        ago(row["seen_at"], now),
        counted(row["runs"], "run"),
        row["url"],
    ]


def _state(row: Row, now: datetime) -> str:
    """Whether it is up, and since when it is or is not."""
    if row["state"] == "up":
        return f"up since {clock(row['since'], now)}"
    if row["state"] == "left":
        return f"left {clock(row['left_at'], now)}"
    return f"lost {clock(row['seen_at'], now)}"
