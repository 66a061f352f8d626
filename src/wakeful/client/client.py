"""`Client` and `AsyncClient`: the same calls, of which one blocks and the other is awaited.

Laws:
- Nothing is said twice here: the calls are declared in `calls`, and made in `asking`, which knows neither of the two.
- An error is of the class that a caller in the engine's own process would be given.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from wakeful.client.asking import PATIENCE, Asking
from wakeful.client.calls import Calls
from wakeful.client.finding import whereabouts
from wakeful.client.pages import to_the_end
from wakeful.client.transports import Awaiting, Blocking, Transport, completed, iterated

if TYPE_CHECKING:
    from wakeful.control import answers

P = ParamSpec("P")
T = TypeVar("T")
Pathlike = str | os.PathLike[str]


class _Reached(Calls):
    _way: Callable[[ssl.SSLContext | bool], Transport]

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        data: Pathlike | None = None,
        fleet: Pathlike | None = None,
        patience: float = PATIENCE,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        folder, file = (None if path is None else os.fspath(path) for path in (data, fleet))
        where = whereabouts(url, token, folder, file)
        self._transport = type(self)._way(verify)
        self._asking = Asking(self._transport, where, patience)


class Client(_Reached):
    """A fleet, asked by whoever may wait for the answer.

    Without arguments: inside a run the fleet of that run, in its name; else, as the operator, the fleet of the data
    folder (`data`, WAKEFUL_DATA, or `.wakeful` beside `fleet` or in the working folder). `url` and `token` name any.
    `patience` is how many seconds an engine that was there is waited for; `verify` is what is believed of certificates.
    Several threads may use one client.
    """

    _way = Blocking

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        completed(self._transport.close())

    @overload
    def every(
        self, listing: Callable[P, answers.Page[T]], *arguments: P.args, **parameters: P.kwargs
    ) -> Generator[T, None, None]: ...
    @overload
    def every(
        self, listing: Callable[P, answers.NamedPage[T]], *arguments: P.args, **parameters: P.kwargs
    ) -> Generator[T, None, None]: ...
    def every(self, listing: Callable[..., Any], *arguments: Any, **parameters: Any) -> Generator[Any, None, None]:
        """All that a list has, however many pages it takes: `client.every(client.tasks, state=["pending"])`."""
        return iterated(to_the_end(listing, arguments, parameters))

    def _awaited(self, asked: Coroutine[Any, Any, T]) -> T:
        return completed(asked)

    def _iterated(self, pieces: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        return iterated(pieces)


class AsyncClient(_Reached):
    """The same as `Client`, awaited: each call is a coroutine, each stream an asynchronous iterator."""

    _way = Awaiting

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    @overload
    def every(
        self, listing: Callable[P, Coroutine[Any, Any, answers.Page[T]]], *arguments: P.args, **parameters: P.kwargs
    ) -> AsyncGenerator[T, None]: ...
    @overload
    def every(
        self,
        listing: Callable[P, Coroutine[Any, Any, answers.NamedPage[T]]],
        *arguments: P.args,
        **parameters: P.kwargs,
    ) -> AsyncGenerator[T, None]: ...
    def every(self, listing: Callable[..., Any], *arguments: Any, **parameters: Any) -> AsyncGenerator[Any, None]:
        """All that a list has, however many pages it takes: `client.every(client.tasks, state=["pending"])`."""
        return to_the_end(listing, arguments, parameters)

    def _awaited(self, asked: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return asked

    def _iterated(self, pieces: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        return pieces
