"""Sources and a real store together: what is pending rings once for each generation, and nothing else rings."""

import asyncio
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.sources.pendings import Files, Printed
from tests.store.blank import open_blank
from wakeful.core.items import State
from wakeful.core.ledger import Edges
from wakeful.core.wakes import Cause
from wakeful.sources import directory
from wakeful.testing.contracts.store_case import MINUTE, NOW, SECOND, StoreCase

# Long after the last of a thousand looks: no timer runs in between.
NEVER = timedelta(days=300)


class Desk(StoreCase):
    """A store, and an agent whose runs are shown what its source has."""

    def make_store(self, tmp_path, probe=None):
        return open_blank(tmp_path / "wakeful.db", probe)

    @pytest.fixture(autouse=True)
    def _lives(self, tmp_path: Path, _opened):
        self.place = self.make_place(tmp_path)
        self.now = NOW
        self.runner = asyncio.Runner()
        self.source = self.place.source()
        self.declare("moss", grace=NEVER)
        yield
        self.runner.run(self.source.stop())
        self.runner.close()

    def make_place(self, tmp_path):
        raise NotImplementedError

    def look(self) -> Edges:
        """A look, and what the store makes of it, a second later."""
        self.now += SECOND
        batch = self.runner.run(self.source.look())
        found = self.store.observe(batch.source, batch.agent, batch.observed, self.now)
        self.runner.run(self.source.acknowledge(batch))
        return found

    def restart(self) -> None:
        """Of the engine: a store that is opened again and a source that knows nothing."""
        self.runner.run(self.source.stop())
        self.reopen()
        self.source = self.place.source()

    def work_off(self, *, editing=None) -> list[str]:
        """What a run was shown that began now, if any did; `editing` is what the agent does meanwhile."""
        orders = self.serve(self.now)
        for order in orders:
            if editing is not None:
                editing()
            # As an engine does: once more before its end is settled.
            self.look()
            self.end(order, now=self.now)
        return [item.external_id for order in orders for item in order.items]

    def rung(self) -> int:
        """How many wakes were asked for."""
        return sum(row.wake.cause is Cause.news for row in self.store.wakes(limit=10_000))


class TestFiles(Desk):
    def make_place(self, tmp_path):
        return Files(tmp_path / "inbox")

    def test_a_stale_file_a_thousand_looks_and_five_restarts_are_one_wake(self):
        self.place.put("comms-test", "COMMS TEST (ignore)")
        shown = []
        for number in range(1, 1_001):
            self.look()
            shown += self.work_off()
            if number % 200 == 0:
                self.restart()
        assert shown == ["comms-test"]
        assert self.rung() == 1
        assert len(self.store.runs()) == 1

    def test_a_rewrite_in_the_same_second_at_the_same_size_is_exactly_one_more(self):
        place = self.place.folder / "note"
        stamp = (1_700_000_000, 1_700_000_000)
        place.write_text("one")
        os.utime(place, stamp)
        self.look()
        assert self.work_off() == ["note"]
        place.write_text("two")
        os.utime(place, stamp)
        for _ in range(20):
            self.look()
            self.work_off()
        self.restart()
        self.look()
        self.work_off()
        assert self.rung() == 2

    def test_new_work_beside_a_stale_file_still_rings(self):
        self.place.put("stale", "words")
        self.look()
        self.work_off()
        self.place.put("new", "words")
        self.look()
        assert self.work_off() == ["new"]

    def test_a_drained_folder_leaves_nothing_open(self):
        for name in "abc":
            self.place.put(name, "words")
        self.look()
        self.work_off()
        for name in "abc":
            self.place.take(name)
        assert self.look() == Edges(gone=("a", "b", "c"))
        assert {item.state for item in self.store.items(agent="moss")} == {State.closed}
        assert self.work_off() == []

    def test_a_folder_that_disappears_and_returns_rings_nobody(self):
        self.place.put("note", "words")
        self.look()
        self.work_off()
        self.place.fail()
        for _ in range(3):
            assert self.look() == Edges(same=("note",))
            assert self.work_off() == []
        self.restart()
        assert self.look() == Edges(same=("note",))
        self.place.mend()
        assert self.look() == Edges(same=("note",))
        assert self.work_off() == []
        assert self.rung() == 1

    def test_an_agent_that_edits_its_own_file_does_not_ring_itself(self):
        self.place.put("note", "to do")
        self.look()

        def tick_off():
            (self.place.folder / "note").write_text("done")

        assert self.work_off(editing=tick_off) == ["note"]
        for _ in range(50):
            self.look()
            assert self.work_off() == []
        assert self.rung() == 1

    def test_a_file_that_an_agent_puts_away_is_gone_and_the_folder_for_it_is_its_own(self):
        self.place.put("note", "to do")
        self.look()

        def put_away():
            (self.place.folder / "done").mkdir()
            (self.place.folder / "note").rename(self.place.folder / "done" / "note")

        self.work_off(editing=put_away)
        self.look()
        assert self.work_off() == []
        assert self.rung() == 1

    def test_a_half_written_file_is_one_wake_when_it_is_whole(self, monkeypatch):
        monkeypatch.setattr(directory, "PATIENCE", 0.1)
        with (self.place.folder / "note").open("w") as file:
            file.write("half")
            file.flush()
            self.look()
            assert self.work_off() == []
            file.write(" and half")
        self.look()
        assert self.work_off() == ["note"]
        assert self.store.items(agent="moss")[0].body == "half and half"
        assert self.rung() == 1

    def test_names_of_any_kind_come_back_from_the_store_as_one_line(self):
        for name in (b"two\nlines", b"\xff\xfe", "\u202egnp".encode(), b"a:b\\n"):
            Path(os.fsdecode(os.fsencode(self.place.folder) + b"/" + name)).write_text(
                "words\0" if name == b"\xff\xfe" else "words"
            )
        assert len(self.look().new) == 4
        self.restart()
        assert len(self.look().same) == 4


