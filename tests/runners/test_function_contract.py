"""The contract of every runner, over agents that are Python functions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runners.function_case import HERE, OwnRunner
from wakeful.runners.function import Shift
from wakeful.runners.protocol import Assignment, Runner
from wakeful.testing.contracts.runner import Deed, RunnerContract
from wakeful.testing.contracts.runner_case import Yard

HANDLERS = {
    Deed.succeed: "function_deeds:succeed",
    Deed.fail: "function_deeds:fail",
    Deed.go_on: "function_deeds:go_on",
    Deed.defy: "function_deeds:defy",
    Deed.impossible: "function_deeds:nowhere",
}


class TestFunctionRunner(RunnerContract):
    @pytest.fixture
    def yard(self, tmp_path: Path) -> Iterator[Yard]:
        self.folder = tmp_path / "workers"
        with Yard(tmp_path, self.make_runner).open() as yard:
            yield yard

    def make_runner(self) -> Runner:
        return OwnRunner(self.folder)

    def assignment(self, yard: Yard, deed: Deed, **changes: Any) -> Assignment:
        given = yard.assign((), **changes)
        names = ("run", "epoch", "folder", "workdir", "wall_clock", "grace", "leased_until", "fence")
        environment = {**given.environment, "FOLDER": str(yard.folder)}
        whole = {name: getattr(given, name) for name in names}
        return Shift(agent="moss", handler=HANDLERS[deed], root=HERE, environment=environment, **whole)
