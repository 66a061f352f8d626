"""`wakeful decisions` and `wakeful events`: what was decided, and everything that happened."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli.connection import ask
from wakeful.cli.output import one_line, say, say_json, say_older
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.words import CAUSES, clock, numbers


@click.command()
@click.argument("agent", required=False)
@click.option("--verdict", type=click.Choice(["admit", "defer", "refuse"]), help="Only these.")
@click.option("--guard", metavar="GUARD", help="Only what this guard objected to.")
@click.option("--cause", type=click.Choice(CAUSES), help="Only wakes of this cause.")
@click.option("--text", metavar="TEXT", help="Only with this in the reason, the sender or the agent.")
@click.option("--since", metavar="WHEN", help="Only from then on: 2026-12-24T18:00Z, or 14:30 in UTC.")
@click.option("--until", metavar="WHEN", help="Only until then.")
@click.option("--before", type=int, metavar="EVENT", help="Only verdicts before this event: the next page.")
@click.option("-n", "--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many.")
@as_json
@placed
def decisions(place: Place, as_json: bool, **given: Any) -> None:
    """The verdicts on the wakes of the fleet or of AGENT, newest first."""
    answer = ask(place, "decisions", **given)
    if as_json:
        say_json(answer)
        return
    if not answer["items"]:
        say("no decisions")
        say_older("decisions", answer, given)
        return
    from wakeful.cli.tables import draw, shaded, table

    now = datetime.now(UTC)
    heads = ("wake", "at", "agent", "cause", "from", "verdict", "guard", "run", "reason")
    rows = [
        (
            str(row["wake_id"]),
            clock(row["at"], now),
            row["agent"] or "",
            row["cause"],
            row["from"] or "",
            shaded(row["verdict"] or "undecided"),
            row["guard"] or "",
            str(row["run_id"] or ""),
            "; ".join(part for part in (row["reason"] or "", numbers(row["numbers"] or {})) if part),
        )
        for row in answer["items"]
    ]
    draw(table(heads, rows, right=("wake", "run")))
    say_older("decisions", answer, given)


@click.command()
@click.argument("agent", required=False)
@click.option("--after", type=int, default=0, metavar="EVENT", help="Only events after this one.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only events of this kind; may be repeated.")
@click.option("-n", "--limit", type=click.IntRange(1, 1_000), default=100, show_default=True, help="How many.")
@as_json
@placed
def events(place: Place, agent: str | None, after: int, kinds: tuple[str, ...], limit: int, as_json: bool) -> None:
    """The events of the fleet or of AGENT, oldest first."""
    answer = ask(place, "events", after=after, agent=agent, kinds=list(kinds) or None, limit=limit)
    if as_json:
        say_json(answer)
        return
    now = datetime.now(UTC)
    for event in answer["items"]:
        say(_event(event, now))


def _event(event: dict[str, Any], now: datetime) -> str:
    told = [str(event["id"]), clock(event["at"], now), one_line(event["kind"])]
    for key, value in event.items():
        if key not in ("id", "at", "kind", "fields") and value not in (None, ""):
            told.append(f"{key}={one_line(value)}")
    for key, value in (event.get("fields") or {}).items():
        if value not in (None, "", [], {}):
            plain = value if isinstance(value, str) else json.dumps(value)
            told.append(f"{one_line(key)}={one_line(plain, 120)}")
    return "  ".join(told)
