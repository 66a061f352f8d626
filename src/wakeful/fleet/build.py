"""From a draft to the fleet: every value read, defaults laid under, replicas counted out.

Laws:
- An agent's own value, else the fleet's, else the default of `core.agents`. Budgets of the fleet are no defaults.
- RUN, HANDLER, URL and TMUX exclude each other, and so do INTERVAL and SCHEDULE; an agent's own choice
  displaces the fleet's.
- Without INTERVAL or SCHEDULE the timer is one hour, unless ON, INBOX or TASKS ring instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from wakeful.core.agents import LIVE_POLICIES, Agent, Fleet, Limits, RetryPolicy, Runner
from wakeful.core.cadence import Cadence
from wakeful.core.errors import Mistake
from wakeful.core.hooks import CLOUD_EVENTS, is_hook, read_hook
from wakeful.core.lifecycle import SINGLE
from wakeful.core.wording import quoted
from wakeful.fleet.clashes import check_clashes, warn_sessions, warn_silence
from wakeful.fleet.diagnostics import Notes
from wakeful.fleet.folder import Folder
from wakeful.fleet.keys import BY_NAME, CHOICES, FLEET_BUDGETS, RUNNERS, Part
from wakeful.fleet.parse import Values, Worth
from wakeful.fleet.recurring import build_recurring
from wakeful.fleet.tree import Block, Draft, Entries, Entry, printed_key
from wakeful.fleet.values import command

DEFAULT_INTERVAL = timedelta(hours=1)
# Whose addresses are understood, and that is all.
BROKERS = ("kafka", "sqs", "redis", "nats")
RINGING = ("ON", "INBOX", "TASKS")
MOST_AGENTS = 250_000

PARTS = tuple(Part)
# What the core calls a live policy, where the key's own field has another name.
LIVE_NAMES = {"RETRY-BASE": "retry_base", "RETRY-JITTER": "retry_jitter"}

Fields = dict[str, Any]


def build_fleet(draft: Draft, notes: Notes, folder: Folder, run: str | None) -> Fleet | None:
    """The fleet, or None when anything in it is an error; `run` is the command of `--run` or WAKEFUL_RUN."""
    return _Build(draft, notes, folder, run).fleet()


class _Build:
    def __init__(self, draft: Draft, notes: Notes, folder: Folder, run: str | None) -> None:
        self.draft = draft
        self.notes = notes
        self.folder = folder
        self.run = run
        self.worth = Worth(notes, folder)
        self.defaults: Values = {}
        self.shared: Fields = {}
        self.silent: list[Block] = []
        self.counted = 0
        # Equal limits and cadences are one object: a fleet of many agents has few of them.
        self.made: dict[tuple[object, ...], Any] = {}

    def fleet(self) -> Fleet | None:
        own = self._declared()
        agents: list[Agent] = []
        for block in self.draft.agents:
            agents.extend(self._agents(block))
        check_clashes(self.draft.agents, self._replicas, self.notes, MOST_AGENTS)
        warn_sessions(self.draft.agents, agents, self.notes)
        warn_silence(self.draft.agents, agents, self.notes)
        self._tell_silent()
        zone = own.get("timezone", "UTC")
        recurring = build_recurring(self.draft.recurring, agents, self.notes, self.folder, zone)
        if self.notes.errors or self.folder.errors:
            return None
        return Fleet(agents=tuple(agents), recurrences=recurring, **own)

    def _declared(self) -> Fields:
        """What the fleet says of itself; what it says for its agents is kept as defaults."""
        entries = self.draft.fleet
        self._check_choices(entries)
        own: Fields = {}
        for name, value in self.worth.read(entries).items():
            if name in FLEET_BUDGETS:
                self.shared[FLEET_BUDGETS[name]] = value
            elif BY_NAME[name].part is Part.fleet:
                own[BY_NAME[name].field] = value
            else:
                self.defaults[name] = value
        for name in ("sessions", "workers"):
            if name in own:
                self.shared[name] = own[name]
        if "TIMEZONE" in self.defaults:
            own["timezone"] = self.shared["fleet_timezone"] = self.defaults["TIMEZONE"]
        if not any(name in self.defaults for name in RUNNERS) and self.run is not None:
            self._take_run(self.run)
        if "RUN" in self.defaults:
            own["run"] = self.defaults["RUN"]
        return own

    def _take_run(self, run: str) -> None:
        try:
            self.defaults["RUN"] = command(run)
        except Mistake as mistake:
            self.notes.mistake(self.draft.place, mistake, "--run or WAKEFUL_RUN")

    def _agents(self, block: Block) -> Iterator[Agent]:
        self._check_choices(block.entries)
        own = self.worth.read(block.entries)
        values = self._merged(own, block.entries)
        self._check_pairs(block, values)
        fields = self._fields(values)
        runner = next((name for name in RUNNERS if name in values), None)
        if runner is None and not any(name in block.entries or name in self.draft.fleet for name in RUNNERS):
            self.silent.append(block)
        limits = self._make(Limits, fields[Part.limits] | self.shared)
        retries = self._make(RetryPolicy, fields[Part.retries])
        cadence = self._make(Cadence, self._timer(values, fields[Part.cadence]))
        lifecycle = self.folder.lifecycle(str(values["LIFECYCLE"])) if "LIFECYCLE" in values else SINGLE
        origins = self._make(_as_told, {"told": _origins(values, own)})
        names = _names(block.name.text, values)
        self.counted += len(names)
        # Too many are told at the end; until then they are not made.
        for name in names if self.counted <= MOST_AGENTS else names[:1]:
            yield Agent(
                name=name,
                address=block.name.text,
                runner=Runner(BY_NAME[runner].field) if runner else None,
                target=str(values[runner]) if runner else None,
                lifecycle=lifecycle or SINGLE,
                cadence=cadence,
                limits=limits,
                retries=retries,
                roles=_roles(values),
                origins=origins,
                **fields[Part.agent],
            )

    def _merged(self, own: Values, entries: Entries) -> Values:
        displaced = {name for group in CHOICES if any(one in entries for one in group) for name in group}
        return {name: value for name, value in self.defaults.items() if name not in displaced} | own

    def _fields(self, values: Values) -> dict[Part, Fields]:
        fields: dict[Part, Fields] = {part: {} for part in PARTS}
        for name, value in values.items():
            key = BY_NAME[name]
            if isinstance(value, dict):
                fields[key.part].update(value)
            elif key.field:
                fields[key.part][key.field] = value
        return fields

    def _timer(self, values: Values, fields: Fields) -> Fields:
        interval = values.get("INTERVAL")
        if interval is None and "SCHEDULE" not in values and not any(name in values for name in RINGING):
            interval = DEFAULT_INTERVAL
        return fields | {
            "interval": interval if isinstance(interval, timedelta) else None,
            "continuous": interval == "continuous",
        }

    def _make(self, kind: Callable[..., Any], fields: Fields) -> Any:
        asked = (kind, *sorted(fields.items()))
        if asked not in self.made:
            self.made[asked] = kind(**fields)
        return self.made[asked]

    def _replicas(self, block: Block) -> int:
        """How many agents the block stands for; 0 is one, under the block's own name."""
        entry = block.entries.get("REPLICAS")
        value = self.worth.known(entry) if entry else self.defaults.get("REPLICAS")
        return value if isinstance(value, int) else 0

    def _check_choices(self, entries: Entries) -> None:
        for group in CHOICES:
            declared = [entries[name] for name in group if name in entries]
            if len(declared) < 2:
                continue
            declared.sort(key=_place)
            for entry in declared[1:]:
                first = declared[0].key
                self.notes.error(
                    entry.key,
                    f"{printed_key(entry.key)} and {printed_key(first)} exclude each other",
                    f"keep one of {', '.join(group)}",
                )

    def _check_pairs(self, block: Block, values: Values) -> None:
        entries = block.entries
        if "LIFECYCLE" in values and "REPLICAS" in values:
            entry = entries.get("REPLICAS") or entries.get("LIFECYCLE") or self.draft.fleet["REPLICAS"]
            self.notes.error(
                entry.key,
                "LIFECYCLE and REPLICAS exclude each other: a day has one position",
                "remove one of them",
            )
        if "BREATHER" in entries and values.get("INTERVAL") != "continuous":
            self.notes.warn(
                entries["BREATHER"].key,
                "BREATHER has no effect without INTERVAL: continuous",
                "write INTERVAL: continuous",
            )
        sources = values.get("ON") if "ON" in entries else None
        if isinstance(sources, tuple) and any(_is_open_hook(address) for address in sources):
            self.notes.warn(
                entries["ON"].value,
                "a webhook without a secret stays closed",
                "add ?secret=ENV_NAME and put the secret into that variable",
            )
        if isinstance(sources, tuple) and (unread := [scheme for scheme in map(_scheme, sources) if scheme in BROKERS]):
            self.notes.warn(
                entries["ON"].value,
                f"{unread[0]}:// is not read yet: nothing arrives from it",
                "poll it with snapshot+exec:PROGRAM, or have it sent to a webhook",
            )
        if "OFFSET" in entries and "SCHEDULE" in values:
            self.notes.warn(entries["OFFSET"].key, "OFFSET has no effect on a SCHEDULE", "remove it")

    def _tell_silent(self) -> None:
        if not self.silent:
            return
        first, others = self.silent[0].name, len(self.silent) - 1
        names = quoted(first.text) + (f" and {others} more" if others else "")
        self.notes.warn(
            first,
            f"no command to run for {names}",
            "add RUN to the agent or the fleet, or give --run or WAKEFUL_RUN",
        )


