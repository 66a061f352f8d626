"""An inbox: looked through, marked read, put off; what is stuck in it, and what cannot be looked at."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.control.desk import DONE, FAILED, HOUR, MINUTE, NOON, SECOND, an_agent, caller_of, replicas
from wakeful.control.answering import answer
from wakeful.control.callers import Forbidden
from wakeful.core.codec import write_time
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import Observation
from wakeful.run import Message, Run

LEASE = timedelta(seconds=20)


def sent(desk, agent="wren", caller=None, **more):
    given = {"agent": agent, "body": "hello", **more}
    return (desk.ask("send", caller, **given) if caller else desk.ask("send", **given))["message"]["id"]


def found(desk, agent="wren", **filters):
    return [row["id"] for row in desk.ask("inbox", agent=agent, **filters)["items"]]


def mirrored(desk, *names, agent="wren", source="inbox"):
    desk.store.observe(source, agent, [Observation(external_id=name, fingerprint="1") for name in names], desk.now)


# ---- filters and pages


def test_an_inbox_is_looked_through_by_sender_type_priority_thread_and_state(desk):
    desk.declare("wren", "moss")
    moss = caller_of(desk.begin("moss"))
    one = sent(desk, priority="low")
    two = sent(desk, type="unblock")
    three = sent(desk, caller=moss, priority="normal")
    four = sent(desk, priority="critical")
    answered = sent(desk, agent="moss", reply_to=two)
    five = sent(desk, caller=moss, reply_to=answered)
    desk.ask("mark_read", agent="wren", messages=[one])
    assert found(desk) == [two, three, four, five]
    assert found(desk, sender="moss") == [three, five]
    assert found(desk, type="unblock") == [two]
    assert found(desk, priority="normal") == [two, three, four, five]
    assert found(desk, priority="urgent") == found(desk, priority="critical") == [four]
    assert found(desk, thread=two) == [two, five] and found(desk, "moss", thread=two) == [answered]
    assert found(desk, thread=one) == [] and found(desk, thread=one, state="all") == [one]
    assert found(desk, state="closed") == [one] and found(desk, state="all", sender="operator") == [one, two, four]
    assert found(desk, sender="moss", priority="high") == []


def test_an_inbox_is_paged_from_either_end(desk):
    desk.declare("wren")
    ids = [sent(desk) for _ in range(5)]
    first = desk.ask("inbox", agent="wren", limit=2)
    assert ([row["id"] for row in first["items"]], first["next"]) == (ids[:2], ids[1])
    assert found(desk, after=first["next"], limit=2) == ids[2:4]
    newest = desk.ask("inbox", agent="wren", before=2**62, limit=2)
    assert ([row["id"] for row in newest["items"]], newest["next"]) == ([ids[4], ids[3]], ids[3])
    last = desk.ask("inbox", agent="wren", before=newest["next"], limit=3)
    assert ([row["id"] for row in last["items"]], last["next"]) == (ids[2::-1], None)


def test_the_inbox_of_a_replica_holds_what_is_addressed_to_all_of_them_in_one_order(desk):
    desk.declare(*replicas("moss", 2))
    ids = [sent(desk, agent=name) for name in ("moss-1", "moss", "moss-1", "moss-2")]
    assert found(desk, "moss-1") == ids[:3] and found(desk, "moss-1", before=2**62) == ids[2::-1]
    assert found(desk, "moss") == ids


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"state": "unread"}, "use open, closed or all"),
        ({"type": "gossip"}, "unknown type of message 'gossip'"),
        ({"priority": "loud"}, "unknown priority 'loud'"),
        ({"thread": 2**63}, "number of a message as thread"),
        ({"before": 0}, "number of a message as before"),
    ],
)
def test_what_cannot_be_looked_for_is_a_mistake(desk, given, reason):
    desk.declare("wren")
    with pytest.raises(Mistake, match=reason):
        desk.ask("inbox", agent="wren", **given)


# ---- read


def test_what_is_marked_read_is_closed_and_shown_to_nobody_and_twice_changes_nothing(desk):
    desk.declare("wren")
    one, two = sent(desk), sent(desk)
    answered = desk.ask("mark_read", agent="wren", messages=[two, one, two])
    assert answered["changed"] == [one, two]
    assert [(row["id"], row["state"]) for row in answered["items"]] == [(two, "closed"), (one, "closed")]
    again = desk.ask("mark_read", agent="wren", messages=[one])
    assert again["changed"] == [] and again["items"][0]["closed_at"] == write_time(NOON)
    assert desk.begin("wren").items == ()
    assert [event["fields"]["by"] for event in desk.ask("events", kinds=["marked_read"])["items"]] == ["operator"] * 2


def test_a_run_marks_what_it_was_shown_and_that_stays_closed_although_it_fails(desk):
    desk.declare("wren")
    one, two = sent(desk), sent(desk)
    order = desk.begin("wren")
    assert desk.ask("mark_read", caller_of(order), agent="wren", messages=[one])["changed"] == [one]
    desk.end(order, FAILED)
    assert found(desk) == [two]


def test_of_what_is_not_in_the_inbox_nobody_learns_that_it_exists(desk):
    desk.declare("wren", "moss")
    other, task = sent(desk, agent="moss"), desk.ask("add_task", agent="wren", title="t")["id"]
    for number in (other, task, 999, 0, 2**63, True):
        for operation, more in (("mark_read", {}), ("snooze", {"until": "2h"})):
            with pytest.raises(Unknown, match=f"no message {number} in the inbox of wren"):
                desk.ask(operation, agent="wren", messages=[number], **more)
    assert found(desk, "moss") == [other]


def test_nothing_is_marked_where_one_of_them_cannot_be(desk):
    desk.declare("wren")
    one = sent(desk)
    mirrored(desk, "notes.txt")
    file = found(desk)[-1]
    with pytest.raises(Mistake, match=r"mirrors notes\.txt of inbox .*snooze it"):
        desk.ask("mark_read", agent="wren", messages=[one, file])
    with pytest.raises(Unknown):
        desk.ask("mark_read", agent="wren", messages=[one, 999])
    assert found(desk) == [one, file]


@pytest.mark.parametrize("messages", [[], list(range(1, 1_002))], ids=["none", "too many"])
def test_how_many_may_be_named_is_bounded(desk, messages):
    desk.declare("wren")
    with pytest.raises(Mistake, match="expected 1 to 1,000 messages"):
        desk.ask("mark_read", agent="wren", messages=messages)


def test_a_replica_marks_what_all_of_them_share_but_not_what_is_anothers(desk):
    desk.declare(*replicas("moss", 2))
    shared, other = sent(desk, agent="moss"), sent(desk, agent="moss-2")
    caller = caller_of(desk.begin("moss-1"))
    assert desk.ask("mark_read", caller, agent="moss-1", messages=[shared])["changed"] == [shared]
    with pytest.raises(Unknown):
        desk.ask("mark_read", caller, agent="moss-1", messages=[other])
    with pytest.raises(Forbidden):
        desk.ask("mark_read", caller, agent="moss-2", messages=[other])


# ---- snooze


@pytest.mark.parametrize(
    ("until", "moment"),
    [
        ("2h", NOON + 2 * HOUR),
        ("in 20m", NOON + 20 * MINUTE),
        ("14:30", datetime(2026, 3, 2, 13, 30, tzinfo=UTC)),
        ("2026-03-05T08:00:00+02:00", datetime(2026, 3, 5, 6, tzinfo=UTC)),
    ],
)
def test_a_message_is_put_off_for_a_while_or_until_an_instant_on_the_agents_wall_clock(desk, until, moment):
    desk.declare(an_agent("wren", timezone="Europe/Berlin"))
    one = sent(desk)
    answered = desk.ask("snooze", agent="wren", messages=[one], until=until)
    assert (answered["changed"], answered["until"]) == ([one], write_time(moment))
    assert answered["items"][0]["snoozed_until"] == write_time(moment)
    assert desk.ask("inbox", agent="wren")["items"][0]["state"] == "open"


def test_what_is_put_off_is_shown_to_nobody_and_rings_when_its_time_comes(desk):
    desk.declare(an_agent("wren", every=None))
    one = sent(desk, priority="low")
    desk.ask("snooze", agent="wren", messages=[one], until="2h")
    order = desk.begin("wren")
    assert order.items == ()
    desk.end(order)
    desk.later(2 * HOUR - SECOND)
    assert desk.due() == []
    desk.later(SECOND)
    assert [decision.run is not None for decision in desk.due()] == [True]
    (order,) = desk.claim()
    assert [item.id for item in order.items] == [one]
    assert desk.ask("inbox", agent="wren")["items"][0]["snoozed_until"] is None
    desk.end(order)
    assert found(desk) == []


@pytest.mark.parametrize("names", [("wren",), ("wren-1", "wren-2")])
def test_what_is_put_off_is_not_counted_as_unread_until_its_time_comes(desk, names):
    desk.declare(*([an_agent("wren")] if len(names) == 1 else replicas("wren", 2)))
    one, _ = sent(desk, priority="low"), sent(desk, priority="low")
    desk.ask("snooze", agent="wren", messages=[one], until="30m")

    def unread():
        listed = {row["unread"] for row in desk.ask("agents")["items"]}
        return listed | {desk.ask("agent", agent=name)["unread"] for name in names}

    assert unread() == {1}
    desk.later(30 * MINUTE)
    assert unread() == {2}


def test_a_run_puts_off_what_it_was_shown_and_its_end_does_not_close_that(desk):
    desk.declare("wren")
    one, two = sent(desk), sent(desk)
    order = desk.begin("wren")
    desk.ask("snooze", caller_of(order), agent="wren", messages=[two], until="30m")
    desk.end(order)
    assert found(desk) == [two] and found(desk, state="closed") == [one]


@pytest.mark.parametrize(
    ("until", "reason"),
    [
        ("2026-03-02T11:00Z", r"lies in the past \(write a later instant\)"),
        ("soon", "expected an instant"),
        ("2x", "expected an instant"),
        ("9999999d", "longer than"),
        ("0s", "above zero"),
        ("", "expected an instant"),
    ],
)
def test_an_instant_that_nothing_can_be_put_off_to_is_a_mistake(desk, until, reason):
    desk.declare("wren")
    one = sent(desk)
    with pytest.raises(Mistake, match=reason):
        desk.ask("snooze", agent="wren", messages=[one], until=until)
    assert desk.begin("wren").items[0].id == one


# ---- the same from a handler


def handled(desk, order, then):
    """What a handler's run asks, and the answers that it gets over its line."""
    asked = []

    def ask(request):
        asked.append(json.loads(json.dumps(request)))
        return desk.runner.run(answer(desk.control, order.run.id, asked[-1]))

    return then(Run({"agent": {"name": order.run.agent}, "run": {"id": order.run.id}}, None, ask)), asked


