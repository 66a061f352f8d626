"""The drop folder on a real disk: what is taken, what waits, and what is refused without being opened."""

import json
import os
import socket
import stat
import threading

import pytest

from wakeful.sources import drop as drops
from wakeful.sources.drop import Drop, drop_in

TASK = {"title": "sweep", "agent": "wren"}


@pytest.fixture
def drop(tmp_path):
    drop = drop_in(tmp_path)
    drop.make()
    return drop


def put(drop, name, content=TASK):
    (drop.path / name).write_text(content if isinstance(content, str) else json.dumps(content))


def taken(haul):
    return [(file.name, list(file.tasks), file.why) for file in haul.files]


def refused(drop):
    return sorted(os.listdir(drop.path / "refused"))


def test_the_folders_are_made_for_nobody_but_the_operator(drop):
    for folder in (drop.path, drop.path / "refused", drop.path / ".taken"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_file_is_ours_once_it_was_taken_and_is_given_again_until_it_is_removed(drop):
    put(drop, "a.json")
    haul = drop.take(0)
    assert taken(haul) == [("a.json", [TASK], "")]
    assert not (drop.path / "a.json").exists()
    again = Drop(drop.path).take(0)
    assert again.files == haul.files
    assert again.more
    drop.remove(haul.files)
    assert drop.take(0).files == ()
    assert os.listdir(drop.path / ".taken") == []


def test_another_file_of_the_same_name_is_another(drop):
    ids = set()
    for _ in range(3):
        put(drop, "a.json")
        (file,) = drop.take(0).files
        ids.add(file.id)
        drop.remove([file])
    assert len(ids) == 3


def test_what_was_moved_aside_is_on_the_disk_before_it_is_told(drop, monkeypatch):
    synced = []
    monkeypatch.setattr(drops, "_sync", lambda folder: synced.append(folder.name))
    put(drop, "a.json")
    (file,) = drop.take(0).files
    assert synced == [file.id.partition("/")[0], ".taken", "drop"]


def test_a_file_that_does_not_parse_waits_for_two_seconds_without_a_change(drop):
    put(drop, "a.json", '{"title": "swe')
    assert (drop.take(10).files, drop.take(11.9).unsettled) == ((), True)
    put(drop, "a.json", '{"title": "sweep", "agen')
    assert drop.take(12).files == ()
    assert drop.take(13.9).files == ()
    (file,) = drop.take(14).files
    assert file.why.startswith("not JSON: ")
    drop.refuse(file, file.why)
    assert not drop.take(15).unsettled


def test_a_file_that_becomes_whole_is_taken_at_once(drop):
    put(drop, "a.json", "[")
    assert drop.take(0).unsettled
    put(drop, "a.json", [TASK, TASK])
    assert taken(drop.take(0.1)) == [("a.json", [TASK, TASK], "")]


def around_the_move(monkeypatch, before=lambda path: None, after=lambda path: None):
    rename = os.rename

    def move(source, target):
        before(source)
        rename(source, target)
        after(target)

    monkeypatch.setattr(os, "rename", move)


def replaced(content):
    """By somebody who writes another file and moves it over the one that is there."""

    def change(path):
        new = path.parent / ".new"
        new.write_text(content)
        os.replace(new, path)

    return change


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("how", [replaced, lambda content: lambda path: path.write_text(content)])
def test_what_is_told_of_a_file_that_is_changed_around_its_move_is_what_was_moved(drop, monkeypatch, moment, how):
    put(drop, "a.json", {"title": "one"})
    around_the_move(monkeypatch, **{moment: how(json.dumps({"title": "two"}))})
    (file,) = drop.take(0).files
    assert list(file.tasks) == [{"title": "two"}]
    drop.remove([file])
    assert (os.listdir(drop.path / ".taken"), refused(drop)) == ([], [])


def test_a_file_that_is_half_written_when_it_was_moved_waits_as_any_other(drop, monkeypatch):
    put(drop, "a.json")
    around_the_move(monkeypatch, before=lambda path: path.write_text("["))
    haul = drop.take(0)
    assert (haul.files, haul.unsettled) == ((), True)
    monkeypatch.undo()
    put(drop, "b.json")
    (file,) = drop.take(1.9).files
    assert file.name == "b.json"
    drop.remove([file])
    ((half,),) = [list(folder.iterdir()) for folder in (drop.path / ".taken").iterdir()]
    half.write_text(json.dumps(TASK))
    assert taken(drop.take(2)) == [("a.json", [TASK], "")]
    half.write_text("[")
    assert drop.take(3).files == ()
    assert [file.why.partition(":")[0] for file in drop.take(5).files] == ["not JSON"]


def test_a_file_that_is_written_to_after_it_was_read_is_not_removed(drop):
    put(drop, "a.json")
    put(drop, "b.json")
    files = drop.take(0).files
    (drop.path / ".taken" / files[0].id).write_text(json.dumps([TASK, {"title": "mop"}]))
    ((file, why),) = drop.remove(files)
    assert (file.name, why) == ("a.json", drops.CHANGED)
    assert json.loads((drop.path / "refused" / "a.json").read_text())[1] == {"title": "mop"}
    assert (drop.path / "refused" / "a.json.why.txt").read_text() == f"{why}\n"
    assert os.listdir(drop.path / ".taken") == []


def forbidden(monkeypatch, name, call, forbid=lambda path: True):
    """As a file that belongs to somebody else, or a disk that is full, would have it."""
    real = getattr(os, call)

    def refuse(path, *arguments, **options):
        if os.path.basename(path) == name and forbid(path):
            raise PermissionError(1, "Operation not permitted", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, call, refuse)


def test_a_file_that_cannot_be_moved_is_told_of_and_tried_again_and_the_others_go_on(drop, monkeypatch):
    for name in ("a.json", "b.json"):
        put(drop, name)
    forbidden(monkeypatch, "a.json", "rename")
    haul = drop.take(0)
    assert [file.name for file in haul.files] == ["b.json"]
    assert haul.stuck == (("a.json", "it cannot be moved: operation not permitted"),)
    assert not haul.more
    drop.remove(haul.files)
    assert os.listdir(drop.path / ".taken") == []
    monkeypatch.undo()
    assert drop.take(9).files == ()
    haul = drop.take(10)
    assert ([file.name for file in haul.files], haul.stuck) == (["a.json"], ())


def test_a_file_that_can_be_neither_refused_nor_removed_holds_up_nobody(drop, monkeypatch):
    for name in ("a.json", "b.json"):
        put(drop, name)
    a, b = drop.take(0).files
    forbidden(monkeypatch, "a.json", "rename")
    forbidden(monkeypatch, "b.json", "unlink")
    assert not drop.refuse(a, "no agent")
    assert drop.remove([b]) == []
    assert refused(drop) == []
    put(drop, "c.json")
    haul = drop.take(1)
    assert [file.name for file in haul.files] == ["c.json"]
    assert haul.stuck == (
        ("a.json", "no agent; and it cannot be moved to refused: operation not permitted"),
        ("b.json", "it is recorded, and cannot be removed: operation not permitted"),
    )
    drop.remove(haul.files)
    monkeypatch.undo()
    assert drop.take(9).files == ()
    assert [file.name for file in drop.take(11).files] == ["a.json", "b.json"]


def test_a_folder_of_somebody_else_among_what_was_taken_holds_up_nobody(drop, monkeypatch):
    (drop.path / ".taken" / "strange").mkdir()
    put(drop, "a.json")
    forbidden(monkeypatch, "strange", "listdir")
    haul = drop.take(0)
    assert [file.name for file in haul.files] == ["a.json"]
    assert haul.stuck == (("strange", "what was taken cannot be listed: operation not permitted"),)


def test_what_is_left_for_later_is_taken_again_after_a_while(drop):
    put(drop, "a.json")
    (file,) = drop.take(0).files
    drop.leave(file, "the store fell ill")
    haul = drop.take(1)
    assert (haul.files, haul.more, haul.stuck) == ((), False, (("a.json", "the store fell ill"),))
    assert drop.take(10).files == (file,)


@pytest.mark.parametrize("before", [True, False])
def test_a_name_that_is_not_utf_8_is_refused_also_where_it_was_taken_before(drop, before):
    name = os.fsdecode(b"bad\xff.json")
    folder = drop.path / ".taken" / "0" if before else drop.path
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(TASK))
    (file,) = drop.take(0).files
    assert (file.tasks, file.why) == ((), "its name is not UTF-8: rename it, and move it here again")
    assert drop.refuse(file, file.why)
    assert drop.refused() == 1
    assert sorted(refused(drop)) == [name, f"{name}.why.txt"]


