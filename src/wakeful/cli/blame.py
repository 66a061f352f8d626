"""`wakeful blame`: the chain that led to a run, drawn as a tree with what each part of it has cost.

Law: the run that was asked about, what is nearest above it and its root are always told; of anything else as much as
fits a screen or two, and what is left out is counted.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli.connection import ask
from wakeful.cli.output import Line, Span, knows, one_line, say_json, say_lines
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.words import clock, counted

# How many of one run's wakes are drawn, how many in all, and how deep.
MOST_OF_ONE = 12
MOST_LINES = 120
DEEPEST = 30

SHADES = {"done": "green", "no_work": "cyan", "failed": "red", "killed": "magenta"}

Row = dict[str, Any]


@click.command()
@click.argument("run", type=int)
@as_json
@placed
def blame(place: Place, run: int, as_json: bool) -> None:
    """Who or what led to RUN, what it woke itself, and what all of that has cost."""
    answer = ask(place, "blame", run=run)
    if as_json:
        say_json(answer)
    else:
        say_lines(lines_of(answer, datetime.now(UTC)))


def lines_of(answer: Row, now: datetime) -> list[Line]:
    lineage = answer["lineage"]
    least = "at least " if lineage["cut"] else ""
    far = "the root itself" if answer["depth"] == 0 else f"{counted(answer['depth'], 'wake')} away from its root"
    head = f"run {answer['run']} of {one_line(answer['agent'])}: {far}; with all that came of that root "
    head += f"{least}{cost(lineage['usage'])} in {least}{counted(lineage['runs'], 'run')}"
    head += f", {counted(lineage['refused'], 'wake')} refused" if lineage["refused"] else ""
    return [[Span(head, "bold")], [Span(_root(answer, now))], *Tree(answer).lines()]


def cost(usage: Row) -> str:
    """`$0.42 and 81,250 tokens`."""
    return f"${usage['usd']:.2f} and {usage['tokens']:,} tokens"


def _root(answer: Row, now: datetime) -> str:
    if not answer["whole"]:
        return "what began it is no longer kept"
    root, item = answer["root"], answer["root"]["item"] or {}
    agent, sender = one_line(root["agent"] or "?"), one_line(root["from"] or "?")
    words = {
        "operator": f"{sender} asked for {agent}",
        "timer": f"the timer of {agent}",
        "task": f"task {item.get('id')} of {sender} for {agent}: {one_line(item.get('subject') or '')}",
        "message": f"message {item.get('id')} of {sender} to {agent}: {one_line(item.get('subject') or '')}",
        "file": f"the file {one_line(item.get('external_id') or '?')} in the inbox of {agent}",
        "source": f"{one_line(item.get('external_id') or '?')} of {one_line(item.get('source') or '?')} for {agent}",
    }
    told = words.get(root["what"], f"{one_line(root['what'])} of {sender} for {agent}").rstrip(": ")
    reason = f": {one_line(root['reason'])}" if root["reason"] else ""
    return f"it began {clock(root['at'], now)} with {told}{reason}"


class Tree:
    """The lineage from the top of the chain, or from as far up as can be drawn."""

    def __init__(self, answer: Row) -> None:
        self.run = answer["run"]
        self.chain = {row["wake_id"]: row for row in answer["chain"]}
        self.top = answer["chain"][-DEEPEST:][0]
        self.hidden = self.top["depth"]
        self.below: dict[int | None, list[Row]] = {}
        for row in answer["items"]:
            self.below.setdefault(row["parent"], []).append(self.chain.get(row["wake_id"], row))
        fine = knows("├└│─◄…")
        self.tee, self.last, self.bar = ("├─ ", "└─ ", "│  ") if fine else ("|- ", "`- ", "|  ")
        self.mark, self.dots = (" ◄", "…") if fine else (" <--", "...")
        self.drawn: list[Line] = []

    def lines(self) -> list[Line]:
        if self.hidden:
            self.drawn.append([Span(f"{self.dots} {counted(self.hidden, 'wake')} above")])
        self._draw(self.top, "", "", 1)
        return self.drawn

    def _draw(self, row: Row, lead: str, under: str, depth: int) -> None:
        self.drawn.append([Span(lead, "dim"), *self._words(row)])
        rows = self.below.get(row["wake_id"], [])
        shown = self._chosen(rows) if depth < 2 * DEEPEST else []
        for number, child in enumerate(shown, 1):
            is_last = number == len(rows)
            joint, below = (self.last, "   ") if is_last else (self.tee, self.bar)
            self._draw(child, under + joint, under + below, depth + 1)
        if len(shown) < len(rows):
            more = f"{self.dots} {counted(len(rows) - len(shown), 'more wake')}"
            self.drawn.append([Span(under + self.last + more, "dim")])

    def _chosen(self, rows: list[Row]) -> list[Row]:
        """Those of the chain, and as many others as there is room for, in their order."""
        room = MOST_OF_ONE if len(self.drawn) < MOST_LINES else 0
        others = [row["wake_id"] for row in rows if row["wake_id"] not in self.chain][:room]
        return [row for row in rows if row["wake_id"] in self.chain or row["wake_id"] in others]

    def _words(self, row: Row) -> Line:
        name = Span(one_line(row["agent"] or "?"), "bold")
        why = one_line(row["cause"]) + (f", {one_line(row['reason'])}" if row["reason"] else "")
        if row["run_id"] is None:
            return [name, Span(f"  {_ending(row)} ({why})", "yellow")]
        told = _ending(row)
        mine = row["run_id"] == self.run
        line = [name, Span(f"  run {row['run_id']} ({why})  "), Span(told, SHADES.get(told, ""))]
        because = f": {one_line(row['run_reason'], 80)}" if row.get("run_reason") else ""
        return [*line, Span(f"  {cost(row['usage'])}{because}"), Span(self.mark if mine else "", "bold")]


def _ending(row: Row) -> str:
    """How it stands with a wake: its run's outcome, or why there is none."""
    if row["run_id"] is not None:
        return one_line(row["outcome"] or row["state"])
    if row["joined"] is not None:
        return f"joined wake {row['joined']}"
    held = {"refuse": "refused by", "defer": "waits for"}.get(row["verdict"], "")
    return f"{held} {one_line(row['guard'])}" if row["guard"] else "not decided yet"
