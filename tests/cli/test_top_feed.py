"""What `wakeful top` knows of the fleet, and how it hears of changes: of a store without an engine, of a stream."""

import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from soak.standing import until
from tests.cli.office import Served, wakeful
from wakeful.cli import top_feed
from wakeful.cli.complaints import Complaint
from wakeful.cli.connection import is_held
from wakeful.cli.hearing import Cut, Hearing
from wakeful.cli.place import Place
from wakeful.cli.top_feed import AWAY, Feed

PLACE = Place(".wakeful")


@pytest.fixture
def feed() -> Iterator[Feed]:
    pokes: list[int] = []
    made = Feed(PLACE, lambda: pokes.append(1))
    yield made
    made.end()
    assert made.crash is None


def states(feed: Feed) -> dict[str, str]:
    return {name: row["state"] for name, row in feed.fleet().rows.items()}


def test_without_an_engine_it_reads_the_store_and_lets_go_of_it(office, feed):
    feed.begin()
    assert states(feed) == {"wren": "idle", "moss": "idle"}
    fleet = feed.fleet()
    assert (fleet.status["engine"], fleet.silent, fleet.problem) == (None, 0.0, "")
    assert wakeful("pause", "wren", "--reason", "a look").exit_code == 0, "the folder is free for others"
    feed.ask_again("wren")
    until(lambda: states(feed)["wren"] == "paused", "word of the pause")


def test_a_shared_store_is_looked_at_again_and_again(moved, feed, monkeypatch):
    monkeypatch.setattr(top_feed, "SHARED_EACH", 0.1)
    feed.begin()
    assert wakeful("pause", "moss").exit_code == 0
    until(lambda: states(feed)["moss"] == "paused", "word of the pause")


def test_an_engine_that_goes_is_told_and_not_forgotten_at_once(office, feed, monkeypatch):
    monkeypatch.setattr(top_feed, "RETURNING", 0.5)
    serving = Served(office)
    try:
        feed.begin()
        assert feed.fleet().status["engine"] is not None
    finally:
        serving.close()
    until(lambda: feed.fleet().problem == AWAY, "word of the loss")
    assert feed.fleet().silent > 0 and states(feed) == {"wren": "idle", "moss": "idle"}
    until(lambda: feed.fleet().status["engine"] is None and not feed.fleet().problem, "what is stored")


def test_a_place_without_a_fleet_is_the_commands_own_complaint(nowhere, feed):
    with pytest.raises(Complaint, match="there is no fleet here"):
        feed.begin()
    assert not is_held(PLACE)


# ---- a stream


class Telling:
    """A server that tells these bytes to whoever asks, and then ends."""

    def __init__(self, told: bytes, status: int = 200) -> None:
        asked = self.asked = list[str]()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(f"{self.path} {self.headers['Authorization']}")
                self.send_response(status)
                self.end_headers()
                self.wfile.write(told)

            def log_message(self, *_: object) -> None:
                return None

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def heard(url: str) -> list[object]:
    hearing = Hearing(url, "secret", "/v1/stream")
    hearing.open()
    found: list[object] = []
    with pytest.raises(OSError, match=r"ended the stream|cut off"):
        found += (event["agent"] for event in hearing.events())
    return found


def test_events_are_heard_and_signs_of_life_are_none():
    told = b'id: 5\nevent: started\ndata: {"agent": "wren"}\n\ndata: {"agent":\ndata: "moss"}\n\n'
    with closing(Telling(b"id: 4\n\n: alive\n\n" + told + b": alive\n\n")) as telling:
        assert heard(telling.url) == ["wren", "moss"]
    assert telling.asked == ["/v1/stream Bearer secret"]


def test_whoever_is_refused_is_told_so_and_who_answers_nonsense_is_cut_off():
    refusing = Telling(b'{"detail": "no such token", "remedy": "print it"}', 401)
    with closing(refusing), pytest.raises(Complaint, match="no such token"):
        Hearing(refusing.url, "secret", "/v1/stream").open()
    with closing(Telling(b"data: {nonsense\n\n")) as telling:
        assert heard(telling.url) == []


def test_whoever_stops_listening_is_cut_off():
    with closing(Telling(b"")) as telling:
        hearing = Hearing(telling.url, "secret", "/v1/stream")
        hearing.open()
        hearing.close()
        with pytest.raises(Cut):
            list(hearing.events())
