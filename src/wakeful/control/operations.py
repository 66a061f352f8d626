"""Everything that may be asked of a fleet, by name: the operation, and how HTTP spells it.

Laws:
- An operation is a method of `Control` with the same name and the same parameters; it takes and gives only what JSON
  holds, so that a caller in this process and one behind HTTP are told the same.
- What stands in the path is in braces; the rest goes into the query of a GET and into the body of anything else.
- An operation is the operator's alone unless it says here that an agent may ask it in the course of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    # Whether an agent may ask it too; of what belongs to one agent it then sees its own.
    by_runs: bool = False
    # Whether an agent may ask it of itself alone.
    own: bool = False


# What is asked most stands first: HTTP looks for a path in this order.
OPERATIONS: dict[str, Operation] = {
    "add_task": Operation("POST", "/v1/tasks", by_runs=True),
    "add_tasks": Operation("POST", "/v1/tasks/batch", by_runs=True),
    "tasks": Operation("GET", "/v1/tasks", by_runs=True),
    # Before those with a number in their place.
    "count_tasks": Operation("GET", "/v1/tasks/counts"),
    "keyed_task": Operation("GET", "/v1/tasks/keyed", by_runs=True),
    "claim_task": Operation("POST", "/v1/tasks/claim", by_runs=True),
    "change_tasks": Operation("POST", "/v1/tasks/change"),
    "task": Operation("GET", "/v1/tasks/{task}", by_runs=True),
    "cancel_task": Operation("POST", "/v1/tasks/{task}/cancel", by_runs=True),
    "retry_task": Operation("POST", "/v1/tasks/{task}/retry"),
    "complete_task": Operation("POST", "/v1/tasks/{task}/done", by_runs=True),
    "fail_task": Operation("POST", "/v1/tasks/{task}/fail", by_runs=True),
    "remove_task": Operation("DELETE", "/v1/tasks/{task}"),
    "dead": Operation("GET", "/v1/dead"),
    "replay": Operation("POST", "/v1/dead/{task}/replay"),
    "discard": Operation("POST", "/v1/dead/{task}/discard"),
    "steps": Operation("GET", "/v1/steps", by_runs=True),
    "save_step": Operation("POST", "/v1/steps", by_runs=True),
    "status": Operation("GET", "/v1/status", by_runs=True),
    "agents": Operation("GET", "/v1/agents", by_runs=True),
    "agent": Operation("GET", "/v1/agents/{agent}", by_runs=True),
    "tick": Operation("POST", "/v1/agents/{agent}/tick"),
    "wake": Operation("POST", "/v1/agents/{agent}/wake", by_runs=True),
    "send": Operation("POST", "/v1/agents/{agent}/messages", by_runs=True),
    "inbox": Operation("GET", "/v1/agents/{agent}/inbox", by_runs=True, own=True),
    "mark_read": Operation("POST", "/v1/agents/{agent}/inbox/read", by_runs=True, own=True),
    "snooze": Operation("POST", "/v1/agents/{agent}/inbox/snooze", by_runs=True, own=True),
    "at": Operation("POST", "/v1/agents/{agent}/at"),
    "why": Operation("GET", "/v1/agents/{agent}/why", by_runs=True, own=True),
    "forecast": Operation("GET", "/v1/agents/{agent}/forecast", by_runs=True, own=True),
    "settings": Operation("GET", "/v1/agents/{agent}/settings"),
    "set": Operation("PATCH", "/v1/agents/{agent}/settings"),
    "wake_stats": Operation("GET", "/v1/agents/{agent}/wake-stats", by_runs=True, own=True),
    "pause_agent": Operation("POST", "/v1/agents/{agent}/pause"),
    "resume_agent": Operation("POST", "/v1/agents/{agent}/resume"),
    "pause": Operation("POST", "/v1/pause"),
    "resume": Operation("POST", "/v1/resume"),
    "runs": Operation("GET", "/v1/runs"),
    "show_run": Operation("GET", "/v1/runs/{run}", by_runs=True),
    "kill": Operation("POST", "/v1/runs/{run}/kill"),
    "blame": Operation("GET", "/v1/runs/{run}/blame"),
    "output": Operation("GET", "/v1/runs/{run}/output"),
    "timeline": Operation("GET", "/v1/timeline"),
    "costs": Operation("GET", "/v1/costs"),
    "stuck": Operation("GET", "/v1/stuck"),
    "decisions": Operation("GET", "/v1/decisions"),
    "decision": Operation("GET", "/v1/decisions/{wake}"),
    "events": Operation("GET", "/v1/events"),
    "run": Operation("POST", "/api/run"),
    "nodes": Operation("GET", "/v1/nodes"),
    "audit": Operation("GET", "/v1/audit"),
    "reload": Operation("POST", "/v1/reload"),
    "stop": Operation("POST", "/v1/stop"),
    "backup": Operation("POST", "/v1/backup"),
}


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    body: dict[str, Any] | None


def request(name: str, parameters: dict[str, Any]) -> Request:
    """The HTTP request of an operation; a parameter that is None is left out."""
    operation = OPERATIONS[name]
    rest = {key: value for key, value in parameters.items() if value is not None}
    path = operation.path
    for key in list(rest):
        if "{" + key + "}" in path:
            path = path.replace("{" + key + "}", quote(str(rest.pop(key)), safe=""))
    if operation.method != "GET":
        return Request(operation.method, path, rest)
    query = urlencode({key: _text(value) for key, value in rest.items()})
    return Request(operation.method, f"{path}?{query}" if query else path, None)


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
