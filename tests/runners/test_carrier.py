"""Every kind of order, carried out end to end: by processes, by handlers, by dreams; or it says why it was not."""

import asyncio
import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.runners.carrier_case import TOKEN, Desk, a_beat, a_handler, a_night, a_process, tasks_for
from tests.runners.orders import NOW, an_agent, an_item, an_order
from wakeful.core.agents import Runner
from wakeful.core.lifecycle import Position
from wakeful.core.orders import Order
from wakeful.core.runs import Ending, ErrorClass, Outcome, read_outcome
from wakeful.core.standing import Standing
from wakeful.runners import protocol
from wakeful.runners.line import NurseryGone
from wakeful.runners.protocol import BRIEFING, BRIEFING_JSON, EXIT, STARTED, STDOUT, Found
from wakeful.runners.record import TASKS
from wakeful.testing.contracts.runner_case import real

HANDLERS = """
import os
from wakeful import Run

def proof(run: Run):
    if run.task is None:
        return {"state": run.state, "key": run.key("a"), "definition": run.definition, "check": run.briefing["check"]}
    if run.task.body == "fail":
        raise ValueError("a page is missing")
    if run.task.body == "wait":
        open(os.path.join(os.environ["WAKEFUL_ROOT"], "waiting"), "w").close()
        while not os.path.exists(os.path.join(os.environ["WAKEFUL_ROOT"], "enough")):
            pass
    return [run.task.body, run.step("count", lambda: len(run.task.body)), os.environ["WAKEFUL_TOKEN"]]
"""
WAIT = 'echo "$WAKEFUL_RUN_ID here" >> "$WAKEFUL_ROOT/../witness"; while [ ! -e enough ]; do sleep 0.02; done'


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path).open() as desk:
        yield desk


async def carried(desk: Desk, order: Order, check: object = None) -> Ending:
    held = await desk.carrier.carry(order, check)
    assert held.run == order.run.id
    return await held.wait()


def of_config(ending: Ending) -> str:
    assert read_outcome(ending) is Outcome.failed
    assert ending.result is not None and ending.result.error_class is ErrorClass.config
    return ending.result.error or ""


def is_a_carrier(carrier: protocol.Carrier) -> None:
    """For the type checker."""


# ---- processes


@real
async def test_a_beat_reads_its_briefing_and_knows_where_it_is(yard):
    is_a_carrier(yard.carrier)
    yard.write("defs/writer.org", "You are wren.\n")
    agent = a_process("env; pwd; cat", definition="defs/writer.org", environment=("PASSPHRASE_KEY",))
    standing = Standing(agent="wren", position=Position("beat"), last_outcome="done", last_ended_at=NOW)
    order = a_beat(agent, items=(an_item(7),), standing=standing, last="wrote a page")
    ending = await carried(yard, order)
    assert (read_outcome(ending), ending.exit_code) == (Outcome.done, 0)
    said = (yard.run_folder() / STDOUT).read_text()
    work = yard.data / "work" / "wren"
    assert f"\n{work}\nYou are wren.\n\n## This run\n" in said
    assert "please read it" in said and "wrote a page" in said
    for line in (
        "WAKEFUL_URL=http://127.0.0.1:7717",
        f"WAKEFUL_ROOT={yard.root}",
        f"WAKEFUL_MEMORY={yard.data}/memory/wren.md",
        f"WAKEFUL_RESULT={yard.run_folder()}/result.json",
    ):
        assert f"\n{line}\n" in f"\n{said}"
    assert "AMBIENT" not in said
    assert stat.S_IMODE(work.stat().st_mode) == stat.S_IMODE(yard.run_folder().stat().st_mode) == 0o700
    assert json.loads((yard.run_folder() / BRIEFING_JSON).read_text())["definition"] == "You are wren.\n"


@real
async def test_the_token_and_the_secrets_of_a_run_are_kept_nowhere(yard):
    agent = a_process('echo "$WAKEFUL_TOKEN $PASSPHRASE_KEY"', environment=("PASSPHRASE_KEY",))
    ending = await carried(yard, a_beat(agent))
    assert ending.output == "[redacted] [redacted]\n"
    kept = [path.read_bytes() for path in yard.run_folder().iterdir() if path.is_file()]
    assert not [text for text in kept if TOKEN.encode() in text or b"sesame" in text]


