"""What the doctor looks at, one function each.

Law: nothing is changed by looking, but for a control group that is made and removed at once. A look that fails is
itself a finding.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wakeful.cli.complaints import Complaint
from wakeful.cli.connection import connect, is_held, store_of, written_url
from wakeful.cli.defaults import guards, hooks, reach, rights
from wakeful.cli.levels import Found as Found
from wakeful.cli.levels import Level as Level
from wakeful.cli.output import one_line
from wakeful.cli.place import Place
from wakeful.cli.standings import outages, untaken_words
from wakeful.cli.words import counted, lasting
from wakeful.core.errors import Mistake

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 51, 3)
GIGABYTE = 10**9
LITTLE_SPACE, NO_SPACE = GIGABYTE, GIGABYTE // 10
FRESH = 120.0
PRIVATE = ("token", "secret", "store", "wakeful.db")
WATCHES, INSTANCES = 8_192, 64


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    level: Level
    said: str
    remedy: str = ""

    def row(self) -> dict[str, Any]:
        return {**asdict(self), "level": self.level.value}


def examine(place: Place) -> list[Finding]:
    from wakeful.belongings import SQLITE

    if store_of(place) == SQLITE:
        return [_finding(name, look, place) for name, look in LOOKS]
    from wakeful.cli.database import LOOKS as AT_DATABASE

    looks = dict(LOOKS) | dict(AT_DATABASE)
    return [_finding(name, look, place) for name, look in looks.items()]


def _finding(name: str, look: Callable[[Place], Found], place: Place) -> Finding:
    try:
        level, said, *remedy = look(place)
    except Exception as error:
        level, said, remedy = Level.fail, f"cannot be looked at: {error or type(error).__name__}", []
    return Finding(name, level, one_line(said, 1_000), one_line(remedy[0], 1_000) if remedy else "")


def python(place: Place) -> Found:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return Level.fail, f"{found}, and wakeful needs 3.11", "install a newer Python"
    return Level.ok, f"{found} at {sys.executable}"


def sqlite(place: Place) -> Found:
    import apsw

    found = apsw.sqlite_lib_version()
    if tuple(map(int, found.split(".")[:3])) < OLDEST_SQLITE:
        return Level.fail, f"{found} can corrupt its journal", "install apsw 3.51.3 or newer"
    return Level.ok, found


def cages(place: Place) -> Found:
    """Whether everything that a run has started can be ended at one stroke."""
    from wakeful.runners.cage import PREFIX, Cage, available

    if sys.platform != "linux":
        return Level.warn, f"runs are ended as well as {sys.platform} allows", "run it on Linux for more"
    cage = Cage.make(available(), f"{PREFIX}-{os.getpid()}-0")
    can_kill, limited = cage.can_kill, bool(cage.folders)
    cage.remove()
    if can_kill:
        return Level.ok, "a run's whole tree is ended at one stroke (cgroup v2)"
    found = "only limits on processes" if limited else "no control groups"
    remedy = "give this user a writable cgroup v2, as a systemd service with Delegate=yes has"
    return Level.warn, f"{found}: a run's tree is ended by walking it, as well as can be", remedy


def folder(place: Place) -> Found:
    if not os.path.isdir(place.data):
        return Level.warn, f"{place.data} is not there yet", "wakeful up makes it"
    about = os.stat(place.data)
    if about.st_uid != os.geteuid():
        return Level.fail, f"{place.data} belongs to another user", "name a data folder of your own"
    if about.st_mode & 0o077:
        return Level.fail, f"others can look into {place.data}", f"chmod 700 {place.data}"
    if not os.access(place.data, os.W_OK):
        return Level.fail, f"{place.data} cannot be written to", f"chmod 700 {place.data}"
    return Level.ok, f"{place.data} is private"


def secrets(place: Place) -> Found:
    there = [place.path(name) for name in PRIVATE if os.path.lexists(place.path(name))]
    for path in there:
        about = os.lstat(path)
        if not stat.S_ISREG(about.st_mode):
            return Level.fail, f"{path} is not a plain file", "remove it; it is made anew"
        if about.st_mode & 0o077:
            return Level.fail, f"others can read {path}", f"chmod 600 {path}, and make a new token if it was read"
    if place.path("token") not in there:
        return Level.warn, "there is no token yet", "wakeful token makes it"
    return Level.ok, f"{counted(len(there), 'private file')}, readable by you alone"


def store(place: Place) -> Found:
    from wakeful.store import pages
    from wakeful.store.backups import verify

    path = Path(place.path("wakeful.db"))
    if not path.exists():
        return Level.warn, "nothing is stored yet", "wakeful up makes the store"
    journal = path.with_name(f"{path.name}-wal")
    if journal.exists() and journal.stat().st_size:
        _look_beside_writer(path)
    else:
        verify(path)
        pages.verify(path)
    return Level.ok, f"whole, {path.stat().st_size / 10**6:.1f} MB"


def _look_beside_writer(path: Path) -> None:
    """`verify` looks at a file that nobody writes to; this reads past a writer and its journal."""
    import apsw

    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"{path.absolute().as_uri()}?mode=ro", flags=flags)
    try:
        connection.set_busy_timeout(5_000)
        found = str(connection.pragma("quick_check"))
    finally:
        connection.close()
    if found != "ok":
        raise Mistake(f"{path} is damaged: {one_line(found)}", "restore a backup: wakeful restore FILE")


def disk(place: Place) -> Found:
    there = place.data if os.path.isdir(place.data) else os.path.dirname(os.path.abspath(place.data))
    free = shutil.disk_usage(there).free
    said = f"{free / GIGABYTE:.1f} GB free"
    if free < NO_SPACE:
        return Level.fail, said, "make room: nothing can be recorded on a full disk"
    return (Level.warn, said, "make room soon") if free < LITTLE_SPACE else (Level.ok, said)


def engine(place: Place) -> Found:
    if not is_held(place):
        return Level.warn, "none is at work", "start one: wakeful up"
    url = written_url(place)
    try:
        with connect(place) as connection:
            health = connection.ask("status")["engine"] if connection.live else None
    except Complaint as complaint:
        return Level.fail, f"somebody holds the folder and does not answer: {complaint.message}", "see its log"
    if health is None:
        return Level.warn, "none is at work", "start one: wakeful up"
    age = float(health.get("heartbeat_age") or 0.0)
    if not health.get("ready", True) or age > FRESH:
        return (
            Level.fail,
            f"at {url}, not ready: {health.get('why_not') or f'silent for {lasting(age)}'}",
            "see its log",
        )
    return Level.ok, f"at {url}, heartbeat {age:.1f}s ago"


def sources(place: Place) -> Found:
    """Whether the folders and lists that agents watch can be looked at; an engine knows, and nobody else."""
    if not is_held(place):
        return Level.ok, "not looked at: no engine is at work"
    with connect(place) as connection:
        answer = connection.ask("status")
    away = answer.get("outages") or []
    if not away:
        return Level.ok, "none is out of reach"
    first = "".join(span.text for span in outages(away, answer.get("shared", False), datetime.now(UTC))[0])
    said = first if len(away) == 1 else f"{first}, and {len(away) - 1} more"
    return Level.fail, said, "bring it back; until then what arrives there is not seen"


def drop(place: Place) -> Found:
    """Whether tasks can be handed in as files, and whether somebody's were refused."""
    from wakeful.sources.drop import drop_in

    folder = drop_in(Path(place.data))
    if not os.path.lexists(folder.path):
        return Level.ok, f"{folder.path} is not there yet; wakeful up makes it"
    if not folder.path.is_dir() or not os.access(folder.path, os.R_OK | os.W_OK | os.X_OK):
        return (
            Level.fail,
            f"{folder.path} is no folder that can be written to",
            "move it away: wakeful up makes it anew",
        )
    waiting, refused = folder.waiting(datetime.now(UTC).timestamp()), folder.refused()
    if waiting and is_held(place):
        said = f"{counted(len(waiting), 'file')} in {folder.path} cannot be dealt with, first {waiting[0]!r}"
        return Level.fail, said, "see wakeful status, and the log of the engine"
    if refused:
        said = f"{counted(refused, 'file')} refused, in {folder.path}"
        return Level.warn, said, "NAME.why.txt beside each in refused/ says why: mend and drop again, or remove"
    return Level.ok, f"nothing is left in {folder.path}"


