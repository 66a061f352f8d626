"""One store and several nodes: who is at work on it, who decides, what others' runs printed, and their PAUSE files."""

import shutil
from datetime import timedelta
from itertools import count

import pytest

from tests.control.desk import NODE_LEASE, caller_of
from wakeful.control.callers import Forbidden
from wakeful.core.codec import write_time
from wakeful.core.errors import Mistake
from wakeful.core.runs import Ending
from wakeful.core.wakes import FLEET, Pause

SOON = timedelta(milliseconds=100)
BY_US = Ending(signal=15, by="operator")


def states(desk):
    return {row["name"]: row["state"] for row in desk.ask("nodes")["items"]}


# ---- who is at work


def test_a_node_is_up_has_left_or_was_lost_by_the_clock_of_the_store(shared):
    shared.declare("wren")
    shared.join("barn", "desk", "here", "yard")
    shared.begin("wren", "barn")
    shared.store.leave("desk", shared.now)
    shared.later(NODE_LEASE)
    shared.join("here", "yard")
    assert states(shared) == {"barn": "lost", "desk": "left", "here": "up", "yard": "up"}
    rows = {row["name"]: row for row in shared.ask("nodes")["items"]}
    assert rows["barn"] == {
        "name": "barn",
        "state": "lost",
        "url": "http://barn:7717",
        "since": write_time(shared.now - NODE_LEASE),
        "seen_at": write_time(shared.now - NODE_LEASE),
        "runs": 1,
        "here": False,
        "left_at": None,
    }
    assert rows["desk"]["left_at"] == write_time(shared.now - NODE_LEASE)
    assert [name for name, row in rows.items() if row["here"]] == ["here"]
    assert shared.ask("nodes")["next"] is None


def test_of_our_own_place_we_know_better_than_the_store(shared):
    shared.join("here")
    assert states(shared) == {"here": "up"}
    shared.engine_stops()
    assert states(shared) == {"here": "lost"}
    shared.store.leave("here", shared.now)
    assert states(shared) == {"here": "left"}
    shared.engine_starts()
    assert states(shared) == {"here": "up"}


def test_on_a_store_of_its_own_a_node_is_up_only_with_the_engine_beside_us(desk):
    desk.store.join("here", "", "http://127.0.0.1:7717", desk.now, timedelta(days=2))
    desk.store.join("before", "", "http://127.0.0.1:7717", desk.now, timedelta(days=2))
    assert states(desk) == {"before": "lost", "here": "up"}
    desk.engine_stops()
    assert states(desk) == {"before": "lost", "here": "lost"}


def test_an_agent_does_not_see_the_nodes(shared):
    shared.declare("wren")
    order = shared.begin("wren")
    with pytest.raises(Forbidden, match="only the operator"):
        shared.ask("nodes", caller_of(order))


def test_the_status_tells_the_nodes_and_an_agent_whether_it_runs_elsewhere(shared):
    shared.declare("wren", "moss")
    shared.join("barn", "here")
    shared.begin("wren", "barn")
    shared.begin("moss", "here")
    told = shared.ask("status")
    assert told["shared"] and [node["name"] for node in told["nodes"]] == ["barn", "here"]
    rows = {row["name"]: row["node"] for row in shared.ask("agents")["items"]}
    assert rows == {"wren": "barn", "moss": "here"}
    assert shared.ask("agent", agent="wren")["elsewhere"] is True
    assert shared.ask("agent", agent="moss")["elsewhere"] is False


def test_on_a_store_of_its_own_nobody_runs_elsewhere(desk):
    desk.declare("wren")
    desk.begin("wren", "before")
    assert desk.ask("agent", agent="wren")["elsewhere"] is False
    assert desk.ask("status")["shared"] is False


# ---- who decides


def decided_elsewhere(desk):
    """Another node hears of the commit and decides; then says no more."""

    def decide():
        desk.hint = lambda: None
        desk.due()

    desk.hint = decide


