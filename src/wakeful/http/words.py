"""The words of the API's description that no docstring has: of parameters, of groups, of what is no operation.

Law: a name means the same wherever it stands, and so is explained once; but other loops have words of their own.
"""

from __future__ import annotations

from typing import Any

from wakeful.http.hook_schemas import PASSED_OVER

ABOUT = {
    "api": (
        "Everything that may be asked of a fleet. Every request but the few that say otherwise carries a bearer "
        "token: the operator's (`wakeful token`), or that of a run, which acts as its agent alone and dies with "
        "it. Every refusal has one shape (RFC 9457) with a `remedy`. A list is `{items, next}`: `next`, where it "
        "is not null, is the `cursor` of the next page. Calls that create something take an `Idempotency-Key`: "
        "the same key finds what it asked for before, and with another body is a conflict. A wake that the guards "
        "refuse is an answer (200, with guard and numbers), one that is accepted goes on (202, with the run where "
        "there is one already); no request waits for a run. Times are RFC 3339 in UTC."
    ),
    "token": "The operator's, from `wakeful token`; or a run's own, from WAKEFUL_TOKEN.",
}

DONE = {200: "Answered", 201: "Recorded", 202: "Accepted; it goes on", 304: "It is as you have seen it"}

# By the word behind /v1; the rest is of the fleet as a whole.
TAGS = {
    "fleet": "The fleet as a whole.",
    "agents": "Agents: where they stand, what holds them, their inbox, their limits; and to ask for their time.",
    "runs": "Runs: what they were told, what they printed, who led to them.",
    "tasks": "The queue.",
    "dead": "Tasks that were given up, with their history.",
    "steps": "What a run records so that it is not done twice.",
    "decisions": "What the guards said.",
    "events": "Everything that happened, in order; also as it happens.",
    "engine": "The engine of this node.",
    "tools": "The same for a model.",
    "hooks": "What other systems send, by a signature or a token.",
    "others": "For those who are neither the operator nor a run.",
}
_ENGINE = ("nodes", "audit", "reload", "stop", "backup")
_TAG_OF = {"stream": "events", "stuck": "agents", **dict.fromkeys(_ENGINE, "engine")}


def tag_of(path: str) -> str:
    parts = path.strip("/").split("/")
    if parts[0] != "v1":
        return "tasks" if parts[0] == "api" else "others"
    return _TAG_OF.get(parts[1], parts[1] if parts[1] in TAGS else "fleet")


