"""Keeping: what is over is forgotten in time, what is open rests on what it needs, and a copy is a whole store."""

from __future__ import annotations

import stat
from datetime import datetime, timedelta

import pytest

from wakeful.core.agents import Limits
from wakeful.core.errors import Conflict, Mistake
from wakeful.core.events import EventKind
from wakeful.core.items import Kind, NewItem, State
from wakeful.core.runs import Ending
from wakeful.core.wakes import Pause
from wakeful.store.protocol import Forgotten
from wakeful.testing.contracts.store_case import (
    DONE,
    FAILED,
    HOUR,
    MINUTE,
    NO_WORK,
    NOW,
    SECOND,
    TODAY,
    StoreCase,
    an_agent,
    operator,
    tick,
    work,
)

DAY = timedelta(days=1)
MONTH = timedelta(days=30)
LATER = NOW + 2 * MONTH
NOTHING = Forgotten()


class KeepingContract(StoreCase):
    def forget(self, now: datetime = LATER, *, limit: int = 500) -> Forgotten:
        """As an engine does it: rows are kept for a month, keys for two weeks."""
        return self.store.forget(now - MONTH, now - timedelta(days=14), now, limit=limit)

    def has_run(self, agent: str, at: datetime) -> int:
        order = self.start(operator(agent, at), at)
        self.end(order, DONE, at)
        return order.run.id

    def whole(self) -> None:
        """What is left can be lived with: the next runs of everyone begin and end."""
        self.reopen()
        now = LATER + HOUR
        for order in self.serve(now):
            self.end(order, DONE, now)

    # -- runs, wakes and events

    def test_there_is_nothing_to_forget_in_an_empty_store(self) -> None:
        assert self.forget() == NOTHING

    def test_what_ended_within_the_month_is_kept(self) -> None:
        self.declare("moss")
        self.has_run("moss", NOW)
        self.has_run("moss", NOW + MINUTE)
        runs, wakes, events = self.store.runs(), self.store.wakes(), self.store.events()
        assert self.forget(NOW + MONTH) == NOTHING
        assert (self.store.runs(), self.store.wakes(), self.store.events()) == (runs, wakes, events)

    def test_runs_that_ended_before_are_forgotten_with_their_wakes_and_events(self) -> None:
        self.declare("moss")
        old = [self.has_run("moss", NOW + n * MINUTE) for n in range(3)]
        recent = self.has_run("moss", LATER - DAY)
        gone = self.forget()
        assert (gone.runs, gone.wakes, gone.more) == (3, 3, False)
        assert [run.id for run in self.store.runs()] == [recent]
        assert [row.run for row in self.store.wakes()] == [recent]
        # The end before the month began still tells where the agent stood when it did.
        assert [(e.kind, e.run) for e in self.store.events() if e.run not in (None, recent)] == [("ended", old[2])]
        assert all(self.store.run(run) is None for run in old)
        assert self.forget() == NOTHING
        self.whole()

    def test_an_agents_last_run_is_kept_however_long_ago_it_was(self) -> None:
        self.declare("moss", "wren")
        self.has_run("moss", NOW)
        last = {self.has_run("moss", NOW + MINUTE), self.has_run("wren", NOW)}
        assert self.forget().runs == 1
        assert {run.id for run in self.store.runs()} == last
        (order, *_) = (order for order in self.serve(LATER) if order.agent.name == "moss")
        assert order.last == "done"

    def test_what_is_open_is_kept_however_old_it_is(self) -> None:
        self.declare("moss", "wren")
        order = self.start(operator("moss"))
        waiting = self.decide(operator("moss")).wake
        joined = self.decide(operator("moss")).wake
        message, task = self.message("wren"), self.task("wren", not_before=LATER + DAY)
        self.forget()
        assert [run.id for run in self.store.runs()] == [order.run.id]
        assert [row.wake.id for row in self.store.wakes()] == [order.run.wake, waiting, joined]
        assert [item.id for item in self.store.items()] == [message, task]
        self.end(order, DONE, LATER)
        assert [order.run.wake for order in self.serve(LATER + SECOND) if order.agent.name == "moss"] == [waiting]

    def test_refused_and_joined_wakes_are_forgotten(self) -> None:
        self.declare(an_agent("moss", limits=Limits(wakes_per_day=0)), "wren")
        self.ring("moss", "wren")
        first = self.start(operator("moss"))
        for n in range(3):
            self.decide(operator("moss", NOW + n * SECOND), NOW + n * SECOND)
        self.end(first, DONE, NOW + MINUTE)
        (second,) = self.serve(NOW + MINUTE)
        self.end(second, DONE, NOW + 2 * MINUTE)
        assert [row.state for row in self.store.wakes()] == ["refused", "admitted", "admitted", "joined", "joined"]
        self.forget()
        self.forget()
        # The last run of moss is kept, and so is the wake that it came from.
        assert [row.run for row in self.store.wakes()] == [second.run.id]
        self.whole()

    def test_a_sweep_takes_no_more_than_it_is_told_and_says_when_there_is_more(self) -> None:
        self.declare("moss")
        for n in range(7):
            self.has_run("moss", NOW + n * MINUTE)
        swept = [self.forget(limit=2)]
        while swept[-1].more:
            swept.append(self.forget(limit=2))
        assert [gone.runs for gone in swept[:4]] == [2, 2, 2, 0]
        assert all(max(gone.runs, gone.wakes, gone.events, gone.items) <= 2 for gone in swept)
        assert (len(self.store.runs()), len(self.store.wakes())) == (1, 1)
        assert [event.kind for event in self.store.events()] == [EventKind.declared, EventKind.ended]

    def test_what_counts_for_today_is_kept_whatever_is_asked(self) -> None:
        self.declare(an_agent("moss", limits=Limits(cooldown=timedelta())), "wren")
        decision = self.ring("moss", "wren")
        (order,) = self.claim()
        self.end(order, DONE, NOW)
        for n in range(1, 4):
            self.has_run("moss", NOW + n * MINUTE)
        now = NOW + HOUR
        assert self.store.forget(now, now, now).runs == 0
        assert self.store.run(decision.run or 0) is not None
        assert self.wakes_of("moss") == 1

    def test_totals_of_days_gone_by_are_forgotten_in_their_turn(self) -> None:
        self.declare("moss")
        order = self.start(operator("moss"))
        self.end(order, Ending(exit_code=0, elapsed=MINUTE), NOW)
        assert self.store.total("agent:moss", TODAY, "ms") == 60_000
        self.forget(NOW + MONTH)
        assert self.store.total("agent:moss", TODAY, "ms") == 60_000
        self.forget()
        assert self.store.total("agent:moss", TODAY, "ms") == 0

    def test_the_cooldown_still_counts_from_the_last_wake_that_was_admitted(self) -> None:
        patient = an_agent("moss", limits=Limits(cooldown=90 * DAY))
        self.declare(patient, "wren")
        charged = self.ring("moss", "wren").run
        (order,) = self.claim()
        self.end(order, DONE)
        for n in range(3):
            self.has_run("moss", NOW + n * MINUTE)
        self.forget()
        assert charged in {run.id for run in self.store.runs()}
        assert self.ring("moss", "wren", LATER).verdict.guard == "cooldown"

    def test_who_wrote_something_that_is_still_open_is_kept(self) -> None:
        self.declare("moss", "wren")
        author = self.start(operator("wren"))
        task = self.task("moss", by_run=author.run.id, not_before=LATER)
        self.end(author)
        for n in range(3):
            self.has_run("wren", NOW + n * MINUTE)
        self.forget()
        assert author.run.id in {run.id for run in self.store.runs()}
        wake = self.start(work(task, "moss", LATER, by_run=author.run.id), LATER).wake
        assert wake is not None
        assert (wake.by_run, wake.depth) == (author.run.id, 1)

    def test_a_declared_one_off_is_not_fired_a_second_time(self) -> None:
        at = NOW + HOUR
        self.declare(an_agent("moss", one_offs=(at,)))
        for order in self.serve(at):
            self.end(order, DONE, at)
        for n in range(3):
            self.has_run("moss", at + n * HOUR)
        self.forget()
        self.declare("moss", now=LATER)
        self.declare(an_agent("moss", one_offs=(at,)), now=LATER + SECOND)
        assert [wake for wake in self.waiting() if wake.one_off] == []
        self.declare("moss", now=LATER + MINUTE)
        self.forget()
        assert [row for row in self.store.wakes() if row.wake.one_off] == []

    # -- items

    def test_closed_messages_and_tasks_are_forgotten_with_their_tries(self) -> None:
        self.declare("moss")
        message, task = self.message("moss"), self.task("moss", max_retries=1)
        for at, ending in ((NOW, FAILED), (NOW + HOUR, DONE)):
            self.end(self.start(work(task, "moss", at), at), ending, at)
        assert self.item(task).state is State.completed
        self.has_run("moss", NOW + 2 * HOUR)
        assert self.item(message).state is State.closed
        gone = self.forget()
        assert (gone.items, gone.runs) == (2, 2)
        assert (self.store.items(), self.store.attempts(task)) == ([], [])
        self.whole()

    def test_a_task_that_is_open_keeps_every_try_at_it(self) -> None:
        self.declare(an_agent("moss"), "wren")
        task = self.task("moss")
        runs = []
        for n in range(3):
            at = NOW + n * HOUR
            order = self.start(work(task, "moss", at), at)
            self.end(order, FAILED, at)
            runs.append(order.run.id)
        self.has_run("moss", NOW + 5 * HOUR)
        self.forget()
        assert [attempt.run for attempt in self.store.attempts(task)] == runs
        assert [run.id for run in self.store.runs()][:3] == runs

    def test_what_something_open_depends_on_is_kept(self) -> None:
        self.declare("moss")
        needed = self.task("moss", max_retries=0)
        blocked = self.task("moss", depends_on=(needed,))
        self.end(self.start(work(needed, "moss")), FAILED)
        self.has_run("moss", NOW + MINUTE)
        assert (self.item(needed).state, self.item(blocked).state) == (State.dead_letter, State.blocked)
        self.forget()
        assert self.store.change_task(needed, "retry", "rana", LATER).state is State.pending
        assert self.item(blocked).state is State.pending

    def test_what_depended_on_each_other_is_forgotten_together(self) -> None:
        self.declare("moss")
        first = self.task("moss")
        second = self.task("moss", depends_on=(first,))
        for n, task in enumerate((first, second)):
            self.end(self.start(work(task, "moss", NOW + n * MINUTE), NOW + n * MINUTE), DONE, NOW + n * MINUTE)
        assert self.forget(limit=1).items == 1
        assert self.forget().items == 1
        self.whole()

    def test_a_key_is_good_for_two_weeks_after_its_item_is_closed(self) -> None:
        self.declare("moss")
        item = NewItem(kind=Kind.message, agent="moss", body="one", dedupe="k1")
        other = NewItem(kind=Kind.message, agent="moss", body="another", dedupe="k1")
        (first,) = self.store.record([item], NOW)
        self.forget(NOW + 10 * MONTH)
        assert self.store.record([item], NOW)[0].duplicate
        self.has_run("moss", NOW)
        self.forget(NOW + timedelta(days=13))
        with pytest.raises(Conflict):
            self.store.record([other], NOW)
        self.forget(NOW + timedelta(days=15))
        (second,) = self.store.record([other], NOW)
        assert (second.duplicate, second.id != first.id) == (False, True)
        assert self.item(first.id).body == "one"

    def test_an_item_is_kept_for_its_key_where_keys_are_kept_longer(self) -> None:
        self.declare("moss")
        keyed, plain = self.message("moss", dedupe="k1"), self.message("moss")
        self.has_run("moss", NOW)
        self.has_run("moss", NOW + MINUTE)
        week = NOW + timedelta(days=7)
        assert self.store.forget(week - DAY, week - timedelta(days=14), week).items == 1
        assert [item.id for item in self.store.items()] == [keyed]
        assert plain != keyed

    # -- events and declarations

    def kinds(self, agent: str | None = None) -> list[EventKind]:
        return [event.kind for event in self.store.events() if event.agent == agent]

    def test_of_each_agent_the_last_word_on_its_declaration_is_kept(self) -> None:
        self.declare("moss", "wren", "hale")
        self.store.set("moss", {"burst": 7}, "rana", NOW + MINUTE)
        self.declare("moss", an_agent("wren", max_failures=9), now=NOW + 2 * MINUTE)
        self.store.set("moss", {"burst": 8}, "rana", LATER - DAY)
        self.forget()
        # What held a month ago is still told, for whoever asks why something was decided three weeks ago.
        assert self.kinds("moss") == [EventKind.set, EventKind.set]
        assert self.kinds("wren") == [EventKind.declared]
        assert self.kinds("hale") == [EventKind.declared, EventKind.removed]
        settings = [(event.fields or {}).get("settings") for event in self.store.events(agent="moss")]
        assert settings == [{"burst": 7}, {"burst": 8}]
        assert '"max_failures":9' in str((self.store.events(agent="wren")[0].fields or {})["body"])

    def test_of_a_pause_the_event_that_began_it_is_kept_until_it_is_over(self) -> None:
        self.declare("moss")
        for scope, owner in (("fleet", "rana"), ("fleet", "kim"), ("agent:moss", "rana")):
            self.store.pause(Pause(scope=scope, owner=owner, reason="", since=NOW), NOW)
        self.store.pause(Pause(scope="fleet", owner="rana", reason="still", since=NOW), NOW + MINUTE)
        self.store.resume("fleet", "kim", NOW + HOUR, owner="kim")
        self.store.resume("agent:moss", "rana", LATER - DAY)
        self.forget()
        told = [
            (event.kind.value, fields["scope"], fields["owner"])
            for event in self.store.events(kinds=(EventKind.paused, EventKind.resumed))
            if (fields := event.fields or {})
        ]
        assert told == [
            ("paused", "agent:moss", "rana"),
            ("paused", "fleet", "rana"),
            ("resumed", "agent:moss", "rana"),
        ]
        self.forget(LATER + 2 * MONTH)
        assert [event.kind for event in self.store.events(kinds=(EventKind.paused,))] == [EventKind.paused]

    def test_an_instant_is_still_found_among_the_events_that_are_left(self) -> None:
        self.declare("moss")
        for n, at in enumerate((NOW + HOUR, NOW, NOW + MINUTE, LATER - DAY, LATER - 2 * DAY, LATER)):
            self.store.pause(Pause(scope="fleet", owner=str(n % 2), reason=str(n), since=NOW), at)
        gone = self.forget().events
        events = self.store.events()
        assert gone and len(events) > 3
        for event in events:
            before = [other.id for other in events if other.at <= event.at]
            assert self.store.events_until(event.at) == max(before)
        assert self.store.events_until(NOW - HOUR) == 0

    def test_declarations_that_nobody_rests_on_are_forgotten_and_a_pinned_one_is_not(self) -> None:
        versions = [an_agent("moss", max_failures=n) for n in range(1, 6)]
        for n, version in enumerate(versions[:3]):
            self.declare(version, now=NOW + n * MINUTE)
            self.has_run("moss", NOW + n * MINUTE)
        held = self.start(tick("moss", NOW + HOUR), NOW + HOUR)
        for n, version in enumerate(versions[3:]):
            self.declare(version, now=NOW + (n + 2) * HOUR)
        assert self.forget().runs == 2
        self.reopen()
        self.end(held, NO_WORK, LATER)
        assert [agent.max_failures for agent in self.store.agents()] == [5]
        self.whole()

    # -- a copy

    def test_a_backup_is_a_whole_store_of_everything_committed(self) -> None:
        self.declare("moss", "wren")
        self.has_run("moss", NOW)
        order = self.start(operator("wren"))
        folder = self.folder / "copies"
        folder.mkdir()
        path = folder / "wakeful.db"
        self.store.backup(path)
        self.message("moss", "after the copy")
        copy = self.make_store(folder)
        try:
            assert copy.events() == self.store.events()
            assert (copy.runs(), copy.items()) == (self.store.runs(), [])
            assert [row.id for row in copy.runs(open=True)] == [order.run.id]
            assert copy.agents() == self.store.agents()
        finally:
            copy.close()

    def test_a_backup_is_private_and_alone(self) -> None:
        self.declare("moss")
        folder = self.folder / "copies"
        folder.mkdir()
        self.store.backup(folder / "copy.db")
        assert [path.name for path in folder.iterdir()] == ["copy.db"]
        assert stat.S_IMODE((folder / "copy.db").stat().st_mode) == 0o600

    @pytest.mark.parametrize("kind", ["file", "link", "folder"])
    def test_a_backup_replaces_nothing(self, kind: str) -> None:
        path, victim = self.folder / "copy.db", self.folder / "victim"
        victim.write_text("precious")
        if kind == "file":
            path.write_text("precious")
        elif kind == "link":
            path.symlink_to(self.folder / "dangling")
        else:
            path.mkdir()
        before = sorted(entry.name for entry in self.folder.iterdir())
        with pytest.raises(Mistake, match=r"copy\.db exists already"):
            self.store.backup(path)
        assert sorted(entry.name for entry in self.folder.iterdir()) == before
        assert victim.read_text() == "precious"

    def test_a_backup_into_a_folder_that_is_not_there_says_so(self) -> None:
        with pytest.raises(Mistake, match=r"cannot write .*copy\.db: No such file or directory"):
            self.store.backup(self.folder / "nowhere" / "copy.db")
