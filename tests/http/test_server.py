"""The server as a guest in our loop: where it listens, how it idles, how it stops."""

import asyncio
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from tests.http.served import KEYS, PATIENCE, Stream, head, raw, serve
from tests.http.stub import Stub
from wakeful.core.errors import Mistake
from wakeful.http.app import build
from wakeful.http.server import Server, bind, hosts_of, url_of

# ---- where it listens


def test_port_zero_takes_a_free_one_and_says_which():
    with bind("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        assert url_of(listening) == f"http://127.0.0.1:{port}"
        assert hosts_of(listening) == {f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"}


def test_localhost_is_the_loopback_and_so_is_all_of_its_net():
    for host in ("localhost", "LOCALHOST", "127.0.0.2"):
        with bind(host, 0) as listening:
            assert listening.getsockname()[0].startswith("127.")
    with bind("127.0.0.2", 0) as listening:
        assert f"127.0.0.2:{listening.getsockname()[1]}" in hosts_of(listening)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.1.2", "example.org", "", "127.0.0.1.example.org", "2130706433"]
)
def test_any_other_address_is_a_mistake_with_a_remedy(host):
    with pytest.raises(Mistake, match="loopback") as told:
        bind(host, 0)
    assert "127.0.0.1" in told.value.remedy


def test_a_taken_port_is_a_mistake_that_names_the_option():
    with bind("127.0.0.1", 0) as taken, pytest.raises(Mistake, match="in use") as told:
        bind("127.0.0.1", taken.getsockname()[1])
    assert "--port" in told.value.remedy


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_is_none_is_a_mistake(port):
    with pytest.raises(Mistake, match="65535"):
        bind("127.0.0.1", port)


def test_a_port_is_free_again_as_soon_as_its_server_has_stopped():
    with serve(Stub) as served, served.connect() as connection:
        # The side that closes first remembers the connection for a minute.
        connection.sendall(head(served.port, "Connection: close"))
        assert raw(connection).startswith(b"HTTP/1.1 200")
        port = served.port
    bind("127.0.0.1", port).close()


def test_answers_are_sent_without_delay():
    """Two small writes on a connection that stays cost 40 ms each time where Nagle's algorithm waits."""
    with serve(Stub) as served, served.connect() as connection:
        connection.sendall(head(served.port))
        connection.recv(65536)
        (protocol,) = served.server._state.connections
        accepted = protocol.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


# ---- a guest


def test_it_leaves_the_signals_alone():
    def handlers() -> list[object]:
        return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    async def run() -> None:
        before = handlers()
        server, listening = Server(build(Stub(), keys=KEYS, hosts=())), bind("127.0.0.1", 0)
        await server.start([listening])
        assert handlers() == before
        await server.stop()
        assert handlers() == before

    asyncio.run(run())


def test_while_nobody_asks_nothing_happens():
    """The loop turns only for this test's own timers; uvicorn's tick would turn it five times in half a second."""
    turns = []

    class Selector(selectors.DefaultSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            turns.append(timeout)
            return super().select(timeout)

    async def run() -> int:
        server, listening = Server(build(Stub(), keys=KEYS, hosts=())), bind("127.0.0.1", 0)
        await server.start([listening])
        loop, idle = asyncio.get_running_loop(), asyncio.Event()
        loop.call_later(0.1, turns.clear)
        loop.call_later(0.6, idle.set)
        await idle.wait()
        counted = len(turns)
        await server.stop()
        return counted

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(Selector())) as runner:
        assert runner.run(run()) <= 3


def test_the_command_line_and_control_need_no_web_framework():
    probe = (
        "import sys, wakeful, wakeful.cli, wakeful.control.control\n"
        "assert not {'fastapi', 'starlette', 'uvicorn', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", probe], check=True, timeout=60)


# ---- stopping


def test_a_second_stop_and_one_without_a_start_do_nothing():
    with serve(Stub) as served:
        served.stop()
        served.stop()
    asyncio.run(Server(build(Stub(), keys=KEYS, hosts=())).stop())


def test_stopping_ends_open_streams_and_idle_connections_at_once():
    control = Stub()
    control.answers["events"] = {"items": [], "next": None}
    control.answers["output"] = {"text": "", "next_offset": 0, "over": False}
    with serve(lambda: control, patience=30) as served:
        idle, half = served.connect(), served.connect()
        half.sendall(b"GET / HT")
        with Stream(served, "/v1/stream") as events, Stream(served, "/v1/runs/1/log") as log:
            began = time.monotonic()
            served.stop()
            assert list(events) == [] and list(log) == []
            assert time.monotonic() - began < 5
        for connection in (idle, half):
            assert raw(connection) == b""
            connection.close()
        with pytest.raises(ConnectionRefusedError):
            served.connect()


def test_a_request_under_way_is_answered_before_the_server_is_gone():
    control, entered, leave = Stub(), threading.Event(), asyncio.Event()

    async def status() -> dict[str, object]:
        entered.set()
        await leave.wait()
        return {"answered": True}

    control.answers["status"] = status
    with serve(lambda: control, patience=30) as served, served.connect() as connection:
        connection.sendall(head(served.port))
        assert entered.wait(PATIENCE)
        stopping = asyncio.run_coroutine_threadsafe(served.server.stop(), served.loop)
        served.loop.call_soon_threadsafe(leave.set)
        assert b'{"answered":true}' in raw(connection)
        stopping.result(PATIENCE)


def test_a_request_that_goes_on_past_our_patience_is_given_up(caplog):
    control, entered = Stub(), threading.Event()

    async def status() -> dict[str, object]:
        entered.set()
        await asyncio.Event().wait()
        return {}

    control.answers["status"] = status
    with serve(lambda: control, patience=0) as served, served.connect() as connection:
        connection.sendall(head(served.port))
        assert entered.wait(PATIENCE)
        served.stop()
        assert not served.server._state.tasks
        assert b'"answered"' not in raw(connection)


def test_an_address_of_the_sixth_version_is_served_where_there_is_one():
    try:
        listening = bind("::1", 0)
    except Mistake:
        probe = socket.socket(socket.AF_INET6)
        with probe, pytest.raises(OSError):
            probe.bind(("::1", 0))
        return
    with listening:
        assert url_of(listening).startswith("http://[::1]:")
