"""What agents saw of themselves, laid beside what the store says of them.

Each agent appends a line when it begins, every tenth of a second while it is alive, and when it ends, to one file; the
order of the lines is the order of events, whatever any clock says. So a process that is still there when the next run
of its agent has begun is seen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from wakeful.core.runs import FENCING, Ending, describe
from wakeful.store.protocol import RunRow
from wakeful.store.store import SqlStore

# What a run of each number does is known in advance: how many tenths of a second it takes, and whether it fails.
TENTHS = (1, 1, 2, 4, 7, 10, 15, 25, 50)
FAILS_EVERY = 7

# A day, and the same by hand for a fold that shares no code with ours.
LIFECYCLE = """#+START: add
* add
:PROPERTIES:
:KIND: wake
:REPEAT: 3
:NEXT: audit
:END:
* audit
:PROPERTIES:
:KIND: wake
:NEXT: plan
:END:
* plan
:PROPERTIES:
:KIND: wake
:REPEAT: 2
:NEXT: add
:END:
"""
DAY = {"add": (3, "audit"), "audit": (1, "plan"), "plan": (2, "add")}

# A pipe in which there is never anything is how to wait without starting a process. The kernel's count of seconds since
# boot goes on while the machine sleeps.
TELL = """
data=${WAKEFUL_RESULT%/runs/*}
tell() { read -r up _ < /proc/uptime; echo "$1 $WAKEFUL_AGENT $WAKEFUL_RUN_ID ${data##*/} $up" >> witness; }
exec 9<> silence
rest() { read -r -t "$1" -u 9; }
"""


def agent(tenths: Iterable[int] = TENTHS) -> str:
    """The program of a witness, whose run of each number lasts as long as that says."""
    lengths = " ".join(map(str, tenths))
    return f"""{TELL}
tell begin
lengths=({lengths})
for ((beat = lengths[WAKEFUL_RUN_ID % ${{#lengths[@]}}]; beat > 0; beat--)); do rest 0.1; tell alive; done
tell end
(( WAKEFUL_RUN_ID % {FAILS_EVERY} ))
"""


class Sign(NamedTuple):
    what: str
    agent: str
    run: int
    node: str = ""
    # Seconds since boot.
    at: float = 0.0


def read_signs(path: Path) -> list[Sign]:
    signs = []
    for line in path.read_text().splitlines():
        what, agent, run, node, at = line.split()
        signs.append(Sign(what, agent, int(run), node, float(at)))
    return signs


# A run that nobody could follow to its end: its node was gone, or it was fenced before another took its place.
NODE_GONE = describe(Ending(orphaned=True))
FENCED = describe(Ending(by=FENCING))
GUARDIAN_GONE = describe(Ending(lost=True))
LOSSES = frozenset({NODE_GONE, FENCED, GUARDIAN_GONE})


def lost_runs(store: SqlStore, allowed: Iterable[str] = LOSSES) -> dict[int, str]:
    """The runs that the store says were lost, and how; only those that may have been."""
    losses = set(allowed)
    return {row.id: row.reason for row in every_run(store) if row.outcome == "killed" and row.reason in losses}


def overlaps(signs: list[Sign], lost: Iterable[int] = ()) -> list[str]:
    """No two runs of an agent overlap, none is executed twice, and each that began ended or was lost."""
    open_runs: dict[str, int] = {}
    over, gone = set[int](), set(lost)
    found = []
    for what, agent, run, *_ in signs:
        if what == "begin":
            before = open_runs.get(agent)
            if before is not None:
                if before not in gone:
                    found.append(f"run {run} of {agent} began while run {before} was under way")
                over.add(before)
            if run in over or run == before:
                found.append(f"run {run} of {agent} was executed twice")
            open_runs[agent] = run
        elif open_runs.get(agent) != run:
            now = open_runs.get(agent)
            under = f"while run {now} was under way" if now is not None else "after its end"
            found.append(f"run {run} of {agent} was there ({what}) {under}")
        elif what == "end":
            over.add(open_runs.pop(agent))
    return found + [f"run {run} of {agent} never ended" for agent, run in open_runs.items() if run not in gone]


def agreement(signs: list[Sign], store: SqlStore, lost: Iterable[int] = ()) -> list[str]:
    """What was executed is what the store says, with the outcome that it had."""
    executed = {sign.run for sign in signs if sign.what == "begin"}
    ended = {sign.run for sign in signs if sign.what == "end"}
    gone = set(lost)
    found = []
    for row in every_run(store):
        if row.state == "ended" and row.id not in gone:
            due = "failed" if row.id % FAILS_EVERY == 0 else "done"
            if row.id not in executed:
                found.append(f"run {row.id} is {row.outcome}, and was never executed")
            elif row.outcome != due:
                found.append(f"run {row.id} is {row.outcome} ({row.reason}), and was {due}")
            elif row.id not in ended:
                found.append(f"run {row.id} is {row.outcome}, and was never seen to end")
        elif row.state not in ("ended", "void"):
            found.append(f"run {row.id} is still {row.state}")
        elif row.state == "void" and row.id in executed:
            found.append(f"run {row.id} is void, and was executed")
        executed.discard(row.id)
    return found + [f"run {run} was executed, and the store knows nothing of it" for run in executed]


def every_run(store: SqlStore) -> list[RunRow]:
    rows: list[RunRow] = []
    while page := store.runs(after=rows[-1].id if rows else 0, limit=1000):
        rows += page
    return rows


def positions(store: SqlStore) -> list[str]:
    """Each position is the fold of the outcomes that the events tell of its beats."""
    stands: dict[str, tuple[str, int]] = defaultdict(lambda: ("add", 0))
    after = 0
    while page := store.events(after=after, limit=1000, kinds=("ended",)):
        after = page[-1].id
        for event in page:
            told = event.fields or {}
            if event.agent and (told["subject"], told["outcome"]) == ("beat", "done"):
                state, hits = stands[event.agent]
                repeat, following = DAY[state]
                stands[event.agent] = (following, 0) if hits + 1 == repeat else (state, hits + 1)
    found = []
    for agent in store.agents():
        standing = store.standing(agent.name)
        assert standing is not None
        stored, folded = (standing.position.state, standing.position.hits), stands[agent.name]
        if stored != folded:
            found.append(f"{agent.name} stands at {stored}, and its outcomes lead to {folded}")
    return found


def once_each(store: SqlStore) -> list[str]:
    """The events tell of each run's start and end once."""
    told: Counter[tuple[str, int | None]] = Counter()
    after = 0
    while page := store.events(after=after, limit=1000, kinds=("started", "ended")):
        after = page[-1].id
        told.update((event.kind.value, event.run) for event in page)
    return [f"run {run} is told to have {what} {times} times" for (what, run), times in told.items() if times > 1]


class Gap(NamedTuple):
    seconds: float
    agent: str
    # The run after which it was seen no more, and the one that followed.
    before: int
    after: int
    moved: bool


def gaps(signs: list[Sign]) -> list[Gap]:
    """From the last sign of each run of an agent to the beginning of its next, the longest first."""
    last: dict[str, Sign] = {}
    found = []
    for sign in signs:
        known = last.get(sign.agent)
        if sign.what == "begin" and known is not None:
            moved = known.node != sign.node
            found.append(Gap(round(sign.at - known.at, 2), sign.agent, known.run, sign.run, moved))
        last[sign.agent] = sign
    return sorted(found, reverse=True)
