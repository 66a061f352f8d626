"""Which fleet a command is about: the options that all of them share.

Laws:
- The data folder is `--data`, then WAKEFUL_DATA, then `.wakeful` beside the fleet file; the fleet file is `--fleet`, or
  the one in the working folder.
- Inside a run the fleet is the run's own, whatever the working folder: naming another there is refused, not ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from wakeful.cli.complaints import BAD, Complaint

FOLDER = ".wakeful"


@dataclass(frozen=True, slots=True)
class Place:
    """`url` and `token` are those of the run we are inside of, if we are."""

    data: str
    fleet: str | None = None
    url: str = ""
    token: str = ""

    @property
    def inside_run(self) -> bool:
        return bool(self.url and self.token)

    def path(self, name: str) -> str:
        return os.path.join(self.data, name)


def place_of(data: str | None, fleet: str | None) -> Place:
    folder = data or os.path.join(os.path.dirname(fleet or ""), FOLDER)
    url, token = os.environ.get("WAKEFUL_URL", ""), os.environ.get("WAKEFUL_TOKEN", "")
    return Place(folder, fleet, url, token) if url and token else Place(folder, fleet)


def placed(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives the command `--data` and `--fleet`, and itself `place`."""

    @click.option("--data", envvar="WAKEFUL_DATA", metavar="FOLDER", help="The data folder of the fleet.")
    @click.option("--fleet", metavar="FILE", help="The fleet file, unless it is in this folder.")
    @wraps(command)
    def with_place(*arguments: Any, data: str | None, fleet: str | None, **rest: Any) -> Any:
        place = place_of(data, fleet)
        source = click.get_current_context().get_parameter_source
        named = [name for name in ("data", "fleet") if source(name) is ParameterSource.COMMANDLINE]
        if place.inside_run and named:
            raise Complaint(
                f"--{named[0]} is given inside a run, which belongs to its own fleet",
                "leave it out: whatever is asked in here is asked of that fleet",
                BAD,
            )
        return command(*arguments, place=place, **rest)

    return with_place


def refuse_nowhere(place: Place) -> None:
    """A question in a folder without a fleet must not leave a data folder behind."""
    if place.fleet is not None and not os.path.exists(place.fleet):
        raise Complaint(f"there is no fleet file {place.fleet}", "name the file that declares the fleet", BAD)
    if place.fleet is None and not any(os.path.exists(path) for path in (place.data, "fleet.org", "fleet.yml")):
        raise Complaint(
            f"there is no fleet here: no {place.data}, no fleet.org and no fleet.yml",
            "go to the folder of the fleet, name it with --fleet or --data, or begin one: wakeful init",
            BAD,
        )


def outside_run(place: Place, what: str) -> None:
    if place.inside_run:
        raise Complaint(f"{what} is for the operator, and this is inside a run", "ask the operator to do it")


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else.")
