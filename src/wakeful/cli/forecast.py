"""`wakeful forecast`: the next beats of an agent, as the rules would have them."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from wakeful.cli.connection import ask
from wakeful.cli.output import say, say_json
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.words import clock, until


@click.command()
@click.argument("agent")
@click.option("-n", type=click.IntRange(1, 1_000), default=10, show_default=True, help="How many beats.")
@click.option(
    "--outcome",
    type=click.Choice(["done", "no_work", "failed", "killed"]),
    default="done",
    show_default=True,
    help="How each run is taken to end.",
)
@click.option("--run-length", default="0s", show_default=True, metavar="DURATION", help="How long each is to take.")
@as_json
@placed
def forecast(place: Place, agent: str, n: int, outcome: str, run_length: str, as_json: bool) -> None:
    """The next beats of AGENT, each with what it assumes."""
    answer = ask(place, "forecast", agent=agent, n=n, outcome=outcome, run_length=run_length)
    if as_json:
        say_json(answer)
        return
    if not answer["items"]:
        say(f"{agent} has no beat ahead of it")
        return
    from wakeful.cli.tables import draw, table

    now = datetime.now(UTC)
    rows = [
        (
            clock(beat["at"], now),
            until(beat["at"], now),
            beat["state"],
            str(beat["hits"]),
            beat["kind"],
            beat["assumption"],
        )
        for beat in answer["items"]
    ]
    draw(table(("at", "", "state", "hits", "kind", "if"), rows, right=("hits",)))
