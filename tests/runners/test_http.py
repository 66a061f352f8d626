"""A run at an address: a real server, a real guardian, and the ending that comes of what was answered."""

import asyncio
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import pytest

from soak.caller import ROOT, Caller
from tests.runners.carrier_case import TOKEN, Desk, a_beat
from tests.runners.orders import an_agent
from tests.runners.remote import Asked, Remote, Reply, in_json
from wakeful.core.agents import Agent, Runner
from wakeful.core.runs import Ending, ErrorClass, Outcome, read_outcome
from wakeful.runners.errand import Trouble
from wakeful.runners.http import MOST_BODY, Origin, encryption
from wakeful.runners.protocol import BRIEFING_JSON, RESULT, STDOUT, Found
from wakeful.testing.contracts.runner_case import real

SOON = {"Retry-After": "0"}


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path).open() as desk:
        yield desk


@pytest.fixture
def remote() -> Iterator[Remote]:
    made = Remote(lambda asked: Reply(204))
    yield made
    made.close()


def at(url: str, **more: object) -> Agent:
    return an_agent(runner=Runner.url, target=url, **more)


async def posted(desk: Desk, url: str, number: int = 42, **more: object) -> Ending:
    held = await desk.carrier.carry(a_beat(at(url, **more), number))
    return await held.wait()


# ---- what is sent


@real
async def test_the_briefing_is_posted_as_json_with_what_the_agent_needs_to_call_back(yard, remote):
    await posted(yard, f"{remote.url}/agents/wren?team=night#token=REMOTE_TOKEN", 42)
    (asked,) = remote.asked
    assert (asked.method, asked.path) == ("POST", "/agents/wren?team=night")
    assert asked.body == (yard.run_folder() / BRIEFING_JSON).read_bytes()
    assert json.loads(asked.body)["run"]["id"] == 42
    expected = {
        "Content-Type": "application/json",
        "Wakeful-Run": "42",
        "Wakeful-Agent": "wren",
        "Wakeful-Url": "http://127.0.0.1:7717",
        "Wakeful-Token": f"{TOKEN}42",
        "Wakeful-Deadline": "2026-03-02T12:15:00.000000Z",
        "Authorization": "Bearer open-sesame",
    }
    assert {name: asked.headers.get(name) for name in expected} == expected
    assert asked.headers["Idempotency-Key"].startswith("42-0-")


@real
async def test_without_a_token_nothing_is_authorised_and_another_run_has_another_key(yard, remote):
    await posted(yard, remote.url, 1)
    await posted(yard, remote.url, 2)
    assert [asked.path for asked in remote.asked] == ["/", "/"]
    assert not any("Authorization" in asked.headers for asked in remote.asked)
    assert len({asked.headers["Idempotency-Key"] for asked in remote.asked}) == 2


# ---- what is answered

RESULT_SHAPE = {"outcome": "no_work", "summary": "all quiet", "usage": {"tokens": 7, "usd": 0.5}}
CLAUDE = {"type": "result", "subtype": "success", "result": "wrote it", "total_cost_usd": 0.25, "usage": {}}
PLAIN = {"Content-Type": "text/plain"}
AN_HOUR = {"Retry-After": "3600"}

