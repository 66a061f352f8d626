"""The tree of `wakeful blame`: every parent of the run, what it woke, what it cost, and never more than can be read."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.cli.office import LEASE, now, wakeful
from wakeful.cli import blame
from wakeful.cli.blame import lines_of
from wakeful.core.admission import admit
from wakeful.core.items import Kind, NewItem, Ring
from wakeful.core.runs import Ending, Result
from wakeful.core.settlement import settle
from wakeful.core.standing import Spend
from wakeful.core.wakes import Cause, Subject, Wake
from wakeful.store.protocol import Finish

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def link(id, agent, parent=None, **more):
    """A wake that became the run of the same number."""
    return {
        "wake_id": id,
        "parent": parent,
        "run_id": id,
        "agent": agent,
        "cause": "peer" if parent else "operator",
        "reason": "blocker" if parent else None,
        "by_run": parent,
        "verdict": "admit",
        "guard": None,
        "joined": None,
        "depth": id - 1,
        "state": "ended",
        "outcome": "done",
        "runs": 1,
        "usage": {"usd": 0.1, "tokens": 1_000},
        **more,
    }


def refused(id, agent, parent, **more):
    none = {"run_id": None, "outcome": None, "state": "refused", "verdict": "refuse", "guard": "cooldown", "runs": 0}
    return link(id, agent, parent, **{**none, **more})


def answer(rows, run, **more):
    known = {row["wake_id"]: row for row in rows}
    chain = [known[run]]
    while chain[0]["parent"] is not None:
        chain.insert(0, known[chain[0]["parent"]])
    lineage = {"wakes": len(rows), "runs": 4, "refused": 0, "usage": {"usd": 0.4, "tokens": 4_000}, "cut": False}
    root = {"what": "operator", "agent": chain[0]["agent"], "from": "operator", "reason": None, "item": None}
    return {
        "run": run,
        "agent": known[run]["agent"],
        "depth": len(chain) - 1,
        "root": {**root, "at": "2026-03-02T11:55:00Z", **more.pop("root", {})},
        "whole": True,
        "chain": chain,
        "items": rows,
        "lineage": {**lineage, **more.pop("lineage", {})},
        **more,
    }


def text(told):
    return ["".join(span.text for span in line) for line in lines_of(told, NOON)]


def test_the_tree_is_drawn_from_its_root_and_marks_the_run_that_was_asked_about():
    rows = [
        link(1, "wren"),
        link(2, "moss", 1),
        refused(3, "finch", 2),
        link(4, "reed", 1, outcome=None, state="running"),
        refused(5, "wren", 4, verdict="defer", guard="busy"),
    ]
    assert text(answer(rows, 2, lineage={"refused": 1})) == [
        "run 2 of moss: 1 wake away from its root; with all that came of that root $0.40 and 4,000 tokens in 4 runs, "
        "1 wake refused",
        "it began 11:55 with operator asked for wren",
        "wren  run 1 (operator)  done  $0.10 and 1,000 tokens",
        "├─ moss  run 2 (peer, blocker)  done  $0.10 and 1,000 tokens ◄",
        "│  └─ finch  refused by cooldown (peer, blocker)",
        "└─ reed  run 4 (peer, blocker)  running  $0.10 and 1,000 tokens",
        "   └─ wren  waits for busy (peer, blocker)",
    ]


@pytest.mark.parametrize(
    ("root", "words"),
    [
        ({"what": "operator", "reason": "look"}, "operator asked for wren: look"),
        ({"what": "timer", "from": None}, "the timer of wren"),
        ({"what": "task", "item": {"id": 7, "subject": "weigh it"}}, "task 7 of operator for wren: weigh it"),
        ({"what": "message", "from": "moss", "item": {"id": 7, "subject": ""}}, "message 7 of moss to wren"),
        ({"what": "file", "item": {"external_id": "notes.txt"}}, "the file notes.txt in the inbox of wren"),
        ({"what": "source", "item": {"external_id": "A-7", "source": "pending"}}, "A-7 of pending for wren"),
        ({"what": "news", "from": "hook"}, "news of hook for wren"),
    ],
)
def test_what_began_it_is_told_in_words(root, words):
    told = text(answer([link(1, "wren")], 1, root=root))
    assert told[0].startswith("run 1 of wren: the root itself; ") and told[1] == f"it began 11:55 with {words}"


def test_a_past_that_is_gone_and_a_lineage_that_was_cut_are_said():
    told = text(answer([link(1, "wren")], 1, whole=False, lineage={"cut": True}))
    assert "root at least $0.40 and 4,000 tokens in at least 4 runs" in told[0]
    assert told[1] == "what began it is no longer kept"


def test_of_very_many_wakes_a_few_are_drawn_and_the_rest_counted_but_never_the_run_itself():
    rows = [link(1, "wren"), *(link(number, f"agent-{number}", 1) for number in range(2, 300))]
    told = text(answer(rows, 299))
    assert len(told) == 3 + blame.MOST_OF_ONE + 2
    assert told[-2].startswith("├─ agent-299  run 299") and told[-2].endswith("◄")
    assert told[-1] == f"└─ … {298 - blame.MOST_OF_ONE - 1} more wakes"


def test_a_broad_and_deep_tree_stays_within_a_screen_or_two():
    rows, number = [link(1, "wren")], 1
    for parent in range(1, 41):
        for _ in range(10):
            number += 1
            rows.append(link(number, "moss", parent))
    told = text(answer(rows, 40))
    assert len(told) < blame.MOST_LINES + 10 * blame.MOST_OF_ONE
    assert sum(line.endswith("◄") for line in told) == 1


def test_a_very_long_chain_is_drawn_from_as_far_up_as_fits():
    rows = [link(number, "wren", number - 1 or None) for number in range(1, 101)]
    told = text(answer(rows, 100))
    assert told[2] == f"… {100 - blame.DEEPEST} wakes above" and told[-1].endswith("◄")
    assert len(told) == 3 + blame.DEEPEST


def test_a_terminal_of_ascii_gets_a_tree_that_it_knows(monkeypatch):
    monkeypatch.setattr(blame, "knows", lambda signs: False)
    told = text(answer([link(1, "wren"), link(2, "moss", 1)], 2))
    assert told[3].startswith("`- moss") and told[3].endswith("<--") and "".join(told).isascii()


def test_a_real_chain_is_blamed(office):
    first = office.begin("wren")
    message = NewItem(kind=Kind.message, agent="moss", sender="wren", body="look", ring=Ring.peer, by_run=first)
    peer = Wake(agent="moss", cause=Cause.peer, subject=Subject.inbox, requested_at=now(), sender="wren", by_run=first)
    with office.store() as store:
        item = store.record([message], now())[0].id
        store.decide([replace(peer, item=item, reason="blocker")], admit, now())
        (order,) = store.claim("here", now(), LEASE)
        ending = Ending(exit_code=0, result=Result(usage=Spend(usd=420_000, tokens=81_250)))
        store.finish([Finish(run=order.run.id, epoch=order.run.epoch, ending=ending)], settle, now())
    result = wakeful("blame", str(order.run.id))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].endswith("$0.42 and 81,250 tokens in 2 runs") and "operator asked for wren" in lines[1]
    assert lines[2].startswith("wren  run 1 (operator)  running") and lines[3].endswith("$0.42 and 81,250 tokens ◄")
    unknown = wakeful("blame", "99")
    assert (unknown.exit_code, "no run 99" in unknown.stderr) == (1, True)


def test_a_run_that_did_not_end_well_says_why():
    told = text(answer([link(1, "wren", outcome="failed", run_reason="exit code 3")], 1))
    assert told[-1] == "wren  run 1 (operator)  failed  $0.10 and 1,000 tokens: exit code 3 ◄"
