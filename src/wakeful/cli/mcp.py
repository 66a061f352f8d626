"""`wakeful mcp`: the tools of the fleet for a model, on the standard input and output.

Laws:
- Inside a run it speaks with the run's token, and may do what the run may; elsewhere it is the operator's, with an
  engine or without.
- Every call finds its own way to the fleet, and so follows an engine through its restart.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Any

import click

from wakeful.cli import connection
from wakeful.cli.complaints import Complaint
from wakeful.cli.place import Place, placed, refuse_nowhere

_RUN_TOKEN = re.compile(r"run\.([1-9][0-9]{0,17})\.", re.ASCII)


@click.command()
@placed
def mcp(place: Place) -> None:
    """Serve the tools of the fleet over MCP, on the standard input and output.

    To be started by whatever speaks MCP: give it the command `wakeful mcp`. Inside a run it acts as that run, elsewhere
    as the operator.
    """
    if not place.inside_run:
        refuse_nowhere(place)
    if sys.stdin.isatty():
        click.echo("This speaks MCP with a program, not with a person. End it with Ctrl-D.", err=True)
    from wakeful.mcp.stdio import serve

    serve(Asked(place))


class Asked:
    def __init__(self, place: Place) -> None:
        self._place = place
        # Without an engine each call holds the data folder for a moment, and they must not wait for each other there.
        self._turn = asyncio.Lock()
        self._agent: str | None = None

    async def whose(self) -> str | None:
        found = _RUN_TOKEN.match(self._place.token) if self._place.inside_run else None
        if found is not None and self._agent is None:
            self._agent = (await self.ask("show_run", run=int(found[1])))["agent"]
        return self._agent

    async def ask(self, operation: str, /, **parameters: Any) -> dict[str, Any]:
        from wakeful.core.errors import WakefulError, in_words
        from wakeful.mcp.tools import Refusal

        async with self._turn:
            try:
                return await asyncio.to_thread(connection.ask, self._place, operation, **parameters)
            except Complaint as complaint:
                raise Refusal(complaint.message) from None
            except WakefulError as error:
                raise Refusal(in_words(error)) from None
            except OSError as error:
                raise Refusal(f"the fleet cannot be reached: {error.strerror or error} (see wakeful doctor)") from None
