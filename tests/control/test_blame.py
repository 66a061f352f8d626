"""Who is to blame for a run: the chain from its root, what it woke itself, and what all of that has cost."""

import json
from dataclasses import replace

import pytest

from tests.control.desk import FAILED, HOUR, MINUTE, NOON, an_agent, caller_of
from wakeful.control import blame
from wakeful.core.agents import Limits
from wakeful.core.codec import write_time
from wakeful.core.items import Observation
from wakeful.core.runs import Ending, Result
from wakeful.core.standing import Spend
from wakeful.core.wakes import Cause, Subject, Wake

FREE = Limits(cooldown=0 * MINUTE, chain=1_000, wakes_per_day=1_000, wakes_per_pair=1_000)


def costing(usd, tokens):
    return Ending(exit_code=0, result=Result(usage=Spend(usd=usd, tokens=tokens)))


def woken(desk, by, agent, reason="blocker"):
    desk.ask("wake", caller_of(by), agent=agent, reason=reason, body="look")
    return next(order for order in desk.claim() if order.run.agent == agent)


def blamed(desk, order):
    answer = desk.ask("blame", run=order.run.id)
    assert json.loads(json.dumps(answer)) == answer
    return answer


def test_the_chain_leads_from_the_operator_through_every_parent_to_the_run_with_what_each_has_cost(desk):
    desk.declare(*(an_agent(name) for name in ("wren", "moss", "reed")), sessions=5)
    desk.ask("tick", agent="wren", reason="have a look")
    (first,) = desk.claim()
    second = woken(desk, first, "moss")
    third = woken(desk, second, "reed", "critical_finding")
    desk.end(first, costing(100_000, 1_000))
    desk.end(second, costing(20_000, 200))
    answer = blamed(desk, third)
    assert (answer["run"], answer["agent"], answer["depth"], answer["whole"]) == (third.run.id, "reed", 2, True)
    root = answer["root"]
    assert (root["what"], root["cause"], root["from"], root["agent"]) == ("operator", "operator", "operator", "wren")
    assert (root["reason"], root["at"], root["wake_id"]) == ("have a look", write_time(NOON), first.run.wake)
    chain = answer["chain"]
    assert [(row["run_id"], row["agent"], row["depth"]) for row in chain] == [
        (first.run.id, "wren", 0),
        (second.run.id, "moss", 1),
        (third.run.id, "reed", 2),
    ]
    assert [row["by_run"] for row in chain] == [None, first.run.id, second.run.id]
    assert [row["reason"] for row in chain] == ["have a look", "blocker", "critical_finding"]
    assert [row["outcome"] for row in chain] == ["done", "done", None] and chain[2]["state"] == "running"
    assert [row["usage"]["usd"] for row in chain] == [0.1, 0.02, 0.0]
    lineage = {"wakes": 3, "runs": 3, "refused": 0, "usage": {"tokens": 1_200, "usd": 0.12}, "cut": False}
    assert answer["lineage"] == lineage


def test_what_the_run_woke_itself_is_told_also_where_it_was_refused_or_has_to_wait(desk):
    desk.declare("wren", "moss", "reed", an_agent("finch", limits=Limits(wakes_per_day=0)), sessions=3)
    first = desk.begin("wren")
    busy = desk.begin("moss")
    other = woken(desk, first, "reed")
    for name in ("finch", "moss"):
        desk.ask("wake", caller_of(first), agent=name, reason="blocker", body="look")
    answer = blamed(desk, first)
    told = [(row["agent"], row["verdict"], row["guard"], row["run_id"]) for row in answer["woke"]]
    assert told == [
        ("reed", "admit", None, other.run.id),
        ("finch", "refuse", "wakes_per_day", None),
        ("moss", "defer", "busy", None),
    ]
    assert answer["lineage"]["wakes"] == 4 and answer["lineage"]["refused"] == 1
    assert {row["parent"] for row in answer["woke"]} == {first.run.wake}
    # What another root began is no part of it.
    assert busy.run.id not in {row["run_id"] for row in answer["items"]}


def test_a_sibling_is_in_the_lineage_but_not_in_the_chain(desk):
    desk.declare("wren", "moss", "reed", sessions=3)
    first = desk.begin("wren")
    one, two = woken(desk, first, "moss"), woken(desk, first, "reed")
    answer = blamed(desk, two)
    assert [row["run_id"] for row in answer["chain"]] == [first.run.id, two.run.id] and answer["woke"] == []
    assert one.run.id in {row["run_id"] for row in answer["items"]} and answer["lineage"]["runs"] == 3


def test_every_wake_says_how_far_it_is_from_its_root_and_what_had_been_spent_before_it(desk):
    desk.declare("wren", "moss", "reed", sessions=3)
    first = desk.begin("wren")
    second = woken(desk, first, "moss")
    desk.end(first, costing(100_000, 1_000))
    third = woken(desk, second, "reed")
    told = [desk.ask("decision", wake=order.run.wake) for order in (first, second, third)]
    assert [row["by_run"] for row in told] == [None, first.run.id, second.run.id]
    assert [row["chain"] for row in told] == [{"root": first.run.wake, "depth": depth} for depth in range(3)]
    assert [row["lineage_usd"] for row in told] == [0.0, 0.0, 0.1]


# ---- what began it


def test_a_timer_began_it(desk):
    desk.declare("wren")
    desk.later(2 * HOUR)
    desk.due()
    root = blamed(desk, desk.claim()[0])["root"]
    assert (root["what"], root["cause"], root["agent"], root["item"]) == ("timer", "timer", "wren", None)