def test_a_link_is_not_followed_and_stays_a_link(drop, tmp_path):
    secret = tmp_path / "elsewhere.json"
    secret.write_text(json.dumps(TASK))
    (drop.path / "a.json").symlink_to(secret)
    (drop.path / "b.json").symlink_to("/nowhere")
    for file in drop.take(0).files:
        assert file.why.startswith("expected a file, found a link")
        drop.refuse(file, file.why)
    assert secret.exists()
    assert os.readlink(drop.path / "refused" / "a.json") == str(secret)


def test_pipes_sockets_and_folders_are_refused_without_a_wait(drop):
    os.mkfifo(drop.path / "a.json")
    with socket.socket(socket.AF_UNIX) as listening:
        # The path of a socket is short, whatever the folder's is.
        here = os.open(drop.path, os.O_RDONLY)
        listening.bind(f"/proc/self/fd/{here}/b.json")
        os.close(here)
        (drop.path / "c.json").mkdir()
        found = []
        look = threading.Thread(target=lambda: found.extend(drop.take(0).files), daemon=True)
        look.start()
        look.join(10)
    assert [file.why.partition(":")[0] for file in found] == [
        "expected a file, found a pipe",
        "expected a file, found a socket",
        "expected a file, found a folder",
    ]
    for file in found:
        drop.refuse(file, file.why)
    assert [name for name in refused(drop) if not name.endswith(".txt")] == ["a.json", "b.json", "c.json"]


