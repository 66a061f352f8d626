"""Streams: nothing is left out, nothing is told twice, and none outlives its reason."""

import asyncio
from datetime import UTC, datetime

import pytest

from tests.http.served import KEYS, Stream, head, raw, serve
from tests.http.stub import Stub
from wakeful.control.callers import OPERATOR, Caller, Forbidden
from wakeful.core.errors import Unknown
from wakeful.http.auth import run_token
from wakeful.http.live import Live, frame

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class Printer:
    """The output of a run that has printed `texts` so far; each look after that finds the next of `later`."""

    def __init__(self, text: str, *later: str) -> None:
        self.text = text
        self.later = list(later)
        self.asked: list[int] = []

    def __call__(self, *, run: int, stream: str, offset: int, limit: int = 10) -> dict[str, object]:
        self.asked.append(offset)
        over = not self.later
        piece = self.text[offset : offset + limit]
        if not piece and self.later:
            self.text += self.later.pop(0)
        return {"offset": offset, "next_offset": offset + len(piece), "text": piece, "over": over}


def test_the_output_of_a_run_is_followed_until_it_is_over(served, control):
    control.answers["output"] = Printer("first\nsecond\nthird\n", "fourth\n", "fifth")
    with Stream(served, "/v1/runs/12/log") as log:
        assert log.answer.getheader("content-type").startswith("text/event-stream")
        frames = list(log)
    assert "".join(frame.data["text"] for frame in frames[:-1]) == "first\nsecond\nthird\nfourth\nfifth"
    assert [frame.id for frame in frames[-2:]] == ["31", "31"]
    assert (frames[-1].event, frames[-1].data) == ("over", {"run": 12, "stream": "stdout", "next_offset": 31})


def test_what_a_run_printed_last_is_not_lost_to_its_end(served, control):
    """It may come between the look at the file and the look at the run."""
    pages = iter([("", False), ("", True), ("last words", True), ("", True), ("", True)])

    def output(*, offset: int, **_: object) -> dict[str, object]:
        text, over = next(pages)
        return {"text": text, "next_offset": offset + len(text), "over": over}

    control.answers["output"] = output
    with Stream(served, "/v1/runs/12/log") as log:
        assert [frame.data.get("text") for frame in log] == ["last words", None]


def test_a_log_goes_on_where_it_was_cut_off(served, control):
    control.answers["output"] = printer = Printer("0123456789abcdef")
    with Stream(served, "/v1/runs/12/log?stream=stderr&offset=3", last="10") as log:
        assert [frame.data.get("text") for frame in log] == ["abcdef", None]
    assert printer.asked[0] == 10
    assert control.asked[0].parameters["stream"] == "stderr"
    with Stream(served, "/v1/runs/12/log?offset=14") as log:
        assert [frame.data.get("text") for frame in log] == ["ef", None]


@pytest.mark.parametrize("last", ["x", "-1", "9" * 19, "9" * 5_000, "1 2", "²", "0x1"])
def test_an_id_that_we_never_gave_is_a_mistake(last, served, control):
    for target in ("/v1/runs/1/log", "/v1/stream"):
        answer = served.ask("GET", target, headers={"Last-Event-ID": last})
        assert (answer.status, answer.json["type"]) == (400, "urn:wakeful:error:mistake")
    assert control.asked == []


@pytest.mark.parametrize(("error", "status"), [(Unknown("no run 1"), 404), (Forbidden("no"), 403)])
def test_before_a_stream_begins_an_error_is_a_problem_like_any_other(error, status, served, control):
    control.answers["output"] = control.answers["events"] = error
    for target in ("/v1/runs/1/log", "/v1/stream"):
        answer = served.ask("GET", target)
        assert answer.status == status
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_stream_that_breaks_is_cut_off_and_logged_and_can_be_taken_up_again(served, control, caplog):
    def output(*, offset: int, **_: object) -> dict[str, object]:
        if offset:
            raise ZeroDivisionError("a fault of ours")
        return {"text": "begun", "next_offset": 5, "over": False}

    control.answers["output"] = output
    with served.connect() as connection:
        connection.sendall(head(served.port, line="GET /v1/runs/1/log HTTP/1.1"))
        received = raw(connection)
    assert b"id: 5\nevent: output\n" in received
    assert not received.endswith(b"\r\n0\r\n\r\n"), "it ended as if it were whole"
    assert "a fault of ours" in caplog.text
    assert served.ask("GET", "/healthz").status == 200


