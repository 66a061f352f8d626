"""What rows, totals and events say of the same thing must agree, and with what the world saw."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import timedelta

from wakeful.core.events import Event, EventKind
from wakeful.testing.checkers.door import slots
from wakeful.testing.checkers.history import History, Violation, outcome_of
from wakeful.testing.checkers.ledger import Ledger
from wakeful.testing.checkers.rules import HALF_HOUR
from wakeful.testing.witness import Execution

# How often a run in each state was decided, started, ended and voided.
STORIES = {
    "admitted": {(1, 0, 0, 0)},
    "running": {(1, 1, 0, 0)},
    "ended": {(1, 1, 1, 0)},
    "void": {(1, 0, 0, 1), (1, 1, 0, 1)},
}


def check_rows(history: History, ledger: Ledger) -> Iterator[Violation]:
    """At the end, with the whole ledger told."""
    yield from events_match_rows(history)
    yield from standings_match(history, ledger)
    yield from totals_match(history, ledger)
    yield from runs_never_overlap(history)
    yield from wakes_know_where_they_came_from(history)
    yield from callers_are_told_the_verdict(history)
    yield from one_offs_fire_once(history, ledger)
    yield from pauses_match(history, ledger)


def events_match_rows(history: History) -> Iterator[Violation]:
    rule = "events are append-only, and every row has its events"
    early = history.witness.early_events
    if history.events[: len(early)] != early:
        yield Violation(rule=rule, what="events that were told before the drain have changed since")
    told: dict[int, Counter[EventKind]] = defaultdict(Counter)
    for event in history.events:
        if event.run is not None:
            told[event.run][event.kind] += 1
        if event.at not in history.witness.calls:
            yield Violation(rule=rule, what="an event has the time of no call", rows=(event,))
    for run in history.runs.values():
        kinds = (EventKind.decided, EventKind.started, EventKind.ended, EventKind.voided)
        found = tuple(told[run.id][kind] for kind in kinds)
        if found not in STORIES[run.state]:
            what = f"run {run.id} is {run.state}; decided, started, ended, voided are told {found} times"
            yield Violation(rule=rule, what=what, rows=(run,))
    for row in history.wakes.values():
        if row.state == "admitted" and (row.run is None or history.runs[row.run].state == "void"):
            yield Violation(rule="every admitted wake has a run", what="it has none", rows=(row,))


def check_end(ledger: Ledger, history: History, event: Event) -> Iterator[Violation]:
    """One ended event, after it is folded: what it says is what the agent came to."""
    if event.kind is not EventKind.ended or event.run is None:
        return
    execution = history.execution(event.run)
    assert execution is not None and execution.told is not None
    place, fields = ledger.places[event.agent or ""], event.fields or {}
    wanted = {
        "outcome": outcome_of(execution.told),
        "stands": [place.state, place.hits],
        "idle_streak": place.idle,
        "failure_streak": place.failures,
    }
    for key, value in wanted.items():
        if fields.get(key) != value:
            what = f"{event.agent}: {key} is told as {fields.get(key)!r}, and the fold of all outcomes says {value!r}"
            yield Violation(rule="position and streaks are the fold of the outcomes", what=what, rows=(event,))


def check_start(ledger: Ledger, history: History, event: Event) -> Iterator[Violation]:
    """One started event: the runner is handed the declaration of now, and the place that was folded."""
    execution = history.execution(event.run)
    if event.kind is not EventKind.started or execution is None:
        return
    rule = "a run begins with the declaration of now, where its agent stands"
    agent, run, opened = execution.order.agent, execution.order.run, ledger.open[event.run or 0]
    if agent != ledger.agents[agent.name]:
        what = f"{agent.name} was started with another declaration than the last"
        yield Violation(rule=rule, what=what, rows=(event, agent, ledger.agents[agent.name]))
    found = (run.position.state, run.position.hits, run.version)
    if found != (opened.state, opened.hits, opened.version):
        what = f"run {run.id} began at {found}, not at {(opened.state, opened.hits, opened.version)}"
        yield Violation(rule=rule, what=what, rows=(event,))
    scopes = {"fleet", f"agent:{agent.name}", f"agent:{agent.address}"}
    for (scope, owner), (until, since) in ledger.pauses.items():
        if owner.partition("@")[0] in ("operator", "file") and scope in scopes and (until is None or until > event.at):
            what = f"run {run.id} of {agent.name} began although {owner} paused {scope} with event {since}"
            yield Violation(rule="once a pause has returned, nothing begins in its scope", what=what, rows=(event,))
    tasks = execution.order.tasks
    own = tasks[0].timeout if len(tasks) == 1 else None
    if execution.order.deadline != event.at + (own or agent.wall_clock(run.subject)):
        what = f"the wall clock of run {run.id} ends at {execution.order.deadline}"
        yield Violation(rule=rule, what=what, rows=(event,))


def standings_match(history: History, ledger: Ledger) -> Iterator[Violation]:
    rule = "position and streaks are the fold of the outcomes"
    for name, place in ledger.places.items():
        standing = history.standings[name]
        pairs = (
            ("position", (standing.position.state, standing.position.hits), (place.state, place.hits)),
            ("idle streak", standing.idle_streak, place.idle),
            ("failure streak", standing.failure_streak, place.failures),
            ("gates", standing.gates or {}, place.gates),
            ("costs", list(standing.costs), place.costs),
        )
        for what, found, wanted in pairs:
            if found != wanted:
                yield Violation(rule=rule, what=f"{name}: {what} is {found}, not {wanted}", rows=(standing,))
        if standing.due_at != place.due:
            what = f"{name} is due at {standing.due_at}, and its outcomes say {place.due}"
            yield Violation(rule="due_at is the fold of the outcomes", what=what, rows=(standing,))
        cadence = ledger.agents[name].cadence
        interval = cadence.breather if cadence.continuous else cadence.interval
        if standing.due_at is not None and cadence.schedule is None and interval is not None:
            latest = history.now + max(interval, HALF_HOUR) + 2 * HALF_HOUR
            if standing.due_at > latest:
                what = f"{name} is due at {standing.due_at}, later than {latest}"
                yield Violation(rule="no wait is longer than its interval", what=what, rows=(standing,))


def totals_match(history: History, ledger: Ledger) -> Iterator[Violation]:
    for (scope, day, measure), amount in sorted(ledger.totals.items()):
        found = history.store.total(scope, day, measure)
        if found != amount:
            what = f"{measure} of {scope} on {day}: kept {found}, recounted {amount}"
            yield Violation(rule="totals are what a recount gives", what=what)


def runs_never_overlap(history: History) -> Iterator[Violation]:
    """Seen from outside: who was alive when each run started."""
    alive: list[Execution] = []
    lived = [seen for seen in history.witness.executions.values() if seen.started is not None]
    for execution in sorted(lived, key=_started):
        alive = [other for other in alive if other.ended is None or other.ended > _started(execution)]
        run, agent = execution.order.run, execution.order.agent
        for other in alive:
            if other.order.run.agent == run.agent:
                what = f"{run.agent} lived run {other.run} when run {run.id} started"
                yield Violation(rule="one run per agent at a time", what=what, rows=(run, other.order.run))
        alive.append(execution)
        pool = [other for other in alive if (other.order.run.subject == "task") == (run.subject == "task")]
        assert execution.order.wake is not None
        limit = slots(execution.order.wake, agent)
        if len(pool) > limit:
            what = f"{len(pool)} runs lived at once, and the limit is {limit}"
            yield Violation(rule="slots are never exceeded", what=what, rows=tuple(o.order.run for o in pool))


def _started(execution: Execution) -> timedelta:
    assert execution.started is not None
    return execution.started


def wakes_know_where_they_came_from(history: History) -> Iterator[Violation]:
    """Root and depth are those of the wake of the run that asked, one further; without such a run there are none."""
    for row in history.wakes.values():
        wake = row.wake
        wanted: tuple[int | None, int] = (None, 0)
        if wake.by_run is not None:
            parent = history.wakes[history.runs[wake.by_run].wake].wake
            wanted = (parent.root or parent.id, parent.depth + 1)
        if (wake.root, wake.depth) != wanted:
            what = f"wake {wake.id} has root and depth {(wake.root, wake.depth)}, not {wanted}"
            yield Violation(rule="a wake carries the root and depth of its chain", what=what, rows=(row,))


def callers_are_told_the_verdict(history: History) -> Iterator[Violation]:
    first: dict[int, Event] = {}
    for event in history.of(EventKind.decided):
        first.setdefault(event.wake or 0, event)
    for asked in history.witness.asked:
        decision, event = asked.decision, first[asked.decision.wake]
        fields = event.fields or {}
        verdict = fields.get("verdict")
        written: tuple[object, ...] = ("defer", decision.verdict.guard, None, fields.get("joined"))
        if isinstance(verdict, dict):
            written = (verdict["kind"], verdict.get("guard"), event.run, None)
        told = (decision.verdict.kind.value, decision.verdict.guard, decision.run, decision.joined)
        if told != written:
            what = f"wake {decision.wake} was answered {told}, and {written} is written"
            yield Violation(rule="whoever asks is told what is written", what=what, rows=(event, asked))


def one_offs_fire_once(history: History, ledger: Ledger) -> Iterator[Violation]:
    rule = "a declared one-off fires once"
    fired: Counter[tuple[str, str]] = Counter()
    for run in history.runs.values():
        wake = history.wakes[run.wake].wake
        if wake.slot != "" and run.state != "void":
            fired[(run.agent, wake.slot)] += 1
    for (name, slot), count in fired.items():
        if count > 1:
            yield Violation(rule=rule, what=f"{name} had {count} runs for {slot}")
    # One that came due while its agent was away has been refused, and told so.
    asked = {(row.wake.agent, row.wake.slot) for row in history.wakes.values() if row.state != "admitted"}
    for name, agent in ledger.agents.items():
        for moment in agent.one_offs if ledger.lives(name) else ():
            slot = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            if moment in ledger.never_ours[name]:
                if fired[(name, slot)]:
                    what = f"{name} was first declared after {slot}, and ran for it"
                    yield Violation(rule=rule, what=what)
            elif not fired[(name, slot)] and (name, slot) not in asked:
                yield Violation(rule=rule, what=f"{name} has neither a run nor a wake for {slot}")


def pauses_match(history: History, ledger: Ledger) -> Iterator[Violation]:
    found = {(pause.scope, pause.owner): pause.until for pause in history.pauses}
    wanted = {key: until for key, (until, _) in ledger.pauses.items()}
    if found != wanted:
        yield Violation(rule="a pause stands until it is lifted", what=f"found {found}, told {wanted}")
    told = {(event.at, str((event.fields or {}).get("scope"))) for event in history.of(EventKind.paused)}
    for held in history.witness.held:
        if held.returned and (held.call.at, held.pause.scope) not in told:
            what = "a pause was accepted and never told"
            yield Violation(rule="a pause stands until it is lifted", what=what, rows=(held,))
