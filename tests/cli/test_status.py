"""`wakeful status`: one line per agent, in plain words."""

import json
from datetime import UTC, datetime

import pytest

from tests.cli.office import wakeful
from wakeful.cli.standings import banner, doing_words, header, lines_of, outages
from wakeful.cli.status import _lines

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
AGENT = {
    "name": "wren",
    "state": "idle",
    "position": {"state": "beat", "hits": 0, "kind": "wake"},
    "due_at": None,
    "run": None,
    "last": {"outcome": None, "ended_at": None},
    "paused": None,
    "waiting": None,
    "doing": ["idle, until something arrives"],
}
PAUSE = {"scope": "fleet", "owner": "operator", "reason": "deploy", "since": "2026-03-02T11:00:00Z", "until": None}


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (["running ", {"for": "2026-03-02T11:57:47Z"}, " of 15m"], "running 2m 13s of 15m"),
        (["idle, next beat ", {"in": "2026-03-02T12:04:00Z"}], "idle, next beat in 4m"),
        (["idle, next beat ", {"in": "2026-03-02T11:00:00Z"}], "idle, next beat now"),
        (["idle, next beat ", {"at": "2026-03-08T09:00:00Z"}], "idle, next beat Sun 09:00"),
        (["deferred by cooldown until ", {"at": "2026-03-02T14:05:00Z"}], "deferred by cooldown until 14:05"),
        (["seen ", {"ago": "2026-03-02T11:57:00Z"}], "seen 3m ago"),
        (["paused by \x1b[31moperator\n: a\tlunch"], "paused by operator : a lunch"),
    ],
)
def test_what_an_agent_does_is_told_with_the_times_of_here_and_now(parts, words):
    assert doing_words(parts, NOON) == words


def text(lines):
    return ["".join(span.text for span in line).rstrip() for line in lines]


def test_lines_stand_under_each_other_with_what_else_is_worth_knowing():
    other = {
        **AGENT,
        "name": "a-longer-name",
        "position": {"state": "wake_add", "hits": 2, "kind": "wake"},
        "last": {"outcome": "failed", "ended_at": "2026-03-02T11:46:00Z", "run": 7, "reason": "exit code 3"},
        "unread": 3,
        "open_tasks": 1,
    }
    assert text(lines_of([AGENT, other], NOON)) == [
        "wren                        idle, until something arrives",
        "a-longer-name  wake_add +2  idle, until something arrives  failed 14m ago: exit code 3, 3 unread, 1 open task",
    ]


FLEET = {"title": "desk", "agents": 2, "sessions": {"taken": 1, "of": 2}, "workers": {"taken": 0, "of": 3}}


def test_the_header_tells_the_slots_and_the_engine():
    engine = {"since": "2026-03-02T09:00:00Z", "node": "here", "ready": True, "heartbeat_age": 0.4}
    assert text(header({"fleet": FLEET, "engine": engine}, NOON)) == [
        "desk: 2 agents, sessions 1 of 2, workers 0 of 3",
        "engine up 3h on here, heartbeat 0.4s ago",
    ]
    assert "no engine" in text(header({"fleet": FLEET, "engine": None}, NOON))[1]


def test_what_was_spent_stands_in_the_header_and_under_an_agent():
    spent = {"usd": 0.42, "tokens": 12_000, "of_usd": 5.0, "of_tokens": None}
    words = "spent today $0.42 of $5.00, 12,000 tokens"
    told = text(header({"fleet": {**FLEET, "spent": spent}, "engine": None}, NOON))[0]
    assert told == f"desk: {words}; 2 agents, sessions 1 of 2, workers 0 of 3"
    assert text(_lines({**AGENT, "pauses": [], "spent": spent}, NOON))[-1] == words


@pytest.mark.parametrize("sick", [{"ready": False, "why_not": "starting"}, {"ready": True, "heartbeat_age": 500.0}])
def test_an_engine_that_does_not_turn_cannot_be_overlooked(sick):
    (_, (told,)) = header({"fleet": FLEET, "engine": {"heartbeat_age": 1.0, **sick}}, NOON)
    assert "NOT READY" in told.text and told.style == "bold red"


def test_an_outage_names_its_place_once():
    row = {"agent": "wren", "source": "snapshot+http://here/list", "since": None, "node": None}
    told = [{**row, "outage": "http://here/list cannot be reached"}, {**row, "outage": "no answer"}]
    assert text(outages(told, False, NOON)) == [
        "wren: http://here/list cannot be reached",
        "wren: snapshot+http://here/list: no answer",
    ]


