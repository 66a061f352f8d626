"""To hold and to let go: pauses with a receipt, and runs that are to end.

Laws:
- Once a pause has returned nothing begins in its scope. The receipt lists what began before and is still alive.
- `now` also asks for the end of the open runs, in the transaction of the pause, and waits a while for it.
- Who paused by a file lets go by removing the file. Where the node that has it is gone, the operator may lift it.
"""

from __future__ import annotations

from datetime import datetime

from wakeful.control.base import Base, Target, find
from wakeful.control.callers import Caller
from wakeful.control.hooks import hook_sources
from wakeful.control.rows import Row, pause_row, run_row
from wakeful.core.errors import Mistake, Unknown
from wakeful.core.items import TERMINAL
from wakeful.core.peers import PEER_TODO
from wakeful.core.wakes import FLEET, ONE_OFF, Pause, agent_scope
from wakeful.core.wording import quoted, readable
from wakeful.fleet import values
from wakeful.store.protocol import RunRow, Store

FILE = "file"
SOURCE = "source:"
NO_REASON = "no reason given"
_MOST_OPEN = 10_000


class Holding(Base):
    async def pause(self, caller: Caller, *, reason: str = "", duration: str | None = None, now: bool = False) -> Row:
        """Nothing begins any more, by any path; `now` also ends what runs."""
        return await self._pause(caller, None, reason, duration, now)

    async def pause_agent(
        self, caller: Caller, *, agent: str, reason: str = "", duration: str | None = None, now: bool = False
    ) -> Row:
        """Nothing of that agent begins. `source:NAME` holds what comes from that source, of all agents."""
        target = await self.access.read(lambda store: _whom(store, agent))
        return await self._pause(caller, target, reason, duration, now)

    async def _pause(
        self, caller: Caller, target: Target | None, reason: str, duration: str | None, at_once: bool
    ) -> Row:
        now = self.clock()
        if at_once and target is not None and not target.agents:
            raise Mistake(f"runs are of an agent, not of {target.name}", "leave the end of runs out, or name the agent")
        pause = Pause(
            scope=_scope(target),
            owner=caller.name,
            reason=readable(reason, "the reason").strip() or NO_REASON,
            since=now,
            until=None if duration is None else now + values.duration(duration.strip()),
        )
        held = await self.access.write(lambda store: _hold(store, pause, target, at_once, caller.name, now))
        if self.beside is not None:
            # What was being started when the pause was committed has begun by then, or never will.
            await self.beside.starts_settled()
        up = await self.access.read(self.nodes_up) if self.shared else []
        engine = self.beside is not None or bool(up)
        if engine and at_once:
            held = list(dict.fromkeys([*held, *await self._end_late(target, caller)]))
            await self._wait_for_ends(target)
        running = await self.access.read(lambda store: _open(store, target))
        told = {"running": [run_row(row) for row in running], "ended": held}
        return {**pause_row(pause), **told, "engine": engine, **self._place(up)}

    def _place(self, up: list[str]) -> Row:
        """Who sees to it: the engine here, or other nodes."""
        return {"here": self.beside is not None, "shared": self.shared, "nodes": up}

    async def _end_late(self, target: Target | None, caller: Caller) -> list[int]:
        """What had begun in the same instant as the pause was not seen by it."""
        now = self.clock()
        open = [row.id for row in await self.access.read(lambda store: _open(store, target))]
        return await self.access.write(lambda store: store.stop(open, caller.name, now)) if open else []

    async def _wait_for_ends(self, target: Target | None) -> None:
        async def ended() -> bool | None:
            return not await self.access.read(lambda store: _open(store, target)) or None

        await self._until(ended, self.patience)

    async def resume(self, caller: Caller, *, owner: str | None = None) -> Row:
        """Lifts the pauses of the fleet, or those of one owner."""
        return await self._resume(caller, None, owner)

    async def resume_agent(self, caller: Caller, *, agent: str, owner: str | None = None) -> Row:
        """Lifts the pauses of an agent, also what it brought on itself: quarantine, a burst, a used-up quota."""
        target = await self.access.read(lambda store: _whom(store, agent))
        return await self._resume(caller, target, owner)

    async def _resume(self, caller: Caller, target: Target | None, owner: str | None) -> Row:
        now = self.clock()
        scopes = [agent_scope(name) for name in _paused_with(target)] if target and target.agents else [_scope(target)]
        pauses = await self.access.read(lambda store: store.pauses())
        ours = [pause for pause in pauses if pause.scope in scopes and owner in (None, pause.owner)]
        gone = await self.access.read(self._gone) if self.shared else {}
        kept = [pause for pause in ours if (node := _file_of(pause)) is not None and node not in gone]
        by_hand = [pause for pause in ours if pause not in kept]
        if ours and not by_hand:
            raise _held_by_file(kept[0])

        def write(store: Store) -> list[bool]:
            return [store.resume(pause.scope, caller.name, now, owner=pause.owner) for pause in by_hand]

        lifted = await self.access.write(write) if by_hand else []
        rest = await self.access.read(lambda store: _still_held(store, target))
        files = [{**pause_row(pause), "node": node} for pause in by_hand if (node := _file_of(pause)) is not None]
        told = {"scope": scopes[0], "resumed": any(lifted), "held_by": [pause_row(pause) for pause in rest]}
        return {**told, "files": [{**file, "state": gone[file["node"]]} for file in files]}

    def _gone(self, store: Store) -> dict[str, str]:
        """Nodes that are not at work, and how they went: who was forgotten was lost."""
        states = {row.name: self.node_state(row) for row in store.nodes(self.clock())}
        named = {node for pause in store.pauses() if (node := _file_of(pause)) is not None}
        return {node: states.get(node, "lost") for node in named if states.get(node) != "up"}

    async def kill(self, caller: Caller, *, run: int, at_once: bool = False) -> Row:
        """Asks for the end: TERM, the grace, KILL; `at_once` is KILL now. A one-off is then over for good."""
        now = self.clock()

        def write(store: Store) -> tuple[list[int], list[int]]:
            row = _run(store, run)
            stopped = store.stop([run], caller.name, now, at_once=at_once)
            one_offs = [task for task in row.tasks if stopped and _is_open_one_off(store, task)]
            for task in one_offs:
                store.change_task(task, "cancel", caller.name, now, reason=f"its run was killed by {caller.name}")
            return stopped, one_offs

        stopped, cancelled = await self.access.write(write)
        row = await self.access.read(lambda store: _run(store, run))
        up = await self.access.read(self.nodes_up) if self.shared else []
        engine = row.node in up if self.shared else self.beside is not None
        return {**run_row(row), "asked": bool(stopped), "cancelled": cancelled, "engine": engine, **self._place(up)}


