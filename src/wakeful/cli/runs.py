"""`wakeful runs` and `wakeful kill`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import click

from wakeful.cli.complaints import REFUSED, interruptible
from wakeful.cli.connection import ask, connect, connect_live
from wakeful.cli.output import one_line, say, say_json, say_older
from wakeful.cli.place import Place, as_json, placed
from wakeful.cli.words import CAUSES, OUTCOMES, clock, counted, lasting, read_time, told_of

Row = dict[str, Any]


@click.command()
@click.argument("agent", required=False)
@click.option("--open", "is_open", is_flag=True, help="Only runs that are under way.")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="Only runs that ended like this.")
@click.option("--cause", type=click.Choice(CAUSES), help="Only runs of this cause.")
@click.option("--before", type=int, metavar="RUN", help="Only runs before this one: the next page.")
@click.option("-n", "--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many.")
@as_json
@placed
def runs(place: Place, is_open: bool, as_json: bool, **given: Any) -> None:
    """The runs of the fleet or of AGENT, newest first."""
    given["open"] = True if is_open else None
    answer = ask(place, "runs", **given)
    if as_json:
        say_json(answer)
        return
    if not answer["items"]:
        say("no runs")
        say_older("runs", answer, given)
        return
    from wakeful.cli.tables import draw, shaded, table

    now = datetime.now(UTC)
    heads = ("run", "agent", "cause", "subject", "outcome", "started", "took", "summary")
    rows = [
        (
            str(run["id"]),
            run["agent"],
            run["cause"],
            run["subject"],
            shaded(run["outcome"] or run["state"]),
            clock(run["started_at"], now),
            _took(run, now),
            one_line(told_of(run), 400),
        )
        for run in answer["items"]
    ]
    draw(table(heads, rows, right=("run", "took")))
    say_older("runs", answer, given)


@click.command()
@click.argument("run", type=int)
@click.option("--now", "at_once", is_flag=True, help="KILL at once, without the grace after TERM.")
@click.option("--wait", is_flag=True, help="Wait until it has ended.")
@as_json
@placed
def kill(place: Place, run: int, at_once: bool, wait: bool, as_json: bool) -> None:
    """End RUN and everything it has started. It counts as no attempt."""
    reach = connect_live(place, "there would be nothing to wait for") if wait else connect(place)
    with reach as connection:
        answer = connection.ask("kill", run=run, at_once=at_once)
    if wait:
        from wakeful.cli.waiting import wait_for_run

        with interruptible(f"run {run} is being ended", "see wakeful status"):
            answer = wait_for_run(place, run)
    if as_json:
        say_json(answer)
    else:
        say(killed_words(answer))
    sys.exit(0 if answer.get("asked") or answer["state"] in ("ended", "void") else REFUSED)


def killed_words(run: Row) -> str:
    who = f"run {run['id']} of {one_line(run['agent'])}"
    if run["state"] in ("ended", "void"):
        return f"{who} is over: {run['outcome'] or run['state']}"
    if run.get("engine"):
        return f"{who} is being ended" + (f" on {one_line(run['node'])}" if run.get("shared") and run["node"] else "")
    if not run.get("shared"):
        return f"{who} will be ended by the next engine; none is at work now"
    then = "ended with its lease" if run.get("nodes") else "ended when a node starts"
    return f"{who} is held by {one_line(run['node'])}, which is not up: it will be {then}"


def _took(run: Row, now: datetime) -> str:
    if not run["started_at"]:
        return "-"
    end = read_time(run["ended_at"]) if run["ended_at"] else now
    return lasting(end - read_time(run["started_at"]))


def listed(rows: list[Row], now: datetime) -> str:
    """`2 runs: 12 of wren (2m 13s), 14 of moss (5s)`."""
    each = [f"{run['id']} of {one_line(run['agent'])} ({_took(run, now)})" for run in rows]
    return f"{counted(len(rows), 'run')}: {', '.join(each)}"
