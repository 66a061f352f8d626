"""`wakeful send` and `wakeful inbox`: what is sent, and what becomes of it.

Law: `inbox` with `--read` or `--snooze` changes the messages that it names, and nothing else; without them it looks.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli.asking import reply_words, text_of, with_key
from wakeful.cli.complaints import BAD, Complaint
from wakeful.cli.connection import ask
from wakeful.cli.output import one_line, say, say_json
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.words import clock, counted, until

PAGE = 100
PRIORITIES = ("low", "normal", "high", "urgent", "critical")
# Above every number that a message can have.
NEWEST = 2**62

Row = dict[str, Any]

with_priority = click.option(
    "--priority",
    type=click.Choice(PRIORITIES),
    default="normal",
    show_default=True,
    help="How much it matters; critical is another word for urgent.",
)


@click.command()
@click.argument("agent")
@click.argument("body")
@click.option("--subject", default="", metavar="TEXT", help="What it is about.")
@click.option("--type", "type", default="info", show_default=True, metavar="WORD", help="What kind of message it is.")
@with_priority
@click.option("--meta", multiple=True, metavar="KEY=VALUE", help="Data of your own, or a JSON object; may be repeated.")
@with_key
@click.option("--reply-to", type=click.IntRange(min=1), metavar="MESSAGE", help="The message that this one answers.")
@as_json
@placed
def send(place: Place, agent: str, body: str, meta: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Send AGENT a message; high and urgent ones ask for a run. A BODY of - is read from stdin."""
    answer = ask(place, "send", agent=agent, body=text_of(body), metadata=metadata_of(meta), **given)
    if as_json:
        say_json(answer)
        return
    say(f"message {answer['message']['id']} is in the inbox of {one_line(answer['message']['to'] or agent)}")
    if answer["wake"]:
        say(reply_words(agent, answer["wake"]))
    if answer.get("note"):
        say(one_line(answer["note"]))


def metadata_of(given: Sequence[str]) -> Row | None:
    """`key=value`, whose value is a text, and JSON objects, put together; no key may be said twice."""
    found: Row = {}
    for written in given:
        for key, value in _pairs(written):
            if key in found:
                raise Complaint(f"--meta says {one_line(key)} twice", "say each key once", BAD)
            found[key] = value
    return found or None


def _pairs(written: str) -> list[tuple[str, Any]]:
    if not written.lstrip().startswith("{"):
        key, equals, value = written.partition("=")
        if not equals or not key.strip():
            raise Complaint(f"expected --meta KEY=VALUE, found {one_line(written)!r}", "write --meta ticket=A-7", BAD)
        return [(key.strip(), value)]
    try:
        return list(json.loads(written, object_pairs_hook=_distinct).items())
    except (ValueError, RecursionError) as error:
        raise Complaint(f"--meta is not JSON: {error}", 'write --meta \'{"ticket": "A-7"}\'', BAD) from None


def _distinct(pairs: list[tuple[str, Any]]) -> Row:
    found: Row = {}
    for key, value in pairs:
        if key in found:
            raise Complaint(f"--meta says {one_line(key)} twice", "say each key once", BAD)
        found[key] = value
    return found


