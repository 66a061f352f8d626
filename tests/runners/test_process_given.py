"""What an agent is given, and what is told of how it ended."""

import json
import os
import signal
import sys
from datetime import timedelta

import pytest

from soak import agents
from tests.runners.test_process_behaviours import agent, still_there
from wakeful.core.runs import ErrorClass, Outcome, read_outcome
from wakeful.runners.cage import Cage, available
from wakeful.runners.processes import is_zombie
from wakeful.runners.protocol import BRIEFING_JSON, STDERR, STDOUT, Found
from wakeful.testing.contracts.runner_case import MARK, real

MB = 1_000_000


async def shown(yard, **changes):
    assignment = agent(yard, agents.shows_itself, **changes)
    held = await yard.runner.start(assignment)
    assert (await held.wait()).exit_code == 0, (assignment.folder / STDERR).read_text()
    return json.loads((assignment.folder / STDOUT).read_bytes())


# ---- given


@real
async def test_the_environment_is_exactly_what_was_given(yard, monkeypatch):
    monkeypatch.setenv("AMBIENT_SECRET", "do not pass on")
    environment = {"LANG": "C", "ODD": "a=b\nc\u00e9", "EMPTY": "", MARK: yard.marker}
    given = (await shown(yard, environment=environment))["environment"]
    assert sorted(given) == sorted(f"{name}={value}" for name, value in environment.items())


@real
async def test_no_file_is_inherited_but_the_three_streams(yard):
    read, write = os.pipe()
    for number in (read, write):
        os.set_inheritable(number, True)
    files = (await shown(yard))["files"]
    os.close(read)
    os.close(write)
    # The fourth is the agent's own look at the list.
    assert {number for number, target in files.items() if target != "gone"} <= {"0", "1", "2"}
    assert files["0"].endswith("briefing.txt")
    assert files["1"] != files["2"]
    assert {files[number].split(":")[0] for number in ("1", "2")} == {"pipe"}


@real
async def test_no_signal_is_ignored_or_blocked_whatever_the_caller_does(yard):
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGQUIT)}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        held = await yard.runner.start(yard.assign(["/bin/cat", "/proc/self/status"]))
        ending = await held.wait()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
    given = dict(line.split(":\t") for line in ending.output.splitlines() if line.startswith(("SigBlk", "SigIgn")))
    # 32 and 33 are the C library's own: no program can name them, and who started us may have left them ignored.
    nameable = ~(0b11 << 31)
    assert {name: int(mask, 16) & nameable for name, mask in given.items()} == {"SigBlk": 0, "SigIgn": 0}


@real
async def test_it_is_the_leader_of_a_session_in_its_own_folder_and_reads_its_briefing(yard):
    place = yard.folder / "a place"
    place.mkdir()
    given = await shown(yard, workdir=place, briefing="good morning\nthere is \u2026 work\n", briefing_json='{"a": 1}')
    assert (given["session"], given["workdir"]) == (True, str(place))
    assert given["stdin"] == "good morning\nthere is \u2026 work\n"
    assert json.loads((yard.folder / "runs" / "1" / BRIEFING_JSON).read_text()) == {"a": 1}


@real
async def test_a_long_command_and_a_large_environment_arrive_whole(yard):
    arguments = [f"{number} " + "x" * 10_000 for number in range(40)]
    environment = {**{f"V{number}": "y" * 10_000 for number in range(40)}, MARK: yard.marker}
    script = "import os, sys; print(len(''.join(sys.argv[1:])), sum(len(os.environ[f'V{n}']) for n in range(40)))"
    command = [sys.executable, "-I", "-S", "-c", script, *arguments]
    held = await yard.runner.start(yard.assign(command, environment=environment))
    assert (await held.wait()).output.split() == [str(len("".join(arguments))), "400000"]


# ---- told


@real
async def test_an_exit_code_is_told_as_it_was(yard):
    for code in (0, 1, 3, 127, 255):
        held = await yard.runner.start(yard.assign(["/bin/sh", "-c", f"exit {code}"]))
        ending = await held.wait()
        assert (ending.exit_code, ending.signal, ending.lost) == (code, None, False)
        assert read_outcome(ending) is (Outcome.failed if code else Outcome.done)


@real
async def test_a_signal_that_ended_it_is_told(yard):
    for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        held = await yard.runner.start(agent(yard, agents.dies, int(number)))
        ending = await held.wait()
        assert (ending.exit_code, ending.signal, ending.by) == (None, number, None)
        assert read_outcome(ending) is Outcome.failed


@real
async def test_the_exit_record_tells_its_version_its_steps_and_what_was_used(yard):
    assignment = yard.assign(["/bin/sh", "-c", "echo one; echo two >&2"], epoch=7)
    held = await yard.runner.start(assignment)
    ending = await held.wait()
    record = yard.record(assignment)
    assert (record["version"], record["run"], record["epoch"]) == (1, assignment.run, 7)
    steps = record["steps"]
    assert list(steps) == ["asked", "taken", "claimed", "executed", "exited", "recorded"]
    assert sorted(steps.values()) == list(steps.values())
    assert ending.elapsed == timedelta(seconds=record["elapsed"])
    assert record["rusage"]["max_rss_kib"] > 0
    assert [record["output"][name]["bytes"] for name in (STDOUT, STDERR)] == [4, 4]


