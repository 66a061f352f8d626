"""`wakeful check`: everything that is wrong with a fleet file, in one pass.

Exit 0 when the file may be used (warnings are printed), 2 when it may not.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import click

from wakeful.core.recurrences import Recurrence
from wakeful.fleet.diagnostics import Severity, printable
from wakeful.fleet.load import FLEET_NAMES, Loaded, check_file, find_fleet, load_fleet

BAD_FILE = 2
# As many instants of a recurring task.
SHOWN = 3


@click.command()
@click.argument("file", required=False)
@click.option("--fleet", metavar="FILE", help="The fleet file, instead of the argument.")
@click.option("--run", envvar="WAKEFUL_RUN", metavar="COMMAND", help="The command of agents that have no RUN.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def check(file: str | None, fleet: str | None, run: str | None, as_json: bool) -> None:
    """Check FILE, or fleet.org or fleet.yml in this folder. A lifecycle file is checked as a lifecycle."""
    if file is not None and fleet is not None:
        raise click.UsageError("FILE and --fleet name the file twice; keep one of them.")
    path = fleet or file or _found()
    loaded = load_fleet(path, run=run or None) if fleet else check_file(path, run=run or None)
    if as_json:
        _say(json.dumps(_summary(path, loaded), indent=2))
    else:
        _print(path, loaded)
    sys.exit(BAD_FILE if loaded.broken else 0)


def _found() -> str:
    found = find_fleet()
    if found is None:
        raise click.UsageError(
            f"no {' or '.join(FLEET_NAMES)} in this folder (name the file: wakeful check FILE).",
        )
    unread = [name for name in FLEET_NAMES if name != found.name and found.with_name(name).exists()]
    for name in unread:
        _say(f"{name}: not read, because {found.name} is beside it", to_stderr=True)
    return str(found)


def _print(path: str, loaded: Loaded) -> None:
    for diagnostic in loaded.diagnostics:
        _say(str(diagnostic))
    if loaded.broken:
        errors = sum(diagnostic.severity is Severity.error for diagnostic in loaded.diagnostics)
        _say(f"{printable(path)}: {_counted(errors, 'error')}", to_stderr=True)
        return
    states = _counted(loaded.states, "state")
    if loaded.fleet is None:
        _say(f"ok: {printable(path)}: {states}")
        return
    recurring = loaded.fleet.recurrences
    tasks = f", {_counted(len(recurring), 'recurring task')}" if recurring else ""
    _say(f"ok: {printable(path)}: {_counted(len(loaded.fleet.agents), 'agent')}, {states}{tasks}")
    now = datetime.now(UTC)
    for one in recurring:
        whom = one.agent or f"role {one.role}"
        title = "" if one.title == one.name else f" {printable(one.title)},"
        times = ", ".join(f"{at.astimezone(ZoneInfo(one.timezone)):%Y-%m-%d %H:%M}" for at in _next(one, now))
        _say(f"{one.name}:{title} for {whom}, next {times} {one.timezone}")


def _next(recurrence: Recurrence, now: datetime) -> list[datetime]:
    found = [recurrence.after(now)]
    while len(found) < SHOWN:
        found.append(recurrence.after(found[-1]))
    return found


def _summary(path: str, loaded: Loaded) -> dict[str, object]:
    return {
        "file": printable(path),
        "kind": loaded.kind,
        "ok": not loaded.broken,
        "agents": len(loaded.fleet.agents) if loaded.fleet else 0,
        "states": loaded.states,
        "recurring": [_told(one) for one in loaded.fleet.recurrences] if loaded.fleet else [],
        "diagnostics": [asdict(diagnostic) | {"file": printable(diagnostic.file)} for diagnostic in loaded.diagnostics],
    }


def _told(recurrence: Recurrence) -> dict[str, object]:
    whom = {"agent": recurrence.agent, "role": recurrence.role}
    next_at = [at.isoformat() for at in _next(recurrence, datetime.now(UTC))]
    return {"name": recurrence.name, "title": recurrence.title, **whom, "next_at": next_at}


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _say(text: str, *, to_stderr: bool = False) -> None:
    # A terminal may know fewer characters than the file.
    encoding = (sys.stderr if to_stderr else sys.stdout).encoding or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), err=to_stderr)
