"""Everything that is kept, as it is kept: what an audit reads.

Laws:
- Inside `still` all pages are of one moment. A reader neither waits for a writer nor holds one up.
- A page is found by its primary key, however much lies before it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = dict[str, Any]


class Audited(Protocol):
    def still(self) -> AbstractContextManager[None]:
        """What this thread reads inside was all true at one moment."""

    def kept(self, table: str, *, after: Row | None = None, limit: int = 1000) -> list[Row]:
        """The rows of a table in the order of its key, from behind the row `after` on, as they are stored. Of output,
        how much there is of each stream; of items not what people wrote."""

    def last_number(self, table: str) -> int | None:
        """Of events or items, the number of the newest that there ever was; None where numbers may have gaps."""

    def gaps_until(self, table: str) -> int:
        """Up to this number they came from another store, with the gaps that they had there."""
