"""The process of a worker that has no command line of its own; with `prepare` it makes the tables and leaves."""

from __future__ import annotations

import os
import sys

from benchmarks.peers.peer import context, quiet
from benchmarks.peers.roster import peer_of

if __name__ == "__main__":
    quiet()
    peer = peer_of(context())
    if "prepare" in sys.argv[1:]:
        peer.prepare()
        sys.stdout.flush()
        # Threads that a library has left behind must not keep us.
        os._exit(0)
    peer.work()