WORDS = {
    "after": "Only what comes after this one.",
    "agent": "The name of an agent, or an address that several share.",
    "agents": "The names of agents, separated by commas; who is unknown is left out.",
    "all": "Every task that the change leads anywhere from; without a filter nothing else means all.",
    "at": "An instant in the past: `2026-12-24T18:00Z` or `14:30`. Without it, now.",
    "at_once": "KILL now, without TERM and the grace.",
    "before": "Only what comes before this one, newest first.",
    "begun": "The step is about to be taken; its result comes later.",
    "body": "The text of the message.",
    "causal_key": "Tasks of one causal key are done in the order in which they came.",
    "cause": "What asks for the run.",
    "change": "What is to become of them.",
    "cursor": "The `next` of the page before.",
    "days": "How many days, today included.",
    "depends_on": "Tasks that must be completed first: by number, or by the key of the same sender.",
    "description": "What is to be done, at length.",
    "drain": "Wait for the open runs first.",
    "duration": "For how long: `45s`, `10m`, `2h`, `1d`. Without it, until somebody resumes.",
    "guard": "Only what this guard objected to.",
    "idempotency-key": "The same key finds what it asked for before; with another body it is a conflict (409).",
    "if-match": "The entity tag that you have seen: if it is another one by now nothing is changed (412).",
    "if-none-match": "The entity tag that you have seen: if it is still that one there is no body (304).",
    "key": "The same key finds what it asked for before; with another body it is a conflict (409).",
    "kinds": "Only events of these kinds.",
    "last-event-id": "The last `id:` that you were given: the stream goes on behind it.",
    "limit": "How many at most; of output, how many bytes.",
    "max_retries": "How often it is tried again after the first try.",
    "message_id": "The key that the task was added under.",
    "messages": "Messages by their numbers.",
    "metadata": "A JSON object of the sender's own, which means nothing to us.",
    "n": "How many beats.",
    "name": "The name of the step.",
    "names": "Only these, separated by commas; who is unknown is left out.",
    "not_before": "The first instant at which it may begin: `2026-12-24T18:00Z`, `14:30` or `in 20m`.",
    "now": "Also end what runs.",
    "offset": "From this byte on; below 0 it counts from the end.",
    "open": "Only runs under way, or only those that have ended.",
    "outcome": "Only those that ended like this; of a forecast, how each run is supposed to end.",
    "owner": "Only what this one has paused.",
    "path": "A whole path of a new file on the engine's machine.",
    "payload": "What the task is about, as JSON.",
    "priority": "`critical` is another word for urgent. Of messages, high and urgent ones ask for a wake themselves.",
    "prompt": "What the agent is to do.",
    "reason": "Why; an agent that wakes another says blocker, critical_finding or user_request.",
    "reply_to": "The message that this one answers.",
    "result": "What came of it.",
    "role": "A role: whoever has it may take the task.",
    "run": "The number of a run.",
    "run_length": "How long each run is supposed to take.",
    "sender": "Whom it comes from.",
    "settings": "Values as a person types them, by name; null takes an override back.",
    "since": "From when on: `2026-12-24T18:00Z` or `14:30`.",
    "source": "By what way it came.",
    "state": "Only those in this state; of tasks there may be several.",
    "stream": "What it printed, or what it complained of.",
    "subject": "What the message is about, in a few words.",
    "tag": "Only those with this tag.",
    "tags": "Words to find it by; a task with one tag and nobody named is for whoever takes tasks of that name.",
    "task": "The number of a task.",
    "tasks": "Several tasks.",
    "text": "A part of it: of a task's title or last error, of a verdict's reason, sender or agent.",
    "thread": "The first message of a conversation.",
    "timeout": "How long one attempt may take: `45s`, `10m`, `2h`.",
    "title": "In a few words.",
    "type": "What kind of message it is.",
    "until": "Until when; of tasks, the last that is meant.",
    "verdict": "Only verdicts of this kind.",
    "version": "The version that you have seen: if it is another one by now nothing is changed (412).",
    "wake": "The number of a wake.",
    "when": "An instant: `2026-12-24T18:00Z`, `14:30` or `in 20m`.",
    "HookWakeBody.text": "What has happened.",
    "HookAgentBody.name": "Who asks, for people to read.",
    "agentId": "The name of an agent; without it, the only one, or the one called main.",
    "message": "What is to be done.",
    "mode": "Ring now, or wait for the next run.",
    "timeoutSeconds": "How long the run may take.",
    **dict.fromkeys(PASSED_OVER, "Has no meaning here, and is passed over."),
}


def _link(operation: str, pointer: str, place: str) -> dict[str, Any]:
    return {operation: {"operationId": operation, "parameters": {place: f"$response.body#/{pointer}"}}}


_TO_TASK = {
    name: link
    for each in ("task", "cancel_task", "retry_task", "complete_task", "fail_task", "remove_task", "steps")
    for name, link in _link(each, "id", "task").items()
}
_TO_RUN = {
    name: link
    for each in ("show_run", "output", "kill", "blame")
    for name, link in _link(each, "run_id", "run").items()
}
_TO_WAKE = _link("decision", "wake_id", "wake")

# Where an answer leads: from what was created to what may be done with it.
LINKS: dict[str, dict[str, Any]] = {
    "add_task": _TO_TASK,
    "fail_task": {**_link("replay", "id", "task"), **_link("discard", "id", "task")},
    "tick": {**_TO_RUN, **_TO_WAKE},
    "wake": {**_TO_RUN, **_TO_WAKE},
    "at": _TO_WAKE,
    "run": {**_TO_RUN, **_TO_WAKE, **_link("task", "task_id", "task")},
}

_WORD: dict[str, Any] = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}


def _answer(schema: dict[str, Any], example: Any) -> dict[str, Any]:
    return {"description": "Answered", "content": {"application/json": {"schema": schema, "example": example}}}


