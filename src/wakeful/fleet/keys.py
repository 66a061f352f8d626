"""Every key of a fleet file, once: who may declare it, how it is read, and where the value goes.

Law: what is not in these tables is not a key, and is told with the nearest one that is.
`docs/reference/fleet.md` has a heading for each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from wakeful.core.cron import parse_schedule
from wakeful.fleet import addresses, values
from wakeful.fleet.values import Reader


class Part(StrEnum):
    """Which part of the model a value belongs to."""

    fleet = "fleet"
    agent = "agent"
    limits = "limits"
    retries = "retries"
    runner = "runner"
    cadence = "cadence"
    lifecycle = "lifecycle"
    roles = "roles"
    replicas = "replicas"
    task = "task"


class Kept(StrEnum):
    """What a path must lead to when something is there."""

    file = "file"
    folder = "folder"


@dataclass(frozen=True, slots=True)
class Key:
    """`field` is empty when the reader gives several fields; `split` is set when it takes several values."""

    name: str
    read: Reader
    part: Part
    field: str = ""
    split: re.Pattern[str] | None = None
    path: Kept | None = None
    must_exist: bool = False
    may_be_empty: bool = False


WORDS = re.compile(r"[,\s]+")
CLAUSES = re.compile(r"[,;]")
# A window may hold commas itself (`Sat,Sun 00:00-24:00`): only a comma after a time ends it.
WINDOWS = re.compile(r"(?<=[0-9Zz])\s*,|;")

KEYS = (
    Key("TITLE", values.text, Part.fleet, "title", may_be_empty=True),
    Key("STORE", addresses.store, Part.fleet, "store"),
    Key("SESSIONS", values.count(1, 10_000), Part.fleet, "sessions"),
    Key("WORKERS", values.count(1, 10_000), Part.fleet, "workers"),
    Key("GRACE", values.duration_or_zero, Part.fleet, "grace"),
    Key("STAGGER", values.duration_or_zero, Part.fleet, "stagger"),
    Key("PORT", values.count(1, 65_535), Part.fleet, "port"),
    Key("RETENTION", values.duration, Part.fleet, "retention"),
    Key("TIMEZONE", values.zone, Part.agent, "timezone"),
    Key("ENABLED", values.switch, Part.agent, "enabled"),
    Key("DEF", values.text, Part.agent, "definition", path=Kept.file, must_exist=True),
    Key("RUN", values.command, Part.runner, "process"),
    Key("HANDLER", values.function, Part.runner, "handler"),
    Key("URL", addresses.endpoint, Part.runner, "url"),
    Key("TMUX", values.session, Part.runner, "tmux"),
    Key("LIFECYCLE", values.text, Part.lifecycle, path=Kept.file, must_exist=True),
    Key("INTERVAL", values.interval, Part.cadence, "interval"),
    Key("BREATHER", values.duration, Part.cadence, "breather"),
    Key("SCHEDULE", parse_schedule, Part.cadence, "schedule"),
    Key("OFFSET", values.duration_or_zero, Part.cadence, "offset"),
    Key("AT", values.instant, Part.agent, "one_offs", split=CLAUSES),
    Key("TIMEOUT", values.duration, Part.agent, "timeout"),
    Key("KILL-GRACE", values.duration_or_zero, Part.agent, "kill_grace"),
    Key("WORKDIR", values.text, Part.agent, "workdir", path=Kept.folder),
    Key("ENV", values.environment, Part.agent, "environment", split=WORDS),
    Key("SECRETS", values.environment, Part.agent, "secrets", split=WORDS),
    Key("GRANT", values.grant, Part.agent, "grants", split=WORDS),
    Key("INBOX", values.text, Part.agent, "inbox", path=Kept.folder),
    Key("BOARD", values.text, Part.agent, "board", path=Kept.file),
    Key("GITOPS", values.switch, Part.agent, "gitops"),
    Key("ON", addresses.source, Part.agent, "events", split=WORDS),
    Key("ROLE", values.role, Part.roles),
    Key("TASKS", values.role, Part.roles, split=WORDS),
    Key("REPLICAS", values.count(1, 1_000), Part.replicas),
    Key("DREAM", values.command, Part.agent, "dream"),
    Key("CHECK", values.command, Part.agent, "check"),
    Key("MAX-FAILURES", values.count(1, 1_000_000), Part.agent, "max_failures"),
    Key("QUIET-HOURS", values.window, Part.limits, "quiet_hours", split=WINDOWS),
    Key("COOLDOWN", values.duration_or_zero, Part.limits, "cooldown"),
    Key("MAX-WAKES-PER-DAY", values.count(0, 1_000_000), Part.limits, "wakes_per_day"),
    Key("MAX-WAKES-PER-PAIR", values.count(0, 1_000_000), Part.limits, "wakes_per_pair"),
    Key("MAX-WAKES-PER-RUN", values.count(0, 1_000_000), Part.limits, "wakes_per_run"),
    Key("MAX-MINUTES-PER-DAY", values.minutes, Part.limits),
    Key("MAX-CHAIN", values.count(0, 1_000), Part.limits, "chain"),
    Key("BURST", values.burst, Part.limits),
    Key("BUDGET-USD", values.dollars, Part.limits, "usd_per_day"),
    Key("BUDGET-TOKENS", values.count(1, 10**15), Part.limits, "tokens_per_day"),
    Key("RUN-USD", values.dollars, Part.limits, "usd_per_run"),
    Key("RUN-TOKENS", values.count(1, 10**15), Part.limits, "tokens_per_run"),
    Key("RESERVE", values.reserve, Part.limits, split=CLAUSES),
    Key("MAX-RETRIES", values.count(0, 1_000), Part.retries, "max_retries"),
    Key("RETRY-BASE", values.duration, Part.retries, "base"),
    Key("RETRY-JITTER", values.fraction, Part.retries, "jitter"),
)
BY_NAME = {key.name: key for key in KEYS}
FLEET_ONLY = frozenset(key.name for key in KEYS if key.part is Part.fleet)
AGENT_KEYS = tuple(key.name for key in KEYS if key.part is not Part.fleet)

# On the fleet these are the budget of all agents together, not a default for each.
FLEET_BUDGETS = {"BUDGET-USD": "fleet_usd_per_day", "BUDGET-TOKENS": "fleet_tokens_per_day"}
# Of each group an agent declares one; its own choice displaces the fleet's default.
RUNNERS = ("RUN", "HANDLER", "URL", "TMUX")
CHOICES = (RUNNERS, ("INTERVAL", "SCHEDULE"))

# What makes a heading a recurring task, and not an agent.
MARK = "TASK"
TASK_KEYS = (
    Key(MARK, values.text, Part.task, "title", may_be_empty=True),
    Key("SCHEDULE", parse_schedule, Part.task, "schedule"),
    Key("AGENT", values.agent, Part.task, "agent"),
    Key("ROLE", values.role, Part.task, "role"),
    Key("DESCRIPTION", values.text, Part.task, "description"),
    Key("PAYLOAD", values.payload, Part.task, "payload"),
    Key("PRIORITY", values.priority, Part.task, "priority"),
    Key("TAGS", values.text, Part.task, "tags", split=WORDS),
    Key("KEY", values.causal_key, Part.task, "key"),
    Key("MAX-RETRIES", values.count(0, 1_000), Part.task, "max_retries"),
    Key("TIMEOUT", values.duration, Part.task, "timeout"),
    Key("OVERLAP", values.overlap, Part.task, "overlap"),
    Key("TIMEZONE", values.zone, Part.task, "timezone"),
)
TASK_BY_NAME = {key.name: key for key in TASK_KEYS}
# What only a recurring task may say.
TASK_ONLY = frozenset(TASK_BY_NAME) - set(BY_NAME)

STATE_KEYS = ("KIND", "REPEAT", "NEXT", "MIN-INTERVAL", "WHEN")
LIFECYCLE_KEYWORDS = ("START", "TITLE")

# Keys that other systems' files have and that mean nothing here: accepted, and said so.
ADVISORY = {"INTERVAL-MS": "INTERVAL-MS is advisory and not used"}
# Keywords that belong to org itself.
ORG_OWN = frozenset(
    {
        *("AUTHOR", "DATE", "EMAIL", "DESCRIPTION", "KEYWORDS", "LANGUAGE", "SUBTITLE", "NAME", "CAPTION"),
        *("STARTUP", "OPTIONS", "FILETAGS", "TAGS", "TODO", "SEQ-TODO", "TYP-TODO", "PROPERTY", "CATEGORY"),
        *("ARCHIVE", "COLUMNS", "CONSTANTS", "LINK", "PRIORITIES", "SETUPFILE", "INCLUDE", "MACRO"),
        *("EXPORT-FILE-NAME", "RESULTS", "HEADER", "ATTR-HTML", "SHARED"),
    }
)


def is_key(name: str) -> bool:
    """Whether a canonical name means something in a fleet or in a lifecycle."""
    return name in BY_NAME or name == MARK or name in STATE_KEYS or name in LIFECYCLE_KEYWORDS or name in ADVISORY
