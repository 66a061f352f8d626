"""How every list is answered: one page, and where the next one begins."""

from __future__ import annotations

from typing import Generic, TypedDict, TypeVar

T = TypeVar("T")


class Page(TypedDict, Generic[T]):
    """One page of a list. `next`, where it is not null, is the `cursor` of the next one."""

    items: list[T]
    next: int | None


class NamedPage(TypedDict, Generic[T]):
    """One page of a list whose cursor is a text."""

    items: list[T]
    next: str | None