@real
async def test_nor_is_a_secret_that_is_somebody_elses(yard):
    yard.settings["hidden"] = lambda: ("of-the-operator-0815",)
    result = '{"summary": "it is of-the-operator-0815"}'
    agent = a_process(f"echo of-the-operator-0815 | tee /dev/stderr; echo '{result}' > \"$WAKEFUL_RESULT\"; env")
    ending = await carried(yard, a_beat(agent))
    assert ending.output.startswith("[redacted]\n") and ending.result.summary == "it is [redacted]"
    kept = [path.read_bytes() for path in yard.run_folder().iterdir() if path.is_file()]
    assert not [text for text in kept if b"of-the-operator" in text]


@real
async def test_a_task_is_told_which_it_is_and_what_it_prints_is_its_result(yard):
    agent = a_process('echo "$WAKEFUL_TASK_ID"; grep -c "the parcel"')
    held = await yard.carrier.carry(tasks_for(agent, "weigh the parcel"))
    assert [batch async for batch in held.batches()] == []
    ending = await held.wait()
    assert (read_outcome(ending), ending.output) == (Outcome.done, "1\n1\n")


@real
async def test_a_plain_command_is_executed_without_a_shell_and_any_other_with_one(yard):
    yard.write("bin/show", '#!/bin/sh\necho "$@"; ps -o args= -p "$PPID" | grep -c "wakeful.*nursery"\n', 0o755)
    plain = await carried(yard, a_beat(a_process("bin/show 'a  b' \"c\" --d=e"), 1))
    piped = await carried(yard, a_beat(a_process("\"$WAKEFUL_ROOT\"/bin/show 'a  b' | tr a-z A-Z"), 2))
    assert (plain.output, piped.output) == ("a  b c --d=e\n1\n", "A  B\n0\n")


@real
async def test_an_edited_definition_is_live_with_the_next_run(yard):
    agent = a_process("head -1", definition="writer.org")
    outputs = []
    for number, text in enumerate(("Write prose.", "Write verse."), 1):
        yard.write("writer.org", text)
        outputs.append((await carried(yard, a_beat(agent, number))).output)
    assert outputs == ["Write prose.\n", "Write verse.\n"]


@real
async def test_a_declared_work_folder_is_made_beside_the_fleet_file_and_must_be_there_elsewhere(yard):
    inside = await carried(yard, a_beat(a_process("pwd", workdir="desk/wren"), 1))
    assert inside.output == f"{yard.root}/desk/wren\n"
    for number, place in enumerate(("../nowhere", str(yard.folder / "nowhere"), "clones/nowhere"), 2):
        agent = a_process("pwd", workdir=place, gitops="clones" in place)
        problem = of_config(await carried(yard, a_beat(agent, number)))
        assert "nowhere is not there (create it, or mend the path in WORKDIR)" in problem
    (yard.folder / "elsewhere").mkdir()
    there = await carried(yard, a_beat(a_process("pwd -P", workdir="../elsewhere"), 5))
    assert there.output == f"{yard.folder}/elsewhere\n"


@real
async def test_a_run_may_use_our_own_command_line(yard):
    yard.base = {"PATH": "/usr/bin:/bin"}
    ending = await carried(yard, a_beat(a_process("wakeful --version")))
    assert ending.exit_code == 0 and "wakeful" in ending.output


@real
async def test_past_its_wall_clock_a_run_is_killed(yard):
    agent = a_process("sleep 60", timeout=timedelta(seconds=0.1), kill_grace=timedelta())
    assert read_outcome(await carried(yard, a_beat(agent))) is Outcome.killed


# ---- what cannot be carried out


@real
@pytest.mark.parametrize(
    ("agent", "problem"),
    [
        (a_process("true", definition="gone.org"), "the definition gone.org cannot be read: No such file or directory"),
        (a_process("true", definition="."), "the definition . cannot be read: Is a directory"),
        (a_process("no-such-program --help"), "cannot execute no-such-program: it is in no folder of PATH (./no-such"),
        (a_process("./no-such-program --help"), "cannot execute ./no-such-program: [Errno 2] No such file or direc"),
        (a_process("echo 'half"), "RUN has a quote that is not closed: echo 'half"),
        (a_process("  "), "RUN holds no command"),
        (an_agent(runner=Runner.url, target="ftp://there"), "not an address of http or https"),
        (an_agent(runner=Runner.url, target="http://there#token=UNSET"), "UNSET, the token in URL, is not set"),
        (
            an_agent(runner=Runner.url, target="http://there#token=BAD"),
            "BAD, the token in URL, holds what cannot be sent",
        ),
        (an_agent(), "nothing says how it runs (add RUN or HANDLER"),
        (a_handler("nowhere:at_all"), "cannot import nowhere: no module named nowhere"),
    ],
    ids=lambda value: value.replace(" ", "_")[:20] if isinstance(value, str) else "",
)
async def test_what_cannot_be_carried_out_is_an_ending_that_says_so(yard, agent, problem):
    held = await yard.carrier.carry(a_beat(agent))
    assert [batch async for batch in held.batches()] == []
    await held.end("operator")
    held.extend(timedelta(seconds=1))
    assert problem in of_config(await held.wait())
    yard.carrier.discard(42)
    assert not yard.run_folder().exists()


