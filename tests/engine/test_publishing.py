"""What a run prints is in the store while it goes on and after it has ended, bounded, whole, and never twice."""

import asyncio

import pytest

from tests.engine.stage import MINUTE, heading, lived
from wakeful.core.errors import Busy, Unknown
from wakeful.engine import publishing
from wakeful.engine.publishing import LEFT_OUT, PART, PIECE, new
from wakeful.runners.capture import Capture
from wakeful.runners.protocol import Assignment
from wakeful.testing.runner import done

LIMIT: int = vars(Assignment)["__dataclass_fields__"]["output_limit"].default


class Printed:
    """The folder of a run, and what its guardian puts there."""

    def __init__(self, node, run):
        self.node, self.run = node, run
        self.folder = node.data / "runs" / str(run)
        self.folder.mkdir(parents=True)
        (self.folder / "briefing.txt").write_bytes(b"you are wren")
        self.captures = {stream: Capture(str(self.folder / stream), LIMIT) for stream in ("stdout", "stderr")}

    def say(self, data, stream="stdout"):
        self.captures[stream].write(data)

    def close(self):
        for capture in self.captures.values():
            capture.close()

    def kept(self, stream="stdout", node=None):
        (data, size) = (node or self.node).store.output(self.run, stream, 0, 1 << 30)
        assert len(data) == size
        return data


async def a_run(company, *, length=MINUTE, node=None):
    company.declare(heading("wren", interval="2h"), grace="2h", sessions="4")
    node = node or company.nodes[0]
    node.all_end(done(), duration=length)
    await company.up()
    await node.begin("wren")
    return Printed(node, node.store.runs()[0].id)


def writes(node):
    """Since the last time."""
    count = sum(what == "write" for _, what in node.access.calls)
    node.access.calls.clear()
    return count


