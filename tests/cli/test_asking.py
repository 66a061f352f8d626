"""Asking for a run: what the door's answer looks like, and waiting for what comes of it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner

from tests.cli.office import LEASE, now, wakeful
from wakeful.cli import main, waiting
from wakeful.cli.asking import reply_words, run_words
from wakeful.cli.complaints import Complaint
from wakeful.cli.place import Place
from wakeful.core.runs import Ending
from wakeful.core.settlement import settle
from wakeful.store.protocol import Finish

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
REPLY = {"agent": "wren", "run_id": None, "guard": None, "reason": "", "numbers": {}, "next_eligible": None}


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"verdict": "admit", "run_id": 12}, "wren: run 12 begins"),
        ({"verdict": "defer", "guard": "busy", "reason": "run 3 is open"}, "wren waits for busy: run 3 is open"),
        ({"verdict": "defer", "reason": "no engine"}, "wren waits: no engine"),
        (
            {
                "verdict": "refuse",
                "guard": "cooldown",
                "reason": "woken 60 s ago",
                "numbers": {"since": 60.0, "limit": 300.0},
                "next_eligible": "2026-03-02T12:04:00Z",
                "advice": "use message_agent",
            },
            "wren is refused by cooldown: woken 60 s ago; since 60, limit 300; next eligible 12:04 (in 4m); "
            "use message_agent",
        ),
    ],
)
def test_the_doors_answer_is_a_sentence(reply, words):
    assert reply_words("wren", {**REPLY, **reply}, NOON) == words


def test_an_ended_run_is_a_sentence():
    run = {
        "id": 7,
        "agent": "wren",
        "outcome": "failed",
        "state": "ended",
        "summary": "",
        "reason": "exit code 1",
        "started_at": "2026-03-02T12:00:00Z",
        "ended_at": "2026-03-02T12:02:13Z",
    }
    assert run_words(run) == "wren: run 7 failed after 2m 13s: exit code 1"


def test_without_an_engine_a_tick_is_recorded_and_exits_0(office):
    result = wakeful("tick", "wren", "--reason", "look")
    assert (result.exit_code, result.stdout) == (0, "wren waits: no engine: recorded, decided when one starts\n")
    with office.store() as store:
        (row,) = store.wakes(agent="wren", state="waiting")
    assert (row.wake.reason, row.wake.sender) == ("look", "operator")


def test_a_refused_tick_exits_1_and_says_what_lifts_it(served):
    wakeful("pause", "--reason", "deploy", "--for", "2h")
    result = wakeful("tick", "wren")
    assert result.exit_code == 1
    assert "wren is refused by paused: the fleet is paused by operator: deploy" in result.stdout
    assert "next eligible" in result.stdout and "wakeful resume" in result.stdout


def test_the_same_key_asks_once(served):
    first, again = (json.loads(wakeful("tick", "wren", "--key", "k1", "--json").stdout) for _ in range(2))
    assert first["wake_id"] == again["wake_id"]


def test_an_instant_may_be_several_words(office):
    result = wakeful("at", "wren", "in", "20m")
    assert result.exit_code == 0
    assert "a beat" in result.stdout and "(in 20m)" in result.stdout


def test_a_prompt_and_a_message_may_come_from_stdin(office):
    sent = CliRunner().invoke(main, ["send", "wren", "-", "--json"], input="two\nlines\n")
    assert json.loads(sent.stdout)["message"]["body"] == "two\nlines\n"
    asked = CliRunner().invoke(main, ["run", "wren", "-"], input="write a page")
    assert asked.exit_code == 0
    assert "write a page" in wakeful("task", "list").stdout


# ---- waiting


@pytest.fixture
def rests(monkeypatch):
    """What happens while somebody rests between two looks, one after the other."""
    happenings: list[Callable[[], object]] = []
    monkeypatch.setattr("time.sleep", lambda _: happenings.pop(0)())
    return happenings


@pytest.fixture
def answers(monkeypatch):
    """What is answered to each question, one after the other; the last one for ever."""
    given: dict[str, list[dict[str, object]]] = {}

    def ask(self, operation, **parameters):
        rows = given[operation]
        return rows.pop(0) if len(rows) > 1 else rows[0]

    monkeypatch.setattr(waiting.Patient, "ask", ask)
    return given


DECIDED = {"verdict": "admit", "run_id": 5, "joined": None, "reason": ""}
ENDED = {"id": 5, "agent": "wren", "state": "ended", "outcome": "done", "summary": "written", "reason": ""}


def test_waiting_goes_from_the_wake_to_the_end_of_its_run(answers, rests):
    answers["decision"] = [
        {"verdict": "defer", "run_id": None, "joined": None, "reason": "slots"},
        {"verdict": "defer", "run_id": None, "joined": None, "reason": "slots"},
        DECIDED,
    ]
    answers["show_run"] = [{**ENDED, "state": "running", "outcome": None}, ENDED]
    rests += [lambda: None] * 3
    told: list[dict[str, object]] = []
    assert waiting.wait_for_wake(None, 1, told.append) == ENDED
    assert [row["reason"] for row in told] == ["slots"], "each reason is told once"
    assert rests == []


def test_waiting_follows_a_wake_that_joined_another(answers, rests, monkeypatch):
    asked = []
    rows = {1: {"verdict": "defer", "run_id": None, "joined": 9, "reason": "joined"}, 9: DECIDED}

    def ask(self, operation, **parameters):
        asked.append(parameters)
        return rows[parameters["wake"]] if operation == "decision" else ENDED

    monkeypatch.setattr(waiting.Patient, "ask", ask)
    rests += [lambda: None]
    assert waiting.wait_for_wake(None, 1, lambda row: None) == ENDED
    assert asked == [{"wake": 1}, {"wake": 9}, {"run": 5}]


def test_waiting_ends_with_a_refusal(answers, rests):
    answers["decision"] = [{**DECIDED, "verdict": "refuse", "run_id": None}]
    assert waiting.wait_for_wake(None, 1, lambda row: None)["verdict"] == "refuse"


def test_a_vetoed_run_is_waited_for_again(rests, monkeypatch):
    runs = {5: {**ENDED, "state": "void", "outcome": None}, 6: {**ENDED, "id": 6}}
    decided = [DECIDED, {**DECIDED, "run_id": 6}]

    def ask(self, operation, **parameters):
        return decided.pop(0) if operation == "decision" else runs[parameters["run"]]

    monkeypatch.setattr(waiting.Patient, "ask", ask)
    rests += [lambda: None]
    assert waiting.wait_for_wake(None, 1, lambda row: None)["id"] == 6


def test_rests_grow_to_a_second(monkeypatch):
    rested: list[float] = []
    monkeypatch.setattr("time.sleep", rested.append)
    looks = waiting.rests()
    for _ in range(20):
        next(looks)
    assert (rested[0], rested[-1]) == (0.1, 1.0)
    assert rested == sorted(rested)


@pytest.mark.parametrize(("exit_code", "code", "outcome"), [(0, 0, "done"), (1, 1, "failed")])
def test_with_wait_the_exit_code_is_that_of_the_run(office, served, rests, exit_code, code, outcome):
    """The engine is played by the test: it claims the run, and ends it while the command rests."""
    store = served.control.access.store

    def work() -> None:
        (order,) = store.claim("here", now(), LEASE)
        finish = Finish(run=order.run.id, epoch=order.run.epoch, ending=Ending(exit_code=exit_code, output="written"))
        store.finish([finish], settle, now())

    rests.append(work)
    result = wakeful("tick", "wren", "--wait")
    assert result.exit_code == code, result.output
    assert f"wren: run 1 {outcome}" in result.stdout


def test_an_engine_that_does_not_come_back_is_given_up(office):
    time = iter([0.0, 10.0, 40.0])
    patient = waiting.Patient(Place(str(office.data)), clock=lambda: next(time))
    assert patient.ask("status")["engine"] is None
    with pytest.raises(Complaint, match="no engine is at work"):
        patient.ask("status")


def test_whoever_stops_waiting_is_told_that_it_goes_on(served, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(waiting, "wait_for_wake", interrupted)
    result = wakeful("tick", "wren", "--wait")
    assert result.exit_code == 1
    assert "no longer waited for; what was asked for goes on" in result.stderr and "Abort" not in result.stderr
