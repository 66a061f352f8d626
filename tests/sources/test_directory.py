"""An inbox as a source: hints, sweeps, folders that come and go, and one that hangs."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

from wakeful.engine.watching import Watch
from wakeful.sources import directory, folder, mirror
from wakeful.sources.directory import Directory
from wakeful.testing.contracts.source_case import Reader, Told, ids, lived, looked, until
from wakeful.testing.loop import live


@lived
async def test_the_kernel_tells_of_a_file_at_once(inbox, monkeypatch):
    monkeypatch.setattr(directory, "SWEEP", 1e9)
    watch = Watch()
    await watch.start()
    source = Directory("moss", inbox.folder, watch)
    reader = Reader(source)
    await reader.next()
    inbox.put("note", "words")
    assert ids(await reader.next()) == ["note"]
    (inbox.folder / "note").write_text("other words")
    assert [thing.body for thing in (await reader.next()).observed] == ["other words"]
    inbox.take("note")
    assert ids(await reader.next()) == []
    await source.stop()
    await watch.stop()


@lived
async def test_the_kernel_tells_when_a_folder_goes_comes_back_and_is_made_anew(inbox, monkeypatch):
    monkeypatch.setattr(directory, "SWEEP", 1e9)
    monkeypatch.setattr(directory, "TROUBLE", 1e9)
    watch = Watch()
    await watch.start()
    inbox.put("note", "words")
    source = Directory("moss", inbox.folder, watch)
    reader = Reader(source)
    first = await reader.next()
    inbox.fail()
    assert (await reader.next()).outage
    inbox.mend()
    assert await reader.next() == first
    inbox.put("other", "words")
    assert ids(await reader.next()) == ["note", "other"]
    inbox.fail()
    assert (await reader.next()).outage
    inbox.folder.mkdir()
    assert ids(await reader.until(lambda batch: not batch.outage)) == []
    inbox.put("third", "words")
    assert ids(await reader.until(lambda batch: bool(batch.observed))) == ["third"]
    await source.stop()
    await watch.stop()


@lived
async def test_a_folder_that_comes_into_being_with_all_above_it_is_heard(tmp_path, monkeypatch):
    monkeypatch.setattr(directory, "TROUBLE", 1e9)
    heard: list[Path] = []

    class Noted(Watch):
        def folders(self, folders, told):
            heard[:] = folders
            super().folders(folders, told)

    watch = Noted()
    await watch.start()
    place = tmp_path / "agents" / "moss" / "inbox"
    source = Directory("moss", place, watch)
    reader = Reader(source)
    assert (await reader.next()).why == f"{place}: no such folder"
    following = asyncio.ensure_future(reader.until(lambda batch: bool(batch.observed)))
    place.parent.parent.mkdir()
    await until(lambda: tmp_path / "agents" in heard)
    place.parent.mkdir()
    place.mkdir()
    (place / "note").write_text("words")
    assert ids(await following) == ["note"]
    await source.stop()
    await watch.stop()


@lived
async def test_without_any_hints_it_looks_by_itself(inbox, monkeypatch):
    monkeypatch.setattr(directory, "UNHEARD", 0.02)
    deaf = Told()
    deaf.hears = False
    source = Directory("moss", inbox.folder, deaf)
    reader = Reader(source)
    await reader.next()
    inbox.put("note", "words")
    assert ids(await reader.next()) == ["note"]
    await source.stop()


@lived
async def test_a_hint_that_got_lost_is_made_up_for_by_the_sweep(inbox, monkeypatch):
    monkeypatch.setattr(directory, "SWEEP", 0.02)
    source = inbox.source()
    reader = Reader(source)
    await reader.next()
    inbox.put("note", "words")
    assert ids(await reader.next()) == ["note"]
    await source.stop()


@lived
async def test_while_it_cannot_be_read_it_is_looked_at_more_often(inbox, monkeypatch):
    monkeypatch.setattr(directory, "TROUBLE", 0.02)
    inbox.fail()
    source = inbox.source()
    reader = Reader(source)
    assert (await reader.next()).outage
    inbox.mend()
    assert ids(await reader.next()) == []
    await source.stop()


@lived
async def test_a_missing_folder_is_watched_from_above_and_a_stopped_one_not_at_all(inbox, tmp_path):
    source = inbox.source()
    await source.look()
    assert list(inbox.told.watched.values()) == [(inbox.folder,)]
    inbox.fail()
    await source.look()
    assert list(inbox.told.watched.values()) == [(inbox.folder, tmp_path)]
    inbox.mend()
    await source.look()
    assert list(inbox.told.watched.values()) == [(inbox.folder,)]
    await source.stop()
    assert inbox.told.watched == {}
    await source.look()
    assert inbox.told.watched == {}


@lived
async def test_a_link_in_the_place_of_the_folder_is_watched_from_above_too(inbox, tmp_path):
    """That it is replaced is not heard where it leads to."""
    inbox.fail()
    inbox.folder.symlink_to(tmp_path / "away")
    await inbox.source().look()
    assert list(inbox.told.watched.values()) == [(inbox.folder, tmp_path)]


@lived
async def test_a_change_between_the_look_and_the_watch_is_not_lost(inbox, tmp_path):
    """The folder comes just as we begin to watch what is above it."""
    inbox.put("note", "words")
    inbox.fail()

    class Eager(Told):
        def folders(self, folders, told):
            super().folders(folders, told)
            if tmp_path in folders and not inbox.folder.exists():
                inbox.mend()

    source = Directory("moss", inbox.folder, Eager())
    assert ids(await source.look()) == ["note"]


def test_it_works_where_time_is_virtual(inbox):
    """As engines are tested: nothing waits, and what would be done in a thread is done at once."""

    async def scenario():
        source = inbox.source()
        reader = Reader(source)
        assert ids(await reader.next()) == []
        following = asyncio.ensure_future(reader.next())
        inbox.put("note", "words")
        inbox.hint()
        assert ids(await following) == ["note"]
        await source.stop()

    live(scenario)


# ---- size, and hanging


@lived
async def test_the_loop_goes_on_while_a_folder_is_looked_at(inbox, monkeypatch):
    for number in range(100):
        inbox.put(f"note {number}", "words")
    turn = threading.Event()

    def waits_for_the_loop(file, rest):
        assert turn.wait(30)
        turn.clear()
        return True

    monkeypatch.setattr(folder, "is_whole", waits_for_the_loop)
    waiting = asyncio.ensure_future(inbox.source().look())
    turns = 0
    while not waiting.done():
        turns += 1
        turn.set()
        await asyncio.wait({waiting}, timeout=0)
    assert len(ids(await waiting)) == 100
    assert turns >= 100


@lived
async def test_a_folder_that_hangs_is_an_outage_and_no_second_thread_waits_for_it(inbox, monkeypatch):
    monkeypatch.setattr(directory, "HANGING", 0.05)
    monkeypatch.setattr("wakeful.sources.aside.GOING", 0.05)
    comes_back = threading.Event()
    begun = []
    scandir = os.scandir

    def hangs(listing):
        begun.append(listing)
        assert comes_back.wait(30)
        return scandir(listing)

    monkeypatch.setattr(os, "scandir", hangs)
    inbox.put("note", "words")
    source = inbox.source()
    threads = threading.active_count()
    assert (await source.look()).why == f"{inbox.folder}: does not answer"
    assert (await source.look()).why == "an earlier look has not come back yet"
    assert len(begun) == 1
    # To watch it would hang as well, and everybody with it.
    assert inbox.told.watched == {}
    comes_back.set()
    await until(lambda: threading.active_count() == threads)
    assert ids(await source.look()) == ["note"]


@lived
async def test_a_look_that_hangs_half_way_is_an_outage_too(inbox, monkeypatch):
    monkeypatch.setattr(directory, "HANGING", 0.05)
    monkeypatch.setattr("wakeful.sources.aside.GOING", 0.05)
    comes_back = threading.Event()
    met: list[int] = []

    def hangs(file, rest):
        met.append(file)
        return len(met) < 3 or comes_back.wait(30)

    monkeypatch.setattr(folder, "is_whole", hangs)
    for name in "abcd":
        inbox.put(name, "words")
    assert (await inbox.source().look()).why == f"{inbox.folder}: does not answer"
    comes_back.set()


def test_a_look_that_hangs_does_not_hold_up_the_end_of_the_process():
    script = """