def test_a_stream_ends_when_the_run_whose_token_opened_it_is_over():
    control = Stub()
    control.open[(12, 3)] = Caller(name="wren", run=12, epoch=3)
    control.answers["events"] = {"items": [], "next": None}
    control.answers["output"] = {"text": "", "next_offset": 0, "over": False}
    token = run_token(KEYS, 12, 3, NOON)
    with serve(lambda: control) as served:
        for target in ("/v1/runs/12/log", "/v1/stream"):
            control.open[(12, 3)] = Caller(name="wren", run=12, epoch=3)
            with Stream(served, target, token=token) as stream:
                control.open.clear()
                assert list(stream) == []


def test_a_reader_that_goes_leaves_nothing_running():
    control = Stub()
    control.answers["output"] = {"text": "x" * 100, "next_offset": 0, "over": False}
    with serve(lambda: control) as served:
        with Stream(served, "/v1/runs/1/log") as log:
            assert next(iter(log)).event == "output"
        # The server notices on its own; the stop in `serve` would wait for it otherwise.
        while served.server._state.tasks:
            served.ask("GET", "/healthz")


class Shut:
    """What is asked of it is answered with the next of `found` once it is opened."""

    def __init__(self, *found: list[dict[str, object]]) -> None:
        self.found = list(found)
        self.asked, self.opened = asyncio.Event(), asyncio.Event()

    async def __call__(self, **_: object) -> dict[str, object]:
        items = self.found.pop(0)
        self.asked.set()
        await self.opened.wait()
        return {"items": items}


ENDED = {"id": 8, "kind": "ended"}


def test_however_many_stand_at_a_place_one_looks_for_all_of_them_also_where_it_is_cut_off():
    control, events = Stub(), Shut([ENDED], [ENDED])
    control.answers["events"] = events

    async def readers() -> list[tuple[bytes, int]]:
        live = Live(control, control, asyncio.Event())
        first, *others = [asyncio.create_task(live._page(OPERATOR, 7, None, None)) for _ in range(200)]
        await events.asked.wait()
        assert len(control.asked) == 1
        first.cancel()
        await asyncio.wait({first})
        events.opened.set()
        return await asyncio.gather(*others)

    pages = asyncio.run(readers())
    assert len(pages) == 199 and set(pages) == {(frame("ended", ENDED, 8), 8)}
    assert len(control.asked) == 2


def test_whoever_comes_while_another_finds_nothing_looks_again():
    """The other may have looked before what called for it was committed."""
    control, events = Stub(), Shut([], [ENDED])
    control.answers["events"] = events

    async def readers() -> list[int]:
        live = Live(control, control, asyncio.Event())
        looking = [asyncio.create_task(live._page(OPERATOR, 7, None, None)) for _ in range(9)]
        await events.asked.wait()
        events.opened.set()
        return [page[1] for page in await asyncio.gather(*looking)]

    assert asyncio.run(readers()) == [7] + 8 * [8]


def test_of_events_that_share_an_id_only_the_last_carries_it(served, control):
    """Cut off among them, a reader goes on before them."""
    told = [{"id": 4, "kind": "task_ended", "item_id": item} for item in (1, 2)]

    def events(*, after: int, **_: object) -> dict[str, object]:
        return {"items": told if after < 4 else [], "next": 4}

    control.answers["events"] = events
    with served.connect() as connection:
        connection.sendall(head(served.port, line="GET /v1/stream?after=0 HTTP/1.1"))
        received = b""
        while b'"item_id": 2' not in received:
            received += connection.recv(65_536)
    first, last = received.split(b"event: task_ended\n")[:2]
    assert b"id: 4" not in first and last.rstrip().split(b"\n")[-1] == b"id: 4"


@pytest.mark.parametrize(("query", "headers"), [("?after=6", ()), ("", ("Last-Event-ID: 6",)), ("", ())])
def test_a_stream_gives_an_id_before_its_first_event_only_to_whoever_has_none(query, headers, served, control):
    told = [{"id": 7, "kind": "ended"}]
    control.answers["events"] = lambda *, after, **_: {"items": told if after == 6 else [], "last": 6}
    with served.connect() as connection:
        connection.sendall(head(served.port, *headers, line=f"GET /v1/stream{query} HTTP/1.1"))
        received = b""
        while b'"kind": "ended"' not in received:
            received += connection.recv(65_536)
    assert (b"id: 6\n" in received) is (not query and not headers) and b"id: 7\n" in received
