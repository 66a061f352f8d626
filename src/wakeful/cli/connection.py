"""How a command reaches its fleet: through the run it is inside of, through the engine, or through the store itself.

Laws:
- Whoever holds the folder's lock is the one writer. While somebody holds it, `engine.json` says where to ask; once
  nobody does, that file is stale and is not believed: the token goes to no stranger who listens there now.
- Without an engine the command is the one writer for as long as it takes, at most five seconds of waiting before; on a
  shared store it is one of many, and the nodes that are up do what it asks for.
- An operation is asked by its name and parameters, and answers the same on all three ways.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from wakeful.cli.complaints import LATER, Complaint, no_engine
from wakeful.cli.place import Place, refuse_nowhere
from wakeful.client import finding

if TYPE_CHECKING:
    from wakeful.cli.hearing import Hearing
    from wakeful.control.control import Control

PATIENCE = 5.0
_STEP = 0.05


class Connection(Protocol):
    @property
    def live(self) -> bool:
        """Whether an engine is at work, here or elsewhere, and so whether what is asked will also happen."""

    def ask(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Parameters that are None are left out."""


class ToEngine:
    live = True

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._token = token

    def ask(self, operation: str, **parameters: Any) -> dict[str, Any]:
        from wakeful.cli.exchange import exchange
        from wakeful.control.operations import request

        made = request(operation, parameters)
        return exchange(self.url, self._token, made.method, made.target, made.body)

    def hearing(self) -> Hearing:
        """What happens in the fleet, as it happens; not opened yet."""
        from wakeful.cli.hearing import Hearing

        return Hearing(self.url, self._token, "/v1/stream")


class ToStore:
    def __init__(self, control: Control, complete: Any) -> None:
        self._control = control
        self._complete = complete

    @property
    def live(self) -> bool:
        return bool(self._complete(self._control.access.read(self._control.nodes_up)))

    def ask(self, operation: str, **parameters: Any) -> dict[str, Any]:
        from wakeful.cli.exchange import must_be_short
        from wakeful.control.callers import OPERATOR
        from wakeful.control.operations import OPERATIONS

        given = {key: value for key, value in parameters.items() if value is not None}
        if OPERATIONS[operation].method != "GET":
            must_be_short(len(json.dumps(given, ensure_ascii=False).encode("utf-8", "surrogatepass")))
        answer: dict[str, Any] = self._complete(getattr(self._control, operation)(OPERATOR, **given))
        return answer

    def note(self, act: str) -> None:
        """The operator did this, which the store has no part in."""
        from wakeful.control.callers import OPERATOR

        self._complete(self._control.acted(OPERATOR, act))


@contextmanager
def connect(place: Place) -> Iterator[Connection]:
    if place.inside_run:
        yield ToEngine(place.url, place.token)
        return
    refuse_nowhere(place)
    url = engine_url(place)
    if url is not None:
        yield ToEngine(url, _token(place))
        return
    with _offline(place) as connection:
        yield connection


def ask(place: Place, operation: str, **parameters: Any) -> dict[str, Any]:
    """One question. Whoever asks again and again asks like this, and so follows an engine through its restart."""
    with connect(place) as connection:
        return connection.ask(operation, **parameters)


@contextmanager
def connect_live(place: Place, what: str) -> Iterator[Connection]:
    """For what only an engine can do, whichever node it is."""
    with connect(place) as connection:
        if not connection.live:
            raise no_engine(place.data, what)
        yield connection


@contextmanager
def connect_here(place: Place, what: str) -> Iterator[Connection]:
    """For what only the engine of this folder can do."""
    if not place.inside_run:
        refuse_nowhere(place)
        if engine_url(place) is None:
            raise no_engine(place.data, what)
    with connect(place) as connection:
        yield connection


def engine_url(place: Place) -> str | None:
    """Where the engine of this folder listens; None when nobody holds the folder, and so there is none."""
    from wakeful.cli.exchange import reach

    deadline = time.monotonic() + PATIENCE
    while is_held(place):
        url = written_url(place)
        if url:
            try:
                reach(url, 1.0).close()
                return url
            except OSError:
                pass
        if time.monotonic() >= deadline:
            raise Complaint(
                f"{place.data} is in use by another wakeful process that does not answer", "try again", LATER
            )
        time.sleep(_STEP)
    return None


def is_held(place: Place) -> bool:
    return finding.is_held(place.data)


def written_url(place: Place) -> str:
    return finding.written_url(place.data)


@contextmanager
def _offline(place: Place) -> Iterator[ToStore]:
    import asyncio
    from pathlib import Path

    from wakeful import opening
    from wakeful.fleet.load import find_fleet

    named = place.fleet is not None
    fleet = Path(place.fleet) if place.fleet else find_fleet()
    with opening.open_offline(Path(place.data), fleet, named=named) as control, asyncio.Runner() as runner:
        yield ToStore(control, runner.run)


def store_of(place: Place) -> str:
    """The address of the fleet's store. It may hold a password: what is shown of it is `belongings.named`."""
    from pathlib import Path

    from wakeful.belongings import store_address
    from wakeful.fleet.load import find_fleet

    fleet = Path(place.fleet) if place.fleet else find_fleet()
    return store_address(Path(place.data), fleet, named=place.fleet is not None)


def _token(place: Place) -> str:
    from wakeful.cli.token import read_token

    token = read_token(place.path("token"))
    if token is None:
        raise Complaint(f"there is no token in {place.path('token')}", "print or make it: wakeful token")
    return token