def _whom(store: Store, name: str) -> Target:
    """An agent, or a source, which has no agents of its own."""
    if not name.startswith(SOURCE):
        return find(store, name)
    mirrored = {source for source, _ in store.mirrored_sources()}
    known = {PEER_TODO} | {row.source for row in store.sources()} | mirrored | hook_sources(store)
    if name.removeprefix(SOURCE) not in known:
        told = ", ".join(sorted(f"{SOURCE}{source}" for source in known)) or "none yet"
        raise Unknown(f"no source is called {quoted(name)}; known are {told}")
    return Target(name, ())


def _scope(target: Target | None) -> str:
    if target is None:
        return FLEET
    return agent_scope(target.name) if target.agents else target.name


def _hold(store: Store, pause: Pause, target: Target | None, at_once: bool, by: str, now: datetime) -> list[int]:
    store.pause(pause, now)
    open = [row.id for row in _open(store, target)] if at_once else []
    return store.stop(open, by, now) if open else []


def _open(store: Store, target: Target | None) -> list[RunRow]:
    rows = store.runs(open=True, limit=_MOST_OPEN)
    held = {row.agent.name for row in target.agents} if target else set()
    return [row for row in rows if target is None or row.agent in held]


def _file_of(pause: Pause) -> str | None:
    """The node whose PAUSE file it is; "" where there is but one."""
    owner, _, node = pause.owner.partition("@")
    return node if owner == FILE else None


def _held_by_file(pause: Pause) -> Mistake:
    node = _file_of(pause)
    if not node:
        return Mistake(f"a PAUSE file holds the fleet: {pause.reason}", "remove that file; nothing else lifts it")
    reason = f"a PAUSE file of node {node} holds the fleet: {pause.reason}"
    return Mistake(reason, f"remove that file on {node}; while {node} is up nothing else lifts it")


def _paused_with(target: Target) -> list[str]:
    """To resume an address is to resume its replicas too: quarantine holds each by its own name."""
    return [target.name, *(row.agent.name for row in target.agents if row.agent.name != target.name)]


def _still_held(store: Store, target: Target | None) -> list[Pause]:
    scopes = {FLEET, _scope(target)} | ({agent_scope(name) for name in target.names} if target else set())
    return [pause for pause in store.pauses() if pause.scope in scopes]


def _run(store: Store, run: int) -> RunRow:
    row = store.run(run)
    if row is None:
        raise Unknown(f"no run {run}")
    return row


def _is_open_one_off(store: Store, task: int) -> bool:
    item = store.item(task)
    return item is not None and item.source == ONE_OFF and item.state not in TERMINAL
