"""A folder to look into."""

import pytest

from tests.sources.pendings import Files


@pytest.fixture
def inbox(tmp_path):
    return Files(tmp_path / "inbox")
