"""`wakeful backup` and `wakeful restore`.

Laws:
- A backup is asked of whoever writes the store, and so is whole, also while the fleet is at work.
- A restore needs the folder to itself, with the store in it. What was stored is kept beside what takes its place, and
  at no instant is there no store: an engine that started then would begin from nothing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wakeful.cli.complaints import BAD, LATER, Complaint
from wakeful.cli.connection import ask, store_of
from wakeful.cli.output import say, say_json
from wakeful.cli.place import Place, as_json, outside_run, placed
from wakeful.core.errors import Busy

if TYPE_CHECKING:
    from wakeful.store.folder import DataFolder

_MAGIC = b"SQLite format 3\0"


@click.command()
@click.argument("file")
@as_json
@placed
def backup(place: Place, file: str, as_json: bool) -> None:
    """Copy everything that is stored to FILE, which must not be there yet."""
    outside_run(place, "a backup")
    if os.path.lexists(file):
        raise Complaint(f"{file} is there already", "name a new file", BAD)
    answer = ask(place, "backup", path=os.path.abspath(file))
    say_json(answer) if as_json else say(f"{file}: {answer['bytes']} bytes")


@click.command()
@click.argument("file")
@placed
def restore(place: Place, file: str) -> None:
    """Put the backup FILE in the place of what is stored. The engine must be stopped."""
    outside_run(place, "a restore")
    from wakeful.belongings import SQLITE, named
    from wakeful.store.folder import DataFolder

    address = store_of(place)
    if address != SQLITE:
        raise Complaint(
            f"the store is {named(address)}, and only a file can be put in the place of another",
            f"copy it into an empty database, and name that in STORE: wakeful store copy {file} postgresql://…",
        )
    if not os.path.isfile(file):
        raise Complaint(f"there is no file {file}", "name a file that wakeful backup has written", BAD)
    folder = DataFolder(Path(place.data))
    try:
        folder.lock(5.0)
    except Busy as error:
        raise Complaint(str(error), "stop the engine: wakeful stop", LATER) from None
    try:
        kept = _replace(folder, Path(file))
    finally:
        folder.unlock()
    say(f"{folder.database} is now {file}")
    if kept is not None:
        say(f"what was there is kept as {kept}")


def _replace(folder: DataFolder, file: Path) -> Path | None:
    from wakeful.store.backups import verify

    # A journal beside the file would be left behind by the copy: this says so.
    verify(file)
    draft = folder.path / f".restoring-{os.getpid()}"
    try:
        _copy(file, draft)
        # The file may have changed under our eyes; the copy is ours.
        verify(draft)
        kept = _keep(folder.database)
        os.replace(draft, folder.database)
        _settle(folder.path)
    finally:
        draft.unlink(missing_ok=True)
    return kept


def _copy(file: Path, draft: Path) -> None:
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(handle, "wb") as target, file.open("rb") as source:
        shutil.copyfileobj(source, target, 1 << 20)
        target.flush()
        os.fsync(target.fileno())


def _keep(database: Path) -> Path | None:
    """A second name for what was stored, until now its only one."""
    if not database.exists():
        # What is known of a file that is gone says nothing of another.
        database.with_name(f"{database.name}-sums").unlink(missing_ok=True)
        return None
    _fold(database)
    kept = database.with_name(f"{database.stem}-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}{database.suffix}")
    os.link(database, kept)
    # A journal that could not be folded in belongs to what is kept, and must never meet the new file.
    for suffix in ("-wal", "-shm", "-sums"):
        journal = database.with_name(database.name + suffix)
        if journal.exists():
            os.replace(journal, kept.with_name(kept.name + suffix))
    return kept


def _fold(database: Path) -> None:
    """Whoever closes a store last folds its journal in. One that is damaged is kept as it is."""
    from wakeful.store.sqlite import open_sqlite

    with database.open("rb") as file:
        # Of a file that is no database, SQLite would take the journal for a leftover and remove it.
        if file.read(len(_MAGIC)) != _MAGIC:
            return
    with contextlib.suppress(Exception):
        open_sqlite(database).close()


def _settle(folder: Path) -> None:
    """The new name survives a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
