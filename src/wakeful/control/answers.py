"""What each operation answers, as types: the one description that clients and `/openapi.json` are made from.

Laws:
- A type holds every field of its answer, as a test sees to with real ones; a field that is not always there says so.
- Only what JSON holds. `Annotated` says what a text is: an instant, or a word of a closed vocabulary.
- Nothing here is executed to answer: it costs nothing but to those who describe.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from wakeful.control.drawn import Costs as Costs
from wakeful.control.drawn import Timeline as Timeline
from wakeful.control.pages import NamedPage as NamedPage
from wakeful.control.pages import Page as Page
from wakeful.control.run_answers import Blame as Blame
from wakeful.control.run_answers import Output as Output
from wakeful.control.run_answers import SavedStep as SavedStep
from wakeful.control.run_answers import ShownRun as ShownRun
from wakeful.control.run_answers import Steps as Steps
from wakeful.control.task_answers import (
    AddedRow,
    AddedTask,
    ChangedTask,
    ChangedTasks,
    ClaimedTask,
    Counts,
    ListedTask,
    ShownTask,
)
from wakeful.control.told import (
    Agent,
    CauseName,
    Chain,
    Decision,
    Event,
    Expected,
    Finding,
    Health,
    Message,
    Node,
    NodeState,
    Opinion,
    Pause,
    Run,
    Setting,
    Slots,
    Source,
    Spent,
    State,
    SubjectName,
    Time,
    Verdict,
    VerdictName,
    WakeState,
)

# ---- the fleet


class FleetStatus(TypedDict):
    title: NotRequired[str]
    agents: int
    sessions: Slots
    workers: Slots
    spent: Spent


class Untaken(TypedDict):
    """Open tasks that nobody can take."""

    agent: str | None
    role: str | None
    tasks: int


class Status(TypedDict):
    fleet: FleetStatus
    pauses: list[Pause]
    counts: dict[str, int]
    open_runs: list[Run]
    outages: list[Source]
    untaken: list[Untaken]
    engine: Health | None
    diagnostics: list[str]
    node: str | None
    shared: bool
    nodes: list[Node]


class WholeAgent(Agent):
    """One agent, with what a listing leaves out."""

    pauses: list[Pause]
    under_way: Run | None
    runner: str | None
    definition: str | None
    roles: list[str]
    timezone: str
    max_failures: int
    lifecycle: list[State]
    spent: Spent
    elsewhere: bool
    shared: bool


# ---- to ask


class Reply(Verdict):
    """What came of a request for an agent's time. A refusal is an answer: it says what to do instead."""

    wake_id: int | None
    message_id: int | None
    run_id: int | None
    agent: str | None
    joined: int | None
    duplicate: bool
    advice: str | None


class OneOff(Reply):
    task_id: int | None


class Sent(TypedDict):
    """The message as it was recorded, and the wake that it asked for, if it did."""

    message: Message
    wake: Reply | None
    duplicate: bool
    note: str | None


class Changed(Page[Message]):
    """`changed` are those that were open; all of them are told as they stand now."""

    changed: list[int]


class Snoozed(Page[Message]):
    changed: list[int]
    until: Time


class StuckMessage(Message):
    since: Time
    runs: int
    last_run: int
    external_id: str | None
    advice: str


class Stuck(NamedPage[StuckMessage]):
    more: bool


# ---- why


class Why(TypedDict):
    agent: str
    at: Time
    verdict: VerdictName
    guard: str | None
    reason: str
    next_eligible: Time | None
    opinions: list[Opinion]
    last_decision: Decision | None
    assumptions: list[str]
    cause: CauseName
    subject: SubjectName
    numbers: dict[str, Any]
    wake_id: int | None


class DecidedWake(Decision):
    """The last word on one wake, and what led to it."""

    reason_given: str | None
    state: WakeState
    by_run: int | None
    chain: Chain
    lineage_usd: float


class Events(Page[Event]):
    """`last` is where whoever wants to hear more goes on from."""

    last: int


# ---- limits


class Settings(TypedDict):
    """`version` is also the entity tag: a PATCH with another one in If-Match changes nothing."""

    agent: str
    version: int
    settings: dict[str, Setting]


class WakeStats(TypedDict):
    wakesToday: int
    maxWakesPerDay: int
    cooldownSeconds: float
    # In milliseconds.
    lastWakeTime: int | None
    maxDailySessionMinutes: float
    sessionMinutesToday: float
    nextEligible: Time | None
    pairs: dict[str, int]


# ---- to hold


class Receipt(Pause):
    """Nothing begins in that scope any more; `running` began before."""

    running: list[Run]
    ended: list[int]
    engine: bool
    here: bool
    shared: bool
    nodes: list[str]


class FilePause(Pause):
    node: str
    state: NodeState


class Resumed(TypedDict):
    scope: str
    resumed: bool
    held_by: list[Pause]
    files: list[FilePause]


class Killed(Run):
    asked: bool
    cancelled: list[int]
    engine: bool
    here: bool
    shared: bool
    nodes: list[str]


# ---- the engine


class Audit(TypedDict):
    adds_up: bool
    since: Time | None
    rows: dict[str, int]
    counts: dict[str, int]
    findings: list[Finding]


class Reloaded(TypedDict):
    changed: list[str]
    diagnostics: list[str]


class Stopping(TypedDict):
    stopping: bool
    drain: bool


class Copied(TypedDict):
    path: str
    bytes: int


ANSWERS: dict[str, Any] = {
    "status": Status,
    "agents": NamedPage[Agent],
    "agent": WholeAgent,
    "timeline": Timeline,
    "costs": Costs,
    "tick": Reply,
    "wake": Reply,
    "send": Sent,
    "inbox": Page[Message],
    "mark_read": Changed,
    "snooze": Snoozed,
    "at": Reply,
    "why": Why,
    "forecast": Page[Expected],
    "settings": Settings,
    "set": Settings,
    "wake_stats": WakeStats,
    "pause_agent": Receipt,
    "resume_agent": Resumed,
    "pause": Receipt,
    "resume": Resumed,
    "runs": Page[Run],
    "show_run": ShownRun,
    "kill": Killed,
    "blame": Blame,
    "output": Output,
    "stuck": Stuck,
    "decisions": Page[Decision],
    "decision": DecidedWake,
    "events": Events,
    "run": OneOff,
    "add_task": AddedTask,
    "add_tasks": Page[AddedRow],
    "tasks": Page[ListedTask],
    "count_tasks": Counts,
    "keyed_task": ShownTask,
    "change_tasks": ChangedTasks,
    "claim_task": ClaimedTask,
    "task": ShownTask,
    "cancel_task": ChangedTask,
    "retry_task": ChangedTask,
    "complete_task": ChangedTask,
    "fail_task": ChangedTask,
    "remove_task": ChangedTask,
    "dead": Page[ListedTask],
    "replay": ChangedTask,
    "discard": ChangedTask,
    "steps": Steps,
    "save_step": SavedStep,
    "nodes": Page[Node],
    "audit": Audit,
    "reload": Reloaded,
    "stop": Stopping,
    "backup": Copied,
}
