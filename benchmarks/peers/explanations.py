"""Why wakeful is behind a peer in a column, where it is: written by hand, after a look at where the time goes.

Law: what was seen in a profile says so; what follows only from how things are built begins with "Presumably". Whoever
changes the way that is explained looks again.
"""

from __future__ import annotations

from benchmarks.peers.peer import Peer

_OVER_HTTP = (
    "A request over HTTP. In a profile of the engine's event loop (the writing thread not counted) about half went to "
    "the web framework, a third to `Control`, a fifth to the look at what is due after each commit."
)
_CHECKED = (
    "The fields of each task are read and checked in Python: `Control` took about twice the processor time of "
    "`Store.record` for the same batch."
)
_RECORDED = "Presumably the row itself: it has more columns and indexes than the peer's."
_ALONE = (
    "Presumably that a caller alone shares its commit with nobody, and changes thread twice, to the writer and back; "
    "`Control` made no difference that could be told from noise."
)
_SHARED = "Presumably each caller's own row, made in one process: one writer commits for all of them."
_HELD = (
    "Presumably what is kept: a task is leased, handed to a process that can be ended, and settled with its attempt, "
    "its result and its event, where the peer calls a function in its own process."
)
_WOKEN = (
    "Presumably the way: the task is committed, then decided and leased, then handed to another process; the peer has "
    "one process and at most one commit before the first line."
)
_AT_REST = "Presumably that an engine on a shared store says at intervals that it is there, for the other nodes."

_OF_ALL = {"callers": _SHARED, "drain": _HELD, "together": _HELD, "p50": _WOKEN, "p99": _WOKEN, "one": _ALONE}
_WHY: dict[str, dict[str, str]] = {
    "WakefulSqlite": {"one": _OVER_HTTP, "callers": _OVER_HTTP, "batch": f"JSON over HTTP. {_CHECKED}"},
    "EmbeddedSqlite": {"batch": _CHECKED},
    "RecordedSqlite": {"batch": _RECORDED},
    # The share of `Control` was looked at on SQLite only.
    "WakefulPostgres": {"batch": f"Presumably as on SQLite. {_CHECKED}", "idle": _AT_REST},
    "EmbeddedPostgres": {"batch": f"Presumably as on SQLite. {_CHECKED}", "idle": _AT_REST},
    "RecordedPostgres": {"batch": _RECORDED, "idle": _AT_REST},
}


def why(peer: type[Peer], column: str) -> str:
    return {**_OF_ALL, **_WHY.get(peer.__name__, {})}.get(column, "Not explained yet.")