def test_a_handler_sends_wakes_marks_and_puts_off_as_the_command_line_does(desk):
    desk.declare("wren", "moss")
    one, two = sent(desk), sent(desk)
    order = desk.begin("wren")

    def then(run):
        reply = run.send("moss", "well", reply_to=one, metadata={"page": 3})
        woken = run.wake("moss", "blocker", "the build is red")
        return reply, woken, run.mark_read(one), run.snooze([two], NOON + HOUR)

    (reply, woken, read, off), _ = handled(desk, order, then)
    assert (reply["message"]["reply_to"], reply["message"]["metadata"]) == (one, {"page": 3})
    assert woken["verdict"] == "admit" and read["changed"] == [one]
    assert (off["changed"], off["until"]) == ([two], write_time(NOON + HOUR))


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        (lambda run: run.wake("moss", "because", "look"), "one of blocker"),
        (lambda run: run.wake("moss", "blocker", ""), "leaves a message"),
        (lambda run: run.snooze([1], "never"), "expected an instant"),
        (lambda run: run.send("moss", "x", metadata={"a": {1}}), "the metadata cannot be written as JSON"),
        (lambda run: run._request({"verb": "dance"}), "run.mark_read or run.snooze"),
    ],
)
def test_a_handlers_mistake_is_told_to_it(desk, then, reason):
    desk.declare("wren", "moss")
    sent(desk)
    with pytest.raises(Mistake, match=reason):
        handled(desk, desk.begin("wren"), then)


