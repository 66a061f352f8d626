"""What is kept of a run's output: it grows piece by piece, and is read from any place, until its run is forgotten."""

from __future__ import annotations

from datetime import timedelta

import pytest

from wakeful.core.errors import Unknown
from wakeful.testing.contracts.store_case import DONE, HOUR, NOW, StoreCase, operator

PIECES = (b"abc", b"d", b"\x00\xff\n", b"efghij")
WHOLE = b"".join(PIECES)
MONTH = timedelta(days=30)


class OutputContract(StoreCase):
    def a_run(self, agent: str = "moss") -> int:
        self.declare("moss", "wren")
        return self.start(operator(agent)).run.id

    def keep(self, run: int, stream: str, *pieces: bytes) -> None:
        for piece in pieces:
            self.store.keep_output(run, stream, piece)

    def test_there_is_nothing_of_a_run_that_kept_nothing(self) -> None:
        run = self.a_run()
        for offset in (0, 5, -5):
            assert self.store.output(run, "stdout", offset, 10) == (b"", 0)
        assert self.store.output(999, "stdout", 0, 10) == (b"", 0)

    def test_it_is_read_from_any_place_whatever_the_pieces_were(self) -> None:
        run = self.a_run()
        self.keep(run, "stdout", *PIECES)
        self.reopen()
        size = len(WHOLE)
        for offset in range(-size - 3, size + 3):
            begin = max(size + offset, 0) if offset < 0 else offset
            for limit in (0, 1, 2, 3, 5, size, size + 9):
                assert self.store.output(run, "stdout", offset, limit) == (WHOLE[begin : begin + limit], size)

    def test_it_grows_while_it_is_read(self) -> None:
        run, read = self.a_run(), b""
        for piece in PIECES:
            self.keep(run, "stdout", piece)
            more, size = self.store.output(run, "stdout", len(read), 100)
            read += more
            assert len(read) == size
        assert read == WHOLE

    def test_streams_and_runs_are_kept_apart(self) -> None:
        runs = [self.a_run("moss"), self.a_run("wren")]
        said = {
            (run, stream): f"{run} {stream}".encode() for run in runs for stream in ("stdout", "stderr", "briefing")
        }
        for _ in range(2):
            for (run, stream), data in said.items():
                self.keep(run, stream, data)
        for (run, stream), data in said.items():
            assert self.store.output(run, stream, 0, 100) == (2 * data, 2 * len(data))

    def test_nothing_adds_nothing(self) -> None:
        run = self.a_run()
        self.keep(run, "stderr", b"", b"ab", b"", b"c")
        assert self.store.output(run, "stderr", 0, 9) == (b"abc", 3)

    def test_large_pieces_come_back_as_they_were(self) -> None:
        run = self.a_run()
        data = bytes(range(256)) * 1024
        self.keep(run, "stdout", data, data[::-1])
        assert self.store.output(run, "stdout", 0, 1 << 30) == (data + data[::-1], 2 * len(data))
        assert self.store.output(run, "stdout", -len(data), 3) == (data[::-1][:3], 2 * len(data))

    def test_it_can_be_added_to_after_the_end(self) -> None:
        self.declare("moss")
        order = self.start(operator("moss"))
        self.keep(order.run.id, "stdout", b"before ")
        self.end(order)
        self.keep(order.run.id, "stdout", b"after")
        assert self.store.output(order.run.id, "stdout", 0, 99) == (b"before after", 12)

    def test_of_a_run_that_does_not_exist_nothing_is_kept(self) -> None:
        with pytest.raises(Unknown, match="no run 999"):
            self.store.keep_output(999, "stdout", b"a")

    def test_it_is_forgotten_with_its_run_and_with_no_other(self) -> None:
        self.declare("moss")
        runs = []
        for n in range(3):
            order = self.start(operator("moss", NOW + n * HOUR), NOW + n * HOUR)
            self.keep(order.run.id, "stdout", b"out")
            self.keep(order.run.id, "briefing", b"in")
            self.end(order, DONE, NOW + n * HOUR)
            runs.append(order.run.id)
        before = NOW + HOUR
        self.store.forget(before, before, NOW + MONTH)
        kept = {run: [self.store.output(run, stream, 0, 9)[0] for stream in ("stdout", "briefing")] for run in runs}
        assert self.store.run(runs[0]) is None
        assert kept == {runs[0]: [b"", b""], runs[1]: [b"out", b"in"], runs[2]: [b"out", b"in"]}

    def test_it_may_be_forgotten_before_its_run_is_and_not_while_that_is_open(self) -> None:
        self.declare("moss", "wren")
        ended, open_still = self.start(operator("moss")), self.start(operator("wren"))
        for order in (ended, open_still):
            self.keep(order.run.id, "stdout", *PIECES)
        self.end(ended, DONE, NOW + HOUR)
        gone = self.store.forget(NOW, NOW, NOW + MONTH, output_before=NOW + 2 * HOUR)
        assert (gone.runs, self.store.run(ended.run.id) is not None) == (0, True)
        assert self.store.output(ended.run.id, "stdout", 0, 10) == (b"", 0)
        assert self.store.output(open_still.run.id, "stdout", 0, 99) == (WHOLE, len(WHOLE))
