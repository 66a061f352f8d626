"""State is level, cost is edge: what is pending now, against what is known, gives the edges.

Laws:
- A source that could not be read is unknown, never empty: it gives no edges at all.
- A fingerprint changes whenever the thing changed, also within one second, at one size, under an old mtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edges:
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    same: tuple[str, ...] = ()


def edges(known: Mapping[str, str], observed: Mapping[str, str] | None) -> Edges:
    """Compare fingerprints by id; `observed` None means the source could not be read."""
    if observed is None:
        return Edges(same=tuple(sorted(known)))
    return Edges(
        new=tuple(sorted(observed.keys() - known.keys())),
        changed=tuple(sorted(id for id in observed.keys() & known.keys() if observed[id] != known[id])),
        gone=tuple(sorted(known.keys() - observed.keys())),
        same=tuple(sorted(id for id in observed.keys() & known.keys() if observed[id] == known[id])),
    )


def file_fingerprint(
    *, path: str, mtime_ns: int, ctime_ns: int, inode: int, size: int, content_hash: str | None = None
) -> str:
    """A file's identity and content in one comparable text; the path comes last, so that it cannot forge a part."""
    return f"{mtime_ns}:{ctime_ns}:{inode}:{size}:{content_hash or '-'}:{path}"
