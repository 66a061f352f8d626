"""The store as the nodes of a world have it: the same verbs; and what each of them committed, written down.

Laws:
- Only what was committed is written into the witness, in the order of the commits, and also where the caller was never
  told: what a rollback took was never there.
- A verb is known by its `now`: a new one needs nothing here to have its place in the order.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from wakeful.store.store import SqlStore
from wakeful.testing.witness import Accepted, Call, Declared, Execution, Held, Observed, Released, Setting, Witness

# These only read, although they ask for the time.
READS = frozenset({"due", "ready", "why", "nodes", "overview", "backlog"})
# These say that somebody is there: no event tells of them.
UNTOLD = frozenset({"join", "leave", "renew", "orphans", "tend"})


class Told(NamedTuple):
    """One verb that returned: what it was given, and what it answered."""

    verb: str
    at: datetime
    given: dict[str, Any]
    answer: Any


@cache
def _parameters(verb: str) -> tuple[tuple[str, ...], dict[str, Any]] | None:
    """The names and the defaults of a verb that writes; None for any other attribute."""
    method = getattr(SqlStore, verb, None)
    if verb in READS | UNTOLD or verb.startswith("_") or not callable(method):
        return None
    _, *found = inspect.signature(method).parameters.values()
    names = tuple(each.name for each in found)
    defaults = {each.name: each.default for each in found if each.default is not each.empty}
    return (names, defaults) if "now" in names or verb == "note" else None


class SeenStore:
    """Inside one transaction."""

    def __init__(self, store: SqlStore, told: list[Told]) -> None:
        self._store = store
        self._told = told

    def __getattr__(self, verb: str) -> Any:
        found = getattr(self._store, verb)
        parameters = _parameters(verb)
        return found if parameters is None else self._written(verb, found, *parameters)

    def _written(
        self, verb: str, method: Callable[..., Any], names: tuple[str, ...], defaults: dict[str, Any]
    ) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            answer = method(*arguments, **named)
            given = {**defaults, **dict(zip(names, arguments, strict=False)), **named}
            if verb == "note":
                self._told += [Told(verb, event.at, given, answer) for event in given["events"]]
            else:
                self._told.append(Told(verb, given["now"], given, answer))
            return answer

        return call


class Scribe:
    """Writes what was committed into the witness."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness

    def commit(self, told: list[Told]) -> None:
        verbs: dict[datetime, list[str]] = {}
        for each in told:
            verbs.setdefault(each.at, []).append(each.verb)
        calls: dict[datetime, Call] = {}
        for at, names in verbs.items():
            # One instant may be used for two commits: the events of both stand behind the first.
            calls[at] = self.witness.calls.get(at) or self.witness.call(" ".join(names), at)
        for each in told:
            write = getattr(self, f"_{each.verb}", None)
            if write is not None:
                write(calls[each.at], each.given, each.answer)

    def _record(self, call: Call, given: dict[str, Any], answers: Any) -> None:
        for item, answer in zip(given["items"], answers, strict=True):
            self.witness.accepted.append(Accepted(id=answer.id, item=item, call=call, duplicate=answer.duplicate))
            self.witness.note("accepted", answer.id, answer.duplicate)

    def _declare(self, call: Call, given: dict[str, Any], answer: Any) -> None:
        declared = Declared(fleet=given["fleet"], call=call, boot=given["boot"], committed=True)
        self.witness.declared.append(declared)

    def _set(self, call: Call, given: dict[str, Any], answer: Any) -> None:
        self.witness.settings.append(Setting(agent=given["agent"], settings=given["settings"], call=call))

    def _pause(self, call: Call, given: dict[str, Any], answer: Any) -> None:
        self.witness.held.append(Held(pause=given["pause"], call=call, returned=True))

    def _resume(self, call: Call, given: dict[str, Any], answer: Any) -> None:
        self.witness.released.append(Released(scope=given["scope"], owner=given["owner"], call=call))

    def _observe(self, call: Call, given: dict[str, Any], answer: Any) -> None:
        observed = given["observed"]
        self._saw(call, given["source"], given["agent"], None if observed is None else tuple(observed))

    def _amend(self, call: Call, given: dict[str, Any], answer: Any) -> None:
        self._saw(call, given["source"], given["agent"], tuple(given["observed"]), partial=True)

    def _abandon(self, call: Call, given: dict[str, Any], left: Any) -> None:
        for source, agent in given["sources"]:
            if (source, agent) not in left:
                self._saw(call, source, agent, ())

    def _saw(self, call: Call, source: str, agent: str, things: Any, *, partial: bool = False) -> None:
        seen = Observed(source=source, agent=agent, things=things, call=call, committed=True, partial=partial)
        self.witness.observed.append(seen)

    def _ask(self, call: Call, given: dict[str, Any], answer: Any) -> None:
        self.witness.left.update(wake.requested_at for wake in given["wakes"])

    def _decide(self, call: Call, given: dict[str, Any], decisions: Any) -> None:
        for decision in decisions:
            self.witness.note("decided", decision.wake, decision.verdict.kind, decision.verdict.guard, decision.run)

    def _claim(self, call: Call, given: dict[str, Any], orders: Any) -> None:
        for order in orders:
            seen = {item.id: item.fingerprint for item in order.items}
            claimed = Execution(order=order, claimed=call, started=None, seen=seen)
            self.witness.executions[order.run.id] = claimed
            self.witness.note("claimed", order.run.id, order.run.agent, sorted(seen.items()), given["node"])

    def _finish(self, call: Call, given: dict[str, Any], outcomes: Any) -> None:
        for end, outcome in zip(given["ends"], outcomes, strict=True):
            execution = self.witness.executions[end.run]
            execution.told, execution.settled = end.ending, call
            for own in end.tasks:
                execution.tasks.setdefault(own.task, own)
            self.witness.note("finished", end.run, outcome)

    def _finish_tasks(self, call: Call, given: dict[str, Any], outcomes: Any) -> None:
        for end in given["ends"]:
            self.witness.executions[given["run"]].tasks.setdefault(end.task, end)
