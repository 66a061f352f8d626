"""`up`, `stop`, `reload`, `pause`, `kill` and `logs`: what is said to an engine, and what is told of it."""

import json
import threading
from pathlib import Path

import pytest

from tests.cli.office import EVIL, LEASE, Served, now, spawned, wakeful
from wakeful import app
from wakeful.cli.why import guard_rows
from wakeful.core.runs import Ending
from wakeful.core.settlement import settle
from wakeful.store.protocol import Finish

# ---- up


@pytest.fixture
def serving(monkeypatch):
    """The options that an engine would be started with."""
    given: list[app.Options] = []
    monkeypatch.setattr(app, "serve", lambda options: given.append(options) or 7)
    return given


def test_up_hands_its_options_on_and_exits_as_the_engine_does(serving):
    result = wakeful("up", "--fleet", "a/fleet.org", "--data", "d", "--host", "::1", "--port", "0", "--run", "claude")
    assert result.exit_code == 7
    (options,) = serving
    assert (options.fleet, options.data) == (Path("a/fleet.org"), Path("d"))
    assert (options.host, options.port, options.run) == ("::1", 0, "claude")


def test_up_alone_leaves_everything_to_the_fleet(serving):
    wakeful("up", WAKEFUL_DATA="", WAKEFUL_RUN="")
    (options,) = serving
    assert (options.fleet, options.data, options.port, options.run) == (None, None, None, None)
    assert options.host == "127.0.0.1"


def test_up_takes_its_folder_and_command_from_the_environment(serving):
    wakeful("up", WAKEFUL_DATA="d", WAKEFUL_RUN="claude")
    assert (serving[0].data, serving[0].run) == (Path("d"), "claude")


def test_up_without_a_fleet_says_how_to_begin(nowhere):
    result = wakeful("up")
    assert result.exit_code == 2
    assert "wakeful init" in result.stderr
    assert wakeful("up", "--port", "70000").exit_code == 2


# ---- stop and reload


@pytest.mark.parametrize("drain", [False, True])
def test_stop_returns_when_the_engine_has_left(office, drain):
    engine = Served(office)
    leaving = threading.Thread(target=lambda: (engine.beside.away.wait(60), engine.close()))
    leaving.start()
    result = wakeful("stop", *(["--drain"] if drain else []))
    held = engine._thread.is_alive()
    leaving.join()
    assert (result.exit_code, result.stdout) == (0, "the engine has stopped\n")
    assert not held
    assert engine.beside.left == [drain]


def test_an_engine_that_does_not_leave_is_told_after_a_while(served, monkeypatch):
    monkeypatch.setattr("wakeful.cli.engine.PATIENCE", 0.1)
    result = wakeful("stop")
    assert result.exit_code == 75
    assert "has not left yet" in result.stderr


def test_an_engine_that_was_replaced_at_once_has_stopped(served, office):
    served.beside.leave = lambda *, drain: (office.data / "lock").write_text("another\n")
    assert wakeful("stop").stdout == "the engine has stopped\n"


def test_reload_tells_what_changed_and_exits_2_on_a_broken_file(served):
    assert wakeful("reload").stdout == "changed: wren\n"
    served.beside.answers = {"changed": [], "diagnostics": ["fleet.org:1:3: warning: no command (add RUN)"]}
    warned = wakeful("reload")
    assert (warned.exit_code, warned.stdout.splitlines()[-1]) == (0, "nothing changed since it was last read")
    served.beside.answers = {"changed": [], "diagnostics": ["fleet.org:4:2: unknown key DEFF (did you mean DEF?)"]}
    broken = wakeful("reload")
    assert broken.exit_code == 2
    assert "unknown key DEFF" in broken.stdout


# ---- pause, resume, kill


def test_a_pause_gives_a_receipt_of_what_is_under_way(office):
    run = office.begin()
    result = wakeful("pause", "--for", "2h", "--reason", "deploy")
    assert result.exit_code == 0
    first, second = result.stdout.splitlines()
    assert first.startswith("the fleet is paused until ") and first.endswith("(in 2h): deploy")
    assert second.startswith(f"under way: 1 run: {run} of wren (")


