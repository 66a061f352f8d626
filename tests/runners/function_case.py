"""Shifts to try: made in a yard, carried out by real workers."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from wakeful.core.runs import Outcome, TaskEnd, read_outcome
from wakeful.runners.function import FunctionRunner, HeldShift, Shift
from wakeful.runners.process import ProcessRunner
from wakeful.testing.contracts.runner_case import Yard

HERE = Path(__file__).parent


class OwnRunner(FunctionRunner):
    """With a process runner of its own, which goes with it."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.processes = ProcessRunner()
        super().__init__(self.processes, folder, **more)

    async def close(self) -> None:
        await super().close()
        await self.processes.close()


def a_shift(yard: Yard, deeds: Sequence[str] = (), handler: str = "function_deeds:do", **changes: Any) -> Shift:
    """Task 1 does the first deed, task 2 the second, and so on; without deeds it is a beat."""
    given = yard.assign((), **{key: changes.pop(key) for key in [*changes] if key in _OF_ASSIGNMENT})
    lasting = {"PATH": given.environment["PATH"], "WAKEFUL_YARD": yard.marker, "FOLDER": str(yard.folder)}
    attempt = changes.pop("attempt", 1)
    tasks = [
        {"id": number, "title": f"task {number}", "body": json.dumps(deed), "attempt": {"number": attempt, "of": 6}}
        for number, deed in enumerate(deeds, 1)
    ]
    briefing = {
        "agent": {"name": "moss"},
        "run": {"id": given.run, "subject": "task" if deeds else "beat"},
        "position": {"state": "tidy", "hits": 2},
        "wake": {"cause": "task" if deeds else "timer"},
        "inbox": changes.pop("inbox", []),
        "tasks": tasks,
    }
    given_environment = {**lasting, **changes.pop("variables", {})}
    whole = {name: getattr(given, name) for name in _OF_ASSIGNMENT if name != "environment"}
    return Shift(
        **{
            **whole,
            "environment": given_environment,
            "agent": "moss",
            "handler": handler,
            "root": HERE,
            "tasks": tuple(range(1, len(deeds) + 1)),
            "briefing_json": json.dumps(briefing),
            **changes,
        }
    )


_OF_ASSIGNMENT = (
    *("run", "epoch", "folder", "workdir", "environment", "wall_clock", "grace", "leased_until", "fence"),
    *("secrets", "output_limit", "processes", "memory"),
)

LONG = timedelta(seconds=30)


async def ends(held: HeldShift) -> dict[int, TaskEnd]:
    """Every ending by its task, in the order in which they came; each came once."""
    heard = [end async for end in held.tasks()]
    assert len({end.task for end in heard}) == len(heard)
    return {end.task: end for end in heard}


async def outcomes(held: HeldShift) -> list[Outcome]:
    heard = await ends(held)
    return [read_outcome(heard[task].ending) for task in sorted(heard)]


async def results(held: HeldShift) -> list[Any]:
    """What the handler returned for each task, read as JSON."""
    heard = await ends(held)
    return [None if heard[task].result is None else json.loads(heard[task].result or "") for task in sorted(heard)]
