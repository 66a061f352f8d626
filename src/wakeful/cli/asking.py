"""`wakeful tick`, `wake`, `at` and `run`: asking for a run, and what the door says to it.

Law: a refusal is told with its guard, its numbers and the next eligible time, and exits 1; so does, with `--wait`,
a run that failed or was killed.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli.complaints import BAD, REFUSED, Complaint, interruptible
from wakeful.cli.connection import ask, connect_live
from wakeful.cli.output import one_line, say, say_json
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.words import clock, lasting, numbers, read_time, told_of, until

Row = dict[str, Any]

with_key = click.option("--key", metavar="TEXT", help="Your own name for this request: asked twice, it happens once.")
with_wait = click.option("--wait", is_flag=True, help="Wait until the run has ended.")
with_reason = click.option("--reason", metavar="TEXT", help="What the agent is told as the reason.")


@click.command()
@click.argument("agent")
@with_reason
@with_key
@with_wait
@as_json
@placed
def tick(place: Place, agent: str, wait: bool, as_json: bool, **given: Any) -> None:
    """Ask for the next beat of AGENT now. The cadence stays as it is."""
    _asked(place, wait, as_json, "tick", agent=agent, **given)


@click.command()
@click.argument("agent")
@click.argument("body", required=False, metavar="[MESSAGE]")
@click.option("--reason", metavar="TEXT", help="Why; inside a run blocker, critical_finding or user_request.")
@with_key
@with_wait
@as_json
@placed
def wake(place: Place, agent: str, wait: bool, as_json: bool, body: str | None, **given: Any) -> None:
    """Ask AGENT to look at its inbox now. MESSAGE is left there first, whatever the verdict; - reads it from stdin.

    Inside a run the reason and the message have to be given: what can wait goes with wakeful send.
    """
    _asked(place, wait, as_json, "wake", agent=agent, body=text_of(body), **given)


@click.command()
@click.argument("agent")
@click.argument("when", nargs=-1, required=True)
@with_reason
@with_key
@as_json
@placed
def at(place: Place, agent: str, when: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Ask for a beat of AGENT at an instant: 14:30, "in 20m", or a time such as 2026-03-02T14:30:00Z."""
    answer = ask(place, "at", agent=agent, when=" ".join(when), **given)
    if as_json:
        say_json(answer)
        return
    now = datetime.now(UTC)
    say(f"{one_line(agent)}: a beat {clock(answer['next_eligible'], now)} ({until(answer['next_eligible'], now)})")


@click.command()
@click.argument("agent")
@click.argument("prompt")
@click.option("--title", metavar="TEXT", help="What the task is called.")
@click.option("--timeout", metavar="DURATION", help="How long it may take, such as 5m.")
@with_key
@with_wait
@as_json
@placed
def run(place: Place, agent: str, prompt: str, wait: bool, as_json: bool, **given: Any) -> None:
    """Give AGENT one task, once, without retries. A PROMPT of - is read from stdin."""
    _asked(place, wait, as_json, "run", agent=agent, prompt=text_of(prompt), **given)


def text_of(given: str | None) -> str | None:
    return sys.stdin.read() if given == "-" else given


def _asked(place: Place, wait: bool, as_json: bool, operation: str, **parameters: Any) -> None:
    agent = parameters["agent"]
    ended = _ended(place, operation, parameters, quiet=as_json) if wait else ask(place, operation, **parameters)
    if as_json:
        say_json(ended)
    else:
        say(run_words(ended) if "outcome" in ended else reply_words(agent, ended))
    well = ended["outcome"] in ("done", "no_work") if "outcome" in ended else ended["verdict"] != "refuse"
    sys.exit(0 if well else REFUSED)


def _ended(place: Place, operation: str, parameters: Row, *, quiet: bool) -> Row:
    """The run that came of it, or the refusal."""
    if place.inside_run:
        raise Complaint("a run may not wait for another", "leave --wait out", BAD)
    with connect_live(place, "there would be nothing to wait for") as connection:
        reply = connection.ask(operation, **parameters)
    if reply["verdict"] == "refuse":
        return reply
    ended = _wait(place, parameters["agent"], reply, quiet=quiet)
    return _as_its_task(place, ended, reply.get("task_id"))


def _as_its_task(place: Place, ended: Row, task: int | None) -> Row:
    """A handler's run ends well when it has seen to its tasks, however they ended: what was asked for is the task."""
    if task is None or ended.get("outcome") not in ("done", "no_work"):
        return ended
    found = ask(place, "task", task=task)
    if found["state"] == "completed":
        return ended
    error = next((tried["error"] for tried in reversed(found["attempts"]) if tried.get("error")), None)
    return {**ended, "outcome": "failed", "reason": error or found["state"], "summary": error or found["state"]}


def _wait(place: Place, agent: str, reply: Row, *, quiet: bool) -> Row:
    from wakeful.cli.waiting import wait_for_wake

    def deferred(decision: Row) -> None:
        if not quiet:
            say(reply_words(agent, decision), to_stderr=True)

    with interruptible("what was asked for goes on", "see wakeful status; wakeful kill ends a run"):
        return wait_for_wake(place, reply["wake_id"], deferred)


def reply_words(agent: str, reply: Row, now: datetime | None = None) -> str:
    """The door's answer in a sentence."""
    now = now or datetime.now(UTC)
    who = one_line(reply.get("agent") or agent)
    if reply["verdict"] == "admit":
        return f"{who}: run {reply['run_id']} begins"
    guard, reason = reply.get("guard"), one_line(reply.get("reason") or "")
    start = f"{who} is refused" if reply["verdict"] == "refuse" else f"{who} waits"
    if guard:
        start += f" by {guard}" if reply["verdict"] == "refuse" else f" for {guard}"
    told = [f"{start}: {reason}" if reason else start]
    if reply.get("numbers"):
        told.append(one_line(numbers(reply["numbers"])))
    if reply.get("next_eligible"):
        told.append(f"next eligible {clock(reply['next_eligible'], now)} ({until(reply['next_eligible'], now)})")
    if reply.get("advice"):
        told.append(one_line(reply["advice"], 400))
    return "; ".join(told)


def run_words(run: Row) -> str:
    """An ended run in a sentence."""
    took = ""
    if run.get("started_at") and run.get("ended_at"):
        took = f" after {lasting(read_time(run['ended_at']) - read_time(run['started_at']))}"
    told = one_line(told_of(run), 400)
    return f"{run['agent']}: run {run['id']} {run['outcome'] or run['state']}{took}" + (f": {told}" if told else "")
