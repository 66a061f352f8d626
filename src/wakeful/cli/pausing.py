"""`wakeful pause` and `wakeful resume`.

Law: once `pause` has returned nothing begins in that scope, and the receipt says what is still alive.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli.complaints import REFUSED
from wakeful.cli.connection import ask
from wakeful.cli.output import one_line, say, say_json
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.runs import listed
from wakeful.cli.words import clock, counted, until, up_words


@click.command()
@click.argument("agent", required=False)
@click.option("--now", "at_once", is_flag=True, help="Also end the runs that are under way.")
@click.option("--for", "duration", metavar="DURATION", help="Until then, such as 2h; else until resumed.")
@click.option("--reason", default="", metavar="TEXT", help="Shown to everybody who asks why.")
@as_json
@placed
def pause(place: Place, agent: str | None, at_once: bool, duration: str | None, reason: str, as_json: bool) -> None:
    """Let nothing begin in the fleet, or only for AGENT. What arrives is kept."""
    operation = "pause" if agent is None else "pause_agent"
    receipt = ask(place, operation, agent=agent, reason=reason, duration=duration, now=at_once)
    if as_json:
        say_json(receipt)
    else:
        say(receipt_words(receipt, at_once, datetime.now(UTC)))
    sys.exit(REFUSED if at_once and receipt["running"] else 0)


@click.command()
@click.argument("agent", required=False)
@as_json
@placed
def resume(place: Place, agent: str | None, as_json: bool) -> None:
    """Lift the pause of the fleet, or of AGENT, and its quarantine."""
    answer = ask(place, "resume" if agent is None else "resume_agent", agent=agent)
    if as_json:
        say_json(answer)
        return
    say(resumed_words(answer))


def resumed_words(answer: dict[str, Any]) -> str:
    """What goes on, and what still holds it; a line each."""
    whom = scope_words(answer["scope"])
    lines = [f"{whom} goes on" if answer["resumed"] else f"{whom} was not paused"]
    for file in answer.get("files") or []:
        whose = f"of node {one_line(file['node'])}, which {_GONE[file['state']]}" if file["node"] else "of before"
        lines.append(f"lifted with it: the PAUSE file {whose}: {one_line(file['reason'])}")
    for held in answer.get("held_by") or []:
        by = f"by {one_line(held['owner'])}: {one_line(held['reason'])}"
        lines.append(f"still held: {scope_words(held['scope'])}, {by}")
    return "\n".join(lines)


_GONE = {"left": "has left", "lost": "was lost"}


def receipt_words(receipt: dict[str, Any], at_once: bool, now: datetime) -> str:
    told = f"{scope_words(receipt['scope'])} is paused"
    if receipt["until"]:
        told += f" until {clock(receipt['until'], now)} ({until(receipt['until'], now)})"
    if receipt["reason"]:
        told += f": {one_line(receipt['reason'])}"
    lines = [told]
    if receipt["ended"]:
        lines.append(f"asked to end: {counted(len(receipt['ended']), 'run')}")
    if receipt["running"]:
        lines.append(f"{'still alive' if at_once else 'under way'}: {listed(receipt['running'], now)}")
        if at_once and not receipt.get("engine", True):
            lines.append("no engine is at work to end them: they are ended when one starts (wakeful up)")
    if receipt.get("shared") and not receipt["here"]:
        lines.append(f"no engine runs here; {up_words(receipt['nodes'])}")
    return "\n".join(lines)


def scope_words(scope: str) -> str:
    """`fleet`, `agent:wren` and `source:x` as a person would say them."""
    kind, _, name = one_line(scope).partition(":")
    return "the fleet" if kind == "fleet" else name if kind == "agent" else f"{kind} {name}"
