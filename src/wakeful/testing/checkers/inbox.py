"""Messages and mirrored things: accepted is kept, shown moves only with an outcome, one generation rings once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wakeful.core.codec import read_time
from wakeful.core.events import Event, EventKind
from wakeful.core.items import Item
from wakeful.core.wakes import Wake
from wakeful.testing.checkers.history import History, Violation, error_class, outcome_of, taken
from wakeful.testing.checkers.ledger import Ledger
from wakeful.testing.witness import Execution, Observed

KEPT = "an accepted message is open, was read, or was closed by the outcome of a run that was shown it"
SHOWN = "a run is shown what its inbox holds, and `shown` moves only with its outcome"
RINGS = "one generation of an item rings once; a refused one is silent until the next beat"
ORDER = "messages of one sender and one priority are shown in the order in which they came"
RETRIED = "an inbox run is retried three times with the task backoff, no more"
SWEEP = timedelta(minutes=30)

MOST_SHOWN = 100


@dataclass(slots=True, kw_only=True)
class Letter:
    """One message as it must be."""

    row: Item
    agent: str
    fingerprint: str
    not_before: datetime | None
    born: datetime
    mirrored: bool
    held_by: int | None = None
    shown: str | None = None
    unanswered: int = 0
    closed: bool = False
    # The wake that its generation asked for, and when it was last quiet: only a sweep may break that.
    asked: int | None = None
    quiet_since: datetime | None = None
    sweeps: bool = False
    # A run had no room for it, and it may ring once more.
    left_out: bool = False
    # The run that held it when it went; and whether a good end of that run has answered it meanwhile.
    went_from: int | None = None
    answered: bool = False

    @property
    def wanting(self) -> bool:
        return not self.closed and (self.shown != self.fingerprint or self.unanswered > 0)


class Inbox:
    def __init__(self, history: History, ledger: Ledger) -> None:
        self.history = history
        self.ledger = ledger
        self.letters: dict[int, Letter] = {}
        self._mirrored: dict[tuple[str, str], Letter] = {}
        self._gone: dict[tuple[str, str, str], Letter] = {}
        self._rows = {
            (item.source, item.external_id, item.created_at): item
            for item in history.items.values()
            if item.external_id is not None
        }
        self._failed: dict[int, tuple[int, datetime | None]] = {}
        self._known: set[int | None] = set()
        self._away: set[str] = set()
        # A request that was only recorded while no engine lived is told by no event.
        self._named = {
            row.wake.item: id
            for id, row in history.wakes.items()
            if row.wake.item is not None and history.items[row.wake.item].external_id is None
        }

    # -- folding ----------------------------------------------------------------------------------------------
    def born(self, item: Item) -> None:
        if item.kind == "message" and item.agent is not None:
            said = self.history.said.get(item.id)
            self.letters[item.id] = Letter(
                row=item,
                agent=item.agent,
                fingerprint=item.fingerprint,
                # The row tells until when it was last put off.
                not_before=item.not_before if said is None else said.not_before,
                born=item.created_at,
                mirrored=False,
            )

    def observed(self, seen: Observed) -> Iterator[Violation]:
        if seen.things is None:
            return
        for thing in seen.things:
            letter = self._mirrored.get((seen.source, thing.external_id))
            if letter is None and seen.partial:
                continue
            if letter is None and thing.lasting:
                letter = self._gone.pop((seen.source, thing.external_id, thing.fingerprint), None)
                if letter is not None:
                    self._return(letter, seen.call.at)
                    self._mirrored[(seen.source, thing.external_id)] = letter
            if letter is None:
                row = self._rows.get((seen.source, thing.external_id, seen.call.at))
                if row is None:
                    what = f"{thing.external_id} of {seen.source} was seen at {seen.call.at}, and not recorded"
                    yield Violation(rule=KEPT, what=what)
                    continue
                letter = Letter(
                    row=row,
                    agent=seen.agent,
                    fingerprint=thing.fingerprint,
                    not_before=thing.not_before,
                    born=seen.call.at,
                    mirrored=True,
                )
                self.letters[row.id] = self._mirrored[(seen.source, thing.external_id)] = letter
            elif letter.fingerprint != thing.fingerprint:
                letter.fingerprint, letter.not_before = thing.fingerprint, thing.not_before
                letter.unanswered, letter.asked, letter.quiet_since = 0, None, None
        if seen.partial:
            return
        there = {thing.external_id for thing in seen.things}
        for source, id in [key for key in self._mirrored if key[0] == seen.source and key[1] not in there]:
            gone = self._mirrored.pop((source, id))
            gone.closed, gone.went_from, gone.held_by, gone.answered = True, gone.held_by, None, False
            self._gone[(source, id, gone.fingerprint)] = gone

    def _return(self, letter: Letter, now: datetime) -> None:
        """As it was when it went: a run that had it has it still, or has answered it; what nobody answered rings."""
        letter.closed = False
        if letter.not_before is not None and letter.not_before > now:
            return
        if letter.went_from is not None:
            letter.held_by = letter.went_from
        elif letter.answered:
            letter.shown, letter.unanswered = letter.fingerprint, 0
        elif letter.shown != letter.fingerprint or letter.unanswered:
            letter.asked = letter.quiet_since = None
            letter.unanswered = 0

    def apply(self, event: Event) -> Iterator[Violation]:
        match event.kind:
            case EventKind.started:
                yield from self._started(event)
            case EventKind.voided:
                for letter in self._held(event.run):
                    letter.held_by = None
                for letter in self._went_from(event.run):
                    letter.went_from = None
            case EventKind.ended:
                self._ended(event)
            case EventKind.decided:
                yield from self._decided(event)
            case EventKind.declared | EventKind.removed:
                self._come_or_gone(event)
            case EventKind.marked_read:
                letter = self.letters[event.item or 0]
                letter.closed, letter.held_by = True, None
            case EventKind.snoozed:
                letter = self.letters[event.item or 0]
                letter.not_before = read_time(str((event.fields or {})["until"]))
                letter.held_by = letter.shown = letter.asked = letter.quiet_since = None
                letter.unanswered = 0

    def _went_from(self, run: int | None) -> list[Letter]:
        return [letter for letter in self._gone.values() if letter.went_from == run]

    def _held(self, run: int | None) -> list[Letter]:
        return [letter for letter in self.letters.values() if letter.held_by == run]

    def _started(self, event: Event) -> Iterator[Violation]:
        fields, agent = event.fields or {}, self.ledger.agents[event.agent or ""]
        shown = {int(id): str(print) for id, print in fields.get("shown", [])}  # type: ignore[attr-defined]
        wanted: dict[int, str] = {}
        if fields["subject"] != "task":
            wanted = {
                id: letter.fingerprint
                for id, letter in self.letters.items()
                if letter.agent in (agent.name, agent.address)
                and letter.wanting
                and letter.held_by is None
                and (letter.not_before is None or letter.not_before <= event.at)
            }
        # Of a full inbox as much as a run can be told.
        right = shown == wanted if len(wanted) <= MOST_SHOWN else shown.items() <= wanted.items()
        if not right or len(shown) != min(len(wanted), MOST_SHOWN):
            what = f"run {event.run} of {agent.name} was shown {shown}, and its inbox held {wanted}"
            yield Violation(rule=SHOWN, what=what, rows=(event,))
        for id in wanted:
            self.letters[id].left_out = id not in shown
        for id in shown:
            self.letters[id].held_by = event.run
        execution = self.history.execution(event.run)
        if execution is not None and execution.seen != shown:
            what = f"run {event.run} saw {execution.seen}, and was recorded as shown {shown}"
            yield Violation(rule=SHOWN, what=what, rows=(event,))
        if execution is not None:
            yield from self._in_order(execution)
        wake = self.history.wakes[event.wake or 0].wake
        if not shown and wake.subject == "inbox" and wake.cause in ("peer", "news"):
            what = f"run {event.run} of {agent.name} was paid for, and shown nothing"
            yield Violation(rule=RINGS, what=what, rows=(event, wake))

    def _in_order(self, execution: Execution) -> Iterator[Violation]:
        """First in, first shown, for one sender and one priority; what a run failed on comes before."""
        last: dict[tuple[str | None, str, bool], int] = {}
        for item in execution.order.items:
            line = (item.sender, item.priority.value, item.unanswered > 0)
            if item.id < last.get(line, 0):
                what = f"run {execution.run} was shown item {item.id} after {last[line]} of the same sender"
                yield Violation(rule=ORDER, what=what, rows=(item,))
            last[line] = item.id

    def _ended(self, event: Event) -> None:
        execution = self.history.execution(event.run)
        assert execution is not None and execution.told is not None
        good = outcome_of(execution.told) in ("done", "no_work")
        for letter in self._held(event.run):
            seen = execution.seen[letter.row.id]
            # What changed while the run held it was its own doing.
            letter.shown = letter.fingerprint if letter.mirrored else seen
            letter.unanswered = 0 if good else letter.unanswered + 1
            letter.held_by, letter.closed = None, good and not letter.mirrored
            letter.asked = letter.asked or event.wake
            self._quiet(letter, event.at)
        for letter in self._went_from(event.run):
            letter.went_from = None
            letter.answered = good and execution.seen[letter.row.id] == letter.fingerprint
        if not good and execution.told.by is None and error_class(execution.told) != "quota":
            count, _ = self._failed.get(event.wake or 0, (0, None))
            at_once = taken(execution.told) and count == 0
            self._failed[event.wake or 0] = (count + 1, None if at_once else event.at)

    def _late(self, letter: Letter, wake: Wake, verdict: dict[str, Any]) -> bool:
        """Two nodes saw it at one instant, one of them was held up, and what they saw had been dealt with by then."""
        first = self.history.wakes[letter.asked or 0].wake
        return first.requested_at == wake.requested_at and verdict.get("guard") == "moot"

    def _decided(self, event: Event) -> Iterator[Violation]:
        row = self.history.wakes[event.wake or 0]
        verdict = (event.fields or {}).get("verdict")
        joined = (event.fields or {}).get("joined")
        if isinstance(joined, int):
            # A fresh request need not wait for what only waits out a failed try.
            count, _ = self._failed.get(joined, (0, None))
            self._failed[joined] = (count, None)
        if event.run is not None and row.wake.subject == "inbox":
            yield from self._retried(event)
        elif event.wake in self._failed:
            self._ripen(event)
        letter = self.letters.get(row.wake.item or 0)
        if letter is None:
            return
        rung = letter.not_before is None or letter.not_before <= event.at
        if event.wake not in self._known:
            # One that only joins another costs nothing.
            again = letter.asked is not None and not letter.left_out and not self._swept(letter, event.at)
            left = row.wake.requested_at in self.history.witness.left
            if again and not left and isinstance(verdict, dict) and not self._late(letter, row.wake, verdict):
                what = f"item {letter.row.id} asked for wake {letter.asked}, and asks for {event.wake} as well"
                yield Violation(rule=RINGS, what=what, rows=(event, letter.row))
            letter.asked, letter.left_out = event.wake, False
            self._quiet(letter, event.at)
        elif letter.asked is None and isinstance(verdict, dict) and verdict["kind"] == "defer" and rung:
            # It still waits for an earlier generation, and so for this one.
            letter.asked = event.wake
        self._known.add(event.wake)
        if isinstance(verdict, dict) and verdict["kind"] == "refuse":
            if verdict.get("guard") != "moot":
                self._quiet(letter, event.at)
            elif row.wake.requested_at > event.at:
                # By a clock that is behind it has not rung yet, and will.
                letter.asked = None

    def _quiet(self, letter: Letter, now: datetime) -> None:
        """Where no timer shows the inbox, a sweep rings again half an hour later."""
        agents = [agent for agent in self.ledger.agents.values() if letter.agent in (agent.name, agent.address)]
        letter.sweeps = any(agent.cadence.schedule is None and agent.cadence.base is None for agent in agents)
        letter.quiet_since = now

    def _swept(self, letter: Letter, now: datetime) -> bool:
        return letter.sweeps and letter.quiet_since is not None and now >= letter.quiet_since + SWEEP

    def _ripen(self, event: Event) -> None:
        """Its time has come by the clock of a node that put it off for another reason; others may be behind."""
        count, ended = self._failed[event.wake or 0]
        agent = self.ledger.agents.get(event.agent or "")
        if ended is not None and agent is not None and event.at >= ended + agent.retries.base * 2**count:
            self._failed[event.wake or 0] = (count, None)

    def _retried(self, event: Event) -> Iterator[Violation]:
        count, ended = self._failed.get(event.wake or 0, (0, None))
        agent = self.ledger.agents[event.agent or ""]
        if count > 3:
            what = f"wake {event.wake} has failed {count} times, and runs again"
            yield Violation(rule=RETRIED, what=what, rows=(event,))
        elif count and ended and ended <= event.at < ended + agent.retries.base * 2**count:
            what = f"wake {event.wake} failed for the {count}. time at {ended}, and ran again at {event.at}"
            yield Violation(rule=RETRIED, what=what, rows=(event,))

    def _come_or_gone(self, event: Event) -> None:
        """An agent that came back is rung for whatever it has not answered."""
        agent = self.ledger.agents[event.agent or ""]
        if not self.ledger.lives(agent.name):
            self._away.add(agent.name)
        elif agent.name in self._away:
            self._away.discard(agent.name)
            for letter in self.letters.values():
                if letter.agent in (agent.name, agent.address) and letter.wanting:
                    letter.asked = None

    # -- at the end -------------------------------------------------------------------------------------------
    def finish(self) -> Iterator[Violation]:
        for kept in self.history.witness.accepted:
            row = self.history.items.get(kept.id)
            if row is None or (row.subject, row.body) != (kept.item.subject, kept.item.body):
                yield Violation(rule=KEPT, what=f"item {kept.id} was accepted and is {row}", rows=(kept,))
        for letter in self.letters.values():
            row = letter.row
            found = (row.state == "closed", row.shown, row.unanswered)
            wanted = (letter.closed, letter.shown, letter.unanswered)
            if found != wanted and not (letter.mirrored and letter.closed and found[0]):
                what = f"item {row.id}: (closed, shown, unanswered) is {found}, and the runs say {wanted}"
                yield Violation(rule=KEPT, what=what, rows=(row,))
            yield from self._shown_at_last(letter)

    def _shown_at_last(self, letter: Letter) -> Iterator[Violation]:
        """After the drain nothing that rings is left that nobody asked for, or that was asked for in vain."""
        rings = letter.row.ring != "silent" or letter.row.unanswered > 0
        if not letter.wanting or letter.held_by is not None or not rings:
            return
        if not any(
            self.ledger.lives(name) and letter.agent in (name, agent.address)
            for name, agent in self.ledger.agents.items()
        ):
            return
        if letter.shown == letter.fingerprint or (letter.not_before or letter.born) > self.history.now:
            return
        row = self.history.wakes.get(letter.asked or self._named.get(letter.row.id, 0))
        while row is not None and row.joined is not None:
            row = self.history.wakes[row.joined]
        if row is None:
            late = max(letter.not_before or letter.born, letter.born) + SWEEP < self.history.now
            if late:
                yield Violation(rule="whatever rings is shown in the end", what="nobody asked", rows=(letter,))
        elif letter.left_out and row.run is not None and self.history.runs[row.run].ended_at is None:
            # A run that had no room for it is under way, and it rings when that has ended.
            return
        elif row.state == "admitted" or (row.state == "refused" and row.guard == "moot"):
            what = f"its wake {row.wake.id} is {row.state} ({row.guard}), and it was never shown"
            yield Violation(rule="whatever rings is shown in the end", what=what, rows=(letter, row))