import asyncio, threading
from wakeful.sources import aside
aside.GOING = 0.01
class Hangs:
    def do(self): threading.Event().wait()
    def abort(self): pass
async def main():
    work = asyncio.ensure_future(aside.Aside().do(Hangs()))
    await asyncio.wait({work}, timeout=0.01)
    work.cancel()
    await asyncio.wait({work})
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


@lived
async def test_a_long_look_that_goes_on_is_waited_for(inbox, monkeypatch):
    monkeypatch.setattr(directory, "HANGING", 0.2)
    for number in range(6):
        inbox.put(str(number), "words")
    wait = threading.Event()
    monkeypatch.setattr(folder, "is_whole", lambda file, rest: not wait.wait(0.1))
    assert len(ids(await inbox.source().look())) == 6


class Held:
    """A look that is held up at its first file."""

    def __init__(self, monkeypatch):
        self.met, self.go_on = threading.Event(), threading.Event()
        monkeypatch.setattr(folder, "is_whole", self._whole)

    def _whole(self, file, rest):
        self.met.set()
        return self.go_on.wait(30)

    async def stopped(self, source):
        """Stopped in the midst of it."""
        await asyncio.get_running_loop().run_in_executor(None, self.met.wait)
        stopping = asyncio.ensure_future(source.stop())
        await asyncio.wait({stopping}, timeout=0)
        self.go_on.set()
        await stopping


@lived
async def test_what_was_acknowledged_is_told_again_once_a_minute(inbox, monkeypatch):
    monkeypatch.setattr(directory, "SWEEP", 0.01)
    inbox.put("note", "words")
    source = inbox.source()
    reader = Reader(source)
    first = await reader.next()
    following = asyncio.ensure_future(reader.next())
    await looked(inbox, source)
    assert not following.done()
    monkeypatch.setattr(mirror, "AGAIN", 0.05)
    again = await following
    assert again == first and again.taken > first.taken
    inbox.fail()
    outage = await reader.until(lambda batch: batch.outage)
    assert await reader.next() == outage
    await source.stop()


@lived
async def test_a_look_that_is_broken_off_says_so(inbox, monkeypatch):
    inbox.put("a", "words")
    inbox.put("b", "words")
    held, source = Held(monkeypatch), inbox.source()
    waiting = asyncio.ensure_future(source.look())
    await held.stopped(source)
    assert (await waiting).why == f"{inbox.folder}: the look was broken off"


@lived
async def test_a_stop_in_the_midst_of_a_look_is_the_last_that_is_heard(inbox, monkeypatch):
    inbox.put("a", "words")
    inbox.put("b", "words")
    held, source = Held(monkeypatch), inbox.source()
    waiting = asyncio.ensure_future(anext(source.batches(), None))
    await held.stopped(source)
    assert await waiting is None
