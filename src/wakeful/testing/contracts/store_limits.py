"""The limits through real rows: counts are made by admissions, forgotten by no restart, shared behind an address."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from wakeful.core.agents import Limits
from wakeful.core.cadence import Cadence
from wakeful.core.items import Ring
from wakeful.core.lifecycle import Lifecycle, State
from wakeful.core.runs import Ending, Outcome
from wakeful.core.windows import parse_window
from wakeful.store.protocol import Decision
from wakeful.testing.contracts.store_case import (
    ADMIT,
    DEFER,
    DONE,
    ENDINGS,
    FAILED,
    HOUR,
    MINUTE,
    NOW,
    REFUSE,
    SECOND,
    TODAY,
    StoreCase,
    an_agent,
    operator,
    peer,
    reported,
    timer,
    work,
)

MIDNIGHT = NOW + 12 * HOUR
QUICK = Limits(cooldown=timedelta())


class LimitsContract(StoreCase):
    def visit(self, agent: str, sender: str, now: datetime = NOW, by_run: int | None = None) -> Decision:
        """One agent wakes another; if it may, the run is claimed and ends well."""
        decision = self.ring(agent, sender, now, by_run=by_run)
        for order in self.claim(now):
            self.end(order, DONE, now)
        return decision

    # -- wakes per run

    def test_one_run_has_three_wakes_to_spend(self) -> None:
        names = ["a", "b", "c", "d"]
        self.declare("wren", *(an_agent(name, limits=QUICK) for name in names), sessions=9)
        order = self.start(operator("wren"))
        said = [self.visit(name, "wren", by_run=order.run.id).verdict for name in names]
        assert [verdict.guard for verdict in said] == [None, None, None, "wakes_per_run"]
        assert (said[-1].kind, said[-1].numbers) == (REFUSE, {"used": 3, "limit": 3})
        self.end(order)
        second = self.start(operator("wren"))
        assert self.visit("d", "wren", by_run=second.run.id).verdict.kind is ADMIT

    def test_wakes_that_wait_count_for_the_run_that_asked_and_refused_ones_do_not(self) -> None:
        self.declare("wren", "a", an_agent("b", limits=Limits(wakes_per_day=0)), "c", "d", sessions=1)
        order = self.start(operator("wren"))
        said = [self.ring(name, "wren", by_run=order.run.id).verdict.guard for name in ("a", "b", "c", "d")]
        assert said == ["slots", "wakes_per_day", "slots", "slots"]
        assert self.ring("b", "wren", by_run=order.run.id).verdict.guard == "wakes_per_run"

    # -- cooldown

    def test_a_peer_is_refused_until_the_cooldown_is_over_and_a_restart_forgets_nothing(self) -> None:
        self.declare("moss", "wren", "hale")
        assert self.visit("moss", "wren").verdict.kind is ADMIT
        self.reopen()
        refused = self.visit("moss", "hale", NOW + 299 * SECOND).verdict
        assert (refused.guard, refused.until) == ("cooldown", NOW + 300 * SECOND)
        assert self.visit("moss", "hale", NOW + 300 * SECOND).verdict.kind is ADMIT

    def test_a_refused_wake_starts_no_cooldown(self) -> None:
        self.declare("moss", "wren")
        self.visit("moss", "wren")
        assert self.visit("moss", "wren", NOW + 200 * SECOND).verdict.guard == "cooldown"
        assert self.visit("moss", "wren", NOW + 300 * SECOND).verdict.kind is ADMIT

    def test_only_peers_start_and_feel_a_cooldown(self) -> None:
        self.declare("moss", "wren")
        self.end(self.start(operator("moss")))
        assert self.visit("moss", "wren").verdict.kind is ADMIT
        self.end(self.start(operator("moss")))

    # -- per day and per pair

    def test_an_agent_is_woken_twelve_times_a_day(self) -> None:
        senders = [f"s{n}" for n in range(13)]
        self.declare(an_agent("moss", limits=QUICK), *senders)
        said = [self.visit("moss", sender, NOW + n * 31 * SECOND).verdict for n, sender in enumerate(senders)]
        assert [verdict.guard for verdict in said[:12]] == [None] * 12
        assert (said[12].guard, said[12].until) == ("wakes_per_day", MIDNIGHT)
        assert self.wakes_of("moss") == 12
        self.reopen()
        assert self.visit("moss", "s1", NOW + HOUR).verdict.guard == "wakes_per_day"
        assert self.visit("moss", "s1", MIDNIGHT).verdict.kind is ADMIT

    def test_the_day_is_the_calendar_day_in_the_zone_of_the_agent(self) -> None:
        limits = replace(QUICK, wakes_per_day=1)
        self.declare(an_agent("moss", limits=limits, timezone="Asia/Tokyo"), "wren")
        assert self.visit("moss", "wren").verdict.kind is ADMIT
        assert self.visit("moss", "wren", NOW + 2 * HOUR + 59 * MINUTE).verdict.until == NOW + 3 * HOUR
        assert self.visit("moss", "wren", NOW + 3 * HOUR).verdict.kind is ADMIT

    def test_ping_pong_stops_at_the_sixth_wake(self) -> None:
        self.declare("moss", "wren", sessions=9)
        said, by_run = [], None
        for n in range(7):
            now = NOW + n * 6 * MINUTE
            agent, sender = ("moss", "wren") if n % 2 == 0 else ("wren", "moss")
            decision = self.ring(agent, sender, now, by_run=by_run)
            said.append(decision.verdict.guard)
            for order in self.claim(now):
                self.end(order, DONE, now)
            by_run = decision.run or by_run
        assert said == [None] * 5 + ["wakes_per_pair"] * 2
        assert len(self.store.runs()) == 5

    def test_one_pair_at_its_limit_leaves_the_others_alone(self) -> None:
        self.declare(an_agent("moss", limits=replace(QUICK, wakes_per_pair=1)), "wren", "hale")
        assert self.visit("moss", "wren").verdict.kind is ADMIT
        assert self.visit("moss", "wren").verdict.guard == "wakes_per_pair"
        assert self.visit("moss", "hale").verdict.kind is ADMIT

    # -- chain

    def test_a_chain_of_wakes_ends_at_its_ninth(self) -> None:
        names = [f"a{n}" for n in range(11)]
        self.declare(*names, sessions=99)
        order = self.start(operator("a0"))
        said, depths = [], []
        for sender, agent in pairwise(names):
            decision = self.ring(agent, sender, by_run=order.run.id)
            said.append(decision.verdict.guard)
            if decision.run is None:
                break
            order = next(order for order in self.claim() if order.run.id == decision.run)
            assert order.wake is not None
            depths.append(order.wake.depth)
        assert depths == list(range(1, 9))
        assert said == [None] * 8 + ["chain"]

    def test_root_depth_and_cost_of_a_chain_come_from_our_rows_not_from_the_caller(self) -> None:
        self.declare("a", "b", "c", sessions=9)
        first = self.start(operator("a"))
        self.end(first, reported(usd=5))
        second = self.decide(peer("b", "a", item=self.call("b", "a"), by_run=first.run.id, depth=0, root=77))
        (order,) = self.claim()
        self.end(order, reported(usd=7))
        self.ring("c", "b", by_run=second.run)
        self.decide(operator("a", depth=7, root=77, lineage_usd=9))
        rows = {row.wake.agent: row.wake for row in self.store.wakes()}
        assert (rows["a"].depth, rows["a"].root, rows["a"].lineage_usd) == (0, None, 0)
        assert (rows["b"].depth, rows["b"].root, rows["b"].lineage_usd) == (1, first.run.wake, 5)
        assert (rows["c"].depth, rows["c"].root, rows["c"].lineage_usd) == (2, first.run.wake, 12)

    def test_the_cost_of_a_chain_is_that_of_all_its_runs_also_of_those_that_ended_since(self) -> None:
        self.declare("a", "b", "c", an_agent("d", limits=Limits(usd_per_day=1000)), sessions=9)
        first = self.start(operator("a"))
        second = self.ring("b", "a", by_run=first.run.id)
        self.claim()
        self.end(first, reported(usd=5))
        third = self.ring("c", "b", by_run=second.run)
        (order,) = self.claim()
        self.end(order, reported(usd=7))
        self.ring("d", "b", by_run=second.run)
        self.ring("a", "b", by_run=second.run)
        costs = [row.wake.lineage_usd for row in self.store.lineage(first.run.wake)]
        # What is under way counts as much as was set aside for it: a tenth of what its agent may spend.
        assert (third.run, costs) == (order.run.id, [0, 0, 5, 12, 112])

    # -- minutes

    def test_minutes_are_counted_when_a_run_ends(self) -> None:
        self.declare("moss", "wren")
        long = Ending(exit_code=0, elapsed=timedelta(minutes=119.5))
        self.end(self.start(operator("moss")), long, NOW + MINUTE)
        assert self.visit("moss", "wren", NOW + MINUTE).verdict.kind is ADMIT
        self.end(self.start(operator("moss")), replace(long, elapsed=30 * SECOND), NOW + 2 * MINUTE)
        refused = self.visit("moss", "wren", NOW + HOUR).verdict
        assert (refused.guard, refused.until) == ("minutes_per_day", MIDNIGHT)
        assert self.decide(operator("moss")).verdict.kind is ADMIT

    def test_news_beyond_the_minutes_waits_for_the_morning(self) -> None:
        self.declare(an_agent("moss", limits=Limits(minutes_per_day=1)))
        self.end(self.start(operator("moss")), Ending(exit_code=0, elapsed=MINUTE))
        self.message("moss", ring=Ring.news)
        (wake,) = self.due()
        verdict = self.decide(wake).verdict
        assert (verdict.kind, verdict.guard) == (DEFER, "minutes_per_day")
        assert verdict.until is not None and MIDNIGHT <= verdict.until < MIDNIGHT + 10 * MINUTE
        assert self.store.due(NOW).next_at is not None

    # -- spend

    def test_a_reservation_is_held_from_admission_and_settled_at_the_end(self) -> None:
        self.declare(an_agent("moss", limits=Limits(usd_per_day=1000, tokens_per_day=500)))
        order = self.start(operator("moss"))
        assert (order.run.reserved.usd, order.run.reserved.tokens) == (100, 50)
        assert self.spent("moss") == self.spent() == (100, 50)
        self.end(order, reported(usd=37, tokens=400))
        assert self.spent("moss") == self.spent() == (37, 400)
        assert (self.row(order.run.id).spend.usd, self.row(order.run.id).spend.tokens) == (37, 400)

    def spent(self, agent: str | None = None) -> tuple[int, int]:
        scope = "fleet" if agent is None else f"agent:{agent}"
        return self.store.total(scope, TODAY, "usd"), self.store.total(scope, TODAY, "tokens")

    @pytest.mark.parametrize("outcome", Outcome)
    def test_a_run_that_does_not_say_what_it_used_settles_at_its_reservation(self, outcome: Outcome) -> None:
        self.declare(an_agent("moss", limits=Limits(usd_per_day=1000, reserve_usd=70)))
        order = self.start(operator("moss"))
        self.end(order, ENDINGS[outcome])
        assert self.spent("moss") == (70, 0)
        assert self.standing("moss").costs == ()

    def test_runs_under_way_together_cannot_jointly_overshoot(self) -> None:
        limits = Limits(fleet_usd_per_day=100, reserve_usd=40)
        names = ["a", "b", "c"]
        self.declare(*(an_agent(name, limits=limits) for name in names), sessions=9)
        at = NOW + HOUR
        said = [self.decide(timer(name, at), at).verdict for name in names]
        assert [verdict.guard for verdict in said] == [None, None, "spend"]
        assert said[2].numbers == {"unit": "fleet_usd", "spent": 80, "reserve": 40, "limit": 100}

    def test_beyond_the_budget_all_wait_for_the_morning_but_the_operator(self) -> None:
        self.declare(an_agent("moss", limits=Limits(usd_per_day=100, reserve_usd=60)))
        self.end(self.start(operator("moss")), reported(usd=90))
        task, at = self.task("moss"), NOW + HOUR
        for wake in (timer("moss", at), work(task, "moss", at)):
            verdict = self.decide(wake, at).verdict
            assert (verdict.kind, verdict.guard) == (DEFER, "spend")
            assert verdict.until is not None and MIDNIGHT <= verdict.until < MIDNIGHT + 10 * MINUTE
        assert self.due(MIDNIGHT - SECOND) == []
        assert self.decide(operator("moss", at), at).verdict.kind is ADMIT

    def test_the_next_days_budget_lets_the_wake_go(self) -> None:
        self.declare(an_agent("moss", limits=Limits(usd_per_day=100, reserve_usd=60)))
        self.end(self.start(operator("moss")), reported(usd=90))
        self.decide(timer("moss", NOW + HOUR), NOW + HOUR)
        (order,) = self.serve(MIDNIGHT + 10 * MINUTE)
        assert order.run.subject == "beat"

    def test_the_reservation_learns_from_what_runs_reported(self) -> None:
        self.declare(an_agent("moss", limits=Limits(usd_per_day=10_000)))
        for usd in range(10, 110, 10):
            self.end(self.start(operator("moss")), reported(usd=usd))
        assert self.start(operator("moss")).run.reserved.usd == 90

    # -- burst

    def test_the_twenty_first_start_in_ten_minutes_trips_a_pause(self) -> None:
        restless = an_agent("moss", cadence=Cadence(continuous=True, breather=SECOND))
        self.declare(restless, grace=timedelta())
        for n in range(20):
            (order,) = self.serve(NOW + n * 2 * SECOND)
            self.end(order, DONE, NOW + n * 2 * SECOND)
        at = NOW + 40 * SECOND
        assert self.serve(at) == []
        (pause,) = self.store.pauses()
        assert (pause.scope, pause.owner, pause.until) == ("agent:moss", "burst", at + 30 * MINUTE)
        assert self.serve(at + 30 * MINUTE - SECOND) == []
        (order,) = self.serve(at + 30 * MINUTE)
        assert order.agent.name == "moss"
        assert self.store.pauses() == []

    def test_a_clock_that_is_set_back_by_a_day_does_not_make_a_burst_of_that_day(self) -> None:
        self.declare(an_agent("moss", cadence=Cadence(continuous=True, breather=SECOND)), grace=timedelta())
        for n in range(3):
            (order,) = self.serve(NOW + n * HOUR)
            self.end(order, DONE, NOW + n * HOUR)
        counted = {
            since: self.store.why(timer("moss", NOW + since), NOW + since).facts.burst_starts
            for since in (2 * HOUR + SECOND, 2 * HOUR - SECOND, HOUR, -24 * HOUR)
        }
        # What a clock that is a little behind takes for the future counts as before.
        assert list(counted.values()) == [1, 1, 1, 0]

    def test_an_operators_runs_and_tasks_are_no_burst(self) -> None:
        self.declare(an_agent("moss", limits=Limits(burst=2)))
        for n in range(4):
            self.end(self.start(operator("moss", NOW + n * SECOND), NOW + n * SECOND), DONE, NOW + n * SECOND)
            self.end(self.start(work(self.task("moss"), "moss")))
        assert self.start(timer("moss", NOW + HOUR), NOW + HOUR)

    # -- quiet hours and gates

    def test_quiet_hours_are_those_of_the_agents_wall_clock(self) -> None:
        limits = Limits(quiet_hours=(parse_window("13:00-15:00"),))
        self.declare(an_agent("moss", limits=limits, timezone="Europe/Berlin"), "wren", grace=timedelta())
        verdict = self.decide(timer("moss")).verdict
        assert (verdict.guard, verdict.until) == ("quiet_hours", NOW + 2 * HOUR)
        assert self.ring("moss", "wren").verdict.kind is REFUSE
        assert self.decide(operator("moss")).verdict.kind is ADMIT

    def test_a_one_off_runs_in_quiet_hours(self) -> None:
        limits = Limits(quiet_hours=(parse_window("00:00-24:00"),))
        at = NOW + MINUTE
        self.declare(an_agent("moss", limits=limits, one_offs=(at,)))
        assert len(self.serve(at)) == 1

    def test_a_gate_holds_the_beat_until_it_opens_and_only_the_beat(self) -> None:
        gated = Lifecycle("rem", (State("rem", next="rem", min_interval=3 * HOUR),))
        self.declare(an_agent("moss", lifecycle=gated))
        at = NOW + HOUR
        self.end(self.start(timer("moss", at), at), DONE, at)
        again = at + HOUR
        verdict = self.decide(timer("moss", again), again).verdict
        assert (verdict.kind, verdict.guard, verdict.until) == (DEFER, "state_gate", at + 3 * HOUR)
        assert self.decide(operator("moss", again), again).verdict.kind is ADMIT
        (order,) = self.claim(again)
        self.end(order, DONE, again)
        (order,) = self.serve(at + 3 * HOUR)
        assert order.run.subject == "beat"

    def test_a_gate_is_stamped_by_done_alone(self) -> None:
        gated = Lifecycle("rem", (State("rem", next="rem", min_interval=3 * HOUR),))
        self.declare(an_agent("moss", lifecycle=gated))
        at = NOW + HOUR
        self.end(self.start(timer("moss", at), at), FAILED, at)
        assert self.start(timer("moss", at + HOUR), at + HOUR)

    # -- replicas

    def replicas(self, **limits: int) -> list[str]:
        shared = replace(QUICK, **limits)  # type: ignore[arg-type]
        names = ["moss-1", "moss-2", "moss-3"]
        self.declare(*(an_agent(name, address="moss", limits=shared) for name in names), "wren", sessions=9)
        return names

    def test_a_wake_of_an_address_goes_to_an_idle_replica(self) -> None:
        names = self.replicas()
        taken = [self.ring("moss", "wren").agent for _ in names]
        assert sorted(str(name) for name in taken) == names
        assert self.ring("moss", "wren").verdict.guard == "busy"

    def test_a_wake_of_an_address_goes_to_the_replica_that_has_rested_longest(self) -> None:
        self.replicas()
        for n, name in enumerate(("moss-2", "moss-3", "moss-1")):
            now = NOW + n * SECOND
            self.end(self.start(operator(name, now), now), DONE, now)
        later = NOW + MINUTE
        assert [self.ring("moss", "wren", later).agent for _ in range(3)] == ["moss-2", "moss-3", "moss-1"]

    def test_replicas_share_the_limits_of_their_address(self) -> None:
        self.replicas(wakes_per_day=2)
        said = [self.ring("moss", "wren").verdict.guard for _ in range(3)]
        assert said == [None, None, "wakes_per_day"]
        assert self.wakes_of("moss") == 2
        assert self.ring("moss-3", "wren").verdict.guard == "wakes_per_day"

    def test_replicas_share_the_cooldown_of_their_address_however_they_are_called(self) -> None:
        self.declare(*(an_agent(f"moss-{n}", address="moss") for n in (1, 2)), "wren", sessions=9)
        assert self.visit("moss", "wren").verdict.kind is ADMIT
        assert self.visit("moss", "wren", NOW + SECOND).verdict.guard == "cooldown"
        assert self.visit("moss-2", "wren", NOW + SECOND).verdict.guard == "cooldown"

    def test_replicas_share_the_pair_limit_of_their_address_as_senders_too(self) -> None:
        two = replace(QUICK, wakes_per_pair=2)
        self.declare(an_agent("moss-1", address="moss", limits=two), an_agent("wren", limits=two), sessions=9)
        assert self.visit("moss", "wren").verdict.kind is ADMIT
        assert self.visit("wren", "moss-1").verdict.kind is ADMIT
        assert self.visit("moss", "wren").verdict.guard == "wakes_per_pair"
        assert self.visit("wren", "moss-1").verdict.guard == "wakes_per_pair"

    def test_no_two_replicas_are_shown_one_message(self) -> None:
        self.replicas()
        item = self.call("moss", "wren")
        orders = [self.start(operator("moss-1")), self.start(operator("moss-2"))]
        assert [[shown.id for shown in order.items] for order in orders] == [[item], []]
        self.end(orders[0], FAILED)
        assert [shown.id for shown in self.start(operator("moss-3")).items] == [item]
