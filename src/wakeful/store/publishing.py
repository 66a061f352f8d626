"""What is kept of a run's output in the store, for those who cannot read the folder that it lies in.

It only grows, by its run's holder alone, in pieces of whatever size; it is read by places, whatever the pieces were.
"""

from __future__ import annotations

from wakeful.core.errors import Unknown
from wakeful.store.base import SqlBase


class Publishing(SqlBase):
    def keep_output(self, run: int, stream: str, data: bytes) -> None:
        with self.session.transaction("keep_output"):
            if not data:
                return
            try:
                self.session.run("put_output", run=run, stream=stream, data=data)
            except self.session.broken as error:
                if self.session.unreferenced(error):
                    raise Unknown(f"no run {run}") from error
                raise

    def output(self, run: int, stream: str, offset: int, limit: int) -> tuple[bytes, int]:
        reader, whose = self.session.reader(), {"run": run, "stream": stream}
        with reader.snapshot():
            row = reader.one("output_size", **whose)
            size = 0 if row is None else int(row["size"])
            since = max(size + offset, 0) if offset < 0 else offset
            until = min(since + limit, size)
            rows = reader.all("output_pieces", **whose, since=since, until=until) if since < until else []
        if not rows:
            return b"", size
        first = rows[0]["start"]
        return b"".join(row["data"] for row in rows)[since - first : until - first], size
