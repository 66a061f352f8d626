"""The contract of every source that mirrors a list: it tells what is pending, whole, or that it cannot tell.

An implementation gives `make_pending`: something outside that it can look at; real files, a real program, a real
server. The sentences do the rest. A test waits for a batch, never for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from wakeful.testing.contracts.source_case import Pending, Reader, ids, keepable, lived, looked, prints


class SourceContract:
    def make_pending(self, tmp_path: Path) -> Pending:
        raise NotImplementedError

    @pytest.fixture
    def pending(self, tmp_path: Path) -> Iterator[Pending]:
        pending = self.make_pending(tmp_path)
        yield pending
        pending.close()

    # -- the list, whole

    @lived
    async def test_the_first_batch_is_the_whole_list(self, pending: Pending) -> None:
        for id in ("c", "a", "b"):
            pending.put(id, f"words of {id}")
        source = pending.source()
        batch = await Reader(source).next()
        assert ids(batch) == ["a", "b", "c"]
        assert (batch.source, batch.agent, batch.why, batch.outage) == (source.name, source.agent, "", False)
        assert [thing.body for thing in batch.observed or ()] == [f"words of {id}" for id in "abc"]
        await source.stop()

    @lived
    async def test_an_empty_list_is_a_list(self, pending: Pending) -> None:
        source = pending.source()
        batch = await Reader(source).next()
        assert (batch.observed, batch.outage) == ((), False)
        await source.stop()

    @lived
    async def test_a_list_of_hundreds_is_seen_whole(self, pending: Pending) -> None:
        wanted = [f"{number:04}" for number in range(200)]
        for id in wanted:
            pending.put(id, id)
        batch = await pending.source().look()
        assert ids(batch) == wanted

    @lived
    async def test_names_and_words_of_any_kind_come_in_a_form_that_can_be_kept(self, pending: Pending) -> None:
        names = ["two\nlines", "a:b", "räksmörgås", "\u202egnp.exe", "a\\nb", "tab\tbed", "-rf", "$(true)"]
        for id in names:
            pending.put(id, f"of {id} \x1b[31m")
        batch = await pending.source().look()
        assert len(set(ids(batch))) == len(names)
        for thing in batch.observed or ():
            keepable(thing)
        assert {"räksmörgås", "a:b", "-rf", "$(true)"} < set(ids(batch))

    @lived
    async def test_its_name_has_no_space_in_it(self, pending: Pending) -> None:
        name = pending.source().name
        assert name and len(name.split()) == 1

    # -- looked at again

    @lived
    async def test_the_same_list_looked_at_again_is_equal(self, pending: Pending) -> None:
        pending.put("a", "words")
        pending.put("b", "others")
        source = pending.source()
        first, second = await source.look(), await source.look()
        assert first == second
        assert first.taken < second.taken

    @lived
    async def test_the_same_list_is_equal_to_one_who_never_saw_it(self, pending: Pending) -> None:
        pending.put("a", "words")
        pending.put("b", "others")
        assert await pending.source().look() == await pending.source().look()

    @lived
    async def test_a_look_agrees_with_the_batch(self, pending: Pending) -> None:
        pending.put("a", "words")
        source = pending.source()
        batch = await Reader(source).next()
        assert await source.look() == batch
        await source.stop()

    @lived
    async def test_what_is_new_changed_and_gone_is_seen_by_a_look(self, pending: Pending) -> None:
        for id in ("a", "b", "c"):
            pending.put(id, "words")
        source = pending.source()
        before = prints(await source.look())
        pending.put("b", "other words")
        pending.put("d", "words")
        pending.take("a")
        after = prints(await source.look())
        assert list(after) == ["b", "c", "d"]
        assert after["b"] != before["b"]
        assert after["c"] == before["c"]

    @lived
    async def test_words_of_the_same_length_are_other_words(self, pending: Pending) -> None:
        pending.put("a", "one")
        source = pending.source()
        seen = [prints(await source.look())["a"]]
        for words in ("two", "six", "ten", "one"):
            pending.put("a", words)
            seen.append(prints(await source.look())["a"])
        assert all(before != after for before, after in pairwise(seen))

    # -- told without being asked

    @lived
    async def test_what_has_changed_comes_by_itself(self, pending: Pending) -> None:
        pending.put("a", "words")
        source = pending.source()
        reader = Reader(source)
        await reader.next()
        pending.put("b", "words")
        pending.hint()
        assert ids(await reader.until(lambda batch: len(batch.observed or ()) == 2)) == ["a", "b"]
        pending.take("a")
        pending.hint()
        assert ids(await reader.until(lambda batch: len(batch.observed or ()) == 1)) == ["b"]
        await source.stop()

    @lived
    async def test_what_was_acknowledged_is_not_told_again(self, pending: Pending) -> None:
        pending.put("a", "words")
        source = pending.source()
        reader = Reader(source)
        await reader.next()
        following = asyncio.ensure_future(reader.next())
        await looked(pending, source)
        assert not following.done()
        pending.put("b", "words")
        pending.hint()
        assert ids(await following) == ["a", "b"]
        await source.stop()

    @lived
    async def test_what_was_looked_at_and_acknowledged_is_not_told_either(self, pending: Pending) -> None:
        pending.put("a", "words")
        source = pending.source()
        reader = Reader(source)
        await reader.next()
        pending.put("b", "words")
        await source.acknowledge(await source.look())
        following = asyncio.ensure_future(reader.next())
        await looked(pending, source)
        assert not following.done()
        pending.put("c", "words")
        pending.hint()
        assert ids(await following) == ["a", "b", "c"]
        await source.stop()

    @lived
    async def test_what_was_not_acknowledged_is_offered_again(self, pending: Pending) -> None:
        pending.put("a", "words")
        source = pending.source()
        reader = Reader(source)
        first = await reader.next(acknowledge=False)
        second = await reader.next(acknowledge=False)
        assert first == second
        assert first.taken < second.taken
        await source.stop()

    @lived
    async def test_an_older_acknowledgement_does_not_undo_a_newer_one(self, pending: Pending) -> None:
        pending.put("a", "words")
        source = pending.source()
        reader = Reader(source)
        old = await reader.next(acknowledge=False)
        pending.put("b", "words")
        await source.acknowledge(await source.look())
        await source.acknowledge(old)
        pending.take("b")
        pending.hint()
        # Back to what the older one said, which is not what the store has.
        assert ids(await reader.next()) == ["a"]
        await source.stop()

    # -- outages

    @lived
    async def test_what_cannot_be_read_is_unknown_and_says_why(self, pending: Pending) -> None:
        pending.put("a", "words")
        source = pending.source()
        await source.look()
        pending.fail()
        batch = await source.look()
        assert (batch.observed, batch.outage) == (None, True)
        assert batch.why and "\n" not in batch.why

    @lived
    async def test_what_could_never_be_read_is_unknown_from_the_first_batch_on(self, pending: Pending) -> None:
        pending.fail()
        source = pending.source()
        assert (await Reader(source).next()).observed is None
        await source.stop()

    @lived
    async def test_after_an_outage_the_list_is_what_it_was(self, pending: Pending) -> None:
        pending.put("a", "words")
        pending.put("b", "words")
        source = pending.source()
        before = await source.look()
        pending.fail()
        await source.look()
        pending.mend()
        assert await source.look() == before
        assert await pending.source().look() == before

    @lived
    async def test_an_outage_is_told_once_and_so_is_its_end(self, pending: Pending) -> None:
        pending.put("a", "words")
        source = pending.source()
        reader = Reader(source)
        before = await reader.next()
        pending.fail()
        pending.hint()
        outage = await reader.next()
        assert outage.outage
        following = asyncio.ensure_future(reader.next())
        await looked(pending, source)
        assert not following.done()
        pending.mend()
        pending.hint()
        assert await following == before
        await source.stop()

    # -- its end

    @lived
    async def test_stop_ends_the_iterator_while_it_waits(self, pending: Pending) -> None:
        source = pending.source()
        reader = Reader(source)
        await reader.next()
        waiting = asyncio.ensure_future(anext(reader.batches, None))
        await source.look()
        await source.stop()
        assert await waiting is None

    @lived
    async def test_a_stop_before_anything_and_a_second_stop_do_no_harm(self, pending: Pending) -> None:
        source = pending.source()
        await source.stop()
        await source.stop()
        assert [batch async for batch in source.batches()] == []

    @lived
    async def test_a_look_that_is_given_up_leaves_nothing_and_the_next_one_sees(self, pending: Pending) -> None:
        pending.put("a", "words")
        source = pending.source()
        look = asyncio.ensure_future(source.look())
        await asyncio.wait({look}, timeout=0)
        look.cancel()
        await asyncio.wait({look})
        assert ids(await source.look()) == ["a"]

    @lived
    async def test_looks_at_the_same_time_come_one_after_the_other(self, pending: Pending) -> None:
        pending.put("a", "words")
        source = pending.source()
        batches = await asyncio.gather(*(source.look() for _ in range(5)))
        assert len({batch.taken for batch in batches}) == 5
        assert all(batch == batches[0] for batch in batches)
