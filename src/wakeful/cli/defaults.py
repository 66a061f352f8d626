"""What the doctor says of defaults that somebody has switched off: who can reach the engine, and what agents may do.

Law: a default that is off is worth knowing, and no fault.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

from wakeful.cli.connection import is_held
from wakeful.cli.levels import Found, Level
from wakeful.cli.place import Place
from wakeful.cli.words import counted
from wakeful.core.agents import Agent
from wakeful.core.hooks import is_hook, read_hook

_MOST_NAMED = 5


def reach(place: Place) -> Found:
    """From where the engine can be asked; while none is up, from nowhere."""
    if not is_held(place):
        return Level.ok, "not looked at: no engine is at work"
    wide = _written(place, "wide")
    if not wide:
        return Level.ok, f"only this machine can ask, at {_written(place, 'url')}"
    if wide.startswith("https:"):
        return Level.ok, f"others can ask at {wide}, by TLS and with a token"
    remedy = "give up --certificate and --private-key, or use the loopback and a tunnel"
    return Level.warn, f"others can ask at {wide} without TLS: whoever is on that network can read the token", remedy


def rights(place: Place) -> Found:
    """Agents that keep the right to wake others after they have read what is from outside."""
    granted = [agent for agent in _agents(place) if agent.grants]
    if not granted:
        return Level.ok, "no agent wakes others or gives them tasks once it has read what is from outside"
    remedy = "take GRANT away where it is not needed"
    said = f"{_named(granted)} may wake others, or give them tasks, at the word of whoever writes to them (GRANT)"
    return Level.warn, said, remedy


def hooks(place: Place) -> Found:
    """Webhooks that are closed, since nobody could prove anything to them."""
    declared: dict[str, tuple[str, ...]] = {}
    for agent in _agents(place):
        for address in filter(is_hook, agent.events):
            hook = read_hook(address)
            declared[hook.name] = (*declared.get(hook.name, ()), *hook.secrets)
    shut = {name: names for name, names in declared.items() if not any(map(os.environ.get, names))}
    if not shut:
        return Level.ok, f"{counted(len(declared), 'webhook')}, each with a secret" if declared else "none is declared"
    name, names = next(iter(shut.items()))
    lack = f"{' and '.join(names)} is not set here" if names else "ON names no secret for it"
    more = f", and {len(shut) - 1} more" if len(shut) > 1 else ""
    remedy = "set the variable where wakeful up is started" if names else "add secret=VARIABLE to it"
    said = f"the webhook {name} is closed: {lack}{more}"
    return Level.warn, said, f"{remedy}; until then what is sent there is refused"


def guards(place: Place) -> Found:
    """Guards that bound nothing any more."""
    off = [agent for agent in _agents(place) if not agent.limits.cooldown]
    if not off:
        return Level.ok, "every agent has a cooldown"
    return Level.warn, f"{_named(off)} can be woken again at once (COOLDOWN 0)", "leave COOLDOWN out for 5 minutes"


def _agents(place: Place) -> tuple[Agent, ...]:
    from wakeful.fleet.load import find_fleet, load_fleet

    path = place.fleet or find_fleet()
    fleet = None if path is None else load_fleet(path, run=os.environ.get("WAKEFUL_RUN") or None).fleet
    return () if fleet is None else fleet.agents


def _named(agents: Iterable[Agent]) -> str:
    names = [agent.name for agent in agents]
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {counted(more, 'more agent')}" if more > 0 else "")


def _written(place: Place, name: str) -> str:
    try:
        with open(place.path("engine.json"), encoding="utf-8") as file:
            return str(json.load(file).get(name) or "")
    except (OSError, ValueError, AttributeError):
        return ""
