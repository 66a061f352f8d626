"""Each planted bug is seen: a simulation that finds nothing may also be one that cannot see."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import wakeful

SOURCE = Path(wakeful.__file__).resolve().parent
BUGS = tomllib.loads((Path(__file__).parent / "planted.toml").read_text(encoding="utf-8"))["bug"]
SEEDS = 200


def plant(bug: dict[str, str], folder: Path) -> None:
    shutil.copytree(SOURCE, folder / "wakeful", ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "wakeful" / bug["file"]
    text = path.read_text(encoding="utf-8")
    count = text.count(bug["old"])
    assert count == 1, f"{bug['file']} has {bug['old']!r} {count} times: plant the bug anew in planted.toml"
    path.write_text(text.replace(bug["old"], bug["new"]), encoding="utf-8")


def live(folder: Path, *words: str) -> str:
    others = [place for place in sys.path if place and Path(place).resolve() != SOURCE.parent]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *others])}
    command = [sys.executable, "-m", "wakeful.testing.simulate", "--jobs", "1", "--stop-at-first", *words]
    lived = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert "passed, " in lived.stdout, lived.stdout + lived.stderr
    return lived.stdout


@pytest.mark.parametrize("bug", BUGS, ids=[bug["name"].replace(" ", "_") for bug in BUGS])
def test_a_planted_bug_is_seen_within_two_hundred_seeds(bug, tmp_path):
    plant(bug, tmp_path)
    seen = f"rule: {bug['rule']}"
    # The seed that saw it last time usually sees it again; when the worlds are drawn anew, it is searched for.
    told = live(tmp_path, "--seed", str(bug["seed"]))
    if seen not in told:
        told = live(tmp_path, "--seeds", str(SEEDS))
    assert seen in told, told[-3000:]


def test_without_a_bug_nothing_is_seen(tmp_path):
    """The worlds of `test_simulation` are these same seeds; one of them shows that the copy itself is sound, and those
    beyond are lived here."""
    seeds = {0, *(bug["seed"] for bug in BUGS if bug["seed"] >= 100)}
    plant({"file": "core/guards.py", "old": "def cooldown(", "new": "def cooldown("}, tmp_path)
    for seed in seeds:
        assert "1 passed, 0 failed" in live(tmp_path, "--seed", str(seed))