def tasks(place: Place) -> Found:
    """Whether somebody is there for what is open. To open the store would leave a trace; `wakeful status` may."""
    if not is_held(place):
        return Level.ok, "not looked at: no engine is at work"
    with connect(place) as connection:
        waiting = connection.ask("status").get("untaken") or []
    if not waiting:
        return Level.ok, "somebody is there for each that is open"
    return Level.warn, untaken_words(waiting), "give somebody the role (TASKS), or cancel them: wakeful task cancel"


def fleet(place: Place) -> Found:
    from wakeful.fleet.load import find_fleet, load_fleet

    path = place.fleet or find_fleet()
    if path is None:
        return Level.warn, "no fleet.org or fleet.yml in this folder", "name it with --fleet"
    loaded = load_fleet(path, run=os.environ.get("WAKEFUL_RUN") or None)
    if loaded.broken or loaded.diagnostics:
        first, level = str(loaded.diagnostics[0]), Level.fail if loaded.broken else Level.warn
        return level, f"{counted(len(loaded.diagnostics), 'thing')} to mend, first: {first}", "see wakeful check"
    agents = len(loaded.fleet.agents) if loaded.fleet else 0
    return Level.ok, f"{path}: {counted(agents, 'agent')}"


def clock(place: Place) -> Found:
    from zoneinfo import ZoneInfo, available_timezones

    now = datetime.now(UTC)
    database = place.path("wakeful.db")
    if os.path.exists(database) and not os.path.exists(place.path("store")):
        ahead = os.path.getmtime(database) - now.timestamp()
        if ahead > 60:
            return Level.fail, f"the clock is {lasting(ahead)} behind what was stored last", "set the clock"
    ZoneInfo("Europe/Berlin")
    return Level.ok, f"{now:%Y-%m-%d %H:%M:%S} UTC, {counted(len(available_timezones()), 'time zone')}"


def inotify(place: Place) -> Found:
    if sys.platform != "linux":
        return Level.warn, "files are looked at by turns", "run it on Linux for less delay"
    found = {name: _kernel(name) for name in ("max_user_watches", "max_user_instances")}
    low = [name for name, least in zip(found, (WATCHES, INSTANCES), strict=True) if found[name] < least]
    said = ", ".join(f"{name} {value}" for name, value in found.items())
    if low:
        return Level.warn, said, f"raise fs.inotify.{low[0]}; until then files are looked at by turns"
    return Level.ok, said


def _kernel(name: str) -> int:
    with open(f"/proc/sys/fs/inotify/{name}", encoding="ascii") as file:
        return int(file.read())


LOOKS: tuple[tuple[str, Callable[[Place], Found]], ...] = (
    ("python", python),
    ("sqlite", sqlite),
    ("killing", cages),
    ("folder", folder),
    ("secrets", secrets),
    ("store", store),
    ("disk", disk),
    ("engine", engine),
    ("reach", reach),
    ("sources", sources),
    ("drop", drop),
    ("tasks", tasks),
    ("fleet", fleet),
    ("rights", rights),
    ("hooks", hooks),
    ("guards", guards),
    ("clock", clock),
    ("inotify", inotify),
)
