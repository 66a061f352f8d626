"""A fleet file that may be edited while the fleet is at work.

Laws:
- A broken edit keeps the last good fleet, and shows what is wrong with the edit.
- A change is noticed by looking at every file that was read, and at every file that was missed.
- The store is not changed under a fleet at work: another one in the file waits for a restart, and that is said.
"""

from __future__ import annotations

import logging
from pathlib import Path

from wakeful.core.agents import Fleet
from wakeful.fleet.diagnostics import Diagnostic, Severity
from wakeful.fleet.load import Loaded, load_fleet

log = logging.getLogger("wakeful.fleet")

_RESTART = ("STORE was changed, and this engine keeps to the one it began with", "restart it: wakeful stop, wakeful up")


class FleetFile:
    """Reads at once; afterwards `refresh` between beats is enough."""

    def __init__(self, path: str | Path, *, run: str | None = None) -> None:
        self.path = Path(path)
        self._run = run
        self._loaded = load_fleet(self.path, run=run)
        self._good: Fleet | None = self._loaded.fleet
        self._store: str | None = None
        self._told: str | None = None

    def keep_to(self, store: str) -> None:
        """The store that is in use, whatever the file comes to say."""
        self._store = store

    @property
    def fleet(self) -> Fleet | None:
        """The last good version; None as long as there was none."""
        return self._good

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What is wrong with the file as it is now, which may be a broken edit of the version in use."""
        if self._moved is None:
            return self._loaded.diagnostics
        return (*self._loaded.diagnostics, Diagnostic(str(self.path), 1, 1, Severity.warning, *_RESTART))

    @property
    def _moved(self) -> str | None:
        """Another store than the one that is in use."""
        named = self._good.store if self._good is not None else None
        return named if self._store is not None and named != self._store else None

    @property
    def broken(self) -> bool:
        return self._loaded.broken

    def folders(self) -> set[Path]:
        """Where a change would be seen: the folders of every file that was read or missed."""
        return {Path(path).absolute().parent for path in self._loaded.traces.seen} | {self.path.absolute().parent}

    def changed(self) -> bool:
        return self._loaded.traces.changed()

    def refresh(self) -> bool:
        """Reads again if anything changed; True when there is a new fleet to work with."""
        if not self.changed():
            return False
        loaded: Loaded = load_fleet(self.path, run=self._run)
        self._loaded = loaded
        if loaded.fleet is None or _same(loaded.fleet, self._good):
            return False
        self._good = loaded.fleet
        if self._moved is not None and self._moved != self._told:
            log.error("%s: %s (%s)", self.path, *_RESTART)
        self._told = self._moved
        return True


def _same(fleet: Fleet, known: Fleet | None) -> bool:
    """Also in who declares what, which makes no agent a different one but is told."""
    return (
        known is not None
        and fleet == known
        and all(one.origins == other.origins for one, other in zip(fleet.agents, known.agents, strict=True))
    )
