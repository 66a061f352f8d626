"""Declaring a fleet: versions, removal, the first beat, the beat after a boot, one-offs and live settings."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from wakeful.core.admission import admit
from wakeful.core.agents import Agent, Limits
from wakeful.core.cadence import Cadence
from wakeful.core.codec import decode
from wakeful.core.errors import Mistake, Outdated, Unknown
from wakeful.core.events import EventKind
from wakeful.core.lifecycle import Lifecycle, Position, State
from wakeful.core.wakes import Cause
from wakeful.testing.contracts.store_case import (
    ADMIT,
    DEFER,
    DONE,
    FAILED,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    StoreCase,
    an_agent,
    operator,
    timer,
)

GRACE = timedelta(seconds=60)
STAGGER = timedelta(seconds=30)
TWO_STATES = Lifecycle("add", (State("add", repeat=3, next="audit"), State("audit", next="add")))


class DeclaringContract(StoreCase):
    def test_a_new_agent_has_a_declaration_and_a_standing_at_the_start_of_its_day(self) -> None:
        assert self.declare(an_agent("moss", lifecycle=TWO_STATES, roles=("editor",))) == ["moss"]
        found = self.store.agent("moss")
        assert found is not None
        assert (found.lifecycle, found.roles, found.cadence) == (TWO_STATES, ("editor",), Cadence(interval=HOUR))
        standing = self.standing("moss")
        assert (standing.position, standing.idle_streak, standing.last_outcome) == (Position("add"), 0, None)

    def test_a_declaration_survives_being_reopened(self) -> None:
        self.declare(an_agent("moss", lifecycle=TWO_STATES, timezone="Europe/Berlin"), "wren")
        before = (self.store.agents(), self.standing("moss"), self.store.events())
        self.reopen()
        assert (self.store.agents(), self.standing("moss"), self.store.events()) == before

    def test_the_same_fleet_again_changes_nothing(self) -> None:
        self.declare("moss", "wren")
        before = self.store.events()
        assert self.declare("moss", "wren", now=NOW + MINUTE) == []
        assert self.store.events() == before

    def test_a_changed_agent_gets_a_new_version_and_the_others_do_not(self) -> None:
        self.declare("moss", "wren")
        assert self.declare(an_agent("moss", max_failures=9), "wren", now=NOW + MINUTE) == ["moss"]
        found = self.store.agent("moss")
        assert found is not None and found.max_failures == 9
        told = [event for event in self.store.events(agent="moss") if event.kind is EventKind.declared]
        assert [event.fields["version"] for event in told if event.fields] == [1, 2]
        assert len(self.store.events(agent="wren")) == 1

    def test_a_run_keeps_the_version_it_was_admitted_with(self) -> None:
        self.declare(an_agent("moss", lifecycle=TWO_STATES))
        order = self.start(timer("moss", NOW + HOUR), NOW + HOUR)
        edited = Lifecycle("audit", (State("audit", next="audit"),))
        self.declare(an_agent("moss", lifecycle=edited), now=NOW + HOUR)
        self.end(order, DONE, NOW + HOUR)
        assert order.run.version == 1
        assert self.standing("moss").position == Position("audit")
        assert self.start(timer("moss", NOW + 2 * HOUR), NOW + 2 * HOUR).run.version == 2

    def test_an_outcome_is_credited_to_the_day_that_the_run_began_in(self) -> None:
        self.declare(an_agent("moss", lifecycle=TWO_STATES))
        order = self.start(timer("moss", NOW + HOUR), NOW + HOUR)
        other_way = Lifecycle("audit", (State("add", repeat=3, next="add"), State("audit", next="add")))
        self.declare(an_agent("moss", lifecycle=other_way), now=NOW + HOUR)
        self.end(order, DONE, NOW + HOUR)
        assert self.standing("moss").position == Position("add", 1)

    # -- removal

    def test_a_missing_agent_is_removed_and_its_history_stays(self) -> None:
        self.declare("moss", "wren")
        self.end(self.start(timer("moss", NOW + HOUR), NOW + HOUR), DONE, NOW + HOUR)
        assert self.declare("wren", now=NOW + 2 * HOUR) == ["moss"]
        assert [agent.name for agent in self.store.agents()] == ["wren"]
        assert [agent.name for agent in self.store.agents(removed=True)] == ["moss", "wren"]
        assert len(self.store.runs(agent="moss")) == 1
        assert self.store.events(agent="moss")[-1].kind is EventKind.removed
        assert self.standing("moss").last_outcome == "done"

    def test_a_removed_agent_is_woken_for_nothing(self) -> None:
        self.declare("moss", "wren")
        self.task("moss")
        self.call("moss", "wren")
        self.declare("wren")
        later = NOW + 9 * HOUR
        self.serve(later)
        assert self.store.runs(agent="moss") == []
        assert [wake for wake in self.due(later) if wake.agent == "moss"] == []
        assert self.decide(operator("moss", later), later).verdict.guard == "moot"

    def test_an_agent_that_comes_back_stands_where_it_stood_and_gets_a_beat(self) -> None:
        self.declare(an_agent("moss", lifecycle=TWO_STATES))
        self.end(self.start(timer("moss", NOW + HOUR), NOW + HOUR), DONE, NOW + HOUR)
        self.declare("wren", now=NOW + 2 * HOUR)
        assert self.declare(an_agent("moss", lifecycle=TWO_STATES), now=NOW + 3 * HOUR) == ["moss", "wren"]
        assert self.standing("moss").position == Position("add", 1)
        assert self.standing("moss").due_at == NOW + 4 * HOUR

    def test_a_disabled_agent_has_no_beat_and_runs_for_nobody(self) -> None:
        self.declare(an_agent("moss", enabled=False))
        assert self.standing("moss").due_at is None
        assert self.due(NOW + 9 * HOUR) == []
        assert self.decide(operator("moss")).verdict.guard == "moot"

    def test_what_rang_for_a_disabled_agent_rings_when_it_is_enabled_again(self) -> None:
        self.declare(an_agent("moss", enabled=False), "wren")
        item = self.call("moss", "wren")
        self.serve(NOW)
        assert self.store.runs() == []
        self.declare("moss", "wren", now=NOW + MINUTE)
        (order,) = self.serve(NOW + MINUTE)
        assert [shown.id for shown in order.items] == [item]

    # -- the first beat, and the one after a boot

    def test_first_beats_are_staggered_behind_the_grace(self) -> None:
        self.declare("desk", "moss", "wren", "hale", grace=GRACE, stagger=STAGGER)
        due = [self.standing(name).due_at for name in ("desk", "moss", "wren", "hale")]
        assert due == [NOW + timedelta(seconds=seconds) for seconds in (60, 90, 120, 150)]

    def test_the_stagger_of_a_quick_agent_is_at_most_its_share_of_the_interval(self) -> None:
        quick = [an_agent(name, cadence=Cadence(interval=MINUTE)) for name in ("a", "b", "c", "d")]
        self.declare(*quick, grace=GRACE, stagger=STAGGER)
        due = [self.standing(agent.name).due_at for agent in quick]
        assert due == [NOW + timedelta(seconds=seconds) for seconds in (60, 75, 90, 105)]

    def test_an_agent_without_a_timer_has_no_beat(self) -> None:
        self.declare(an_agent("moss", cadence=Cadence()))
        assert self.standing("moss").due_at is None
        assert self.store.due(NOW).next_at is None

    def test_due_tells_when_the_next_beat_comes(self) -> None:
        self.declare("moss", "wren", grace=GRACE, stagger=STAGGER)
        assert self.due(NOW + 59 * SECOND) == []
        assert self.store.due(NOW).next_at == NOW + GRACE
        (wake,) = self.due(NOW + GRACE)
        assert (wake.agent, wake.cause, wake.requested_at) == ("moss", Cause.timer, NOW + GRACE)

    def test_an_overdue_beat_waits_for_the_grace_after_a_boot_and_is_caught_up_once(self) -> None:
        self.declare(an_agent("moss", cadence=Cadence(interval=10 * MINUTE)), grace=GRACE)
        boot = NOW + 5 * HOUR
        self.declare(an_agent("moss", cadence=Cadence(interval=10 * MINUTE)), now=boot, boot=True, grace=GRACE)
        assert self.standing("moss").due_at == boot + GRACE
        assert self.due(boot + 59 * SECOND) == []
        (order,) = self.serve(boot + GRACE)
        self.end(order, DONE, boot + GRACE)
        assert self.standing("moss").due_at == boot + GRACE + 10 * MINUTE
        assert self.due(boot + GRACE) == []

    def test_a_beat_beyond_the_grace_is_kept_by_a_boot(self) -> None:
        self.declare("moss")
        self.declare("moss", now=NOW + 10 * MINUTE, boot=True, grace=GRACE)
        assert self.standing("moss").due_at == NOW + HOUR

    def test_a_clock_set_back_never_lengthens_the_wait_beyond_the_interval(self) -> None:
        self.declare("moss", now=NOW + 100 * HOUR)
        self.declare("moss", now=NOW, boot=True, grace=GRACE)
        due = self.standing("moss").due_at
        assert due is not None and NOW + GRACE <= due <= NOW + HOUR

    def test_a_waiting_timer_wake_waits_for_the_grace_too(self) -> None:
        self.declare("moss")
        at = NOW + HOUR
        self.start(operator("moss", at), at)
        assert self.decide(timer("moss", at), at).verdict.kind is DEFER
        self.store.set("moss", {"burst": 19}, "rana", at)  # has it tried again at once
        self.declare("moss", now=at, boot=True, grace=GRACE)
        assert [wake for wake in self.due(at + 59 * SECOND) if wake.cause is Cause.timer] == []

    def test_an_edit_that_shortens_the_interval_brings_the_beat_forward(self) -> None:
        self.declare("moss")
        self.declare(an_agent("moss", cadence=Cadence(interval=5 * MINUTE)), now=NOW + MINUTE)
        assert self.standing("moss").due_at == NOW + 6 * MINUTE

    def test_an_edit_that_leaves_the_cadence_alone_leaves_the_beat_alone(self) -> None:
        self.declare("moss")
        self.declare(an_agent("moss", max_failures=9), now=NOW + 30 * MINUTE)
        assert self.standing("moss").due_at == NOW + HOUR

    def test_an_edit_that_brings_many_beats_forward_spreads_them(self) -> None:
        names = ("a", "b", "c")
        self.declare(*names)
        quick = [an_agent(name, cadence=Cadence(interval=10 * MINUTE)) for name in names]
        self.declare(*quick, now=NOW + MINUTE, stagger=20 * SECOND)
        due = [self.standing(name).due_at for name in names]
        assert due == [NOW + 11 * MINUTE + n * 20 * SECOND for n in range(3)]

    def test_an_edit_of_the_offset_counts_it_anew(self) -> None:
        self.declare("moss", grace=GRACE)
        moved = an_agent("moss", cadence=Cadence(interval=HOUR, offset=10 * MINUTE))
        self.declare(moved, now=NOW + MINUTE, grace=GRACE)
        assert self.standing("moss").due_at == NOW + MINUTE + GRACE + 10 * MINUTE

    def test_an_edit_of_only_who_declares_a_limit_is_no_new_version(self) -> None:
        self.declare("moss", "wren")
        order = self.start(operator("moss"))
        before = (self.store.events(), self.store.wakes(), self.standing("moss"))
        moved = an_agent("moss", origins=(("burst", "fleet"),))
        assert self.declare(moved, "wren", now=NOW + MINUTE) == []
        assert (self.store.events(), self.store.wakes(), self.standing("moss")) == before
        for _ in range(2):
            found = self.store.agent("moss")
            assert found is not None and found.origins == (("burst", "fleet"),)
            self.reopen()
        self.end(order, DONE, NOW + MINUTE)

    # -- one-offs

    def test_a_declared_one_off_runs_the_beat_once_at_its_instant(self) -> None:
        at = NOW + 10 * MINUTE
        moss = an_agent("moss", one_offs=(at,))
        self.declare(moss)
        assert self.due(at - SECOND) == []
        assert self.store.due(NOW).next_at == at
        (order,) = self.serve(at)
        assert (order.run.cause, order.run.subject) == (Cause.timer, "beat")
        self.end(order, DONE, at)
        self.declare(moss, now=at + MINUTE)
        self.declare(replace(moss, max_failures=9), now=at + MINUTE)
        self.reopen()
        self.declare(replace(moss, max_failures=9), now=at + MINUTE, boot=True)
        assert self.due(at + 2 * MINUTE) == []
        assert len(self.store.runs()) == 1

    def test_two_one_offs_are_two_beats(self) -> None:
        times = (NOW + 10 * MINUTE, NOW + 20 * MINUTE)
        self.declare(an_agent("moss", one_offs=times))
        for at in times:
            (order,) = self.serve(at)
            self.end(order, DONE, at)
        assert len(self.store.runs()) == 2

    # -- live settings

    def test_of_those_who_have_seen_the_same_version_one_changes_it(self) -> None:
        self.declare("moss")
        seen = self.store.overview(agent="moss")[0].version
        self.store.set("moss", {"burst": 7}, "rana", NOW, expected=seen)
        with pytest.raises(Outdated, match=f"at version {seen + 1}, not {seen}"):
            self.store.set("moss", {"burst": 8}, "otto", NOW, expected=seen)
        assert self.store.overview(agent="moss")[0].agent.limits.burst == 7

    def test_a_live_setting_holds_at_once_and_after_being_reopened(self) -> None:
        self.declare("moss", "wren")
        assert self.store.set("moss", {"cooldown": timedelta()}, "rana", NOW).limits.cooldown == timedelta()
        assert self.store.set("moss", {"max_failures": 2}, "rana", NOW).limits.cooldown == timedelta()
        self.reopen()
        found = self.store.agent("moss")
        assert found is not None
        assert (found.limits.cooldown, found.max_failures) == (timedelta(), 2)
        other = self.store.agent("wren")
        assert other is not None and other.limits.cooldown == Limits().cooldown

    def test_a_live_setting_outlives_an_edit_of_the_fleet_file(self) -> None:
        self.declare("moss")
        self.store.set("moss", {"wakes_per_day": 1}, "rana", NOW)
        self.declare(an_agent("moss", limits=Limits(wakes_per_pair=2)), now=NOW + MINUTE)
        found = self.store.agent("moss")
        assert found is not None
        assert (found.limits.wakes_per_day, found.limits.wakes_per_pair) == (1, 2)

    def test_an_edit_is_told_as_it_holds_with_the_settings_that_outlive_it(self) -> None:
        self.declare("moss")
        self.store.set("moss", {"burst": 7}, "rana", NOW)
        self.declare(an_agent("moss", max_failures=9), now=NOW + SECOND)
        told = self.store.events(kinds=(EventKind.declared,))[-1].fields or {}
        assert decode(Agent, json.loads(str(told["body"]))) == self.store.agent("moss")
        assert told["version"] == 3

    def test_none_takes_a_setting_back(self) -> None:
        self.declare("moss")
        before = self.store.agent("moss")
        self.store.set("moss", {"cooldown": timedelta(), "max_retries": 1, "retry_base": SECOND}, "rana", NOW)
        self.store.set("moss", {"cooldown": None, "max_retries": None, "retry_base": None}, "rana", NOW)
        assert self.store.agent("moss") == before

    def test_a_setting_is_told_with_who_made_it(self) -> None:
        self.declare("moss")
        self.store.set("moss", {"burst": 7}, "rana", NOW)
        told = self.store.events(agent="moss")[-1]
        assert (told.kind, told.fields and told.fields["by"]) == (EventKind.set, "rana")

    def test_a_setting_is_seen_by_the_guards_and_has_waiting_wakes_tried_again(self) -> None:
        self.declare(an_agent("moss", limits=Limits(minutes_per_day=0, minutes_declared=True)))
        at = NOW + HOUR
        assert self.decide(timer("moss", at), at).verdict.guard == "minutes_per_day"
        assert self.due(at + SECOND) == []
        self.store.set("moss", {"minutes_per_day": 60.0}, "rana", at + SECOND)
        (wake,) = self.due(at + SECOND)
        assert self.store.decide([wake], admit, at + SECOND)[0].verdict.kind is ADMIT

    def test_an_unknown_setting_is_a_mistake_and_nothing_is_kept(self) -> None:
        self.declare("moss")
        before = (self.store.agent("moss"), self.store.events())
        with pytest.raises(Mistake):
            self.store.set("moss", {"burst": 7, "colour": "green"}, "rana", NOW)
        assert (self.store.agent("moss"), self.store.events()) == before

    def test_a_setting_of_an_unknown_agent_is_refused(self) -> None:
        with pytest.raises(Unknown):
            self.store.set("moss", {"burst": 7}, "rana", NOW)

    def test_a_failed_run_is_judged_by_the_policy_of_now(self) -> None:
        self.declare("moss")
        order = self.start(timer("moss", NOW + HOUR), NOW + HOUR)
        self.store.set("moss", {"max_failures": 1}, "rana", NOW + HOUR)
        self.end(order, FAILED, NOW + HOUR)
        assert [pause.owner for pause in self.store.pauses()] == ["quarantine"]