@click.command()
@click.argument("agent", required=False)
@click.argument("messages", nargs=-1, type=int)
@click.option("--read", "is_read", is_flag=True, help="Mark MESSAGES read: they need no run any more.")
@click.option("--snooze", "is_snoozed", is_flag=True, help="Snooze MESSAGES, until the time that --until names.")
@click.option("--until", "at_last", metavar="WHEN", help="2h, 14:30 or a time such as 2026-03-02T14:30:00Z.")
@click.option(
    "--state", type=click.Choice(["open", "closed", "all"]), default="open", show_default=True, help="Which messages."
)
@click.option("--snoozed", is_flag=True, help="Only those that are put off until later.")
@click.option("--from", "sender", metavar="NAME", help="Only from this sender.")
@click.option("--type", "type", metavar="WORD", help="Only of this type.")
@click.option("--priority", type=click.Choice(PRIORITIES), help="Only of this priority or above.")
@click.option("--thread", type=int, metavar="MESSAGE", help="Only of the conversation that this message began.")
@click.option("--newest", is_flag=True, help="Newest first.")
@click.option("--after", type=int, default=0, metavar="MESSAGE", help="Only messages after this one: the next page.")
@click.option("--before", type=int, metavar="MESSAGE", help="Only messages before this one, newest first.")
@click.option("-n", "--limit", type=click.IntRange(1, 1_000), default=PAGE, show_default=True, help="How many.")
@as_json
@placed
def inbox(
    place: Place,
    agent: str | None,
    messages: tuple[int, ...],
    is_read: bool,
    is_snoozed: bool,
    at_last: str | None,
    snoozed: bool,
    newest: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """The messages of AGENT, oldest first; inside a run, of the agent that runs."""
    if is_read and is_snoozed:
        raise Complaint("--read closes them and --snooze does not", "say one of them", BAD)
    whose, named = _whose(place, agent, messages, changing=is_read or is_snoozed)
    if is_read or is_snoozed:
        _change(place, whose, named, is_read, at_last, as_json)
        return
    if named or at_last:
        raise Complaint("what about these messages?", "say --read, or --snooze with --until", BAD)
    if snoozed and given["state"] != "open":
        raise Complaint(f"--snoozed and --state {given['state']} exclude each other", "leave one of them out", BAD)
    given["before"] = given["before"] or (NEWEST if newest else None)
    answer = ask(place, "inbox", agent=whose, **given)
    if snoozed:
        answer["items"] = [message for message in answer["items"] if message["snoozed_until"]]
    if as_json:
        say_json(answer)
        return
    _list(answer["items"], whose, "snoozed" if snoozed else given["state"])
    if answer["next"] is not None:
        say(f"more: {_going_on(whose, given, snoozed, answer['next'])}")


def _going_on(whose: str, given: Row, snoozed: bool, last: int) -> str:
    """The same question about what comes next."""
    asked = ["wakeful", "inbox", one_line(whose)]
    asked += ["--state", given["state"]] if given["state"] != "open" else ["--snoozed"] if snoozed else []
    for option, name in (("from", "sender"), ("type", "type"), ("priority", "priority"), ("thread", "thread")):
        asked += [f"--{option}", one_line(given[name])] if given[name] is not None else []
    asked += ["-n", str(given["limit"])] if given["limit"] != PAGE else []
    return shlex.join([*asked, "--before" if given["before"] else "--after", str(last)])


def _list(messages: list[Row], whose: str, which: str) -> None:
    """Of the open ones, those that are put off are out of sight: their numbers stand at the end."""
    now = datetime.now(UTC)
    away = [message for message in messages if message["snoozed_until"]] if which == "open" else []
    seen = [message for message in messages if message not in away]
    if not seen:
        say("no messages" if which == "all" else f"no {which} messages")
    for message in seen:
        say(_message(message, now))
    if away:
        each = ", ".join(f"{message['id']} until {clock(message['snoozed_until'], now)}" for message in away)
        say(f"[snoozed: {each}; see wakeful inbox {one_line(whose)} --snoozed]")


def _whose(place: Place, agent: str | None, messages: tuple[int, ...], *, changing: bool) -> tuple[str, list[int]]:
    """Inside a run the name may be left out: then what stands in its place is the first message."""
    own = os.environ.get("WAKEFUL_AGENT") if place.inside_run else None
    if own and changing and agent is not None and agent.isdecimal():
        return own, [int(agent), *messages]
    if not (agent or own):
        raise Complaint("whose inbox?", "name the agent: wakeful inbox AGENT", BAD)
    return agent or own or "", list(messages)


def _change(place: Place, agent: str, messages: list[int], is_read: bool, at_last: str | None, as_json: bool) -> None:
    if not messages:
        raise Complaint("which messages?", f"name them by their numbers: wakeful inbox {agent} --read 7", BAD)
    if is_read and at_last is not None:
        raise Complaint("what is read does not come back", "leave --until out, or say --snooze", BAD)
    if not is_read and at_last is None:
        raise Complaint("snooze until when?", "say --until 2h, --until 14:30 or a time", BAD)
    if is_read:
        answer = ask(place, "mark_read", agent=agent, messages=messages)
    else:
        answer = ask(place, "snooze", agent=agent, messages=messages, until=at_last)
    if as_json:
        say_json(answer)
        return
    done = len(answer["changed"])
    rest = len(answer["items"]) - done
    now = datetime.now(UTC)
    how = "marked read" if is_read else f"snoozed until {clock(answer['until'], now)} ({until(answer['until'], now)})"
    say(f"{counted(done, 'message')} {how}" + (f"; {rest} closed already" if rest else ""))


def _message(message: Row, now: datetime) -> str:
    about = one_line(message["subject"] or "")
    sender = f"from {one_line(message['from'] or '?')}"
    if not message["from"] and message["source"]:
        sender = f"in the source {one_line(message['source'])}"
    head = f"{message['id']}  {clock(message['created_at'], now)}  {sender}"
    head += f" ({one_line(message['origin'])}, {one_line(message['priority'])}, {one_line(message['type'] or 'info')})"
    lines = [f"    {line}" for line in (message["body"] or "").splitlines()]
    if notes := _notes(message, now):
        lines.append(f"    [{'; '.join(notes)}]")
    return "\n".join([head + (f": {about}" if about else ""), *lines])


def _notes(message: Row, now: datetime) -> list[str]:
    """What else there is to know of it."""
    notes = []
    if message["state"] == "closed":
        notes.append("closed")
    if message["shown_in"] is not None:
        notes.append(f"shown in run {message['shown_in']}")
    if message["reply_to"] is not None:
        notes.append(f"answers {message['reply_to']}")
    if message["thread"] not in (None, message["id"], message["reply_to"]):
        notes.append(f"in the thread of {message['thread']}")
    if message["metadata"]:
        notes.append(f"metadata {one_line(json.dumps(message['metadata'], ensure_ascii=False))}")
    if message["snoozed_until"]:
        notes.append(f"snoozed until {clock(message['snoozed_until'], now)}")
    return notes
