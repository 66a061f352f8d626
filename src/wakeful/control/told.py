"""The rows of the contract as types: an agent, a run, a message, a decision, an event, and what they are made of.

Law: a row is told the same wherever it stands. `rows` makes them; these say what they hold.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from wakeful.core.events import EventKind
from wakeful.core.items import MessageType, Origin, Priority
from wakeful.core.lifecycle import Kind
from wakeful.core.runs import Outcome
from wakeful.core.tasks import TASK_STATES
from wakeful.core.wakes import Cause, Subject, VerdictKind

# RFC 3339, in UTC.
Time = Annotated[str, "date-time"]

CauseName = Annotated[str, tuple(Cause)]
SubjectName = Annotated[str, tuple(Subject)]
VerdictName = Annotated[str, tuple(VerdictKind)]
OutcomeName = Annotated[str, tuple(Outcome)]
PriorityName = Annotated[str, tuple(Priority)]
OriginName = Annotated[str, tuple(Origin)]
TypeName = Annotated[str, tuple(MessageType)]
KindName = Annotated[str, tuple(Kind)]
EventName = Annotated[str, tuple(EventKind)]
TaskState = Annotated[str, TASK_STATES]

AgentState = Literal["idle", "running", "waiting", "paused", "quarantined", "disabled"]
RunState = Literal["admitted", "running", "ended", "void"]
WakeState = Literal["waiting", "joined", "admitted", "refused"]
NodeState = Literal["up", "left", "lost"]
StreamName = Literal["stdout", "stderr"]
SettingOrigin = Literal["default", "fleet", "agent", "override"]


class Usage(TypedDict):
    tokens: int
    usd: float


class Spent(Usage):
    """Of today; what it is of is null where there is no budget."""

    of_usd: float | None
    of_tokens: int | None


class Slots(TypedDict):
    taken: int
    of: int


class Pause(TypedDict):
    scope: str
    owner: str
    reason: str
    since: Time
    until: Time | None


class Source(TypedDict):
    source: str
    agent: str
    node: str | None
    outage: str | None
    since: Time | None


class Node(TypedDict):
    name: str
    state: NodeState
    url: str
    since: Time
    seen_at: Time
    runs: int
    here: bool
    left_at: Time | None


class Health(TypedDict):
    """Of the engine in the process that answers."""

    node: str
    since: Time
    ready: bool
    why_not: str
    heartbeat_age: float
    turns: int
    holding: list[int]


# ---- agents


class Position(TypedDict):
    state: str
    hits: int
    kind: KindName | None


class Last(TypedDict):
    outcome: OutcomeName | None
    ended_at: Time | None
    run: NotRequired[int | None]
    reason: NotRequired[str]


class Waiting(TypedDict):
    wake_id: int
    cause: CauseName
    subject: SubjectName
    guard: str | None
    reason: str
    next_eligible: Time | None
    requested_at: Time


class Beat(TypedDict):
    at: Time
    by: Literal["timer", "at"]
    due_at: Time
    held_by: str | None


class DayState(TypedDict):
    """One state of an agent's day."""

    state: str
    kind: KindName
    repeat: int


# A text, or a time with how it is to be told: `for` as how long it has lasted, `in` as how long it is until then, `at`
# as an instant of the reader's clock, `ago` as how long it has been.
TimePart = TypedDict(
    "TimePart", {"for": NotRequired[Time], "in": NotRequired[Time], "at": NotRequired[Time], "ago": NotRequired[Time]}
)


class Used(TypedDict):
    """Of today; `of` is null where there is no limit."""

    used: float
    of: float | None


class Today(TypedDict):
    """What the guards compare with the limits of a day."""

    wakes: Used
    minutes: Used
    usd: Used
    tokens: Used


class Agent(TypedDict):
    name: str
    state: AgentState
    position: Position
    idle_streak: int
    due_at: Time | None
    run: int | None
    last: Last
    paused: Pause | None
    node: str | None
    address: str
    enabled: bool
    failure_streak: int
    waiting: Waiting | None
    unread: int
    open_tasks: int
    cadence: str | None
    overrides: list[str]
    run_started_at: Time | None
    wall_clock: float | None
    sources: list[Source]
    next_beat: Beat | None
    doing: list[str | TimePart]
    day: list[DayState]
    today: Today


