"""`wakeful token`: the operator's token and nothing else.

Laws:
- The token is a private file of the data folder, there whole or not at all; whoever comes first makes it.
- To rotate it is to put another file in its place: it needs the folder, and no token. An engine looks at the file each
  time, so the old one is nobody's from that moment on.
"""

from __future__ import annotations

import os

import click

from wakeful.cli.complaints import BAD, Complaint
from wakeful.cli.output import say
from wakeful.cli.place import Place, outside_run, placed, refuse_nowhere

_LENGTH = 32
_LONGEST = 4_096


@click.command()
@click.option("--rotate", is_flag=True, help="Make a new one first. The old one is dead at once, open streams too.")
@click.option("--peer", is_flag=True, help="Print the one for peers instead: it leaves tasks, and opens nothing else.")
@placed
def token(place: Place, rotate: bool, peer: bool) -> None:
    """Print the operator's token. It is made on first use."""
    outside_run(place, "the operator's token")
    refuse_nowhere(place)
    if rotate:
        _rotate(place)
    known = read_token(place.path("token")) or _make(place)
    if peer:
        from wakeful.core.peers import peer_token

        known = peer_token(known)
    say(known)


def read_token(path: str) -> str | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="ascii", errors="replace") as file:
            return file.read(_LONGEST).strip() or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Complaint(f"cannot read {path}: {error.strerror}", "see wakeful doctor", BAD) from None


def _rotate(place: Place) -> None:
    path = place.path("token")
    try:
        os.rename(_draft(place), path)
    except OSError as error:
        raise Complaint(f"cannot make {path}: {error.strerror}", "name a data folder of yours", BAD) from None
    from wakeful.cli.connection import ToStore, connect

    if not any(os.path.exists(place.path(name)) for name in ("wakeful.db", "store")):
        return
    try:
        with connect(place) as connection:
            # An engine that is asked with the new one sees, and tells in its events, that the old one is dead.
            if isinstance(connection, ToStore):
                connection.note("rotate_token")
            else:
                connection.ask("nodes")
    except Complaint as complaint:
        say(f"the token is another one now, but that could not be told: {complaint.message}", to_stderr=True)


def _draft(place: Place) -> str:
    """A new token in a file of its own."""
    draft = f"{place.path('token')}.{os.getpid()}"
    os.makedirs(place.data, mode=0o700, exist_ok=True)
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    with open(handle, "w", encoding="ascii") as file:
        file.write(os.urandom(_LENGTH).hex() + "\n")
        file.flush()
        os.fsync(file.fileno())
    return draft


def _make(place: Place) -> str:
    path = place.path("token")
    try:
        draft = _draft(place)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(draft)
    except OSError as error:
        raise Complaint(f"cannot make {path}: {error.strerror}", "name a data folder of yours", BAD) from None
    made = read_token(path)
    if made is None:
        raise Complaint(f"{path} is empty", "remove it and ask again", BAD)
    return made
