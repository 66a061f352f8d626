"""What is kept of an output: all of it, or its head and its tail, byte for byte, however it was cut into pieces."""

import os
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.runners.capture import Capture

MARKER = b"\n[... %d bytes left out ...]\n"
LEAST = 1024


def kept(path: Path, limit: int, pieces: list[bytes]) -> bytes:
    capture = Capture(str(path), limit)
    for piece in pieces:
        capture.write(piece)
    capture.close()
    assert capture.total == sum(map(len, pieces))
    return path.read_bytes()


def cut(data: bytes, lengths: list[int]) -> list[bytes]:
    pieces = []
    for length in lengths:
        pieces.append(data[:length])
        data = data[length:]
    return [*pieces, data]


def numbered(size: int) -> bytes:
    """No two stretches of eight bytes are the same."""
    return b"".join(b"%08d" % number for number in range(size // 8 + 1))[:size]


def expected(data: bytes, limit: int) -> bytes:
    head = limit // 2
    tail = limit - head - 64
    if len(data) <= head + tail:
        return data
    return data[:head] + MARKER % (len(data) - head - tail) + data[-tail:]


@given(
    size=st.integers(0, 6_000),
    limit=st.integers(LEAST, 2_000),
    lengths=st.lists(st.integers(0, 1_500), max_size=12),
)
def test_the_head_and_the_tail_are_exact_however_the_output_was_cut(tmp_path_factory, size, limit, lengths):
    path = tmp_path_factory.mktemp("kept") / "stdout"
    data = numbered(size)
    assert kept(path, limit, cut(data, lengths)) == expected(data, limit)


@pytest.mark.parametrize("beyond", [-1, 0, 1, 2])
def test_at_the_very_limit_nothing_is_left_out_and_behind_it_what_the_marker_says(tmp_path, beyond):
    limit = 2_000
    data = numbered(limit - 64 + beyond)
    found = kept(tmp_path / "stdout", limit, [data])
    assert found == expected(data, limit)
    assert (MARKER[:6] in found) is (beyond > 0)
    assert len(found) <= limit


def test_a_single_piece_many_times_as_long_as_the_limit_is_kept_like_many(tmp_path):
    data = numbered(1_000_000)
    assert kept(tmp_path / "stdout", 10_000, [data]) == expected(data, 10_000)


def test_a_limit_that_is_too_small_to_keep_anything_is_raised_to_the_least(tmp_path):
    data = numbered(5_000)
    for limit in (0, 1, 64, 128):
        assert kept(tmp_path / "stdout", limit, [data]) == expected(data, LEAST)


def test_while_a_run_goes_on_the_file_holds_what_was_said_so_far_and_never_more_than_the_limit(tmp_path):
    path = tmp_path / "stdout"
    capture = Capture(str(path), 4_000)
    capture.write(b"first words\n")
    assert path.read_bytes() == b"first words\n"
    for _ in range(100):
        capture.write(b"x" * 999)
        assert path.stat().st_size <= 4_000
    capture.close()
    assert path.stat().st_size <= 4_000
    assert sorted(os.listdir(tmp_path)) == ["stdout"]


def test_a_link_that_somebody_put_there_is_not_followed(tmp_path):
    target = tmp_path / "precious"
    target.write_text("keep me")
    (tmp_path / "stdout").symlink_to(target)
    capture = Capture(str(tmp_path / "stdout"), 4_000)
    capture.write(b"x" * 10_000)
    capture.close()
    assert "symbolic link" in capture.error
    assert (capture.total, target.read_text()) == (10_000, "keep me")


def test_a_disk_that_takes_no_more_costs_the_output_and_says_so_but_raises_nothing(tmp_path):
    """A limit on the size of files stands for the disk: what lies beyond it cannot be written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    capture = Capture(str(tmp_path / "stdout"), 100_000)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
        for _ in range(50):
            capture.write(b"x" * 9_999)
        capture.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert capture.total == 50 * 9_999
    assert capture.error
    assert (tmp_path / "stdout").read_bytes().startswith(b"x" * 9_999)
