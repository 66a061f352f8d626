"""A tally and the backlog as text, in the exposition format of Prometheus.

Laws:
- Exactly the names of the contract. Nothing about this process or its interpreter, and no `_created`.
- Counts are this node's own. What stands in the store is told by one node of those that are up, the first by name: so a
  sum over the nodes is right for every series.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wakeful.store.protocol import Backlog
from wakeful.telemetry.tally import MOST_AGENTS, OTHER, Histogram, Tally

MILLION = 1_000_000
# Messages and tasks of every agent, and as many roles again.
MOST_QUEUES = 3 * MOST_AGENTS


def exposition(tally: Tally, backlog: Backlog | None, now_seconds: float) -> str:
    """`backlog` is None where another node tells it; `now_seconds` is when it was looked at."""
    lines: list[str] = []
    lines += _head("wakeful_run_completed_total", "counter", "Runs that ended, by agent, cause and outcome.")
    lines += _labelled("wakeful_run_completed_total", ("agent", "cause", "outcome"), tally.completed.items())
    lines += _histogram("wakeful_run_duration_seconds", "How long runs took, from start to end.", tally.duration)
    lines += _head("wakeful_wake_decided_total", "counter", "Verdicts on wakes, by agent, cause, verdict and guard.")
    lines += _labelled("wakeful_wake_decided_total", ("agent", "cause", "verdict", "guard"), tally.decided.items())
    lines += _histogram("wakeful_slot_wait_seconds", "How long admitted wakes waited for a free slot.", tally.slot_wait)
    lines += _histogram(
        "wakeful_schedule_lag_seconds", "How long after its due instant a beat was admitted.", tally.lag
    )
    lines += _head("wakeful_items_open", "gauge", "Open messages and tasks, by agent (or role) and kind.")
    if backlog is not None:
        lines += _labelled("wakeful_items_open", ("agent", "kind"), _bounded(backlog.open).items())
    lines += _head("wakeful_oldest_unhandled_seconds", "gauge", "Age of the oldest item that no run has handled yet.")
    if backlog is not None:
        age = 0.0 if backlog.oldest is None else max(0.0, now_seconds - backlog.oldest.timestamp())
        lines.append(f"wakeful_oldest_unhandled_seconds {age!r}")
    lines += _head("wakeful_model_tokens_total", "counter", "Tokens that runs were billed.")
    lines.append(f"wakeful_model_tokens_total {tally.tokens}")
    lines += _head("wakeful_model_cost_usd_total", "counter", "Dollars that runs were billed.")
    lines.append(f"wakeful_model_cost_usd_total {tally.cost / MILLION!r}")
    return "\n".join([*lines, ""])


def _head(name: str, kind: str, help: str) -> tuple[str, str]:
    return f"# HELP {name} {help}", f"# TYPE {name} {kind}"


def _labelled(name: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], int]]) -> list[str]:
    """Names of agents and closed vocabularies need no escaping; a role may hold anything."""
    form = name + "{" + ",".join(f'{label}="%s"' for label in labels) + "} "
    return [form % tuple(map(_escaped, key)) + str(value) for key, value in values]


def _bounded(open: Mapping[tuple[str, str], int]) -> Mapping[tuple[str, str], int]:
    """A role is whatever somebody wrote: beyond the most, what is open is counted together."""
    if len(open) <= MOST_QUEUES:
        return open
    kept = sorted(open.items(), key=lambda each: (-each[1], each[0]))
    told = dict(kept[:MOST_QUEUES])
    for (_, kind), count in kept[MOST_QUEUES:]:
        told[OTHER, kind] = told.get((OTHER, kind), 0) + count
    return told


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value


def _histogram(name: str, help: str, histogram: Histogram) -> list[str]:
    lines, below = list(_head(name, "histogram", help)), 0
    bounds = [*(str(float(bound)) for bound in histogram.bounds), "+Inf"]
    for bound, count in zip(bounds, histogram.counts, strict=True):
        below += count
        lines.append(f'{name}_bucket{{le="{bound}"}} {below}')
    return [*lines, f"{name}_sum {histogram.sum!r}", f"{name}_count {below}"]
