"""The audit of a store that nodes share: numbers have gaps, and of two who write at once neither sees the other."""

from contextlib import closing
from datetime import timedelta

import pytest

from tests.control.audited import told
from tests.store.postgres_server import connection_of, release, store_in, tell_time
from wakeful.control.auditing.audit import audit
from wakeful.core.events import Event, EventKind
from wakeful.store.sqlite import SqliteSession, open_sqlite
from wakeful.testing.contracts.store_case import NOW
from wakeful.testing.contracts.store_crashes import LATER, VERBS, set_scene

AT_LAST = LATER + timedelta(days=40)


@pytest.fixture
def scene(tmp_path):
    store = store_in(tmp_path)
    tell_time(store, NOW)
    yield set_scene(store)
    store.close()
    release(tmp_path)


def test_what_retention_took_from_behind_the_first_declarations_is_not_missed(scene):
    VERBS["forget"](scene)
    report = audit(scene.store, AT_LAST)
    assert report.adds_up, told(report)
    assert report.since is not None


@pytest.mark.parametrize(("back", "sound"), [(timedelta(milliseconds=3), True), (timedelta(minutes=2), False)])
def test_events_of_one_moment_may_stand_in_any_order_and_others_not(scene, back, sound):
    fields = {"by": "operator", "operation": "backup"}
    scene.store.note([Event(kind=EventKind.acted, at=at, fields=fields) for at in (LATER, LATER - back)])
    assert audit(scene.store, AT_LAST).adds_up
    # As if whoever wrote the second had not seen the first.
    connection_of(scene.store).execute("DELETE FROM reckoning")
    assert audit(scene.store, AT_LAST).adds_up is sound


def test_a_copy_in_a_file_has_the_gaps_that_the_numbers_had_and_none_of_its_own(scene, tmp_path):
    connection = connection_of(scene.store)
    connection.execute("SELECT nextval('event_id_seq')")
    note = Event(kind=EventKind.acted, at=LATER, fields={"by": "operator", "operation": "backup"})
    scene.store.note([note])
    scene.store.backup(tmp_path / "copy.db")
    with closing(open_sqlite(tmp_path / "copy.db", durable=False)) as copy:
        for _ in range(3):
            copy.note([note])
        report = audit(copy, AT_LAST)
        assert report.adds_up, told(report)
        newest = copy.events(limit=1000)[-1].id
        assert isinstance(copy.session, SqliteSession)
        copy.session.connection.execute("DROP TRIGGER event_is_append_only")
        copy.session.connection.execute("DELETE FROM event WHERE id = ?", (newest - 1,))
        assert not audit(copy, AT_LAST).adds_up
