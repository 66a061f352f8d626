"""A fleet's folder as the working folder, without anything of the outside that would point elsewhere."""

import shutil
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


@pytest.fixture(scope="session")
def declared(tmp_path_factory):
    """Made once: a store takes longer to make than to copy."""
    made = Office(tmp_path_factory.mktemp("declared"))
    made.declare()
    return made


@pytest.fixture(scope="session")
def befouled(tmp_path_factory, declared):
    made = copied(declared, tmp_path_factory.mktemp("befouled"))
    made.befoul()
    return made


def copied(office, folder):
    shutil.copytree(office.folder, folder, dirs_exist_ok=True)
    return Office(folder)


@pytest.fixture
def office(nowhere, declared):
    """Two agents, and nothing that happened yet."""
    return copied(declared, nowhere)


@pytest.fixture
def foul(nowhere, befouled):
    """The same with a past, in which everybody meant ill."""
    return copied(befouled, nowhere)


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