class TestLists(Desk):
    def make_place(self, tmp_path):
        return Printed(tmp_path)

    def list_task(self, id, status="assigned", **more):
        self.place.entries[id] = {"task_id": id, "title": id, "status": status, **more}
        self.place.changed()

    def test_a_stale_task_many_looks_and_five_restarts_are_one_wake(self):
        self.list_task("t1")
        shown = []
        for number in range(1, 101):
            self.look()
            shown += self.work_off()
            if number % 20 == 0:
                self.restart()
        assert (shown, self.rung()) == (["t1"], 1)

    def test_a_dependency_that_clears_is_one_wake_although_nothing_in_the_task_has_changed(self):
        self.list_task("t1", depends_on=["t0"])
        self.list_task("t0", status="in_progress")
        before = dict(self.place.entries["t1"])
        for _ in range(5):
            self.look()
            assert self.work_off() == []
        self.list_task("t0", status="verified")
        assert self.place.entries["t1"] == before
        shown = []
        for _ in range(5):
            self.look()
            shown += self.work_off()
        assert (shown, self.rung()) == (["t1"], 1)

    def test_one_that_the_list_itself_unblocks_is_one_wake(self):
        self.list_task("t1", blocked=True)
        self.look()
        assert self.work_off() == []
        self.list_task("t1", blocked=False)
        self.look()
        assert self.work_off() == ["t1"]
        self.list_task("t1")
        self.look()
        assert self.work_off() == []

    def test_a_list_that_is_away_and_comes_back_rings_nobody(self):
        self.list_task("t1")
        self.list_task("t2")
        self.look()
        self.work_off()
        self.place.fail()
        for _ in range(3):
            self.look()
            assert self.work_off() == []
        self.place.mend()
        self.look()
        assert self.work_off() == []
        assert len(self.store.runs()) == 1

    def test_a_task_that_the_agent_accepts_in_its_run_does_not_ring_again(self):
        self.list_task("t1")
        self.look()
        self.work_off(editing=lambda: self.list_task("t1", status="accepted"))
        for _ in range(5):
            self.look()
            assert self.work_off() == []

    def test_a_task_for_later_rings_at_its_time_and_one_that_is_brought_forward_at_that(self):
        later = (NOW + 600 * MINUTE).isoformat()
        self.list_task("t1", fingerprint="1", not_before=later)
        self.look()
        assert self.work_off() == []
        self.list_task("t1", fingerprint="1")
        self.look()
        assert self.work_off() == ["t1"]


class TestBoth(Desk):
    def make_place(self, tmp_path):
        (tmp_path / "program").mkdir()
        self.listed = Printed(tmp_path / "program")
        return Files(tmp_path / "inbox")

    def test_two_sources_of_one_agent_leave_each_others_things_alone(self):
        self.place.put("same", "words")
        self.listed.put("same", "words")
        assert self.look() == Edges(new=("same",))
        batch = self.runner.run(self.listed.source().look())
        assert self.store.observe(batch.source, batch.agent, batch.observed, self.now) == Edges(new=("same",))
        self.place.take("same")
        assert self.look() == Edges(gone=("same",))
        states = {item.source: item.state for item in self.store.items(agent="moss")}
        assert states == {"inbox": State.closed, "snapshot+exec:pending": State.open}

    def test_a_batch_that_is_older_than_what_was_observed_would_undo_it(self):
        """Why batches are numbered: the engine leaves such a one out."""
        self.place.put("note", "one")
        old = self.runner.run(self.source.look())
        self.place.put("note", "two")
        new = self.runner.run(self.source.look())
        assert old.taken < new.taken
        assert replace(old, taken=new.taken) != new
