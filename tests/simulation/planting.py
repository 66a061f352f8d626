"""Bugs of one line, each planted in a copy of the source: a simulation that finds nothing may also be one that cannot
see."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import wakeful

SOURCE = Path(wakeful.__file__).resolve().parent
BUGS: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "planted.toml").read_text(encoding="utf-8"),
)["bug"]
SEEDS, DAYS = 300, 1


def spoiled(bug: dict[str, Any]) -> str:
    """The file with the bug in it."""
    text = (SOURCE / str(bug["file"])).read_text(encoding="utf-8")
    count = text.count(bug["old"])
    assert count == 1, f"{bug['file']} has {bug['old']!r} {count} times: plant the bug anew in planted.toml"
    return text.replace(str(bug["old"]), str(bug["new"]))


def plant(bug: dict[str, Any], folder: Path) -> None:
    # With its bytecode, which knows by the instants of the files that nothing but the bug is new.
    shutil.copytree(SOURCE, folder / "wakeful")
    (folder / "wakeful" / bug["file"]).write_text(spoiled(bug), encoding="utf-8")


def live(folder: Path, *words: str) -> str:
    others = [place for place in sys.path if place and Path(place).resolve() != SOURCE.parent]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *others])}
    command = [sys.executable, "-m", "wakeful.testing.simulate", "--jobs", "1", "--stop-at-first", "--days", str(DAYS)]
    lived = subprocess.run([*command, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
    assert "passed, " in lived.stdout, lived.stdout + lived.stderr
    return lived.stdout


def must_be_seen(bug: dict[str, Any], folder: Path) -> None:
    """The seed that saw it last time usually sees it again; when the worlds are drawn anew, it is searched for."""
    plant(bug, folder)
    seen = f"rule: {bug['rule']}"
    told = live(folder, "--seed", str(bug["seed"]))
    if seen not in told:
        told = live(folder, "--seeds", str(SEEDS))
    assert seen in told, told[-3000:]
