"""What a Python handler is given, and what it may give back: `def handler(run: Run) -> Result`.

Laws:
- A step that is recorded is never executed again; its recorded result is returned instead, also after a crash.
- What cannot be written as JSON is refused before anything is called done.
- The engine answers only after it has stored what it was told; without an answer nothing has happened.

Only the standard library, and little of it: this module is imported by every handler.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import time
from typing import Any, ParamSpec, TypeVar

from wakeful.core.errors import Mistake, Stale, WakefulError

P = ParamSpec("P")
T = TypeVar("T")

Ask = Callable[[dict[str, Any]], dict[str, Any]]

OUTCOMES = ("done", "no_work", "failed")

# Where the payload of a task stands as the text that it came as.
UNREAD = "payload_json"
# What goes without saying of a task in a shift.
UNSAID: Mapping[str, Any] = {
    "kind": "task",
    "from": None,
    "origin": "external",
    "trust": "untrusted",
    "source": None,
    "external_id": None,
    "type": "info",
    "priority": "normal",
    "key": None,
    "causal_key": None,
    "body": "",
    "unanswered": 0,
    "role": None,
    "tags": [],
    "timeout": None,
    "error": None,
}


class Unreachable(WakefulError):
    """No engine answered in time. The task is tried again."""


class Refused(WakefulError):
    """The engine answered, and the answer is no."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a handler declares when a plain value does not say enough. `value` is kept as the task's result."""

    outcome: str | None = None
    summary: str = ""
    value: Any = None
    tokens: int | None = None
    usd: float | None = None
    error: str | None = None
    # quota (tried again at `retry_at`), config or auth (a person has to look); any other word is an ordinary failure.
    error_class: str | None = None
    retry_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.outcome is not None and self.outcome not in OUTCOMES:
            raise Mistake(f"unknown outcome {self.outcome!r}", f"use one of {', '.join(OUTCOMES)}")
        if self.retry_at is not None and self.retry_at.tzinfo is None:
            raise Mistake("retry_at has no time zone", "use an aware datetime, such as datetime.now(UTC)")

    def declared(self) -> dict[str, Any]:
        """In the words of a result file."""
        told: dict[str, Any] = {"summary": self.summary}
        if self.outcome is not None:
            told["outcome"] = self.outcome
        if self.tokens is not None or self.usd is not None:
            told["usage"] = {"tokens": self.tokens, "usd": self.usd}
        if self.error is not None or self.error_class is not None:
            until = None if self.retry_at is None else self.retry_at.astimezone(UTC).isoformat()
            told["error"] = {"class": self.error_class, "message": self.error, "retry_at": until}
        return told


@dataclass(frozen=True, slots=True)
class Message:
    """One item of the inbox. Its body is data: what it asks for is for the handler to weigh."""

    id: int
    sender: str | None
    origin: str
    trust: str
    type: str
    priority: str
    subject: str
    body: str
    source: str | None
    external_id: str | None
    created_at: datetime
    # The sender's own, as data.
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    reply_to: int | None = None
    # The first message of the conversation.
    thread: int | None = None

    @property
    def payload(self) -> Any:
        """The body as JSON, or as it is where it is none."""
        return _payload(self.body)


@dataclass(frozen=True, slots=True)
class Task:
    id: int
    title: str
    body: str
    sender: str | None
    origin: str
    trust: str
    priority: str
    key: str | None
    role: str | None
    # This is attempt number `attempt` of `attempts`; `error` is what the one before it came to.
    attempt: int
    attempts: int
    error: str | None
    created_at: datetime

    # What the task is about, as data. Where only a body was given: the body as JSON, or as it is where it is none.
    payload: Any = field(default=None, hash=False)
    tags: tuple[str, ...] = ()
    # How long one attempt may take, in seconds; None is the agent's own limit.
    timeout: float | None = None
    causal_key: str | None = None

    @property
    def description(self) -> str:
        """The body, by the name that whoever adds a task knows it by."""
        return self.body


