"""Before an engine is at work: its store is chosen, what another store left is set aside, and its name is its own."""

import asyncio
import contextlib
import json
import socket
from datetime import timedelta

import pytest

from tests.cli.office import FLEET, LEASE, PASSWORD, now
from tests.store.postgres_server import tell_time
from wakeful import app, opening
from wakeful.core.admission import admit
from wakeful.core.wakes import Cause, Subject, Wake
from wakeful.fleet.load import load_fleet
from wakeful.fleet.watch import FleetFile
from wakeful.store.folder import DataFolder
from wakeful.store.postgres_access import PostgresInline

# ---- a node of the same name


@pytest.fixture
def twin(address, monkeypatch):
    """A store in which a node called desk was at work on another host, a moment ago."""
    monkeypatch.setattr(app, "LOOK_AT_TWIN", 0.0)
    with contextlib.closing(opening.open_shared(address)) as store:
        tell_time(store, now())
        store.join("desk", "another host", "http://127.0.0.1:1", now(), LEASE)
        yield store


def alive(store):
    return [row.name for row in store.nodes(now()) if row.alive]


class Looking(PostgresInline):
    """Something happens after a few looks."""

    def __init__(self, store, happens):
        super().__init__(store)
        self.looks = 0
        self.happens = happens

    async def read(self, verb):
        found = await super().read(verb)
        self.looks += 1
        if self.looks == 5:
            self.happens()
        return found


def test_a_silent_node_of_our_name_is_waited_for_until_its_lease_is_over(twin, caplog):
    looking = Looking(twin, lambda: tell_time(twin, now() + LEASE))
    asyncio.run(app._alone(looking, "desk", "this host"))
    assert (looking.looks, alive(twin)) == (6, [])
    assert [record.name for record in caplog.records].count("wakeful.engine") == 1


def test_one_that_speaks_is_not_waited_for(twin):
    def speak():
        tell_time(twin, now() + timedelta(seconds=2))
        twin.renew("desk", [], now(), LEASE)

    looking = Looking(twin, speak)
    asyncio.run(app._alone(looking, "desk", "this host"))
    assert (looking.looks, alive(twin)) == (6, ["desk"])


@pytest.mark.parametrize(("node", "host"), [("other", "this host"), ("desk", "another host")])
def test_nobody_waits_for_himself_or_for_others(twin, node, host):
    asyncio.run(app._alone(PostgresInline(twin), node, host))
    assert alive(twin) == ["desk"]


# ---- from one store to another


@pytest.fixture
def up(office, monkeypatch, caplog):
    """What an engine does before it is at work; returns what it said aloud."""

    async def serve(options, file, data, store, node, address):
        return 0

    monkeypatch.setattr(app, "_serve", serve)

    def begin():
        caplog.clear()
        with DataFolder(office.data) as folder:
            assert app._with_store(app.Options(), FleetFile(office.folder / "fleet.org"), folder) == 0
        return [record.getMessage() for record in caplog.records if record.name == "wakeful.engine"]

    return begin


def test_who_changes_the_store_has_two_and_is_told_so_once(office, address, up):
    assert up() == []
    office.shares(address)
    (told,) = up()
    assert str(office.data / "wakeful.db") in told and "stays there (wakeful store copy brings it over)" in told
    assert PASSWORD not in told
    assert (office.data / "store").read_text().strip() == address
    assert up() == []
    (office.folder / "fleet.org").write_text(FLEET)
    (told,) = up()
    assert f"the store is {office.data / 'wakeful.db'} from now on" in told and PASSWORD not in told
    assert not (office.data / "store").exists()
    assert up() == []


def test_after_a_copy_there_is_nothing_left_to_bring_over(moved, address, up):
    with contextlib.closing(opening.open_shared(address)) as store:
        store.declare(load_fleet(moved.folder / "fleet.org").fleet, now())
    assert up() == []


def test_a_broken_fleet_file_takes_up_the_store_that_was_used_last(moved, address, up):
    up()
    (moved.folder / "fleet.org").write_text(FLEET + "* late\n:PROPERTIES:\n:INTERVALL: 3m\n:END:\n")
    assert "the last good version is taken up" in up()[-1]
    assert (moved.data / "store").read_text().strip() == address


def test_a_broken_fleet_file_is_served_at_the_port_that_was_used_last(office):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    (office.data / app.ENGINE).write_text(json.dumps({"pid": 1, "url": f"http://127.0.0.1:{port}"}))
    with contextlib.closing(app._listen(app.Options(), None, office.data).local) as local:
        assert local.getsockname() == ("127.0.0.1", port)


def test_what_runs_of_the_store_before_left_is_not_in_the_way_of_the_next(office, address, up):
    run = office.begin()
    office.end(run)
    office.prints(run, "of the file")
    up()
    assert (office.data / "runs" / str(run)).exists()
    office.shares(address)
    assert any("what runs of another store left here is now in" in told for told in up())
    assert list((office.data / "runs").iterdir()) == []


def test_nor_is_it_taken_for_what_a_run_of_the_same_number_printed_elsewhere(office, address, up):
    run = office.begin()
    office.end(run)
    office.prints(run, "of the file")
    office.shares(address)
    with contextlib.closing(opening.open_shared(address)) as store:
        store.declare(load_fleet(office.folder / "fleet.org").fleet, now())
        wake = Wake(agent="wren", cause=Cause.operator, subject=Subject.beat, requested_at=now(), sender="operator")
        assert store.decide([wake], admit, now())[0].run == run
        store.claim("other", now(), LEASE)
    up()
    assert list((office.data / "runs").iterdir()) == []
