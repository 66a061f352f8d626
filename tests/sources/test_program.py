"""A program that prints what is pending: what is an outage, and what is left of it afterwards."""

import asyncio
import gc
import os
import selectors
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sources.pendings import EVERY, shell
from wakeful.core.snapshots import read_snapshot
from wakeful.sources import program
from wakeful.sources.aside import Unreadable
from wakeful.sources.program import Program
from wakeful.sources.snapshot import ProgramSnapshot
from wakeful.testing.contracts.source_case import ids, lived, nothing_left, until, waited

ENVIRONMENT = {"PATH": os.environ["PATH"]}


@pytest.fixture
def printed(tmp_path):
    """What a program of these lines prints."""

    def run(*lines, **environment):
        path = shell(tmp_path / "pending", *lines)
        with nothing_left():
            return Program(path, tmp_path, ENVIRONMENT | environment).do()

    return run


def source(folder, *lines, limit=10.0, **more):
    shell(folder / "pending", *lines)
    address = replace(read_snapshot("snapshot+exec:pending"), every=EVERY)
    return ProgramSnapshot("moss", address, root=folder, environment=ENVIRONMENT, limit=limit, **more)


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def is_gone(process):
    """Killed it is already; to be gone takes a moment."""
    return waited(lambda: not is_alive(process))


# ---- what it prints, and in what place


def test_what_it_prints_is_taken_whole(printed):
    assert printed("printf one; printf two >&2; printf three") == b"onethree"
    assert len(printed("head -c 3000000 /dev/zero")) == 3_000_000


def test_it_runs_beside_the_fleet_file_with_what_it_is_given_and_nothing_else(printed, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_OF_OURS", "do not tell")
    found = printed("pwd; env; cat; echo $#", GIVEN="yes").decode().splitlines()
    assert found[0] == str(tmp_path)
    assert "GIVEN=yes" in found
    assert not any("SECRET" in line for line in found)
    assert found[-1] == "0"


def test_it_reads_nothing_of_ours(printed):
    ours, theirs = os.pipe()
    os.write(theirs, b"do not tell")
    os.close(theirs)
    before = os.dup(0)
    os.dup2(ours, 0)
    try:
        assert printed("cat") == b""
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(ours)


def test_it_gets_no_open_file_of_ours(printed, tmp_path):
    with (tmp_path / "ours").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        assert b"ours" not in printed("ls -l /proc/self/fd")


@lived
async def test_its_path_begins_at_the_fleet_file_also_where_that_is_near(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path.parent)
    shell(tmp_path / "pending", "echo '[\"a\"]'")
    address = read_snapshot("snapshot+exec:pending")
    found = ProgramSnapshot("moss", address, root=Path(tmp_path.name), environment=ENVIRONMENT)
    assert ids(await found.look()) == ["a"]


@lived
async def test_its_path_begins_at_the_fleet_file(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    (tmp_path / "tools").mkdir()
    shell(tmp_path / "tools" / "what is pending", "echo '[\"a\"]'")
    address = read_snapshot("snapshot+exec:tools/what%20is%20pending")
    found = ProgramSnapshot("moss", address, root=tmp_path, environment=ENVIRONMENT)
    assert ids(await found.look()) == ["a"]


# ---- outages


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["exit 3"], "ended with exit code 3"),
        (["echo first >&2; echo 'the last: away' >&2; echo >&2; exit 1"], "ended with exit code 1: the last: away"),
        (["printf '\\033[31mred\\377' >&2; exit 1"], r"exit code 1: \u001b[31mred" + "\ufffd"),
        (["head -c 5000000 /dev/zero | tr '\\0' x >&2; exit 1"], "exit code 1: " + "x" * 300 + "…"),
        (["kill -9 $$"], "ended with signal 9"),
        (["echo '[]'; exit 1"], "ended with exit code 1"),
    ],
)
def test_a_program_that_fails_is_an_outage_with_its_last_word(printed, tmp_path, lines, why):
    with pytest.raises(Unreadable) as raised:
        printed(*lines)
    assert str(raised.value) == f"{tmp_path}/pending {why}" if why.startswith("ended") else why in str(raised.value)


def test_a_program_that_is_not_there_or_cannot_be_executed_is_an_outage(tmp_path):
    (tmp_path / "text").write_text("words")
    (tmp_path / "text").chmod(0o755)
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    for name, why in (
        ("missing", "No such file or directory"),
        ("text", "Exec format error"),
        ("plain", "Permission denied"),
        (".", "Permission denied"),
        ("a\0b", "embedded null byte"),
    ):
        with nothing_left(), pytest.raises(Unreadable, match=f"cannot be executed: {why}"):
            Program(tmp_path / name, tmp_path, ENVIRONMENT).do()


def test_a_program_that_prints_too_much_is_ended_at_once(printed, monkeypatch):
    monkeypatch.setattr(program, "MOST_OUTPUT", 10_000)
    with pytest.raises(Unreadable, match="printed more than 10,000 bytes"):
        printed("exec yes")