def test_a_pause_now_that_could_not_end_everything_exits_1(office):
    run = office.begin()
    result = wakeful("pause", "--now")
    assert result.exit_code == 1
    assert f"still alive: 1 run: {run} of wren" in result.stdout


def test_resume_lifts_what_was_paused_and_says_what_still_holds(office):
    wakeful("pause")
    wakeful("pause", "wren")
    result = wakeful("resume", "wren")
    assert result.stdout.splitlines()[0] == "wren goes on"
    assert result.stdout.splitlines()[1].startswith("still held: the fleet, by operator")
    assert wakeful("resume").stdout == "the fleet goes on\n"
    assert wakeful("resume").stdout == "the fleet was not paused\n"


def test_a_run_is_asked_to_end_and_an_ended_one_is_over(office):
    run = office.begin()
    assert "will be ended by the next engine" in wakeful("kill", str(run)).stdout
    office.end(run)
    assert wakeful("kill", str(run)).stdout == f"run {run} of wren is over: done\n"


@pytest.mark.parametrize("listing", ["runs", "decisions"])
def test_a_listing_that_goes_on_says_how_and_that_leads_to_the_next_page(office, listing):
    for _ in range(2):
        office.end(office.begin())
    first = wakeful(listing, "wren", "-n", "1").stdout.splitlines()
    before = first[-1].removeprefix(f"older: wakeful {listing} wren --before ")
    second = wakeful(listing, "wren", "-n", "1", "--before", before).stdout.splitlines()
    assert [first[2].split()[0], second[2].split()[0]] == ["2", "1"]
    assert len(wakeful(listing, "wren").stdout.splitlines()) == 4


# ---- logs


def test_logs_are_found_by_run_and_by_agent(office):
    run = office.begin()
    office.prints(run, "one\n")
    office.prints(run, "two\n", "stderr")
    office.end(run)
    assert wakeful("logs", str(run)).stdout == wakeful("logs", "wren").stdout == "one\n"
    assert wakeful("logs", "wren", "--stderr").stdout == "two\n"
    assert wakeful("logs", "moss").exit_code == 1


def test_after_what_a_run_printed_is_why_it_did_not_end_well_on_the_other_stream(office):
    run = office.begin()
    office.prints(run, "one\n")
    office.end(run, exit_code=3, summary="one")
    result = wakeful("logs", "wren")
    assert (result.stdout, result.stderr) == ("one\n", f"run {run} failed: exit code 3\n")
    assert "exit code 3; one" in wakeful("runs").stdout
    assert "failed" in (shown := wakeful("status", "wren").stdout) and ": exit code 3" in shown
    assert ": exit code 3" in wakeful("status").stdout


def test_long_output_is_shown_whole(office):
    run = office.begin()
    office.prints(run, "é" * 200_000)
    office.end(run)
    assert wakeful("logs", str(run)).stdout == "é" * 200_000


def test_raw_output_is_for_a_file_and_never_for_a_terminal(office, monkeypatch):
    run = office.begin()
    office.prints(run, EVIL)
    assert wakeful("logs", "--raw", str(run)).stdout == EVIL
    monkeypatch.setattr("wakeful.cli.logs.sys", Terminal())
    refused = wakeful("logs", "--raw", str(run))
    assert refused.exit_code == 2 and "\x1b" not in refused.output


class Terminal:
    class stdout:
        @staticmethod
        def isatty() -> bool:
            return True


def test_following_shows_what_comes_until_the_run_has_ended(office, served, monkeypatch):
    """The agent prints, and ends, while the command rests."""
    run = json.loads(wakeful("tick", "wren", "--json").stdout)["run_id"]
    store = served.control.access.store
    (order,) = store.claim("here", now(), LEASE)
    office.prints(run, "one\n")
    finish = Finish(run=run, epoch=order.run.epoch, ending=Ending(exit_code=0))
    happenings = [lambda: office.prints(run, "two\n"), lambda: store.finish([finish], settle, now())]
    monkeypatch.setattr("time.sleep", lambda _: happenings.pop(0)() if happenings else None)
    result = wakeful("logs", "-f", "wren")
    assert (result.exit_code, result.stdout) == (0, "one\ntwo\n")