@real
async def test_what_was_still_in_the_pipe_when_the_agent_ended_is_kept(yard):
    size = 900_000
    assignment = agent(yard, agents.fills_a_large_pipe, size)
    held = await yard.runner.start(assignment)
    (line,) = await yard.hear(assignment)
    guardian = yard.guardian(assignment).pid
    os.kill(guardian, signal.SIGSTOP)
    (yard.folder / "enough").touch()
    await yard.until(lambda: is_zombie(int(line.split()[1])), "the agent to end")
    os.kill(guardian, signal.SIGCONT)
    assert (await held.wait()).exit_code == 0
    assert (assignment.folder / STDOUT).read_bytes() == agents.pattern(0, size)


@real
async def test_an_output_that_cannot_be_kept_costs_the_output_and_not_the_run(yard):
    """Somebody put a link where it should be: it is not followed."""
    precious = yard.folder / "precious"
    precious.write_text("keep me")
    assignment = yard.assign(["/bin/sh", "-c", "echo much; echo more >&2; exit 5"])
    assignment.folder.mkdir(parents=True)
    (assignment.folder / STDOUT).symlink_to(precious)
    held = await yard.runner.start(assignment)
    assert (await held.wait()).exit_code == 5
    assert precious.read_text() == "keep me"
    output = yard.record(assignment)["output"]
    assert ("symbolic link" in output[STDOUT]["error"], output[STDERR]["error"]) == (True, None)


@real
async def test_a_guardian_that_fails_ends_whatever_it_has_executed_and_says_why(yard):
    """It is given a secret that is no text, which nothing but a defect of ours could do."""
    assignment = agent(yard, agents.daemons, 5, "stays", secrets=(7,))
    held = await yard.runner.start(assignment)
    ending = await held.wait()
    assert read_outcome(ending) is Outcome.failed
    assert "its guardian failed" in ending.result.error
    assert still_there(yard, assignment) == []


def impossible(yard):
    script = yard.folder / "script"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o600)
    odd = yard.folder / "odd"
    odd.write_text("#!" + str(yard.folder / "no interpreter") + "\n")
    odd.chmod(0o700)
    return {
        "missing": (["./missing"], {}, "missing"),
        "not on the path": (["wakeful-no-such-program"], {}, "wakeful-no-such-program"),
        "not executable": ([str(script)], {}, "script"),
        "no interpreter": ([str(odd)], {}, "odd"),
        "a folder": ([str(yard.folder)], {}, "ermission denied"),
        "no workdir": (["/bin/true"], {"workdir": yard.folder / "nowhere"}, "nowhere"),
        "too long": (["/bin/true", "x" * 200_000], {}, "rgument list too long"),
    }


@real
async def test_what_cannot_be_executed_says_what_and_why_and_asks_for_a_change(yard):
    for what, (command, changes, named) in impossible(yard).items():
        assignment = yard.assign(command, **changes)
        held = await yard.runner.start(assignment)
        ending = await held.wait()
        assert read_outcome(ending) is Outcome.failed, what
        assert ending.result.error_class is ErrorClass.config, what
        assert named in ending.result.error, what
        assert yard.runner.find(assignment.folder) is Found.ended, what


@real
async def test_a_run_that_eats_more_than_its_memory_is_told_as_out_of_memory(yard):
    cage = Cage.make(available(), f"wakeful-probe-{os.getpid()}")
    limited = any(os.path.exists(f"{folder}/{name}") for folder in cage.folders.values() for name in LIMITS)
    cage.remove()
    if not limited:
        pytest.skip("needs a writable control group with the memory controller (Linux, as root or delegated)")
    assignment = agent(yard, agents.eats, 400 * MB, memory=60 * MB)
    held = await yard.runner.start(assignment)
    ending = await held.wait()
    assert (ending.out_of_memory, ending.signal, yard.said(assignment)) == (True, signal.SIGKILL, [])


LIMITS = ("memory.max", "memory.limit_in_bytes")


# ---- kept secret


@real
async def test_a_registered_secret_is_not_in_what_is_kept(yard):
    secret = "s3cret-token-0123456789"
    script = f"printf before-; printf s3cret-; sleep 0.05; printf token-0123456789; echo -after; echo {secret} >&2"
    assignment = yard.assign(["/bin/sh", "-c", script], secrets=(secret,))
    held = await yard.runner.start(assignment)
    ending = await held.wait()
    assert (assignment.folder / STDOUT).read_text() == "before-[redacted]-after\n"
    assert (assignment.folder / STDERR).read_text() == "[redacted]\n"
    assert secret not in ending.output
    kept = {path.name for path in assignment.folder.iterdir() if secret.encode() in path.read_bytes()}
    assert kept == set()
