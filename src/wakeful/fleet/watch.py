"""A fleet file that may be edited while the fleet is at work.

Laws:
- A broken edit keeps the last good fleet, and shows what is wrong with the edit.
- A change is noticed by looking at every file that was read, and at every file that was missed.
"""

from __future__ import annotations

from pathlib import Path

from wakeful.core.agents import Fleet
from wakeful.fleet.diagnostics import Diagnostic
from wakeful.fleet.load import Loaded, load_fleet


class FleetFile:
    """Reads at once; afterwards `refresh` between beats is enough."""

    def __init__(self, path: str | Path, *, run: str | None = None) -> None:
        self.path = Path(path)
        self._run = run
        self._loaded = load_fleet(self.path, run=run)
        self._good: Fleet | None = self._loaded.fleet

    @property
    def fleet(self) -> Fleet | None:
        """The last good version; None as long as there was none."""
        return self._good

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What is wrong with the file as it is now, which may be a broken edit of the version in use."""
        return self._loaded.diagnostics

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
        if loaded.fleet is None or loaded.fleet == self._good:
            return False
        self._good = loaded.fleet
        return True
