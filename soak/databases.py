"""A database of its own on a server that others use as well."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from urllib.parse import urlsplit

import psycopg

from soak.audits import sound_database

_numbers = count()


@contextmanager
def own_database(server: str) -> Iterator[str]:
    """Its address; gone with everything in it, and with whoever is still connected, when the story is over. What was
    kept in it adds up."""
    name = f"own_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            with sound_database(urlsplit(server)._replace(path=f"/{name}").geturl()) as address:
                yield address
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