def _place(entry: Entry) -> tuple[int, int]:
    return entry.key.line, entry.key.column


def _scheme(address: str) -> str:
    return address.partition("://")[0]


def _is_open_hook(address: str) -> bool:
    """What is sent as CloudEvents may come with the operator's token instead."""
    hook = read_hook(address) if is_hook(address) else None
    return hook is not None and not hook.secrets and hook.name != CLOUD_EVENTS


def _names(address: str, values: Values) -> list[str]:
    replicas = values.get("REPLICAS")
    if not isinstance(replicas, int):
        return [address]
    return [f"{address}-{number}" for number in range(1, replicas + 1)]


def _origins(values: Values, own: Values) -> tuple[tuple[str, str], ...]:
    """Who declares each limit and live policy: the agent itself, else the fleet."""
    told = {}
    for name, value in values.items():
        key = BY_NAME[name]
        if key.part in (Part.limits, Part.retries) or key.field in LIVE_POLICIES:
            filled = value if isinstance(value, dict) else (LIVE_NAMES.get(name, key.field),)
            told.update(dict.fromkeys(filled, "agent" if name in own else "fleet"))
    return tuple(sorted(told.items()))


def _as_told(told: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return told


def _roles(values: Values) -> tuple[str, ...]:
    """The roles whose tasks the agent takes: its own, and those it names in TASKS."""
    role, tasks = values.get("ROLE"), values.get("TASKS", ())
    named = [role] if isinstance(role, str) else []
    return tuple(dict.fromkeys([*named, *(tasks if isinstance(tasks, tuple) else ())]))
