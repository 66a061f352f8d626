"""Whatever is wrong is told in one shape, with a remedy and without a word too much."""

import json
import logging

import pytest

from wakeful.control.callers import Forbidden
from wakeful.control.operations import OPERATIONS
from wakeful.core.errors import Busy, Conflict, Mistake, Stale, Unknown
from wakeful.http.schemas import FORMS

MESSAGES = "/v1/agents/wren/messages"


def told(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json
    assert {"type", "title", "status", "detail", "remedy"} <= set(problem)
    assert problem["status"] == answer.status
    return problem


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (Mistake("expected a duration, found 5", "write 5m"), 400, "mistake"),
        (Forbidden("only the operator may"), 403, "forbidden"),
        (Unknown("no agent is called wern"), 404, "unknown"),
        (Conflict("k came with another body"), 409, "conflict"),
        (Stale("run 3 has ended"), 409, "stale"),
        (Busy("the database is locked"), 503, "busy"),
    ],
)
def test_each_error_of_control_has_its_status_and_keeps_its_words(error, status, kind, served, control):
    control.answers["status"] = error
    problem = told(served.ask("GET", "/v1/status"))
    assert (problem["status"], problem["type"]) == (status, f"urn:wakeful:error:{kind}")
    assert problem["detail"] == getattr(error, "reason", str(error))
    assert problem["remedy"]


def test_a_mistake_keeps_its_remedy_apart(served, control):
    control.answers["status"] = Mistake("expected a duration, found 5", "write 5m")
    problem = told(served.ask("GET", "/v1/status"))
    assert (problem["detail"], problem["remedy"]) == ("expected a duration, found 5", "write 5m")


def test_busy_says_when_to_come_back(served, control):
    control.answers["status"] = Busy("locked")
    assert served.ask("GET", "/v1/status").headers["retry-after"] == "1"


def test_sick_storage_is_told_without_where_it_is(served, control, caplog):
    control.answers["send"] = OSError(28, "No space left on device", "/data/wakeful.db")
    answer = served.ask("POST", MESSAGES, {"body": "x"})
    assert told(answer)["type"] == "urn:wakeful:error:sick"
    assert answer.status == 503
    assert b"wakeful.db" not in answer.body
    assert "No space left" in caplog.text


def test_what_nobody_foresaw_is_logged_and_told_without_detail(served, control, caplog):
    control.answers["status"] = ZeroDivisionError("a secret of ours")
    with caplog.at_level(logging.ERROR):
        answer = served.ask("GET", "/v1/status")
    assert (answer.status, told(answer)["detail"]) == (500, "")
    assert b"secret" not in answer.body and b"Traceback" not in answer.body
    assert "a secret of ours" in caplog.text
    assert served.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize(
    "body",
    [
        *(b"{", b"", b"nonsense", b"[1]", b'"x"', b"\xff\xfe", b"{}", b"[" * 100_000, b"9" * 5_000),
        *(b'{"body": NaN}', b'{"body": 1}', b'{"body": null}', b'{"body": "\\ud800"}'),
        *(b'{"body": "x", "reply_to": "3"}', b'{"body": "x", "reply_to": 0}'),
        b'{"body": "x", "reply_to": 99999999999999999999}',
    ],
)
def test_a_body_that_cannot_be_understood_is_400(body, served, control):
    answer = served.ask("POST", MESSAGES, body)
    problem = told(answer)
    assert answer.status == 400
    assert problem["detail"] and problem["remedy"]
    assert control.asked == []


@pytest.mark.parametrize("depth", [10, 200, 300, 900, 990, 1_000, 10_000])
def test_a_payload_of_any_depth_is_taken_or_refused_and_breaks_nothing(depth, served):
    body = b'{"title": "t", "payload": ' + b"[" * depth + b"]" * depth + b"}"
    assert served.ask("POST", "/v1/tasks", body).status == (201 if depth <= 200 else 400)


def test_a_number_that_is_none_is_refused_wherever_it_stands(served, control):
    for payload in ("NaN", '{"a": [Infinity]}', "-Infinity"):
        body = f'{{"title": "t", "payload": {payload}}}'.encode()
        assert served.ask("POST", "/v1/tasks", body).status == 400, payload
    assert control.asked == []


def test_an_unknown_field_of_a_body_is_told_with_the_nearest_known_one(served, control):
    problem = told(served.ask("POST", MESSAGES, {"body": "x", "prioritty": "high"}))
    assert problem["status"] == 400
    assert problem["mistakes"] == [{"where": "body.prioritty", "reason": "unknown field"}]
    assert problem["remedy"] == "did you mean priority?"
    assert control.asked == []


