"""Pauses with their receipts, resuming, and runs that are to end."""

import asyncio
from datetime import timedelta

import pytest

from tests.control.desk import HOUR, MINUTE, NOON, SECOND, an_agent, replicas
from wakeful.core.codec import write_time
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import Observation
from wakeful.core.runs import Ending
from wakeful.core.wakes import FLEET, Pause, agent_scope
from wakeful.store.inline import Inline

BY_US = Ending(signal=15, by="operator")


def test_the_receipt_of_a_pause_says_who_why_until_when_and_lists_what_is_still_running(desk):
    desk.declare("wren", "moss")
    order = desk.begin("wren")
    receipt = desk.ask("pause", reason="upgrade", duration="2h")
    assert (receipt["scope"], receipt["owner"], receipt["reason"]) == ("fleet", "operator", "upgrade")
    assert (receipt["since"], receipt["until"]) == (write_time(NOON), write_time(NOON + 2 * HOUR))
    assert [run["id"] for run in receipt["running"]] == [order.run.id]
    assert receipt["ended"] == [] and desk.store.stopping("here") == []


def test_once_a_pause_has_returned_nothing_begins_and_what_was_not_started_is_void(desk):
    desk.declare("wren", "moss")
    admitted = desk.ask("tick", agent="wren")
    receipt = desk.ask("pause")
    assert receipt["running"] == [] and desk.store.run(admitted["run_id"]).state == "void"
    desk.later(2 * HOUR)
    desk.due()
    assert desk.claim() == []


def test_a_pause_of_one_agent_holds_that_one_and_its_receipt_lists_only_its_runs(desk):
    desk.declare("wren", "moss")
    order = desk.begin("wren")
    desk.begin("moss")
    receipt = desk.ask("pause_agent", agent="wren", reason="x")
    assert receipt["scope"] == "agent:wren" and [run["id"] for run in receipt["running"]] == [order.run.id]
    assert desk.ask("agent", agent="moss")["paused"] is None


