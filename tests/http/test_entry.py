"""The way in: the order of what is asked of a request, and that nothing gets round it."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest

from tests.http.served import KEYS, head, raw
from wakeful.http.entry import BODY_LIMIT

MESSAGES = "/v1/agents/wren/messages"


def kind(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.json["type"].rpartition(":")[2]


# ---- whose server this is


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""])
def test_a_request_for_another_host_is_misdirected(host, served, control):
    answer = served.ask("GET", "/v1/status", headers={"Host": host.format(port=served.port)})
    assert (answer.status, kind(answer)) == (421, "host")
    assert control.asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "LocalHost"])
def test_the_names_of_the_loopback_are_ours(host, served):
    assert served.ask("GET", "/v1/status", headers={"Host": f"{host}:{served.port}"}).status == 200


def test_even_health_is_told_only_under_our_own_name(served):
    assert served.ask("GET", "/healthz", token=None, headers={"Host": "evil.example"}).status == 421


def test_a_request_without_a_host_is_misdirected(served):
    with served.connect() as connection:
        connection.sendall(f"GET /healthz HTTP/1.0\r\nAuthorization: Bearer {KEYS.operator}\r\n\r\n".encode())
        assert raw(connection).startswith(b"HTTP/1.1 421")


# ---- pages


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1"])
@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/status"), ("POST", "/v1/stop"), ("GET", "/healthz")])
def test_a_page_of_another_origin_is_refused_even_with_the_token(origin, method, path, served, control):
    answer = served.ask(method, path, headers={"Origin": origin.format(port=served.port)})
    assert (answer.status, kind(answer)) == (403, "forbidden")
    assert control.asked == []


def test_our_own_pages_may_ask(served):
    assert served.ask("GET", "/v1/status", headers={"Origin": f"http://127.0.0.1:{served.port}"}).status == 200


def test_no_page_is_invited_by_a_preflight(served):
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = served.ask("OPTIONS", "/v1/stop", token=None, headers=asked)
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


# ---- tokens


@pytest.mark.parametrize("path", ["/v1/nothing", "/dashboard", "/docs", "/redoc", "/healthz/", "//healthz", "/HEALTHZ"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "TRACE", "OPTIONS"])
def test_a_path_that_does_not_exist_needs_a_token_too(path, method, served):
    assert served.ask(method, path, token=None).status == 401


def test_a_websocket_is_no_way_round(served, control):
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
    with served.connect() as connection:
        connection.sendall(head(served.port, *upgrade, "Sec-WebSocket-Version: 13", "Connection: close", token=None))
        assert raw(connection).startswith(b"HTTP/1.1 401")
    assert control.asked == []


def test_two_authorizations_are_none(served):
    right, wrong = f"Authorization: Bearer {KEYS.operator}", "Authorization: Bearer x"
    for both in ((right, wrong), (wrong, right), (right, right)):
        with served.connect() as connection:
            connection.sendall(head(served.port, *both, "Connection: close", token=None))
            assert raw(connection).startswith(b"HTTP/1.1 401")


# ---- bodies


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
def test_a_body_that_is_not_said_to_be_json_is_refused(media, served, control):
    answer = served.ask("POST", MESSAGES, {"body": "x"}, headers={"Content-Type": media})
    assert (answer.status, kind(answer)) == (415, "media")
    assert control.asked == []


def test_a_charset_beside_it_does_no_harm(served):
    said = {"Content-Type": "application/json; charset=utf-8"}
    assert served.ask("POST", MESSAGES, {"body": "ä"}, headers=said).status == 201


def test_a_body_of_ten_megabytes_is_too_large_and_the_connection_lives(served, control):
    answer = served.ask("POST", MESSAGES, b'{"body": "' + b"x" * 10_000_000 + b'"}')
    assert (answer.status, kind(answer)) == (413, "too_large")
    assert control.asked == []


def test_a_length_that_is_too_large_is_enough_to_be_refused(served):
    lines = (f"Content-Length: {BODY_LIMIT + 1}", "Content-Type: application/json")
    with served.connect() as connection:
        connection.sendall(head(served.port, *lines, line=f"POST {MESSAGES} HTTP/1.1"))
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_a_body_without_a_length_is_counted_as_it_comes(served, control):
    pieces = (b"x" * 100_000 for _ in range(50))
    answer = served.ask("POST", MESSAGES, pieces)
    assert (answer.status, kind(answer)) == (413, "too_large")
    assert control.asked == []


def test_the_largest_body_that_is_allowed_is_read_whole(served, control):
    filler = BODY_LIMIT - len(b'{"body": ""}')
    body = b'{"body": "' + b"x" * filler + b'"}'
    assert served.ask("POST", MESSAGES, body).status == 201
    assert len(control.asked[0].parameters["body"]) == filler
    assert served.ask("POST", MESSAGES, iter([body[:99], body[99:]])).status == 201
    assert served.ask("POST", MESSAGES, body + b" ").status == 413


def test_whoever_has_no_token_is_told_so_before_a_body_is_read(served):
    with served.connect() as connection:
        connection.sendall(head(served.port, "Content-Length: 900000", line="POST /v1/stop HTTP/1.1", token=None))
        assert connection.recv(100).startswith(b"HTTP/1.1 401")


def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_nothing_behind(served, control):
    with served.connect() as connection:
        lines = ("Content-Length: 100", "Content-Type: application/json")
        connection.sendall(head(served.port, *lines, line=f"POST {MESSAGES} HTTP/1.1") + b'{"body"')
    assert served.ask("GET", "/v1/status").status == 200
    assert [asked.name for asked in control.asked] == ["status"]


def test_answers_are_neither_kept_nor_guessed_at(served):
    for answer in (served.ask("GET", "/v1/status"), served.ask("GET", "/v1/status", token=None)):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert "server" not in answer.headers


def test_every_answer_says_what_time_it_is_here(served):
    for answer in (
        served.ask("GET", "/v1/status"),
        served.ask("GET", "/v1/status", token=None),
        served.ask("GET", "/"),
    ):
        said = parsedate_to_datetime(answer.headers["date"])
        assert abs(said - datetime.now(UTC)) < timedelta(seconds=5)
