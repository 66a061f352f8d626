"""A fleet file on disk into a `Fleet`, or into the list of everything that is wrong with it.

Law: no file, however broken or hostile, raises from here; a fleet is given only when there is no error. `now` is when
the week begins for which the schedules are looked at.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from wakeful.core.agents import Fleet
from wakeful.fleet.build import build_fleet
from wakeful.fleet.bunched import warn_bunches
from wakeful.fleet.days import build_lifecycle, is_lifecycle
from wakeful.fleet.diagnostics import Diagnostic, Notes, Place, Severity
from wakeful.fleet.draft import from_mapping, from_outline
from wakeful.fleet.folder import Folder
from wakeful.fleet.keys import is_key
from wakeful.fleet.org import Outline, parse_org
from wakeful.fleet.reading import MEGABYTE, ORG_LIMIT, YAML_LIMIT, Traces, read_text
from wakeful.fleet.tree import Draft, Mapping
from wakeful.fleet.yaml import parse_yaml

FLEET_NAMES = ("fleet.org", "fleet.yml")
YAML_SUFFIXES = (".yml", ".yaml", ".json")


@dataclass(frozen=True, slots=True)
class Loaded:
    """`kind` is `fleet` or `lifecycle`; `states` counts the states of all lifecycles that were read."""

    fleet: Fleet | None
    diagnostics: tuple[Diagnostic, ...]
    kind: str = "fleet"
    states: int = 0
    traces: Traces = field(default_factory=Traces, compare=False)

    @property
    def broken(self) -> bool:
        return any(diagnostic.severity is Severity.error for diagnostic in self.diagnostics)


def find_fleet(folder: str | Path = ".") -> Path | None:
    """The fleet file of a working folder, if there is one."""
    return next((path for name in FLEET_NAMES if (path := Path(folder) / name).exists()), None)


def load_fleet(path: str | Path, *, run: str | None = None, now: datetime | None = None) -> Loaded:
    """`run` is the command of `--run` or WAKEFUL_RUN, for agents that have none of their own."""
    return _load(str(path), run, now or datetime.now(UTC), lifecycle_allowed=False)


def check_file(path: str | Path, *, run: str | None = None, now: datetime | None = None) -> Loaded:
    """Like `load_fleet`, but a lifecycle given by itself is checked as a lifecycle."""
    return _load(str(path), run, now or datetime.now(UTC), lifecycle_allowed=True)


def _load(path: str, run: str | None, now: datetime, *, lifecycle_allowed: bool) -> Loaded:
    notes, traces = Notes(path), Traces()
    parsed = _parse(path, notes, traces)
    if parsed is None:
        return Loaded(None, notes.all(), traces=traces)
    if isinstance(parsed, Outline) and is_lifecycle(parsed):
        if lifecycle_allowed:
            lifecycle = build_lifecycle(parsed, notes)
            states = len(lifecycle.states) if lifecycle else 0
            return Loaded(None, notes.all(), "lifecycle", states, traces)
        notes.error(Place(), "this is a lifecycle, not a fleet", "name it as LIFECYCLE of an agent in a fleet file")
        return Loaded(None, notes.all(), traces=traces)
    folder = Folder(os.path.dirname(path), traces)
    draft = _draft(parsed, path, notes)
    fleet = build_fleet(draft, notes, folder, run)
    if fleet is not None:
        warn_bunches(draft, fleet, notes, now)
    return Loaded(fleet, notes.all() + folder.diagnostics(), states=folder.states, traces=traces)


def _draft(parsed: Outline | Mapping, path: str, notes: Notes) -> Draft:
    if isinstance(parsed, Outline):
        return from_outline(parsed, notes)
    return from_mapping(parsed, notes, os.path.basename(os.path.dirname(os.path.abspath(path))))


def _parse(path: str, notes: Notes, traces: Traces) -> Outline | Mapping | None:
    suffix = os.path.splitext(path)[1].lower()
    text = read_text(path, YAML_LIMIT if suffix in YAML_SUFFIXES else ORG_LIMIT, notes, traces)
    if text is None:
        return None
    if suffix == ".org" or (suffix not in YAML_SUFFIXES and text.lstrip().startswith(("*", "#+", ":"))):
        return parse_org(text, notes, is_key)
    if len(text) > YAML_LIMIT:
        notes.error(Place(), f"larger than {YAML_LIMIT // MEGABYTE} MB", "split it, or write a large fleet in org")
        return None
    return parse_yaml(text, notes)
