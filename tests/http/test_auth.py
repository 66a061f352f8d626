"""Tokens: whose they are, when they hold, and that guessing them gets nobody anywhere, nor anybody else locked out."""

from datetime import UTC, datetime

import pytest

from tests.http.served import KEYS, serve
from tests.http.stub import Stub
from wakeful.control.callers import OPERATOR, Caller
from wakeful.http.auth import Failures, Keys, read_run_token, run_token

WREN = Caller(name="wren", run=12, epoch=3)
NOON = datetime(2026, 3, 2, 12, 0, 0, 7, tzinfo=UTC)


# ---- a run's token


def test_a_run_token_names_its_run_and_epoch_and_when_it_was_begun():
    token = run_token(KEYS, 12, 3, NOON)
    assert token.startswith("run.12.3.")
    assert read_run_token(KEYS, token) == (12, 3, NOON)


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token.replace("run.12.", "run.13."),
        lambda token: token.replace(".3.", ".4."),
        lambda token: token.replace("run.12.3.", "run.1.23."),
        lambda token: token.replace("run.12.", "run.012."),
        lambda token: token.replace("7.", "8."),
        lambda token: "run.12.3." + token.rpartition(".")[2],
        lambda token: token[:-1] + ("0" if token[-1] != "0" else "1"),
        lambda token: token[:-1],
        lambda token: token + "0",
        lambda token: token + "\n",
        lambda token: token.upper(),
        lambda token: token.replace("12", "1²"),
        lambda token: "run.12.3.7." + "é" * 64,
        lambda token: "run...." + "0" * 64,
        lambda token: "run." + "9" * 5_000 + ".3.7." + "0" * 64,
        lambda token: "",
    ],
)
def test_a_run_token_that_was_changed_is_no_token(change):
    assert read_run_token(KEYS, change(run_token(KEYS, 12, 3, NOON))) is None


def test_a_run_token_of_another_secret_is_no_token():
    other = Keys(operator=KEYS.operator, secret=b"t" * 32)
    assert read_run_token(KEYS, run_token(other, 12, 3, NOON)) is None


def test_keys_do_not_show_themselves():
    assert KEYS.operator not in repr(KEYS) and "sss" not in repr(KEYS)


# ---- who is let in


def test_the_operator_is_the_operator_and_a_run_its_agent(served, control):
    control.open[(12, 3)] = WREN
    assert served.ask("GET", "/v1/status").status == 200
    assert served.ask("GET", "/v1/status", token=run_token(KEYS, 12, 3, NOON)).status == 200
    assert [asked.caller for asked in control.asked] == [OPERATOR, WREN]


def test_a_run_token_dies_with_its_run_and_with_its_epoch(served, control):
    token = run_token(KEYS, 12, 3, NOON)
    control.open[(12, 3)] = WREN
    assert served.ask("GET", "/v1/status", token=token).status == 200
    control.open = {(12, 4): Caller(name="wren", run=12, epoch=4)}
    answer = served.ask("GET", "/v1/status", token=token)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    control.open = {}
    assert served.ask("GET", "/v1/status", token=run_token(KEYS, 12, 4, NOON)).status == 401


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic x", f"Basic {KEYS.operator}", KEYS.operator])
def test_what_is_no_bearer_token_is_none(header, served):
    assert served.ask("GET", "/v1/status", token=None, headers={"Authorization": header}).status == 401


@pytest.mark.parametrize("token", [KEYS.operator[:-1], KEYS.operator + "x", "x", "é", "run.1.1.x"])
def test_a_token_that_is_nearly_right_is_wrong(token, served, control):
    assert served.ask("GET", "/v1/status", token=token).status == 401
    assert control.asked == []


def test_the_scheme_may_be_spelled_as_one_likes(served):
    assert (
        served.ask("GET", "/v1/status", token=None, headers={"Authorization": f"bearer {KEYS.operator}"}).status == 200
    )


def test_a_token_in_the_url_is_not_looked_at(served):
    assert served.ask("GET", f"/v1/status?token={KEYS.operator}", token=None).status == 401


# ---- guessing


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_wrong_tokens_are_told_to_wait_and_a_right_one_is_let_in_at_any_time(caplog):
    control, clock = Stub(), Clock()
    control.open[(12, 3)] = WREN
    with serve(lambda: control, app={"clock": clock}) as served:
        statuses = [served.ask("GET", "/v1/status", token=f"guess-{n}").status for n in range(25)]
        assert statuses == [401] * 20 + [429] * 5
        limited = served.ask("GET", "/v1/status", token="guess")
        assert limited.json["type"] == "urn:wakeful:error:too_many"
        assert limited.headers["retry-after"] == "61"
        assert served.ask("GET", "/v1/status").status == 200
        assert served.ask("GET", "/v1/status", token=run_token(KEYS, 12, 3, NOON)).status == 200
        assert served.ask("GET", "/v1/status", token=None).status == 401
        clock.now = 60.0
        assert served.ask("GET", "/v1/status", token="guess").status == 401
    # The events tell of it, and the log of the events.
    assert caplog.messages == []


def test_a_guess_never_reaches_the_store(served, control):
    for _ in range(3):
        served.ask("GET", "/v1/status", token="run.1.1.7." + "0" * 64)
    assert control.looks == 0


def test_failures_are_counted_for_each_address_and_an_address_has_one_spelling():
    failures = Failures(Clock(), most=2)
    assert [failures.note("10.0.0.1"), failures.note("::ffff:10.0.0.1")] == [None, None]
    assert failures.note("10.0.0.1") == 60.0
    assert failures.note("10.0.0.2") is None
    assert failures.note("") is None


def test_many_addresses_take_no_more_room_than_was_set_aside():
    failures = Failures(Clock(), addresses=3)
    for n in range(10):
        failures.note(f"10.0.0.{n}")
    assert len(failures._seen) == 3
