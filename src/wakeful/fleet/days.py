"""A lifecycle file: the shape of an agent's day, as states with their edges and gates.

Laws:
- START names the first state; without it the first heading is, with a warning.
- Every state has a NEXT (a lone state may leave it out and repeat for ever), every NEXT exists, every state
  is reached, and no state of several leads only to itself: an agent there would never leave it.
- A round in which every state waits for MIN-INTERVAL is an error: no state could use the agent's interval, so
  the pace belongs into INTERVAL. Where a calendar (WHEN) is among the gates it is a warning: a day may be made
  of hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from wakeful.core.cron import Schedule, parse_schedule
from wakeful.core.errors import Mistake
from wakeful.core.lifecycle import Kind, Lifecycle, State
from wakeful.core.names import read_name
from wakeful.core.windows import Window, parse_window
from wakeful.core.wording import quoted
from wakeful.fleet.diagnostics import Notes, Place
from wakeful.fleet.keys import ADVISORY, BY_NAME, LIFECYCLE_KEYWORDS, ORG_OWN, STATE_KEYS
from wakeful.fleet.org import Outline, Section
from wakeful.fleet.tree import Scalar, canonical, distinct, printed_key
from wakeful.fleet.values import count, duration

MOST_STATES = 1_000
MOST_REPEATS = 1_000_000


@dataclass(slots=True)
class _Draft:
    """One state as declared; `next` is None until it is known to exist."""

    title: Scalar
    kind: Kind = Kind.wake
    repeat: int = 1
    next: Scalar | None = None
    min_interval: timedelta | None = None
    when_schedule: Schedule | None = None
    when_window: Window | None = None
    broken: bool = False


def is_lifecycle(outline: Outline) -> bool:
    """Whether an org file is a lifecycle, not a fleet: it has START, or states and nothing of an agent."""
    if any(canonical(key.text) == "START" for key, _ in outline.keywords):
        return True
    used = {canonical(key.text) for section in outline.sections for key, _ in section.pairs}
    return bool(used & set(STATE_KEYS)) and not used & set(BY_NAME)


def build_lifecycle(outline: Outline, notes: Notes) -> Lifecycle | None:
    """The lifecycle, or None when the file has errors."""
    before = notes.errors
    start = _start(outline, notes)
    drafts: dict[str, _Draft] = {}
    for section in outline.sections:
        draft = _state(section, notes)
        if draft is None:
            continue
        if earlier := drafts.get(draft.title.text):
            name = quoted(draft.title.text)
            notes.error(
                draft.title,
                f"a second state {name}, first on line {earlier.title.line}",
                "rename one of them",
            )
            continue
        drafts[draft.title.text] = draft
    if not drafts and notes.errors == before:
        notes.error(Place(), "the lifecycle has no states", "add a heading such as * work")
    elif len(drafts) > MOST_STATES:
        notes.error(Place(), f"the lifecycle has more than {MOST_STATES} states", "a day needs a handful")
    if not drafts or len(drafts) > MOST_STATES:
        return None
    first = _resolve_start(start, drafts, notes)
    _check_edges(drafts, notes)
    if first is not None:
        _check_rounds(first, drafts, notes)
    if first is None or notes.errors > before:
        return None
    return Lifecycle(first, tuple(_finished(draft) for draft in drafts.values()))


def _start(outline: Outline, notes: Notes) -> Scalar | None:
    start = None
    keywords = [pair for pair in outline.keywords if canonical(pair[0].text) not in ORG_OWN]
    for name, key, value in distinct(keywords, notes):
        if name == "START" and isinstance(value, Scalar):
            start = value
            if value.empty:
                notes.error(key, "START has no value", "write the name of the first state")
        elif name in BY_NAME and name not in LIFECYCLE_KEYWORDS:
            notes.error(key, f"{printed_key(key)} belongs to a fleet, not to a lifecycle", "move it to the fleet file")
        elif name not in LIFECYCLE_KEYWORDS:
            near = notes.nearest(name, LIFECYCLE_KEYWORDS)
            notes.error(key, f"unknown key {printed_key(key)}", f"did you mean {near or 'START'}?")
    return start


def _state(section: Section, notes: Notes) -> _Draft | None:
    draft = _Draft(section.title)
    for name, key, value in distinct(section.pairs, notes):
        assert isinstance(value, Scalar)
        if name in ADVISORY:
            notes.warn(key, ADVISORY[name], "use MIN-INTERVAL for a gate, or remove it")
        elif name not in STATE_KEYS:
            _unknown(name, key, notes)
        elif value.empty:
            notes.error(value, f"{printed_key(key)} has no value", "give it one, or remove the line")
            draft.broken = True
        else:
            try:
                _take(draft, name, value)
            except Mistake as mistake:
                notes.mistake(value, mistake, printed_key(key))
                draft.broken = True
    try:
        read_name(section.title.text, "a state")
    except Mistake as mistake:
        notes.mistake(section.title, mistake)
        return None
    return draft


def _unknown(name: str, key: Scalar, notes: Notes) -> None:
    if name in BY_NAME:
        notes.error(key, f"{printed_key(key)} belongs to an agent, not to a state", "move it to the fleet file")
        return
    near = notes.nearest(name, STATE_KEYS)
    remedy = f"did you mean {near}?" if near else f"the keys of a state are {', '.join(STATE_KEYS)}"
    notes.error(key, f"unknown key {printed_key(key)}", remedy)


def _take(draft: _Draft, name: str, value: Scalar) -> None:
    match name:
        case "KIND":
            if value.text.lower() not in list(Kind):
                raise Mistake(f"expected wake or rem, found {quoted(value.text)}", "write wake or rem")
            draft.kind = Kind(value.text.lower())
        case "REPEAT":
            draft.repeat = cast(int, count(1, MOST_REPEATS)(value.text))
        case "NEXT":
            draft.next = value
        case "MIN-INTERVAL":
            draft.min_interval = duration(value.text)
        case "WHEN":
            # A window always has a colon in it, a schedule never.
            if ":" in value.text:
                draft.when_window = parse_window(value.text)
            elif len(value.text.split()) < 2 and not value.text.startswith("@"):
                raise Mistake(
                    f"expected hours or a schedule, found {quoted(value.text)}",
                    "write Mon-Fri 09:00-17:00 or 0 9 * * *",
                )
            else:
                draft.when_schedule = parse_schedule(value.text)


def _resolve_start(start: Scalar | None, drafts: dict[str, _Draft], notes: Notes) -> str | None:
    first = next(iter(drafts))
    if start is None:
        notes.warn(
            drafts[first].title,
            f"no START: the day begins at the first heading, {first}",
            f"write #+START: {first}",
        )
        return first
    if start.text in drafts:
        return start.text
    if not start.empty:
        near = notes.nearest(start.text, drafts)
        notes.error(start, f"START names no state: {quoted(start.text)}", f"write #+START: {near or first}")
    return None


def _check_edges(drafts: dict[str, _Draft], notes: Notes) -> None:
    for name, draft in drafts.items():
        if draft.next is None:
            if len(drafts) > 1 and not draft.broken:
                notes.error(draft.title, f"the state {name} has no NEXT", "name the state that follows it")
        elif draft.next.text not in drafts:
            near = notes.nearest(draft.next.text, drafts)
            remedy = f"did you mean {near}?" if near else f"the states are {', '.join(list(drafts)[:8])}"
            notes.error(draft.next, f"NEXT names no state: {quoted(draft.next.text)}", remedy)
        elif draft.next.text == name and len(drafts) > 1:
            notes.error(
                draft.next,
                f"NEXT of {name} is {name} itself: the agent would never leave it",
                "name another state",
            )


def _check_rounds(first: str, drafts: dict[str, _Draft], notes: Notes) -> None:
    """Which states are reached, and of those the ones the agent comes back to for ever."""
    order: dict[str, int] = {}
    name = first
    while name not in order:
        order[name] = len(order)
        onward = drafts[name].next
        if (onward is None and len(drafts) > 1) or (onward is not None and onward.text not in drafts):
            # The edge is told already; what lies beyond it is not known.
            return
        name = onward.text if onward else name
    for missed in drafts.keys() - order.keys():
        notes.error(
            drafts[missed].title,
            f"the state {missed} is never reached from {first}",
            "let a NEXT name it, or remove it",
        )
    around = [drafts[reached] for reached, index in order.items() if index >= order[name]]
    if any(draft.broken for draft in around):
        return
    if all(draft.min_interval or draft.when_schedule or draft.when_window for draft in around):
        _tell_gates(around, notes)
    if all(draft.kind is Kind.rem for draft in around):
        notes.warn(
            around[0].title,
            "every state of the round is rem: the agent is never called",
            "add a state of KIND wake",
        )


def _tell_gates(around: list[_Draft], notes: Notes) -> None:
    names = " -> ".join(draft.title.text for draft in around[:6])
    place = around[0].title
    if all(draft.min_interval for draft in around):
        notes.error(
            place,
            f"every state of the round {names} is gated by MIN-INTERVAL, so none keeps the agent's own pace",
            "leave one state without a gate, or set the agent's INTERVAL instead",
        )
    else:
        notes.warn(
            place,
            f"every state of the round {names} is gated: outside its hours the agent only waits",
            "leave one state without WHEN and MIN-INTERVAL if it should work in between",
        )


def _finished(draft: _Draft) -> State:
    return State(
        draft.title.text,
        kind=draft.kind,
        repeat=draft.repeat,
        next=draft.next.text if draft.next else draft.title.text,
        min_interval=draft.min_interval,
        when_schedule=draft.when_schedule,
        when_window=draft.when_window,
    )
