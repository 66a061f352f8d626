"""schemathesis over the description of the API: all of its checks, stateful too, against a real control and store.

Run as a program it takes longer: `make fuzz EXAMPLES=200`. What is left out: the live streams, which never end, and
the backup, which would write wherever a path happens to lead.
"""

import argparse
import itertools
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.http.recorded import morning
from tests.http.served import KEYS
from wakeful.http.auth import run_token

LEFT_OUT = ("/v1/stream", "/v1/runs/{run}/log", "/v1/backup")
PHASES = ("examples", "coverage", "fuzzing", "stateful")
# What a schema cannot say, as that an instant lies ahead or that a task is dead, is a mistake; and who has seen another
# version is told so. Whatever else is refused although the description allows it is found.
CONFIGURED = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", "400", "401", "403", "404", "409", "412"]

[phases.stateful.generation]
max-examples = {sequences}
"""
_RAN = re.compile(r"^ *([0-9,]+) generated", re.MULTILINE)


def fuzz(examples: int, phases: Iterable[str] = PHASES, seed: int = 1, *, by_run: bool = False) -> tuple[int, str]:
    """As the operator, or as a run; so many requests for each operation, and sequences of them. How many were made in
    all, and what schemathesis says; raises where it found something."""
    # Every wrong token comes a long while after the one before it: that there may be too many is another test's.
    clock = itertools.count(0.0, 100.0)
    with tempfile.TemporaryDirectory() as name, morning(Path(name), clock=lambda: next(clock)) as fleet:
        fleet.messages()
        fleet.tasks()
        fleet.day()
        token = run_token(KEYS, *fleet.house.begin("wren"), fleet.house.now) if by_run else KEYS.operator
        folder, port = Path(name), fleet.house.served.port
        (folder / "schemathesis.toml").write_text(CONFIGURED.format(sequences=5 * examples))
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(folder / "schemathesis.toml"), "run"),
            *(f"http://127.0.0.1:{port}/openapi.json", "-H", f"Authorization: Bearer {token}"),
            *("--phases", ",".join(phases), "--max-examples", str(examples), "--seed", str(seed)),
            *("--checks", "all", "--continue-on-failure", "--suppress-health-check", "all"),
            *("--warnings", "off", "--no-color"),
            *(part for path in LEFT_OUT for part in ("--exclude-path", path)),
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    if done.returncode:
        raise AssertionError(told)
    found = _RAN.search(told)
    return int(found[1].replace(",", "")) if found else 0, told


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    try:
        for by_run in (False, True):
            print(fuzz(given.examples, seed=given.seed, by_run=by_run)[1])
    except AssertionError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