TEXT = b"".join(b"%09d\n" % n for n in range(LIMIT // 4))


def some(size, start=0):
    return TEXT[start : start + size]


# ---- while it goes on


@lived
async def test_what_a_run_prints_can_be_read_at_another_node_within_two_seconds(company):
    one, two = company.nodes
    run = await a_run(company)
    assert run.kept("briefing", two) == b""
    await one.until(12)
    assert run.kept("briefing", two) == b"you are wren"
    told = []
    for node in company.nodes:
        node.access.watch(lambda: told.append(one.elapsed))
    run.say(b"first\n")
    run.say(b"oh\n", "stderr")
    await one.until(14.1)
    assert (run.kept("stdout", two), run.kept("stderr", two)) == (b"first\n", b"oh\n")
    run.say(b"second\n")
    await one.until(16.2)
    assert run.kept("stdout", two) == b"first\nsecond\n"
    assert run.kept("briefing", two) == b"you are wren"
    # It is no news to anybody.
    assert told == []


@lived
async def test_who_prints_nothing_costs_no_call_and_all_that_grew_is_one_write(company):
    one, _ = company.nodes
    company.declare(*(heading(name, interval="2h") for name in ("wren", "moss", "finch")), grace="2h", sessions="4")
    one.all_end(done(), duration=MINUTE)
    await company.up()
    await one.begin("wren", "moss", "finch")
    runs = [Printed(one, row.id) for row in one.store.runs()]
    asked = []
    output = one.store.output
    one.store.output = lambda *place: (asked.append(place), output(*place))[1]
    await one.until(9.9)
    assert writes(one) > 0
    await one.until(30)
    renewals = writes(one)
    assert renewals == 10
    for run in runs:
        run.say(b"a word")
    await one.until(50)
    assert writes(one) == renewals + 1
    # Of what we began ourselves we know what is kept.
    assert asked == []
    assert [run.kept() for run in runs] == [b"a word"] * 3


@lived
async def test_while_it_runs_nothing_is_published_that_may_be_written_over(company):
    one, _ = company.nodes
    run = await a_run(company, length=10 * MINUTE)
    run.say(some(LIMIT // 2 + 1000))
    await one.until(120)
    assert run.kept() == some(PART)
    # The ring goes round.
    run.say(some(LIMIT, LIMIT))
    await one.until(140)
    assert run.kept() == some(PART)


def test_twice_what_is_published_of_a_stream_lies_before_its_ring():
    assert 2 * PART <= LIMIT // 2


# ---- when it has ended


@lived
async def test_what_is_not_too_long_is_kept_whole_and_of_the_rest_both_ends(company):
    one, two = company.nodes
    run = await a_run(company)
    size = LIMIT + 100_000
    await one.until(20)
    run.say(some(2 * PART), "stderr")
    run.say(some(size))
    await one.until(50)
    run.close()
    await one.until(70)
    assert one.outcomes() == ["done"]
    assert run.kept("stderr", two) == some(2 * PART)
    between = LEFT_OUT.format(size - 2 * PART).encode()
    assert run.kept("stdout", two) == some(size)[:PART] + between + some(size)[-PART:]


# The least in which twice a part lies before the ring.
SHORT = 4 * PART
SIZES = [0, 1, PIECE, PART - 1, PART, PART + 1, 2 * PART - 1, 2 * PART, 2 * PART + 1, 3 * PART, SHORT, SHORT + 100_000]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seen", [0, PIECE, PART, 3 * PART])
def test_however_much_was_published_before_the_end_the_end_is_the_same(tmp_path, size, seen):
    """`seen` is how much there was when it was looked at for the last time while it ran."""
    path = tmp_path / "stdout"
    capture = Capture(str(path), SHORT)
    capture.write(some(min(size, seen)))
    kept = b""
    while data := new(path, len(kept), False):
        kept += data
    assert kept == some(min(size, seen, PART))
    capture.write(some(size - min(size, seen), min(size, seen)))
    capture.close()
    kept += new(path, len(kept), True)
    if size <= 2 * PART:
        assert kept == some(size)
    else:
        assert kept == some(PART) + LEFT_OUT.format(size - 2 * PART).encode() + some(size)[-PART:]
    # And once more changes nothing.
    assert new(path, len(kept), True) == b""


def test_a_file_that_cannot_be_read_is_nothing_to_publish(tmp_path):
    assert new(tmp_path / "stdout", 0, True) == new(tmp_path, 0, False) == b""


@lived
async def test_the_last_words_are_there_before_the_end_is_told(company):
    one, two = company.nodes
    run = await a_run(company)
    await one.until(61)
    run.say(b"almost")
    seen = []

    def watch():
        if two.store.run(run.run).outcome is not None:
            seen.append(run.kept("stdout", two))

    one.access.watch(watch)
    await one.until(62)
    assert seen[0] == b"almost"


# ---- trouble


@lived
async def test_an_engine_that_comes_back_goes_on_where_the_last_one_stopped(company):
    one, _ = company.nodes
    run = await a_run(company)
    run.say(b"one ")
    await one.until(6)
    run.say(b"two ")
    await one.crash()
    await one.until(10)
    run.say(b"three ")
    await one.up()
    await one.until(14)
    assert run.kept() == b"one two three "
    await one.crash()
    await one.until(24)
    await one.up()
    run.say(b"four")
    run.close()
    await one.until(70)
    assert run.kept() == b"one two three four"
    assert run.kept("briefing") == b"you are wren"
    assert one.outcomes() == ["done"]


@lived
async def test_a_write_whose_answer_was_lost_is_not_made_twice(company):
    one, _ = company.nodes
    run = await a_run(company)

    async def lost(number):
        raise Busy("the connection was lost")

    await one.until(4)
    run.say(b"once")
    one.access.after = lost
    await one.until(10)
    one.access.after = None
    run.say(b" and again")
    await one.until(20)
    assert run.kept() == b"once and again"


@lived
async def test_an_end_waits_a_moment_for_its_output_and_no_longer(company):
    one, _ = company.nodes
    run = await a_run(company)
    await one.until(40)
    write = one.access.write
    hung = asyncio.Event()

    async def hangs(verb, *, quiet=False):
        if verb.__module__ == publishing.__name__:
            await hung.wait()
        return await write(verb, quiet=quiet)

    one.access.write = hangs
    run.say(b"last words")
    run.close()
    await one.until(62.8)
    assert one.outcomes() == ["done"]
    assert run.kept() == b""
    hung.set()
    await one.until(66)
    # What the store did not take in time is still put there.
    assert run.kept() == b"last words"


@lived
async def test_output_that_the_store_refuses_harms_neither_the_end_nor_the_output_of_others(company, caplog):
    one, _ = company.nodes
    company.declare(*(heading(name, interval="2h") for name in ("wren", "moss")), grace="2h", sessions="4")
    one.all_end(done(), duration=MINUTE)
    await company.up()
    await one.begin("wren", "moss")
    wren, moss = (Printed(one, row.id) for row in one.store.runs())
    keep = one.store.keep_output

    def refuses(run, stream, data):
        if run == wren.run:
            raise Unknown(f"no run {run}")
        keep(run, stream, data)

    one.store.keep_output = refuses
    for run in (wren, moss):
        run.say(b"a word")
    await one.until(70)
    assert one.outcomes() == ["done"] * 2
    assert (wren.kept(), moss.kept()) == (b"", b"a word")
    # Said once.
    assert caplog.text.count(f"what run {wren.run} prints is not published") == 1
    assert f"what run {moss.run} prints" not in caplog.text


@lived
async def test_where_there_is_no_other_node_nothing_is_published(stage):
    stage.declare(heading("wren", interval="10m"))
    await stage.up()
    await stage.until(61)
    run = Printed(stage, stage.store.runs()[0].id)
    run.say(b"a word")
    run.close()
    await stage.until(200)
    assert stage.outcomes() == ["done"]
    assert run.kept() == run.kept("briefing") == b""
