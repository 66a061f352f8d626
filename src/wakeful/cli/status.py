"""`wakeful status`: what every agent is doing, in plain words, one line each.

Law: it answers in milliseconds, also while runs are under way; the terminal library is loaded only to redraw.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli.complaints import BAD, Complaint
from wakeful.cli.connection import connect
from wakeful.cli.output import Line, Span, one_line, say_json, say_lines
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.standings import banner, header, lines_of, outages, untaken
from wakeful.cli.words import spent_words

PAGE = 1_000
EACH = 1.0

Row = dict[str, Any]


@click.command()
@click.argument("agent", required=False)
@click.option("--watch", is_flag=True, help="Redraw each second, until Ctrl-C.")
@as_json
@placed
def status(place: Place, agent: str | None, watch: bool, as_json: bool) -> None:
    """What the fleet is doing, or only AGENT."""
    if watch:
        if as_json or not sys.stdout.isatty():
            raise Complaint("--watch draws on a terminal", "leave it out, and ask again when you like", BAD)
        _watch(place, agent)
    elif as_json:
        say_json(_answers(place, agent))
    else:
        say_lines(_lines(_answers(place, agent), datetime.now(UTC)))


def _answers(place: Place, agent: str | None, most: int | None = None) -> Row:
    """The fleet's own status, with its agents; or one agent."""
    with connect(place) as connection:
        if agent is not None:
            return connection.ask("agent", agent=agent)
        answer = connection.ask("status")
        agents: list[Row] = []
        after: str | None = ""
        while after is not None and (most is None or len(agents) < most):
            page = connection.ask("agents", after=after, limit=min(PAGE, most or PAGE))
            agents += page["items"]
            after = page["next"]
        return {**answer, "agents": agents}


def _lines(answer: Row, now: datetime) -> list[Line]:
    if "agents" not in answer:
        above = [
            *banner(answer["pauses"], now),
            *outages(answer.get("sources") or [], answer.get("shared", False), now),
        ]
        spent = spent_words(answer.get("spent"))
        return [*above, *lines_of([answer], now), *([[Span(spent)]] if spent else [])]
    lines = [*header(answer, now), *banner(answer["pauses"], now)]
    lines += outages(answer.get("outages") or [], answer.get("shared", False), now)
    lines += untaken(answer.get("untaken") or [])
    lines += [[Span(one_line(said, 400), "yellow")] for said in answer.get("diagnostics") or []]
    if not answer["agents"]:
        lines.append([Span("no agents yet: they are taken up from the fleet file by wakeful up")])
    return [*lines, *lines_of(answer["agents"], now)]


def _watch(place: Place, agent: str | None) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from wakeful.cli.output import clean

    console = Console(highlight=False, markup=False, emoji=False)

    def picture() -> Text:
        try:
            lines = _lines(_answers(place, agent, most=console.height), datetime.now(UTC))
        except Complaint as complaint:
            lines = [[Span(complaint.message, "bold red")]]
        drawn = [Text.assemble(*((clean(span.text), span.style) for span in line)) for line in lines]
        return Text("\n").join(drawn)

    with Live(console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.update(picture(), refresh=True)
                time.sleep(EACH)
        except KeyboardInterrupt:
            return