DONE, NO_WORK, FAILED = Outcome.done, Outcome.no_work, Outcome.failed
ANSWERS: dict[str, tuple[Reply, Outcome, ErrorClass | None, str]] = {
    "nothing": (Reply(204), DONE, None, ""),
    "an empty page": (Reply(200, b" \n", PLAIN), DONE, None, ""),
    "a text": (Reply(200, b"wrote a page", PLAIN), DONE, None, "wrote a page"),
    "a text of another alphabet": (
        Reply(200, b"\xe4", {"Content-Type": "text/plain; charset=latin-1"}),
        DONE,
        None,
        "ä",
    ),
    "a text that says no work": (Reply(200, b"NO-WORK: all read", PLAIN), NO_WORK, None, "NO-WORK"),
    "a text of an unknown kind": (Reply(200, b"NO-WORK"), NO_WORK, None, "NO-WORK"),
    "a result": (in_json(RESULT_SHAPE), NO_WORK, None, ""),
    "a result of failure": (in_json({"outcome": "failed", "error": "no paper"}), FAILED, ErrorClass.other, "no paper"),
    "a result by another name": (
        Reply(200, b'{"outcome": "failed", "error": "no ink"}', PLAIN),
        FAILED,
        ErrorClass.other,
        "no ink",
    ),
    "a result without its length": (
        Reply(200, b'{"outcome": "no_work"}', {"Content-Length": "", "Connection": "close"}),
        NO_WORK,
        None,
        "",
    ),
    "a text without its length": (
        Reply(200, b"wrote half", {"Content-Length": "", "Connection": "close"}),
        FAILED,
        ErrorClass.config,
        "without its length",
    ),
    "what an agent program prints": (in_json(CLAUDE), DONE, None, ""),
    "another outcome": (in_json({"outcome": "fine"}), FAILED, ErrorClass.other, "expected the outcome"),
    "a list": (in_json([1]), FAILED, ErrorClass.other, "expected a JSON object"),
    "no JSON": (Reply(200, b"{", {"Content-Type": "application/json"}), FAILED, ErrorClass.other, "no JSON"),
    "a quota": (Reply(429, b"", AN_HOUR), FAILED, ErrorClass.quota, "429 Too Many Requests"),
    "a quota of unknown length": (Reply(429), FAILED, ErrorClass.quota, "429"),
    "a rest": (Reply(503, b"", AN_HOUR), FAILED, ErrorClass.quota, "503"),
    "a breakdown": (Reply(503), FAILED, ErrorClass.other, "503 Service Unavailable"),
    "no right": (Reply(401), FAILED, ErrorClass.auth, "401 Unauthorized"),
    "forbidden": (Reply(403), FAILED, ErrorClass.auth, "403"),
    "not there": (Reply(404, b"who?"), FAILED, ErrorClass.config, "answered 404 Not Found"),
    "gone": (Reply(410), FAILED, ErrorClass.config, "410 Gone"),
    "too large": (Reply(413), FAILED, ErrorClass.config, "413"),
    "too slow": (Reply(408), FAILED, ErrorClass.other, "408"),
    "broken": (Reply(500, b"secret trace"), FAILED, ErrorClass.other, "500 Internal Server Error"),
    "a code of its own": (Reply(599), FAILED, ErrorClass.other, "answered 599"),
    "elsewhere": (Reply(302, b"", {"Location": "http://169.254.169.254/"}), FAILED, ErrorClass.config, "redirects"),
    "moved": (Reply(308, b"", {"Location": "/there"}), FAILED, ErrorClass.config, "redirects are not followed"),
    "accepted, and no more": (Reply(202), FAILED, ErrorClass.config, "without a Location"),
    "accepted elsewhere": (
        Reply(202, b"", {"Location": "http://169.254.169.254/latest"}),
        FAILED,
        ErrorClass.config,
        "not of the same origin",
    ),
    "zipped": (Reply(200, b"x", {"Content-Encoding": "gzip"}), FAILED, ErrorClass.other, "encoding"),
    "too much": (
        Reply(200, bytes(MOST_BODY + 1), {"Content-Length": f"{10**10}"}),
        FAILED,
        ErrorClass.other,
        "more than 4,000,000 bytes",
    ),
    "broken off": (
        Reply(200, b"half", {"Content-Length": "9", "Connection": "close"}),
        FAILED,
        ErrorClass.other,
        "broke",
    ),
}


