"""The only module of the audit that reads: every table page by page, all of one moment.

Law: after each page whoever waits for the processor goes first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from wakeful.store.protocol import Audited

Row = dict[str, Any]
# Told of a table, and of how many of its rows were looked at.
Progress = Callable[[str, int], None]

PAGE = 1000


class Pages:
    def __init__(self, store: Audited, progress: Progress | None = None) -> None:
        self._store = store
        self._progress = progress or (lambda table, rows: None)
        self.counts: dict[str, int] = {}

    def last_number(self, table: str) -> int | None:
        return self._store.last_number(table)

    def gaps_until(self, table: str) -> int:
        return self._store.gaps_until(table)

    def of(self, table: str) -> Iterator[Row]:
        seen, last = 0, None
        while page := self._store.kept(table, after=last, limit=PAGE):
            yield from page
            seen, last = seen + len(page), page[-1]
            self._progress(table, seen)
            time.sleep(0)
            if len(page) < PAGE:
                break
        self.counts[table] = seen
