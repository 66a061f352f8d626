"""Control groups: found wherever they are mounted, used where they can be made, and not missed where they cannot."""

import os
import subprocess
import sys
import time

import pytest

from soak import agents
from tests.runners import test_process_behaviours as behaviours
from wakeful.runners import line
from wakeful.runners.cage import Cage, available, discover
from wakeful.testing.contracts.runner_case import real


def mount(kind: str, root: str, point: str, options: str) -> str:
    return f"29 23 0:26 {root} {point} rw,nosuid shared:4 - {kind} {kind} {options}"


UNIFIED = [mount("cgroup2", "/", "/sys/fs/cgroup", "rw,nsdelegate")]
HYBRID = [
    mount("tmpfs", "/", "/sys/fs/cgroup", "ro,mode=755"),
    mount("cgroup2", "/", "/sys/fs/cgroup/unified", "rw"),
    mount("cgroup", "/", "/sys/fs/cgroup/systemd", "rw,xattr,name=systemd"),
    mount("cgroup", "/", "/sys/fs/cgroup/cpu,cpuacct", "rw,cpu,cpuacct"),
    mount("cgroup", "/", "/sys/fs/cgroup/pids", "rw,pids"),
]

# What it is called, the mounts, /proc/self/cgroup, and where our folders are.
PLACES = [
    ("a unified host", UNIFIED, ["0::/user.slice/a.scope"], {"v2": "/sys/fs/cgroup/user.slice/a.scope"}),
    ("a namespace", UNIFIED, ["0::/"], {"v2": "/sys/fs/cgroup"}),
    (
        "a container whose mount begins at its own group",
        [mount("cgroup2", "/docker/abc", "/sys/fs/cgroup", "ro")],
        ["0::/docker/abc"],
        {"v2": "/sys/fs/cgroup"},
    ),
    (
        "a group below the one that is mounted",
        [mount("cgroup2", "/docker/abc", "/sys/fs/cgroup", "rw")],
        ["0::/docker/abc/inner"],
        {"v2": "/sys/fs/cgroup/inner"},
    ),
    (
        "a hybrid host",
        HYBRID,
        ["12:pids:/a", "3:cpu,cpuacct:/b", "1:name=systemd:/c", "0::/d"],
        {
            "v2": "/sys/fs/cgroup/unified/d",
            "pids": "/sys/fs/cgroup/pids/a",
            "cpu": "/sys/fs/cgroup/cpu,cpuacct/b",
            "cpuacct": "/sys/fs/cgroup/cpu,cpuacct/b",
            "name=systemd": "/sys/fs/cgroup/systemd/c",
        },
    ),
    (
        "a neighbour with a longer name",
        [mount("cgroup2", "/docker/abc", "/sys/fs/cgroup", "rw")],
        ["0::/docker/abcdef"],
        {"v2": "/sys/fs/cgroup"},
    ),
    ("a path with a colon", UNIFIED, ["0::/a:b"], {"v2": "/sys/fs/cgroup/a:b"}),
    ("nothing mounted", [mount("tmpfs", "/", "/sys/fs/cgroup", "ro")], ["0::/"], {}),
    ("nothing at all", [], [], {}),
]


@pytest.mark.parametrize(
    ("mounts", "own", "places"), [place[1:] for place in PLACES], ids=[place[0] for place in PLACES]
)
def test_our_own_folder_is_found_in_every_hierarchy(mounts, own, places):
    assert discover("\n".join(mounts), "\n".join(own)) == places


def test_a_mount_without_optional_fields_is_read_too():
    assert discover("29 23 0:26 / /cg rw - cgroup2 none rw", "0::/x") == {"v2": "/cg/x"}


def test_a_cage_that_cannot_be_made_is_empty_kills_nothing_and_can_be_removed(tmp_path):
    for mounts in ({}, {"v2": str(tmp_path / "missing")}):
        cage = Cage.make(mounts, "wakeful-1-1")
        cage.enter()
        cage.limit(10, 10)
        assert (cage.folders, cage.can_kill, cage.kill(), cage.inhabitants()) == ({}, False, False, [])
        assert not cage.out_of_memory()
        cage.remove()


def test_what_lives_in_a_cage_is_known_and_ended_at_one_stroke():
    name = f"wakeful-test-{os.getpid()}"
    cage = Cage.make(available(), name)
    if not cage.can_kill:
        cage.remove()
        pytest.skip("needs a writable control group of version 2 (Linux, as root or delegated)")
    script = "import os, sys\nfor _ in range(3): os.fork()\nprint(flush=True)\nsys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", script],
        preexec_fn=cage.enter,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    for _ in range(8):
        child.stdout.readline()
    assert len(cage.inhabitants()) == 8
    assert cage.kill()
    assert child.wait(5) == -9
    # The stream ends with the last of those who hold it.
    assert child.stdout.read() == b""
    child.stdin.close()
    child.stdout.close()
    end = time.monotonic() + 5
    while (left := [folder for folder in cage.folders.values() if os.path.isdir(folder)]) and time.monotonic() < end:
        cage.remove()
    assert left == []


# ---- without


@pytest.fixture
def bare(yard, monkeypatch):
    """A yard whose nurseries find no control group."""
    without = line._START.replace(" main()", " import wakeful.runners.nursery as n; n.available = dict; main()")
    assert without != line._START
    monkeypatch.setattr(line, "_START", without)
    return yard


BEHAVIOURS = [
    behaviours.test_daemons_without_environment_do_not_outlive_an_agent_that_has_exited,
    behaviours.test_daemons_are_ended_at_once_where_an_end_at_once_was_asked_for,
]


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour.__name__)
def test_without_control_groups_the_tree_is_walked_and_nothing_survives_either(bare, behaviour):
    behaviour(yard=bare)


@real
async def test_without_control_groups_a_small_fork_bomb_is_ended_too(bare, yard):
    assignment = behaviours.agent(yard, agents.bomb, 6)
    held = await yard.runner.start(assignment)
    await yard.hear(assignment, 64)
    assert yard.guardian(assignment).cage == {}
    await held.end("operator", at_once=True)
    assert (await held.wait()).by == "operator"
