"""What the tests of the store share."""

import pytest

from tests.store.desk import Desk


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path / "wakeful.db")
    yield desk
    desk.gate.open()
    desk.gate.fails = False
    desk.writer.close()
    desk.store.close()
