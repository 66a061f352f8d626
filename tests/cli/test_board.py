"""A board from the command line: what is open on it, and claims that everybody sees, through a real git."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.office import spawned, wakeful

BOARD = "#+TITLE: desk\n* NEXT task-7 :press:\nAbout the bridge.\n* TODO task-8\n* DONE task-9\n"
TAKEN = BOARD.replace("NEXT task-7 :press:", "DOING task-7 :press:\n:PROPERTIES:\n:AGENT: wren\n:END:")
NOBODY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
SOMEBODY = {
    f"GIT_{role}_{what}": f"ada{at}"
    for role in ("AUTHOR", "COMMITTER")
    for what, at in (("NAME", ""), ("EMAIL", "@desk"))
}


@pytest.fixture(autouse=True)
def somebody(monkeypatch):
    for name, value in {**NOBODY, **SOMEBODY}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def desk(nowhere):
    """A board that nobody keeps in git, of a fleet of two."""
    (nowhere / "board.org").write_text(BOARD)
    drawer = ":PROPERTIES:\n:BOARD: board.org\n:END:\n"
    (nowhere / "fleet.org").write_text(f"#+RUN: true\n* wren\n{drawer}* moss\n{drawer}")
    return nowhere


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def clones(nowhere):
    """The board in git, and clones of it."""
    git(nowhere, "init", "--quiet", "--bare", "-b", "main", "origin")
    git(nowhere, "clone", "--quiet", "origin", "first")
    first = nowhere / "first"
    git(first, "checkout", "--quiet", "-B", "main")
    (first / "board.org").write_text(BOARD)
    git(first, "add", "board.org")
    git(first, "commit", "--quiet", "-m", "a board")
    git(first, "push", "--quiet", "-u", "origin", "main")

    def clone(name):
        git(nowhere, "clone", "--quiet", "origin", name)
        return nowhere / name

    return clone


def seen(nowhere: Path) -> str:
    """The board as every peer sees it."""
    return git(nowhere / "origin", "show", "main:board.org") + "\n"


# ---- what is open


def test_the_open_entries_of_the_boards_of_a_fleet_are_listed(desk):
    assert wakeful("board", "list").stdout == "NEXT     task-7\nTODO     task-8\n"
    (desk / "board.org").write_text(TAKEN)
    assert "DOING    task-7  (wren)" in wakeful("board", "list").stdout
    found = json.loads(wakeful("board", "list", "--json", "--agent", "moss").stdout)
    assert [(row["id"], row["state"], row["agent"]) for row in found["items"]] == [("task-8", "TODO", None)]


def test_a_board_that_is_not_there_is_told(desk):
    (desk / "board.org").unlink()
    assert (wakeful("board", "list").exit_code, wakeful("board", "claim", "task-7", "--agent", "wren").exit_code) == (
        2,
        2,
    )
    (desk / "fleet.org").write_text("#+RUN: true\n* wren\n")
    assert "no agent of this fleet has a BOARD" in wakeful("board", "list").stderr


# ---- a claim


def test_an_entry_is_claimed_once_and_given_back(desk):
    result = wakeful("board", "claim", "task-7", "--agent", "wren")
    assert (result.exit_code, result.stdout) == (0, "wren has task-7: DOING\n")
    assert (desk / "board.org").read_text() == TAKEN
    assert wakeful("board", "claim", "task-7", "--agent", "wren").exit_code == 0
    refused = wakeful("board", "claim", "task-7", "--agent", "moss")
    assert (refused.exit_code, refused.stderr) == (1, "'task-7' is claimed by wren (take another one)\n")
    assert wakeful("board", "release", "task-7", "--agent", "moss").exit_code == 1
    assert (desk / "board.org").read_text() == TAKEN
    assert wakeful("board", "release", "task-7", "--agent", "wren").stdout == "task-7 is nobody's: NEXT\n"
    assert (desk / "board.org").read_text() == BOARD


def test_the_operator_may_take_a_claim_away_and_whoever_hands_on_chooses_the_word(desk):
    (desk / "board.org").write_text(TAKEN)
    result = wakeful("board", "release", "task-7", "--state", "DONE", "--json")
    assert (json.loads(result.stdout)["state"], json.loads(result.stdout)["agent"]) == ("DONE", None)
    assert (desk / "board.org").read_text() == BOARD.replace("NEXT", "DONE")


def test_inside_a_run_the_claim_is_its_agents(desk):
    inside = {"WAKEFUL_URL": "http://127.0.0.1:9", "WAKEFUL_TOKEN": "t", "WAKEFUL_AGENT": "wren"}
    assert wakeful("board", "claim", "task-7", "board.org", **inside).exit_code == 0
    assert (desk / "board.org").read_text() == TAKEN
    assert wakeful("board", "claim", "task-8", **inside).exit_code == 2


def test_a_board_with_words_of_its_own_keeps_them(desk):
    (desk / "board.org").write_text("#+TODO: ASSIGNED WRITING | PUBLISHED\n* ASSIGNED a\n")
    assert wakeful("board", "claim", "a", "--agent", "wren").stdout == "wren has a: ASSIGNED\n"
    assert wakeful("board", "claim", "a", "--agent", "wren", "--state", "WRITING").stdout == "wren has a: WRITING\n"
    refused = wakeful("board", "release", "a", "--state", "DONE")
    assert (refused.exit_code, "known: ASSIGNED WRITING PUBLISHED" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["task-77", "--agent", "wren"], "did you mean 'task-7'?"),
        (["task-9", "--agent", "wren"], "no open entry"),
        (["task-7"], "say --agent"),
    ],
)
def test_a_mistake_changes_nothing(desk, words, told):
    result = wakeful("board", "claim", *words)
    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr
    assert (desk / "board.org").read_text() == BOARD


# ---- in git


def test_a_claim_is_committed_and_pushed_before_it_is_told(clones, nowhere):
    wren, moss = clones("wren"), clones("moss")
    assert wakeful("board", "claim", "task-7", str(wren / "board.org"), "--agent", "wren").exit_code == 0
    assert seen(nowhere) == TAKEN
    assert git(wren, "log", "-1", "--format=%s") == "claim: task-7"
    # The other one has not pulled since.
    refused = wakeful("board", "claim", "task-7", str(moss / "board.org"), "--agent", "moss")
    assert (refused.exit_code, "is claimed by wren" in refused.stderr) == (1, True)
    assert git(moss, "status", "--porcelain") == ""


def test_of_many_that_claim_at_once_one_has_it(clones, nowhere):
    agents = [f"agent{number}" for number in range(6)]
    folders = {agent: clones(agent) for agent in agents}

    def claim(agent: str) -> int:
        return spawned("board", "claim", "task-7", "board.org", "--agent", agent, folder=folders[agent]).returncode

    with ThreadPoolExecutor(len(agents)) as pool:
        codes = dict(zip(agents, pool.map(claim, agents), strict=True))
    (winner,) = [agent for agent, code in codes.items() if code == 0]
    assert set(codes.values()) == {0, 1}
    assert f":AGENT: {winner}\n" in seen(nowhere)
    assert git(nowhere / "origin", "rev-list", "--count", "main") == "2"
    assert {git(folder, "status", "--porcelain") for folder in folders.values()} == {""}


def test_of_many_that_take_one_each_everybody_gets_one(clones, nowhere):
    agents = [f"agent{number}" for number in range(4)]
    first = nowhere / "first"
    (first / "board.org").write_text("".join(f"* NEXT task of {agent}\n" for agent in agents))
    git(first, "commit", "--quiet", "-am", "four")
    git(first, "push", "--quiet")
    folders = {agent: clones(agent) for agent in agents}

    def claim(agent: str) -> int:
        return spawned(
            "board", "claim", f"task of {agent}", "board.org", "--agent", agent, folder=folders[agent]
        ).returncode

    with ThreadPoolExecutor(len(agents)) as pool:
        assert list(pool.map(claim, agents)) == [0, 0, 0, 0]
    assert all(f":AGENT: {agent}\n" in seen(nowhere) for agent in agents)


def test_changes_that_are_not_committed_are_neither_taken_along_nor_lost(clones):
    wren = clones("wren")
    (wren / "board.org").write_text(BOARD + "* TODO task-10\n")
    refused = wakeful("board", "claim", "task-7", str(wren / "board.org"), "--agent", "wren")
    assert (refused.exit_code, "has changes that are not committed" in refused.stderr) == (1, True)
    assert (wren / "board.org").read_text() == BOARD + "* TODO task-10\n"


def test_a_server_that_is_away_means_that_nothing_was_claimed(clones, nowhere):
    wren = clones("wren")
    (nowhere / "origin").rename(nowhere / "away")
    result = wakeful("board", "claim", "task-7", str(wren / "board.org"), "--agent", "wren")
    assert result.exit_code == 75, result.output
    assert ((wren / "board.org").read_text(), git(wren, "status", "--porcelain")) == (BOARD, "")
