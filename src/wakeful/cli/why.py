"""`wakeful why`: every guard's opinion on a wake of an agent, now or at a past instant."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
from click.core import ParameterSource

from wakeful.cli.connection import ask
from wakeful.cli.output import Span, knows, one_line, say, say_json, say_lines
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.words import clock, numbers, until

CAUSES = ("timer", "operator", "task", "peer", "news")

Row = dict[str, Any]


@click.command()
@click.argument("agent")
@click.option("--at", metavar="TIME", help="At a past instant, such as 2026-03-02T14:30:00Z.")
@click.option(
    "--cause", type=click.Choice(CAUSES), default="timer", show_default=True, help="For a wake of this cause."
)
@click.option("--from", "sender", metavar="AGENT", help="For a wake by this agent; the cause is then peer.")
@as_json
@placed
def why(place: Place, agent: str, at: str | None, cause: str, sender: str | None, as_json: bool) -> None:
    """Why AGENT would run or not, guard by guard, with the numbers and the next eligible time."""
    chosen = click.get_current_context().get_parameter_source("cause") is not ParameterSource.DEFAULT
    cause = "peer" if sender and not chosen else cause
    answer = ask(place, "why", agent=agent, cause=cause, at=at, sender=sender)
    if as_json:
        say_json(answer)
        return
    from wakeful.cli.tables import draw, table

    now = datetime.now(UTC)
    say_lines([[Span(sentence(answer, cause, at, now), "bold")]])
    draw(table(("", "guard", "says", "next eligible", "numbers", "reason"), guard_rows(answer, now)))
    for assumption in answer.get("assumptions") or []:
        say(f"assumed: {one_line(assumption)}")
    last = answer.get("last_decision")
    if last:
        say(f"last decision, {clock(last['at'], now)}: {_decision(last)}")


def sentence(answer: Row, cause: str, at: str | None, now: datetime) -> str:
    """The whole answer on one line."""
    agent, verdict = one_line(answer["agent"]), answer["verdict"]
    would = "would have been" if at else "would be"
    when = f"at {clock(answer['at'], now)}" if at else "now"
    words = {"admit": "admitted", "defer": "deferred", "refuse": "refused"}
    told = f"{agent}: a wake by {cause} {when} {would} {words.get(verdict, one_line(verdict))}"
    if answer["guard"]:
        told += f" by {answer['guard']}: {one_line(answer['reason'])}"
    elif verdict != "admit":
        # Nothing asks yet, and so nobody objects.
        told = f"{agent}: {f'{when} ' if at else ''}{one_line(answer['reason'])}"
    if answer["next_eligible"]:
        told += f"; next eligible {clock(answer['next_eligible'], now)}"
        told += "" if at else f" ({until(answer['next_eligible'], now)})"
    return told


def guard_rows(answer: Row, now: datetime) -> list[list[Span]]:
    fine, wrong = ("✓", "✗") if knows("✓✗") else ("+", "x")
    rows: list[list[Span]] = []
    for opinion in answer["opinions"]:
        verdict = opinion["verdict"]
        style = "bold red" if opinion["guard"] == answer["guard"] else "yellow" if verdict else ""
        mark = Span(wrong, style) if verdict else Span(fine, "green")
        cells = [
            opinion["guard"],
            verdict or "",
            clock(opinion["until"], now) if opinion.get("until") else "",
            numbers(opinion.get("numbers") or {}),
            opinion.get("reason") or "",
        ]
        rows.append([mark, *(Span(cell, style) for cell in cells)])
    return rows


def _decision(row: Row) -> str:
    told = one_line(row["verdict"])
    if row["guard"]:
        told += f" by {row['guard']}: {one_line(row['reason'] or '')}"
    return told + (f" (run {row['run_id']})" if row.get("run_id") else "")
