"""What an agent did since it last dreamt, and the consolidation of it: rest, without a model.

Law: the same journal gives the same memory, to the byte. Nothing is judged, only gathered: outcomes, what was said,
what failed and was not mended since, what is dead, what keeps waking the agent.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from wakeful.core.codec import write_time

# Older dreams are kept below the new one, as many as this.
MOST_DREAMS = 12
_HEADING = "## "


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One run that ended."""

    at: datetime
    state: str
    cause: str
    outcome: str
    summary: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """`dead` are the titles and errors of dead letters, `restless` the items that woke the agent again and again."""

    agent: str
    since: datetime | None
    until: datetime
    entries: tuple[Entry, ...] = ()
    dead: tuple[str, ...] = ()
    restless: tuple[str, ...] = ()


def unresolved(entries: tuple[Entry, ...]) -> list[Entry]:
    """The last failure of each state that has not ended done since."""
    open_failures: dict[str, Entry] = {}
    for entry in entries:
        if entry.outcome in ("failed", "killed"):
            open_failures[entry.state] = entry
        elif entry.outcome == "done":
            open_failures.pop(entry.state, None)
    return list(open_failures.values())


def consolidate(journal: Journal) -> str:
    """One dream: a section in Markdown."""
    outcomes = Counter(entry.outcome for entry in journal.entries)
    counted = ", ".join(f"{outcomes[name]} {name}" for name in sorted(outcomes)) or "no runs"
    since = write_time(journal.since) if journal.since else "the beginning"
    parts = [f"{_HEADING}{write_time(journal.until)}", f"Since {since}: {counted}."]
    parts += _list("Done", [entry.summary for entry in journal.entries if entry.outcome == "done"])
    failures = [f"{entry.state}: {entry.reason or entry.outcome}" for entry in unresolved(journal.entries)]
    parts += _list("Unresolved", failures)
    parts += _list("Dead", list(journal.dead))
    parts += _list("Keeps waking you", list(journal.restless))
    return "\n\n".join(parts) + "\n"


def _list(title: str, lines: list[str]) -> list[str]:
    """Each thing once, in the order of its first mention; one line each, whatever it contains."""
    told = dict.fromkeys(" ".join(line.split()) for line in lines if line.strip())
    return ["\n".join([f"### {title}", *(f"- {line}" for line in told)])] if told else []


def remember(memory: str, dream: str, agent: str) -> str:
    """The memory with the new dream on top; the oldest are forgotten."""
    title = f"# What {agent} remembers\n"
    _, *older = ("\n" + memory).split(f"\n{_HEADING}")
    kept = [f"{_HEADING}{section.strip()}\n" for section in older[: MOST_DREAMS - 1]]
    return "\n".join([title, dream, *kept])
