"""Whatever was done to a store, everything in it adds up: asked of each one before it is thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from wakeful.control.auditing.audit import audit
from wakeful.store.beside import look_at_database, look_at_folder
from wakeful.store.protocol import Audited

MOST_TOLD = 20


def unsound(store: Audited, now: datetime) -> list[str]:
    """What does not add up, a line each."""
    report = audit(store, now)
    told = [
        f"audit, {each.rule}: {', '.join(each.rows)}: expected {each.expected}, found {each.found}"
        for each in report.findings
    ]
    return told[:MOST_TOLD] if report.adds_up else [f"audit: {report.counts}", *told[:MOST_TOLD]]


def unsound_folder(data: Path) -> list[str]:
    """Of the store in a data folder, also beside a process that writes to it; a folder without one is sound."""
    if not (data / "wakeful.db").exists():
        return []
    with look_at_folder(data) as store:
        return unsound(store, datetime.now(UTC))


def unsound_database(address: str) -> list[str]:
    with look_at_database(address) as store:
        return unsound(store, datetime.now(UTC))


@contextmanager
def sound_database(address: str) -> Iterator[str]:
    """What was kept there adds up when the story is over, unless the story went wrong itself."""
    yield address
    found = unsound_database(address)
    assert found == [], "\n".join(found)
