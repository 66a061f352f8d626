"""The quiet beat under a guardian, like any other run."""

import asyncio
import os
from datetime import UTC, datetime, timedelta

from wakeful.core.journal import Entry, Journal
from wakeful.core.runs import Outcome, read_outcome
from wakeful.runners.dream import dream_command, journal_briefing, memory_path
from wakeful.runners.process import ProcessRunner
from wakeful.runners.protocol import Assignment

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def dreamt(tmp_path, memory, briefing):
    async def go():
        runner = ProcessRunner()
        held = await runner.start(
            Assignment(
                run=1,
                epoch=1,
                folder=tmp_path / "run",
                command=dream_command(memory),
                workdir=tmp_path,
                environment={"PATH": os.environ["PATH"]},
                briefing=briefing,
                wall_clock=timedelta(seconds=30),
            )
        )
        ending = await held.wait()
        await runner.close()
        return ending

    return asyncio.run(go())


def a_journal():
    worked = Entry(at=NOON, state="wake_add", cause="timer", outcome="done", summary="wrote a page")
    return Journal(agent="wren", since=None, until=NOON, entries=(worked,))


def test_a_dream_writes_the_memory_of_its_agent_and_calls_nothing(tmp_path):
    memory = memory_path(tmp_path, "wren")
    ending = dreamt(tmp_path, memory, journal_briefing(a_journal()))
    assert read_outcome(ending) is Outcome.done
    assert "- wrote a page" in memory.read_text()
    assert memory.stat().st_mode & 0o777 == 0o600


def test_a_dream_that_cannot_be_written_has_failed_and_says_why(tmp_path):
    (tmp_path / "memory").write_text("in the way")
    ending = dreamt(tmp_path, memory_path(tmp_path, "wren"), journal_briefing(a_journal()))
    assert read_outcome(ending) is Outcome.failed
    assert ending.result is not None and "the dream failed" in ending.result.error


def test_a_malformed_journal_is_a_failed_dream_and_leaves_the_memory_as_it_was(tmp_path):
    memory = memory_path(tmp_path, "wren")
    memory.parent.mkdir()
    memory.write_text("# What wren remembers\n")
    ending = dreamt(tmp_path, memory, "not a journal")
    assert read_outcome(ending) is Outcome.failed
    assert memory.read_text() == "# What wren remembers\n"
