"""A yard for runs as real processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from wakeful.runners.process import ProcessRunner
from wakeful.testing.contracts.runner_case import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with Yard(tmp_path, ProcessRunner).open() as yard:
        yield yard
