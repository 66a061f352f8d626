"""The trace that a run is told of, as its process and its handler find it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runners.carrier_case import Desk, a_beat, a_handler, a_process
from wakeful.core.agents import Agent
from wakeful.core.orders import Order
from wakeful.runners.protocol import STDOUT
from wakeful.telemetry.spans import Ids
from wakeful.testing.contracts.runner_case import real

IDS = Ids("a store")
HANDLER = """
import os

def trace(run):
    print(os.environ["TRACEPARENT"], flush=True)
"""


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path, trace=IDS.traceparent).open() as desk:
        desk.write("deeds.py", HANDLER)
        yield desk


async def printed(desk: Desk, order: Order) -> str:
    held = await desk.carrier.carry(order, None)
    await held.wait()
    return (desk.run_folder(order.run.id) / STDOUT).read_text().strip()


@real
@pytest.mark.parametrize("agent", [a_process("sh -c 'echo $TRACEPARENT'"), a_handler("deeds:trace")])
async def test_a_process_and_a_handler_find_the_span_of_their_own_run(yard: Desk, agent: Agent):
    order = a_beat(agent)
    assert await printed(yard, order) == IDS.traceparent(order)
