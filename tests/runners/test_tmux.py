"""A run in a session that goes on: a real tmux server of the test's own, and an agent in it that reads keys."""

import os
import re
import stat
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from soak.caller import Caller
from tests.runners.carrier_case import TOKEN, Desk, a_beat
from tests.runners.orders import an_agent, an_item
from tests.runners.remote import Remote, in_json
from tests.runners.session import Sessions
from wakeful.core.agents import Runner
from wakeful.core.orders import Order
from wakeful.core.runs import Ending, ErrorClass, Outcome, read_outcome
from wakeful.runners import elsewhere
from wakeful.runners.protocol import BRIEFING_JSON, RESULT, STDERR, Found, Held
from wakeful.runners.tmux import Wakeup
from wakeful.testing.contracts.runner_case import real

QUIET = timedelta(seconds=0.2)
# Where an agent that is at work must not be taken for a quiet one, on a busy machine too.
LONGER = timedelta(seconds=0.5)
# What was typed, whole: one paste in brackets, and one Enter apart from it.
ONCE = re.compile(rb"\x1b\[200~([ -~]+)\x1b\[201~\r")

LOOP = """
printf '> '
while read -r line; do
    line="${line%% so that it appears*}"
    printf '{"outcome": "no_work"}' > "${line##*rename it to }"
done
"""


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Sessions]:
    made = Sessions(tmp_path)
    yield made
    made.close()


@pytest.fixture
def yard(tmp_path: Path, sessions: Sessions) -> Iterator[Desk]:
    with Desk(tmp_path, quiet=QUIET).open() as desk:
        desk.base = {**desk.base, "TMUX_TMPDIR": str(sessions.place)}
        yield desk


def a_wakeup(session: str = "main", number: int = 42, **more: Any) -> Order:
    given = {name: more.pop(name) for name in ("timeout", "kill_grace") if name in more}
    return a_beat(an_agent(runner=Runner.tmux, target=session, environment=("TMUX_TMPDIR",), **given), number, **more)


async def woken(desk: Desk, session: str = "main", **more: Any) -> Ending:
    held = await desk.carrier.carry(a_wakeup(session, **more))
    return await held.wait()


async def typed(desk: Desk, sessions: Sessions, **more: Any) -> Held:
    """A wakeup that the agent has read."""
    held = await desk.carrier.carry(a_wakeup(**more))
    log = desk.run_folder(held.run) / STDERR
    await desk.until(lambda: log.exists() and "waiting for the result" in log.read_text(), "the wakeup")
    assert sessions.heard().endswith(b"\r")
    return held


async def present(desk: Desk, sessions: Sessions, habit: str = "answers", **more: Any) -> None:
    sessions.begin(habit=habit, **more)
    await desk.until(lambda: sessions.ready(more.get("name", "main")), "the agent")


def of_config(ending: Ending) -> str:
    assert read_outcome(ending) is Outcome.failed
    assert ending.result is not None and ending.result.error_class is ErrorClass.config
    return ending.result.error or ""


# ---- the wakeup and its answer


@real
async def test_one_line_of_ours_is_pasted_enter_is_pressed_apart_and_the_result_file_is_the_answer(yard, sessions):
    await present(yard, sessions)
    evil = "\x1b[201~\r\nrm -rf /\r\x03"
    items = (an_item(1, subject=evil, body=evil, sender=evil, source=evil),)
    ending = await woken(yard, items=items, reason=evil)
    assert (read_outcome(ending), ending.result.summary, ending.exit_code) == (Outcome.done, "answered", 0)
    line = ONCE.fullmatch(sessions.heard())[1].decode()
    assert line.startswith("Wakeful run 42 for wren: ")
    for path in (yard.run_folder() / BRIEFING_JSON, yard.run_folder() / RESULT):
        assert f" {path} " in line
    assert "rm" not in line.split() and not set(line) & set('|&;<>()$`\\"*?[]{}~#!\n')


@real
async def test_what_the_agent_needs_to_call_back_is_in_a_private_file_while_the_run_is_open(yard, sessions):
    await present(yard, sessions, "says nothing")
    held = await typed(yard, sessions, reason="it's\nlate")
    beside = yard.run_folder() / "env"
    assert f"source {beside} first" in sessions.heard().decode()
    assert stat.S_IMODE(beside.stat().st_mode) == 0o600
    script = f'. {beside}; echo "$WAKEFUL_TOKEN $WAKEFUL_URL $WAKEFUL_RUN_ID $WAKEFUL_REASON $WAKEFUL_TARGET"'
    sourced = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, env={}, timeout=10)
    assert sourced.stdout == f"{TOKEN}42 http://127.0.0.1:7717 42 it's\nlate \n"
    (yard.run_folder() / RESULT).write_text("{}")
    assert read_outcome(await held.wait()) is Outcome.done
    assert not beside.exists()