def test_a_name_as_long_as_a_page_is_not_told_back_whole(served, control):
    for problem in (
        told(served.ask("GET", f"/v1/runs?{'x' * 20_000}=1")),
        told(served.ask("POST", MESSAGES, {"body": "x", "y" * 20_000: 1})),
    ):
        assert problem["status"] == 400
        assert len(str(problem)) < 1_000
    assert control.asked == []


def test_an_unknown_field_of_a_query_is_told_too(served, control):
    assert "cursor" in told(served.ask("GET", "/v1/runs?colour=red"))["remedy"]
    assert told(served.ask("GET", "/v1/tasks?curser=7"))["remedy"] == "did you mean cursor?"
    problem = told(served.ask("GET", "/v1/runs?agnet=wren"))
    assert (problem["status"], problem["remedy"]) == (400, "did you mean agent?")
    assert told(served.ask("GET", "/v1/stream?aftre=3"))["remedy"] == "did you mean after?"
    assert control.asked == []


@pytest.mark.parametrize(
    ("method", "target", "body", "remedy"),
    [
        ("POST", "/v1/agents/wren/pause?duration=1s", None, "say duration in the body"),
        ("POST", "/v1/agents/wren/messages?priorty=urgent", {"body": "x"}, "say priority in the body"),
        ("POST", "/v1/tasks?key=7", {"title": "x"}, "say key in the body"),
        ("POST", "/v1/reload?dry=1", None, "known in the body: nothing"),
        ("PATCH", "/v1/agents/wren/settings?version=1", {"cooldown": "1m"}, "say version in the body"),
        ("DELETE", "/v1/tasks/7?force", None, "known in the body: nothing"),
        ("POST", "/hooks/wake?mode=now", {"text": "x"}, "say mode in the body"),
        ("POST", "/hooks/agent?message=y", {"message": "x"}, "say message in the body"),
    ],
)
def test_what_is_changed_is_told_by_a_body_and_a_query_is_not_passed_over(
    method, target, body, remedy, served, control
):
    problem = told(served.ask(method, target, body))
    name = target.partition("?")[2].partition("=")[0]
    assert (problem["status"], problem["remedy"]) == (400, remedy)
    assert problem["mistakes"] == [{"where": f"query.{name}", "reason": "nothing is taken from the query here"}]
    assert control.asked == []


def test_whatever_needs_no_body_takes_no_query_all_the_same(served, control):
    places = {"agent": "wren", "run": "1", "task": "1"}
    for name, operation in OPERATIONS.items():
        fields = FORMS[name].given.model_fields.values()
        if operation.method != "GET" and not any(field.is_required() for field in fields):
            answer = served.ask(operation.method, operation.path.format(**places) + "?dry=1", {})
            assert (answer.status, answer.json["mistakes"][0]["where"]) == (400, "query.dry"), name
    assert control.asked == []


def test_every_mistake_is_told_at_once_and_nothing_that_was_sent(served):
    answer = served.ask("POST", "/v1/tasks", {"agent": "", "tags": "my-secret", "max_retries": -1})
    places = {mistake["where"] for mistake in told(answer)["mistakes"]}
    assert places == {"body.title", "body.agent", "body.tags", "body.max_retries"}
    assert b"my-secret" not in answer.body


@pytest.mark.parametrize(
    "target",
    [
        *("/v1/runs/x", "/v1/runs/0", "/v1/runs/99999999999999999999", "/v1/runs?limit=0", "/v1/runs?limit=x"),
        *("/v1/runs?open=perhaps", "/v1/events?after=-1", "/v1/runs/1/output?stream=stdin", "/v1/agents/%00x?x=1"),
    ],
)
def test_a_bad_path_or_query_is_400(target, served, control):
    assert told(served.ask("GET", target))["status"] == 400
    assert control.asked == []


def test_an_unknown_path_and_a_wrong_method_have_the_same_shape(served):
    assert told(served.ask("GET", "/v1/nothing"))["status"] == 404
    wrong = served.ask("DELETE", "/v1/status")
    assert told(wrong)["status"] == 405
    assert wrong.headers["allow"] == "GET, HEAD"
    for method, target, allowed in (
        ("PUT", "/v1/tasks", "GET, HEAD, POST"),
        ("PUT", "/v1/tasks/3", "DELETE, GET, HEAD"),
        ("DELETE", "/v1/tasks/counts", "GET, HEAD"),
        ("GET", "/v1/tasks/batch", "POST"),
    ):
        wrong = served.ask(method, target)
        assert (told(wrong)["status"], wrong.headers["allow"]) == (405, allowed), target


def test_what_is_not_http_has_the_same_shape(served):
    with served.connect() as connection:
        connection.sendall(b"HELO there\r\n\r\n")
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 400")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["type"] == "urn:wakeful:error:mistake"