class State(TypedDict):
    """One state of an agent's day."""

    state: str
    kind: KindName
    repeat: int
    next: str | None
    last_done_at: Time | None


# ---- runs


class Run(TypedDict):
    id: int
    agent: str
    cause: CauseName
    subject: SubjectName
    state: RunState
    outcome: OutcomeName | None
    started_at: Time | None
    ended_at: Time | None
    attempt: int
    epoch: int
    node: str | None
    summary: str
    usage: Usage
    wake_id: int
    task_ids: list[int]
    shown: list[int]
    reason: str
    admitted_at: Time
    estimated: bool


# ---- who spoke: `from` is a word of Python, and so can only be written like this

From = TypedDict("From", {"from": str | None})


class Asked(Waiting, From):
    """The wake of a run: who asked for it, and the reason that was given."""

    reason_given: str | None


class Chain(TypedDict):
    """Where a wake stands in what came of one root."""

    root: int
    depth: int


class Message(From):
    id: int
    to: str | None
    subject: str
    body: str
    type: TypeName
    priority: PriorityName
    origin: OriginName
    state: Literal["open", "closed"]
    shown_in: int | None
    created_at: Time
    metadata: dict[str, Any]
    reply_to: int | None
    thread: int | None
    run_id: int | None
    chain: Chain | None
    snoozed_until: Time | None
    unread: bool
    unanswered: int
    source: str | None
    closed_at: Time | None


class Verdict(TypedDict):
    """What the guards said: which objected, with its numbers, and from when on it may be asked again."""

    verdict: VerdictName | None
    guard: str | None
    reason: str
    numbers: dict[str, Any]
    next_eligible: Time | None


class Decision(Verdict, From):
    wake_id: int | None
    agent: str | None
    cause: CauseName | None
    at: Time | None
    run_id: int | None
    subject: SubjectName | None
    joined: int | None
    event_id: int | None


class Opinion(TypedDict):
    guard: str
    verdict: VerdictName | None
    reason: str
    numbers: dict[str, Any]
    until: Time | None


class Expected(TypedDict):
    """A beat that is foretold, and under which assumption."""

    at: Time
    state: str
    hits: int
    kind: KindName
    assumption: str


class Event(TypedDict):
    id: int
    kind: EventName
    at: Time
    agent: str | None
    wake_id: int | None
    run_id: int | None
    item_id: int | None
    fields: dict[str, Any]


# ---- who led to what


class RootItem(TypedDict):
    id: int
    subject: str
    source: str | None
    external_id: str | None


class Root(From):
    """Who or what began it."""

    what: str
    cause: CauseName
    agent: str | None
    reason: str | None
    at: Time
    wake_id: int
    item: RootItem | None


class Link(From):
    """One wake of a lineage, with what came of it."""

    wake_id: int
    parent: int | None
    run_id: int | None
    agent: str | None
    cause: CauseName
    subject: SubjectName
    reason: str | None
    depth: int
    by_run: int | None
    requested_at: Time
    verdict: VerdictName
    guard: str | None
    joined: int | None
    state: RunState | WakeState
    outcome: OutcomeName | None
    ended_at: Time | None
    runs: int
    run_reason: str
    usage: Usage


# ---- the rest


class Replaced(TypedDict):
    value: str | None
    origin: SettingOrigin


class Setting(TypedDict):
    """A limit as it would be typed, where it comes from, the exact values behind it, and what an override replaces."""

    value: str | None
    origin: SettingOrigin
    exact: dict[str, Any]
    replaces: Replaced | None


class Step(TypedDict):
    """What was begun and never recorded has no result."""

    name: str
    recorded: bool
    result: NotRequired[Any]


class Finding(TypedDict):
    rule: str
    says: str
    rows: list[str]
    expected: str
    found: str
    what_to_do: str
