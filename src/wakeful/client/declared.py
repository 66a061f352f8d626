"""One declaration, two clients: what is declared once is a call on `Client` and a coroutine on `AsyncClient`.

Laws:
- A declaration has the name and the parameters of its operation, and no body; what a caller does not say is not sent,
  so that a default is the operation's own.
- The overloads of `__get__` tell a type checker which of the two it is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

if TYPE_CHECKING:
    from wakeful.client.client import AsyncClient, Client

P = ParamSpec("P")
T = TypeVar("T")


class Declared(Generic[P, T]):
    def __init__(self, declared: Callable[Concatenate[Any, P], T]) -> None:
        functools.update_wrapper(self, declared)  # type: ignore[arg-type]
        self._declared = declared
        whole = inspect.signature(declared)
        self.name = declared.__name__
        self.signature = whole.replace(parameters=list(whole.parameters.values())[1:])

    def said(self, arguments: tuple[Any, ...], parameters: dict[str, Any]) -> dict[str, Any]:
        """The parameters by their names, without those that were left out."""
        return dict(self.signature.bind(*arguments, **parameters).arguments)

    def bound(self, call: Callable[..., Any]) -> Any:
        """As a method looks: its name, what it is for and what it takes."""
        functools.update_wrapper(call, self._declared)
        call.__signature__ = self.signature  # type: ignore[attr-defined]
        return call


class asked(Declared[P, T]):
    """A method that asks for the operation of its name."""

    @property
    def keyed(self) -> bool:
        """Whether it may be asked for twice and happens once."""
        return "key" in self.signature.parameters

    @overload
    def __get__(self, client: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, client: Client, owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: Any) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: Any) -> Any:
        if client is None:
            return self

        def call(*arguments: Any, **parameters: Any) -> Any:
            said = self.said(arguments, parameters)
            return client._awaited(client._asking.ask(self.name, said, keyed=self.keyed))

        return self.bound(call)


class streamed:
    """A method that gives one piece after another, as they come; `given` gives them, whoever waits for them."""

    def __init__(self, given: Callable[..., AsyncGenerator[Any, None]]) -> None:
        self._given = given

    def __call__(self, declared: Callable[Concatenate[Any, P], T]) -> Stream[P, T]:
        return Stream(declared, self._given)


class Stream(Declared[P, T]):
    def __init__(
        self, declared: Callable[Concatenate[Any, P], T], given: Callable[..., AsyncGenerator[Any, None]]
    ) -> None:
        super().__init__(declared)
        self._given = given

    @overload
    def __get__(self, client: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, client: Client, owner: Any) -> Callable[P, Generator[T, None, None]]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: Any) -> Callable[P, AsyncGenerator[T, None]]: ...
    def __get__(self, client: Any, owner: Any) -> Any:
        if client is None:
            return self

        def call(*arguments: Any, **parameters: Any) -> Any:
            said = self.said(arguments, parameters)
            return client._iterated(self._given(client._asking, **said))

        return self.bound(call)
