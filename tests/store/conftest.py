"""What the tests of the store share; and what holds for each: nothing is written that commits by itself."""

import re
from typing import Any

import apsw
import pytest

from tests.store.desk import Desk
from wakeful.store.sqlite import SqliteSession

_WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE|REPLACE)\b")


@pytest.fixture(autouse=True)
def _no_write_outside_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a write would be a commit without a name, and so without a place among the crash points."""
    execute = SqliteSession._execute

    def checked(session: SqliteSession, name: str, parameters: dict[str, Any]) -> apsw.Cursor:
        text = session._queries[name].text
        assert session.connection.in_transaction or not _WRITES.search(text), f"{name} is a transaction by itself"
        return execute(session, name, parameters)

    monkeypatch.setattr(SqliteSession, "_execute", checked)


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path / "wakeful.db")
    yield desk
    desk.gate.open()
    desk.gate.fails = False
    desk.writer.close()
    desk.store.close()
