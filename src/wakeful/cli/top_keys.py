"""What a key does: the state before, the key and what was seen give the state after, and what is to be asked for.

Laws:
- Pure: nothing is asked here. While a line is typed, keys are text; a paste is text there and nothing anywhere else.
- What lets the whole fleet go, and what ends a run, is asked for twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from wakeful.cli.output import one_line
from wakeful.cli.top_state import (
    CAUSES,
    FILTER,
    FLEET,
    HELP,
    KILL,
    LOG,
    PAUSE_FOR,
    PAUSE_REASON,
    QUIT,
    REDRAW,
    RESUME_FLEET,
    SORTS,
    STREAMS,
    WAKE,
    WHY,
    Act,
    Ask,
    Prompt,
    Seen,
    State,
)
from wakeful.core.durations import read_duration
from wakeful.core.errors import Mistake

LONGEST_LINE = 500
PASTE = "paste:"
BACK = ("q", "escape", "left", "backspace")

Turn = tuple[State, Act]


def press(state: State, key: str, seen: Seen) -> Turn:
    """`key` is one character, or the name of a key that has none; what was pasted comes as one `paste:…`."""
    if key == "ctrl-l":
        return state, REDRAW
    if state.prompt is not None:
        return _typed(state, state.prompt, key)
    if key.startswith(PASTE):
        return replace(state, said="what was pasted is left alone: no line is being typed", said_badly=True), None
    state = replace(state, said="", said_badly=False)
    return _on_fleet(state, key, seen) if state.view == FLEET else _on_page(state, key, seen)


# ---- the fleet


def _on_fleet(state: State, key: str, seen: Seen) -> Turn:
    if key in _MOVES:
        return _moved(state, _MOVES[key], seen), None
    if key in FLEET_KEYS:
        return FLEET_KEYS[key](state, seen)
    if key not in AGENT_KEYS:
        return state, None
    if not state.selected or seen.row is None:
        return replace(state, said="no agent is selected", said_badly=True), None
    return AGENT_KEYS[key](state, seen)


_MOVES: dict[str, Callable[[int, int, int], int]] = {
    "up": lambda at, room, last: at - 1,
    "down": lambda at, room, last: at + 1,
    "k": lambda at, room, last: at - 1,
    "j": lambda at, room, last: at + 1,
    "page-up": lambda at, room, last: at - room,
    "page-down": lambda at, room, last: at + room,
    " ": lambda at, room, last: at + room,
    "home": lambda at, room, last: 0,
    "end": lambda at, room, last: last,
    "g": lambda at, room, last: 0,
    "G": lambda at, room, last: last,
}


def _moved(state: State, move: Callable[[int, int, int], int], seen: Seen) -> State:
    if not seen.names:
        return state
    at = seen.names.index(state.selected) if state.selected in seen.names else 0
    last = len(seen.names) - 1
    return replace(state, selected=seen.names[min(max(move(at, seen.room, last), 0), last)])


def _sorted(state: State, seen: Seen) -> Turn:
    then = SORTS[(SORTS.index(state.sort) + 1) % len(SORTS)]
    return replace(state, sort=then, backwards=False, first=0), None


def _turned(state: State, seen: Seen) -> Turn:
    return replace(state, backwards=not state.backwards, first=0), None


def _unfiltered(state: State, seen: Seen) -> Turn:
    return replace(state, filter=""), None


def _asked_for(asks: str) -> Callable[[State, Seen], Turn]:
    def begin(state: State, seen: Seen) -> Turn:
        return replace(state, prompt=Prompt(asks)), None

    return begin


def _filtering(state: State, seen: Seen) -> Turn:
    return replace(state, prompt=Prompt(FILTER, text=state.filter, before=state.filter)), None


def _asked_of_one(asks: str) -> Callable[[State, Seen], Turn]:
    def begin(state: State, seen: Seen) -> Turn:
        return replace(state, prompt=Prompt(asks, agent=state.selected)), None

    return begin


def _killing(state: State, seen: Seen) -> Turn:
    run = seen.row["run"] if seen.row else None
    if run is None:
        return replace(state, said=f"{one_line(state.selected)} has no run under way", said_badly=True), None
    return replace(state, prompt=Prompt(KILL, agent=state.selected, run=run)), None


def _opened(view: str) -> Callable[[State, Seen], Turn]:
    def open_page(state: State, seen: Seen) -> Turn:
        line = None if view == LOG else 0
        return replace(state, view=view, page_of=state.selected, line=line, run=None, stream=STREAMS[0]), None

    return open_page


def _ticked(state: State, seen: Seen) -> Turn:
    return state, Ask("tick", {"agent": state.selected}, f"asking for a beat of {one_line(state.selected)}…")


def _resumed(state: State, seen: Seen) -> Turn:
    return state, Ask("resume_agent", {"agent": state.selected}, f"resuming {one_line(state.selected)}…")


FLEET_KEYS: dict[str, Callable[[State, Seen], Turn]] = {
    "q": lambda state, seen: (state, QUIT),
    "escape": _unfiltered,
    "/": _filtering,
    "s": _sorted,
    "S": _turned,
    "P": _asked_for(PAUSE_FOR),
    "R": _asked_for(RESUME_FLEET),
    "?": _opened(HELP),
    "h": _opened(HELP),
}
AGENT_KEYS: dict[str, Callable[[State, Seen], Turn]] = {
    "p": _asked_of_one(PAUSE_FOR),
    "r": _resumed,
    "t": _ticked,
    "w": _asked_of_one(WAKE),
    "x": _killing,
    "l": _opened(LOG),
    "enter": _opened(LOG),
    "right": _opened(LOG),
    "y": _opened(WHY),
}


# ---- a page: a log, a why, the help


def _on_page(state: State, key: str, seen: Seen) -> Turn:
    if key in BACK or (state.view == HELP and key in ("?", "h")):
        return replace(state, view=FLEET), None
    if key in _MOVES:
        return replace(state, line=_scrolled(state, key, seen)), None
    if state.view == LOG:
        return _on_log(state, key, seen), None
    if state.view == WHY and key == "c":
        return replace(state, cause=CAUSES[(CAUSES.index(state.cause) + 1) % len(CAUSES)], line=0), None
    return state, None


def _scrolled(state: State, key: str, seen: Seen) -> int | None:
    """The new first line; at the end of a log it stays there as it grows."""
    last = max(seen.lines - seen.room, 0)
    at = last if state.line is None else min(state.line, last)
    then = max(_MOVES[key](at, max(seen.room - 1, 1), last), 0)
    if then < last:
        return then
    return None if state.view == LOG else last


def _on_log(state: State, key: str, seen: Seen) -> State:
    if key == "e":
        other = STREAMS[1 - STREAMS.index(state.stream)]
        return replace(state, stream=other, line=None)
    if key == "n":
        return replace(state, run=seen.newest_run, line=None)
    return state


# ---- a line that is typed


def _typed(state: State, prompt: Prompt, key: str) -> Turn:
    if key == "escape":
        # Of the filter, what was there before comes back.
        kept = prompt.before if prompt.asks == FILTER else state.filter
        return replace(state, prompt=None, filter=kept), None
    if key == "enter":
        return _entered(state, prompt)
    if prompt.asks in (RESUME_FLEET, KILL):
        return _answered(state, prompt, key)
    text = _edited(prompt.text, key)
    narrowed = text if prompt.asks == FILTER else state.filter
    return replace(state, prompt=replace(prompt, text=text, problem=""), filter=narrowed), None


def _edited(text: str, key: str) -> str:
    if key in ("backspace", "ctrl-h"):
        return text[:-1]
    if key == "ctrl-u":
        return ""
    if key == "ctrl-w":
        return text.rstrip().rpartition(" ")[0]
    if key.startswith(PASTE):
        key = one_line(key.removeprefix(PASTE), LONGEST_LINE)
    elif len(key) != 1 or not key.isprintable():
        return text
    return (text + key)[:LONGEST_LINE]


def _answered(state: State, prompt: Prompt, key: str) -> Turn:
    """Anything but y is no."""
    state = replace(state, prompt=None)
    if key not in ("y", "Y"):
        return replace(state, said="nothing was changed"), None
    if prompt.asks == KILL:
        return state, Ask("kill", {"run": prompt.run}, f"ending run {prompt.run}…")
    return state, Ask("resume", {}, "resuming the fleet…")


def _entered(state: State, prompt: Prompt) -> Turn:
    if prompt.asks in (RESUME_FLEET, KILL):
        return _answered(state, prompt, "")
    text = prompt.text.strip()
    if prompt.asks == PAUSE_FOR:
        return _lasting(state, prompt, text), None
    state = replace(state, prompt=None)
    if prompt.asks == PAUSE_REASON:
        parameters = {"reason": text, "duration": prompt.duration}
        if not prompt.agent:
            return state, Ask("pause", parameters, "pausing the fleet…")
        return state, Ask("pause_agent", {"agent": prompt.agent, **parameters}, f"pausing {one_line(prompt.agent)}…")
    if prompt.asks == WAKE:
        waking = {"agent": prompt.agent, "body": text or None}
        return state, Ask("wake", waking, f"waking {one_line(prompt.agent)}…")
    return state, None


def _lasting(state: State, prompt: Prompt, text: str) -> State:
    """A duration that is none is said while it can still be mended."""
    try:
        if text:
            read_duration(text)
    except Mistake as mistake:
        return replace(state, prompt=replace(prompt, problem=f"{mistake.reason} ({mistake.remedy})"))
    return replace(state, prompt=Prompt(PAUSE_REASON, agent=prompt.agent, duration=text or None))
