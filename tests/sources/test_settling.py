"""A file that somebody is writing is shown as it was before, or not yet."""

import asyncio
import os
import subprocess
import sys
import threading
import time

from tests.sources.pendings import bodies, look, names
from wakeful.sources import directory, settling
from wakeful.sources.folder import Listing, Look
from wakeful.testing.contracts.source_case import Reader, lived, until


def test_a_file_that_its_writer_keeps_others_from_opening_is_not_shown_yet(inbox, monkeypatch):
    inbox.put("note", "words")
    first = look(inbox.folder)
    opened = os.open

    def kept(path, *args, **named):
        if path == "note":
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return opened(path, *args, **named)

    with monkeypatch.context() as leased:
        leased.setattr(os, "open", kept)
        second = look(inbox.folder, first)
    assert (second.observed, list(second.moving)) == (first.observed, ["note"])


def test_a_file_that_is_open_for_writing_is_not_shown_yet(inbox):
    with (inbox.folder / "note").open("w") as file:
        file.write("half")
        file.flush()
        seen = look(inbox.folder, later=4)
        assert (names(seen), list(seen.moving)) == ([], ["note"])
        file.write(" and half")
    assert bodies(look(inbox.folder, seen)) == {"note": "half and half"}


def test_a_file_that_is_rewritten_is_shown_as_it_was_until_it_is_whole(inbox):
    inbox.put("note", "before")
    first = look(inbox.folder)
    with (inbox.folder / "note").open("w") as file:
        file.write("half")
        file.flush()
        second = look(inbox.folder, first)
        assert second.observed == first.observed
        assert list(second.moving) == ["note"]
    third = look(inbox.folder, second)
    assert (bodies(third), third.moving) == ({"note": "half"}, {})


def test_a_file_that_is_held_open_and_left_alone_is_shown_in_the_end(inbox):
    with (inbox.folder / "log").open("w") as file:
        file.write("words")
        file.flush()
        assert names(look(inbox.folder, later=4.5)) == []
        assert bodies(look(inbox.folder, later=5.5)) == {"log": "words"}


def test_the_question_whether_a_file_is_written_disturbs_nobody(inbox):
    """Whoever opens it just then waits a moment and gets it; and no signal ends us."""
    inbox.put("note", "words")
    done = threading.Event()

    def ask():
        while not done.is_set():
            file = os.open(inbox.folder / "note", os.O_RDONLY)
            settling.being_written(file)
            os.close(file)

    asking = threading.Thread(target=ask)
    asking.start()
    script = "import sys\nfor _ in range(3000): open(sys.argv[1], 'a').close()"
    subprocess.run([sys.executable, "-c", script, str(inbox.folder / "note")], check=True, timeout=60)
    done.set()
    asking.join()


def test_where_the_kernel_does_not_say_a_file_is_whole_that_was_left_alone(inbox, monkeypatch):
    monkeypatch.setattr(settling, "being_written", lambda file: None)
    inbox.put("note", "words")
    first = look(inbox.folder, later=0.5)
    assert (names(first), list(first.moving)) == ([], ["note"])
    assert bodies(look(inbox.folder, first, later=1.2)) == {"note": "words"}


def test_a_stamp_from_the_future_does_not_hide_a_file(inbox, monkeypatch):
    """The clock of another machine is ahead: then it counts for how long we saw the file unchanged."""
    monkeypatch.setattr(settling, "being_written", lambda file: None)
    inbox.put("note", "words")
    clock = time.time() - 3_600
    first = Listing(inbox.folder, Look(), now=clock, elapsed=10.0).do()
    second = Listing(inbox.folder, first, now=clock, elapsed=10.9).do()
    assert names(first) == names(second) == []
    assert bodies(Listing(inbox.folder, second, now=clock, elapsed=11.1).do()) == {"note": "words"}


def test_a_file_that_changes_while_it_is_read_is_not_shown_half(inbox, monkeypatch):
    inbox.put("note", "one")
    read = os.read

    def disturbed(file, most):
        content = read(file, most)
        if content:
            (inbox.folder / "note").write_text("others")
        return content

    monkeypatch.setattr(os, "read", disturbed)
    seen = look(inbox.folder, later=60)
    assert (seen.observed, list(seen.moving)) == ((), ["note"])


@lived
async def test_a_look_waits_for_what_is_being_written(inbox):
    source = inbox.source()
    file = (inbox.folder / "note").open("w")
    file.write("half")
    file.flush()
    waiting = asyncio.ensure_future(source.look())
    await asyncio.wait({waiting}, timeout=0.1)
    file.write(" and half")
    file.close()
    batch = await waiting
    assert [thing.body for thing in batch.observed] == ["half and half"]


@lived
async def test_a_look_waits_for_nobody_for_ever(inbox, monkeypatch):
    monkeypatch.setattr(directory, "PATIENCE", 0.1)
    with (inbox.folder / "note").open("w") as file:
        file.write("half")
        file.flush()
        assert (await inbox.source().look()).observed == ()


@lived
async def test_a_file_that_is_written_slowly_comes_by_itself_once_and_whole(inbox, monkeypatch):
    """Without a hint at its end: what moves is looked at again."""
    monkeypatch.setattr(directory, "SWEEP", 1e9)
    source = inbox.source()
    reader = Reader(source)
    await reader.next()
    file = (inbox.folder / "note").open("w")
    file.write("half")
    file.flush()
    following = asyncio.ensure_future(reader.next())
    inbox.hint()
    await until(lambda: bool(source._seen.moving))
    assert not following.done()
    file.write(" and half")
    file.close()
    assert [thing.body for thing in (await following).observed] == ["half and half"]
    await source.stop()
