"""The program `wakeful`, which dies at the commit that it is told: `python -m soak.doomed up …`.

A file `doom` in the working folder says where ("after finish 2"), and is taken away: whoever starts it again lives.
What it came by is appended to the file `passed`, each site and moment once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from wakeful.store import postgres_session, sqlite
from wakeful.store.inline import Inline
from wakeful.store.postgres_session import PostgresSession
from wakeful.store.sqlite import SqliteSession
from wakeful.store.writer import Writer
from wakeful.testing.crashpoints import Doom, Point


@contextmanager
def doomed_migrations(doom: Doom) -> Iterator[None]:
    """The one commit that is made before there is a store."""
    in_file, on_server = vars(sqlite)["migrate"], vars(postgres_session)["migrate"]

    def of_file(connection: apsw.Connection, application_id: int) -> int:
        connection.set_commit_hook(lambda: doom.reach("before", ("migrate",)) is not None)
        version: int = in_file(connection, application_id)
        connection.set_commit_hook(None)
        doom.reach("after", ("migrate",))
        return version

    def of_server(connection: Any, schema: str | None) -> int:
        with connection.transaction():
            version: int = on_server(connection, schema)
            doom.reach("before", ("migrate",))
        doom.reach("after", ("migrate",))
        return version

    vars(sqlite)["migrate"], vars(postgres_session)["migrate"] = of_file, of_server
    try:
        yield
    finally:
        vars(sqlite)["migrate"], vars(postgres_session)["migrate"] = in_file, on_server


def after_making(kind: type[Any], done: Callable[[Any], None]) -> None:
    """Whatever is made of that class from now on, `done` is called with it."""
    make = kind.__init__

    def made(self: Any, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **named)
        done(self)

    setattr(kind, "__init__", made)  # noqa: B010


def main() -> None:
    here, seen = Path("doom"), set[tuple[str, str]]()
    point = None
    if here.exists():
        moment, site, turn = here.read_text().split()
        point = Point(site, moment, int(turn))
        here.unlink()
    passed = os.open("passed", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(moment: str, site: str) -> None:
        if (moment, site) not in seen:
            seen.add((moment, site))
            os.write(passed, f"{moment} {site}\n".encode())

    doom = Doom(point, passed=note)
    for session in (SqliteSession, PostgresSession):
        after_making(session, lambda made: doom.watch(made))
    for access in (Writer, Inline):
        after_making(access, lambda made: doom.listen(made))
    from wakeful.cli import main as wakeful

    with doomed_migrations(doom):
        wakeful(sys.argv[1:], prog_name="wakeful")


if __name__ == "__main__":
    main()