def test_what_is_refused_never_takes_the_place_of_what_was_refused_before(drop):
    for number in range(3):
        put(drop, "a.json", str(number))
        (file,) = drop.take(0).files
        drop.refuse(file, f"reason {number}")
    folder = drop.path / "refused"
    assert {name: (folder / name).read_text().strip() for name in refused(drop)} == {
        "a.json": "0",
        "a.json.why.txt": "reason 0",
        "a-2.json": "1",
        "a-2.json.why.txt": "reason 1",
        "a-3.json": "2",
        "a-3.json.why.txt": "reason 2",
    }


def test_a_name_may_be_as_long_and_as_strange_as_the_system_allows(drop):
    long, strange = "x" * 250 + ".json", "\n\x1b'%.json"
    for name in (long, strange):
        put(drop, name, "{")
    drop.take(0)
    for file in drop.take(5).files:
        assert drop.refuse(file, file.why)
    assert len(refused(drop)) == 4
    assert drop.take(6).files == ()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (json.dumps([TASK] * 10_001), "10,001 tasks, and a file may have 10,000: put them into several files"),
        ("x" * 1_000_001, "1,000,001 bytes, and a file may have 1,000,000: put the tasks into several files"),
        ("[]", "there is no task in it: expected a task, or a list of tasks"),
    ],
)
def test_what_will_not_get_better_is_refused_at_once(drop, content, why):
    put(drop, "a.json", content)
    assert taken(drop.take(0)) == [("a.json", [], why)]


def test_a_byte_order_mark_is_no_mistake(drop):
    (drop.path / "a.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(TASK).encode())
    assert taken(drop.take(0)) == [("a.json", [TASK], "")]


def test_one_haul_is_bounded_and_says_that_there_is_more(drop, monkeypatch):
    monkeypatch.setattr(drops, "MOST_FILES", 3)
    for number in range(5):
        put(drop, f"{number}.json")
    haul = drop.take(0)
    assert [file.name for file in haul.files] == ["0.json", "1.json", "2.json"]
    assert haul.more
    drop.remove(haul.files)
    haul = drop.take(0)
    assert [file.name for file in haul.files] == ["3.json", "4.json"]
    assert not haul.more
    drop.remove(haul.files)
    monkeypatch.setattr(drops, "MOST_BYTES", 10)
    put(drop, "a.json")
    put(drop, "b.json")
    assert [file.name for file in drop.take(0).files] == ["a.json"]


def test_a_file_that_may_not_be_read_says_so(drop, monkeypatch):
    def forbid(path, *arguments, **options):
        raise PermissionError(13, "Permission denied", str(path))

    put(drop, "a.json")
    monkeypatch.setattr(drops, "open", forbid, raising=False)
    haul = drop.take(0)
    assert [file.why for file in haul.files] == ["cannot be read: permission denied"]
