"""The contract of every runner, over agents that are processes."""

from typing import Any

from wakeful.runners.process import ProcessRunner
from wakeful.runners.protocol import Assignment, Runner
from wakeful.testing.contracts.runner import Deed, RunnerContract
from wakeful.testing.contracts.runner_case import Yard

_HERE = 'echo "$RUN here" >> "$WITNESS"; '
_UNTIL_ENOUGH = "while [ ! -e enough ]; do sleep 0.02; done"
SCRIPTS = {
    Deed.succeed: _HERE + "echo done",
    Deed.fail: _HERE + "exit 3",
    Deed.go_on: _HERE + _UNTIL_ENOUGH,
    Deed.defy: "trap '' TERM; " + _HERE + _UNTIL_ENOUGH,
}


class TestProcessRunner(RunnerContract):
    def make_runner(self) -> Runner:
        return ProcessRunner()

    def assignment(self, yard: Yard, deed: Deed, **changes: Any) -> Assignment:
        command = ["/bin/sh", "-c", SCRIPTS[deed]] if deed in SCRIPTS else [str(yard.folder / "missing")]
        return yard.assign(command, **changes)
