"""The contract of a store: how much is open, and since when the oldest of it waits."""

from __future__ import annotations

from wakeful.store.protocol import Backlog
from wakeful.testing.contracts.store_case import HOUR, MINUTE, NOW, StoreCase, work


class MeasuringContract(StoreCase):
    def test_nothing_open_is_an_empty_backlog(self) -> None:
        self.declare("wren", "moss")
        assert self.store.backlog(NOW) == Backlog(open={}, oldest=None)

    def test_open_messages_and_tasks_are_counted_for_each_address_and_role(self) -> None:
        self.declare("wren", "moss")
        for _ in range(2):
            self.message("moss")
        self.task("wren", NOW + MINUTE)
        self.task(role="editor", now=NOW + MINUTE)
        self.task(role="editor", now=NOW + MINUTE)
        backlog = self.store.backlog(NOW + HOUR)
        assert backlog.open == {("moss", "message"): 2, ("wren", "task"): 1, ("role:editor", "task"): 2}
        assert backlog.oldest == NOW

    def test_what_is_closed_put_off_or_under_way_does_not_wait(self) -> None:
        self.declare("wren", "moss")
        read, later = self.message("moss"), self.message("moss")
        self.store.mark_read([read], "operator", NOW)
        self.store.snooze([later], NOW + HOUR, "operator", NOW)
        task = self.task("wren")
        self.start(work(task, "wren", NOW), NOW)
        backlog = self.store.backlog(NOW + MINUTE)
        assert backlog.open == {("moss", "message"): 1, ("wren", "task"): 1}
        assert backlog.oldest is None
        # Its waiting begins when it comes back into sight.
        assert self.store.backlog(NOW + 2 * HOUR).oldest == NOW + HOUR