@real
async def test_a_disk_that_cannot_be_written_is_no_mistake_of_the_configuration(yard):
    yard.data.mkdir()
    (yard.data / "runs").write_text("in the way")
    ending = await carried(yard, a_beat(a_process("true")))
    assert read_outcome(ending) is Outcome.failed
    assert ending.result.error_class is ErrorClass.other and "Not a directory" in ending.result.error


@real
async def test_a_start_of_which_nobody_knows_is_settled_before_anything_is_said(yard, monkeypatch):
    async def gone(assignment):
        raise NurseryGone("it ended before it answered")

    monkeypatch.setattr(yard.carrier._processes, "start", gone)
    ending = await carried(yard, a_beat(a_process("true")))
    assert ending.by == "veto"
    assert (yard.carrier.find(42), yard.carrier.veto(42)) == (Found.unstarted, True)


# ---- the start


@real
@pytest.mark.parametrize("agent", [a_process("sleep 0.2"), a_handler("desk:proof")], ids=["process", "handler"])
async def test_a_run_has_started_when_carry_returns(yard, agent):
    yard.write("desk.py", HANDLERS)
    for number in (1, 2):
        held = await yard.carrier.carry(a_beat(agent, number))
        assert (yard.run_folder(number) / STARTED).exists()
        assert yard.carrier.find(number) in (Found.alive, Found.ended)
        assert not yard.carrier.veto(number)
        assert (await held.wait()).exit_code == 0


@real
@pytest.mark.parametrize("agent", [a_process("true"), a_handler("desk:proof")], ids=["process", "handler"])
async def test_a_run_that_was_vetoed_never_starts(yard, agent):
    yard.write("desk.py", HANDLERS)
    assert yard.carrier.find(42) is Found.unstarted
    assert yard.carrier.veto(42)
    ending = await carried(yard, a_beat(agent))
    assert ending.by == "veto"
    assert not (yard.run_folder() / EXIT).exists()


@real
@pytest.mark.parametrize("begun", [True, False], ids=["its worker begins", "nothing has begun"])
async def test_a_handler_that_is_long_in_importing_can_be_vetoed_at_once_and_is_not_called(yard, begun):
    slow = 'import os, time\nwhile not os.path.exists(os.environ["WAKEFUL_ROOT"] + "/enough"):\n    time.sleep(0.01)\n'
    yard.write(
        "slow.py", slow + 'def proof(run):\n    open(os.environ["WAKEFUL_ROOT"] + "/called", "a").write(str(run.id))\n'
    )
    start = asyncio.ensure_future(yard.carrier.carry(a_beat(a_handler("slow:proof"), 1)))
    await yard.turn()
    if begun:
        await yard.until(lambda: 1 in yard.carrier._beginning, "the worker to begin")
    assert not start.done() and yard.carrier.find(1) is Found.unstarted
    assert yard.carrier.veto(1)
    assert (await (await start).wait()).by == "veto"
    yard.write("enough", "")
    ending = await carried(yard, a_beat(a_handler("slow:proof"), 2))
    await yard.until((yard.run_folder(1) / TASKS).exists, "the first worker to come up and find the veto")
    assert (ending.exit_code, yard.carrier.find(1)) == (0, Found.unstarted)
    assert (yard.root / "called").read_text() == "2"


# ---- quiet beats


@real
@pytest.mark.parametrize("agent", [a_process("touch called"), a_handler("desk:proof")], ids=["process", "handler"])
async def test_a_quiet_beat_consolidates_and_calls_nothing_of_the_agents(yard, agent):
    ending = await carried(yard, a_night(agent))
    assert (read_outcome(ending), ending.output) == (Outcome.done, "dreamt of 1 runs\n")
    assert "- wrote a page" in (yard.data / "memory" / "wren.md").read_text()
    assert not (yard.data / "work" / "wren" / "called").exists()


@real
async def test_a_dream_of_the_operators_is_given_the_journal_in_place_of_ours(yard):
    agent = a_process("false", dream='grep -o "wrote a page" > "$WAKEFUL_ROOT/dream"; echo "$WAKEFUL_MEMORY"')
    ending = await carried(yard, a_night(agent))
    assert (read_outcome(ending), ending.output) == (Outcome.done, f"{yard.data}/memory/wren.md\n")
    assert (yard.root / "dream").read_text() == "wrote a page\n"
    assert not (yard.data / "memory").exists()


