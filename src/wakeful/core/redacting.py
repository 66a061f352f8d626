"""A value without its secrets, however deep they stand in it; who knows what is secret is the caller's affair.

Law: what is JSON stays JSON. A number that is a secret becomes a text, since no number stands for "hidden".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from wakeful.core.items import NewItem, Observation
from wakeful.core.runs import Ending, TaskEnd

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


def redacted_ending(ending: Ending, hide: Hide) -> Ending:
    """What a run said of itself; the very same where there is nothing to hide."""
    result = ending.result
    told = () if result is None else (result.summary, result.error, result.value)
    said = "\n".join(filter(None, (ending.output, ending.printed, *told)))
    if not said or hide(said) == said:
        return ending
    if result is not None:
        error = None if result.error is None else hide(result.error)
        value = None if result.value is None else _redacted_value(result.value, hide)
        result = replace(result, summary=hide(result.summary), error=error, value=value)
    return replace(ending, output=hide(ending.output), printed=hide(ending.printed), result=result)


def redacted_end(end: TaskEnd, hide: Hide) -> TaskEnd:
    ending, result = redacted_ending(end.ending, hide), end.result
    if result is not None:
        result = _redacted_value(result, hide)
    unchanged = ending is end.ending and result == end.result
    return end if unchanged else replace(end, ending=ending, result=result)


def _redacted_value(text: str, hide: Hide) -> str:
    """A text, or JSON, which stays that."""
    hidden = hide(text)
    if hidden == text or not text.lstrip().startswith(("{", "[")):
        return hidden
    try:
        return json.dumps(without(json.loads(text), hide), ensure_ascii=False)
    except (ValueError, RecursionError):
        return hidden