@pytest.mark.parametrize(
    ("operation", "given"),
    [("tick", {}), ("tick", {"key": "k"}), ("wake", {"reason": "look"}), ("run", {"prompt": "write"})],
)
def test_without_an_engine_here_the_word_of_another_node_is_the_answer(shared, operation, given):
    shared.declare("wren")
    shared.join("barn")
    shared.engine_stops()
    decided_elsewhere(shared)
    answer = shared.ask(operation, agent="wren", **given)
    assert (answer["verdict"], answer["duplicate"]) == ("admit", False)
    assert shared.store.run(answer["run_id"]).wake == answer["wake_id"]
    assert answer["agent"] == "wren"


def test_an_urgent_message_has_the_word_on_its_wake_and_the_message(shared):
    shared.declare("wren")
    shared.join("barn")
    shared.engine_stops()
    decided_elsewhere(shared)
    answer = shared.ask("send", agent="wren", body="now", priority="urgent")
    assert answer["wake"]["verdict"] == "admit"
    assert answer["wake"]["message_id"] == answer["message"]["id"]


def test_a_refusal_of_another_node_is_told_with_its_guard_and_what_to_do(shared):
    shared.declare("wren")
    shared.join("barn")
    shared.ask("pause_agent", agent="wren", reason="mending")
    shared.engine_stops()
    decided_elsewhere(shared)
    answer = shared.ask("tick", agent="wren")
    assert (answer["verdict"], answer["guard"], answer["numbers"]["scope"]) == ("refuse", "paused", "agent:wren")
    assert answer["advice"] == "to let it run: wakeful resume wren"


def test_what_became_part_of_a_wake_that_waits_is_answered_with_the_word_on_that_one(shared):
    shared.declare("wren")
    shared.join("barn")
    shared.begin("wren", "barn")
    first = shared.ask("tick", agent="wren")
    assert (first["verdict"], first["guard"]) == ("defer", "busy")
    shared.engine_stops()
    second = shared.ask("tick", agent="wren")
    assert (second["verdict"], second["guard"]) == ("defer", "busy")
    assert second["joined"] == first["wake_id"] != second["wake_id"]


def test_where_nobody_has_decided_yet_it_is_said_who_will(shared):
    shared.declare("wren")
    shared.join("barn", "desk")
    shared.control = shared.make(None, hearing=SOON)
    answer = shared.ask("tick", agent="wren")
    assert (answer["verdict"], answer["guard"], answer["run_id"]) == ("defer", None, None)
    assert answer["reason"] == "recorded, and not decided yet: 2 nodes are up (barn, desk) and will decide"
    shared.due()
    assert shared.ask("decision", wake=answer["wake_id"])["verdict"] == "admit"


def test_where_no_node_is_up_nobody_is_waited_for(shared):
    shared.declare("wren")
    shared.join("barn", "here")
    shared.store.leave("barn", shared.now)
    shared.control = shared.make(None, hearing=timedelta(days=1))
    assert shared.ask("tick", agent="wren")["reason"] == "no node is up: recorded, decided when one starts"


def test_an_engine_that_is_leaving_leaves_it_to_the_others_and_not_to_itself(shared):
    shared.declare("wren", "moss")
    shared.join("here")
    shared.engine.leaving = True
    assert shared.ask("tick", agent="moss")["reason"] == "no node is up: recorded, decided when one starts"
    shared.join("barn")
    decided_elsewhere(shared)
    assert shared.ask("tick", agent="wren")["verdict"] == "admit"


def test_with_an_engine_here_the_decision_is_ours(shared):
    shared.declare("wren")
    shared.join("barn", "here")
    shared.hint = lambda: None
    assert shared.ask("tick", agent="wren")["verdict"] == "admit"


# ---- pauses and ends