def test_a_pause_waits_until_the_starts_under_way_have_executed_or_been_vetoed(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    seen = []

    def settled():
        seen.append([pause.scope for pause in desk.store.pauses()])
        desk.store.void(order.run.id, order.run.epoch, desk.now)

    desk.engine.settled = settled
    receipt = desk.ask("pause")
    assert seen == [["fleet"]] and receipt["running"] == []


def test_pause_now_asks_the_open_runs_of_its_scope_to_end_in_the_transaction_of_the_pause(desk):
    desk.declare("wren", "moss")
    order, other = desk.begin("wren"), desk.begin("moss")
    commits = []
    desk.access.watch(lambda: commits.append([stop.run for stop in desk.store.stopping("here")]))
    desk.control = desk.make(None)
    receipt = desk.ask("pause_agent", agent="wren", now=True)
    assert commits == [[order.run.id]]
    assert receipt["ended"] == [order.run.id]
    (stop,) = desk.store.stopping("here")
    assert (stop.run, stop.by, stop.at_once) == (order.run.id, "operator", False)
    assert other.run.id not in receipt["ended"]


def test_pause_now_waits_for_the_ends_and_then_lists_nothing(desk):
    desk.declare("wren", "moss")
    orders = [desk.begin("wren"), desk.begin("moss")]
    ending = []

    async def end_one_after_the_other():
        for order in orders:
            await desk.access.write(lambda store, order=order: desk.end(order, BY_US))

    desk.engine.settled = lambda: ending.append(asyncio.ensure_future(end_one_after_the_other()))
    receipt = desk.ask("pause", now=True)
    assert ending[0].done()
    assert receipt["ended"] == [order.run.id for order in orders] and receipt["running"] == []


def test_pause_now_lists_what_is_still_alive_when_patience_ends(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    desk.control = desk.make(desk.engine, patience=timedelta(milliseconds=20))
    receipt = desk.ask("pause", now=True)
    assert receipt["ended"] == [order.run.id]
    assert [(run["id"], run["state"]) for run in receipt["running"]] == [(order.run.id, "running")]


class Grouped(Inline):
    """Commits the first call together with one that came just before it, as a writer does."""

    def __init__(self, store, before):
        super().__init__(store)
        self.before = [before]

    async def write(self, verb, *, quiet=False):
        def both(store):
            if self.before:
                self.before.pop()()
            return verb(store)

        return await super().write(both, quiet=quiet)


def test_pause_now_also_ends_what_was_started_in_the_same_commit(desk):
    desk.declare("wren")
    started = []
    desk.access = Grouped(desk.store, lambda: started.append(desk.begin("wren")))
    desk.control = desk.make(desk.engine, patience=timedelta(milliseconds=20))
    receipt = desk.ask("pause", now=True)
    (order,) = started
    assert receipt["ended"] == [order.run.id] and [run["id"] for run in receipt["running"]] == [order.run.id]
    assert [stop.run for stop in desk.store.stopping("here")] == [order.run.id]


def test_without_an_engine_pause_now_does_not_wait_for_nobody(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    desk.control = desk.make(None, patience=timedelta(hours=1))
    receipt = desk.ask("pause", now=True)
    assert receipt["ended"] == [order.run.id] and [run["id"] for run in receipt["running"]] == [order.run.id]


@pytest.mark.parametrize("duration", ["2", "soon", "-2h", "0s"])
def test_a_pause_for_no_duration_is_a_mistake_and_nothing_is_paused(desk, duration):
    desk.declare("wren")
    with pytest.raises(Mistake, match="duration"):
        desk.ask("pause", duration=duration)
    assert desk.store.pauses() == []


def test_an_address_is_paused_with_all_of_its_replicas(desk):
    desk.declare(*replicas("moss", 3), "wren")
    order = desk.begin("moss-2")
    receipt = desk.ask("pause_agent", agent="moss", now=False)
    assert receipt["scope"] == "agent:moss" and [run["id"] for run in receipt["running"]] == [order.run.id]
    states = {row["name"]: row["state"] for row in desk.ask("agents")["items"]}
    assert states == {"moss-1": "paused", "moss-2": "paused", "moss-3": "paused", "wren": "idle"}
    assert desk.ask("tick", agent="moss-3")["guard"] == "paused"
    assert desk.ask("resume_agent", agent="moss")["resumed"]
    assert {row["state"] for row in desk.ask("agents")["items"]} == {"idle", "running"}


# ---- resume


def test_resume_lifts_the_pause_and_spreads_what_waited_over_a_minute(desk):
    names = [f"agent-{number}" for number in range(12)]
    desk.declare(*names, sessions=20)
    desk.ask("pause")
    desk.later(2 * HOUR)
    desk.due()
    assert len(desk.store.wakes(state="waiting")) == 12
    assert desk.ask("resume") == {"scope": "fleet", "resumed": True, "held_by": [], "files": []}
    instants = {row.retry_at for row in desk.store.wakes(state="waiting")}
    assert len(instants) > 6 and all(desk.now <= at < desk.now + MINUTE for at in instants)
    desk.later(MINUTE)
    assert sum(decision.run is not None for decision in desk.due()) == 12


def test_resume_of_what_is_not_paused_says_so(desk):
    desk.declare("wren")
    assert desk.ask("resume")["resumed"] is False
    assert desk.ask("resume_agent", agent="wren") == {
        "scope": "agent:wren",
        "resumed": False,
        "held_by": [],
        "files": [],
    }


def test_resume_of_an_agent_lifts_what_it_brought_on_itself(desk):
    desk.declare("wren")
    for owner in ("quarantine", "burst", "quota", "operator"):
        pause = Pause(scope=agent_scope("wren"), owner=owner, reason="x", since=desk.now)
        desk.store.pause(pause, desk.now)
    assert desk.ask("agent", agent="wren")["state"] == "quarantined"
    assert desk.ask("resume_agent", agent="wren")["resumed"]
    assert desk.store.pauses() == []


def test_resume_of_an_address_lifts_what_one_of_its_replicas_brought_on_itself(desk):
    desk.declare(*replicas("moss", 2, max_failures=1))
    desk.end(desk.begin("moss-2"), Ending(exit_code=1))
    assert desk.ask("agent", agent="moss-2")["state"] == "quarantined"
    assert desk.ask("resume_agent", agent="moss") == {
        "scope": "agent:moss",
        "resumed": True,
        "held_by": [],
        "files": [],
    }
    assert desk.ask("agent", agent="moss-2")["state"] == "idle"


def test_resume_of_one_owner_leaves_the_others(desk):
    desk.declare("wren")
    for owner in ("burst", "operator"):
        desk.store.pause(Pause(scope=agent_scope("wren"), owner=owner, reason="x", since=desk.now), desk.now)
    answer = desk.ask("resume_agent", agent="wren", owner="burst")
    assert answer["resumed"] and [pause["owner"] for pause in answer["held_by"]] == ["operator"]


def test_resume_of_an_agent_says_what_still_holds_it(desk):
    desk.declare("wren")
    desk.ask("pause", reason="night")
    desk.ask("pause_agent", agent="wren")
    answer = desk.ask("resume_agent", agent="wren")
    assert answer["resumed"] and [(pause["scope"], pause["reason"]) for pause in answer["held_by"]] == [
        ("fleet", "night")
    ]


def test_a_pause_by_the_file_is_lifted_only_by_removing_the_file(desk):
    desk.declare("wren")
    desk.store.pause(Pause(scope=FLEET, owner="file", reason="the desk is moved", since=desk.now), desk.now)
    with pytest.raises(Mistake, match=r"PAUSE file.*the desk is moved.*remove that file"):
        desk.ask("resume")
    desk.ask("pause", reason="and lunch")
    answer = desk.ask("resume")
    assert answer["resumed"] and [pause["owner"] for pause in answer["held_by"]] == ["file"]
    assert [pause.owner for pause in desk.store.pauses()] == ["file"]


def test_a_pause_that_has_run_out_holds_nobody_in_any_listing(desk):
    desk.declare("wren")
    desk.ask("pause", duration="1m")
    desk.later(MINUTE + SECOND)
    assert desk.ask("agent", agent="wren")["state"] == "idle"
    assert desk.ask("status")["pauses"] == [] and desk.ask("tick", agent="wren")["verdict"] == "admit"


# ---- kill


def test_kill_asks_for_the_end_of_a_run_and_says_that_it_did(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    answer = desk.ask("kill", run=order.run.id)
    assert (answer["id"], answer["state"], answer["asked"]) == (order.run.id, "running", True)
    assert [(stop.run, stop.at_once) for stop in desk.store.stopping("here")] == [(order.run.id, False)]
    desk.ask("kill", run=order.run.id, at_once=True)
    assert [stop.at_once for stop in desk.store.stopping("here")] == [True]
    desk.end(order, BY_US)
    over = desk.ask("kill", run=order.run.id)
    assert (over["outcome"], over["asked"]) == ("killed", False)


def test_a_killed_one_off_is_over_and_does_not_come_back(desk):
    desk.declare("wren")
    answer = desk.ask("run", agent="wren", prompt="something long")
    (order,) = desk.claim()
    assert desk.ask("kill", run=answer["run_id"])["cancelled"] == [answer["task_id"]]
    desk.end(order, BY_US)
    desk.later(10 * MINUTE)
    assert desk.due() == [] and desk.ask("task", task=answer["task_id"])["state"] == "cancelled"


def test_a_killed_one_off_that_had_not_begun_is_over_too(desk):
    desk.declare("wren")
    answer = desk.ask("run", agent="wren", prompt="something long")
    killed = desk.ask("kill", run=answer["run_id"])
    assert (killed["state"], killed["cancelled"]) == ("void", [answer["task_id"]])
    desk.later(MINUTE)
    assert [decision.verdict.kind for decision in desk.due()] == ["refuse"]


def test_the_task_of_a_killed_run_that_is_no_one_off_is_tried_again(desk):
    desk.declare(an_agent("wren"))
    task = desk.ask("add_task", agent="wren", title="t")["id"]
    desk.due()
    (order,) = desk.claim()
    assert desk.ask("kill", run=order.run.id)["cancelled"] == []
    desk.end(order, BY_US)
    assert desk.ask("task", task=task)["state"] == "pending"


def test_a_source_is_paused_by_its_name_and_what_comes_from_it_waits(desk):
    desk.declare(an_agent("wren", every=None))
    desk.store.observe("inbox", "wren", [Observation(external_id="a", fingerprint="1")], desk.now)
    receipt = desk.ask("pause_agent", agent="source:inbox", reason="moving")
    assert (receipt["scope"], receipt["running"]) == ("source:inbox", [])
    desk.later(MINUTE)
    assert [(decision.verdict.guard, decision.run) for decision in desk.due()] == [("paused", None)]
    assert desk.ask("status")["pauses"][0]["scope"] == "source:inbox"
    assert desk.ask("resume_agent", agent="source:inbox")["resumed"]
    assert desk.store.pauses() == []
    with pytest.raises(Unknown, match="no source is called 'source:inbux'; known are source:inbox"):
        desk.ask("pause_agent", agent="source:inbux")
    with pytest.raises(Mistake, match="runs are of an agent"):
        desk.ask("pause_agent", agent="source:inbox", now=True)


def test_the_pause_of_an_agent_that_was_removed_is_not_told_any_more(desk):
    desk.declare("wren", *replicas("moss", 2))
    for agent in ("wren", "moss", "moss-1"):
        desk.ask("pause_agent", agent=agent)
    assert {row["scope"] for row in desk.ask("status")["pauses"]} == {"agent:wren", "agent:moss", "agent:moss-1"}
    desk.declare(*replicas("moss", 1))
    assert {row["scope"] for row in desk.ask("status")["pauses"]} == {"agent:moss", "agent:moss-1"}