@real
async def test_each_answer_makes_its_outcome(yard, remote):
    names = list(ANSWERS)
    remote.answer = lambda asked: ANSWERS[names[int(asked.path[1:].partition("?")[0]) - 401]][0]
    gate = asyncio.Semaphore(4)

    async def one(number: int) -> Ending:
        async with gate:
            return await posted(yard, f"{remote.url}/{number}?key=in-a-query", number)

    ended = await asyncio.gather(*(one(number) for number in range(401, 401 + len(names))))
    for name, ending in zip(names, ended, strict=True):
        _, outcome, kind, words = ANSWERS[name]
        result = ending.result
        assert read_outcome(ending) is outcome, name
        assert (result.error_class if result else None) is kind, name
        assert words in ((result.error or "") if result and result.error else ending.output), name
        # What the other end sent is in the run's own log, and nowhere else.
        assert "secret trace" not in str(replace(ending, printed="")) and "in-a-query" not in str(ending), name
    endings = dict(zip(names, ended, strict=True))
    assert [asked.path for asked in remote.asked if asked.method != "POST"] == []
    quota, result = endings["a quota"].result, endings["a result"].result
    assert timedelta(minutes=59) < quota.retry_at - datetime.now(UTC) <= timedelta(hours=1)
    assert (result.summary, result.usage.tokens, result.usage.usd) == ("all quiet", 7, 500_000)
    assert endings["what an agent program prints"].result.usage.usd == 250_000
    assert endings["a breakdown"].result.retry_at is None


@real
async def test_what_nobody_answers_has_failed_with_the_reason(yard, remote):
    url = remote.url
    remote.close()
    ending = await posted(yard, url)
    assert (ending.exit_code, ending.result.error_class) == (1, ErrorClass.other)
    assert ending.result.error == f"{url}/ cannot be reached: Connection refused"


@real
async def test_a_secret_in_the_answer_is_hidden_wherever_it_is_kept(yard, remote):
    remote.answer = lambda asked: in_json({"outcome": "done", "summary": f"open-sesame {TOKEN}42"})
    ending = await posted(yard, f"{remote.url}#token=REMOTE_TOKEN")
    assert ending.result.summary == "[redacted] [redacted]"
    for name in (RESULT, STDOUT):
        assert b"open-sesame" not in (yard.run_folder() / name).read_bytes()


# ---- work that takes its time


class Worker:
    """202 and a place to ask; then, after so many polls, the last word."""

    def __init__(self, polls: int, last: Reply, between: Reply | None = None) -> None:
        self.polls, self.last = polls, last
        self.between = between or Reply(202, b"", SOON)

    def __call__(self, asked: Asked) -> Reply:
        if asked.method == "POST":
            return Reply(202, b"", {"Location": "/jobs/7?part=1", **SOON})
        if asked.method == "DELETE":
            return Reply(204)
        self.polls -= 1
        return self.between if self.polls >= 0 else self.last


@real
async def test_work_that_was_accepted_is_polled_until_it_has_ended(yard, remote):
    remote.answer = Worker(1, in_json({"outcome": "done", "summary": "a long page"}))
    ending = await posted(yard, f"{remote.url}/agents/wren#token=REMOTE_TOKEN")
    assert (read_outcome(ending), ending.result.summary) == (Outcome.done, "a long page")
    assert remote.methods() == ["POST", "GET", "GET"]
    polled = remote.asked[-1]
    assert (polled.path, polled.headers["Authorization"]) == ("/jobs/7?part=1", "Bearer open-sesame")
    assert polled.headers["Wakeful-Run"] == "42" and "Wakeful-Token" not in polled.headers


@real
async def test_a_poll_that_fails_in_passing_is_asked_again_and_not_for_ever(yard, remote):
    remote.answer = Worker(2, Reply(200, b"made it"), between=Reply(503, b"", SOON))
    assert (await posted(yard, remote.url, 1)).output == "made it"
    remote.asked.clear()
    remote.answer = Worker(100, Reply(200), between=Reply(502, b"", SOON))
    ending = await posted(yard, remote.url, 2)
    assert ending.result.error.endswith("answered 502 Bad Gateway")
    assert remote.methods() == ["POST", *["GET"] * 5, "DELETE"]


@real
async def test_asked_to_end_it_takes_back_the_work_and_goes(yard, remote):
    remote.answer = Worker(10_000, Reply())
    held = await yard.carrier.carry(a_beat(at(remote.url, kill_grace=timedelta(seconds=30))))
    await yard.until(lambda: "GET" in remote.methods(), "a poll")
    await held.end("operator")
    ending = await held.wait()
    assert (read_outcome(ending), ending.by) == (Outcome.killed, "operator")
    assert ending.elapsed < timedelta(seconds=30)
    assert (remote.asked[-1].method, remote.asked[-1].path) == ("DELETE", "/jobs/7?part=1")


