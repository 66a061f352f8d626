"""What can be looked at: status, agents, runs, what they printed, and the engine itself."""

import asyncio
import json
import sqlite3

import pytest

from tests.control.desk import DONE, FAILED, HOUR, MINUTE, NOON, an_agent, replicas
from wakeful.control.output import in_file, read_output
from wakeful.core.agents import Limits
from wakeful.core.cadence import Cadence
from wakeful.core.codec import write_time
from wakeful.core.cron import parse_schedule
from wakeful.core.errors import Mistake
from wakeful.core.runs import Ending, Result
from wakeful.core.standing import Spend
from wakeful.core.windows import parse_window

AGENT = ["name", "state", "position", "idle_streak", "due_at", "run", "last", "paused", "node"]
RUN = ["id", "agent", "cause", "subject", "state", "outcome", "started_at", "ended_at", "attempt", "epoch", "node"]
RUN += ["summary", "usage", "wake_id", "task_ids", "shown"]


# ---- status


def test_status_counts_the_agents_by_their_state_and_tells_slots_runs_and_pauses(desk):
    quiet = Limits(quiet_hours=(parse_window("00:00-24:00"),))
    desk.declare(
        an_agent("busy"),
        an_agent("held"),
        an_agent("idle"),
        an_agent("late", limits=quiet),
        an_agent("off", enabled=False),
        an_agent("sick", max_failures=1),
        sessions=3,
        workers=4,
    )
    desk.end(desk.begin("sick"), FAILED)
    order = desk.begin("busy")
    desk.ask("pause_agent", agent="held", reason="lunch")
    desk.ask("send", agent="late", body="x")
    desk.ask("add_task", agent="late", title="t")
    desk.due()
    status = desk.ask("status")
    assert json.loads(json.dumps(status)) == status
    assert status["fleet"] == {
        "title": "night desk",
        "agents": 6,
        "sessions": {"taken": 1, "of": 3},
        "workers": {"taken": 0, "of": 4},
        "spent": {"tokens": 0, "usd": 0.0, "of_usd": None, "of_tokens": None},
    }
    assert status["counts"] == dict.fromkeys(("running", "waiting", "idle", "paused", "quarantined", "disabled"), 1)
    assert [run["id"] for run in status["open_runs"]] == [order.run.id]
    assert sorted((pause["scope"], pause["owner"]) for pause in status["pauses"]) == [
        ("agent:held", "operator"),
        ("agent:sick", "quarantine"),
    ]
    assert status["engine"] == {"ready": True} and status["diagnostics"] == ["fleet.org:1:1: mend it"]
    states = {row["name"]: row["state"] for row in desk.ask("agents")["items"]}
    assert states == {
        "busy": "running",
        "held": "paused",
        "idle": "idle",
        "late": "waiting",
        "off": "disabled",
        "sick": "quarantined",
    }


def test_status_without_an_engine_reads_the_fleet_file_and_says_what_is_wrong_with_it(desk):
    path = desk.folder / "fleet.org"
    path.write_text("#+TITLE: night desk\n#+RUN: true\n* wren\n", encoding="utf-8")
    desk.declare("wren")
    desk.control = desk.make(None, fleet_file=path)
    status = desk.ask("status")
    assert (status["engine"], status["fleet"]["title"], status["diagnostics"]) == (None, "night desk", [])
    path.write_text("#+TITLE: night desk\n#+RUN: true\n* wren\n:PROPERTIES:\n:COLDOWN: 1m\n:END:\n", encoding="utf-8")
    (complaint,) = desk.ask("status")["diagnostics"]
    assert "COLDOWN" in complaint and complaint.startswith(str(path))


def test_status_of_an_empty_fleet_is_an_answer_too(desk):
    desk.control = desk.make(None)
    status = desk.ask("status")
    assert status["fleet"]["agents"] == 0 and status["open_runs"] == [] and status["diagnostics"] == []


# ---- agents


