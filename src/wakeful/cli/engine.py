"""`wakeful up`, `stop` and `reload`: the engine begun, ended and told to look again."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from wakeful.cli.complaints import BAD, LATER, Complaint, interruptible
from wakeful.cli.connection import connect_here, is_held
from wakeful.cli.output import one_line, say, say_json
from wakeful.cli.place import Place, as_json, outside_run, place_of, placed

# Longer than an engine takes to let go of everything; a drain takes as long as its runs.
PATIENCE = 20.0
_STEP = 0.05


@click.command()
@click.option("--fleet", metavar="FILE", help="The fleet file, unless it is in this folder.")
@click.option("--data", envvar="WAKEFUL_DATA", metavar="FOLDER", help="The data folder of the fleet.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port, instead of the fleet's; 0 is any free one.")
@click.option("--run", envvar="WAKEFUL_RUN", metavar="COMMAND", help="The command of agents that have no RUN.")
@click.option("--name", "names", multiple=True, metavar="NAME", help="A name by which it may be called; repeatable.")
@click.option("--certificate", metavar="FILE", help="For addresses other than the loopback: the TLS chain, in PEM.")
@click.option("--private-key", metavar="FILE", help="The key of that certificate.")
@click.option(
    "--insecure", is_flag=True, help="Serve another address without TLS: the token can be read on its network."
)
def up(fleet: str | None, data: str | None, run: str | None, **reach: Any) -> None:
    """Keep the fleet at work, until stopped. Runs that an engine left behind are taken up again.

    It listens on the loopback. Another --host is served besides, with a certificate or --insecure.
    """
    outside_run(place_of(data, fleet), "an engine")
    from wakeful import app

    sys.exit(
        app.serve(
            app.Options(
                fleet=Path(fleet) if fleet else None,
                data=Path(data) if data else None,
                host=reach["host"],
                port=reach["port"],
                run=run or None,
                names=reach["names"],
                certificate=Path(reach["certificate"]) if reach["certificate"] else None,
                private_key=Path(reach["private_key"]) if reach["private_key"] else None,
                insecure=reach["insecure"],
            )
        )
    )


@click.command()
@click.option("--drain", is_flag=True, help="Let nothing begin any more, and wait for the runs under way.")
@as_json
@placed
def stop(place: Place, drain: bool, as_json: bool) -> None:
    """Stop the engine. Runs under way go on, and the next engine takes them up."""
    outside_run(place, "stopping the engine")
    with connect_here(place, "so there is nothing to stop") as connection:
        holder = _holder(place)
        answer = connection.ask("stop", drain=drain)
    after = "once its runs have ended" if drain else "soon"
    with interruptible(f"the engine leaves {after}", "see wakeful status"):
        _wait_until_gone(place, holder, None if drain else time.monotonic() + PATIENCE)
    say_json(answer) if as_json else say("the engine has stopped")


def _wait_until_gone(place: Place, holder: str, deadline: float | None) -> None:
    # Another engine may take the folder at once: then it is no longer this one that we wait for.
    while is_held(place) and _holder(place) == holder:
        if deadline is not None and time.monotonic() >= deadline:
            raise Complaint("the engine was told to stop and has not left yet", "look again: wakeful status", LATER)
        time.sleep(_STEP)


@click.command()
@as_json
@placed
def reload(place: Place, as_json: bool) -> None:
    """Read the fleet file again now, and say what changed. A broken file changes nothing."""
    with connect_here(place, "the fleet file is read when one starts") as connection:
        answer = connection.ask("reload")
    if as_json:
        say_json(answer)
    else:
        _tell(answer)
    sys.exit(BAD if any(": warning: " not in said for said in answer["diagnostics"]) else 0)


def _tell(answer: dict[str, Any]) -> None:
    for said in answer["diagnostics"]:
        say(one_line(said, 1_000))
    changed = [one_line(name) for name in answer["changed"]]
    say(f"changed: {', '.join(changed)}" if changed else "nothing changed since it was last read")


def _holder(place: Place) -> str:
    try:
        with open(place.path("lock"), encoding="ascii", errors="replace") as file:
            return file.read(64)
    except OSError:
        return ""
