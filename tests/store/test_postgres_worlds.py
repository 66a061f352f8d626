"""A world of the simulation is lived on PostgreSQL as on SQLite: no promise is broken, and the same things happen."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.store.postgres_server import release, store_in, tell_time
from wakeful.testing.checkers import History, judge
from wakeful.testing.simulate import open_store
from wakeful.testing.world import Open, World

SEEDS = range(1, 4)
DAYS = 0.1


def lived(seed: int, path: Path, opener: Open, **timed: Any) -> tuple[list[object], list[object]]:
    """What was violated, and what happened to whom. Not the ids, which have gaps here, nor what is drawn from them."""
    world = World(seed, path, opener, days=DAYS, **timed)
    try:
        world.run()
        history = History(world.store, world.witness)
        happened = [(event.kind, event.agent) for event in history.events]
        return list(judge(history)), [*happened, world.faults.met, len(world.witness.executions)]
    finally:
        world.store.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_happens_in_a_world_on_both_stores(seed, tmp_path):
    with tempfile.TemporaryDirectory() as folder:
        lite = lived(seed, Path(folder) / "wakeful.db", open_store)
    here = lived(seed, tmp_path / "wakeful.db", lambda path, _: store_in(path), tell_time=tell_time)
    release(tmp_path)
    assert here[0] == []
    assert len(here[1]) > 50
    assert here == lite