_TODO: dict[str, Any] = {
    "type": "object",
    "properties": {
        "token": {"type": "string", "description": "A peer's (`wakeful token --peer`), or the operator's."},
        "from": {"type": "string", "minLength": 1, "maxLength": 100, "description": "Who the peer is."},
        "fromName": {"type": ["string", "null"], "maxLength": 100, "description": "What it is called."},
        "message": {"type": "string", "minLength": 1, "description": "What is to be done."},
        "idempotency_key": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": 255,
            "description": "The same key of the same peer is the same task.",
        },
    },
    "required": ["token", "from", "message"],
}
_LEFT: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "id": {"type": "integer"}, "duplicate": {"type": "boolean"}},
    "required": ["ok", "id", "duplicate"],
}

_MEASURED = """\
# HELP wakeful_run_completed_total Runs that ended, by agent, cause and outcome.
# TYPE wakeful_run_completed_total counter
wakeful_run_completed_total{agent="wren",cause="timer",outcome="done"} 12
"""
_NOT_YET = {
    "description": "It is not, or not yet",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "list_agents", "arguments": {}},
}
_CALLED = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "…"}], "isError": False}}
_RPC: dict[str, Any] = {
    "type": "object",
    "properties": {"jsonrpc": {"const": "2.0", "description": "The version of JSON-RPC."}},
    "required": ["jsonrpc"],
}

# Where a token is but one way to prove oneself.
EITHER: dict[str, list[dict[str, Any]]] = {"/hooks/cloudevents": [{"token": []}, {}]}

# What is no operation, by its path.
OTHERS: dict[str, dict[str, Any]] = {
    "/healthz": {
        "operationId": "healthz",
        "summary": "Whether the process is alive",
        "description": "Whether the process is alive. Needs no token, and tells nothing else.",
        "responses": {"200": _answer(_WORD, {"status": "alive"})},
    },
    "/readyz": {
        "operationId": "readyz",
        "summary": "Whether the engine is at work",
        "description": "Whether the engine is at work. Needs no token, and tells nothing else.",
        "responses": {"200": _answer(_WORD, {"status": "ready"}), "503": _NOT_YET},
    },
    "/metrics": {
        "operationId": "metrics",
        "summary": "Counts and gauges for Prometheus",
        "description": "What this node did since it started, and what is open, in the text format of Prometheus.",
        "responses": {
            "200": {
                "description": "Answered",
                "content": {"text/plain": {"schema": {"type": "string"}, "example": _MEASURED}},
            },
        },
    },
    "/v1/stream": {
        "operationId": "stream",
        "summary": "The events as they happen",
        "description": "The events as they happen, as server-sent events; without a place to go on from, from now on.",
        "responses": {},
    },
    "/v1/runs/{run}/log": {
        "operationId": "log",
        "summary": "What a run prints, as it does",
        "description": "What a run prints, as server-sent events, until it has ended: `output`, and at last `over`.",
        "responses": {},
    },
    "/peer-todo": {
        "summary": "A peer leaves a task",
        "description": (
            "A peer leaves a task for whoever takes tasks of the role `peer-todo`; it is recorded before the answer. "
            "The token is in the body. A refusal also says `ok: false`."
        ),
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            }
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": _TODO,
                    "example": {
                        "token": "peer.…",
                        "from": "night-desk",
                        "fromName": "Night desk",
                        "message": "Look at it.",
                    },
                }
            },
        },
        "responses": {"200": _answer(_LEFT, {"ok": True, "id": 42, "duplicate": False})},
    },
    "/mcp": {
        "operationId": "mcp",
        "tags": ["tools"],
        "summary": "The tools of the fleet, by the Model Context Protocol",
        "description": (
            "The tools of the fleet, by the Model Context Protocol: streamable HTTP, without sessions, each message "
            "answered by itself in JSON. What each tool takes and answers is told by `tools/list`."
        ),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _RPC, "example": _CALL}},
        },
        "responses": {
            "200": _answer(_RPC, _CALLED),
            "202": {"description": "Taken; it wants no answer"},
            "406": {"description": "It answers in JSON, and that is not accepted"},
        },
    },
}
