"""`wakeful token`: the operator's token and nothing else.

Law: the token is a private file of the data folder, there whole or not at all; whoever comes first makes it.
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
@placed
def token(place: Place) -> None:
    """Print the operator's token. It is made on first use."""
    outside_run(place, "the operator's token")
    refuse_nowhere(place)
    say(read_token(place.path("token")) or _make(place))


def read_token(path: str) -> str | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="ascii", errors="replace") as file:
            return file.read(_LONGEST).strip() or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Complaint(f"cannot read {path}: {error.strerror}", "see wakeful doctor", BAD) from None


def _make(place: Place) -> str:
    path = place.path("token")
    draft = f"{path}.{os.getpid()}"
    try:
        os.makedirs(place.data, mode=0o700, exist_ok=True)
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        with open(handle, "w", encoding="ascii") as file:
            file.write(os.urandom(_LENGTH).hex() + "\n")
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