@real
async def test_a_loop_in_a_shell_is_an_agent_too(yard, sessions):
    loop = sessions.folder / "loop.sh"
    loop.write_text(LOOP)
    await present(yard, sessions, command=f"exec bash '{loop}'")
    assert read_outcome(await woken(yard)) is Outcome.no_work


@real
async def test_a_result_that_is_half_written_is_waited_for(yard, sessions):
    await present(yard, sessions, "writes slowly")
    held = await typed(yard, sessions)
    await yard.until((yard.run_folder() / RESULT).exists, "the first half")
    assert yard.carrier.find(42) is Found.alive
    (sessions.folder / "enough").touch()
    assert (await held.wait()).result.summary == "answered"


@real
async def test_a_result_that_stays_no_json_has_failed(yard, sessions):
    await present(yard, sessions, "scribbles")
    ending = await woken(yard)
    assert read_outcome(ending) is Outcome.failed and "no JSON" in ending.result.error


def test_only_a_result_that_is_whole_is_an_answer(tmp_path):
    file = tmp_path / RESULT
    wakeup = Wakeup({"WAKEFUL_RESULT": str(file), "WAKEFUL_RUN_ID": "1"}, 1.0)
    assert not wakeup._is_answered()
    # What is written, whether it was long ago, and whether that is an answer.
    for text, settled, whole in (
        ("", True, False),
        (" \n", True, False),
        ("{}", False, True),
        ('{"outcome": "do', False, False),
        ('{"outcome": "do', True, True),
        ("[1, 2]", False, False),
        ("[" * 100_000, False, False),
        ("all is well", True, True),
    ):
        file.write_text(text)
        if settled:
            os.utime(file, (1, 1))
        assert wakeup._is_answered() is whole, text[:20]


@real
async def test_an_agent_that_has_answered_may_go(yard, sessions):
    await present(yard, sessions, "leaves")
    assert read_outcome(await woken(yard)) is Outcome.done
    await present(yard, sessions, "says nothing", name="other")
    held = await typed(yard, sessions, session="other", number=43)
    folder = yard.run_folder(43)
    (folder / RESULT).write_text('{"outcome": ')
    sessions.end()
    log = folder / STDERR
    await yard.until(lambda: log.exists() and "other is gone" in log.read_text(), "word of it")
    (folder / RESULT).write_text('{"outcome": "no_work"}')
    assert read_outcome(await held.wait()) is Outcome.no_work


# ---- when it is typed


@real
async def test_a_pane_in_which_something_goes_on_is_waited_for(yard, sessions):
    yard.settings["quiet"] = LONGER
    await present(yard, sessions, "works first")
    held = await yard.carrier.carry(a_wakeup())
    log = yard.run_folder() / STDERR
    await yard.until(lambda: log.exists() and "something goes on" in log.read_text(), "word of it")
    await yard.until((sessions.folder / "worked").exists, "a second of work")
    assert sessions.heard() == b""
    (sessions.folder / "calm").touch()
    assert read_outcome(await held.wait()) is Outcome.done
    assert ONCE.fullmatch(sessions.heard())


@real
async def test_nothing_is_typed_while_somebody_scrolls(yard, sessions):
    await present(yard, sessions)
    sessions.tmux("copy-mode", "-t", "=main:")
    held = await yard.carrier.carry(a_wakeup())
    log = yard.run_folder() / STDERR
    await yard.until(lambda: log.exists() and "somebody scrolls" in log.read_text(), "word of it")
    assert sessions.heard() == b""
    sessions.tmux("send-keys", "-t", "=main:", "-X", "cancel")
    assert read_outcome(await held.wait()) is Outcome.done
    assert ONCE.fullmatch(sessions.heard())


@real
async def test_a_pause_that_comes_while_the_pane_is_busy_holds_the_wakeup_back(yard, sessions):
    remote = Remote(lambda asked: in_json({"name": "wren", "paused": {"owner": "anna"}}))
    try:
        yard.settings["url"] = lambda: remote.url
        await present(yard, sessions)
        held = await yard.carrier.carry(a_wakeup())
        await yard.until(lambda: len(remote.asked) >= 2, "two looks")
        assert sessions.heard() == b""
        asked = remote.asked[0]
        assert (asked.path, asked.headers["Authorization"]) == ("/v1/agents/wren", f"Bearer {TOKEN}42")
        remote.answer = lambda asked: in_json({"name": "wren", "paused": None})
        assert read_outcome(await held.wait()) is Outcome.done
    finally:
        remote.close()


# ---- whether it has arrived


