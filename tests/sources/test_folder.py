"""One look into an inbox folder: what counts as a file, what is shown of it, and what is never done with it."""

import os
import shutil
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.sources.pendings import bodies, look, names
from wakeful.sources import folder
from wakeful.sources.aside import Unreadable
from wakeful.sources.folder import SMALL, Look, was_unmounted

# ---- what counts


@pytest.mark.parametrize(
    "name",
    [
        *(".hidden", ".#lock", ".x.swp", "note.tmp", "note.TMP", "big.part", "a.partial", "a.crdownload", "x.swp"),
        *("note~", "#note#", "4913", "a.filepart", ".nfs0001"),
    ],
)
def test_names_that_are_used_while_a_file_is_written_are_ignored(inbox, name):
    inbox.put(name, "half")
    inbox.put("note", "whole")
    assert names(look(inbox.folder)) == ["note"]


@pytest.mark.parametrize("name", ["part", "tmp", "49131", "a.tmp.txt", "#note", "~note", "note.swf", "a.txt\n"])
def test_names_that_only_look_like_it_are_not(inbox, name):
    inbox.put(name, "whole")
    assert len(names(look(inbox.folder))) == 1


def test_subfolders_belong_to_the_agent(inbox):
    (inbox.folder / "done").mkdir()
    inbox.put("done/old", "words")
    inbox.put("new", "words")
    assert names(look(inbox.folder)) == ["new"]


def test_a_thing_is_its_name_and_its_words(inbox):
    inbox.put("a note.txt", "water the plants\n")
    (thing,) = look(inbox.folder).observed
    assert (thing.external_id, thing.subject, thing.body) == ("a note.txt", "a note.txt", "water the plants\n")
    assert thing.not_before is None


def test_pipes_sockets_and_devices_are_never_opened(inbox):
    os.mkfifo(inbox.folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(inbox.folder / "socket"))
        inbox.put("note", "words")
        assert names(look(inbox.folder)) == ["note"]
        # Whoever opened the pipe for reading would be seen by a writer.
        with pytest.raises(OSError):
            os.open(inbox.folder / "pipe", os.O_WRONLY | os.O_NONBLOCK)


def test_a_pipe_that_takes_the_place_of_a_file_does_not_hold_up_the_look(inbox, monkeypatch):
    inbox.put("note", "words")
    opened = os.open

    def swapped(path, *args, **named):
        if path == "note":
            (inbox.folder / "note").unlink()
            os.mkfifo(inbox.folder / "note")
        return opened(path, *args, **named)

    monkeypatch.setattr(os, "open", swapped)
    seen = look(inbox.folder)
    assert (seen.observed, list(seen.moving)) == ((), ["note"])


# ---- links


def test_a_link_is_shown_as_a_link_and_never_followed(inbox, tmp_path):
    (tmp_path / "secret").write_text("do not tell")
    (inbox.folder / "out").symlink_to(tmp_path / "secret")
    (inbox.folder / "inside").symlink_to("note")
    (inbox.folder / "nowhere").symlink_to("nothing")
    inbox.put("note", "words")
    shown = bodies(look(inbox.folder))
    assert {name: shown[name] for name in ("out", "inside", "nowhere")} == dict.fromkeys(
        ("out", "inside", "nowhere"), "[a link, which is not followed]"
    )
    assert shown["note"] == "words"