def test_a_program_that_floods_its_errors_is_still_heard_and_little_of_it_is_kept(tmp_path):
    work = Program(shell(tmp_path / "pending", "head -c 20000000 /dev/zero >&2; echo '[]'"), tmp_path, ENVIRONMENT)
    assert work.do() == b"[]\n"
    assert len(work._said) <= 4_096


def test_a_program_that_closes_its_output_and_goes_on_is_waited_for_without_haste(printed, monkeypatch):
    turns = 0

    class Counted(selectors.DefaultSelector):
        def select(self, timeout=None):
            nonlocal turns
            turns += 1
            return super().select(timeout)

    monkeypatch.setattr(selectors, "DefaultSelector", Counted)
    assert printed("exec >&- 2>&-; sleep 0.2") == b""
    assert turns < 10


# ---- what it leaves behind


def test_what_it_left_running_is_not_waited_for_and_is_ended(printed):
    assert is_gone(int(printed("sleep 1000 & echo $!")))


def test_one_that_went_away_and_holds_its_output_open_is_not_waited_for(printed, tmp_path):
    found = printed("setsid sh -c 'echo $$ > away; exec sleep 30' & while [ ! -s away ]; do :; done; echo '[]'")
    assert found == b"[]\n"
    os.kill(int((tmp_path / "away").read_text()), 9)


def test_what_it_printed_before_its_end_is_not_lost(printed):
    for _ in range(20):
        assert printed("printf '[1]'") == b"[1]"


@lived
async def test_one_that_takes_too_long_is_killed_with_all_it_began(tmp_path):
    found = source(tmp_path, "echo $$ > one; sh -c 'echo $$ > other; sleep 1000' & sleep 1000", limit=0.5)
    batch = await found.look()
    assert (batch.observed, batch.why) == (None, "no answer within 0.5 s")
    assert all(is_gone(int((tmp_path / name).read_text())) for name in ("one", "other"))


@lived
async def test_one_that_ignores_the_polite_signals_is_killed_too(tmp_path):
    found = source(tmp_path, "trap '' TERM INT HUP; echo $$ > one; while :; do sleep 1000; done", limit=0.5)
    assert (await found.look()).outage
    assert is_gone(int((tmp_path / "one").read_text()))


@lived
async def test_stop_ends_a_program_under_way_and_whoever_waits_is_told(tmp_path):
    found = source(tmp_path, "echo $$ > one; exec sleep 1000")
    waiting = asyncio.ensure_future(found.look())
    await until(lambda: (tmp_path / "one").exists() and (tmp_path / "one").read_text().strip() != "")
    await found.stop()
    assert (await waiting).why == f"{tmp_path}/pending was broken off"
    assert is_gone(int((tmp_path / "one").read_text()))


@lived
async def test_one_that_was_broken_off_before_it_began_never_goes_on(tmp_path):
    path = shell(tmp_path / "pending", "exec sleep 1000")
    work = Program(path, tmp_path, ENVIRONMENT)
    work.abort()
    with pytest.raises(Unreadable, match="was broken off"):
        work.do()
    work.abort()


def test_what_it_printed_just_before_its_end_is_taken_without_a_sign_that_it_is_there(printed, monkeypatch):
    class Blind(selectors.DefaultSelector):
        def select(self, timeout=None):
            super().select(0.01)
            return []

    monkeypatch.setattr(program, "_handle", lambda process: None)
    monkeypatch.setattr(selectors, "DefaultSelector", Blind)
    assert printed("echo '[]'") == b"[]\n"
    with pytest.raises(Unreadable, match="exit code 1: the last word"):
        printed("echo the last word >&2; exit 1")


def test_where_the_kernel_gives_no_handle_its_end_is_seen_all_the_same(printed, monkeypatch):
    monkeypatch.setattr(program, "_handle", lambda process: None)
    assert printed("sleep 1000 & echo '[]'") == b"[]\n"
    with pytest.raises(Unreadable, match="exit code 3"):
        printed("exit 3")


# ---- as a source


@lived
async def test_what_a_person_reads_holds_no_secret(tmp_path):
    found = source(
        tmp_path, "echo 'bad key: hunter22' >&2; exit 1", hide=lambda words: words.replace("hunter22", "[redacted]")
    )
    assert (await found.look()).why == f"{tmp_path}/pending ended with exit code 1: bad key: [redacted]"


@lived
async def test_a_list_that_is_not_clear_is_an_outage(tmp_path):
    assert "not JSON" in (await source(tmp_path, "echo oops").look()).why
    assert "nothing was printed" in (await source(tmp_path, "true").look()).why


@lived
async def test_what_is_given_up_fails_in_silence(tmp_path):
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
    found = source(tmp_path, "echo $$ > one; exec sleep 1000")
    look = asyncio.ensure_future(found.look())
    await until(lambda: (tmp_path / "one").exists())
    look.cancel()
    await asyncio.wait({look})
    del found, look
    gc.collect()
    assert told == []


@lived
async def test_threads_come_and_go_with_the_looks(tmp_path):
    before = threading.active_count()
    found = source(tmp_path, "echo '[]'")
    for _ in range(5):
        await found.look()
    await until(lambda: threading.active_count() == before)