def test_a_handler_finds_metadata_answer_and_thread_in_its_messages():
    run = Run.for_test(inbox=[{"id": 7, "metadata": {"a": 1}, "reply_to": 5, "thread": 3}, {"id": 8}])
    assert [(each.metadata, each.reply_to, each.thread) for each in run.inbox] == [({"a": 1}, 5, 3), ({}, None, None)]
    assert isinstance(run.inbox[0], Message) and len({*run.inbox}) == 2


# ---- stuck


def test_an_urgent_message_that_no_run_dealt_with_is_stuck_and_says_since_when_and_what_to_do(desk):
    desk.declare("wren")
    assert desk.ask("stuck")["items"] == []
    one = sent(desk, priority="urgent")
    for _ in range(4):
        (order,) = desk.claim()
        desk.later(SECOND)
        desk.end(order, FAILED)
        desk.later(10 * MINUTE)
        desk.due()
    (row,) = desk.ask("stuck")["items"]
    assert (row["id"], row["runs"], row["last_run"], row["since"]) == (one, 4, order.run.id, write_time(NOON))
    assert row["advice"] == (
        f"mark it read: wakeful inbox wren --read {one}; or snooze it: wakeful inbox wren --snooze {one} --until 2h"
    )
    desk.ask("mark_read", agent="wren", messages=[one])
    assert desk.ask("stuck")["items"] == []


