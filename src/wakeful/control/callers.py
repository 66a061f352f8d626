"""Who asks: the operator, or an agent in the course of one of its runs. The sender is stamped from this, never told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from wakeful.core.errors import Forbidden as Forbidden
from wakeful.store.protocol import Store

T = TypeVar("T")
Claim = Callable[[Store, datetime], None]


def leave_to_others(store: Store, now: datetime) -> None:
    """To claim nothing: whoever is up will."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """`run` is None for the operator."""

    name: str
    run: int | None = None
    epoch: int | None = None
    # What is known of the token that the operator came with: who lasts longer than a request is asked for it again.
    seal: bytes | None = field(default=None, compare=False, repr=False)

    @property
    def is_operator(self) -> bool:
        return self.run is None


OPERATOR = Caller(name="operator")


class Beside(Protocol):
    """What the engine in this process, if there is one, can be asked without the store."""

    @property
    def leaving(self) -> bool:
        """Whether it is about to stop: it begins nothing more."""

    async def taking(self, write: Callable[[Claim], Awaitable[T]]) -> T:
        """What `write` admits it may claim for that engine in the same transaction; it is begun once written, also
        when the caller has given up."""

    def health(self) -> dict[str, object]:
        """Its heartbeat, its address, since when it is up, what it holds; ready or not, and why not."""

    async def reload(self) -> dict[str, object]:
        """Read the fleet file again now: what changed, and what is wrong with it."""

    def leave(self, *, drain: bool) -> None:
        """Begin to stop; with `drain` after the open runs have ended."""

    async def starts_settled(self) -> None:
        """Until every start that was under way when this was called has executed or been vetoed."""
