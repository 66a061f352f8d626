"""GITOPS with real repositories: brought forward between runs, never under one, and nothing of anybody's is lost."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.runners.carrier_case import Desk, a_beat, a_process
from wakeful.core.runs import Outcome, read_outcome
from wakeful.testing.contracts.runner_case import MARK, real

IDENTITY = ("-c", "user.name=wren", "-c", "user.email=wren@example.org")


def git(folder: Path, *words: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", *IDENTITY, *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    git(folder, "add", name)
    git(folder, "commit", "--quiet", "-m", name)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Desk]:
    """`tree` below the fleet file follows `origin`, as `writer` does, who is somewhere else."""
    with Desk(tmp_path, pull_limit=timedelta(seconds=10)).open() as desk:
        origin, writer = tmp_path / "origin", tmp_path / "writer"
        git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(origin))
        git(tmp_path, "clone", "--quiet", str(origin), str(writer))
        git(writer, "checkout", "--quiet", "-B", "main")
        commit(writer, "page", "one")
        git(writer, "push", "--quiet", "-u", "origin", "main")
        git(desk.root, "clone", "--quiet", str(origin), "tree")
        yield desk


LOCKED = "#!/bin/sh\nprintf 'protocol=https\\nhost=there\\n\\n' | git credential fill >&2\n"
FOLLOWER = a_process("cat page", workdir="tree", gitops=True)


def push(yard: Desk, name: str = "page", text: str = "two") -> str:
    head = commit(yard.folder / "writer", name, text)
    git(yard.folder / "writer", "push", "--quiet")
    return head


def head(yard: Desk) -> str:
    return git(yard.root / "tree", "rev-parse", "HEAD")


@real
async def test_what_was_pushed_is_there_for_the_next_run(yard):
    pushed = push(yard)
    assert await yard.carrier.pull(FOLLOWER) == ""
    assert await yard.carrier.pull(FOLLOWER) == ""
    assert head(yard) == pushed
    ending = await (await yard.carrier.carry(a_beat(FOLLOWER))).wait()
    assert (read_outcome(ending), ending.output) == (Outcome.done, "two")


@real
async def test_an_agent_in_a_folder_of_a_tree_or_without_one_of_its_own_pulls_the_tree_that_holds_it(yard):
    (yard.root / "tree" / "desk").mkdir()
    first = push(yard)
    assert await yard.carrier.pull(a_process("true", workdir="tree/desk", gitops=True)) == ""
    assert head(yard) == first
    yard.settings, second = {}, push(yard, text="three")
    yard.root = yard.root / "tree"
    assert await yard.another().pull(a_process("true", gitops=True)) == ""
    assert git(yard.root, "rev-parse", "HEAD") == second


@real
async def test_a_tree_that_has_gone_its_own_way_is_left_as_it_is(yard):
    push(yard)
    own = commit(yard.root / "tree", "page", "mine")
    problem = await yard.carrier.pull(FOLLOWER)
    assert problem.startswith(f"git merge failed in {yard.root}/tree: ") and "fast-forward" in problem
    assert "\n" not in problem
    assert (head(yard), (yard.root / "tree" / "page").read_text()) == (own, "mine")


@real
async def test_what_somebody_is_editing_is_not_written_over(yard):
    push(yard)
    (yard.root / "tree" / "page").write_text("half a sentence")
    assert "would be overwritten" in await yard.carrier.pull(FOLLOWER)
    assert (yard.root / "tree" / "page").read_text() == "half a sentence"
    git(yard.root / "tree", "checkout", "--quiet", "page")
    (yard.root / "tree" / "note").write_text("beside it")
    assert await yard.carrier.pull(FOLLOWER) == ""
    assert (yard.root / "tree" / "note").read_text() == "beside it"


@real
async def test_a_tree_without_an_upstream_and_a_folder_in_no_tree_say_so(yard):
    git(yard.root / "tree", "checkout", "--quiet", "-b", "mine")
    assert "has no upstream branch (set one with" in await yard.carrier.pull(FOLLOWER)
    git(yard.root / "tree", "checkout", "--quiet", "--detach")
    assert "has no upstream branch" in await yard.carrier.pull(FOLLOWER)
    assert "is in no git work tree" in await yard.carrier.pull(a_process("true", gitops=True))
    assert "is in no git work tree" in await yard.carrier.pull(a_process("true", workdir="nowhere/yet", gitops=True))


@real
async def test_an_origin_that_is_gone_says_so(yard):
    (yard.folder / "origin").rename(yard.folder / "elsewhere")
    assert (await yard.carrier.pull(FOLLOWER)).startswith(f"git fetch failed in {yard.root}/tree: ")


@real
async def test_without_git_it_says_so(yard):
    yard.base = {"PATH": str(yard.folder)}
    assert await yard.carrier.pull(FOLLOWER) == "git cannot be executed: No such file or directory"


@real
async def test_an_origin_that_does_not_answer_is_given_up_with_everything_that_waits_for_it(yard):
    helper = yard.write("git-remote-slow", "#!/bin/sh\nsleep 60 & sleep 60\n", 0o755)
    yard.base = {**yard.base, "PATH": f"{helper.parent}:{yard.base['PATH']}", MARK: yard.marker}
    yard.settings = {"pull_limit": timedelta(seconds=0.5)}
    git(yard.root / "tree", "remote", "set-url", "origin", "slow::there")
    assert await yard.carrier.pull(FOLLOWER) == f"git took longer than 0.5 s in {yard.root}/tree"


@real
async def test_nobody_is_asked_for_a_password(yard):
    asker = yard.write("ask", '#!/bin/sh\ntouch "$0.asked"; echo secret\n', 0o755)
    helper = yard.write("git-remote-locked", LOCKED, 0o755)
    path = f"{helper.parent}:{yard.base['PATH']}"
    yard.base = {**yard.base, "PATH": path, "GIT_ASKPASS": str(asker), "SSH_ASKPASS": str(asker)}
    git(yard.root / "tree", "config", "core.askPass", str(asker))
    git(yard.root / "tree", "remote", "set-url", "origin", "locked::there")
    assert "terminal prompts disabled" in await yard.carrier.pull(FOLLOWER)
    assert not asker.with_name("ask.asked").exists()


# ---- runs and pulls


WAITING = a_process("while [ ! -e enough ]; do sleep 0.02; done; cat page", workdir="tree", gitops=True)


@real
async def test_nothing_is_pulled_under_a_run_be_it_our_own_or_adopted(yard):
    before, pushed = head(yard), push(yard)
    await yard.carrier.carry(a_beat(WAITING, 7))
    assert await yard.carrier.pull(FOLLOWER) == f"not pulled: run 7 is under way in {yard.root}/tree"
    await yard.carrier.close()
    second = yard.another()
    held = await second.adopt(7)
    assert "run 7 is under way" in await second.pull(FOLLOWER)
    assert head(yard) == before
    (yard.root / "tree" / "enough").touch()
    assert (await held.wait()).output == "one"
    assert await second.pull(FOLLOWER) == ""
    assert head(yard) == pushed


@real
async def test_the_tree_of_the_fleet_file_is_held_by_the_agents_that_follow_it_and_by_no_other(yard):
    yard.root = yard.root / "tree"
    follower, other = a_process("sleep 60", gitops=True), a_process("sleep 60")
    unheld = await yard.carrier.carry(a_beat(other, 7))
    assert await yard.carrier.pull(follower) == ""
    held = await yard.carrier.carry(a_beat(follower, 8))
    assert "run 8 is under way" in await yard.carrier.pull(follower)
    for each in (unheld, held):
        await each.end("operator", at_once=True)
        await each.wait()


@real
async def test_no_run_begins_under_a_pull(yard):
    """The origin keeps the pull waiting until the run has been asked for."""
    push(yard)
    script = '#!/bin/sh\ntouch "$0.begun"; while [ ! -e "$0.enough" ]; do sleep 0.02; done; exec git-upload-pack "$@"\n'
    slow = yard.write("slow-upload-pack", script, 0o755)
    git(yard.root / "tree", "config", "remote.origin.uploadpack", str(slow))
    pull = asyncio.ensure_future(yard.carrier.pull(FOLLOWER))
    await yard.until(lambda: slow.with_name("slow-upload-pack.begun").exists(), "the pull to begin")
    start = asyncio.ensure_future(yard.carrier.carry(a_beat(FOLLOWER)))
    elsewhere = await yard.carrier.carry(a_beat(a_process("true", workdir="desk"), 8))
    assert (await elsewhere.wait()).exit_code == 0
    assert not start.done() and not yard.run_folder().exists()
    slow.with_name("slow-upload-pack.enough").touch()
    assert await pull == ""
    assert (await (await start).wait()).output == "two"


@real
async def test_a_run_that_could_not_be_started_is_not_under_way(yard):
    held = await yard.carrier.carry(a_beat(a_process("true", workdir="tree", definition="gone.org")))
    assert (await held.wait()).result.error
    assert await yard.carrier.pull(FOLLOWER) == ""
