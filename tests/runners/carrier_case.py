"""A carrier over real processes: a fleet's folder and its data folder in a yard, and what is asked of it."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from tests.runners.orders import NOW, an_agent, an_item, an_order
from wakeful.core.agents import Agent, Runner
from wakeful.core.items import Kind
from wakeful.core.journal import Entry, Journal
from wakeful.core.lifecycle import Kind as StateKind
from wakeful.core.lifecycle import Lifecycle, Position, State
from wakeful.core.orders import Order
from wakeful.core.runs import Run
from wakeful.core.wakes import Cause, Subject
from wakeful.runners.carrier import Carrier
from wakeful.testing.contracts.runner_case import Yard

TOKEN = "token-of-run-"
NIGHT = Lifecycle(
    "work", (State("work", next="rest"), State("rest", kind=StateKind.rem, next="work", repeat=1, min_interval=None))
)
DREAMT = Entry(at=NOW, state="work", cause="timer", outcome="done", summary="wrote a page")


class Desk(Yard):
    """Its marker is in the name of the data folder, which every run has in its environment."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.asked: list[tuple[int, dict[str, Any]]] = []
        self.settings = settings
        self.base: Mapping[str, str] = {
            **os.environ,
            "PASSPHRASE_KEY": "open sesame",
            "REMOTE_TOKEN": "open-sesame",
            "AMBIENT": "not for agents",
            "BAD": "two\nlines",
        }
        super().__init__(folder, self._carrier)
        self.root = folder / "fleet"
        self.root.mkdir()
        self.data = folder / f"data-{self.marker}"

    def _carrier(self) -> Carrier:
        given = {"url": lambda: "http://127.0.0.1:7717", "token": _token, "link": self._link, "base": self.base}
        return Carrier(self.root, self.data, **{**given, **self.settings})

    async def _link(self, run: int, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((run, request))
        return {}

    @property
    def carrier(self) -> Carrier:
        return cast(Carrier, self.runner)

    def another(self) -> Carrier:
        return cast(Carrier, self.another_runner())

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def run_folder(self, run: int = 42) -> Path:
        return self.data / "runs" / str(run)


def _token(run: Run) -> str:
    return f"{TOKEN}{run.id}"


def a_process(command: str, **more: Any) -> Agent:
    return an_agent(runner=Runner.process, target=command, **more)


def a_handler(name: str, **more: Any) -> Agent:
    return an_agent(runner=Runner.handler, target=name, **more)


def a_beat(agent: Agent, number: int = 42, **more: Any) -> Order:
    return numbered(an_order(Subject.beat, agent=agent, cause=Cause.timer, **more), number)


def a_night(agent: Agent, **more: Any) -> Order:
    """A beat in a quiet state."""
    journal = Journal(agent=agent.name, since=None, until=NOW, entries=(DREAMT,))
    quiet = replace(agent, lifecycle=NIGHT)
    return a_beat(quiet, **{"position": Position("rest"), "journal": journal, **more})


def tasks_for(agent: Agent, *bodies: str, number: int = 42, **more: Any) -> Order:
    tasks = tuple(an_item(id, kind=Kind.task, subject=f"task {id}", body=body) for id, body in enumerate(bodies, 1))
    return numbered(an_order(Subject.task, agent=agent, cause=Cause.task, tasks=tasks, **more), number)


def numbered(order: Order, number: int) -> Order:
    return replace(order, run=replace(order.run, id=number))
