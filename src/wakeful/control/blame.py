"""Who is to blame for a run: the chain from its root to it, what it woke itself, and what all of that has cost.

Laws:
- The chain is walked from the run upwards, by who asked for each wake, however large the lineage is; of a very long one
  the nearest part is told, and its root.
- Of a lineage at most a bounded number of wakes is told and counted; that there are more is said, never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wakeful.control.base import Base
from wakeful.control.callers import Caller
from wakeful.control.messages import FOLDER
from wakeful.control.rows import VERDICTS, Row, time_or_none, usage
from wakeful.core.codec import write_time
from wakeful.core.errors import Unknown
from wakeful.core.items import Item, Kind
from wakeful.core.standing import Spend
from wakeful.core.wakes import Cause, Wake
from wakeful.store.protocol import RunRow, Store, WakeRow

# Of one lineage; its runs are read one by one.
MOST_WAKES = 500
# How far up a chain is walked, from the run that is asked about; its root is told however far that is.
LONGEST_CHAIN = 200

# Of a run that nobody began.
VOID = "void"


class Blame(Base):
    async def blame(self, caller: Caller, *, run: int) -> Row:
        """What led to the run, and what came of it so far."""
        return await self.access.read(lambda store: _blame(store, run))


def _blame(store: Store, id: int) -> Row:
    run = store.run(id)
    wake = store.wake(run.wake) if run else None
    if run is None or wake is None:
        raise Unknown(f"no run {id}")
    chain = _chain(store, run, wake)
    lineage = store.lineage(wake.wake.root or wake.wake.id, limit=MOST_WAKES + 1)
    known = {row.wake.id: row for row in (*lineage[:MOST_WAKES], *(row for row, _ in chain))}
    runs = _runs(store, known.values(), [each for _, each in chain])
    tries: dict[int, list[RunRow]] = {}
    for each in runs.values():
        tries.setdefault(each.wake, []).append(each)
    rows = [_link(row, tries.get(row.wake.id, []), runs) for _, row in sorted(known.items())]
    first = _first(store, chain[0][0], wake)
    return {
        "run": id,
        "agent": run.agent,
        "depth": wake.wake.depth,
        "root": _root(store, first),
        # Else what began it is no longer kept.
        "whole": first.by_run is None,
        "chain": [_link(row, [each], runs) for row, each in chain],
        "woke": [row for row in rows if row["by_run"] == id],
        "lineage": _lineage(rows, cut=len(lineage) > MOST_WAKES),
        "items": rows,
    }


def _chain(store: Store, run: RunRow, wake: WakeRow) -> list[tuple[WakeRow, RunRow]]:
    """From the root down to this one, each wake with the run of it that asked for the next."""
    chain = [(wake, run)]
    while len(chain) < LONGEST_CHAIN and chain[-1][0].wake.by_run is not None:
        parent = store.run(chain[-1][0].wake.by_run)
        before = store.wake(parent.wake) if parent else None
        if parent is None or before is None:
            break
        chain.append((before, parent))
    return chain[::-1]


def _first(store: Store, top: WakeRow, wake: WakeRow) -> Wake:
    """The root; or, where that is no longer kept, as far up as there is something. A chain may be longer than anybody
    would read, but every wake knows its root."""
    root = top if top.wake.by_run is None or wake.wake.root is None else store.wake(wake.wake.root)
    return (root or top).wake


def _runs(store: Store, wakes: Iterable[WakeRow], known: Iterable[RunRow]) -> dict[int, RunRow]:
    """The runs that came of these wakes or asked for them. A wake that failed and was tried again has several."""
    runs = {run.id: run for run in known}
    for wake in wakes:
        for id in (*wake.runs, wake.wake.by_run):
            found = store.run(id) if id is not None and id not in runs else None
            if found is not None and found.state != VOID:
                runs[found.id] = found
    return runs


def _link(row: WakeRow, tries: Sequence[RunRow], runs: Mapping[int, RunRow]) -> Row:
    """One wake of a lineage, with what came of it."""
    wake, run = row.wake, max(tries, key=lambda each: each.id) if tries else None
    parent = runs.get(wake.by_run) if wake.by_run is not None else None
    return {
        "wake_id": wake.id,
        "parent": parent.wake if parent else None,
        "run_id": run.id if run else None,
        "agent": run.agent if run else wake.agent or wake.role,
        "cause": wake.cause.value,
        "subject": wake.subject.value,
        "from": wake.sender,
        "reason": wake.reason,
        "depth": wake.depth,
        "by_run": wake.by_run,
        "requested_at": write_time(wake.requested_at),
        "verdict": VERDICTS[row.state].value,
        "guard": row.guard,
        "joined": row.joined,
        "state": run.state if run else row.state,
        "outcome": run.outcome.value if run and run.outcome else None,
        "ended_at": time_or_none(run.ended_at) if run else None,
        "runs": len(tries),
        "run_reason": run.reason if run else "",
        "usage": usage(sum((each.spend for each in tries), Spend())),
    }


def _lineage(rows: Sequence[Row], *, cut: bool) -> Row:
    return {
        "wakes": len(rows),
        "runs": sum(row["runs"] for row in rows),
        "refused": sum(row["verdict"] == "refuse" for row in rows),
        "usage": {
            "tokens": sum(row["usage"]["tokens"] for row in rows),
            "usd": round(sum(row["usage"]["usd"] for row in rows), 6),
        },
        # There is more than this: the numbers are the least.
        "cut": cut,
    }


def _root(store: Store, wake: Wake) -> Row:
    """Who or what began it."""
    id = wake.task if wake.task is not None else wake.item
    item = store.item(id) if id is not None else None
    return {
        "what": _what(wake, item),
        "cause": wake.cause.value,
        "agent": wake.agent or wake.role,
        "from": (item.sender if item else None) or wake.sender,
        "reason": wake.reason,
        "at": write_time(wake.requested_at),
        "wake_id": wake.id,
        "item": _item(item) if item else None,
    }


def _what(wake: Wake, item: Item | None) -> str:
    if item is not None and item.source == FOLDER:
        return "file"
    if item is not None and item.kind is Kind.message:
        return "message" if item.source is None else "source"
    if wake.cause is Cause.task:
        return "task"
    # A beat that somebody asked for by its instant is theirs.
    return "operator" if wake.cause is Cause.operator or (wake.one_off and wake.sender) else wake.cause.value


def _item(item: Item) -> Row:
    return {"id": item.id, "subject": item.subject, "source": item.source, "external_id": item.external_id}
