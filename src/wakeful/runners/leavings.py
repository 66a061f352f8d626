"""Who holds a run, by what it wrote of itself; and ending what a guardian that was killed left behind."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from wakeful.runners.cage import Cage
from wakeful.runners.processes import boot_id, is_zombie, marked, signal_all, start_time
from wakeful.runners.protocol import RESULT, STARTED

_PATIENCE = 5.0
_STEP = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What `started` says: a guardian by pid, start time and boot; or a veto."""

    veto: bool = False
    pid: int = 0
    start_time: int = 0
    boot_id: str = ""
    cage: dict[str, str] = field(default_factory=dict)

    def alive(self) -> bool:
        """A number alone proves nothing: it must be the same process of the same boot."""
        same = self.pid > 0 and self.boot_id == boot_id() and start_time(self.pid) == self.start_time
        return same and not is_zombie(self.pid)

    def handle(self) -> int | None:
        """A process handle, if it is alive; looked at again behind the handle, where the number cannot change hands."""
        if not self.alive():
            return None
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return None
        if self.alive():
            return handle
        os.close(handle)
        return None


def identify(folder: Path) -> Identity | None:
    """Who created `started`; None while nobody has. What cannot be read is somebody's, but nobody alive."""
    try:
        told = json.loads((folder / STARTED).read_bytes())
        return Identity(
            veto=bool(told.get("veto")),
            pid=int(told.get("pid", 0)),
            start_time=int(told.get("start_time", 0)),
            boot_id=str(told.get("boot_id", "")),
            cage={str(kind): str(path) for kind, path in dict(told.get("cage", {})).items()},
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError, TypeError):
        return Identity()


def end_leavings(folder: Path, who: Identity | None) -> bool:
    """End all that is left of a run without a guardian, by its cage and by the marker in its environment.

    Whether nothing is left. A cage of an earlier boot is not ours: its name may have been given again.
    """
    cage = Cage(who.cage) if who is not None and who.boot_id == boot_id() else Cage({})
    marker = str((folder / RESULT).absolute()).encode()
    until = time.monotonic() + _PATIENCE
    while True:
        cage.kill()
        found = {*cage.inhabitants(), *marked(marker)}
        left = [pid for pid in found if not is_zombie(pid)]
        if not left or time.monotonic() > until:
            break
        signal_all(list(found), signal.SIGKILL)
        time.sleep(_STEP)
    cage.remove()
    return not left