def test_a_pause_is_a_banner():
    ((told,),) = banner([PAUSE], NOON)
    assert told.text.strip() == "PAUSED  the fleet by operator since 11:00: deploy"
    assert "reverse" in told.style


def test_the_status_of_a_real_fleet(office):
    run = office.begin("wren")
    wakeful("pause", "moss", "--reason", "a new prompt")
    lines = wakeful("status").stdout.splitlines()
    assert lines[0] == "night desk: 2 agents, sessions 1 of 2, workers 0 of 3"
    assert lines[1].startswith("no engine")
    assert "PAUSED  moss by operator" in lines[2] and "a new prompt" in lines[2]
    assert lines[3].split()[:3] == ["moss", "paused", "by"]
    assert lines[4].split()[:2] == ["wren", "running"]
    row = json.loads(wakeful("status", "wren", "--json").stdout)
    assert (row["name"], row["run"]) == ("wren", run)
    assert wakeful("status", "wren").stdout.startswith("wren  running")


def test_json_is_the_fleets_status_with_its_agents(office):
    answer = json.loads(wakeful("status", "--json").stdout)
    assert [agent["name"] for agent in answer["agents"]] == ["moss", "wren"]
    assert {"fleet", "pauses", "engine", "counts", "open_runs"} <= set(answer)


def test_a_fleet_of_many_pages_is_shown_whole(office, monkeypatch):
    monkeypatch.setattr("wakeful.cli.status.PAGE", 1)
    assert len(json.loads(wakeful("status", "--json").stdout)["agents"]) == 2


def test_watching_needs_a_terminal(office):
    assert wakeful("status", "--watch").exit_code == 2
    assert wakeful("status", "--watch", "--json").exit_code == 2


def test_before_the_first_start_it_says_so(nowhere):
    (nowhere / "fleet.org").write_text("* wren\n")
    assert "no agents yet" in wakeful("status").stdout


# ---- several nodes


def a_node(name, state="up", *, seen="2026-03-02T11:59:58Z", runs=0):
    return {"name": name, "state": state, "seen_at": seen, "runs": runs}


def heads(engine, *nodes):
    return text(header({"fleet": FLEET, "engine": engine, "shared": True, "nodes": nodes}, NOON))[1:]


def test_the_header_tells_how_many_nodes_are_up_here_and_elsewhere():
    both = (a_node("barn"), a_node("desk"), a_node("yard", "left"))
    engine = {"since": "2026-03-02T11:59:00Z", "node": "desk", "heartbeat_age": 0.25}
    assert heads(engine, *both) == ["engine up 1m on desk, heartbeat 0.2s ago; 2 nodes up"]
    assert heads(None, *both) == ["no engine here; 2 nodes are up (barn, desk)"]
    assert heads(None, a_node("barn")) == ["no engine here; 1 node is up (barn)"]
    gone = ["no node is up: nothing begins by itself (start one: wakeful up)"]
    assert heads(None) == heads(None, a_node("barn", "lost"), a_node("yard", "left")) == gone


def test_of_very_many_nodes_a_few_are_named():
    (told,) = heads(None, *(a_node(f"n{number}") for number in range(9)))
    assert told == "no engine here; 9 nodes are up (n0, n1, n2, n3, n4, …)"


@pytest.mark.parametrize(
    ("node", "told"),
    [
        (
            a_node("barn", "lost", seen="2026-03-02T11:59:48Z", runs=2),
            "node barn is lost, last seen 12s ago, with 2 runs open: taken up in 8s",
        ),
        (
            a_node("barn", "lost", seen="2026-03-02T11:59:00Z", runs=1),
            "node barn is lost, last seen 1m ago, with 1 run open: taken up now",
        ),
        (
            a_node("barn", "left", seen="2026-03-02T11:59:55Z", runs=1),
            "node barn left 5s ago, with 1 run open: taken up in 15s",
        ),
    ],
)
def test_runs_of_a_node_that_is_gone_are_told_with_when_they_are_taken_up(node, told):
    assert heads(None, a_node("desk"), node)[1:] == [told]
    assert heads(None, node)[1:] == [told.partition(": ")[0] + ": taken up when a node starts"]
    assert heads(None, a_node("desk"), {**node, "runs": 0})[1:] == []
    shown = header({"fleet": FLEET, "engine": None, "shared": True, "nodes": [node]}, NOON)[2]
    assert shown[0].style == "yellow"
