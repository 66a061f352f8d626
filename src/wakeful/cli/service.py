"""`wakeful service`: the fleet as a service of systemd, which begins with the machine and is begun again when it ends.

Laws:
- What another fleet, or a person, has put under that name is not touched.
- Whatever could not be done is said with the command that does it.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click

from wakeful.cli.complaints import BAD, Complaint
from wakeful.cli.declared import fleet_file, fleet_path
from wakeful.cli.output import say
from wakeful.cli.place import Place, outside_run, placed
from wakeful.cli.units import Unit, fleet_of, unit_text
from wakeful.core.agents import Fleet
from wakeful.core.hooks import is_hook, read_hook

PATIENCE = 60.0


@click.group()
def service() -> None:
    """The fleet as a service of systemd: it begins with the machine, and is begun again when it ends."""


with_system = click.option("--system", is_flag=True, help="Of the whole machine, as root, instead of this user's.")
with_name = click.option("--name", metavar="NAME", help="What it is called, unless as the folder of the fleet.")


@service.command()
@with_system
@with_name
@click.option("--user", metavar="NAME", help="With --system: as whom it runs, unless as the owner of the fleet file.")
@click.option("--host", metavar="ADDRESS", help="As of wakeful up.")
@click.option("--port", type=click.IntRange(0, 65_535), help="As of wakeful up.")
@click.option("--run", envvar="WAKEFUL_RUN", metavar="COMMAND", help="As of wakeful up.")
@click.option("--print", "only_print", is_flag=True, help="Print the unit, and do nothing.")
@click.option("--no-start", is_flag=True, help="Write the unit, and leave the rest to you.")
@placed
def install(
    place: Place, system: bool, name: str | None, user: str | None, only_print: bool, no_start: bool, **reach: object
) -> None:
    """Write the unit of this fleet, have it begin with the machine, and start it.

    Said again, it is brought up to date.
    """
    outside_run(place, "a service")
    file = fleet_file(place, str(reach["run"]) if reach["run"] else None)
    path, fleet = file.path, file.fleet
    assert fleet is not None
    if user is not None and not system:
        raise Complaint("--user is of a service of the whole machine", "add --system, or leave it out", BAD)
    spot = Spot(path, name, system)
    options = [f"--{option}={value}" for option, value in reach.items() if value is not None]
    where = (f"--data={os.path.abspath(place.data)}",)
    unit = Unit(
        title=fleet.title or path.parent.name,
        fleet=str(path),
        folder=str(path.parent),
        command=(*_program(), "up", f"--fleet={path}", *where, *options),
        reload=(*_program(), "reload", *where),
        path=os.environ.get("PATH", os.defpath),
        user=(user or _owner(path)) if system else None,
        variables=str(spot.variables),
    )
    text = unit_text(unit)
    if only_print:
        say(text.rstrip("\n"))
        return
    spot.write(text, str(path))
    say(f"wrote {spot.file}")
    _tell_variables(fleet, spot)
    if no_start:
        say(f"to start it: {spot.spelled('daemon-reload')} && {spot.spelled('enable', '--now', spot.unit)}")
        return
    for words in (("daemon-reload",), ("enable", spot.unit), ("restart", spot.unit)):
        spot.systemctl(*words)
    say(f"{spot.unit} is at work; its log: {spot.journal()}")
    if not system and not _lingers():
        say("it ends when you log out; to keep it: loginctl enable-linger")


@service.command()
@with_system
@with_name
@placed
def uninstall(place: Place, system: bool, name: str | None) -> None:
    """Stop the service of this fleet, and take its unit away. The fleet, its data and its runs stay."""
    outside_run(place, "a service")
    spot = Spot(fleet_path(place), name, system)
    spot.refuse_others(str(spot.fleet))
    if not spot.file.exists():
        raise Complaint(f"there is no {spot.file}", "nothing was installed under that name")
    spot.systemctl("disable", "--now", spot.unit)
    spot.file.unlink()
    spot.systemctl("daemon-reload")
    say(f"removed {spot.file}")


class Spot:
    """Where the service of a fleet has its place, and how systemd is spoken to there."""

    def __init__(self, fleet: Path, name: str | None, system: bool) -> None:
        if not sys.platform.startswith("linux"):
            raise Complaint(
                "services are systemd's, which this system has not", "keep `wakeful up` running in another way"
            )
        if system and os.geteuid() != 0:
            raise Complaint("a service of the whole machine is for root", "say it with sudo, or leave out --system")
        called = re.sub(r"[^a-z0-9]+", "-", (name or fleet.parent.name).lower()).strip("-") or "fleet"
        self.fleet, self.system = fleet, system
        self.unit = f"wakeful-{called}.service"
        ours = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        self.file = (Path("/etc/systemd/system") if system else ours / "systemd/user") / self.unit
        self.variables = (Path("/etc") if system else ours) / "wakeful" / f"{called}.env"

    def refuse_others(self, fleet: str) -> None:
        if self.file.exists() and (whose := fleet_of(self.file.read_text(encoding="utf-8"))) != fleet:
            of = f"is the service of {whose}" if whose else "is not ours"
            raise Complaint(f"{self.file} {of}", "nothing was changed; choose another --name")

    def write(self, text: str, fleet: str) -> None:
        self.refuse_others(fleet)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        beside = self.file.with_name(f".{self.unit}.new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(self.file)

    def systemctl(self, *words: str) -> None:
        command = self._command(*words)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Complaint(f"systemd does not answer: {error}", f"when it does: {self.spelled(*words)}") from None
        if done.returncode != 0:
            why = " ".join(done.stderr.split()) or f"exit {done.returncode}"
            raise Complaint(
                f"`{shlex.join(command)}` failed: {why}", f"the unit is {self.file}; try that again by hand"
            )

    def spelled(self, *words: str) -> str:
        return shlex.join(self._command(*words))

    def journal(self) -> str:
        return f"journalctl {'' if self.system else '--user '}-u {self.unit}"

    def _command(self, *words: str) -> list[str]:
        return ["systemctl", *([] if self.system else ["--user"]), *words]


def _program() -> tuple[str, ...]:
    """By which we were called, if that is a program; else Python itself."""
    called = shutil.which(sys.argv[0])
    if called is not None and Path(called).name == "wakeful":
        return (os.path.abspath(called),)
    return (sys.executable, "-m", "wakeful")


def _owner(path: Path) -> str:
    try:
        return pwd.getpwuid(path.stat().st_uid).pw_name
    except KeyError:
        raise Complaint(f"the owner of {path} has no name", "say --user") from None


def _tell_variables(fleet: Fleet, spot: Spot) -> None:
    """A service has none of the variables of a shell."""
    named = {name for agent in fleet.agents for name in agent.environment}
    named.update(
        secret for agent in fleet.agents for on in agent.events if is_hook(on) for secret in read_hook(on).secrets
    )
    if named:
        names = ", ".join(sorted(named))
        say(f"a service has no variables of your shell: put {names} into {spot.variables}, a line NAME=value each")


def _lingers() -> bool:
    try:
        return Path("/var/lib/systemd/linger", pwd.getpwuid(os.getuid()).pw_name).exists()
    except KeyError:
        return True
