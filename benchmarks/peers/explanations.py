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
_RECORDED = (
    "The row itself. In a profile of batches of 1,000 on SQLite nearly half of the processor time went to making "
    "the row of each task in Python (28 values), a fifth to the insert with its indexes."
)
_ALONE = (
    "Presumably that a caller alone shares its commit with nobody, and changes thread twice, to the writer and back; "
    "`Control` made no difference that could be told from noise."
)
_SHARED = "Presumably each caller's own row, made in one process: one writer commits for all of them."
_KEPT = (
    "What is kept: a task is leased, handed to a process that can be ended, and settled with its attempt, its "
    "result and its share of four events, where the peer calls a function in its own process. "
)
_HELD = _KEPT + (
    "In a profile of a drain by three workers about four tenths of the processor time were the writing thread's "
    "(settling one shift, deciding on and claiming the next: some fifty statements for up to 32 tasks), a quarter"
    " the event loop's (briefings, the ends that come back, the log) and a third the workers'; the first two "
    "share one interpreter lock."
)
_HELD_BY_SERVER = _KEPT + (
    "In a profile of a drain by three workers nearly half of the processor time was the server's, and about half "
    "of that went to four statements: each task's row is updated when it is leased and when it is settled, its "
    "attempt is inserted and updated, with the indexes and foreign keys of both tables."
)
_WOKEN = (
    "The way: the task is committed, then found, decided and leased in a second commit, then handed to another "
    "process; the peer has one process and at most one commit before the first line."
)
_WOKEN_BY_SERVER = f"{_WOKEN} Counted on an idle engine, it waits for the server some twenty times on that way."
_AT_REST = "Presumably that an engine on a shared store says at intervals that it is there, for the other nodes."

_OF_ALL = {"callers": _SHARED, "drain": _HELD, "together": _HELD, "p50": _WOKEN, "p99": _WOKEN, "one": _ALONE}
_ON_A_SERVER = {
    "drain": _HELD_BY_SERVER,
    "together": _HELD_BY_SERVER,
    "p50": _WOKEN_BY_SERVER,
    "p99": _WOKEN_BY_SERVER,
    "idle": _AT_REST,
}
_WHY: dict[str, dict[str, str]] = {
    "WakefulSqlite": {"one": _OVER_HTTP, "callers": _OVER_HTTP, "batch": f"JSON over HTTP. {_CHECKED}"},
    "EmbeddedSqlite": {"batch": _CHECKED},
    "RecordedSqlite": {"batch": _RECORDED},
    # The share of `Control` was looked at on SQLite only.
    "WakefulPostgres": {**_ON_A_SERVER, "batch": f"Presumably as on SQLite. {_CHECKED}"},
    "EmbeddedPostgres": {**_ON_A_SERVER, "batch": f"Presumably as on SQLite. {_CHECKED}"},
    "RecordedPostgres": {**_ON_A_SERVER, "batch": f"Presumably as on SQLite. {_RECORDED}"},
}


def why(peer: type[Peer], column: str) -> str:
    return {**_OF_ALL, **_WHY.get(peer.__name__, {})}.get(column, "Not explained yet.")
