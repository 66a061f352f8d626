"""The queue: what a task is recorded with, where it stands, what it needs, and how it is found again."""

from __future__ import annotations

from typing import Any

import pytest

from wakeful.core.agents import Limits, Runner
from wakeful.core.cadence import Cadence
from wakeful.core.errors import Conflict, Mistake, Unknown
from wakeful.core.items import Kind, NewItem, Origin, Past, Priority, State
from wakeful.store.protocol import Recorded, TaskFilter
from wakeful.testing.contracts.store_case import (
    DONE,
    FAILED,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    StoreCase,
    an_agent,
)

EVERYTHING = TaskFilter()
# Without a timer: what runs is a task.
MOSS = an_agent("moss", cadence=Cadence())


def a_task(name: str | None = None, *needs: str, agent: str | None = "moss", **more: Any) -> NewItem:
    return NewItem(kind=Kind.task, agent=agent, dedupe=name, needs=needs, **more)


class QueueContract(StoreCase):
    def keyed(self, key: str) -> Any:
        found = self.store.keyed_task(key)
        assert found is not None
        return found

    def record(self, *items: NewItem) -> list[Recorded]:
        return self.store.record(items, NOW)

    # -- what is recorded

    def test_a_task_keeps_its_payload_timeout_tags_and_key(self) -> None:
        self.declare(MOSS)
        more: Any = {"payload": '{"n": 1}', "timeout": 90 * SECOND, "tags": ("a", "b")}
        given = a_task("one", subject="sweep", body="the yard", **more)
        (made,) = self.record(given)
        self.reopen()
        task = self.item(made.id)
        assert (task.subject, task.body, task.payload) == ("sweep", "the yard", '{"n": 1}')
        assert (task.timeout, task.tags, task.dedupe, task.waits_for) == (90 * SECOND, ("a", "b"), "one", 0)
        (order,) = self.serve(NOW)
        leased = order.tasks[0]
        assert (leased.payload, leased.timeout, leased.tags, leased.dedupe) == (
            task.payload,
            task.timeout,
            task.tags,
            "one",
        )

    def test_any_character_comes_back_as_it_was(self) -> None:
        self.declare(MOSS)
        text = "nul \x00, a quote ', a brace {, snow ☃ and \ufdd0"
        made = self.record(a_task(None, subject=text, payload=f'"{text}"'), a_task(None, body=text))
        ids = [answer.id for answer in made]
        assert [(self.item(id).subject, self.item(id).payload, self.item(id).body) for id in ids] == [
            (text, f'"{text}"', ""),
            ("", None, text),
        ]

    @pytest.mark.parametrize("many", [False, True])
    def test_the_same_key_with_another_payload_is_a_conflict(self, many: bool) -> None:
        self.declare(MOSS)
        (first,) = self.record(a_task("one", payload="1"))
        others = [a_task(None)] if many else []
        assert self.record(a_task("one", payload="1"), *others)[0] == Recorded(id=first.id, duplicate=True)
        with pytest.raises(Conflict, match="one"):
            self.record(a_task("one", payload="2"), *others)
        assert self.store.count_tasks(EVERYTHING) == {"pending": 1 + many}

    def test_a_thousand_tasks_are_one_batch_some_of_them_known(self) -> None:
        self.declare(MOSS)
        known = self.record(*(a_task(f"k{n}") for n in range(0, 1000, 7)))
        made = self.record(*(a_task(f"k{n}") for n in range(1000)))
        assert [answer.duplicate for answer in made] == [n % 7 == 0 for n in range(1000)]
        assert [answer.id for answer in made if answer.duplicate] == [answer.id for answer in known]
        assert len({answer.id for answer in made}) == 1000
        assert self.store.count_tasks(EVERYTHING) == {"pending": 1000}
        assert all(self.keyed(f"k{n}").id == made[n].id for n in (0, 1, 500, 999))

    def test_messages_and_tasks_in_one_batch_are_answered_in_its_order(self) -> None:
        self.declare(MOSS)
        messages = [NewItem(kind=Kind.message, agent="moss", subject=text) for text in ("1", "2")]
        made = self.record(a_task(None, subject="0"), *messages)
        assert [self.item(answer.id).subject for answer in made] == ["0", "1", "2"]

    # -- what a task was elsewhere

    @pytest.mark.parametrize("state", [State.completed, State.cancelled, State.dead_letter])
    def test_what_had_ended_elsewhere_has_ended_here(self, state: State) -> None:
        self.declare(MOSS)
        past = Past(
            state=state, attempts=3, error="it fell", result="7", created_at=NOW - 2 * HOUR, closed_at=NOW - HOUR
        )
        (made,) = self.record(a_task("old", past=past))
        task = self.item(made.id)
        assert (task.state, task.attempts, task.error, task.result) == (state, 3, "it fell", "7")
        assert (task.created_at, task.closed_at) == (NOW - 2 * HOUR, NOW - HOUR)
        assert self.due(NOW + HOUR) == []
        assert self.record(a_task("old", past=past))[0].duplicate
        (told,) = self.store.events(kinds=("task_changed",))
        assert (told.item, told.fields) == (
            made.id,
            {"change": "import", "by": None, "state": state.value, "attempts": 3},
        )

    @pytest.mark.parametrize("state", [State.pending, State.in_progress, State.failed, State.blocked])
    def test_what_was_alive_elsewhere_waits_here_with_its_attempts(self, state: State) -> None:
        self.declare(MOSS)
        past = Past(state=state, attempts=2, error="it fell", created_at=NOW - 2 * HOUR)
        (made,) = self.record(a_task("old", past=past, max_retries=2))
        task = self.item(made.id)
        assert (task.state, task.attempts, task.closed_at) == (State.pending, 2, None)
        (order,) = self.serve(NOW)
        self.end(order, FAILED, NOW)
        assert self.item(made.id).state is State.dead_letter

    def test_what_has_waited_elsewhere_has_kept_its_place(self) -> None:
        self.declare(MOSS)
        fresh = self.task("moss")
        (old,) = self.record(a_task("old", past=Past(state=State.pending, created_at=NOW - HOUR)))
        (order,) = self.serve(NOW)
        assert [task.id for task in order.tasks] == [old.id]
        self.end(order, DONE, NOW)
        assert self.serve(NOW)[0].tasks[0].id == fresh

    # -- its place

    def test_priority_is_a_head_start_and_nothing_starves(self) -> None:
        self.declare(MOSS)
        low = self.task("moss", NOW - 3 * HOUR - SECOND, priority=Priority.low)
        normal = self.task("moss", NOW - 2 * HOUR, priority=Priority.normal)
        urgent = self.task("moss", NOW, priority=Priority.urgent)
        begun = []
        for n in range(3):
            (order,) = self.serve(NOW + n * SECOND)
            begun.append(order.tasks[0].id)
            self.end(order, DONE, NOW + n * SECOND)
        assert begun == [low, normal, urgent]

    def test_a_task_for_later_stands_behind_what_could_have_begun_before_it(self) -> None:
        self.declare(MOSS)
        later = self.task("moss", not_before=NOW + HOUR)
        sooner = self.task("moss", NOW + MINUTE)
        begun = []
        for n in range(2):
            (order,) = self.serve(NOW + 2 * HOUR + n * SECOND)
            begun.append(order.tasks[0].id)
            self.end(order, DONE, NOW + 2 * HOUR + n * SECOND)
        assert begun == [sooner, later]

    def test_a_task_that_is_taken_up_again_stands_in_line_from_then_on(self) -> None:
        self.declare(MOSS)
        first = self.task("moss", max_retries=0)
        second = self.task("moss", NOW + SECOND)
        (order,) = self.serve(NOW)
        self.end(order, FAILED, NOW)
        self.store.change_task(first, "retry", "rana", NOW + HOUR)
        (order,) = self.serve(NOW + HOUR)
        assert order.tasks[0].id == second
        self.end(order, DONE, NOW + HOUR)
        assert self.serve(NOW + HOUR + SECOND)[0].tasks[0].id == first

    @pytest.mark.parametrize("role", [None, "editor"])
    def test_what_comes_while_all_are_busy_stands_before_what_has_less_of_a_head_start(self, role: str | None) -> None:
        self.declare(an_agent("moss", cadence=Cadence(), roles=("editor",)))
        whose: Any = {"role": role} if role else {"agent": "moss"}
        low, first = (self.task(**whose, priority=priority) for priority in (Priority.low, Priority.urgent))
        (order,) = self.serve(NOW)
        assert order.tasks[0].id == first
        assert self.due(NOW + SECOND) == []
        second = self.task(**whose, now=NOW + MINUTE, priority=Priority.urgent)
        self.serve(NOW + MINUTE)
        self.end(order, DONE, NOW + MINUTE)
        for task in (second, low):
            (order,) = self.serve(NOW + 2 * MINUTE)
            assert order.tasks[0].id == task
            self.end(order, DONE, NOW + 2 * MINUTE)

    def test_a_shift_is_taken_in_the_order_of_the_queue(self) -> None:
        self.declare(an_agent("hale", runner=Runner.handler, cadence=Cadence(), roles=("editor",)))
        low = self.task("hale", NOW - 4 * HOUR, priority=Priority.low)
        urgent = self.task(None, NOW, role="editor", priority=Priority.urgent)
        normal = self.task("hale", NOW - HOUR)
        (order,) = self.serve(NOW)
        assert [task.id for task in order.tasks] == [low, urgent, normal]

    # -- what it needs

    def test_tasks_of_a_batch_need_each_other_by_their_keys_in_any_order(self) -> None:
        self.declare(MOSS)
        self.record(a_task("c", "a", "b"), a_task("a"), a_task("b", "a"))
        a, b, c = (self.keyed(key) for key in "abc")
        assert [task.waits_for for task in (a, b, c)] == [0, 1, 2]
        assert self.store.dependencies(c.id) == sorted([(a.id, "pending"), (b.id, "pending")])
        begun = []
        for n in range(3):
            (order,) = self.serve(NOW + n * SECOND)
            begun.append(order.tasks[0].id)
            self.end(order, DONE, NOW + n * SECOND)
        assert begun == [a.id, b.id, c.id]

    def test_a_need_may_have_been_recorded_before(self) -> None:
        self.declare(MOSS)
        self.record(a_task("a"))
        self.record(a_task("b", "a"), a_task("c", "a", "b"))
        assert [self.keyed(key).waits_for for key in "abc"] == [0, 1, 2]
        assert [made.duplicate for made in self.record(a_task("b", "a"))] == [True]
        assert self.keyed("b").waits_for == 1

    def test_the_same_need_twice_is_one(self) -> None:
        self.declare(MOSS)
        (a,) = self.record(a_task("a"))
        self.record(a_task("b", "a", "a", depends_on=(a.id, a.id)))
        assert self.keyed("b").waits_for == 1
        (order,) = self.serve(NOW)
        self.end(order, DONE, NOW)
        assert self.keyed("b").waits_for == 0

    @pytest.mark.parametrize("many", [False, True])
    def test_a_need_that_nobody_knows_is_refused_with_its_batch(self, many: bool) -> None:
        self.declare(MOSS)
        self.message("moss", dedupe="letter")
        for needs in ("nobody", "letter"):
            with pytest.raises(Unknown, match=needs):
                self.record(*([a_task("a")] if many else []), a_task("b", needs))
        assert self.store.count_tasks(EVERYTHING) == {}

    def test_a_circle_is_refused_by_the_names_of_its_members(self) -> None:
        self.declare(MOSS)
        with pytest.raises(Mistake, match="a -> c -> b -> a") as refused:
            self.record(a_task("first", "a"), a_task("a", "c"), a_task("b", "a"), a_task("c", "b"))
        assert "first" not in str(refused.value)
        # As their sender wrote them, who knows nothing of what stands before them here.
        with pytest.raises(Mistake, match="circle: a -> a "):
            self.record(a_task("wren:a", "wren:a", sender="wren"))
        assert self.store.count_tasks(EVERYTHING) == {}

    def test_a_task_that_needs_a_later_one_of_its_own_causal_key_is_in_a_circle(self) -> None:
        self.declare(MOSS)
        with pytest.raises(Mistake, match="a -> b -> a"):
            self.record(a_task("a", "b", key="k"), a_task("b", key="k"))
        self.record(a_task("a", key="k"), a_task("b", "a", key="k"))

    def test_a_long_line_of_needs_is_no_circle(self) -> None:
        self.declare(MOSS)
        self.record(*(a_task(f"k{n}", f"k{n + 1}") for n in range(400)), a_task("k400"))
        assert self.keyed("k0").waits_for == 1
        (order,) = self.serve(NOW)
        assert order.tasks[0].dedupe == "k400"

    def test_what_needs_something_that_has_ended_elsewhere_begins_or_is_blocked(self) -> None:
        self.declare(MOSS)
        done, dead = Past(state=State.completed), Past(state=State.dead_letter)
        self.record(
            *(a_task("x", "dead", "done"), a_task("y", "done"), a_task("z", "x")),
            *(a_task("done", past=done), a_task("dead", past=dead)),
        )
        x, y, z, last = (self.keyed(key) for key in ("x", "y", "z", "dead"))
        assert (y.state, y.waits_for) == (State.pending, 0)
        assert (x.state, x.error) == (State.blocked, f"depends on task {last.id}, which is dead_letter")
        assert (z.state, z.error) == (State.blocked, f"depends on task {x.id}, which is blocked")

    # -- chains

    def test_a_task_at_the_end_of_a_chain_is_recorded_and_blocked_until_it_is_let_go(self) -> None:
        self.declare(an_agent("moss", cadence=Cadence(), limits=Limits(chain=2)))
        run, tasks = None, []
        for n in range(3):
            now = NOW + n * SECOND
            tasks.append(self.task("moss", now, by_run=run, sender="moss", origin=Origin.agent, subject=str(n)))
            if n == 2:
                break
            (order,) = self.serve(now)
            run = order.run.id
            self.end(order, DONE, now)
        assert [self.item(task).state for task in tasks] == [State.completed, State.completed, State.pending]
        (order,) = self.serve(NOW + MINUTE)
        (deep, also) = self.store.record(
            [a_task(None, by_run=order.run.id, sender="moss", origin=Origin.agent), a_task(None)], NOW + MINUTE
        )
        assert self.item(also.id).state is State.pending
        blocked = self.item(deep.id)
        assert (blocked.state, blocked.error) == (
            State.blocked,
            "chain: this task is 3 away from its root, the limit is 2",
        )
        self.end(order, DONE, NOW + MINUTE)
        self.store.change_task(deep.id, "retry", "rana", NOW + HOUR)
        begun = set()
        for n in range(2):
            (order,) = self.serve(NOW + HOUR + n * SECOND)
            begun.add(order.tasks[0].id)
            self.end(order, DONE, NOW + HOUR + n * SECOND)
        assert begun == {deep.id, also.id}

    # -- how it is found

    def test_tasks_are_found_by_what_they_are(self) -> None:
        self.declare(MOSS, "wren")
        made = [
            self.task("moss", subject="sweep the yard", tags=("yard", "daily"), sender="rana", key="k"),
            self.task("wren", subject="Mend the ROOF", priority=Priority.high, source="schedule:roof"),
            self.task(None, role="editor", subject="read the page"),
            self.task("moss", subject="sweep the hall", max_retries=0),
        ]
        self.message("moss", "no task")
        self.store.change_task(made[3], "fail", "rana", NOW, reason="the broom broke")
        found = {
            TaskFilter(): [0, 1, 2, 3],
            TaskFilter(agents=("moss",)): [0, 3],
            TaskFilter(agents=("moss", "wren")): [0, 1, 3],
            TaskFilter(role="editor"): [2],
            TaskFilter(sender="rana"): [0],
            TaskFilter(tag="daily"): [0],
            TaskFilter(tag="dail"): [],
            TaskFilter(key="k"): [0],
            TaskFilter(source="schedule:roof"): [1],
            TaskFilter(priority="high"): [1],
            TaskFilter(text="roof"): [1],
            TaskFilter(text="SWEEP"): [0, 3],
            TaskFilter(text="broom"): [3],
            TaskFilter(states=("pending",)): [0, 1, 2],
            TaskFilter(states=("dead_letter",)): [3],
            TaskFilter(states=("pending", "dead_letter")): [0, 1, 2, 3],
            TaskFilter(states=("pending", "completed")): [0, 1, 2],
            TaskFilter(states=("pending",), agents=("moss", "wren")): [0, 1],
            TaskFilter(states=("pending",), role="editor"): [2],
            TaskFilter(states=("dead_letter",), agents=("wren",)): [],
        }
        for filter, wanted in found.items():
            ids = [made[n] for n in wanted]
            assert [task.id for task in self.store.tasks(filter)] == ids, filter
            assert [task.id for task in self.store.tasks(filter, before=made[3] + 1)] == ids[::-1], filter
            assert sum(self.store.count_tasks(filter).values()) == len(ids), filter
        assert self.store.count_tasks(EVERYTHING) == {"pending": 3, "dead_letter": 1}

    def test_every_state_is_found_page_by_page_from_either_end(self) -> None:
        self.declare(MOSS, an_agent("hale", runner=Runner.handler, cadence=Cadence()))
        held = [self.task("hale") for _ in range(3)]
        self.serve(NOW)
        ids: dict[str, list[int]] = {"in_progress": held}
        for change in ("cancel", "complete", "fail", None):
            tasks = [self.task("moss") for _ in range(5)]
            state = "pending"
            for task in tasks if change else []:
                state = self.store.change_task(task, str(change), "rana", NOW).state.value
            ids[state] = tasks
        needed = ids["dead_letter"][0]
        ids["blocked"] = [self.task("moss", depends_on=(needed,)) for _ in range(5)]
        for states in (*((state,) for state in ids), ("pending", "blocked", "cancelled"), tuple(ids)):
            filter = TaskFilter(states=states)
            wanted = sorted(id for state in states for id in ids[state])
            pages: list[int] = []
            while page := self.store.tasks(filter, after=pages[-1] if pages else 0, limit=2):
                pages += [task.id for task in page]
            assert pages == wanted
            pages = []
            while page := self.store.tasks(filter, before=pages[-1] if pages else wanted[-1] + 1, limit=2):
                pages += [task.id for task in page]
            assert pages == wanted[::-1]
            assert self.store.count_tasks(filter) == {state: len(ids[state]) for state in states}

    def test_a_task_is_found_by_its_key_and_a_message_is_not(self) -> None:
        self.declare(MOSS)
        task = self.task("moss", dedupe="mine")
        self.message("moss", dedupe="letter")
        found = self.store.keyed_task("mine")
        assert found is not None and found.id == task
        assert self.store.keyed_task("letter") is None
        assert self.store.keyed_task("nobody's") is None

    def test_what_a_task_depends_on_is_told_with_its_state(self) -> None:
        self.declare(MOSS)
        needs = [self.task("moss"), self.task("moss")]
        task = self.task("moss", depends_on=tuple(needs))
        self.store.change_task(needs[1], "complete", "rana", NOW)
        assert self.store.dependencies(task) == [(needs[0], "pending"), (needs[1], "completed")]
        assert self.store.dependencies(needs[0]) == []