def test_a_beat_that_was_asked_for_by_its_instant_is_whoevers_who_asked(desk):
    desk.declare("wren")
    desk.ask("at", agent="wren", when="in 1m", reason="before lunch")
    desk.later(MINUTE)
    desk.due()
    root = blamed(desk, desk.claim()[0])["root"]
    assert (root["what"], root["from"], root["reason"]) == ("operator", "operator", "before lunch")


def test_a_message_began_it(desk):
    desk.declare("wren")
    message = desk.ask("send", agent="wren", body="x", subject="fire", priority="urgent")["message"]["id"]
    root = blamed(desk, desk.claim()[0])["root"]
    assert (root["what"], root["from"], root["cause"]) == ("message", "operator", "operator")
    assert (root["item"]["id"], root["item"]["subject"]) == (message, "fire")


@pytest.mark.parametrize(("source", "what"), [("inbox", "file"), ("snapshot+exec:tools/pending", "source")])
def test_a_file_or_an_entry_of_a_list_began_it(desk, source, what):
    desk.declare("wren")
    desk.store.observe(source, "wren", [Observation(external_id="notes.txt", fingerprint="1")], desk.now)
    desk.due()
    root = blamed(desk, desk.claim()[0])["root"]
    assert (root["what"], root["cause"], root["item"]["external_id"]) == (what, "news", "notes.txt")


def test_a_task_began_it_and_what_its_run_asks_for_is_of_its_lineage(desk):
    desk.declare("wren", "moss")
    desk.ask("add_task", agent="wren", title="weigh it")
    desk.due()
    (first,) = desk.claim()
    second = woken(desk, first, "moss")
    answer = blamed(desk, second)
    assert (answer["root"]["what"], answer["root"]["item"]["subject"]) == ("task", "weigh it")
    assert [row["agent"] for row in answer["chain"]] == ["wren", "moss"]


# ---- the bounds


def test_the_run_that_asked_is_in_the_chain_also_where_its_wake_was_tried_again(desk):
    desk.declare("wren", "moss")
    desk.ask("wake", agent="wren", body="look")
    (first,) = desk.claim()
    second = woken(desk, first, "moss")
    desk.end(first, replace(FAILED, result=Result(usage=Spend(usd=10_000, tokens=1))))
    desk.later(MINUTE)
    desk.due()
    (again,) = [order for order in desk.claim() if order.run.agent == "wren"]
    assert again.run.wake == first.run.wake
    answer = blamed(desk, second)
    assert [(row["run_id"], row["usage"]["usd"]) for row in answer["chain"]] == [
        (first.run.id, 0.01),
        (second.run.id, 0.0),
    ]
    (tried,) = [row for row in answer["items"] if row["wake_id"] == first.run.wake]
    assert (tried["run_id"], tried["runs"], tried["usage"]["usd"]) == (again.run.id, 2, 0.01)
    # Also seen from the newer run: it is the older one that asked.
    assert [row["parent"] for row in blamed(desk, again)["items"]] == [None, first.run.wake]


def test_every_attempt_at_a_wake_is_counted_also_one_that_woke_nobody(desk):
    desk.declare("wren")
    desk.ask("wake", agent="wren", body="look")
    (first,) = desk.claim()
    desk.end(first, replace(FAILED, result=Result(usage=Spend(usd=10_000, tokens=7))))
    desk.later(MINUTE)
    desk.due()
    # Nobody claims it in time: that run is void, and the next one is another.
    desk.later(MINUTE)
    desk.due()
    (again,) = desk.claim()
    assert again.run.id > first.run.id + 1
    answer = blamed(desk, again)
    assert answer["lineage"]["runs"] == 2 and answer["lineage"]["usage"] == {"tokens": 7, "usd": 0.01}
    assert [row["run_id"] for row in answer["chain"]] == [again.run.id]


def test_a_very_large_lineage_is_cut_and_says_so_but_the_chain_is_whole(desk, monkeypatch):
    monkeypatch.setattr(blame, "MOST_WAKES", 5)
    desk.declare("wren", an_agent("moss", limits=FREE), an_agent("reed", limits=FREE), sessions=9)
    first = desk.begin("wren")
    wakes = [
        Wake(agent="moss", cause=Cause.peer, subject=Subject.inbox, requested_at=desk.now, by_run=first.run.id)
        for _ in range(9)
    ]
    desk.decide(*wakes)
    last = woken(desk, first, "reed")
    answer = blamed(desk, last)
    assert answer["lineage"]["cut"] and len(answer["items"]) == 6
    assert [row["agent"] for row in answer["chain"]] == ["wren", "reed"]


def test_a_chain_is_walked_up_only_so_far_and_its_root_is_told_all_the_same(desk, monkeypatch):
    monkeypatch.setattr(blame, "LONGEST_CHAIN", 3)
    desk.declare(an_agent("wren", limits=FREE), an_agent("moss", limits=FREE), sessions=5)
    here = desk.begin("wren")
    for name in ("moss", "wren", "moss"):
        desk.ask("wake", caller_of(here), agent=name, reason="blocker", body="look")
        desk.end(here)
        desk.later(MINUTE)
        desk.due()
        (here,) = desk.claim()
    answer = blamed(desk, here)
    assert (answer["whole"], len(answer["chain"]), answer["depth"]) == (True, 3, 3)
    assert (answer["root"]["agent"], answer["root"]["what"]) == ("wren", "operator")
    assert answer["chain"][0]["depth"] == 1
    assert answer["lineage"]["runs"] == 4
