"""`wakeful send` and `wakeful inbox`."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli.asking import reply_words, text_of, with_key
from wakeful.cli.complaints import BAD, Complaint
from wakeful.cli.connection import ask
from wakeful.cli.output import one_line, say, say_json
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.words import clock

PRIORITIES = ("low", "normal", "high", "urgent")

with_priority = click.option(
    "--priority", type=click.Choice(PRIORITIES), default="normal", show_default=True, help="How much it matters."
)


@click.command()
@click.argument("agent")
@click.argument("body")
@click.option("--subject", default="", metavar="TEXT", help="What it is about.")
@click.option("--type", "type", default="info", show_default=True, metavar="WORD", help="What kind of message it is.")
@with_priority
@with_key
@click.option("--reply-to", type=int, metavar="MESSAGE", help="The message that this one answers.")
@as_json
@placed
def send(place: Place, agent: str, body: str, as_json: bool, **given: Any) -> None:
    """Send AGENT a message; high and urgent ones ask for a run. A BODY of - is read from stdin."""
    answer = ask(place, "send", agent=agent, body=text_of(body), **given)
    if as_json:
        say_json(answer)
        return
    say(f"message {answer['message']['id']} is in the inbox of {one_line(answer['message']['to'] or agent)}")
    if answer["wake"]:
        say(reply_words(agent, answer["wake"]))


@click.command()
@click.argument("agent", required=False)
@click.option(
    "--state", type=click.Choice(["open", "closed", "all"]), default="open", show_default=True, help="Which messages."
)
@click.option("--after", type=int, default=0, metavar="MESSAGE", help="Only messages after this one: the next page.")
@click.option("-n", "--limit", type=click.IntRange(1, 1_000), default=100, show_default=True, help="How many.")
@as_json
@placed
def inbox(place: Place, agent: str | None, state: str, after: int, limit: int, as_json: bool) -> None:
    """The messages of AGENT, oldest first; inside a run, of the agent that runs."""
    whose = agent or (os.environ.get("WAKEFUL_AGENT") if place.inside_run else None)
    if not whose:
        raise Complaint("whose inbox?", "name the agent: wakeful inbox AGENT", BAD)
    answer = ask(place, "inbox", agent=whose, state=state, after=after, limit=limit)
    if as_json:
        say_json(answer)
        return
    if not answer["items"]:
        say("no messages" if state == "all" else f"no {state} messages")
    now = datetime.now(UTC)
    for message in answer["items"]:
        say(_message(message, now))


def _message(message: dict[str, Any], now: datetime) -> str:
    about = one_line(message["subject"] or "")
    head = f"{message['id']}  {clock(message['created_at'], now)}  from {one_line(message['from'] or '?')}"
    head += f" ({one_line(message['origin'])}, {one_line(message['priority'])}, {one_line(message['type'] or 'info')})"
    body = "\n".join(f"    {line}" for line in (message["body"] or "").splitlines())
    return head + (f": {about}" if about else "") + (f"\n{body}" if body else "")