def test_a_file_that_a_run_saw_and_left_is_stuck_until_it_is_removed_or_put_off(desk):
    desk.declare("wren", "moss")
    mirrored(desk, "notes.txt")
    mirrored(desk, "A-7", agent="moss", source="snapshot+exec:tools/pending")
    for _ in desk.due():
        pass
    for order in desk.claim():
        desk.end(order, DONE)
    rows = {row["to"]: row for row in desk.ask("stuck")["items"]}
    assert rows["wren"]["advice"].startswith("remove or change the file notes.txt; or snooze it: ")
    assert rows["moss"]["advice"].startswith("settle A-7 where it comes from (snapshot+exec:tools/pending); or ")
    assert [row["to"] for row in desk.ask("stuck", agent="wren")["items"]] == ["wren"]
    assert desk.ask("stuck", limit=1)["more"] and not desk.ask("stuck", limit=2)["more"]
    first = desk.ask("stuck", limit=1)
    second = desk.ask("stuck", limit=1, after=first["next"])
    assert [row["to"] for row in first["items"] + second["items"]] == list(rows) and second["next"] is None
    with pytest.raises(Mistake, match="where a page ended"):
        desk.ask("stuck", after="yesterday")
    desk.ask("snooze", agent="wren", messages=[rows["wren"]["id"]], until="2h")
    mirrored(desk, agent="moss", source="snapshot+exec:tools/pending")
    assert desk.ask("stuck")["items"] == []


# ---- outages


def test_a_source_that_cannot_be_looked_at_is_told_with_why_and_since_when(desk):
    desk.declare("wren", "moss")
    desk.store.observe("inbox", "moss", None, desk.now, why="/desk/inbox/moss: no such folder")
    desk.later(3 * MINUTE)
    (outage,) = desk.ask("status")["outages"]
    expected = {"source": "inbox", "agent": "moss", "node": None, "outage": "/desk/inbox/moss: no such folder"}
    assert outage == {**expected, "since": write_time(NOON)}
    rows = {row["name"]: row["sources"] for row in desk.ask("agents")["items"]}
    assert rows == {"wren": [], "moss": [outage]}
    assert desk.ask("agent", agent="moss")["sources"] == [outage]
    mirrored(desk, agent="moss")
    assert desk.ask("status")["outages"] == []


def test_on_a_shared_store_the_node_is_told_that_cannot_look(shared):
    shared.declare("moss")
    shared.join("barn")
    shared.store.tend([("inbox", "moss")], "barn", shared.now, LEASE)
    shared.store.observe("inbox", "moss", None, shared.now, node="barn", why="no such folder")
    (outage,) = shared.ask("status")["outages"]
    assert (outage["node"], outage["outage"]) == ("barn", "no such folder")
    shared.store.observe("inbox", "moss", [], shared.now, node="barn")
    assert shared.ask("status")["outages"] == []
    (source,) = shared.ask("agent", agent="moss")["sources"]
    assert (source["node"], source["outage"], source["since"]) == ("barn", None, None)


def test_a_message_is_unread_as_its_agent_counts_it(desk):
    desk.declare("wren")
    for _ in range(3):
        sent(desk)
    desk.end(desk.begin("wren"), FAILED)
    desk.ask("snooze", agent="wren", messages=[2], until="2h")
    assert [row["unread"] for row in desk.ask("inbox", agent="wren")["items"]] == [True, False, True]
    assert desk.ask("agent", agent="wren")["unread"] == 2
