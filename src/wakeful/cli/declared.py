"""The fleet as its file declares it, for commands that need the file and no store."""

from __future__ import annotations

import shlex
from pathlib import Path

from wakeful.cli.complaints import BAD, Complaint
from wakeful.cli.place import Place
from wakeful.fleet.load import FLEET_NAMES, find_fleet
from wakeful.fleet.watch import FleetFile


def fleet_path(place: Place) -> Path:
    """Inside a run the working folder says nothing of the fleet."""
    found = Path(place.fleet) if place.fleet else None if place.inside_run else find_fleet()
    if found is None or not found.exists():
        named = place.fleet or " or ".join(FLEET_NAMES)
        raise Complaint(f"there is no fleet file: no {named}", "name it with --fleet", BAD)
    return found.absolute()


def fleet_file(place: Place, run: str | None = None) -> FleetFile:
    """One that can be used: its `fleet` is there. `run` is the command of agents that have none."""
    path = fleet_path(place)
    file = FleetFile(path, run=run or None)
    if file.fleet is None:
        raise Complaint(f"{path} cannot be used", f"see: wakeful check {shlex.quote(str(path))}", BAD)
    return file
