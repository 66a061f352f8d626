"""A run's own control group, where the system lets us make one: the surest way to end everything in it.

Laws:
- Where the hierarchy lies is discovered, never assumed: version 2 may be mounted under a subfolder beside version 1.
- `cgroup.kill` comes from version 2; the limit on processes from version 2 or 1; each is used where it can be had.
- Without any of it a cage is empty and says so; the guardian then ends the tree by walking it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

Mounts = dict[str, str]
PREFIX = "wakeful"


def discover(mountinfo: str, own: str) -> Mounts:
    """Our own folder in each hierarchy: 'v2' for version 2, the controller's name for version 1."""
    paths: Mounts = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(",") if controllers else ["v2"]:
            paths[name] = path
    found: Mounts = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, point = before.split(" ")[3:5]
        names = ["v2"] if kind == "cgroup2" else options.split(" ")[-1].split(",") if kind == "cgroup" else []
        for name in names:
            if name in paths and name not in found:
                inside = f"{paths[name]}/".startswith(f"{root.rstrip('/')}/")
                inner = os.path.relpath(paths[name], root) if inside else "."
                found[name] = os.path.normpath(os.path.join(point, inner))
    return found


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> bool:
    try:
        with open(path, "w") as file:
            file.write(text)
        return True
    except OSError:
        return False


def available() -> Mounts:
    return discover(_read("/proc/self/mountinfo"), _read("/proc/self/cgroup"))


def sweep(mounts: Mounts, alive: Callable[[int, int], bool]) -> None:
    """Remove the empty cages of guardians that are gone; one that is not empty refuses by itself."""
    for folder in mounts.values():
        try:
            names = [name.split("-") for name in os.listdir(folder) if name.startswith(f"{PREFIX}-")]
        except OSError:
            continue
        for parts in names:
            if (
                len(parts) == 3
                and parts[1].isdigit()
                and parts[2].isdigit()
                and not alive(int(parts[1]), int(parts[2]))
            ):
                Cage({"": os.path.join(folder, "-".join(parts))}).remove()


class Cage:
    """The folders that were made for one run."""

    def __init__(self, folders: dict[str, str]) -> None:
        self.folders = folders

    @classmethod
    def make(cls, mounts: Mounts, name: str) -> Cage:
        cage = cls({})
        for kind, file in (("v2", ""), ("pids", "pids.max"), ("memory", "memory.max")):
            if not cage._has("v2", file):
                cage._mkdir(mounts, kind, name)
        return cage

    def limit(self, processes: int, memory: int | None) -> None:
        for kind in ("v2", "pids"):
            self._limit(kind, "pids.max", str(processes))
        if memory is not None:
            self._limit("v2", "memory.max", str(memory))
            self._limit("memory", "memory.limit_in_bytes", str(memory))

    def _mkdir(self, mounts: Mounts, kind: str, name: str) -> bool:
        if kind not in mounts:
            return False
        folder = os.path.join(mounts[kind], name)
        try:
            os.mkdir(folder)
        except FileExistsError:
            pass
        except OSError:
            return False
        self.folders[kind] = folder
        return True

    def _limit(self, kind: str, file: str, value: str) -> None:
        if kind in self.folders:
            _write(os.path.join(self.folders[kind], file), value)

    def _has(self, kind: str, file: str) -> bool:
        return bool(file) and kind in self.folders and os.path.exists(os.path.join(self.folders[kind], file))

    @property
    def can_kill(self) -> bool:
        return self._has("v2", "cgroup.kill")

    def enter(self) -> None:
        """The calling process moves in, before it becomes the agent."""
        for folder in self.folders.values():
            _write(os.path.join(folder, "cgroup.procs"), "0")

    def kill(self) -> bool:
        """SIGKILL to everything inside, at one stroke; whether that could be done."""
        return self.can_kill and _write(os.path.join(self.folders["v2"], "cgroup.kill"), "1")

    def inhabitants(self) -> list[int]:
        for kind in ("v2", "pids", "memory"):
            if kind in self.folders:
                return [int(pid) for pid in _read(os.path.join(self.folders[kind], "cgroup.procs")).split()]
        return []

    def out_of_memory(self) -> bool:
        events = _read(os.path.join(self.folders["v2"], "memory.events")) if "v2" in self.folders else ""
        if "memory" in self.folders:
            events += _read(os.path.join(self.folders["memory"], "memory.oom_control"))
        lines = (line.split() for line in events.splitlines())
        return any(len(line) == 2 and line[0] == "oom_kill" and line[1] != "0" for line in lines)

    def remove(self) -> None:
        for folder in self.folders.values():
            try:
                os.rmdir(folder)
            except OSError:
                continue
