"""The checker of the kills can see: each kind of damage, done by hand, draws its complaint."""

from datetime import timedelta

import apsw
import pytest

from soak.checker import Accepted, complaints
from soak.fleet import START, elapsed, fleet
from wakeful.core.admission import admit
from wakeful.core.items import Kind, NewItem, Origin, Ring
from wakeful.core.runs import Ending, Result
from wakeful.core.settlement import settle
from wakeful.core.standing import Spend
from wakeful.store.protocol import Finish
from wakeful.store.sqlite import open_sqlite

LATER = START + timedelta(hours=1)


@pytest.fixture
def kept(tmp_path):
    """A store that kept its word, and what it accepted."""
    database, accepted = tmp_path / "wakeful.db", Accepted()
    store = open_sqlite(database, durable=False)
    store.declare(fleet(), START)
    letter = NewItem(kind=Kind.message, agent="dove", sender="wren", origin=Origin.agent, ring=Ring.peer, dedupe="k1")
    task = NewItem(kind=Kind.task, agent="sage", subject="count", dedupe="k2")
    for item, answer in zip((letter, task), store.record([letter, task], START), strict=True):
        accepted.add(f"record {item.dedupe} {answer.id}")
    for decision in store.decide(store.due(LATER).wakes, admit, LATER):
        accepted.add(f"decide {decision.wake} {decision.verdict.kind} {decision.run or '-'}")
    orders = store.claim("soak", LATER, timedelta(seconds=15))
    assert {order.run.subject for order in orders} == {"beat", "inbox", "task"}
    usage = Result(outcome="done", usage=Spend(usd=7, tokens=9))
    for order in orders[:-1]:
        run, epoch = order.run.id, order.run.epoch
        accepted.add(f"claim {run} {epoch}")
        ending = Ending(exit_code=0, elapsed=elapsed(run), result=usage)
        (outcome,) = store.finish([Finish(run=run, epoch=epoch, ending=ending)], settle, LATER)
        accepted.add(f"finish {run} {epoch} {outcome}")
        for part in order.tasks:
            accepted.add(f"task {run} {part.id} {outcome}")
    store.close()
    return database, accepted


def test_a_store_that_kept_its_word_draws_no_complaint(kept):
    database, accepted = kept
    assert accepted.finishes and accepted.tasks and accepted.decisions
    assert complaints(database, accepted) == []


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("DELETE FROM item WHERE dedupe = 'k1'", "k1 was accepted as item 1, and is not there"),
        ("UPDATE item SET id = 77 WHERE dedupe = 'k1'", "k1 was accepted as item 1, and is 77"),
        ("DELETE FROM event WHERE id = (SELECT max(id) FROM event WHERE kind = 'ended')", "is told to have"),
        ("DELETE FROM event WHERE id = (SELECT max(id) FROM event WHERE kind = 'started')", "is told to have"),
        ("DELETE FROM event WHERE id = (SELECT max(id) FROM event WHERE kind = 'decided')", "was accepted 1 times"),
        ("DELETE FROM event WHERE kind = 'task_ended'", "and is told 0 times"),
        (
            "INSERT INTO event (kind, at, agent, wake, run, fields) "
            "SELECT kind, at, agent, wake, run, fields FROM event WHERE kind = 'ended' LIMIT 1",
            "is told to have",
        ),
        ("UPDATE run SET outcome = 'failed' WHERE state = 'ended'", "was accepted as done in epoch"),
        ("UPDATE run SET epoch = epoch + 1", "was claimed in epoch"),
        ("UPDATE attempt SET outcome = 'failed' WHERE outcome IS NOT NULL", "was accepted as done, and is failed"),
        ("UPDATE total SET usd = usd + 1 WHERE scope = 'fleet'", "total ('fleet', '2026-01-01', 'usd') is"),
        ("UPDATE total SET ms = ms + 1 WHERE scope = 'agent:moss'", "total ('agent:moss', '2026-01-01', 'ms') is"),
        ("DELETE FROM total WHERE scope = 'pair:dove|wren'", "total ('pair:dove|wren', '2026-01-01', 'wakes') is 0"),
        ("DELETE FROM wake WHERE id = 1", "wake 1 was decided, and is not there"),
        ("UPDATE item SET agent = 'nobody' WHERE dedupe = 'k1'", "foreign_key_check"),
        (
            "DROP INDEX item_dedupe; UPDATE item SET dedupe = 'k1'",
            "k1 is there 2 times",
        ),
        (
            "DROP INDEX run_open; UPDATE run SET state = 'running', outcome = NULL, ended_at = NULL, agent = 'moss'",
            "moss has",
        ),
        (
            "UPDATE item SET held_by = (SELECT min(id) FROM run), closed_at = NULL, state = 'open' WHERE id = 1",
            "is held",
        ),
    ],
)
def test_each_damage_draws_its_complaint(kept, damage, complaint):
    database, accepted = kept
    connection = apsw.Connection(str(database))
    connection.execute(damage)
    connection.close()
    found = complaints(database, accepted)
    assert any(complaint in line for line in found), found


def test_a_page_overwritten_on_disk_draws_its_complaint(kept):
    database, accepted = kept
    connection = apsw.Connection(str(database))
    connection.pragma("journal_mode", "delete")
    (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'wake_of_agent'").fetchone()
    size = connection.pragma("page_size")
    connection.close()
    with database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\x0a\x00\x00\x00\x00" + size.to_bytes(2, "big") + b"\x00")
    assert any("integrity_check" in line for line in complaints(database, accepted))


def test_a_run_that_was_finished_twice_or_a_key_with_two_items_draws_its_complaint():
    accepted = Accepted()
    for line in ("finish 1 1 done", "finish 1 1 done", "record k 1", "record k 1", "record k 2"):
        accepted.add(line)
    assert accepted.twice == ["accepted before: finish 1 1 done", "k was accepted as item 1 and as item 2"]


def test_a_store_that_is_gone_draws_its_complaint(tmp_path):
    accepted = Accepted()
    assert complaints(tmp_path / "none.db", accepted) == []
    accepted.add("record k 1")
    assert complaints(tmp_path / "none.db", accepted)
