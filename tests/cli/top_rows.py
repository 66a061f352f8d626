"""Rows and answers as an engine gives them, for what draws them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from wakeful.cli.top_state import Fleet

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
Row = dict[str, Any]


def at(seconds: float) -> str:
    return (NOON + timedelta(seconds=seconds)).isoformat()


def an_agent(name: str = "wren", state: str = "idle", **given: Any) -> Row:
    doing = {
        "idle": ["idle, next beat ", {"in": at(240)}],
        "running": ["running ", {"for": at(-133)}, " of 15m"],
        "waiting": ["deferred by cooldown until ", {"at": at(300)}],
        "paused": ["paused by operator: lunch, until ", {"at": at(3_600)}],
        "quarantined": ["quarantined after 5 failures"],
        "disabled": ["disabled"],
    }
    return {
        "name": name,
        "state": state,
        "position": {"state": "beat", "hits": 0, "kind": None},
        "due_at": at(240),
        "run": 12 if state == "running" else None,
        "last": {"outcome": "done", "ended_at": at(-240), "run": 11, "reason": ""},
        "unread": 0,
        "open_tasks": 0,
        "cadence": "every 10m",
        "doing": doing[state],
        "day": [],
        "today": {
            "wakes": {"used": 5, "of": 12},
            "minutes": {"used": 34.5, "of": 120},
            "usd": {"used": 0.42, "of": 5.0},
            "tokens": {"used": 12_000, "of": None},
        },
        "next_beat": {"at": at(240), "by": "timer", "due_at": at(240), "held_by": None},
        **given,
    }


def a_day(state: str = "edit", hits: int = 1) -> Row:
    """A row's day, and where it stands in it."""
    day = [("draft", 3), ("edit", 2), ("rem", 1)]
    return {
        "day": [{"state": name, "kind": "wake", "repeat": repeat} for name, repeat in day],
        "position": {"state": state, "hits": hits, "kind": "wake"},
    }


def a_pause(scope: str = "fleet", **given: Any) -> Row:
    return {"scope": scope, "owner": "operator", "reason": "a look", "since": at(-60), "until": at(600), **given}


def a_fleet(*rows: Row, pauses: tuple[Row, ...] = (), **given: Any) -> Fleet:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["state"]] = counts.get(row["state"], 0) + 1
    engine = {"node": "here", "since": at(-3_600), "ready": True, "heartbeat_age": 0.2, "why_not": ""}
    status = {
        "fleet": {
            "title": "night desk",
            "agents": len(rows),
            "sessions": {"taken": 1, "of": 2},
            "workers": {"taken": 0, "of": 3},
            "spent": None,
        },
        "engine": engine,
        "pauses": list(pauses),
        "counts": counts,
        "open_runs": [],
        "outages": [],
        "untaken": [],
        "diagnostics": [],
        "node": "here",
        "shared": False,
        "nodes": [],
    }
    told = {key: given.pop(key) for key in list(given) if key in status}
    return Fleet({**status, **told}, {row["name"]: row for row in rows}, **given)
