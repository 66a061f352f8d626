"""Both clients on the real control, store and server; and on servers that fail in every way that matters."""

import asyncio
import fcntl
import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import wakeful
from tests.http import certificates
from tests.http.house import House
from tests.http.served import KEYS, Served, serve
from tests.http.stub import Stub
from wakeful.client.finding import Folder, Place, Unreachable
from wakeful.core.errors import Busy, Conflict, Forbidden, Mistake, Outdated, Unknown
from wakeful.http.auth import run_token
from wakeful.http.listening import Reach, listen

PATIENCE = 10.0


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    try:
        with serve(house.control) as house.served:
            yield house
    finally:
        house.writer.close()


def url_of(served: Served) -> str:
    return f"http://127.0.0.1:{served.port}"


def a_client(house: House, token: str = KEYS.operator) -> wakeful.Client:
    return wakeful.Client(url_of(house.served), token)


def awaited(house: House, work: Callable[[wakeful.AsyncClient], Any]) -> Any:
    async def go() -> Any:
        async with wakeful.AsyncClient(url_of(house.served), KEYS.operator) as client:
            return await work(client)

    return asyncio.run(go())


# ---- what is answered


def test_a_call_and_its_coroutine_are_answered_the_same(house):
    with a_client(house) as client:
        called = client.agent("wren")
        sent = client.send("moss", "the tide is out", priority="low")
    assert called == awaited(house, lambda client: client.agent("wren"))
    assert called["name"] == "wren"
    found = awaited(house, lambda client: client.inbox("moss", state="open"))
    assert [(row["id"], row["body"]) for row in found["items"]] == [(sent["message"]["id"], "the tide is out")]


def test_what_is_not_said_is_left_to_the_operation(house):
    with a_client(house) as client:
        task = client.add_task("sweep the yard", agent="wren", tags=["yard"])
        assert client.tasks(state=["pending"], tag="yard")["items"][0]["id"] == task["id"]
        assert client.count_tasks()["counts"]["pending"] == 1


def test_a_list_is_given_to_its_end_from_either_side(house):
    with a_client(house) as client:
        client.add_tasks([{"title": str(n), "agent": "wren"} for n in range(7)])
        oldest = [task["title"] for task in client.every(client.tasks, agent="wren", limit=3)]
        newest = [task["title"] for task in client.every(client.tasks, agent="wren", limit=3, before=2**40)]
        assert oldest == newest[::-1] == [str(n) for n in range(7)]
        assert [agent["name"] for agent in client.every(client.agents, limit=1)] == ["moss", "wren"]
        every = [event["id"] for event in client.every(client.events, limit=2)]
        assert every == sorted(set(every)) and len(every) == len(client.events(limit=1000)["items"])

    async def go(client: wakeful.AsyncClient) -> list[str]:
        return [task["title"] async for task in client.every(client.tasks, limit=2)]

    assert awaited(house, go) == oldest


