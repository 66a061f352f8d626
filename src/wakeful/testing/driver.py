"""A small engine, inline and under virtual time: what the real one does, without anything that waits.

Laws:
- It keeps nothing that it could not lose: a crash at any commit leaves the store and the guardians, and `recover`
  begins from those alone.
- It sleeps until the store's own word (`due.next_at`), a guardian's end, or a nudge; it never polls. Work that the
  store forgets to announce is therefore never found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from wakeful.core.admission import admit
from wakeful.core.agents import Fleet
from wakeful.core.errors import Stale
from wakeful.core.items import State
from wakeful.core.orders import Order
from wakeful.core.runs import Ending
from wakeful.core.settlement import settle
from wakeful.core.wakes import VerdictKind, Wake
from wakeful.store.protocol import Decision, Finish, RunRow, Store
from wakeful.testing.faults import Crash, Faults
from wakeful.testing.runner import Guardian, VirtualRunner
from wakeful.testing.witness import Declared, Execution, Witness

# There is no other node that could take a run over.
LEASE = timedelta(days=365)
NODE = "here"
# One instant may take a few rounds (a decision frees what another waits for), never this many.
MOST_ROUNDS = 40


class Driver:
    def __init__(
        self,
        store: Store,
        runner: VirtualRunner,
        witness: Witness,
        faults: Faults,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """`meanwhile` is what others do to the store between a decision and the start that it leads to."""
        self.store = store
        self.runner = runner
        self.witness = witness
        self.faults = faults
        self.meanwhile = meanwhile
        self.held: dict[int, int] = {}
        self._unclaimed = False
        self._told: set[tuple[int, int]] = set()

    # -- starting ---------------------------------------------------------------------------------------------
    def boot(self, fleet: Fleet) -> None:
        self.store.join(NODE, NODE, "", self.witness.call("join").at, LEASE)
        self.declare(fleet, boot=True)
        self.recover()

    def declare(self, fleet: Fleet, *, boot: bool = False) -> None:
        call = self.witness.call("declare")
        declared = Declared(fleet=fleet, call=call, boot=boot)
        self.witness.declared.append(declared)
        try:
            self.store.declare(fleet, call.at, boot=boot)
            declared.committed = True
        except Crash as crash:
            declared.committed = crash.committed
            raise

    def recover(self) -> None:
        """Adopt live guardians, finish what left an exit record, bury what left none, void what never started."""
        for row in self.store.runs(open=True):
            if row.state == "running":
                self._recover(row)
            else:
                self._unclaimed = True

    def _recover(self, row: RunRow) -> None:
        guardian = self.runner.guardians.get(row.id)
        if guardian is None:
            if self.runner.veto(row.id):
                call = self.witness.call("void")
                self.store.void(row.id, row.epoch, call.at)
            return
        self.held[row.id] = row.epoch
        if guardian.alive:
            self._renew([row.id])

    def _renew(self, runs: Sequence[int]) -> None:
        call = self.witness.call("renew")
        pairs = [(run, self.held[run]) for run in runs]
        if self.store.renew(NODE, pairs, call.at, LEASE).runs != tuple(runs):
            self.witness.complain(f"runs {runs} are held by live guardians, but renew denies it")

    # -- one turn ---------------------------------------------------------------------------------------------
    def turn(self) -> timedelta | None:
        """Do whatever is to be done at this instant; the elapsed time at which to look again."""
        self.settle()
        self.store.expire(self.witness.call("expire").at)
        if self._unclaimed:
            self._unclaimed = False
            self.start()
        for _ in range(MOST_ROUNDS):
            due = self.store.due(self.witness.call("due").at)
            if not due.wakes:
                return None if due.next_at is None else self.witness.clock.until(due.next_at)
            self.decide(due.wakes)
        self.witness.complain(f"{MOST_ROUNDS} rounds at one instant, and still due: {due.wakes}")
        return None

    def decide(self, wakes: Sequence[Wake]) -> list[Decision]:
        call = self.witness.call("decide")
        decisions = self.store.decide(wakes, admit, call.at)
        for decision in decisions:
            self.witness.note("decided", decision.wake, decision.verdict.kind, decision.verdict.guard, decision.run)
        if any(decision.verdict.kind is VerdictKind.admit for decision in decisions):
            self.meanwhile()
            self.start()
        return decisions

    def start(self) -> None:
        call = self.witness.call("claim")
        for order in self.store.claim(NODE, call.at, LEASE):
            self.faults.maybe("before a start", weight=20)
            self.held[order.run.id] = order.run.epoch
            guardian = self.runner.start(order, self.witness.clock.elapsed)
            if guardian is None:
                self.witness.complain(f"run {order.run.id} was claimed although it had been started or vetoed")
                continue
            seen = {item.id: item.fingerprint for item in order.items}
            self.witness.executions[order.run.id] = Execution(
                order=order, claimed=call, started=guardian.started, seen=seen
            )
            self.witness.note("started", order.run.id, order.run.agent, sorted(seen.items()), _ids(order))

    # -- ending -----------------------------------------------------------------------------------------------
    def settle(self) -> None:
        """Settle what the guardians have written: each task of a shift as it ends, then whole runs in one batch."""
        ends = []
        for run, epoch in self.held.items():
            guardian = self.runner.guardians[run]
            self._settle_tasks(guardian, epoch)
            if not guardian.alive:
                ending = guardian.exit or Ending(lost=True, elapsed=self.witness.clock.elapsed - guardian.started)
                self.witness.executions[run].told = ending
                ends.append(Finish(run=run, epoch=epoch, ending=ending))
        if not ends:
            return
        call = self.witness.call("finish")
        for finish, outcome in zip(ends, self.store.finish(ends, settle, call.at), strict=True):
            self.witness.executions[finish.run].settled = call
            self.witness.note("finished", finish.run, outcome)
            del self.held[finish.run]

    def _settle_tasks(self, guardian: Guardian, epoch: int) -> None:
        run = guardian.order.run.id
        for end in guardian.task_exits:
            if (run, end.task) in self._told:
                continue
            self._told.add((run, end.task))
            # After a crash nobody remembers whether this end was told already; the store does.
            item = self.store.item(end.task)
            if item is None or item.state is not State.in_progress:
                continue
            call = self.witness.call("finish_tasks")
            self.witness.executions[run].tasks[end.task] = end
            try:
                told = self.store.finish_tasks(run, epoch, [end], call.at)
            except Stale:
                told = [None]
            if told == [None]:
                self.witness.note("told already", run, end.task)

    def finish_again(self, run: int, epoch: int, ending: Ending) -> bool:
        """A late write, as a fenced or repeated engine would make it; whether it was refused."""
        call = self.witness.call("finish again")
        try:
            self.store.finish([Finish(run=run, epoch=epoch, ending=ending)], settle, call.at)
        except Stale:
            return True
        return False


def _ids(order: Order) -> list[int]:
    return [task.id for task in order.tasks]
