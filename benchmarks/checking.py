"""`wakeful check` of a fleet file with 100,000 agents: the real command, its start included."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import perf_counter

from benchmarks.fleets import name_of
from benchmarks.lines import SIZES

_AGENT = "* {}\n:PROPERTIES:\n:INTERVAL: 1h\n:COOLDOWN: 5m\n:END:\n"


def check(folder: Path) -> float:
    """Seconds."""
    size = SIZES[-1]
    file = folder / "fleet.org"
    agents = "".join(_AGENT.format(name_of(index)) for index in range(size))
    file.write_text(f"#+TITLE: a large fleet\n#+RUN: true\n{agents}", encoding="utf-8")
    command = [sys.executable, "-c", "from wakeful.cli import main; main()", "check", str(file)]
    started = perf_counter()
    checked = subprocess.run(command, capture_output=True, text=True, timeout=120)
    taken = perf_counter() - started
    assert checked.returncode == 0 and f"{size} agents" in checked.stdout, checked.stdout + checked.stderr
    return taken
