"""What a peer's own command line imports: its application, made for the context of this process."""

from __future__ import annotations

from benchmarks.peers.peer import context
from benchmarks.peers.roster import peer_of

application = peer_of(context()).application()
# dramatiq looks for a broker by this name.
broker = application
