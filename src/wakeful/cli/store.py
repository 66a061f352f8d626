"""`wakeful store copy`: everything that is stored, from a file into a database.

Laws:
- What is copied stands still meanwhile: the folder is held, no engine has it, and no run is under way in it.
- It is there whole, compared row by row, or not at all; what it was copied from is left as it was.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from wakeful.cli.complaints import BAD, LATER, REFUSED, Complaint
from wakeful.cli.output import has_colours, say, say_json
from wakeful.cli.place import as_json, outside_run, place_of
from wakeful.cli.words import counted
from wakeful.core.errors import Busy

if TYPE_CHECKING:
    from wakeful.store.postgres_copy import Progress

_MOST_NAMED = 5
_PASSWORDS = "leave it to PGPASSWORD or ~/.pgpass"


@click.group()
def store() -> None:
    """Where everything is kept."""


@store.command()
@click.argument("sqlite", metavar="SQLITE")
@click.argument("postgres", metavar="POSTGRES")
@as_json
def copy(sqlite: str, postgres: str, as_json: bool) -> None:
    """Copy SQLITE, a store file, a backup or a data folder, into the empty database POSTGRES (postgresql://…)."""
    outside_run(place_of(None, None), "a copy of the store")
    from wakeful import belongings, opening
    from wakeful.fleet.addresses import store as read_address

    address = read_address(postgres)
    if address == belongings.SQLITE:
        raise Complaint(f"expected the address of a database, found {postgres}", "write postgresql://…", BAD)
    if urlsplit(address).password:
        say(f"others on this machine can read the password of a command ({_PASSWORDS})", to_stderr=True)
    with _still(Path(sqlite)) as file:
        from wakeful.store.postgres_copy import load

        target = opening.open_shared(address)
        try:
            with _shown(quiet=as_json) as told:
                counts = load(file, target.session.connection, told=told, moves=True)
        finally:
            target.close()
    named = belongings.named(address)
    if as_json:
        say_json({"from": str(file), "to": named, "rows": counts, "compared": True})
        return
    say(f"{named} holds all of {file}: {counted(sum(counts.values()), 'row')} copied, and compared one by one")
    say("next: name it in the fleet file (org: #+STORE: ADDRESS, YAML: store: ADDRESS), then wakeful up")
    say(f"{file} is as it was; when all is well, keep it as a backup")


# ---- what is copied


@contextmanager
def _still(path: Path) -> Iterator[Path]:
    """The file, which nobody writes to: that of a data folder while we hold the folder, or one by itself."""
    from wakeful.store.folder import DataFolder

    inside = path if path.is_dir() else path.parent if (path.parent / "lock").exists() else None
    folder = DataFolder(inside) if inside is not None else None
    file = folder.database if folder is not None and path.is_dir() else path
    if not file.is_file():
        raise Complaint(f"there is no store {file}", "name a store file, a backup or a data folder", BAD)
    if folder is None or file != folder.database:
        yield file
        return
    try:
        folder.lock(5.0)
    except Busy as error:
        raise Complaint(str(error), "let its runs end: wakeful stop --drain", LATER) from None
    try:
        _settle(file)
        yield file
    finally:
        folder.unlock()


def _settle(file: Path) -> None:
    """Whoever closes a store last folds its journal in. A run under way would not hear of the other store: nobody there
    could end it before another node begins the same anew."""
    from wakeful.store.sqlite import open_sqlite

    opened = open_sqlite(file)
    try:
        runs = [row for row in opened.runs(open=True, limit=1_000) if row.state == "running"]
    finally:
        opened.close()
    if runs:
        named = ", ".join(f"{row.id} of {row.agent}" for row in runs[:_MOST_NAMED])
        raise Complaint(
            f"{counted(len(runs), 'run')} under way in {file}: {named}{', …' if len(runs) > _MOST_NAMED else ''}",
            "let them end: wakeful up, then wakeful stop --drain",
            REFUSED,
        )


# ---- what is shown


@contextmanager
def _shown(*, quiet: bool) -> Iterator[Progress]:
    if quiet:
        yield lambda *_: None
    elif sys.stdout.isatty() and has_colours():
        with _bars() as told:
            yield told
    else:
        yield _lines


def _lines(what: str, table: str, done: int, of: int) -> None:
    if what == "copied" and done == of:
        say(f"{table:12}{counted(of, 'row'):>14}")


@contextmanager
def _bars() -> Iterator[Progress]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    with Progress(*columns, transient=True) as progress:
        bars: dict[tuple[str, str], Any] = {}

        def told(what: str, table: str, done: int, of: int) -> None:
            bar = bars.get((what, table))
            if bar is None:
                bar = bars[what, table] = progress.add_task(f"{what:9}{table}", total=of)
            progress.update(bar, completed=done)

        yield told
