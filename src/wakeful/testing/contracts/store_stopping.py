"""A run that somebody wants ended: void while nobody holds it, noted for whoever does, and told with the name."""

from __future__ import annotations

from wakeful.core.agents import Runner
from wakeful.core.events import EventKind
from wakeful.core.items import State
from wakeful.core.settlement import settle
from wakeful.store.protocol import Finish, Stop, TaskEnd
from wakeful.testing.contracts.store_case import (
    ADMIT,
    BY_US,
    LEASE,
    MINUTE,
    NOW,
    StoreCase,
    an_agent,
    operator,
    timer,
)


class StoppingContract(StoreCase):
    def stops(self, node: str = "one") -> list[Stop]:
        return self.store.stopping(node)

    def told(self) -> list[tuple[int | None, object, object]]:
        return [
            (event.run, (event.fields or {})["by"], (event.fields or {})["at_once"])
            for event in self.store.events(kinds=(EventKind.stopped,))
        ]

    def test_nobody_wants_anything_ended(self) -> None:
        self.declare("moss")
        self.start(operator("moss"))
        assert self.stops() == []

    def test_of_a_run_under_way_it_is_noted_for_the_node_that_holds_it_and_for_no_other(self) -> None:
        self.declare("moss", "wren")
        order = self.start(operator("moss"))
        self.start(operator("wren"))
        assert self.store.stop([order.run.id], "rana", NOW + MINUTE) == [order.run.id]
        assert self.stops() == [Stop(run=order.run.id, epoch=order.run.epoch, by="rana", at_once=False)]
        assert self.stops("two") == []
        assert self.told() == [(order.run.id, "rana", False)]
        assert self.row(order.run.id).state == "running"
        self.reopen()
        assert [stop.run for stop in self.stops()] == [order.run.id]

    def test_a_task_that_is_taken_from_a_run_under_way_is_noted_for_its_node_until_its_attempt_has_ended(self) -> None:
        self.declare(an_agent("moss", runner=Runner.handler))
        taken, left = self.task("moss"), self.task("moss")
        (order,) = self.serve(NOW)
        run, epoch = order.run.id, order.run.epoch
        self.store.change_task(taken, "cancel", "rana", NOW)
        self.reopen()
        assert self.stops() == [Stop(run=run, epoch=epoch, by="rana", at_once=False, task=taken)]
        assert self.stops("two") == []
        ends = [TaskEnd(task=taken, ending=BY_US)]
        assert self.store.finish_tasks(run, epoch, ends, NOW + MINUTE) == [None]
        assert self.stops() == []
        assert (self.item(taken).state, self.item(left).state) == (State.cancelled, State.in_progress)

    def test_what_has_ended_is_no_longer_wanted_ended(self) -> None:
        self.declare("moss")
        order = self.start(operator("moss"))
        self.store.stop([order.run.id], "rana", NOW)
        self.end(order, BY_US, NOW + MINUTE)
        assert self.stops() == []
        assert self.store.stop([order.run.id], "rana", NOW + MINUTE) == []
        assert self.row(order.run.id).outcome == "killed"
        assert len(self.told()) == 1

    def test_a_run_that_nobody_claimed_is_void_and_told_with_the_name(self) -> None:
        self.declare("moss")
        decision = self.decide(operator("moss"))
        assert decision.run is not None
        assert self.store.stop([decision.run], "rana", NOW) == [decision.run]
        assert self.row(decision.run).state == "void"
        assert (self.stops(), self.claim()) == ([], [])
        assert self.told() == [(decision.run, "rana", False)]
        assert self.decide(timer("moss", NOW + MINUTE)).run is None

    def test_whoever_asks_again_is_answered_but_only_what_is_new_is_told(self) -> None:
        self.declare("moss")
        run = self.start(operator("moss")).run.id
        for by, at_once in (("rana", False), ("kim", False), ("kim", True), ("rana", False), ("rana", True)):
            assert self.store.stop([run], by, NOW, at_once=at_once) == [run]
        assert [(stop.by, stop.at_once) for stop in self.stops()] == [("rana", True)]
        assert self.told() == [(run, "rana", False), (run, "kim", True)]

    def test_many_are_stopped_at_once_and_what_is_not_open_is_left_out(self) -> None:
        self.declare("moss", "wren", "hale", sessions=3)
        gone = self.start(operator("hale"))
        self.end(gone)
        held = self.start(operator("moss")).run.id
        fresh = self.decide(operator("wren")).run
        assert fresh is not None
        assert self.store.stop([gone.run.id, fresh, held, held, 999], "rana", NOW) == [fresh, held]
        assert [(stop.run, stop.by) for stop in self.stops()] == [(held, "rana")]

    def test_a_run_that_was_vetoed_after_all_is_no_longer_wanted_ended_and_its_next_one_is_not(self) -> None:
        self.declare("moss")
        order = self.start(operator("moss"))
        self.store.stop([order.run.id], "rana", NOW)
        self.store.void(order.run.id, order.run.epoch, NOW)
        assert self.stops() == []
        (again,) = self.serve(NOW + MINUTE)
        assert again.run.id != order.run.id
        assert self.stops() == []

    def test_it_stays_noted_whatever_else_befalls_the_run(self) -> None:
        self.declare("moss")
        order = self.start(operator("moss"))
        self.store.stop([order.run.id], "rana", NOW, at_once=True)
        self.store.join("one", "here", "", NOW, LEASE)
        assert self.store.renew("one", [(order.run.id, order.run.epoch)], NOW, LEASE).runs == (order.run.id,)
        self.declare("moss", now=NOW + MINUTE, boot=True)
        assert [stop.at_once for stop in self.stops()] == [True]
        end = Finish(run=order.run.id, epoch=order.run.epoch, ending=BY_US)
        self.store.finish([end], settle, NOW + MINUTE)
        assert self.decide(operator("moss", NOW + MINUTE), NOW + MINUTE).verdict.kind is ADMIT
