"""Document 001's claims, not locks: a protocol of the definitions, on a board in git, that the engine only isolates.

And its one-off: the same path as a beat.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.claims.test_001_engine import GIT, IDENTITY, House
from tests.engine.stage import heading
from wakeful.control.callers import OPERATOR
from wakeful.control.control import Control
from wakeful.engine.clock import SystemClock
from wakeful.testing.contracts.runner_case import real

# Entries far enough apart for git to tell their changes from each other.
BOARD = "* NEXT task-7\nOne\nthing\nto\ndo.\n* NEXT task-8\nAnother.\n"
TAKE = """
task=$(sed -n 's/^\\* NEXT //p' board.org | head -1)
sed -i "s/^\\* NEXT $task$/* DOING $task, :AGENT: $WAKEFUL_AGENT/" board.org
git commit --quiet -am "$WAKEFUL_AGENT claims $task"
"""
WORK = """
git push --quiet
git show origin/main:board.org > what-every-peer-sees
echo "$task"
"""
# One that keeps to the protocol, and one that takes before it looks.
CAREFUL = f"set -e\ngit pull --quiet --rebase\n{TAKE}{WORK}"
CARELESS = f"set -e\n{TAKE}git pull --quiet --no-rebase --no-edit -s ours\n{WORK}"


class Board(House):
    def git(self, folder: str, *words: str) -> str:
        done = subprocess.run(
            ["git", *IDENTITY, *words], cwd=self.folder / folder, env=GIT, capture_output=True, text=True, check=True
        )
        return done.stdout

    def lay_out(self, wren: str, moss: str) -> tuple[str, str]:
        """A board in git, a clone of it for each of two agents, and the headings of both."""
        self.git(".", "init", "--quiet", "--bare", "--initial-branch=main", "origin")
        self.git(".", "clone", "--quiet", "origin", "desk")
        (self.folder / "desk" / "board.org").write_text(BOARD)
        self.git("desk", "add", "board.org")
        self.git("desk", "commit", "--quiet", "-m", "a board")
        self.git("desk", "push", "--quiet", "origin", "HEAD:main")
        headings = []
        for name, protocol in (("wren", wren), ("moss", moss)):
            self.git(".", "clone", "--quiet", "origin", name)
            for key, value in (("user.name", name), ("user.email", f"{name}@example.org")):
                self.git(name, "config", key, value)
            self.write(f"{name}.sh", protocol)
            clone = str(self.folder / name)
            headings.append(heading(name, run=f"sh {self.root}/{name}.sh", workdir=clone, interval="1h"))
        return headings[0], headings[1]

    def claims(self) -> list[str]:
        return [
            line for line in self.git("origin", "log", "--format=%s", "main").splitlines() if " claims task-" in line
        ]


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Board]:
    with Board(tmp_path).open() as board:
        yield board


@real
async def test_a_claim_is_in_git_before_the_work_and_a_peer_that_pulls_first_takes_another_task(yard):
    await yard.up(*yard.lay_out(CAREFUL, CAREFUL))
    wren, moss = await yard.tick("wren"), await yard.tick("moss")
    assert [yard.printed(run).split() for run in (wren, moss)] == [["task-7"], ["task-8"]]
    # When the work began, whoever looked saw whose it was.
    assert "* DOING task-7, :AGENT: wren" in (yard.folder / "wren" / "what-every-peer-sees").read_text()
    assert yard.claims() == ["moss claims task-8", "wren claims task-7"]
    # And it can be taken back, as any commit can.
    yard.git("desk", "pull", "--quiet", "origin", "main")
    yard.git("desk", "revert", "--no-edit", "HEAD~1")
    assert "* NEXT task-7" in (yard.folder / "desk" / "board.org").read_text()
    await yard.down()


@real
async def test_two_claims_of_one_task_are_both_seen_in_history(yard):
    await yard.up(*yard.lay_out(CARELESS, CARELESS))
    wren, moss = await yard.tick("wren"), await yard.tick("moss")
    assert [yard.printed(run).split() for run in (wren, moss)] == [["task-7"], ["task-7"]]
    assert sorted(yard.claims()) == ["moss claims task-7", "wren claims task-7"]
    await yard.down()


@real
async def test_a_one_off_takes_the_path_of_a_beat(yard):
    await yard.up(heading("wren", run="cat", interval="1h"))
    beat = await yard.tick("wren")
    stood = yard.store.standing("wren").position
    control = Control(yard.access, runs=yard.data / "runs", clock=SystemClock().now, beside=yard.engine)
    reply = await control.run(OPERATOR, agent="wren", prompt="write a page")
    one_off = await yard.over(reply["run_id"])
    assert (one_off.outcome.value, one_off.subject.value) == ("done", "task")
    assert "write a page" in yard.printed(one_off)

    def told(run: int) -> list[str]:
        return [event.kind.value for event in yard.store.events(limit=1000) if event.run == run]

    # The same door, the same start, the same folder; and its end moves nothing but its task.
    assert told(beat.id) == ["decided", "started", "ended"]
    assert told(one_off.id) == ["decided", "started", "task_ended", "ended"]
    folders = [sorted(os.listdir(yard.run_folder(run.id))) for run in (beat, one_off)]
    assert folders[0] == folders[1]
    assert yard.store.standing("wren").position == stood
    await yard.down()
