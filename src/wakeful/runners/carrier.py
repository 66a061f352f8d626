"""Orders carried out: the one place that knows what an agent's run is made of, and where its folders are.

Laws:
- An order goes in, an ending comes out. What cannot be carried out (no definition, no such folder, a token that is not
  set) is an ending that says so, and is never raised.
- An agent that lives elsewhere (URL, TMUX) is a program of ours that speaks to it: a process like any other.
- A quiet beat never calls what the agent calls: it is the built-in dream, or the command in DREAM.
- `carry` returns when the start is settled: `started` is there, or the run has ended without.
- A definition is read when a run begins, so that an edit is live with the next one.

Below the data folder: `runs/<run>`, `work/<agent>` (where WORKDIR names no other), `memory`, `workers`, `checks`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from wakeful.core.agents import Agent, Runner
from wakeful.core.errors import Mistake, WakefulError
from wakeful.core.lifecycle import Kind
from wakeful.core.orders import Order
from wakeful.core.runs import Ending, ErrorClass, Result, Run, TaskEnd
from wakeful.core.wakes import Subject
from wakeful.runners.briefing import write_briefing, write_briefing_json
from wakeful.runners.checks import LIMIT as CHECK_LIMIT
from wakeful.runners.checks import Checks
from wakeful.runners.commands import split_command
from wakeful.runners.dream import dream_command, journal_briefing, memory_path
from wakeful.runners.elsewhere import QUIET, at_address, in_session
from wakeful.runners.environment import Surroundings, before_a_run, build_environment, secret_values, with_ourselves
from wakeful.runners.function import FunctionRunner, Link, Shift
from wakeful.runners.held import HeldShift
from wakeful.runners.lease import extend
from wakeful.runners.leavings import identify
from wakeful.runners.line import NurseryGone
from wakeful.runners.process import NO_BATCHES, VETOED, HeldRun, ProcessRunner
from wakeful.runners.protocol import FENCE, RESULT, Assignment, Checked, Found, Held
from wakeful.runners.record import TASKS
from wakeful.runners.trees import LIMIT as PULL_LIMIT
from wakeful.runners.trees import Tree, Trees

# In a run's folder, a link to the git work tree that it works in, if it works in one.
TREE = "tree"
# A definition is a prompt, not a library.
MOST_DEFINITION = 4 * 1024 * 1024


class Concluded:
    """A run that ended before anything was executed."""

    def __init__(self, run: int, ending: Ending) -> None:
        self._run = run
        self._ending = ending

    @property
    def run(self) -> int:
        return self._run

    @property
    def over(self) -> bool:
        return True

    async def wait(self) -> Ending:
        return self._ending

    async def batches(self) -> AsyncIterator[list[TaskEnd]]:
        for batch in NO_BATCHES:
            yield batch

    async def end(self, by: str, *, at_once: bool = False, task: int | None = None) -> None:
        return

    def extend(self, until: float) -> None:
        return


def no_trace(order: Order) -> str | None:
    return None


def no_secrets() -> tuple[str, ...]:
    return ()


class Carrier:
    def __init__(
        self,
        root: Path,
        data: Path,
        *,
        url: Callable[[], str],
        token: Callable[[Run], str],
        trace: Callable[[Order], str | None] = no_trace,
        hidden: Callable[[], tuple[str, ...]] = no_secrets,
        link: Link | None = None,
        base: Mapping[str, str],
        fence: timedelta = FENCE,
        check_limit: timedelta = CHECK_LIMIT,
        pull_limit: timedelta = PULL_LIMIT,
        quiet: timedelta = QUIET,
    ) -> None:
        """`root` is the folder of the fleet file, `base` our own environment; `trace` gives the TRACEPARENT of a run,
        where it is part of a trace; `hidden` is what no run may leave behind, whosever secret it is; a shorter `fence`
        or `quiet` is for tests."""
        self._root = root.absolute()
        self._data = data.absolute()
        self._url = url
        self._token = token
        self._trace = trace
        self._hidden = hidden
        self._fence = fence
        self._quiet = quiet
        self._around = Surroundings(base=with_ourselves(base), root=self._root, data=self._data)
        self._processes = ProcessRunner()
        self._functions = FunctionRunner(self._processes, self._data / "workers", link)
        self._carrying: set[int] = set()
        self._befores: dict[str, tuple[Agent, str, dict[str, str]]] = {}
        self._beginning: dict[int, HeldShift] = {}
        self._checks = Checks(self._processes, self._data / "checks", check_limit)
        self._trees = Trees(base, pull_limit)

    # -- runs ---------------------------------------------------------------------------------------------------
    async def carry(self, order: Order, check: Any = None, *, leased_until: float | None = None) -> Held:
        run = order.run.id
        self._carrying.add(run)
        try:
            return await self._carry(run, order, check, leased_until)
        finally:
            self._carrying.discard(run)

    async def _carry(self, run: int, order: Order, check: Any, leased_until: float | None) -> Held:
        tree = self._trees.holding(place) if (place := self._place(order.agent)) is not None else None
        if tree is not None:
            await tree.enter(run)
        try:
            held = await self._start(self._assign(order, check, tree, leased_until))
        except (WakefulError, OSError) as error:
            if tree is not None:
                tree.runs.discard(run)
            return Concluded(run, _failure(error))
        return self._keep(held, tree)

    async def _start(self, assignment: Assignment) -> HeldRun | HeldShift:
        try:
            if isinstance(assignment, Shift):
                return await self._begun(await self._functions.start(assignment))
            return await self._processes.start(assignment)
        except NurseryGone:
            # Whether it was started is not known: now it is, one way or the other.
            self._processes.veto(assignment.folder)
            return await self._adopt(assignment.run)

    async def _begun(self, shift: HeldShift) -> HeldShift:
        """Its worker may be long in importing the handler; meanwhile it can be vetoed."""
        self._beginning[shift.run] = shift
        who = identify(shift.folder)
        if who is not None and who.veto:
            shift.conclude(VETOED)
        try:
            await asyncio.shield(shift.begun)
        finally:
            del self._beginning[shift.run]
        return shift

    def _keep(self, held: HeldRun | HeldShift, tree: Tree | None) -> Held:
        if tree is not None:
            held.ended.add_done_callback(lambda _: tree.runs.discard(held.run))
        return held

    def extend(self, run: int, until: float) -> None:
        folder = self._folder(run)
        if run in self._carrying:
            with suppress(OSError):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            extend(str(folder), until)

    def find(self, run: int) -> Found:
        return self._processes.find(self._folder(run))

    async def adopt(self, run: int) -> Held:
        tree = None
        with suppress(OSError):
            tree = self._trees.holding(Path(os.readlink(self._folder(run) / TREE)))
        if tree is not None:
            tree.runs.add(run)
        return self._keep(await self._adopt(run), tree)

    async def _adopt(self, run: int) -> HeldRun | HeldShift:
        folder = self._folder(run)
        if (folder / TASKS).exists():
            return await self._functions.adopt(run, folder)
        return await self._processes.adopt(run, folder)

    def veto(self, run: int) -> bool:
        vetoed = self._processes.veto(self._folder(run))
        if vetoed and run in self._beginning:
            # Whoever carries it need not wait until its worker has found out.
            self._beginning[run].conclude(VETOED)
        return vetoed

    def discard(self, run: int) -> None:
        if self.find(run) is not Found.alive:
            shutil.rmtree(self._folder(run), ignore_errors=True)

    async def close(self) -> None:
        await self._checks.close()
        await self._functions.close()
        await self._processes.close()

    # -- before runs --------------------------------------------------------------------------------------------
    async def check(self, agent: Agent) -> Checked:
        """An agent without a CHECK is woken; so is one whose CHECK cannot be carried out."""
        if not agent.check:
            return Checked(wake=True)
        try:
            return await self._checks.ask(agent.name, self._question(agent, agent.check))
        except (WakefulError, OSError) as error:
            return Checked(wake=True, reason=f"the check could not be started: {error}")

    def _question(self, agent: Agent, command: str) -> Assignment:
        folder, workdir = self._checks.new_folder(agent.name), self._workdir(agent)
        # By the result file what a killed guardian left is found, here as in every run.
        environment = before_a_run(agent, self._around, url=self._url()) | {"WAKEFUL_RESULT": str(folder / RESULT)}
        return Assignment(
            run=0,
            epoch=0,
            folder=folder,
            command=split_command(command, "CHECK", workdir, self._root),
            workdir=workdir,
            environment=environment,
            wall_clock=self._checks.limit,
            grace=agent.kill_grace,
            secrets=secret_values(agent, self._around.base),
            hidden=self._hidden(),
        )

    async def pull(self, agent: Agent) -> str:
        return await self._trees.pull(self._place(agent) or self._root)

    # -- what a run is made of ----------------------------------------------------------------------------------
    def _assign(self, order: Order, check: Any, tree: Tree | None, leased_until: float | None) -> Assignment:
        agent, run = order.agent, order.run
        folder, workdir = self._folder(run.id), self._workdir(agent)
        token = self._token(run)
        common: dict[str, Any] = {
            "run": run.id,
            "epoch": run.epoch,
            "folder": folder,
            "workdir": workdir,
            "environment": build_environment(
                order, self._before(agent), token=token, folder=folder, traceparent=self._trace(order)
            ),
            "wall_clock": _limit(order),
            "grace": agent.kill_grace,
            "leased_until": leased_until,
            "fence": self._fence,
            "most_usd": agent.limits.usd_per_run,
            "most_tokens": agent.limits.tokens_per_run,
            "secrets": secret_values(agent, self._around.base, token),
            "hidden": self._hidden(),
        }
        definition = self._definition(agent)
        if _is_quiet(order):
            made = self._dream(order, definition, common)
        elif agent.runner is Runner.handler:
            made = self._shift(order, write_briefing_json(order, definition, check, unread=True), common)
        else:
            command = self._command(agent, workdir, common)
            text, written = write_briefing(order, definition, check)
            made = Assignment(command=command, briefing=text, briefing_json=written, **common)
        if not isinstance(made, Shift) or tree is not None:
            # The folder of a shift is made by its worker: to wait for the disk is not our business.
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if tree is not None:
            with suppress(FileExistsError):
                os.symlink(tree.path, folder / TREE)
        return made

    def _before(self, agent: Agent) -> dict[str, str]:
        """What is the same for all runs of an agent, as long as it is declared as it is."""
        url = self._url()
        known = self._befores.get(agent.name)
        if known is None or known[0] is not agent or known[1] != url:
            known = self._befores[agent.name] = (agent, url, before_a_run(agent, self._around, url=url))
        return known[2]

    def _command(self, agent: Agent, workdir: Path, common: dict[str, Any]) -> tuple[str, ...]:
        if not agent.target:
            raise Mistake("nothing says how it runs", "add RUN or HANDLER to the agent, or RUN to the fleet")
        if agent.runner is Runner.process or agent.runner is None:
            return split_command(agent.target, "RUN", workdir, self._root)
        if agent.runner is Runner.tmux:
            errand = in_session(agent.target, self._quiet)
        else:
            errand = at_address(agent.target, self._around.base)
        common["environment"] |= errand.environment
        common["secrets"] += errand.secrets
        return errand.command

    def _dream(self, order: Order, definition: str | None, common: dict[str, Any]) -> Assignment:
        """The journal is its briefing, whichever command reads it."""
        agent = order.agent
        if order.journal is None:
            raise WakefulError("a quiet beat came without its journal")
        if agent.dream:
            command = split_command(agent.dream, "DREAM", common["workdir"], self._root)
        else:
            command = dream_command(memory_path(self._data, agent.name))
        written = write_briefing_json(order, definition)
        return Assignment(command=command, briefing=journal_briefing(order.journal), briefing_json=written, **common)

    def _shift(self, order: Order, written: str, common: dict[str, Any]) -> Shift:
        return Shift(
            agent=order.agent.name,
            handler=order.agent.target or "",
            root=self._root,
            tasks=tuple(task.id for task in order.tasks),
            limits={task.id: task.timeout for task in order.tasks if task.timeout is not None},
            steps=order.steps,
            briefing_json=written,
            **common,
        )

    def _definition(self, agent: Agent) -> str | None:
        if agent.definition is None:
            return None
        try:
            with (self._root / agent.definition).open("rb") as file:
                text = file.read(MOST_DEFINITION + 1)
        except OSError as error:
            problem = f"the definition {agent.definition} cannot be read: {error.strerror}"
            raise Mistake(problem, "create it, or mend the path in DEF, which starts at the fleet file") from None
        if len(text) > MOST_DEFINITION:
            raise Mistake(f"the definition {agent.definition} has more than {MOST_DEFINITION} bytes", "shorten it")
        return text.decode(errors="replace")

    # -- folders ------------------------------------------------------------------------------------------------
    def _folder(self, run: int) -> Path:
        return self._data / "runs" / str(run)

    def _workdir(self, agent: Agent) -> Path:
        """Its own below the data folder, or the one that it declares: that is made only if it lies below the folder of
        the fleet file, for elsewhere it may be something that is not mounted, and only if it is not to be a clone."""
        workdir = self._root / agent.workdir if agent.workdir is not None else self._data / "work" / agent.name
        if not workdir.is_dir():
            below = Path(os.path.normpath(workdir)).is_relative_to(self._root)
            if agent.workdir is not None and (agent.gitops or not below):
                raise Mistake(f"the work folder {workdir} is not there", "create it, or mend the path in WORKDIR")
            workdir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return workdir

    def _place(self, agent: Agent) -> Path | None:
        """Whose work tree the agent works in, if any. Below the data folder there is nothing that git keeps, but an
        agent of GITOPS without a WORKDIR follows the folder of the fleet file."""
        if agent.workdir is not None:
            return self._root / agent.workdir
        return self._root if agent.gitops else None


def _limit(order: Order) -> timedelta:
    """A task's own, where the run is about one that has it. Of a shift it is the limit of those without."""
    own = None if order.agent.runner is Runner.handler or not order.tasks else order.tasks[0].timeout
    return own or order.agent.wall_clock(order.run.subject)


def _is_quiet(order: Order) -> bool:
    state = order.agent.lifecycle.state(order.run.position.state)
    return order.run.subject is Subject.beat and state is not None and state.kind is Kind.rem


def _failure(error: WakefulError | OSError) -> Ending:
    """A mistake is for a person to mend; a full disk may mend itself."""
    kind = ErrorClass.config if isinstance(error, Mistake) else ErrorClass.other
    return Ending(result=Result(error=f"it could not be started: {error}", error_class=kind))