def test_an_agent_is_told_in_the_names_of_the_contract(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    desk.end(order, Ending(exit_code=0, output="NO-WORK"))
    desk.later(MINUTE)
    run = desk.begin("wren").run.id
    row = desk.ask("agents")["items"][0]
    assert list(row)[: len(AGENT)] == AGENT
    assert (row["name"], row["state"], row["run"], row["node"]) == ("wren", "running", run, "here")
    assert row["position"] == {"state": "beat", "hits": 0, "kind": "wake"} and row["idle_streak"] == 1
    assert row["last"] == {"outcome": "no_work", "ended_at": write_time(NOON), "run": order.run.id, "reason": ""}
    assert row["due_at"] == write_time(NOON + HOUR) and row["paused"] is None
    assert (row["run_started_at"], row["wall_clock"]) == (write_time(desk.now), 900.0)
    whole = desk.ask("agent", agent="wren")
    assert {name: whole[name] for name in row} == row
    assert whole["under_way"]["id"] == run and whole["lifecycle"][0]["state"] == "beat"


def test_agents_are_listed_a_page_at_a_time(desk):
    names = [f"agent-{number}" for number in range(5)]
    desk.declare(*names)
    first = desk.ask("agents", limit=2)
    assert ([row["name"] for row in first["items"]], first["next"]) == (names[:2], names[1])
    assert [row["name"] for row in desk.ask("agents", after=names[3], limit=2)["items"]] == names[4:]
    assert desk.ask("agents", after=names[2], limit=2)["next"] is None


def test_an_agent_that_was_removed_is_unknown(desk):
    desk.declare("wren", "moss")
    desk.declare("moss")
    with pytest.raises(Exception, match="no agent is called 'wren'"):
        desk.ask("agent", agent="wren")


def test_an_agent_tells_its_cadence_in_words_and_what_it_waits_for(desk):
    desk.declare(
        "a",
        an_agent("b", every=None),
        an_agent("c", cadence=Cadence(schedule=parse_schedule("30 7 * * *"))),
        an_agent("d", cadence=Cadence(continuous=True)),
    )
    cadences = [row["cadence"] for row in desk.ask("agents")["items"]]
    assert cadences == ["every 1h", None, "at 30 7 * * *", "continuous, with a breather of 45s"]
    desk.begin("a")
    wake = desk.ask("tick", agent="a")["wake_id"]
    waiting = desk.ask("agent", agent="a")["waiting"]
    assert (waiting["wake_id"], waiting["guard"], waiting["cause"]) == (wake, "busy", "operator")


# ---- runs


def test_runs_are_listed_newest_first_in_the_names_of_the_contract(desk):
    desk.declare("wren", "moss")
    sent = desk.ask("send", agent="wren", body="x")["message"]["id"]
    order = desk.begin("wren")
    result = Result(summary="wrote a page", usage=Spend(usd=420_000, tokens=81))
    desk.end(order, Ending(exit_code=0, result=result))
    desk.later(MINUTE)
    newer = desk.begin("moss")
    rows = desk.ask("runs")["items"]
    assert [row["id"] for row in rows] == [newer.run.id, order.run.id]
    old = rows[1]
    assert list(old)[: len(RUN)] == RUN
    assert (old["state"], old["outcome"], old["summary"]) == ("ended", "done", "wrote a page")
    assert (old["usage"], old["shown"], old["task_ids"]) == ({"tokens": 81, "usd": 0.42}, [sent], [])
    assert (old["attempt"], old["epoch"], old["node"]) == (1, 1, "here")
    assert [row["id"] for row in desk.ask("runs", open=True)["items"]] == [newer.run.id]
    assert [row["id"] for row in desk.ask("runs", open=False)["items"]] == [order.run.id]
    assert [row["id"] for row in desk.ask("runs", agent="wren")["items"]] == [order.run.id]


def test_runs_are_listed_a_page_at_a_time_also_those_of_an_address(desk):
    desk.declare(*replicas("moss", 2))
    ids = []
    for name in ("moss-1", "moss-2", "moss-1"):
        order = desk.begin(name)
        desk.end(order, DONE)
        ids.append(order.run.id)
    first = desk.ask("runs", agent="moss", limit=2)
    assert ([row["id"] for row in first["items"]], first["next"]) == ([ids[2], ids[1]], ids[1])
    rest = desk.ask("runs", agent="moss", limit=2, before=first["next"])
    assert ([row["id"] for row in rest["items"]], rest["next"]) == ([ids[0]], None)


def test_one_run_is_shown_with_its_briefing_and_what_asked_for_it(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    desk.printed(order.run.id, "Guten Tag, schöner Morgen".encode(), "briefing.txt")
    shown = desk.ask("show_run", run=order.run.id)
    assert shown["briefing"] == "Guten Tag, schöner Morgen"
    assert (shown["wake"]["wake_id"], shown["wake"]["cause"]) == (order.run.wake, "operator")
    desk.later(HOUR)
    assert desk.ask("show_run", run=desk.store.runs()[0].id)["id"] == order.run.id


def test_a_run_without_a_folder_has_no_briefing(desk):
    desk.declare("wren")
    assert desk.ask("show_run", run=desk.begin("wren").run.id)["briefing"] is None


# ---- output


def test_output_is_read_on_from_where_the_last_piece_ended(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    assert desk.ask("output", run=order.run.id) == {
        "run": order.run.id,
        "stream": "stdout",
        "offset": 0,
        "next_offset": 0,
        "text": "",
        "over": False,
        "size": 0,
    }
    desk.printed(order.run.id, b"one\ntwo\n")
    first = desk.ask("output", run=order.run.id, limit=4)
    assert (first["text"], first["next_offset"], first["over"]) == ("one\n", 4, False)
    second = desk.ask("output", run=order.run.id, offset=4)
    assert (second["text"], second["over"]) == ("two\n", False)
    desk.end(order)
    assert desk.ask("output", run=order.run.id, offset=4)["over"] is True
    assert desk.ask("output", run=order.run.id, limit=4)["over"] is False
    assert desk.ask("output", run=order.run.id, offset=8)["over"] is True


def test_the_other_stream_is_read_by_its_name_and_no_third_one(desk):
    desk.declare("wren")
    order = desk.begin("wren")
    desk.printed(order.run.id, b"oh no", "stderr")
    assert desk.ask("output", run=order.run.id, stream="stderr")["text"] == "oh no"
    for stream in ("result.json", "../2/stdout", ""):
        with pytest.raises(Mistake, match="use stdout or stderr"):
            desk.ask("output", run=order.run.id, stream=stream)


@pytest.fixture(params=["folder", "store"])
def put(request, desk):
    """Where what a run printed lies: in its folder, or in the store, in pieces of any size."""

    def in_folder(data):
        path = desk.folder / "printed"
        path.write_bytes(data)
        return in_file(path)

    def in_store(data):
        desk.declare("wren")
        run = desk.begin("wren").run.id
        for start in range(0, len(data), 3):
            desk.store.keep_output(run, "stdout", data[start : start + 3])
        return lambda offset, limit: desk.store.output(run, "stdout", offset, limit)

    return in_folder if request.param == "folder" else in_store


def test_a_character_is_never_cut_in_two_however_small_the_pieces(put):
    text = "aß€😀" * 7
    kept = put(text.encode())
    for limit in range(4, 12):
        read, offset = "", 0
        while True:
            piece = read_output(kept, offset, limit, True)
            assert "\ufffd" not in piece["text"] and piece["next_offset"] > offset
            read, offset = read + piece["text"], piece["next_offset"]
            if piece["over"]:
                break
        assert read == text


def test_half_a_character_waits_for_its_rest_until_the_run_is_over(put):
    kept = put("grü".encode()[:-1])
    under_way = read_output(kept, 0, 100, False)
    assert (under_way["text"], under_way["next_offset"]) == ("gr", 2)
    over = read_output(kept, 2, 100, True)
    assert (over["text"], over["over"]) == ("\ufffd", True)


@pytest.mark.parametrize("bad", [b"\xff", b"\x80\x80\x80\x80\x80", b"\xc3(", b"\xf8\x88", b"\xed\xa0\x80"])
def test_what_is_not_utf8_is_shown_as_a_replacement_and_nothing_is_lost_behind_it(put, bad):
    kept = put(b"before " + bad + b" after")
    for over in (True, False):
        piece = read_output(kept, 0, 100, over)
        assert piece["text"].startswith("before \ufffd") and piece["text"].endswith(" after")
        assert piece["next_offset"] == piece["size"]


def test_bytes_that_are_not_utf8_never_stop_a_reader_who_follows(put):
    kept = put(b"\x80" * 50 + b"\xff" * 50)
    offset, pieces = 0, 0
    while offset < 100:
        piece = read_output(kept, offset, 4, False)
        assert piece["next_offset"] > offset
        offset, pieces = piece["next_offset"], pieces + 1
    assert pieces == 25


def test_a_negative_offset_counts_from_the_end_and_begins_with_a_whole_character(put):
    kept = put("eins zwei drüben".encode())
    assert read_output(kept, -5, 100, True)["text"] == "üben"
    inside = read_output(kept, -4, 100, True)
    assert (inside["text"], inside["offset"]) == ("ben", inside["size"] - 3)
    assert read_output(kept, -999, 100, True)["text"] == "eins zwei drüben"
    with pytest.raises(Mistake, match="how many bytes"):
        read_output(kept, 0, 3, True)


# ---- the engine, and a copy


def test_reload_and_stop_are_asked_of_the_engine_and_without_one_are_mistakes(desk):
    assert desk.ask("reload") == {"changed": ["wren"], "diagnostics": []}
    assert desk.ask("stop", drain=True)["stopping"] is True
    assert desk.ask("stop")["stopping"] is True and desk.engine.left == [True, False]
    desk.engine_stops()
    for operation in ("reload", "stop"):
        with pytest.raises(Mistake, match="wakeful up"):
            desk.ask(operation)


def test_a_backup_is_a_whole_store_in_a_new_file(desk):
    desk.declare("wren")
    target = desk.folder / "copy.db"
    answer = desk.ask("backup", path=str(target))
    assert answer == {"path": str(target), "bytes": target.stat().st_size}
    with sqlite3.connect(target) as copy:
        assert copy.execute("SELECT name FROM agent").fetchall() == [("wren",)]
    copy.close()
    for path, reason in ((target, "there already"), ("copy.db", "whole path"), (desk.folder / "no" / "c", "no folder")):
        with pytest.raises(Mistake, match=reason):
            desk.ask("backup", path=str(path))


def test_the_inbox_is_listed_a_page_at_a_time_in_a_known_state(desk):
    desk.declare("wren")
    ids = [desk.ask("send", agent="wren", body=str(number))["message"]["id"] for number in range(3)]
    first = desk.ask("inbox", agent="wren", limit=2)
    assert ([each["id"] for each in first["items"]], first["next"]) == (ids[:2], ids[1])
    assert [each["id"] for each in desk.ask("inbox", agent="wren", after=ids[1])["items"]] == ids[2:]
    assert [each["unread"] for each in desk.ask("inbox", agent="wren", state="all")["items"]] == [True] * 3
    with pytest.raises(Mistake, match="open, closed or all"):
        desk.ask("inbox", agent="wren", state="new")


def test_whoever_waits_for_a_change_is_told_of_every_commit_by_one_watch(desk):
    desk.declare("wren")

    async def waited():
        waiting = [asyncio.ensure_future(desk.control.wait_for_change()) for _ in range(3)]
        while len(desk.control._bells) < 3:
            await asyncio.wait(waiting, timeout=0)
        await desk.access.write(lambda store: None)
        await asyncio.gather(*waiting)

    for _ in range(2):
        desk.runner.run(waited())
    assert len(desk.access._watchers) == 1 and desk.control._bells == set()
