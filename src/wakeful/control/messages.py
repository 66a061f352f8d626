"""What a message carries, and how messages are told: with the run that sent them and the one that was shown them.

Law: metadata is the sender's own: a JSON object of a bounded size, kept and told as data, which means nothing to us.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from wakeful.control.rows import Row, chain_row, message_row
from wakeful.core.codec import write_time
from wakeful.core.errors import Mistake
from wakeful.core.items import Item, NewItem
from wakeful.core.wording import readable
from wakeful.store.protocol import Store

# What the files of a watched folder are mirrored as.
FOLDER = "inbox"
# In bytes, as it is written; a payload belongs into the body.
MOST_METADATA = 16_384


def written_metadata(given: Any) -> str:
    if given is None:
        return "{}"
    if not isinstance(given, dict):
        raise Mistake(f"metadata is a JSON object, found a {type(given).__name__}", 'write {"ticket": "A-7"}')
    try:
        written = json.dumps(given, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Mistake(f"the metadata cannot be written as JSON: {problem}", "use texts, numbers and lists") from None
    size = len(readable(written, "the metadata").encode())
    if size > MOST_METADATA:
        raise Mistake(
            f"the metadata has {size:,} bytes, and more than {MOST_METADATA:,}",
            "put what is larger into the body, or name a file",
        )
    return written


def message_rows(store: Store, items: Sequence[Item], now: datetime) -> list[Row]:
    shown = store.shown_in([item.id for item in items]) if items else {}
    chains = _chains(store, {item.by_run for item in items if item.by_run is not None})
    return [message_row(item, now, shown.get(item.id), chains.get(item.by_run or 0)) for item in items]


def sent_message(item: NewItem, id: int, now: datetime) -> Row:
    """Of a message that was recorded just now and rings for nobody, the same without looking at it again."""
    return {
        "id": id,
        "from": item.sender,
        "to": item.agent,
        "subject": item.subject,
        "body": item.body,
        "type": item.type.value,
        "priority": item.priority.value,
        "origin": item.origin.value,
        "state": "open",
        "shown_in": None,
        "created_at": write_time(now),
        "metadata": json.loads(item.metadata),
        "reply_to": None,
        "thread": id,
        "run_id": None,
        "chain": None,
        "snoozed_until": None,
        "unread": True,
        "unanswered": 0,
        "source": item.source,
        "closed_at": None,
    }


def _chains(store: Store, runs: Iterable[int]) -> dict[int, Row]:
    found = {}
    for run in runs:
        row = store.run(run)
        wake = store.wake(row.wake) if row else None
        if wake is not None:
            found[run] = chain_row(wake.wake)
    return found
