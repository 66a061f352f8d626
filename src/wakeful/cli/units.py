"""A service of systemd, as the text of its unit.

Laws:
- What is written means the same to systemd as it did in the shell that it came from, whatever signs are in a path.
- The engine alone is ended with the service: runs belong to their guardians, and outlive a restart. Control groups are
  for us to make (Delegate), so that the end of a run is certain.
- It is begun again whatever it ended with: what was wrong may have been mended meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wakeful.core.errors import Mistake

FIRST_LINE = "# Written by `wakeful service install` for "


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    title: str
    # The fleet file, whose service it is.
    fleet: str
    folder: str
    command: tuple[str, ...]
    reload: tuple[str, ...]
    # Where agents look for their programs.
    path: str
    # Of a service of the whole system: as whom it runs.
    user: str | None
    variables: str


def unit_text(unit: Unit) -> str:
    for written in (unit.title, unit.fleet, unit.folder, unit.path, unit.variables, *unit.command):
        if not written.isprintable():
            raise Mistake(f"{written!r} has a sign in it that no unit of systemd can hold", "rename it")
    return "\n".join((f"{FIRST_LINE}{unit.fleet}", *_lines(unit), ""))


def _lines(unit: Unit) -> Iterator[str]:
    system = unit.user is not None
    yield "[Unit]"
    yield f"Description=wakeful: {_percent(unit.title)}"
    if system:
        yield "Wants=network-online.target"
        yield "After=network-online.target"
    yield "StartLimitIntervalSec=0"
    yield ""
    yield "[Service]"
    yield "Type=exec"
    if system:
        yield f"User={unit.user}"
    yield f"WorkingDirectory={_percent(unit.folder)}"
    yield f"Environment={_quoted('PATH=' + unit.path)}"
    yield f"EnvironmentFile=-{_percent(unit.variables)}"
    yield f"ExecStart={_line(unit.command)}"
    yield f"ExecReload={_line(unit.reload)}"
    yield "Restart=always"
    yield "RestartSec=5"
    yield "KillMode=process"
    yield "TimeoutStopSec=60"
    yield "Delegate=yes"
    yield ""
    yield "[Install]"
    yield f"WantedBy={'multi-user' if system else 'default'}.target"


def fleet_of(text: str) -> str | None:
    """Whose service that unit is; None where it is not one of ours."""
    first = text.partition("\n")[0]
    return first.removeprefix(FIRST_LINE) if first.startswith(FIRST_LINE) else None


def _line(command: tuple[str, ...]) -> str:
    return " ".join(_quoted(word).replace("$", "$$") for word in command)


def _quoted(word: str) -> str:
    return '"' + _percent(word).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _percent(text: str) -> str:
    return text.replace("%", "%%")
