"""A peer: another wakeful, or another loop altogether, that leaves us a task.

Laws:
- A peer's token is made from the operator's, one way: it opens nothing else, and is another one when that is.
- Who a peer says it is, is what it says: its sender is `peer:ID`, which no agent and no operator can be called.
"""

from __future__ import annotations

import hashlib
import hmac

from wakeful.core.errors import Mistake
from wakeful.core.items import Kind, NewItem, Origin
from wakeful.core.tasks import read_key, scoped_key
from wakeful.core.wording import readable

# The role of whoever is to do it, the tag that it has, and the source that can be paused.
PEER_TODO = "peer-todo"
LONGEST_PEER = 100


def peer_token(operator: str) -> str:
    """Given to peers, so that they need not have the operator's."""
    return f"peer.{hmac.new(operator.encode(), PEER_TODO.encode(), hashlib.sha256).hexdigest()}"


def peer_todo(peer: str, name: str | None, message: str, key: str | None) -> NewItem:
    """The task that a peer asks for; for whoever takes tasks of that role."""
    who = _called(peer, "from") or ""
    if not who:
        raise Mistake("the peer does not say who it is", 'write "from": "…"')
    if not message.strip():
        raise Mistake("the message is empty", 'say what is to be done: "message": "…"')
    sender = f"peer:{who}"
    return NewItem(
        kind=Kind.task,
        role=PEER_TODO,
        sender=sender,
        origin=Origin.external,
        source=PEER_TODO,
        subject=f"Peer Todo from {_called(name, 'fromName') or who}",
        body=readable(message, "the message"),
        tags=(PEER_TODO, f"from-{who}"),
        dedupe=None if key is None else scoped_key(sender, read_key(key)),
    )


def _called(text: str | None, what: str) -> str:
    said = " ".join(readable(text, what).split())
    if len(said) > LONGEST_PEER:
        raise Mistake(f"{what} has more than {LONGEST_PEER} characters", "use a short name")
    return said