def test_the_receipt_of_a_pause_says_who_is_up_to_hold_to_it(shared):
    shared.declare("wren")
    shared.join("barn", "here")
    order = shared.begin("wren", "barn")
    receipt = shared.ask("pause")
    assert (receipt["engine"], receipt["here"], receipt["nodes"]) == (True, True, ["barn", "here"])
    assert [run["node"] for run in receipt["running"]] == ["barn"]
    shared.engine_stops()
    receipt = shared.ask("pause")
    assert (receipt["engine"], receipt["here"], receipt["nodes"]) == (True, False, ["barn"])
    shared.store.leave("barn", shared.now)
    receipt = shared.ask("pause", now=True)
    assert (receipt["engine"], receipt["here"], receipt["nodes"]) == (False, False, [])
    assert receipt["ended"] == [order.run.id]


def test_a_pause_now_waits_for_what_other_nodes_end(shared):
    shared.declare("wren")
    shared.join("barn")
    shared.engine_stops()
    order = shared.begin("wren", "barn")

    read, looks = shared.access.read, count()

    async def ended_at_the_ninth_look(verb):
        if shared.store.stopping("barn") and next(looks) == 8:
            shared.end(order, BY_US)
        return await read(verb)

    shared.access.read = ended_at_the_ninth_look
    receipt = shared.ask("pause", now=True)
    assert (receipt["ended"], receipt["running"]) == ([order.run.id], [])


def test_a_pause_now_names_what_other_nodes_have_not_ended_in_time(shared):
    shared.declare("wren")
    shared.join("barn")
    order = shared.begin("wren", "barn")
    shared.control = shared.make(None, patience=SOON)
    assert [run["id"] for run in shared.ask("pause", now=True)["running"]] == [order.run.id]


def test_a_kill_says_whether_the_node_that_holds_the_run_is_up(shared):
    shared.declare("wren", "moss")
    shared.join("barn", "here")
    order = shared.begin("wren", "barn")
    other = shared.begin("moss", "here")
    answer = shared.ask("kill", run=order.run.id)
    assert (answer["asked"], answer["engine"], answer["node"]) == (True, True, "barn")
    assert [stop.run for stop in shared.store.stopping("barn")] == [order.run.id]
    shared.later(NODE_LEASE)
    answer = shared.ask("kill", run=order.run.id)
    assert (answer["engine"], answer["nodes"]) == (False, ["here"])
    assert shared.ask("kill", run=other.run.id)["engine"] is True


# ---- PAUSE files


def file_of(desk, node, reason="a file is there"):
    pause = Pause(scope=FLEET, owner=f"file@{node}" if node else "file", reason=reason, since=desk.now)
    desk.store.pause(pause, desk.now)


def test_the_file_of_a_node_that_is_up_is_lifted_by_nobody_and_told_with_its_node(shared):
    shared.join("barn", "here")
    file_of(shared, "barn", "/etc/fleet/PAUSE is there: deploy")
    with pytest.raises(Mistake) as refused:
        shared.ask("resume")
    assert str(refused.value) == (
        "a PAUSE file of node barn holds the fleet: /etc/fleet/PAUSE is there: deploy "
        "(remove that file on barn; while barn is up nothing else lifts it)"
    )
    assert [pause.owner for pause in shared.store.pauses()] == ["file@barn"]


@pytest.mark.parametrize("gone", ["left", "lost"])
def test_the_file_of_a_node_that_is_gone_may_be_lifted_and_that_is_told(shared, gone):
    shared.join("barn", "here")
    file_of(shared, "barn")
    if gone == "left":
        shared.store.leave("barn", shared.now)
    shared.later(NODE_LEASE)
    answer = shared.ask("resume")
    assert (answer["resumed"], answer["held_by"]) == (True, [])
    assert [(file["node"], file["state"], file["owner"]) for file in answer["files"]] == [("barn", gone, "file@barn")]
    assert shared.store.pauses() == []


