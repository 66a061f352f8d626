"""The folder of a fleet file: the paths it names, and the lifecycles it reads.

Paths are relative to the fleet file and stay in the declaration as they were written; absolute ones and `..`
are allowed, because the fleet file is the operator's own. A definition must be there; a folder may come later.
"""

from __future__ import annotations

import os
import stat

from wakeful.core.errors import Mistake
from wakeful.core.lifecycle import Lifecycle
from wakeful.core.wording import quoted
from wakeful.fleet.days import build_lifecycle
from wakeful.fleet.diagnostics import Diagnostic, Notes
from wakeful.fleet.keys import Kept, Key, is_key
from wakeful.fleet.org import parse_org
from wakeful.fleet.reading import LIFECYCLE_LIMIT, Traces, failure, read_text


class Folder:
    def __init__(self, path: str, traces: Traces) -> None:
        self.path = path
        self.traces = traces
        self.errors = 0
        self._reports: list[Notes] = []
        self._lifecycles: dict[str, Lifecycle | None] = {}

    @property
    def states(self) -> int:
        """How many states the lifecycles have together."""
        return sum(len(lifecycle.states) for lifecycle in self._lifecycles.values() if lifecycle)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(diagnostic for notes in self._reports for diagnostic in notes.all())

    def check(self, key: Key, written: str) -> None:
        """Raises `Mistake` when the path cannot be what the key wants."""
        path = self.join(written)
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            if key.must_exist:
                self.traces.seen[path] = None
                raise Mistake(
                    f"the file {quoted(written)} does not exist",
                    "create it, or mend the path, which starts at the fleet file",
                ) from None
            return
        except (OSError, ValueError) as error:
            raise Mistake(f"{quoted(written)} cannot be reached: {failure(error)}", "mend the path") from None
        if key.path is Kept.file and not stat.S_ISREG(mode):
            found = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            raise Mistake(f"expected a file, and {quoted(written)} is {found}", "name a file")
        if key.path is Kept.folder and not stat.S_ISDIR(mode):
            raise Mistake(f"expected a folder, and {quoted(written)} is a file", "name a folder")
        if key.must_exist and not os.access(path, os.R_OK):
            raise Mistake(f"the file {quoted(written)} may not be read", "give read permission to it")

    def join(self, written: str) -> str:
        return os.path.join(self.path, written)

    def lifecycle(self, written: str) -> Lifecycle | None:
        """The lifecycle of a file, read once however many agents share it; None when it has errors."""
        path = self.join(written)
        if path not in self._lifecycles:
            notes = Notes(path)
            self._reports.append(notes)
            self._lifecycles[path] = read_lifecycle(path, notes, self.traces)
            self.errors += notes.errors
        return self._lifecycles[path]


def read_lifecycle(path: str, notes: Notes, traces: Traces) -> Lifecycle | None:
    text = read_text(path, LIFECYCLE_LIMIT, notes, traces)
    if text is None:
        return None
    return build_lifecycle(parse_org(text, notes, is_key), notes)
