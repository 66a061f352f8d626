"""The log of a store file goes into the file, now and then and at the end; the sums of its pages first: see `pages`."""

from __future__ import annotations

from pathlib import Path

import apsw

from wakeful.store.pages import Sums

# How many pages the log grows by before it goes into the file.
CHECKPOINT = 1_000


class Filing:
    def __init__(self, path: Path, connection: apsw.Connection, *, summed: bool) -> None:
        """`summed` is whether there are sums of that file from before."""
        self._sums = Sums(path, connection.pragma("page_size"))
        self._due = CHECKPOINT
        # How many frames are committed; of a log that was there before, SQLite knows.
        self._frames, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        if summed:
            self._sums.mark(in_use=True)
        else:
            self._sums.begin()
        self.follow(connection)

    def follow(self, connection: apsw.Connection) -> None:
        self._connection = connection
        # Were SQLite to do it when it is closed, the sums would be left behind.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_wal_hook(self._logged)

    def _logged(self, connection: apsw.Connection, name: str, length: int) -> int:
        """After a commit: the log has so many pages."""
        self._frames = length
        if length >= self._due:
            whole = self._file(apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._due = CHECKPOINT if whole else length + CHECKPOINT
        return apsw.SQLITE_OK

    def _file(self, how: int) -> bool:
        """Whether all of the log is in the file now; with a disk in trouble it stays where it is, and is as safe."""
        try:
            self._sums.note(self._frames)
            logged, filed = self._connection.wal_checkpoint(mode=how)
        except (OSError, apsw.Error):
            return False
        return logged == filed

    def close(self) -> None:
        if self._file(apsw.SQLITE_CHECKPOINT_TRUNCATE):
            self._sums.mark(in_use=False)
            # It finds nothing more to do, and takes the log away.
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        self._sums.close()
