"""The fingerprints of files: whatever changed has another one, and what did not change is not read again."""

import os
import time

from tests.sources.pendings import bodies, look
from wakeful.sources import folder


def test_a_rewrite_in_the_same_second_at_the_same_size_is_another_file(inbox):
    place = inbox.folder / "note"
    stamp = (1_700_000_000, 1_700_000_000)
    place.write_text("one")
    os.utime(place, stamp)
    first = look(inbox.folder)
    place.write_text("two")
    os.utime(place, stamp)
    second = look(inbox.folder, first)
    assert second.observed[0].body == "two"
    assert first.observed[0].fingerprint != second.observed[0].fingerprint


def test_a_rewrite_that_bears_the_very_same_stamps_is_seen_by_its_content(inbox, monkeypatch):
    """As on a file system whose stamps are coarse: nothing but the content differs."""
    clock = time.time()
    monkeypatch.setattr(folder, "stamps_of", lambda about: folder.Stamps(1, int(clock * 1e9), about.st_ino, 3))
    place = inbox.folder / "note"
    place.write_text("one")
    first = look(inbox.folder)
    place.write_text("two")
    second = look(inbox.folder, first)
    assert bodies(second) == {"note": "two"}
    assert first.observed[0].fingerprint != second.observed[0].fingerprint


def test_a_file_with_an_old_stamp_that_takes_anothers_place_is_seen(inbox):
    """As rsync -t, cp -p and a restore do."""
    inbox.put("note", "one")
    about = (inbox.folder / "note").stat()
    first = look(inbox.folder)
    inbox.put("note", "two")
    os.utime(inbox.folder / "note", ns=(about.st_atime_ns, about.st_mtime_ns))
    second = look(inbox.folder, first)
    assert first.observed[0].fingerprint != second.observed[0].fingerprint


def test_what_has_not_changed_is_not_read_again(inbox, monkeypatch):
    for name in "abc":
        inbox.put(name, "words")
    first = look(inbox.folder, later=1)
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *args, **named: opened.append(path) or real(path, *args, **named))
    second = look(inbox.folder, first, later=2)
    assert second.observed is first.observed
    assert opened == [inbox.folder]
    inbox.put("b", "other")
    assert bodies(look(inbox.folder, second, later=3))["b"] == "other"
    assert opened[1:] == [inbox.folder, "b"]


def test_what_was_read_just_after_its_change_is_read_once_more(inbox, monkeypatch):
    inbox.put("a", "words")
    first = look(inbox.folder)
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *args, **named: opened.append(path) or real(path, *args, **named))
    second = look(inbox.folder, first, later=1)
    third = look(inbox.folder, second, later=2)
    assert opened == [inbox.folder, "a", inbox.folder]
    assert first.observed == second.observed == third.observed


def test_fingerprints_are_those_of_the_ledger(inbox):
    inbox.put("note", "words")
    about = (inbox.folder / "note").stat()
    (thing,) = look(inbox.folder).observed
    assert thing.fingerprint.startswith(f"{about.st_mtime_ns}:{about.st_ctime_ns}:{about.st_ino}:5:")
    assert thing.fingerprint.endswith(":note")