def test_a_link_that_takes_the_place_of_a_file_is_not_followed_either(inbox, tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("do not tell")
    inbox.put("note", "words")
    opened = os.open

    def swapped(path, *args, **named):
        if path == "note":
            (inbox.folder / "note").unlink()
            (inbox.folder / "note").symlink_to(tmp_path / "secret")
        return opened(path, *args, **named)

    monkeypatch.setattr(os, "open", swapped)
    assert bodies(look(inbox.folder)) == {"note": "[cannot be read: Too many levels of symbolic links]"}


def test_another_file_that_takes_the_place_of_one_is_not_shown_under_its_stamps(inbox, monkeypatch):
    inbox.put("note", "words")
    opened = os.open

    def swapped(path, *args, **named):
        if path == "note":
            inbox.put("note", "other")
        return opened(path, *args, **named)

    monkeypatch.setattr(os, "open", swapped)
    first = look(inbox.folder)
    assert (first.observed, list(first.moving)) == ((), ["note"])


def test_a_folder_that_is_a_link_is_an_outage_that_says_what_to_do(inbox, tmp_path):
    (tmp_path / "link").symlink_to(inbox.folder)
    with pytest.raises(Unreadable, match="a link, which is not followed; name the folder"):
        look(tmp_path / "link")


def test_links_above_the_folder_are_the_operators(inbox, tmp_path):
    (tmp_path / "above").symlink_to(tmp_path)
    inbox.put("note", "words")
    assert names(look(tmp_path / "above" / "inbox")) == ["note"]


# ---- what is shown of it


def test_a_large_file_is_cut_and_says_where_the_whole_is(inbox):
    inbox.put("big", "ä" * SMALL)
    (thing,) = look(inbox.folder).observed
    words, _, note = thing.body.partition("\n")
    assert words == "ä" * (SMALL // 2)
    assert note == f"[cut here: the whole of it, {2 * SMALL:,} bytes, is in {inbox.folder}/big]"


def test_a_character_is_not_cut_in_half(inbox):
    inbox.put("big", "x" + "ä" * SMALL)
    assert "\ufffd" not in look(inbox.folder).observed[0].body


def test_a_file_of_just_the_size_is_whole_and_known_by_its_content(inbox):
    inbox.put("edge", "x" * SMALL)
    (thing,) = look(inbox.folder).observed
    assert thing.body == "x" * SMALL
    assert ":-:" not in thing.fingerprint
    inbox.put("edge", "x" * (SMALL + 1))
    assert ":-:" in look(inbox.folder).observed[0].fingerprint


def test_a_huge_file_is_not_read(inbox):
    with (inbox.folder / "huge").open("wb") as file:
        file.truncate(1 << 40)
    (thing,) = look(inbox.folder).observed
    assert len(thing.body) < 2 * SMALL


def test_bytes_that_are_no_text_are_replaced_or_named(inbox):
    (inbox.folder / "latin").write_bytes(b"caf\xe9")
    (inbox.folder / "image").write_bytes(b"\x89PNG\0\0")
    shown = bodies(look(inbox.folder))
    assert shown["latin"] == "caf\ufffd"
    assert shown["image"] == f"[not shown: 6 bytes that are no text, in {inbox.folder}/image]"


def test_more_than_is_shown_at_once_is_named_only(inbox, monkeypatch):
    monkeypatch.setattr(folder, "MOST_SHOWN", 10)
    for name in "abc":
        inbox.put(name, "12345")
    seen = look(inbox.folder)
    shown = list(bodies(seen).values())
    assert shown.count("12345") == 2
    assert sum("too much waits in this folder" in body for body in shown) == 1
    assert look(inbox.folder, seen, later=10).observed == seen.observed


def test_what_is_known_already_counts_towards_what_is_shown_at_once(inbox, monkeypatch):
    monkeypatch.setattr(folder, "MOST_SHOWN", 10)
    inbox.put("a", "12345")
    inbox.put("b", "12345")
    seen = look(inbox.folder, later=1)
    inbox.put("c", "12345")
    # Which of them is met first is up to the folder.
    monkeypatch.setattr(os, "scandir", lambda listing, scandir=os.scandir: Sorted(scandir(listing)))
    assert "too much waits" in bodies(look(inbox.folder, seen, later=2))["c"]


class Sorted:
    """Entries in the order of their names; something may be done just before each is met."""

    def __init__(self, entries, before=lambda name: None):
        with entries:
            self.entries = sorted(entries, key=lambda entry: entry.name)
        self.before = before

    def __enter__(self):
        for entry in self.entries:
            self.before(entry.name)
            yield entry

    def __exit__(self, *_):
        return None


def test_a_file_that_vanishes_while_it_is_met_is_simply_not_there(inbox, monkeypatch):
    for name in "abc":
        inbox.put(name, "words")

    def vanish(name):
        if name == "b":
            inbox.take("b")

    monkeypatch.setattr(os, "scandir", lambda listing, scandir=os.scandir: Sorted(scandir(listing), vanish))
    assert names(look(inbox.folder)) == ["a", "c"]


def test_a_file_that_vanishes_before_it_is_opened_is_not_there_either(inbox, monkeypatch):
    for name in "abc":
        inbox.put(name, "words")
    opened = os.open

    def vanishing(path, *args, **named):
        if path == "b":
            inbox.take("b")
        return opened(path, *args, **named)

    monkeypatch.setattr(os, "open", vanishing)
    seen = look(inbox.folder)
    assert (names(seen), seen.moving) == (["a", "c"], {})


def test_names_are_kept_safe_and_apart(inbox):
    raw = os.fsencode(inbox.folder)
    for name in (b"\xff\xfe", b"\\xff\\xfe", b"two\nlines", b"two\\u000alines", "\u202egnp".encode(), b"\x1b[2J"):
        Path(os.fsdecode(raw + b"/" + name)).write_text("words")
    found = names(look(inbox.folder))
    assert sorted(found) == sorted(
        [r"\xff\xfe", r"\\xff\\xfe", r"two\u000alines", r"two\\u000alines", r"\u202egnp", r"\u001b[2J"]
    )
    for shown in found:
        assert shown.encode().decode().isprintable()


# ---- what cannot be read


@contextmanager
def without_rights():
    """Root may read everything: for a moment we are nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public():
    """A folder that anybody can reach; that of a test is its owner's alone."""
    place = Path(tempfile.mkdtemp(prefix="wakeful-test-"))
    place.chmod(0o755)
    yield place
    place.chmod(0o755)
    shutil.rmtree(place)


def test_one_file_that_cannot_be_read_is_a_thing_that_says_so(public):
    (public / "closed").write_text("words")
    (public / "closed").chmod(0)
    (public / "open").write_text("words")
    (public / "open").chmod(0o644)
    with without_rights():
        seen = look(public, later=60)
    assert bodies(seen) == {"closed": "[cannot be read: Permission denied]", "open": "words"}
    (public / "closed").chmod(0o644)
    with without_rights():
        again = look(public, seen, later=60)
    assert bodies(again)["closed"] == "words"
    assert again.observed[0].fingerprint != seen.observed[0].fingerprint


@pytest.mark.parametrize("mode", [0o000, 0o744])
def test_a_folder_that_cannot_be_read_is_unknown_and_not_empty(public, mode):
    (public / "note").write_text("words")
    public.chmod(mode)
    # Its owner, who is not root, has all rights in the second case but that to go in.
    public.chmod(mode & 0o677)
    with without_rights(), pytest.raises(Unreadable, match=f"{public}: Permission denied"):
        look(public)


def test_a_missing_folder_is_unknown(tmp_path):
    with pytest.raises(Unreadable, match=f"{tmp_path}/inbox: no such folder"):
        look(tmp_path / "inbox")


def test_a_file_in_the_place_of_the_folder_is_unknown(tmp_path):
    (tmp_path / "inbox").write_text("words")
    with pytest.raises(Unreadable, match="Not a directory"):
        look(tmp_path / "inbox")


def test_a_file_that_cannot_be_read_to_its_end_says_so(inbox, monkeypatch):
    inbox.put("note", "words")

    def broken(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", broken)
    assert bodies(look(inbox.folder)) == {"note": "[cannot be read: Input/output error]"}


def test_more_files_than_can_be_mirrored_are_an_outage(inbox, monkeypatch):
    monkeypatch.setattr(folder, "MOST_FILES", 3)
    for name in "abc":
        inbox.put(name, "words")
    assert len(names(look(inbox.folder))) == 3
    inbox.put("d", "words")
    with pytest.raises(Unreadable, match="more than 3 files"):
        look(inbox.folder)


def test_a_mount_that_is_gone_leaves_an_empty_folder_and_that_is_an_outage(inbox, monkeypatch):
    inbox.put("note", "words")
    before = look(inbox.folder)
    inbox.take("note")
    assert look(inbox.folder, before).observed == ()
    elsewhere = Look(observed=before.observed, kept=before.kept, device=before.device + 1)
    with pytest.raises(Unreadable, match="is it mounted"):
        look(inbox.folder, elsewhere)
    inbox.put("other", "words")
    assert names(look(inbox.folder, elsewhere)) == ["other"]
    assert not was_unmounted(Look(), 1)
