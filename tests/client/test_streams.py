"""Streams of both clients: nothing lost, nothing twice, whatever happens to the server."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wakeful
from tests.client.test_client import PATIENCE, announce, answer, failing, held, url_of
from tests.http.house import House
from tests.http.served import KEYS, serve
from wakeful.core.errors import Unknown


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    try:
        yield house
    finally:
        house.writer.close()


def test_the_events_go_on_through_a_restart_without_a_gap_and_without_one_twice(house, tmp_path):
    with held(tmp_path), wakeful.Client(data=tmp_path) as client:
        with serve(house.control) as served:
            announce(tmp_path, served)
            stream = client.stream(after=client.events(limit=1000)["last"], kinds=["paused", "resumed"])
            client.pause(reason="one")
            seen = [next(stream)]
            house.served = served
            served.ask("POST", "/v1/pause", {"reason": "two"})
        with serve(house.control) as served:
            served.ask("POST", "/v1/pause", {"reason": "three"})
            announce(tmp_path, served)
            seen += [next(stream), next(stream)]
            stream.close()
    assert [event["fields"]["reason"] for event in seen] == ["one", "two", "three"]


def test_whoever_is_cut_off_before_the_first_event_misses_none(house, tmp_path):
    async def go() -> list[Any]:
        async with wakeful.AsyncClient(data=tmp_path) as client:
            with serve(house.control) as served:
                announce(tmp_path, served)
                stream = client.stream(kinds=["paused"])
                first = asyncio.ensure_future(stream.__anext__())
                while not await _connected(client):
                    await asyncio.wait({first}, timeout=0.01)
            with serve(house.control) as served:
                await asyncio.to_thread(served.ask, "POST", "/v1/pause", {"reason": "between"})
                announce(tmp_path, served)
                async with asyncio.timeout(PATIENCE):
                    seen = [await first]
                await stream.aclose()
                return seen

    async def _connected(client: wakeful.AsyncClient) -> bool:
        return client._asking._known

    with held(tmp_path):
        assert [event["fields"]["reason"] for event in asyncio.run(go())] == ["between"]


def test_the_output_of_a_run_is_given_until_it_is_over(house):
    run, epoch = house.begin("wren")
    (house.runs / str(run) / "stdout").write_bytes("first\nzweite\u00df\n".encode())
    with serve(house.control) as served, wakeful.Client(url_of(served), KEYS.operator) as client:
        pieces = client.log(run)
        assert next(pieces)["text"] == "first\nzweite\u00df\n"
        house.end(run, epoch)
        assert list(pieces) == []
        with pytest.raises(Unknown):
            next(client.log(run + 99))


def test_frames_that_share_an_id_are_not_given_again():
    def frames(*pieces: str) -> bytes:
        return "".join(pieces).encode()

    plain, last = 'event: e\ndata: {"n": 1}\n\n', 'id: 7\nevent: e\ndata: {"n": 2}\n\n'
    first = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + frames("id: 6\n\n", plain)
    second = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + frames(plain, last)
    served = failing([answer("200 OK", b"{}"), first, second])
    with served as (port, received), wakeful.Client(f"http://127.0.0.1:{port}", "t") as client:
        client.status()
        stream = client.stream(after=6)
        assert [next(stream), next(stream)] == [{"n": 1}, {"n": 2}]
        stream.close()
    assert len(received) == 3
