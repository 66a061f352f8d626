"""A CHECK keeps an agent asleep only with a clear no; whatever else it says or does, the agent is woken."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.runners.carrier_case import Desk, a_process
from tests.runners.orders import an_agent
from wakeful.core.runs import Ending
from wakeful.runners.checks import read_check
from wakeful.runners.leavings import identify
from wakeful.runners.process import ProcessRunner
from wakeful.runners.protocol import Checked
from wakeful.testing.contracts.runner_case import real

LIMIT = timedelta(seconds=1)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path, check_limit=LIMIT).open() as desk:
        yield desk


def said(line: str, **more) -> Checked:
    return read_check(Ending(**{"exit_code": 0, **more}), line, LIMIT)


# ---- what is said


@pytest.mark.parametrize(
    ("line", "reason", "data"),
    [
        ('{"wakeAgent": false}', '{"wakeAgent": false}', None),
        ('{"fire": false, "message": "nothing new"}', "nothing new", None),
        ('{"wakeAgent": false, "reason": "all\\nquiet", "message": "m", "data": [1]}', "all quiet", [1]),
    ],
)
def test_a_clear_no_keeps_the_agent_asleep(line, reason, data):
    assert said(line) == Checked(wake=False, reason=reason, data=data)


@pytest.mark.parametrize(
    "line",
    [
        *("", "no", "false", "[false]", "{", "{}", "[" * 100_000, '{"fire": true}', '{"fire": "false"}'),
        *('{"wakeAgent": true}', '{"wakeAgent": 0}', '{"wakeAgent": null}'),
    ],
    ids=lambda line: line[:20],
)
def test_anything_else_wakes_it(line):
    assert said(line).wake


@pytest.mark.parametrize(
    "more", [{"exit_code": 1}, {"timed_out": True}, {"exit_code": None, "signal": 9}, {"lost": True}]
)
def test_a_no_of_a_check_that_failed_does_not_count(more):
    checked = said('{"wakeAgent": false}', **{"exit_code": None, **more})
    assert checked.wake and checked.reason.startswith("the check ")


def test_a_yes_hands_on_its_data_and_a_reason_of_any_length_is_one_sentence():
    checked = said('{"wakeAgent": true, "data": {"new": 2}, "reason": "' + "two new " * 1000 + '"}')
    assert (checked.wake, checked.data) == (True, {"new": 2})
    assert 400 < len(checked.reason) < 600


# ---- asked


@real
async def test_an_agent_without_a_check_is_woken(yard):
    assert await yard.carrier.check(an_agent()) == Checked(wake=True)


@real
async def test_a_check_is_asked_in_the_work_folder_with_the_environment_of_a_run_but_without_a_token(yard):
    command = (
        'test -z "$WAKEFUL_TOKEN$WAKEFUL_RUN_ID$AMBIENT" && echo noise && pwd > "$WAKEFUL_ROOT/where" && '
        'printf \'{"wakeAgent": false, "reason": "%s %s"}\\n\\n\' "$WAKEFUL_AGENT" "$PASSPHRASE_KEY"'
    )
    agent = a_process("false", check=command, environment=("PASSPHRASE_KEY",))
    assert await yard.carrier.check(agent) == Checked(wake=False, reason="wren [redacted]")
    assert (yard.root / "where").read_text() == f"{yard.data}/work/wren\n"
    assert list((yard.data / "checks").iterdir()) == []


@real
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("printf '{\"wakeAgent\": false}'; exit 3", "the check failed: exit code 3"),
        ("echo certainly", "the check said nothing clear: certainly"),
        ("no-such-program", "the check failed: cannot execute no-such-program"),
        ("echo 'half", "the check could not be started: CHECK has a quote that is not closed"),
        ("sleep 60", "the check took longer than 1 s"),
    ],
)
async def test_a_broken_or_hanging_check_wakes_the_agent_and_says_why(yard, command, reason):
    checked = await yard.carrier.check(a_process("true", check=command, kill_grace=timedelta()))
    assert checked.wake and checked.reason.startswith(reason)
    assert not (yard.data / "checks" / "wren").exists()


@real
async def test_the_last_line_counts_however_much_was_printed_before_it(yard):
    command = "i=0; while [ $i -lt 2000 ]; do echo '{\"wakeAgent\": true}'; i=$((i+1)); done; echo '{\"fire\": false}'"
    assert not (await yard.carrier.check(a_process("true", check=command))).wake


@real
async def test_whoever_stops_asking_at_any_moment_leaves_nothing_running(yard):
    yard.settings = {"check_limit": timedelta(seconds=60)}
    for moment in range(8):
        asking = asyncio.ensure_future(yard.carrier.check(a_process("true", check="sleep 60")))
        await yard.turn(moment * 40)
        asking.cancel()
        await asyncio.wait({asking})
        assert asking.cancelled() and not (yard.data / "checks" / "wren").exists()
    asking = asyncio.ensure_future(yard.carrier.check(a_process("true", check='touch "$WAKEFUL_ROOT/asked"; sleep 60')))
    await yard.until((yard.root / "asked").exists, "the check to say that it is there")
    asking.cancel()
    await asyncio.wait({asking})
    assert not (yard.data / "checks" / "wren").exists()


@real
async def test_a_check_ends_with_the_carrier_that_asks(yard):
    asking = asyncio.ensure_future(yard.carrier.check(a_process("true", check="sleep 60")))
    await yard.until(lambda: list(yard.data.glob("checks/wren/*/started")), "the check to begin")
    await yard.carrier.close()
    assert (await asking).wake


@real
async def test_what_an_engine_left_that_was_killed_while_it_asked_is_ended_before_the_next_check(yard):
    folder = yard.data / "checks" / "wren" / "before"
    before = ProcessRunner()
    await before.start(yard.assign(["/bin/sleep", "60"], folder=folder))
    await before.close()
    who = identify(folder)
    assert who.alive()
    assert not (await yard.carrier.check(a_process("true", check="echo '{\"fire\": false}'"))).wake
    assert not who.alive() and not folder.exists()
