"""Nodes: who is at work on the store, for how long a run is theirs, and what becomes of it when they fall silent."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from wakeful.core.errors import Conflict, Stale, Unknown
from wakeful.core.runs import Outcome
from wakeful.core.settlement import settle
from wakeful.store.protocol import Finish, NodeRow, Order, Renewed
from wakeful.testing.contracts.store_case import (
    ADMIT,
    DONE,
    LEASE,
    LOST,
    MINUTE,
    NOW,
    SECOND,
    StoreCase,
    operator,
    tick,
)

OVER = NOW + LEASE
MICROSECOND = timedelta(microseconds=1)
URL = "http://127.0.0.1:7000"


# Who asks, and by how much the run and the epoch that they name are wrong.
REFUSED = {
    "of another node": ("two", 0, 0),
    "of an older epoch": ("one", 0, -1),
    "of a later epoch": ("one", 0, 1),
    "that is not known": ("one", 999, 0),
}


class NodesContract(StoreCase):
    def join(self, node: str = "one", host: str = "attic", now: datetime = NOW, lease: timedelta = LEASE) -> None:
        self.set_clock(now)
        self.store.join(node, host, URL, now, lease)

    def leave(self, node: str, now: datetime) -> None:
        self.set_clock(now)
        self.store.leave(node, now)

    def renew(self, *pairs: tuple[int, int], node: str = "one", now: datetime = NOW) -> Renewed:
        self.set_clock(now)
        return self.store.renew(node, pairs, now, LEASE)

    def nodes(self, now: datetime) -> dict[str, NodeRow]:
        self.set_clock(now)
        return {row.name: row for row in self.store.nodes(now)}

    def alive(self, now: datetime) -> list[str]:
        return [name for name, row in self.nodes(now).items() if row.alive]

    def orphans(self, now: datetime, **more: int) -> list[tuple[int, int]]:
        self.set_clock(now)
        return self.store.orphans(now, **more)

    def held(self, agent: str = "moss", now: datetime = NOW) -> Order:
        """A run of the node `one`, whose lease begins now."""
        self.set_clock(now)
        return self.start(operator(agent, now), now)

    # -- who is forgotten

    def test_a_node_is_forgotten_that_left_or_fell_silent_long_ago_and_has_nothing(self) -> None:
        self.declare("moss", "wren")
        for name in ("left", "silent", "runs", "tends", "young"):
            self.join(name, name)
        self.decide(operator("moss"))
        assert len(self.claim(node="runs")) == 1
        self.store.tend([("folder", "moss")], "tends", NOW, LEASE)
        self.leave("left", NOW)
        late = NOW + 1000 * MINUTE * 60
        self.set_clock(late)
        self.store.renew("young", [], late, LEASE)
        self.store.forget(late - MINUTE, late, late)
        assert list(self.nodes(late)) == ["runs", "tends", "young"]
        self.store.abandon([("folder", "moss")], late)
        self.store.forget(late - MINUTE, late, late)
        assert list(self.nodes(late)) == ["runs", "young"]

    # -- join and leave

    def test_whoever_has_joined_is_known_by_name_host_and_address(self) -> None:
        assert self.nodes(NOW) == {}
        self.join()
        self.reopen()
        assert self.nodes(NOW + SECOND) == {
            "one": NodeRow(name="one", host="attic", url=URL, since=NOW, seen_at=NOW, left_at=None, alive=True, runs=0)
        }

    def test_nodes_are_listed_by_name_each_with_the_runs_that_it_holds(self) -> None:
        self.declare("moss", "wren", "hale", sessions=3)
        for name in ("two", "one", "three"):
            self.join(name, name)
        self.held("moss")
        self.end(self.held("wren"))
        self.decide(operator("hale"))
        assert [(row.name, row.runs) for row in self.nodes(NOW).values()] == [("one", 1), ("three", 0), ("two", 0)]

    def test_a_claim_alone_makes_nobody_known_and_nobody_seen(self) -> None:
        self.declare("moss", "wren")
        self.held("moss")
        assert self.nodes(NOW) == {}
        self.join()
        self.held("wren", NOW + SECOND)
        assert self.nodes(NOW + SECOND)["one"].seen_at == NOW

    def test_a_node_that_was_silent_for_its_lease_is_not_alive_until_its_next_word(self) -> None:
        self.join("one")
        self.join("two", "cellar", lease=2 * LEASE)
        assert self.alive(OVER - MICROSECOND) == ["one", "two"]
        assert self.alive(OVER) == ["two"]
        self.renew(now=OVER)
        assert self.alive(OVER) == ["one", "two"]
        row = self.nodes(OVER)["one"]
        assert (row.since, row.seen_at) == (NOW, OVER)

    def test_a_renewal_says_how_long_its_silence_may_last(self) -> None:
        self.join(lease=SECOND)
        self.renew()
        assert self.alive(NOW + SECOND) == ["one"]

    def test_a_node_that_has_left_is_not_alive_and_may_come_back(self) -> None:
        self.join()
        self.leave("one", NOW + SECOND)
        self.reopen()
        row = self.nodes(NOW + SECOND)["one"]
        assert (row.alive, row.left_at, row.seen_at) == (False, NOW + SECOND, NOW + SECOND)
        self.join(now=NOW + MINUTE)
        row = self.nodes(NOW + MINUTE)["one"]
        assert (row.alive, row.left_at, row.since) == (True, None, NOW + MINUTE)

    def test_a_node_that_renews_has_not_left(self) -> None:
        self.join()
        self.leave("one", NOW)
        self.renew(now=NOW + SECOND)
        assert self.alive(NOW + SECOND) == ["one"]

    def test_to_leave_touches_no_other_and_who_never_came_may_go(self) -> None:
        self.join()
        before = self.nodes(NOW + SECOND)
        self.leave("two", NOW + SECOND)
        assert self.nodes(NOW + SECOND) == before

    def test_another_engine_of_the_name_is_told_who_is_up_and_what_to_do(self) -> None:
        self.join()
        before = self.nodes(OVER - MICROSECOND)
        with pytest.raises(Conflict) as refused:
            self.join("one", "cellar", OVER - MICROSECOND)
        for words in ("called one", "up on attic", "data folder was copied", "remove the file `node`"):
            assert words in str(refused.value)
        assert self.nodes(OVER - MICROSECOND) == before

    @pytest.mark.parametrize("gone", [True, False], ids=["has left", "is silent"])
    def test_another_engine_may_have_the_name_once_the_first(self, gone: bool) -> None:
        self.join()
        if gone:
            self.leave("one", NOW + SECOND)
        now = NOW + SECOND if gone else OVER
        self.join("one", "cellar", now)
        row = self.nodes(now)["one"]
        assert (row.host, row.since, row.seen_at, row.alive) == ("cellar", now, now, True)

    def test_an_engine_that_starts_again_where_it_was_is_the_same_node(self) -> None:
        self.join()
        self.store.join("one", "attic", "http://127.0.0.1:7001", NOW, LEASE)
        assert self.nodes(NOW)["one"].url == "http://127.0.0.1:7001"

    def test_whoever_leaves_keeps_the_leases_of_what_still_runs(self) -> None:
        self.declare("moss")
        self.join()
        run = self.held().run
        self.leave("one", NOW)
        assert self.orphans(OVER - MICROSECOND) == []
        assert self.renew((run.id, run.epoch), now=OVER - MICROSECOND).runs == (run.id,)

    # -- renew

    def test_a_lease_counts_from_its_last_renewal(self) -> None:
        self.declare("moss", "wren")
        self.join()
        renewed, other = self.held("moss").run, self.held("wren").run
        now = NOW + 20 * SECOND
        assert self.renew((renewed.id, renewed.epoch), now=now).runs == (renewed.id,)
        self.reopen()
        assert self.orphans(OVER) == [(other.id, other.epoch)]
        assert self.orphans(now + LEASE - MICROSECOND) == [(other.id, other.epoch)]
        assert self.orphans(now + LEASE) == [(other.id, other.epoch), (renewed.id, renewed.epoch)]

    def test_what_is_still_ones_own_is_told_in_the_order_in_which_it_was_named(self) -> None:
        self.declare("a", "b", "c", "d", sessions=4)
        self.join()
        runs = [self.held(name).run for name in "abcd"]
        self.store.void(runs[1].id, runs[1].epoch, NOW)
        pairs = [(runs[n].id, runs[n].epoch) for n in (3, 1, 0, 2)]
        assert self.renew(*pairs).runs == (runs[3].id, runs[0].id, runs[2].id)

    def test_a_lease_that_ran_out_is_still_its_holders_while_nobody_has_taken_it(self) -> None:
        self.declare("moss")
        self.join()
        run = self.held().run
        assert self.renew((run.id, run.epoch), now=OVER).runs == (run.id,)
        assert self.orphans(OVER) == []

    @pytest.mark.parametrize("which", REFUSED)
    def test_no_lease_is_renewed_of_a_run(self, which: str) -> None:
        self.declare("moss")
        for node in ("one", "two"):
            self.join(node)
        run = self.held().run
        node, other, epoch = REFUSED[which]
        assert self.renew((run.id + other, run.epoch + epoch), node=node, now=NOW + SECOND).runs == ()
        assert self.orphans(OVER) == [(run.id, run.epoch)]

    def test_no_lease_is_renewed_of_a_run_that_is_not_under_way(self) -> None:
        self.declare("moss", "wren", "hale", sessions=3)
        self.join()
        ended, void = self.held("moss"), self.held("wren")
        self.end(ended)
        self.store.void(void.run.id, void.run.epoch, NOW)
        unclaimed = self.decide(operator("hale")).run
        assert unclaimed is not None
        pairs = [(ended.run.id, ended.run.epoch), (void.run.id, void.run.epoch), (unclaimed, 0)]
        assert self.renew(*pairs).runs == ()

    def test_whoever_has_not_joined_is_told_so_and_renews_nothing(self) -> None:
        self.declare("moss")
        run = self.held().run
        with pytest.raises(Unknown, match="no node one has joined"):
            self.renew((run.id, run.epoch), now=NOW + SECOND)
        assert self.nodes(NOW) == {}
        assert self.orphans(OVER) == [(run.id, run.epoch)]

    # -- orphans

    def test_a_run_is_nobodys_once_its_lease_has_run_out_and_not_before(self) -> None:
        self.declare("moss")
        run = self.held().run
        assert self.orphans(OVER - MICROSECOND) == []
        assert self.orphans(OVER) == [(run.id, run.epoch)]

    def test_only_what_is_under_way_can_be_orphaned(self) -> None:
        self.declare("moss", "wren", "hale", sessions=3)
        self.end(self.held("moss"))
        void = self.held("wren").run
        self.store.void(void.id, void.epoch, NOW)
        self.decide(operator("hale"))
        assert self.orphans(OVER) == []

    def test_those_are_found_first_whose_lease_ran_out_first_and_no_more_than_asked_for(self) -> None:
        self.declare("a", "b", "c", sessions=3)
        self.join()
        runs = [self.held(name, NOW + n * SECOND).run for n, name in enumerate("abc")]
        self.renew((runs[0].id, runs[0].epoch), now=NOW + 3 * SECOND)
        pairs = [(run.id, run.epoch) for run in (runs[1], runs[2], runs[0])]
        assert self.orphans(OVER + MINUTE) == pairs
        assert self.orphans(OVER + MINUTE, limit=2) == pairs[:2]
        assert self.orphans(OVER + 2 * SECOND) == pairs[:2]

    def test_whoever_finds_an_orphan_ends_it_and_its_holders_late_word_is_refused(self) -> None:
        self.declare("moss")
        self.join()
        order = self.held()
        pair = (order.run.id, order.run.epoch)

        def bury() -> list[Outcome]:
            ends = [Finish(run=run, epoch=epoch, ending=LOST) for run, epoch in self.orphans(OVER)]
            return self.store.finish(ends, settle, OVER)

        assert self.together(bury) == [Outcome.killed]
        assert self.orphans(OVER) == []
        assert self.renew(pair, now=OVER).runs == ()
        with pytest.raises(Stale):
            self.end(order, DONE, OVER)
        assert self.row(order.run.id).outcome is Outcome.killed
        assert self.decide(tick("moss", OVER), OVER).verdict.kind is ADMIT

    def test_an_orphan_whose_finder_fell_before_the_commit_is_found_again(self) -> None:
        self.declare("moss")
        run = self.held().run

        def fall() -> None:
            assert self.orphans(OVER) == [(run.id, run.epoch)]
            self.store.finish([Finish(run=run.id, epoch=run.epoch, ending=LOST)], settle, OVER)
            raise RuntimeError("the node dies here")

        with pytest.raises(RuntimeError):
            self.together(fall)
        assert self.orphans(OVER) == [(run.id, run.epoch)]
        assert self.row(run.id).state == "running"
