"""The public names of wakeful, pinned by a test: adding one is a promise, removing one a break.

Importing this package stays cheap, because the CLI starts here: a name that needs more than `core` is loaded
when it is asked for.
"""

from wakeful.core.errors import Busy, Conflict, Ended, Forbidden, Mistake, Outdated, Stale, Unknown, WakefulError

# As typing has it; but typing alone would take longer to load than all that is here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from wakeful.client.client import AsyncClient, Client
    from wakeful.run import Result, Run
del TYPE_CHECKING

__all__ = [
    "AsyncClient",
    "Busy",
    "Client",
    "Conflict",
    "Ended",
    "Forbidden",
    "Mistake",
    "Outdated",
    "Result",
    "Run",
    "Stale",
    "Unknown",
    "WakefulError",
    "__version__",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name in ("Result", "Run"):
        from wakeful import run

        return getattr(run, name)
    if name in ("AsyncClient", "Client"):
        from wakeful.client import client

        return getattr(client, name)
    raise AttributeError(f"module 'wakeful' has no attribute {name!r}")
