"""A recurring task: declared once, put into its queue again and again.

Laws:
- Each instant of the schedule gives at most one task: its idempotency key is the schedule's name and the instant.
- Instants that passed while nobody looked give one task together, for the last of them.
- With overlap `skip` nothing is added while an earlier task of the same name is open; with `queue` it stands in line.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from wakeful.core.codec import write_time
from wakeful.core.cron import Schedule
from wakeful.core.items import Kind, NewItem, Origin, Priority


class Overlap(StrEnum):
    skip = "skip"
    queue = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    name: str
    title: str
    schedule: Schedule
    agent: str | None = None
    role: str | None = None
    description: str = ""
    payload: str | None = None
    priority: Priority = Priority.normal
    tags: tuple[str, ...] = ()
    key: str | None = None
    max_retries: int | None = None
    timeout: timedelta | None = None
    overlap: Overlap = Overlap.skip
    timezone: str = "UTC"

    @property
    def source(self) -> str:
        """By which its tasks are known, and it is paused."""
        return f"schedule:{self.name}"

    def after(self, moment: datetime) -> datetime:
        """The first instant of the schedule after that one."""
        return self.schedule.after(moment, ZoneInfo(self.timezone))

    def last(self, due: datetime, now: datetime) -> datetime:
        """Of the instants from `due` until now, the last: those before it are made up for by this one."""
        found = self.schedule.last(now, ZoneInfo(self.timezone))
        return due if found is None else max(due, found)

    def task(self, at: datetime) -> NewItem:
        """What is put into the queue for one instant."""
        return NewItem(
            kind=Kind.task,
            agent=self.agent,
            role=self.role,
            sender=self.source,
            origin=Origin.operator,
            subject=self.title,
            body=self.description,
            payload=self.payload,
            priority=self.priority,
            tags=self.tags,
            key=self.key,
            max_retries=self.max_retries,
            timeout=self.timeout,
            source=self.source,
            dedupe=f"{self.source}:{write_time(at)}",
        )
