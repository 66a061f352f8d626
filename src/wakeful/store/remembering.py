"""What a run is told of the past: the end of the run before it, the steps that are recorded, and before a dream the
journal of everything since the last one."""

from __future__ import annotations

from datetime import datetime

from wakeful.core.agents import Agent
from wakeful.core.journal import Entry, Journal
from wakeful.core.lifecycle import Kind
from wakeful.core.runs import Outcome, Run
from wakeful.core.standing import Standing
from wakeful.core.wakes import Subject
from wakeful.store.rows import from_micros
from wakeful.store.session import Reading, Row

Steps = dict[int | None, dict[str, str | None]]

# A journal is bounded, however long the agent has not dreamt.
MOST_ENTRIES = 500
MOST_NAMED = 100

# What keeps an agent awake: messages that as many runs failed on, or that as many were shown.
RESTLESS_UNANSWERED = 2
RESTLESS_SHOWN = 3


def last_words(row: Row) -> str | None:
    """What came of the agent's last run: its outcome, and what it said or what was wrong."""
    if row["ended_outcome"] is None:
        return None
    said = row["ended_summary"] or row["ended_reason"]
    return f"{row['ended_outcome']}: {said}" if said else str(row["ended_outcome"])


def recorded_steps(rows: list[Row]) -> Steps:
    """The steps of each task of a run, or of its beat; whoever has none is not in it."""
    steps: Steps = {}
    for row in rows:
        steps.setdefault(row["item"], {})[row["name"]] = row["result"]
    return steps


def journal_for(session: Reading, run: Run, agent: Agent, standing: Standing, now: datetime) -> Journal | None:
    """What the agent did since it last dreamt; None unless this run is a dream."""
    resting = {state.name for state in agent.lifecycle.states if state.kind is Kind.rem}
    if run.subject is not Subject.beat or run.position.state not in resting:
        return None
    rows: list[Row] = []
    stamps = [stamp for name in resting if (stamp := standing.ran_at(name)) is not None]
    since, after = max(stamps, default=None), 0
    for row in session.all("ended_runs", agent=agent.name, limit=MOST_ENTRIES):
        if row["subject"] == Subject.beat and row["position"] in resting and row["outcome"] == Outcome.done:
            since, after = from_micros(row["ended_at"]), row["id"]
            break
        rows.append(row)
    else:
        after = rows[-1]["id"] - 1 if rows else 0
    dead = session.all("dead_tasks", agent=agent.name, after=after, limit=MOST_NAMED)
    restless = session.all(
        "restless_items",
        agent=agent.name,
        address=agent.address,
        unanswered=RESTLESS_UNANSWERED,
        shown=RESTLESS_SHOWN,
        limit=MOST_NAMED,
    )
    return Journal(
        agent=agent.name,
        since=since,
        until=now,
        entries=tuple(_entry(row) for row in reversed(rows)),
        dead=tuple(f"{_title(row)}: {row['error'] or 'no reason was told'}" for row in dead),
        restless=tuple(_title(row) for row in restless),
    )


def _entry(row: Row) -> Entry:
    """Only a beat is in a state of the day; any other run is called by its subject."""
    return Entry(
        at=from_micros(row["ended_at"]),
        state=row["position"] if row["subject"] == Subject.beat else row["subject"],
        cause=row["cause"],
        outcome=row["outcome"],
        summary=row["summary"],
        reason=row["reason"],
    )


def _title(row: Row) -> str:
    return row["subject"] or f"item {row['id']}"