class Run:
    """One call of a handler: a task, or the agent's beat or inbox.

    Made by the worker from the run's briefing; a test of a handler may make its own with `Run.for_test`.
    """

    __slots__ = ("_ask", "_briefing", "_data", "_limit", "_started", "_steps", "_task")

    def __init__(
        self,
        briefing: Mapping[str, Any],
        task: Mapping[str, Any] | None,
        ask: Ask,
        *,
        steps: Mapping[str, str | None] | None = None,
        limit: float | None = None,
    ) -> None:
        self._briefing = briefing
        self._data = task
        self._task: Task | None = None
        self._ask = ask
        self._steps = dict(steps) if steps else {}
        self._limit = limit
        self._started = time()

    @classmethod
    def for_test(cls, task: Mapping[str, Any] | None = None, **briefing: Any) -> Run:
        """A run without an engine: steps are executed and kept in memory, `send` and `wake` answer with {}."""
        return cls(briefing, task, lambda request: {})

    def __repr__(self) -> str:
        about = f"task {self.task.id}" if self.task else self.subject
        return f"<Run {self.id} of {self.agent}: {about}>"

    # -- what it is about ---------------------------------------------------------------------------------------
    @property
    def task(self) -> Task | None:
        """None in a run about the beat or the inbox."""
        if self._task is None and self._data is not None:
            self._task = _task(self._data)
        return self._task

    @property
    def id(self) -> int:
        return int(self._part("run").get("id") or 0)

    @property
    def agent(self) -> str:
        return str(self._part("agent").get("name") or "")

    @property
    def subject(self) -> str:
        return str(self._part("run").get("subject") or ("beat" if self._data is None else "task"))

    @property
    def cause(self) -> str:
        return str(self._part("wake").get("cause") or "")

    @property
    def reason(self) -> str:
        return str(self._part("wake").get("reason") or "")

    @property
    def state(self) -> str:
        return str(self._part("position").get("state") or "")

    @property
    def hits(self) -> int:
        return int(self._part("position").get("hits") or 0)

    @property
    def attempt(self) -> int:
        told = self._part("attempt") if self._data is None else self._data.get("attempt") or {}
        return int(told.get("number") or 1)

    @property
    def deadline(self) -> datetime | None:
        """When this call is ended if it still runs."""
        return None if self._limit is None else datetime.fromtimestamp(self._started + self._limit, UTC)

    @property
    def definition(self) -> str:
        return str(self._briefing.get("definition") or "")

    @property
    def inbox(self) -> tuple[Message, ...]:
        return tuple(_message(item) for item in self._briefing.get("inbox") or ())

    @property
    def briefing(self) -> Mapping[str, Any]:
        """All that the engine told about the run, as data."""
        tasks = self._briefing.get("tasks") or ()
        return {**self._briefing, "tasks": [_read(task) for task in tasks]} if tasks else self._briefing

    def _part(self, name: str) -> Mapping[str, Any]:
        return self._briefing.get(name) or {}

    # -- what it may do -----------------------------------------------------------------------------------------
    def step(self, name: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` and record its result under `name`; where it is recorded already, return that instead.

        What comes back is what JSON makes of the result, the first time too: a second attempt sees the same.
        """
        recorded = self._steps.get(name)
        if recorded is None:
            recorded = self._tell_step(name, None)
        if recorded is None:
            result = as_json(function(*args, **kwargs), f"the result of step {name!r}")
            recorded = self._tell_step(name, result) or result
        self._steps[name] = recorded
        value: T = json.loads(recorded)
        return value

    def was_begun(self, name: str) -> bool:
        """Whether an earlier attempt began this step and did not live to record its result."""
        return name in self._steps and self._steps[name] is None

    def key(self, name: str) -> str:
        """The same for every attempt at this step: hand it to whoever must not do a thing twice."""
        if self._data is not None:
            return f"wakeful:task:{self._data['id']}:{name}"
        if self.subject == "beat":
            return f"wakeful:beat:{self.agent}:{self._part('run').get('beat') or 0}:{name}"
        raise Mistake("a step of an inbox run has no key", "make one of your own, from the messages")

    def _tell_step(self, name: str, result: str | None) -> str | None:
        """What is recorded now."""
        recorded: str | None = self._request({"verb": "step", "name": name, "result": result}).get("recorded")
        return recorded

    def send(
        self,
        to: str,
        body: str,
        *,
        subject: str = "",
        type: str = "info",
        priority: str = "normal",
        key: str | None = None,
        reply_to: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Leave a message for an agent; recorded when this returns. High and urgent ones ask for a wake themselves."""
        told = {"to": to, "body": body, "subject": subject, "type": type, "priority": priority, "key": key}
        own = None if metadata is None else json.loads(as_json(dict(metadata), "the metadata"))
        return self._request({"verb": "send", **told, "reply_to": reply_to, "metadata": own})

    def wake(self, agent: str, reason: str, body: str, *, key: str | None = None) -> dict[str, Any]:
        """Wake another agent with a message. The reason is blocker, critical_finding or user_request; what can wait
        goes with `send`. A refusal is an answer, not an error: it names the guard and its numbers."""
        return self._request({"verb": "wake", "agent": agent, "reason": reason, "body": body, "key": key})

    def mark_read(self, messages: int | Iterable[int]) -> dict[str, Any]:
        """These need no run any more, whatever becomes of this one."""
        return self._request({"verb": "mark_read", "messages": _numbers(messages)})

    def snooze(self, messages: int | Iterable[int], until: datetime | str) -> dict[str, Any]:
        """Out of sight until then: a datetime, or a text such as 2h or 14:30."""
        when = until.isoformat() if isinstance(until, datetime) else until
        return self._request({"verb": "snooze", "messages": _numbers(messages), "until": when})

    def _request(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = self._ask({"task": None if self._data is None else self._data["id"], **request})
        problem = answer.get("error")
        if problem is None:
            return answer
        kinds = {"Stale": Stale, "Mistake": Mistake, "Unreachable": Unreachable}
        raise kinds.get(str(answer.get("kind")), Refused)(str(problem))


def as_json(value: Any, what: str) -> str:
    """Refuses what JSON cannot hold, and says what it was."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        if hasattr(value, "close") and hasattr(value, "cr_frame"):
            value.close()
            raise Mistake(
                f"{what} is a coroutine", "give a plain function; run an async one with asyncio.run"
            ) from None
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Mistake(
            f"{what} cannot be written as JSON: {problem}", "return texts, numbers, lists and dicts"
        ) from None


def _numbers(messages: int | Iterable[int]) -> list[int]:
    return [messages] if isinstance(messages, int) else list(messages)


def _payload(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body


def _read(task: Mapping[str, Any]) -> dict[str, Any]:
    """The task with what went without saying, and with its payload read, where it has one."""
    told = {**UNSAID, **task}
    told.setdefault("description", told["body"])
    if UNREAD in told:
        told["payload"] = json.loads(told.pop(UNREAD))
    return told


def _instant(text: str | None) -> datetime:
    return datetime.fromisoformat(text) if text else datetime.fromtimestamp(0, UTC)


def _message(item: Mapping[str, Any]) -> Message:
    return Message(
        id=item["id"],
        sender=item.get("from"),
        origin=item.get("origin") or "external",
        trust=item.get("trust") or "untrusted",
        type=item.get("type") or "info",
        priority=item.get("priority") or "normal",
        subject=item.get("subject") or "",
        body=item.get("body") or "",
        source=item.get("source"),
        external_id=item.get("external_id"),
        created_at=_instant(item.get("created_at")),
        metadata=item.get("metadata") or {},
        reply_to=item.get("reply_to"),
        thread=item.get("thread"),
    )


def _task(item: Mapping[str, Any]) -> Task:
    tried = item.get("attempt") or {}
    return Task(
        id=item["id"],
        title=item.get("title") or "",
        body=item.get("body") or "",
        sender=item.get("from"),
        origin=item.get("origin") or "external",
        trust=item.get("trust") or "untrusted",
        priority=item.get("priority") or "normal",
        key=item.get("key"),
        role=item.get("role"),
        attempt=tried.get("number") or 1,
        attempts=tried.get("of") or 1,
        error=item.get("error"),
        created_at=_instant(item.get("created_at")),
        payload=_read(item)["payload"] if "payload" in item or UNREAD in item else _payload(item.get("body") or ""),
        tags=tuple(item.get("tags") or ()),
        timeout=item.get("timeout"),
        causal_key=item.get("causal_key"),
    )
