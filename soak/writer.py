"""A process that writes to a store from many callers until it is killed: `python -m soak.writer FOLDER LIFE`.

Laws:
- A line on stdout is an acceptance. It is written after the call returned, never before, and in one piece.
- It begins as an engine would: open the folder, declare, end what the last life left open, then go on.
- With SOAK_LIES=early it says so before the commit instead: the negative control, which the checker must catch.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TypeVar

from soak.fleet import NAMES, ROLE, TICK, Clock, elapsed, fleet
from wakeful.core.admission import admit
from wakeful.core.items import Kind, NewItem, Origin, Priority, Ring
from wakeful.core.orders import Order
from wakeful.core.runs import Ending, Result
from wakeful.core.settlement import settle
from wakeful.core.standing import Spend
from wakeful.store.folder import DataFolder
from wakeful.store.protocol import Decision, Finish, Recorded, TaskEnd
from wakeful.store.sqlite import open_sqlite
from wakeful.store.store import SqlStore
from wakeful.store.writer import Writer

T = TypeVar("T")

RECORDERS = 6
FINISHERS = 3
PAGE = 8
LEASE = 15 * TICK
LIES = os.environ.get("SOAK_LIES") == "early"

Tell = Callable[[T], Sequence[str]]


def say(lines: Sequence[str]) -> None:
    """One write for each line; a pipe takes so short a one whole or not at all."""
    for line in lines:
        os.write(1, f"{line}\n".encode())


class Life:
    """One life of the process, from its start to the kill."""

    def __init__(self, store: SqlStore, life: int) -> None:
        self.store = store
        self.writer = Writer(store)
        self.clock = Clock(life)
        self.life = life
        self.orders: asyncio.Queue[Order] = asyncio.Queue()

    async def accept(self, verb: Callable[[SqlStore], T], tell: Tell[T]) -> T:
        if LIES:
            return await self.writer.write(_early(verb, tell))
        answer = await self.writer.write(verb)
        say(tell(answer))
        return answer

    # -- beginning ----------------------------------------------------------------------------------------
    async def begin(self) -> None:
        now = self.clock.now()
        await self.accept(lambda store: store.declare(fleet(), now, boot=True), lambda _: ["declare"])
        for pause in self.store.pauses():
            await self.resume(pause.scope)
        for run in self.store.runs(open=True):
            if run.state == "admitted":
                await self.void(run.id, run.epoch)
            else:
                await self.finish(run.id, run.epoch, Ending(lost=True, elapsed=elapsed(run.id)))

    async def resume(self, scope: str) -> None:
        now = self.clock.now()
        await self.writer.write(lambda store: store.resume(scope, "soak", now))

    async def void(self, run: int, epoch: int) -> None:
        now = self.clock.now()
        await self.accept(lambda store: store.void(run, epoch, now), lambda _: [f"void {run} {epoch}"])

    async def run(self) -> None:
        await self.begin()
        threading.Thread(target=self.record_from_thread, daemon=True).start()
        recorders = [self.record(caller) for caller in range(RECORDERS)]
        finishers = [self.end_orders(caller) for caller in range(FINISHERS)]
        await asyncio.gather(self.decide(), *recorders, *finishers)

    # -- what arrives -------------------------------------------------------------------------------------
    async def record(self, caller: int) -> None:
        dice = random.Random(f"{self.life} {caller}")
        items = [self._item(dice, caller, 0)]
        number, again = 0, False
        while True:
            await self.accept(_recording(items, self.clock.now()), _recorded(items, again))
            # Now and then the same again, as from a caller that never heard of its acceptance.
            again = dice.random() < 0.1
            if not again:
                number += len(items)
                items = [self._item(dice, caller, number + part) for part in range(dice.randint(1, 3))]

    def record_from_thread(self) -> None:
        dice = random.Random(f"{self.life} thread")
        clock = Clock(self.life)
        for number in count():
            items = [self._item(dice, RECORDERS, number)]
            verb, tell = _recording(items, clock.now()), _recorded(items, False)
            if LIES:
                self.writer.submit(_early(verb, tell)).result()
            else:
                say(tell(self.writer.submit(verb).result()))

    def _item(self, dice: random.Random, caller: int, number: int) -> NewItem:
        key = f"{self.life}/{caller}/{number}"
        body = key * dice.choice((1, 10, 400))
        if dice.random() < 0.4:
            agent = dice.choice((None, None, *NAMES[:4]))
            role = ROLE if agent is None else None
            return NewItem(kind=Kind.task, agent=agent, role=role, subject=key, body=body, dedupe=key)
        ring = dice.choice((Ring.silent, Ring.silent, Ring.peer, Ring.news))
        return NewItem(
            kind=Kind.message,
            agent=dice.choice(NAMES),
            sender=dice.choice(NAMES),
            origin=Origin.agent,
            body=body,
            priority=dice.choice([*Priority]),
            ring=ring,
            dedupe=key,
        )

    # -- the one door, and the end of runs ----------------------------------------------------------------
    async def decide(self) -> None:
        while True:
            await self.decide_due()
            for order in await self.claim():
                self.orders.put_nowait(order)

    async def decide_due(self) -> None:
        now = self.clock.now()
        wakes = self.store.due(now, limit=PAGE).wakes
        await self.accept(lambda store: store.decide(wakes, admit, now), _decided)

    async def claim(self) -> list[Order]:
        now = self.clock.now()
        return await self.accept(lambda store: store.claim("soak", now, LEASE, limit=PAGE), _claimed)

    async def end_orders(self, caller: int) -> None:
        dice = random.Random(f"{self.life} finisher {caller}")
        while True:
            order = await self.orders.get()
            run, epoch = order.run.id, order.run.epoch
            if len(order.tasks) > 1:
                for task in order.tasks:
                    await self._finish_tasks(run, epoch, [TaskEnd(task=task.id, ending=_ending(dice, run))])
            await self.finish(run, epoch, _ending(dice, run))

    async def _finish_tasks(self, run: int, epoch: int, ends: list[TaskEnd]) -> None:
        now = self.clock.now()
        await self.accept(
            lambda store: store.finish_tasks(run, epoch, ends, now),
            lambda told: [f"task {run} {end.task} {each.value}" for end, each in zip(ends, told, strict=True) if each],
        )

    async def finish(self, run: int, epoch: int, ending: Ending) -> None:
        now = self.clock.now()
        end = Finish(run=run, epoch=epoch, ending=ending)
        await self.accept(
            lambda store: store.finish([end], settle, now),
            lambda outcomes: [f"finish {run} {epoch} {outcomes[0].value}"],
        )


def _early(verb: Callable[[SqlStore], T], tell: Tell[T]) -> Callable[[SqlStore], T]:
    def lying(store: SqlStore) -> T:
        answer = verb(store)
        say(tell(answer))
        return answer

    return lying


def _recording(items: Sequence[NewItem], now: datetime) -> Callable[[SqlStore], list[Recorded]]:
    return lambda store: store.record(items, now)


def _recorded(items: Sequence[NewItem], again: bool) -> Tell[list[Recorded]]:
    def tell(answers: list[Recorded]) -> list[str]:
        for item, answer in zip(items, answers, strict=True):
            assert answer.duplicate is again, f"{item.dedupe}: {answer}"
        return [f"record {item.dedupe} {answer.id}" for item, answer in zip(items, answers, strict=True)]

    return tell


def _decided(decisions: Sequence[Decision]) -> list[str]:
    lines = []
    for decision in decisions:
        if decision.joined == decision.wake:
            # Found twice while it waits: nothing was decided a second time, and nothing is told of it.
            continue
        word = "joined" if decision.joined else decision.verdict.kind.value
        lines.append(f"decide {decision.wake} {word} {decision.run or '-'}")
    return lines


def _claimed(orders: Sequence[Order]) -> list[str]:
    return [f"claim {order.run.id} {order.run.epoch}" for order in orders]


def _ending(dice: random.Random, run: int) -> Ending:
    took, luck = elapsed(run), dice.random()
    if luck < 0.1:
        return Ending(exit_code=1, elapsed=took)
    if luck < 0.15:
        return Ending(timed_out=True, elapsed=took)
    usage = Spend(usd=dice.randint(0, 9_000), tokens=dice.randint(0, 900)) if luck < 0.7 else None
    outcome = "no_work" if luck < 0.3 else "done"
    return Ending(exit_code=0, elapsed=took, result=Result(outcome=outcome, usage=usage))


def main() -> None:
    folder, life = DataFolder(Path(sys.argv[1])), int(sys.argv[2])
    with folder:
        asyncio.run(Life(open_sqlite(folder.database), life).run())


if __name__ == "__main__":
    main()