def test_what_is_paused_by_hand_is_lifted_beside_a_file_that_stays(shared):
    shared.join("barn", "here")
    file_of(shared, "barn")
    shared.ask("pause")
    answer = shared.ask("resume")
    assert (answer["resumed"], answer["files"]) == (True, [])
    assert [pause["owner"] for pause in answer["held_by"]] == ["file@barn"]


def test_the_file_of_our_own_engine_may_be_lifted_only_while_that_is_down(shared):
    shared.join("here")
    file_of(shared, "here")
    with pytest.raises(Mistake, match="of node here"):
        shared.ask("resume")
    shared.engine_stops()
    assert shared.ask("resume")["resumed"]


def test_a_file_of_before_the_store_was_shared_is_nobodys_and_may_be_lifted(shared):
    shared.join("here")
    file_of(shared, "")
    assert [file["node"] for file in shared.ask("resume")["files"]] == [""]


def test_on_a_store_of_its_own_only_the_removal_of_the_file_lifts_it(desk):
    file_of(desk, "")
    desk.engine_stops()
    with pytest.raises(Mistake, match="nothing else lifts it"):
        desk.ask("resume")


# ---- what other nodes' runs printed


def test_what_a_run_of_another_node_printed_is_read_from_the_store(shared):
    shared.declare("wren")
    shared.join("barn", "here")
    run = shared.begin("wren", "barn").run.id
    shared.store.keep_output(run, "stdout", "erste Zeile\nzwölf".encode())
    piece = shared.ask("output", run=run)
    assert (piece["text"], piece["over"], piece["size"]) == ("erste Zeile\nzwölf", False, 18)
    assert shared.ask("output", run=run, offset=-3)["text"] == "lf"
    assert shared.ask("output", run=run, stream="stderr")["text"] == ""


def test_it_is_over_when_the_run_has_ended_and_all_was_read(shared):
    shared.declare("wren")
    order = shared.begin("wren", "barn")
    shared.store.keep_output(order.run.id, "stdout", b"12345678")
    shared.end(order)
    first = shared.ask("output", run=order.run.id, limit=5)
    assert (first["text"], first["over"]) == ("12345", False)
    rest = shared.ask("output", run=order.run.id, offset=first["next_offset"])
    assert (rest["text"], rest["over"]) == ("678", True)


def test_a_folder_here_with_the_number_of_another_nodes_run_is_not_its_folder(shared):
    shared.declare("wren")
    run = shared.begin("wren", "barn").run.id
    shared.printed(run, b"of another store")
    shared.printed(run, b"of another store", "briefing.txt")
    shared.store.keep_output(run, "stdout", b"its own")
    assert shared.ask("output", run=run)["text"] == "its own"
    assert shared.ask("show_run", run=run)["briefing"] is None


def test_a_run_of_ours_is_read_in_its_folder_and_from_the_store_once_that_is_gone(shared):
    shared.declare("wren")
    run = shared.begin("wren", "here").run.id
    shared.store.keep_output(run, "stdout", b"kept")
    shared.store.keep_output(run, "briefing", b"do it")
    shared.printed(run, b"in the folder")
    shared.printed(run, b"do it now", "briefing.txt")
    assert shared.ask("output", run=run)["text"] == "in the folder"
    assert shared.ask("show_run", run=run)["briefing"] == "do it now"
    shutil.rmtree(shared.runs)
    assert shared.ask("output", run=run)["text"] == "kept"
    assert shared.ask("show_run", run=run)["briefing"] == "do it"


# ---- a copy


def test_a_shared_store_is_backed_up_to_a_file_that_either_store_can_read(shared, tmp_path):
    shared.declare("wren")
    shared.ask("send", agent="wren", body="keep this")
    answer = shared.ask("backup", path=str(tmp_path / "copy.db"))
    assert answer["bytes"] == (tmp_path / "copy.db").stat().st_size > 0
