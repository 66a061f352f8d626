"""Another process that vetoes a run when it is told: `python -m soak.vetoer`; a folder a line in, its verdict out."""

from __future__ import annotations

import sys
from pathlib import Path

from wakeful.runners.process import ProcessRunner

if __name__ == "__main__":
    runner = ProcessRunner()
    for line in sys.stdin:
        print(runner.veto(Path(line.rstrip("\n"))), flush=True)
