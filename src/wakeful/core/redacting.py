"""A value without its secrets, however deep they stand in it; who knows what is secret is the caller's affair.

Law: what is JSON stays JSON. A number that is a secret becomes a text, since no number stands for "hidden".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from wakeful.core.items import NewItem, Observation

Hide = Callable[[str], str]


def texts_in(value: Any) -> Iterator[str]:
    """Every text and number in it, at any depth."""
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            rest += each.keys()
            rest += each.values()
        elif isinstance(each, (list, tuple)):
            rest += each
        elif each is not None and not isinstance(each, bool):
            yield str(each)


def without(value: Any, hide: Hide) -> Any:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        return {without(key, hide): without(each, hide) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [without(each, hide) for each in value]
    if value is None or isinstance(value, bool):
        return value
    written = str(value)
    hidden = hide(written)
    return value if hidden == written else hidden


def redacted_json(text: str, hide: Hide) -> str:
    """JSON as it is kept; as it was written where there is nothing to hide."""
    return text if hide(text) == text else json.dumps(without(json.loads(text), hide), ensure_ascii=False)


def redacted_item(item: NewItem, hide: Hide) -> NewItem:
    """What is an item already. Its key stays: what comes again is the same."""
    return replace(
        item,
        subject=hide(item.subject),
        body=hide(item.body),
        metadata=redacted_json(item.metadata, hide),
        payload=None if item.payload is None else redacted_json(item.payload, hide),
        tags=tuple(map(hide, item.tags)),
    )


def redacted_observation(seen: Observation, hide: Hide) -> Observation:
    """Its fingerprint stays, and with it whether it is news."""
    subject, body = hide(seen.subject), hide(seen.body)
    return seen if (subject, body) == (seen.subject, seen.body) else replace(seen, subject=subject, body=body)
