"""The table, and below it every column in which wakeful is behind a peer.

Laws:
- A rate and a share is the median of its rounds; a percentile is that of all its wakes together.
- A floor is no peer: it bounds what can be had. What was not measured is a dash, and never a zero.
- Nothing in it tells on which machine it was made, but of which kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from statistics import median

from benchmarks.peers.campaign import Sample
from benchmarks.peers.explanations import why
from benchmarks.peers.peer import Peer

# A 99th percentile of fewer is none.
ENOUGH = 100
EAGER = "polling every 10 ms"


@dataclass(frozen=True, slots=True)
class Column:
    key: str
    head: str
    what: str
    # Of a rate, the larger one leads.
    larger: bool
    digits: int


COLUMNS = (
    Column("one", "enqueue, one by one", "jobs/s", True, 0),
    Column("batch", "batches of 1,000", "jobs/s", True, 0),
    Column("callers", "50 callers", "jobs/s", True, 0),
    Column("drain", "drain", "jobs/s", True, 0),
    Column("together", "produce and drain", "jobs/s", True, 0),
    Column("p50", "wake p50, ms", "ms", False, 1),
    Column("p99", "wake p99, ms", "ms", False, 1),
    Column("idle", "idle, % of a core", "% of a core", False, 2),
    Column("server", "its server, idle", "% of a core", False, 2),
)
# What a peer's server does at rest is not the peer's to lead in.
COMPARED = COLUMNS[:-1]


@dataclass(frozen=True, slots=True)
class Row:
    peer: type[Peer]
    title: str
    values: dict[str, float]
    disturbed: frozenset[str]
    failed: dict[str, str]


# ---- rows


def rows(kinds: Iterable[type[Peer]], samples: list[Sample], missing: dict[str, str]) -> list[Row]:
    found = []
    for kind in kinds:
        own = [sample for sample in samples if sample.peer == kind.__name__]
        if kind.__name__ in missing:
            found.append(Row(kind, kind.title, {}, frozenset(), {"all": missing[kind.__name__]}))
            continue
        found.append(_row(kind, kind.title, [sample for sample in own if sample.measure != "eager"]))
        if eager := [sample for sample in own if sample.measure == "eager"]:
            found.append(_row(kind, f"{kind.title}, {EAGER}", eager))
    return found


def _row(kind: type[Peer], title: str, samples: list[Sample]) -> Row:
    values: dict[str, float] = {}
    disturbed: set[str] = set()
    failed: dict[str, str] = {}
    for measure in dict.fromkeys(sample.measure for sample in samples):
        taken = [sample for sample in samples if sample.measure == measure]
        good = [sample for sample in taken if not sample.error]
        if not good:
            failed[measure] = taken[-1].error
            continue
        # Where some rounds were quiet, the others are left out.
        calm = [sample for sample in good if not sample.disturbed] or good
        new = _calm(calm) if "wakes" in calm[0].found else {measure: median(each.found["rate"] for each in calm)}
        values |= new
        disturbed |= set(new) if any(sample.disturbed for sample in calm) else set()
    return Row(kind, title, values, frozenset(disturbed), failed)


def _calm(samples: list[Sample]) -> dict[str, float]:
    wakes = sorted(wake for sample in samples for wake in sample.found["wakes"])
    found = {key: median(sample.found[key] for sample in samples) for key in ("idle", "server")}
    found["p50"] = median(wakes)
    if len(wakes) >= ENOUGH:
        found["p99"] = wakes[ceil(0.99 * len(wakes)) - 1]
    if samples[0].found["server"] == 0 and not any(sample.found["server"] for sample in samples):
        del found["server"]
    return found


# ---- words


def table(found: list[Row]) -> Iterator[str]:
    yield "| |" + "|".join(f" {column.head} " for column in COLUMNS) + "|"
    yield "|---|" + "|".join("--:" for _ in COLUMNS) + "|"
    for row in found:
        title = f"**{row.title}**" if row.peer.ours or row.peer.floor else row.title
        yield f"| {title} |" + "|".join(f" {_cell(row, column)} " for column in COLUMNS) + "|"


def _cell(row: Row, column: Column) -> str:
    if column.key in row.values:
        return figure(row.values[column.key], column) + ("~" if column.key in row.disturbed else "")
    measure = "calm" if column.key in ("p50", "idle") else column.key
    return "failed" if row.failed.keys() & {measure, "all", "eager"} else "–"


def figure(value: float, column: Column) -> str:
    digits = 0 if value >= 1000 else column.digits
    return f"{value:,.{digits}f}"


def notes(found: list[Row]) -> Iterator[str]:
    seen = set()
    for row in found:
        if row.peer.note and row.peer not in seen:
            yield f"- {row.peer.title}: {row.peer.note}."
        seen.add(row.peer)


def failures(found: list[Row]) -> Iterator[str]:
    for row in found:
        for error in dict.fromkeys(row.failed.values()):
            measures = [measure for measure, said in row.failed.items() if said == error]
            yield f"- {row.title}, {', '.join(measures)}: {error}"


def behind(found: list[Row]) -> Iterator[str]:
    """One line for each row of ours and column, with everybody who leads in it."""
    others = [row for row in found if not row.peer.ours and not row.peer.floor]
    for row in found:
        for column in COMPARED:
            if not row.peer.ours or column.key not in row.values:
                continue
            own = row.values[column.key]
            sign = 1 if column.larger else -1
            ahead = [other for other in others if sign * other.values.get(column.key, own) > sign * own]
            if not ahead:
                continue
            ahead.sort(key=lambda other: -sign * other.values[column.key])
            led = ", ".join(f"{other.title} {figure(other.values[column.key], column)}" for other in ahead)
            yield f"- **{row.title}, {column.head}**: {figure(own, column)} behind {led}. {why(row.peer, column.key)}"


def document(found: list[Row], *, command: str, about: list[str], quick: bool) -> str:
    told = list(failures(found))
    warned = ["**A quick run: it shows that everything works. Its figures say nothing about who leads.**", ""]
    lines = [
        "# wakeful beside its peers",
        "",
        f"Made by `{command}`; what is measured, and how, is in [README.md](README.md#peers). Do not edit.",
        "",
        *(warned if quick else []),
        *(f"- {line}" for line in about),
        "",
        "A figure says little on another machine; those of one table were taken in turn, and may be compared.",
        "Rates are jobs a second. A tilde marks what others on the machine disturbed.",
        "",
        *table(found),
        "",
        *(["Failed:", "", *told, ""] if told else []),
        "## What they promise",
        "",
        *notes(found),
        "",
        "## Where wakeful is behind",
        "",
        *(list(behind(found)) or ["Nowhere, as far as it was measured."]),
        "",
    ]
    return "\n".join(lines)
