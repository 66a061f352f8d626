"""A list over HTTP, from a real server on the loopback: what is sent, what is refused, what is an outage."""

import asyncio
import socket
import ssl
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.sources.pendings import EVERY, Served, reply
from wakeful.core.snapshots import read_snapshot
from wakeful.sources import request as requests
from wakeful.sources.aside import Unreadable
from wakeful.sources.snapshot import UrlSnapshot
from wakeful.testing.contracts.source_case import ids, lived, until

TOKEN = {"TMS_TOKEN": "tell-nobody-this"}


@pytest.fixture
def served():
    served = Served()
    yield served
    served.close()


def at(port, options="", scheme="http", **more):
    address = replace(read_snapshot(f"snapshot+{scheme}://127.0.0.1:{port}/tasks{options}"), every=EVERY)
    return UrlSnapshot("moss", address, variables={}, **more)


@contextmanager
def raw(answer, *, hold=False):
    """A server that answers one request with these bytes, and closes, or holds the line."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def serve():
            line, _ = listener.accept()
            with line:
                line.recv(65_536)
                line.sendall(answer)
                if hold:
                    over.wait(30)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        over.set()
        thread.join()


# ---- what is sent


@lived
async def test_a_request_is_a_plain_one_and_the_options_are_not_sent(served):
    assert ids(await served.source("?role=ceo#every=30s").look()) == []
    assert served.paths == ["/tasks?role=ceo"]
    (sent,) = served.requests
    assert sent["Accept"] == "application/json"
    assert "Authorization" not in sent
    assert "If-None-Match" not in sent


@lived
async def test_a_token_is_taken_from_its_variable_each_time(served):
    variables = dict(TOKEN)
    source = served.source("#token=TMS_TOKEN", variables)
    await source.look()
    variables["TMS_TOKEN"] = " another\n"
    await source.look()
    assert [sent["Authorization"] for sent in served.requests] == ["Bearer tell-nobody-this", "Bearer another"]


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({}, "the variable TMS_TOKEN holds no token"),
        ({"TMS_TOKEN": " "}, "the variable TMS_TOKEN holds no token"),
        ({"TMS_TOKEN": "a\r\nX-Evil: b"}, "TMS_TOKEN cannot be sent"),
        ({"TMS_TOKEN": "ä"}, "TMS_TOKEN cannot be sent"),
    ],
)
@lived
async def test_without_a_token_that_can_be_sent_nothing_is_asked(served, variables, why):
    assert (await served.source("#token=TMS_TOKEN", variables).look()).why == why
    assert served.requests == []


@lived
async def test_proxies_are_not_asked(served, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert not (await served.source().look()).outage


@lived
async def test_a_redirect_is_not_followed_and_the_token_goes_nowhere_else(served):
    elsewhere = Served()
    served.answer = lambda request: reply(request, 302, b"", Location=elsewhere.url)
    batch = await served.source("#token=TMS_TOKEN", TOKEN).look()
    assert batch.why == f"{served.url} answered 302: redirects are not followed; write the address that it leads to"
    assert elsewhere.requests == []
    elsewhere.close()


# ---- an unchanged list


@lived
async def test_a_list_that_has_not_changed_is_not_sent_again(served):
    served.put("a", "words")
    source = served.source()
    first = await source.look()
    second = await source.look()
    assert first == second
    assert second.observed is first.observed
    assert [sent.get("If-None-Match") is None for sent in served.requests] == [True, False]
    served.put("b", "words")
    assert ids(await source.look()) == ["a", "b"]


@lived
async def test_the_tag_of_a_list_that_was_not_understood_is_not_remembered(served):
    served.put("a", "words")
    source = served.source()
    await source.look()
    listed = served.answer
    served.answer = lambda request: reply(request, 200, b"oops", ETag='"x"')
    assert (await source.look()).outage
    served.answer = listed
    assert ids(await source.look()) == ["a"]
    assert served.requests[2]["If-None-Match"] == served.requests[1]["If-None-Match"] != '"x"'


@lived
async def test_unchanged_is_no_answer_to_one_who_knows_nothing(served):
    served.answer = lambda request: reply(request, 304, b"")
    assert (await served.source().look()).why == f"{served.url} answered 304 Not Modified"


# ---- outages


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "401 Unauthorized"), (404, "404 Not Found"), (500, "500 Internal Server Error"), (204, "204 No Content")],
)
@lived
async def test_any_status_but_200_is_an_outage_in_our_own_words(served, status, words):
    def answer(request):
        request.send_response(status, "tell-nobody-this")
        request.send_header("Content-Length", "0")
        request.end_headers()

    served.answer = answer
    batch = await served.source("?key=hidden#token=TMS_TOKEN", TOKEN).look()
    assert (batch.observed, batch.why) == (None, f"{served.url} answered {words}")


@lived
async def test_a_status_that_nobody_knows_is_told_by_its_number(served):
    served.answer = lambda request: reply(request, 299, b"[]")
    assert (await served.source().look()).why == f"{served.url} answered 299"


@lived
async def test_one_page_of_several_is_not_the_list(served):
    link = '<http://x/?page=2>; rel="next", <http://x/?page=9>; rel="last"'
    served.answer = lambda request: reply(request, 200, b"[]", Link=link)
    assert "one page of several" in (await served.source().look()).why
    served.answer = lambda request: reply(request, 200, b"[]", Link='<http://x/?page=1>; rel="prev"')
    assert (await served.source().look()).observed == ()


@lived
async def test_an_encoding_that_was_not_asked_for_is_an_outage(served):
    served.answer = lambda request: reply(request, 200, b"[]", Content_Encoding="gzip")
    assert "encoding" in (await served.source().look()).why


@lived
async def test_more_than_is_allowed_is_an_outage_and_is_not_read(served, monkeypatch):
    monkeypatch.setattr(requests, "MOST_BODY", 1_000)
    served.answer = lambda request: reply(request, 200, b" " * 998 + b"[]")
    assert not (await served.source().look()).outage
    served.answer = lambda request: reply(request, 200, b" " * 999 + b"[]")
    assert (await served.source().look()).why == f"{served.url} answered with more than 1,000 bytes"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "cannot be reached: Remote end closed connection without response"),
        (b"220 mail.example.org ESMTP\r\n", "gave an answer that is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n" + b'{"id": "a"}\n', "broke off its answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc\r\n" + b'{"id": "a"}\n\r\n', "broke it off"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b'{"id": "a"}\n{"id": "b"}\n', "not JSON"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n[]", "not HTTP"),
    ],
)
@lived
async def test_an_answer_that_is_not_whole_is_an_outage(answer, why):
    with raw(answer) as port:
        batch = await at(port).look()
    assert batch.outage
    assert why in batch.why


@lived
async def test_whole_answers_of_every_kind_are_lists():
    for answer in (
        b"HTTP/1.0 200 OK\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n1\r\n]\r\n0\r\n\r\n",
    ):
        with raw(answer) as port:
            assert (await at(port).look()).observed == ()
    lines = b'{"id": "a"}\n{"id": "b"}\n'
    for answer in (
        b"HTTP/1.1 200 OK\r\nContent-Length: 24\r\n\r\n" + lines,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n18\r\n" + lines + b"\r\n0\r\n\r\n",
    ):
        with raw(answer) as port:
            assert ids(await at(port).look()) == ["a", "b"]


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n["])
@lived
async def test_one_that_does_not_go_on_is_given_up(begun):
    with raw(begun, hold=True) as port:
        batch = await at(port, limit=0.2).look()
    assert batch.why == "no answer within 0.2 s"


@lived
async def test_one_that_drips_is_given_up():
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip():
            line, _ = listener.accept()
            with line:
                while not over.wait(0.01):
                    try:
                        line.send(b"x")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        batch = await at(listener.getsockname()[1], limit=0.3).look()
        over.set()
        thread.join()
    assert batch.why == "no answer within 0.3 s"


@lived
async def test_a_port_where_nobody_listens_is_an_outage():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert (await at(port).look()).why == f"http://127.0.0.1:{port}/tasks cannot be reached: Connection refused"


@lived
async def test_a_host_that_there_is_not_is_an_outage():
    address = read_snapshot("snapshot+http://nowhere.invalid/tasks")
    batch = await UrlSnapshot("moss", address, variables={}).look()
    assert batch.why.startswith("http://nowhere.invalid/tasks cannot be reached: ")


@lived
async def test_a_server_without_a_certificate_is_not_believed(served):
    port = served.server.server_port
    why = (await at(port, scheme="https").look()).why
    assert why.startswith(f"https://127.0.0.1:{port}/tasks cannot be reached: ")
    assert served.requests == []


def test_certificates_and_names_are_checked():
    context = requests._encryption()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@lived
async def test_stop_ends_a_request_under_way():
    with raw(b"", hold=True) as port:
        source = at(port)
        waiting = asyncio.ensure_future(source.look())
        await until(lambda: source._aside._work is not None and source._aside._work._work._socket is not None)
        await source.stop()
        # At once, and not when the single wait of ten seconds is over.
        assert (await asyncio.wait_for(waiting, 5)).outage


@lived
async def test_a_request_that_was_broken_off_before_it_began_is_not_sent(served):
    work = requests.Request(served.url)
    work.abort()
    with pytest.raises(Unreadable, match="was not asked"):
        work.do()
    assert served.requests == []