def test_several_threads_share_a_client(house):
    with a_client(house) as client:
        threads = [threading.Thread(target=client.send, args=("wren", f"{n}")) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert {row["body"] for row in client.inbox("wren")["items"]} == {str(n) for n in range(8)}


def test_a_blocking_call_may_be_made_where_an_event_loop_runs(house):
    async def go() -> Any:
        with a_client(house) as client:
            return client.status()

    assert asyncio.run(go())["fleet"]["agents"] == 2


# ---- what is refused


def test_an_error_is_of_the_class_that_the_process_itself_would_be_given(house):
    with a_client(house) as client:
        with pytest.raises(Unknown, match="rwen"):
            client.agent("rwen")
        with pytest.raises(Mistake) as mistake:
            client.pause(duration="five")
        assert mistake.value.remedy
        client.add_task("one", agent="wren", key="k")
        with pytest.raises(Conflict):
            client.add_task("another", agent="wren", key="k")
        version = client.set("wren", {"cooldown": "10m"})["version"]
        with pytest.raises(Outdated):
            client.set("wren", {"cooldown": "20m"}, version=version - 1)
    with a_client(house, "wrong") as client, pytest.raises(Forbidden) as wrong:
        client.status()
    assert any("wakeful token" in note for note in wrong.value.__notes__)


def test_a_run_may_do_with_its_token_what_a_run_may(house, monkeypatch):
    run, epoch = house.begin("wren")
    monkeypatch.setenv("WAKEFUL_URL", url_of(house.served))
    monkeypatch.setenv("WAKEFUL_TOKEN", run_token(KEYS, run, epoch, house.now))
    with wakeful.Client() as client:
        sent = client.send("moss", "from within")["message"]
        assert (sent["from"], sent["run_id"]) == ("wren", run)
        with pytest.raises(Forbidden, match="only the operator"):
            client.pause()


def test_a_refused_wake_is_an_answer(house):
    with a_client(house) as client:
        client.pause_agent("wren", reason="rest")
        reply = client.wake("wren")
    assert (reply["verdict"], reply["guard"]) == ("refuse", "paused")


# ---- where it asks


def test_a_url_without_its_token_and_a_folder_inside_a_run_are_mistakes(monkeypatch):
    with pytest.raises(Mistake, match="token"):
        wakeful.Client("http://127.0.0.1:7717")
    monkeypatch.setenv("WAKEFUL_URL", "http://127.0.0.1:7717")
    monkeypatch.setenv("WAKEFUL_TOKEN", "t")
    with pytest.raises(Mistake, match="inside a run"):
        wakeful.Client(data="elsewhere")


def test_a_folder_that_nobody_holds_is_not_believed(tmp_path):
    (tmp_path / "token").write_text("operator\n")
    (tmp_path / "engine.json").write_text(json.dumps({"url": "http://127.0.0.1:1"}))
    with wakeful.Client(data=tmp_path) as client, pytest.raises(Unreachable, match="wakeful up"):
        client.status()


def test_nobody_where_somebody_was_named_is_said_at_once():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    url, gone = f"http://127.0.0.1:{port}", pytest.raises(Busy, match="cannot be reached")
    with wakeful.Client(url, "t", patience=600) as client, gone:
        client.status()


def test_another_machine_is_asked_over_tls_and_believed_only_with_a_certificate_one_trusts(tmp_path):
    certificate, key = certificates.make(tmp_path)
    reach = Reach(host="0.0.0.0", names=(certificates.NAME,), certificate=certificate, private_key=key)
    listening = listen(reach)
    url = f"https://127.0.0.1:{listening.wide.getsockname()[1]}"
    trusted = ssl.create_default_context(cafile=str(certificate))
    with serve(Stub, listening=listening):
        with wakeful.Client(url, KEYS.operator, verify=trusted) as client:
            assert client.status() == {}
        with wakeful.Client(url, KEYS.operator) as client, pytest.raises(Unreachable, match="certificate"):
            client.status()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def announce(folder: Path, served: Served, token: str = KEYS.operator) -> None:
    (folder / "token").write_text(token + "\n")
    (folder / "engine.json").write_text(json.dumps({"url": url_of(served)}))


def test_the_engine_of_a_folder_is_found_and_found_again_after_it_moved(tmp_path, monkeypatch):
    monkeypatch.setenv("WAKEFUL_DATA", str(tmp_path))
    with held(tmp_path), wakeful.Client() as client:
        with serve(Stub) as served:
            announce(tmp_path, served)
            assert client.status() == {}
        with serve(Stub) as served:
            announce(tmp_path, served)
            assert client.status() == {}


def test_a_token_that_was_made_anew_is_read_again(tmp_path):
    class Rotated(Folder):
        looks = 0

        def find(self) -> Place | None:
            """The first look is from before the rotation, the others from after it."""
            self.looks += 1
            found = super().find()
            return found._replace(token="the old one") if self.looks == 1 else found

    with held(tmp_path), serve(Stub) as served, wakeful.Client(data=tmp_path) as client:
        announce(tmp_path, served)
        client._asking._whereabouts = rotated = Rotated(str(tmp_path))
        assert client.status() == {}
        assert rotated.looks == 3
        announce(tmp_path, served, "wrong")
        with pytest.raises(Forbidden):
            client.status()


# ---- servers that fail


@contextmanager
def failing(answers: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """A server that gives these answers, one to each connection; b"" hangs up. And what it was sent."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE)

        def work() -> None:
            for answer in answers:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(PATIENCE)
                    received.append(_whole(connection))
                    connection.sendall(answer)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield listening.getsockname()[1], received
        finally:
            # Answers that nobody asked for are waited for no longer.
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE)


def _whole(connection: socket.socket) -> bytes:
    said = b""
    while b"\r\n\r\n" not in said:
        said += connection.recv(65536)
    head, _, body = said.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while lengths and len(body) < int(lengths[0].partition(b":")[2]):
        body += connection.recv(65536)
    return body


def answer(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


OK = answer("200 OK", b"{}")
BUSY = answer("503 Service Unavailable", b'{"type": "urn:wakeful:error:busy", "detail": "d"}', "Retry-After: 0")


def test_what_has_a_key_is_asked_again_with_the_same_key_and_nothing_happens_twice():
    with failing([OK, b"", BUSY, OK]) as (port, received), wakeful.Client(f"http://127.0.0.1:{port}", "t") as client:
        client.status()
        client.send("wren", "once")
    keys = {json.loads(body)["key"] for body in received[1:]}
    assert len(received) == 4
    assert len(keys) == 1 and keys != {None}


def test_what_could_happen_twice_is_not_asked_again():
    with failing([OK, b"", OK]) as (port, received), wakeful.Client(f"http://127.0.0.1:{port}", "t") as client:
        client.status()
        with pytest.raises(Unreachable, match="may have been done"):
            client.cancel_task(3)
    assert len(received) == 2


def test_what_only_reads_is_asked_again_by_the_awaited_client_too():
    async def go(port: int) -> Any:
        async with wakeful.AsyncClient(f"http://127.0.0.1:{port}", "t") as client:
            await client.status()
            return await client.nodes()

    with failing([OK, b"", OK]) as (port, received):
        assert asyncio.run(go(port)) == {}
    assert len(received) == 3


def test_patience_ends():
    with failing([OK, BUSY]) as (port, _), wakeful.Client(f"http://127.0.0.1:{port}", "t", patience=0) as client:
        client.status()
        with pytest.raises(Busy):
            client.status()


def test_what_does_not_speak_as_an_engine_does_is_told_so():
    told = pytest.raises(wakeful.WakefulError, match="does not answer as an engine does")
    foreign = failing([answer("200 OK", b"<html>")])
    with foreign as (port, _), wakeful.Client(f"http://127.0.0.1:{port}", "t") as client, told:
        client.status()


@pytest.mark.parametrize("url", ["127.0.0.1:7717", "localhost", "ftp://127.0.0.1", "http://", "://x"])
def test_what_is_no_url_of_an_engine_is_a_mistake_that_says_how_to_write_it(url):
    with pytest.raises(Mistake, match="expected the URL of an engine") as mistaken:
        wakeful.Client(url, "a token")
    assert mistaken.value.remedy == "write it as http://127.0.0.1:7717"


def test_what_could_never_be_sent_is_not_told_to_have_been_perhaps_done():
    with wakeful.Client("http://127.0.0.1:seven", "a token") as client, pytest.raises(Unreachable) as gone:
        client.send("moss", "the tide is out")
    assert "cannot be reached" in str(gone.value) and "may have been done" not in str(gone.value)