@real
async def test_an_agent_that_is_silent_is_waited_for_until_the_wall_clock(yard, remote):
    enough = threading.Event()
    remote.answer = lambda asked: (enough.wait(30), Reply())[1]
    ending = await posted(yard, remote.url, timeout=timedelta(seconds=0.7))
    enough.set()
    assert ending.timed_out and read_outcome(ending) is Outcome.killed


@real
async def test_an_engine_that_is_killed_in_the_middle_adopts_the_run_and_nothing_is_posted_twice(yard, remote):
    enough = threading.Event()
    remote.answer = lambda asked: (enough.wait(30), Reply(200, b"wrote a page"))[1]
    assignment = yard.carrier._assign(a_beat(at(remote.url)), None, None, None)
    caller = Caller([assignment])
    caller.hear("held 42")
    await yard.until(lambda: remote.asked, "the request")
    caller.kill()
    assert yard.carrier.find(42) is Found.alive
    held = await yard.another().adopt(42)
    enough.set()
    ending = await held.wait()
    assert (read_outcome(ending), ending.output) == (Outcome.done, "wrote a page")
    assert remote.methods() == ["POST"]


# ---- the origin


def test_certificates_and_names_are_checked():
    context = encryption()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_nothing_is_said_to_whoever_cannot_show_a_certificate(remote):
    origin = Origin(remote.url.replace("http:", "https:"))
    with pytest.raises(Trouble, match="cannot be reached"):
        origin.ask("POST", "/", {"Wakeful-Token": "secret"}, b"{}", within=5)
    assert remote.asked == []


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/jobs/1", "/jobs/1"),
        ("1?x=2#part", "/agents/1?x=2"),
        ("https://There.example/w", "/w"),
        ("https://there.example:443", "/"),
        ("//there.example/w", "/w"),
        ("http://there.example/w", None),
        ("https://there.example:8443/w", None),
        ("https://there.example.evil/w", None),
        ("https://there.example@evil/w", None),
        ("//evil/w", None),
        ("file:///etc/passwd", None),
        ("https://[::1/w", None),
        ("https://there.example:port/w", None),
    ],
)
def test_only_what_is_of_the_same_origin_is_polled(location, target):
    assert Origin("https://there.example/agents/wren").same(location) == target


def test_a_name_that_leads_elsewhere_later_is_not_followed_there(remote, monkeypatch):
    """DNS rebinding: the second look at the name would lead to another machine."""
    origin = Origin(remote.url.replace("127.0.0.1", "localhost"))
    monkeypatch.setattr(socket, "getaddrinfo", _leads_to("127.0.0.1", socket.getaddrinfo))
    assert origin.ask("GET", "/", {}).status == 204
    monkeypatch.setattr(socket, "getaddrinfo", _leads_to("127.0.0.2", socket.getaddrinfo))
    assert origin.ask("GET", "/again", {}).status == 204
    assert [asked.path for asked in remote.asked] == ["/", "/again"]


def _leads_to(address, ask):
    def lookup(host, *rest, **more):
        return ask(address if host == "localhost" else host, *rest, **more)

    return lookup


# ---- the guide


def agent_of_the_guide():
    text = (ROOT / "docs" / "guides" / "elsewhere.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    made: dict[str, Any] = {"__name__": "guide"}
    exec(code, made)
    return made["Agent"]


@real
async def test_the_agent_in_the_guide_answers(yard):
    agent = agent_of_the_guide()
    agent.log_message = lambda *_: None
    with HTTPServer(("127.0.0.1", 0), agent) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        ending = await posted(yard, f"http://127.0.0.1:{server.server_port}")
        thread.join()
    assert (read_outcome(ending), ending.result.summary) == (Outcome.done, "read 0 messages")
