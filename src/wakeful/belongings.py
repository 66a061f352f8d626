"""What a node keeps in its data folder beside the store: its name, its keys, and where its store is.

Laws:
- Each is a small private file, there whole or not at all, and made once.
- The fleet file says which store is used. The folder remembers it for those who were told only the folder, and for as
  long as the fleet file is broken.
- An address may hold a password: it is shown to nobody (see `named`).
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import string
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from wakeful.core.agents import Fleet

DATA = ".wakeful"
TOKEN = "token"
SECRET = "secret"
NODE = "node"
STORE = "store"
RUNS = "runs"
DATABASE = "wakeful.db"

SQLITE = Fleet().store

log = logging.getLogger("wakeful.belongings")

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_LETTERS = string.ascii_lowercase + string.digits
# Of a host's whole name the first part says enough; a name is read by people.
_LONGEST_HOST = 40


# ---- private files


def read_or_make(path: Path, make: Callable[[], str]) -> str:
    """A small private file: what it says, or what is written to it because it was not there."""
    with suppress(FileNotFoundError):
        text = path.read_text(encoding="ascii").strip()
        if text:
            if path.stat().st_mode & 0o077:
                path.chmod(0o600)
                log.warning("others could read %s until now; if it is a token: wakeful token --rotate", path)
            return text
    text = make()
    write_private(path, text + "\n")
    return text


def write_private(path: Path, text: str) -> None:
    """The whole file or none of it, and nobody else's to read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def operator_token(data: Path) -> str:
    return read_or_make(data / TOKEN, lambda: secrets.token_urlsafe(32))


class Token:
    """The operator's token as the folder has it now: looked at each time, read when its file is another one."""

    def __init__(self, data: Path) -> None:
        operator_token(data)
        self._path = data / TOKEN
        self._seen: tuple[int, ...] = ()
        self._text = ""

    def __call__(self) -> str:
        """Nothing while there is none, and that is nobody's token."""
        try:
            about = self._path.lstat()
            seen = (about.st_ino, about.st_mtime_ns, about.st_ctime_ns, about.st_size)
            if seen != self._seen:
                self._text = self._path.read_text(encoding="ascii").strip()
                self._seen = seen
        except (OSError, UnicodeDecodeError):
            self._text, self._seen = "", ()
        return self._text


def secret(data: Path) -> bytes:
    return bytes.fromhex(read_or_make(data / SECRET, lambda: secrets.token_hex(32)))


# ---- who we are


def node_name(data: Path) -> str:
    """Made once; a folder that has a name keeps it."""
    return read_or_make(data / NODE, _new_name)


def known_node(data: Path) -> str | None:
    """The name of the node of this folder, if there ever was one."""
    try:
        return (data / NODE).read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _new_name() -> str:
    host = socket.gethostname().encode("ascii", "replace").decode().replace("?", "-")[:_LONGEST_HOST]
    return f"{host or 'node'}-{''.join(secrets.choice(_LETTERS) for _ in range(4))}"


def host(data: Path) -> str:
    """Where this node is at work: two that have the same name, because a folder was copied, differ in this."""
    try:
        boot = _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return " ".join(filter(None, (socket.gethostname(), boot, str(data.absolute()))))


# ---- where the store is


def remembered(data: Path) -> str | None:
    """The store that was used last from this folder, if it is not the file in it."""
    try:
        return (data / STORE).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def remember(data: Path, address: str) -> None:
    if address == SQLITE:
        (data / STORE).unlink(missing_ok=True)
    elif remembered(data) != address:
        write_private(data / STORE, address + "\n")


def store_address(data: Path, fleet: Path | None, *, named: bool = True) -> str:
    """Where the fleet's state is kept. A fleet file that is broken, or not there, has no say; nor has one that was only
    `named` by lying in the working folder, where the data folder is another's."""
    known = remembered(data)
    if fleet is None or not (named or is_of(data, fleet)):
        return known or SQLITE
    # To read a fleet takes longer than what most commands do: one that never speaks of a store has none of its own.
    if known is None and not _speaks_of_a_store(fleet):
        return SQLITE
    from wakeful.fleet.load import load_fleet

    declared = load_fleet(fleet).fleet
    return declared.store if declared is not None else known or SQLITE


def is_of(data: Path, fleet: Path) -> bool:
    """Whether the folder is the file's own, or nobody's yet."""
    in_use = any((data / name).exists() for name in (STORE, DATABASE))
    return not in_use or data.resolve() == (fleet.absolute().parent / DATA).resolve()


def _speaks_of_a_store(fleet: Path) -> bool:
    try:
        return b"store" in fleet.read_bytes().lower()
    except OSError:
        return False


def named(address: str) -> str:
    """The address as it may be shown: the host and the database, and nothing that could be secret."""
    if address == SQLITE:
        return SQLITE
    try:
        parts = urlsplit(address)
        given = dict(parse_qsl(parts.query))
        where = parts.netloc.rpartition("@")[2] or given.get("host", "")
        database = parts.path.strip("/") or given.get("dbname", "")
    except ValueError:
        return "postgresql://…"
    service = given.get("service")
    return f"postgresql://{where}/{database}" if where or database or not service else f"the service {service}"


# ---- folders of runs


def set_aside(data: Path, newest: int, known: Callable[[int, float | None], bool] | None) -> Path | None:
    """Moves folders of runs that are not of the store in use: its next runs would find them in their place, and be
    taken for ended. `newest` is the last run that the store knows; `known` says of older ones, by the instant at which
    they were started, whether they are its own. Where they were moved to."""
    folders = {int(path.name): path for path in _folders(data / RUNS)}
    foreign = [
        path
        for run, path in sorted(folders.items())
        if run > newest or (known is not None and not known(run, _started(path)))
    ]
    if not foreign:
        return None
    aside = data / f"{RUNS}-until-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
    aside.mkdir(mode=0o700)
    for path in foreign:
        path.rename(aside / path.name)
    return aside


def _folders(runs: Path) -> list[Path]:
    try:
        return [path for path in runs.iterdir() if path.name.isascii() and path.name.isdigit()]
    except OSError:
        return []


def _started(folder: Path) -> float | None:
    from wakeful.runners.protocol import STARTED

    try:
        return (folder / STARTED).stat().st_mtime
    except OSError:
        return None
