"""What goes on, as it is given to whoever iterates: the events of the fleet, and the output of a run."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from urllib.parse import urlencode

from wakeful.client.asking import Asking


async def hear(
    asking: Asking, *, after: int | None = None, agent: str | None = None, kinds: list[str] | None = None
) -> AsyncGenerator[Any, None]:
    said = {"after": after, "agent": agent, "kinds": ",".join(kinds) if kinds else None}
    target = "/v1/stream?" + urlencode({name: value for name, value in said.items() if value is not None})
    # The stream begins by telling where: whoever is cut off before the first event misses none.
    async with aclosing(asking.frames(target)) as frames:
        async for frame in frames:
            yield frame.data


async def follow(asking: Asking, run: int, *, stream: str = "stdout", offset: int = 0) -> AsyncGenerator[Any, None]:
    target = f"/v1/runs/{int(run)}/log?{urlencode({'stream': stream, 'offset': offset})}"
    async with aclosing(asking.frames(target)) as frames:
        async for frame in frames:
            if frame.event == "output":
                yield frame.data
