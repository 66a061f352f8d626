"""What a node has read of an agent and undone again is not what it believes later."""

from pathlib import Path

import pytest

from tests.store.postgres_server import release, store_in
from wakeful.core.admission import admit
from wakeful.store.store import SqlStore
from wakeful.testing.contracts.store_case import NOW, a_fleet, operator


class Regret(Exception):
    pass


def try_and_regret(store: SqlStore) -> None:
    with store.session.transaction("call"):
        store.set("moss", {"burst": 7}, "rana", NOW)
        store.decide([operator("moss")], admit, NOW)
        raise Regret


def test_a_setting_that_was_undone_is_not_taken_for_another_nodes_of_the_same_version(tmp_path: Path) -> None:
    one, other = store_in(tmp_path), store_in(tmp_path)
    try:
        one.declare(a_fleet("moss"), NOW)
        with pytest.raises(Regret):
            try_and_regret(one)
        other.set("moss", {"burst": 8}, "rana", NOW)

        believed = [store.agent("moss") for store in (one, other)]

        assert [agent.limits.burst for agent in believed if agent] == [8, 8]
    finally:
        one.close()
        other.close()
        release(tmp_path)