def test_following_a_live_run_without_an_engine_is_exit_69(office):
    run = office.begin()
    office.prints(run, "one\n")
    result = wakeful("logs", "-f", str(run))
    assert (result.exit_code, result.stdout) == (69, "one\n")
    office.end(run)
    assert wakeful("logs", "-f", str(run)).exit_code == 0


# ---- why, set


def test_why_puts_one_sentence_on_top_and_marks_the_first_guard_that_objects(office):
    wakeful("pause", "--for", "2h", "--reason", "deploy")
    lines = wakeful("why", "wren", "--cause", "operator").stdout.splitlines()
    assert lines[0].startswith("wren: a wake by operator now would be refused by paused: the fleet is paused by ")
    assert "next eligible" in lines[0]
    (row,) = [line for line in lines if " paused " in line and line.startswith("✗")]
    assert "scope fleet" in row
    assert sum(line.startswith("✓") for line in lines) == 13


def test_why_of_another_agents_wake_is_of_the_cause_peer(office):
    told = wakeful("why", "wren", "--from", "moss").stdout
    assert told.startswith("wren: a wake by peer now would be admitted") and "as if moss woke it now" in told
    assert wakeful("why", "wren", "--from", "moss", "--cause", "timer").exit_code == 2


def test_only_the_first_guard_that_objects_is_shown_as_the_one():
    silent = {"verdict": None, "reason": "", "numbers": {}, "until": None}
    opinions = [
        {"guard": "moot", **silent},
        {"guard": "paused", **silent, "verdict": "refuse"},
        {"guard": "busy", **silent, "verdict": "defer"},
    ]
    rows = guard_rows({"guard": "paused", "opinions": opinions}, now())
    assert [(row[0].text, row[1].style) for row in rows] == [("✓", ""), ("✗", "bold red"), ("✗", "yellow")]
    rows = guard_rows({"guard": None, "opinions": opinions}, now())
    assert [row[1].style for row in rows] == ["", "yellow", "yellow"]


def test_why_of_a_beat_that_is_not_due_names_no_guard_and_the_one_that_comes_sooner(office):
    office.end(office.begin())
    told = wakeful("why", "wren").stdout.splitlines()[0]
    assert told.startswith("wren: not due until 20") and "; next eligible " in told and "deferred by" not in told
    wakeful("at", "wren", "in 30s")
    assert ", when a beat was asked for; next eligible" in wakeful("why", "wren").stdout.splitlines()[0]
    assert " (at)" in wakeful("status").stdout and " (at)" in wakeful("status", "wren").stdout


def test_a_setting_is_shown_changed_and_taken_back(office):
    assert "cooldown             5m  (agent)" in wakeful("set", "wren").stdout
    assert "10m  (override, the agent says 5m)" in wakeful("set", "wren", "cooldown=10m").stdout
    assert "9  (override, the default is 8)" in wakeful("set", "wren", "max_chain=9").stdout
    wakeful("set", "wren", "max_chain=")
    assert "override" not in wakeful("set", "wren", "cooldown=").stdout
    assert wakeful("set", "wren", "cooldown").exit_code == 2
    twice = wakeful("set", "wren", "cooldown=1m", "cooldown=2m")
    assert (twice.exit_code, twice.stderr) == (2, "cooldown is said twice (say each setting once)\n")
    assert "override" not in wakeful("set", "wren").stdout


def test_a_terminal_of_ascii_gets_marks_that_it_knows(office):
    shown = spawned("why", "wren", folder=office.folder, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert shown.returncode == 0, shown.stderr
    assert b"+  paused" in shown.stdout
    assert b"\\u" not in shown.stdout
