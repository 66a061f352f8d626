"""The whole audit: the events first, then every table once, all of one moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from wakeful.control.auditing.chain_rows import ChainRows
from wakeful.control.auditing.findings import RULES, Finding, Findings
from wakeful.control.auditing.fleet_rows import FleetRows
from wakeful.control.auditing.history import History
from wakeful.control.auditing.item_rows import ItemRows
from wakeful.control.auditing.pages import Pages, Progress, Row
from wakeful.control.auditing.rest_rows import RestRows
from wakeful.control.auditing.run_rows import RunRows
from wakeful.control.auditing.swept import Swept
from wakeful.control.auditing.task_rows import TaskRows
from wakeful.control.auditing.wake_rows import WakeRows
from wakeful.core.codec import write_time
from wakeful.store.protocol import Audited


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`counts` are all findings by rule, of which as many are in `findings` as are worth reading."""

    findings: tuple[Finding, ...]
    counts: dict[str, int]
    rows: dict[str, int]
    # Since when everything is told; None where that is the beginning.
    since: datetime | None

    @property
    def adds_up(self) -> bool:
        return not self.counts


def audit(store: Audited, now: datetime, progress: Progress | None = None) -> Report:
    """Reads only, on the calling thread."""
    with store.still():
        history, until = _hold(Pages(store, progress), now, None)
        if until is not None:
            # Retention is under way, and has taken rows whose events it has not come to yet: it begins behind them.
            history, _ = _hold(Pages(store, progress), now, until)
    return Report(
        findings=tuple(history.findings),
        counts=dict(history.findings.counts),
        rows=history.pages.counts,
        since=history.counts.since if history.start < 1 << 62 else None,
    )


def _hold(pages: Pages, now: datetime, swept_until: int | None) -> tuple[History, int | None]:
    findings = Findings()
    history = History(pages, findings, now, swept_until=swept_until)
    history.read()
    runs = RunRows(history, findings)
    runs.read()
    wakes = WakeRows(history, runs, findings)
    wakes.read()
    items = ItemRows(history, runs, wakes, findings)
    items.read()
    showings = runs.read_shown(set(items.of))
    tasks = TaskRows(history, items, runs, wakes, findings)
    tasks.read()
    ChainRows(history, runs, wakes, items, tasks, findings).read()
    fleet = FleetRows(history, runs, wakes, findings)
    fleet.read()
    RestRows(history, fleet, items, tasks, runs, findings).read()
    runs.read_output()
    swept = Swept(history, runs, wakes, items, tasks, findings)
    swept.look(showings)
    return history, swept.until


def report_row(report: Report) -> Row:
    """As JSON holds it."""
    return {
        "adds_up": report.adds_up,
        "since": None if report.since is None else write_time(report.since),
        "rows": report.rows,
        "counts": report.counts,
        "findings": [
            {
                "rule": finding.rule,
                "says": RULES[finding.rule][0],
                "rows": list(finding.rows),
                "expected": finding.expected,
                "found": finding.found,
                "what_to_do": finding.what_to_do,
            }
            for finding in report.findings
        ],
    }
