"""Whoever sends slowly, or not at all, loses the connection and holds up nobody."""

import asyncio
import json
from contextlib import ExitStack

import pytest

from tests.http.served import KEYS, PATIENCE, Stream, head, raw, serve
from tests.http.stub import Stub
from wakeful.http.arrival import Gathered

SHORT = 0.3
MESSAGES = "POST /v1/agents/wren/messages HTTP/1.1"


@pytest.fixture(scope="module")
def hasty():
    with serve(Stub, deadline=SHORT) as served:
        yield served


def drip(connection, pieces) -> bytes:
    """Send piece after piece, each as soon as the other side has been silent for a moment, until it closes."""
    connection.settimeout(SHORT / 5)
    received = b""
    for piece in pieces:
        try:
            connection.sendall(piece)
            answer = connection.recv(65536)
            if not answer:
                break
            received += answer
        except TimeoutError:
            continue
        except ConnectionError:
            break
    connection.settimeout(PATIENCE)
    return received + raw(connection)


def is_late(received: bytes) -> bool:
    start, _, body = received.partition(b"\r\n\r\n")
    return start.startswith(b"HTTP/1.1 408 Request Timeout") and json.loads(body)["type"] == "urn:wakeful:error:late"


def test_a_head_that_comes_byte_by_byte_is_cut_off(hasty):
    with hasty.connect() as connection:
        assert is_late(drip(connection, (b"G", b"E", b"T", b" ", *[b"/"] * 1_000)))


def test_blank_lines_do_not_keep_a_connection_open(hasty):
    with hasty.connect() as connection:
        assert drip(connection, [b"\r\n"] * 1_000).startswith(b"HTTP/1.1 4")


def test_silence_is_cut_off_too(hasty):
    with hasty.connect() as connection:
        raw(connection)


def test_a_body_that_does_not_come_is_cut_off(hasty):
    lines = ("Content-Type: application/json", "Content-Length: 1000")
    with hasty.connect() as connection:
        connection.sendall(head(hasty.port, *lines, line=MESSAGES))
        assert is_late(drip(connection, [b"{"] * 900))


def test_a_body_without_an_end_is_cut_off(hasty):
    lines = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    with hasty.connect() as connection:
        connection.sendall(head(hasty.port, *lines, line=MESSAGES))
        assert is_late(drip(connection, [b"1\r\n \r\n"] * 900))


def test_a_body_that_nobody_wants_does_not_keep_the_connection_either(hasty):
    with hasty.connect() as connection:
        connection.sendall(head(hasty.port, "Content-Length: 1000000", line=MESSAGES, token=None))
        assert drip(connection, [b"x"] * 900).startswith(b"HTTP/1.1 401")


def test_the_second_request_of_a_connection_has_a_deadline_of_its_own(hasty):
    with hasty.connect() as connection:
        connection.sendall(head(hasty.port))
        assert raw_until(connection, b"{}").startswith(b"HTTP/1.1 200 OK")
        assert is_late(drip(connection, [b"G"] * 900))


def test_an_answer_may_take_longer_than_its_request(control):
    looks = iter([False, False, False, True, True])
    control.answers["output"] = lambda **_: {"text": "", "next_offset": 0, "over": next(looks)}
    with serve(lambda: control, deadline=SHORT) as served, Stream(served, "/v1/runs/1/log") as log:
        assert [frame.event for frame in log] == ["over"]


def test_connections_that_are_held_without_a_request_give_way_to_those_that_speak():
    with serve(Stub, deadline=PATIENCE, most_waiting=8) as served, ExitStack() as held:
        mute = [held.enter_context(served.connect()) for _ in range(30)]
        for connection in mute:
            connection.sendall(b"GET /v1/sta")
        assert [served.ask("GET", "/v1/status").status for _ in range(20)] == [200] * 20
        # The oldest have been closed; as many as may wait are left.
        assert [raw(connection) for connection in mute[:22]] == [b""] * 22
        assert len(served.server._state.waiting) <= 8


def test_idle_connections_are_among_those_that_give_way():
    with serve(Stub, most_waiting=4) as served, ExitStack() as held:
        kept = []
        for _ in range(10):
            kept.append(held.enter_context(served.connect()))
            kept[-1].sendall(head(served.port, token=None))
            assert kept[-1].recv(65536).startswith(b"HTTP/1.1 401")
        # Asked once more, and what was closed has been taken off the list: those that may wait, and this one.
        assert served.ask("GET", "/healthz").status == 200
        assert len(served.server._state.connections) <= 5


def test_what_is_being_answered_is_not_among_them(control):
    control.answers["output"] = {"text": "", "next_offset": 0, "over": False}
    with serve(lambda: control, most_waiting=2) as served, served.connect() as stream, ExitStack() as held:
        stream.sendall(head(served.port, line="GET /v1/runs/1/log HTTP/1.1"))
        assert stream.recv(65536).startswith(b"HTTP/1.1 200")
        for _ in range(10):
            held.enter_context(served.connect())
        assert served.ask("GET", "/v1/status").status == 200
        assert len(served.server._state.connections) >= 1
        control.answers["output"] = {"text": "", "next_offset": 0, "over": True}
        assert b"event: over" in raw_until(stream, b"event: over")


def raw_until(connection, sign: bytes) -> bytes:
    received = b""
    while sign not in received and (piece := connection.recv(65536)):
        received += piece
    return received


def test_two_requests_in_one_packet_are_both_answered():
    with serve(Stub) as served, served.connect() as connection:
        connection.sendall(head(served.port) + head(served.port, "Connection: close"))
        assert raw(connection).count(b"HTTP/1.1 200") == 2


def test_a_token_of_the_operator_is_not_told_to_a_log(hasty, caplog):
    hasty.ask("GET", "/v1/status")
    hasty.ask("POST", "/v1/stop", b"{")
    assert KEYS.operator not in caplog.text


class Line:
    """A transport that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def write(self, data: bytes) -> None:
        self.told.append(data)

    def close(self) -> None:
        self.told.append("closed")

    def abort(self) -> None:
        self.told.append("aborted")

    def is_closing(self) -> bool:
        return "closed" in self.told


def test_what_is_written_in_one_turn_is_sent_in_one_piece_and_before_the_end():
    async def written(end: str) -> list[object]:
        line, loop = Line(), asyncio.get_running_loop()
        gathered = Gathered(line, loop)
        for piece in (b"head", b"", b"body"):
            gathered.write(piece)
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn
        gathered.write(b"last")
        getattr(gathered, end)()
        assert gathered.is_closing() is (end == "close")
        return line.told

    assert asyncio.run(written("close")) == [b"headbody", b"last", "closed"]
    assert asyncio.run(written("abort")) == [b"headbody", "aborted"]
