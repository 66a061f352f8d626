"""Who is who among processes: never by a number alone, for numbers are used again."""

from __future__ import annotations

import os


def boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name, which may itself hold anything; empty when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode().split()
    except (OSError, ValueError):
        return []


def start_time(pid: int) -> int:
    """In clock ticks since the machine booted; 0 when there is no such process."""
    fields = stat_fields(pid)
    return int(fields[19]) if len(fields) > 19 else 0


def is_zombie(pid: int) -> bool:
    fields = stat_fields(pid)
    return bool(fields) and fields[0] in ("Z", "X")


def descendants(root: int) -> list[int]:
    """All processes below `root`, children before grandchildren; zombies too, whose other threads may still live."""
    table = None if os.path.exists(f"/proc/{root}/task/{root}/children") else _parents()
    found: list[int] = []
    level = [root]
    while level:
        level = [child for parent in level for child in (_children(parent) if table is None else table.get(parent, ()))]
        found += level
    return found


def _children(pid: int) -> list[int]:
    """What each thread has forked, as the kernel keeps it: no search through everybody else."""
    children: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return children
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                children += map(int, file.read().split())
        except OSError:
            continue
    return children


def _parents() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = stat_fields(int(entry))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry))
    return children


def marked(marker: bytes) -> list[int]:
    """Processes whose environment holds the marker: what is left of a run whose guardian is gone."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    if marker in file.read():
                        found.append(int(entry))
            except OSError:
                continue
    return found


def signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def not_executed(name: str, error: BaseException) -> str:
    """Why, in words that do not name the last of many folders where it was looked for."""
    if "/" not in name and isinstance(error, FileNotFoundError) and os.fsdecode(error.filename).endswith(f"/{name}"):
        return f"cannot execute {name}: it is in no folder of PATH (./{name} would be the one in its WORKDIR)"
    return f"cannot execute {name}: {error}"
