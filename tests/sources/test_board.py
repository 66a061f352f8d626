"""What stands on a board: an org file, of which each open entry is pending."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from wakeful.sources.aside import Unreadable
from wakeful.sources.board import LARGEST, Reading
from wakeful.sources.board_text import entries, named, observed, rewritten
from wakeful.sources.folder import Look

BOARD = """#+TITLE: the desk
Some words before everything.
* NEXT task-7                                                   :press:night:
SCHEDULED: <2026-12-01 Tue>
:PROPERTIES:
:EFFORT: 2h
:END:
Write to the mayor.
** DONE ask for the address
** TODO [#A] find a stamp
* DOING task-8
:PROPERTIES:
:AGENT: wren
:END:
* DONE task-9
* a note, TODO nothing
* WAITING task-10
"""


def ids(board: str, agent: str = "moss") -> list[str]:
    return [thing.external_id for thing in observed(board, agent)]


def prints(board: str, agent: str = "moss") -> dict[str, str]:
    return {thing.external_id: thing.fingerprint for thing in observed(board, agent)}


# ---- what is an entry


def test_open_entries_of_any_depth_are_pending_in_the_order_of_the_board():
    assert ids(BOARD) == ["task-7", "find a stamp"]


def test_an_entry_is_told_with_its_keyword_its_title_and_its_text():
    first = next(iter(observed(BOARD, "moss")))
    assert first.subject == "NEXT task-7"
    assert first.body == "SCHEDULED: <2026-12-01 Tue>\nWrite to the mayor."
    assert next(iter(entries(BOARD))).tags == ("press", "night")


@pytest.mark.parametrize(("agent", "wanted"), [("wren", True), ("WREN", True), ("wren-2", True), ("moss", False)])
def test_what_another_agent_has_claimed_is_not_seen(agent, wanted):
    board = f"* DOING task-8\n:PROPERTIES:\n:AGENT: {agent}\n:END:\n"
    assert ids(board, "wren") == (["task-8"] if wanted else [])


@pytest.mark.parametrize(
    "line", ["#+TODO: ASSIGNED RESEARCH(r!) EDIT | PUBLISHED KILLED", "#+seq_todo: ASSIGNED RESEARCH EDIT PUBLISHED"]
)
def test_a_board_has_its_own_words(line):
    board = f"{line}\n* ASSIGNED a\n* RESEARCH b\n* EDIT c\n* PUBLISHED d\n* TODO e\n* KILLED f\n"
    assert ids(board) == ["a", "b", "c"]


def test_words_of_several_lines_hold_together():
    assert ids("#+TODO: TODO | DONE\n#+TODO: BUG | FIXED\n* TODO a\n* BUG b\n* FIXED c\n") == ["a", "b"]


def test_what_is_archived_is_not_pending():
    assert ids("* TODO a :ARCHIVE:\n* TODO b\n") == ["b"]


@pytest.mark.parametrize("board", ["", "\n", "*", "* ", "*TODO a", " * TODO a", "* TODOa", "text\n:PROPERTIES:\n"])
def test_what_is_no_entry_is_none(board):
    assert ids(board) == []


def test_an_entry_without_a_title_is_one_too():
    assert ids("* TODO\n* TODO [#A]\n* TODO :tag:\n") == ["untitled", "untitled (2)", "untitled (3)"]


# ---- by what it is known


def test_an_id_outlives_a_title():
    board = "* TODO {}\n:PROPERTIES:\n:{}: 4f-11\n:END:\n"
    assert ids(board.format("one", "ID")) == ids(board.format("two", "custom_id")) == ["4f-11"]


def test_one_that_another_has_claimed_keeps_its_number():
    claimed = "* TODO a\n:PROPERTIES:\n:AGENT: wren\n:END:\n* TODO a\n"
    assert (ids(claimed, "moss"), ids(claimed, "wren")) == (["a (2)"], ["a", "a (2)"])


def test_two_that_are_called_the_same_are_two():
    assert ids("* TODO a\n* TODO a\n* TODO a (2)\n* TODO a\n") == ["a", "a (2)", "a (2) (2)", "a (3)"]


def test_an_entry_that_moves_has_not_changed():
    assert prints("* TODO a\ntext\n* TODO b\n") == prints("* TODO b\n* part\n** TODO a\ntext\n\n")


@pytest.mark.parametrize(
    "changed",
    [
        "* NEXT a\ntext",
        "* TODO a :x:\ntext",
        "* TODO [#A] a\ntext",
        "* TODO a\ntexts",
        "* TODO a\n:PROPERTIES:\n:K: v\n:END:\ntext",
    ],
)
def test_whatever_changes_in_it_makes_it_another(changed):
    assert list(prints(changed)) == ["a"] and prints(changed) != prints("* TODO a\ntext")


def test_lines_may_end_as_they_do_elsewhere():
    assert prints(BOARD) == prints(BOARD.replace("\n", "\r\n"))


# ---- a claim


def claimed(board: str, id: str, word: str = "DOING", agent: str = "wren") -> str:
    return rewritten(board, named(board)[id], word=word, agent=agent)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("* TODO a\ntext\n* TODO b", "* DOING a\n:PROPERTIES:\n:AGENT: wren\n:END:\ntext\n* TODO b"),
        ("** TODO [#A] a :x:\n", "** DOING [#A] a :x:\n:PROPERTIES:\n:AGENT: wren\n:END:\n"),
        ("* TODO a\r\n", "* DOING a\r\n:PROPERTIES:\r\n:AGENT: wren\r\n:END:\r\n"),
        (
            "* TODO a\nDEADLINE: <2026-12-01>\ntext",
            "* DOING a\nDEADLINE: <2026-12-01>\n:PROPERTIES:\n:AGENT: wren\n:END:\ntext",
        ),
        (
            "* TODO a\n  :PROPERTIES:\n  :AGENT: wren\n  :ID: a\n  :END:\n",
            "* DOING a\n  :PROPERTIES:\n  :ID: a\n:AGENT: wren\n  :END:\n",
        ),
    ],
    ids=["plain", "decorated", "other ends of lines", "planned", "with a drawer"],
)
def test_a_claim_changes_the_keyword_and_the_claim_and_nothing_else(before, after):
    assert claimed(before, "a") == after
    (entry,) = (entry for entry in entries(after) if entry.name == "a")
    assert (entry.word, entry.agent) == ("DOING", "wren")


def test_a_claim_that_is_taken_back_leaves_the_board_as_it_was():
    board = "#+TITLE: x\n* TODO a\ntext\n* TODO b\n:PROPERTIES:\n:ID: b\n:END:\n"
    for id in ("a", "b"):
        assert claimed(claimed(board, id), id, "TODO", "") == board


def test_a_drawer_that_nobody_closed_is_left_alone():
    board = "* TODO a\n:PROPERTIES:\n:ID: a\ntext\n"
    assert claimed(board, "a") == "* DOING a\n:PROPERTIES:\n:AGENT: wren\n:END:\n:PROPERTIES:\n:ID: a\ntext\n"


# ---- the file


def look(folder: Path, before: Look | None = None, *, later: float = 0.0) -> Look:
    times = {"now": time.time() + later, "elapsed": time.monotonic() + later}
    return Reading(folder, before or Look(), **times, name="board.org", address="moss").do()


def test_a_board_that_is_being_written_is_as_it_was_before(tmp_path):
    board = tmp_path / "board.org"
    board.write_text("* TODO a\n")
    before = look(tmp_path)
    with board.open("w") as file:
        file.write("* TO")
        file.flush()
        during = look(tmp_path, before)
        assert (during.observed, list(during.moving)) == (before.observed, ["board.org"])
        file.write("DO b\n")
    assert [thing.external_id for thing in look(tmp_path, during).observed] == ["b"]


def test_one_that_is_held_open_and_left_alone_is_shown(tmp_path):
    with (tmp_path / "board.org").open("w") as file:
        file.write("* TODO a\n")
        file.flush()
        assert look(tmp_path).observed == ()
        assert len(look(tmp_path, later=6.0).observed) == 1


def test_what_is_no_text_breaks_nothing(tmp_path):
    (tmp_path / "board.org").write_bytes(b"* TODO a\xff\n\x00\xc3\n* TODO b\x1b[31m\n")
    found = look(tmp_path).observed
    assert [thing.external_id for thing in found] == ["a\ufffd", "b\\u001b[31m"]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "not a file"),
        (lambda path: os.mkfifo(path), "not a file"),
        (lambda path: path.symlink_to("other.org"), "a link, which is not followed"),
        (lambda path: (path.touch(), os.truncate(path, LARGEST + 1)), "larger than 8 MB"),
    ],
    ids=["missing", "folder", "pipe", "link", "huge"],
)
def test_what_cannot_be_read_says_why(tmp_path, make, why):
    make(tmp_path / "board.org")
    with pytest.raises(Unreadable, match=f"board.org: {why}"):
        look(tmp_path)
