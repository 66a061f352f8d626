"""A list to its end, page after page, as it is iterated."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable
from typing import Any


async def to_the_end(
    listing: Callable[..., Any], arguments: tuple[Any, ...], parameters: dict[str, Any]
) -> AsyncGenerator[Any, None]:
    """`next` goes on as `after`; in a list that begins with the newest, as `before`."""
    known = inspect.signature(listing).parameters
    onwards = "after" if "after" in known and parameters.get("before") is None else "before"
    while True:
        page = listing(*arguments, **parameters)
        if inspect.isawaitable(page):
            page = await page
        for item in page["items"]:
            yield item
        if page["next"] is None:
            return
        parameters = {**parameters, onwards: page["next"]}
