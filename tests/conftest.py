"""What holds for every test: a steady Hypothesis, a time for each suite, and no skip where CI=true.

Budgets are read from the table in docs/testing.md, so the document and the printed times cannot disagree.
"""

import gc
import os
import re
import signal
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# Each of the workers, and of the thousands of processes that tests start, would compile what it imports anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A commit waits for the disk, and most of what tests commit is thrown away: it goes to memory, where there is enough.
MEMORY, ROOM = "/dev/shm", 2 * 1024**3
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK):
    _disk = os.statvfs(MEMORY)
    if _disk.f_bavail * _disk.f_frsize > ROOM and not _disk.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = MEMORY

# Whoever is started in the background, and whatever it starts, would not hear an interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Steady: the same examples each time, so that green twice means green. To look for new ones:
# `pytest tests --hypothesis-profile=explore`.
settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, max_examples=2_000, print_blob=True)
settings.load_profile("steady")


class Suite(NamedTuple):
    name: str
    minutes: float
    paths: tuple[str, ...]


def suites(text: str) -> list[Suite]:
    """The rows `| name | minutes | paths | … |` of the first table in docs/testing.md."""
    rows = re.findall(r"^\| ([^|]+) \| ([\d.]+) \| ([^|]+) \|", text, re.MULTILINE)
    return [
        Suite(name.strip(), float(minutes), tuple(re.findall(r"`([^`]+)`", paths))) for name, minutes, paths in rows
    ]


def suite_of(path: str, known: list[Suite]) -> str:
    for suite in known:
        if any(path == place or (place.endswith("/") and path.startswith(place)) for place in suite.paths):
            return suite.name
    return "(no budget)"


class Ledger:
    """Adds up what each suite took, and remembers what was skipped and why."""

    def __init__(self, known: list[Suite], skips_fail: bool) -> None:
        self.known = known
        self.skips_fail = skips_fail
        self.seconds: dict[str, float] = defaultdict(float)
        self.skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[suite_of(report.nodeid.split("::")[0], self.known)] += report.duration
        if report.skipped and not hasattr(report, "wasxfail"):
            self.note_skip(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.note_skip(report)

    def note_skip(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        self.skipped.append(f"{report.nodeid}: {reason}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.skipped and self.skips_fail and session.exitstatus in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        write = terminalreporter.write_line
        budgets = {suite.name: suite.minutes * 60 for suite in self.known}
        if self.seconds:
            write("")
        for name, seconds in sorted(self.seconds.items()):
            budget = budgets.get(name)
            allowed = "" if budget is None else f"of {budget:5.0f} s"
            over = "  over its budget (docs/testing.md)" if budget is not None and seconds > budget else ""
            write(f"{name:<14} {seconds:7.1f} s {allowed}{over}")
        for line in self.skipped:
            write(f"skipped: {line}")
        if self.skipped and self.skips_fail:
            write(f"{len(self.skipped)} skipped, and CI=true allows none: install what they name", red=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-store", action="store_true", help="tell each story of the engine on every store")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):  # an xdist worker: its reports reach the ledger of the main process
        return
    known = suites((ROOT / "docs" / "testing.md").read_text(encoding="utf-8"))
    config.pluginmanager.register(Ledger(known, os.environ.get("CI") == "true"), "ledger")


def pytest_collection_finish() -> None:
    """Thousands of tests that are there to stay need not be looked through for what is no longer needed."""
    gc.collect()
    gc.freeze()