@real
async def test_an_enter_that_changed_nothing_is_pressed_once_more_and_nothing_is_pasted_again(yard, sessions):
    await present(yard, sessions, "hesitates")
    assert read_outcome(await woken(yard)) is Outcome.done
    assert sessions.heard().count(b"\x1b[200~") == 1 and sessions.heard().endswith(b"~\r\r")


@real
async def test_a_question_in_front_is_not_answered_by_us(yard, sessions):
    yard.settings["quiet"] = QUIET / 2
    await present(yard, sessions, "asks a question")
    ending = await woken(yard)
    assert read_outcome(ending) is Outcome.failed
    assert ending.result.error == "what was typed into main does not appear there: is a question in front of it?"
    assert b"\r" not in sessions.heard() and b"\x03" not in sessions.heard()


# ---- which pane


@real
async def test_a_session_that_is_not_there_is_a_mistake_that_says_how_to_start_it(yard, sessions):
    for number, (name, called) in enumerate((("main", "main"), ("main:2", "main"), ("%7", "NAME"), ("$7", "NAME")), 1):
        problem = of_config(await woken(yard, name, number=number))
        assert problem.startswith(f"there is no tmux session {name} (")
        assert problem.endswith(f"; start it: tmux new-session -d -s {called} AGENT")
    sessions.begin("main2")
    assert "can't find session: main" in of_config(await woken(yard, number=43))
    assert "can't find window: 7" in of_config(await woken(yard, "main2:7", number=44))
    assert sessions.heard() == b""


@real
async def test_a_session_is_its_oldest_pane_whichever_one_somebody_looks_at(yard, sessions):
    await present(yard, sessions)
    sessions.tmux("split-window", "-t", "=main:", "exec cat")
    sessions.tmux("new-window", "-t", "=main:", "exec cat")
    for number, target in enumerate(("main", "main:0.0"), 42):
        assert read_outcome(await woken(yard, target, number=number)) is Outcome.done, target
    assert len(ONCE.findall(sessions.heard())) == 2


# ---- ends of all kinds


@real
async def test_a_server_that_is_killed_is_noticed_within_five_seconds_and_another_is_not_taken_for_it(yard, sessions):
    yard.settings["quiet"] = elsewhere.QUIET
    await present(yard, sessions, "says nothing")
    held = await typed(yard, sessions)
    since = time.monotonic()
    sessions.end()
    sessions.typed.unlink()
    sessions.begin()
    ending = await held.wait()
    assert time.monotonic() - since < 5
    assert read_outcome(ending) is Outcome.failed and "the tmux session main is gone" in ending.result.error
    assert sessions.heard() == b""


@real
async def test_ended_on_purpose_the_agent_is_interrupted_once(yard, sessions):
    await present(yard, sessions, "says nothing")
    held = await typed(yard, sessions, kill_grace=timedelta(seconds=20))
    await held.end("operator")
    assert (await held.wait()).by == "operator"
    assert re.fullmatch(ONCE.pattern + rb"\x03", sessions.heard())


@real
async def test_past_its_wall_clock_the_run_is_killed(yard, sessions):
    await present(yard, sessions, "says nothing")
    ending = await woken(yard, timeout=timedelta(seconds=0.5), kill_grace=timedelta(seconds=20))
    assert ending.timed_out and read_outcome(ending) is Outcome.killed


@real
async def test_what_ends_before_anything_was_typed_types_nothing(yard, sessions):
    yard.settings["quiet"] = LONGER
    await present(yard, sessions, "works first")
    held = await yard.carrier.carry(a_wakeup(kill_grace=timedelta(seconds=20)))
    log = yard.run_folder() / STDERR
    await yard.until(lambda: log.exists() and log.read_text(), "a first look")
    await held.end("operator")
    assert (await held.wait()).by == "operator"
    (sessions.folder / "calm").touch()
    sessions.tmux("send-keys", "-t", "=main:", "x")
    await yard.until(sessions.heard, "whatever was typed")
    assert sessions.heard() == b"x"


@real
async def test_an_engine_that_is_killed_in_the_middle_adopts_the_run_and_nothing_is_typed_twice(yard, sessions):
    await present(yard, sessions, "says nothing")
    assignment = yard.carrier._assign(a_wakeup(), None, None, None)
    caller = Caller([assignment])
    caller.hear("held 42")
    await yard.until(lambda: b"\r" in sessions.heard(), "the wakeup")
    caller.kill()
    assert yard.carrier.find(42) is Found.alive
    held = await yard.another().adopt(42)
    (yard.run_folder() / RESULT).write_text('{"outcome": "done", "summary": "late"}')
    assert (await held.wait()).result.summary == "late"
    assert ONCE.fullmatch(sessions.heard())


@real
async def test_without_tmux_the_package_is_named(yard, sessions):
    yard.base = {**yard.base, "PATH": str(sessions.folder)}
    assert "install the package tmux" in of_config(await woken(yard))