@real
async def test_a_quiet_beat_without_a_journal_has_failed_and_an_inbox_run_in_a_quiet_state_is_an_ordinary_one(yard):
    ending = await carried(yard, a_night(a_process("true"), journal=None, number=1))
    assert "without its journal" in ending.result.error and read_outcome(ending) is Outcome.failed
    night = a_night(a_process("echo answered"), number=2)
    inbox = replace(night, run=replace(night.run, subject=an_order().run.subject))
    assert (await carried(yard, inbox)).output == "answered\n"


# ---- handlers


@real
async def test_a_beat_of_a_handler_has_its_definition_its_state_and_a_key_for_its_steps(yard):
    yard.write("desk.py", HANDLERS)
    yard.write("def.org", "Proof it.")
    agent = a_handler("desk:proof", definition="def.org")
    ending = await carried(yard, a_beat(agent, beat=17), check={"new": 2})
    assert read_outcome(ending) is Outcome.done
    told = {"state": "beat", "key": "wakeful:beat:wren:17:a", "definition": "Proof it.", "check": {"new": 2}}
    assert json.loads(ending.result.summary) == told
    assert not (yard.run_folder() / BRIEFING).exists()


@real
async def test_a_shift_tells_each_task_by_itself_and_knows_the_steps_that_are_recorded(yard):
    yard.write("desk.py", HANDLERS)
    order = tasks_for(a_handler("desk:proof"), "one", "fail", "three", steps={3: {"count": "99"}})
    held = await yard.carrier.carry(order)
    ends = {end.task: end async for batch in held.batches() for end in batch}
    assert [read_outcome(ends[task].ending).value for task in (1, 2, 3)] == ["done", "failed", "done"]
    assert [json.loads(ends[task].result) for task in (1, 3)] == [["one", 3, "[redacted]"], ["three", 99, "[redacted]"]]
    assert (await held.wait()).result.summary == "3 tasks: 2 done, 1 failed"
    assert [(run, request["task"], request["result"]) for run, request in yard.asked] == [(42, 1, None), (42, 1, "3")]


# ---- taken over


@real
async def test_another_carrier_takes_over_a_process_and_a_shift_without_being_told_which_is_which(yard):
    yard.write("desk.py", HANDLERS)
    first = yard.carrier
    await first.carry(a_beat(a_process(WAIT, workdir="."), 1))
    await first.carry(tasks_for(a_handler("desk:proof"), "one", "wait", number=2))
    await first.close()
    second = yard.another()
    assert [second.find(number) for number in (1, 2)] == [Found.alive, Found.alive]
    assert [second.veto(number) for number in (1, 2)] == [False, False]
    process, shift = await second.adopt(1), await second.adopt(2)
    second.discard(1)
    yard.write("enough", "")
    ends = [end.task async for batch in shift.batches() for end in batch]
    assert (ends, [batch async for batch in process.batches()]) == ([1, 2], [])
    assert [(await held.wait()).exit_code for held in (process, shift)] == [0, 0]
    assert yard.witness.read_text() == "1 here\n"
    assert [second.find(number) for number in (1, 2)] == [Found.ended, Found.ended]


@real
async def test_a_run_is_ended_on_purpose_and_what_it_left_is_discarded_when_it_is_over(yard):
    held = await yard.carrier.carry(a_beat(a_process("sleep 60")))
    yard.carrier.discard(42)
    assert yard.run_folder().exists()
    await held.end("operator")
    assert (await held.wait()).by == "operator"
    yard.carrier.discard(42)
    yard.carrier.discard(42)
    assert not yard.run_folder().exists()


# ---- what the check said


@real
@pytest.mark.parametrize(
    ("check", "expected"),
    [({"new": ["a ~~~~~~~~~ b"]}, '{\n "new": [\n  "a ~~~~~~~~~ b"\n ]\n}'), ("two new", "two new"), (None, None)],
    ids=["data", "text", "none"],
)
async def test_what_the_check_said_is_told_as_data(yard, check, expected):
    await carried(yard, a_beat(a_process("true")), check)
    text = (yard.run_folder() / BRIEFING).read_text()
    if expected is None:
        assert "check found" not in text
    else:
        fence = max((line for line in text.splitlines() if line and not line.strip("~")), key=len)
        assert f"\n## What your check found\n\n{fence}\n{expected}\n{fence}\n" in text
        assert fence not in expected
    assert json.loads((yard.run_folder() / BRIEFING_JSON).read_text())["check"] == check
