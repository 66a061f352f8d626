"""A fleet's folder as the working folder, without anything of the outside that would point elsewhere."""

import time

import pytest

from tests.cli.office import Office, Served, schema, wakeful

OURS = ("WAKEFUL_DATA", "WAKEFUL_RUN", "WAKEFUL_URL", "WAKEFUL_TOKEN", "WAKEFUL_AGENT")


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    for name in OURS:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture(autouse=True)
def greenwich(monkeypatch):
    """People are shown times in their own zone; here that is UTC."""
    with monkeypatch.context() as outside:
        outside.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def office(nowhere):
    """Two agents, and nothing that happened yet: declared just now, so that no beat of theirs is due."""
    made = Office(nowhere)
    made.declare()
    return made


@pytest.fixture
def foul(office):
    """The same with a past, in which everybody meant ill."""
    office.befoul()
    return office


@pytest.fixture
def served(office):
    """The same fleet, with somebody who holds the folder and answers."""
    serving = Served(office)
    yield serving
    serving.close()


@pytest.fixture
def address():
    """Where an empty store of PostgreSQL may be made."""
    with schema() as made:
        yield made


@pytest.fixture
def moved(office, address):
    """An office whose store was copied, and whose fleet file says so."""
    office.end(office.begin(), summary="before the move")
    assert wakeful("store", "copy", str(office.data), address).exit_code == 0
    office.shares(address)
    return office
