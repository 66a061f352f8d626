"""Why wakeful is behind a peer in a column, where it is: written by hand, after a look at where the time goes."""

from __future__ import annotations

from benchmarks.peers.peer import Peer

_WHY: dict[tuple[str, str], str] = {}
_UNKNOWN = "Not explained yet."


def why(peer: type[Peer], column: str) -> str:
    return _WHY.get((peer.__name__, column), _UNKNOWN)
