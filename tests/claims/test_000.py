"""Document 000, as the pure core shows it: fingerprints of real files, and the edges between two looks."""

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.ledger import Edges, edges, file_fingerprint

PARTS = ("path", "mtime_ns", "ctime_ns", "inode", "size", "content_hash")


def by_stat(path: Path, root: Path) -> str:
    found = path.stat()
    return file_fingerprint(
        path=str(path.relative_to(root)),
        mtime_ns=found.st_mtime_ns,
        ctime_ns=found.st_ctime_ns,
        inode=found.st_ino,
        size=found.st_size,
    )


def by_content(path: Path, root: Path) -> str:
    found = path.stat()
    return file_fingerprint(
        path=str(path.relative_to(root)),
        mtime_ns=found.st_mtime_ns,
        ctime_ns=found.st_ctime_ns,
        inode=found.st_ino,
        size=found.st_size,
        content_hash=hashlib.sha256(path.read_bytes()).hexdigest(),
    )


def as_documented(path: Path) -> str:
    """The document's own fingerprint, to show what it misses."""
    found = path.stat()
    return f"{path.name}:{int(found.st_mtime)}:{found.st_size}"


def scan(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): by_content(path, root) for path in root.rglob("*") if path.is_file()}


def test_a_fingerprint_without_a_content_hash_tells_files_apart_by_their_stat_alone(tmp_path):
    file = tmp_path / "probe"
    file.write_text("COMMS TEST (ignore)")
    before = by_stat(file, tmp_path)
    file.write_text("COMMS TEST (ignore), longer")
    assert by_stat(file, tmp_path) != before


def test_an_untouched_file_keeps_its_fingerprint(tmp_path):
    file = tmp_path / "probe"
    file.write_text("COMMS TEST (ignore)")
    first = scan(tmp_path)
    file.read_text()
    assert all(edges(first, scan(tmp_path)) == Edges(same=("probe",)) for _ in range(20))


def test_a_same_second_same_size_rewrite_is_a_new_fingerprint(tmp_path):
    file = tmp_path / "task"
    file.write_text("aaaa")
    second = int(file.stat().st_mtime)
    documented, ours = as_documented(file), scan(tmp_path)
    file.write_text("bbbb")
    os.utime(file, (second, second))
    assert as_documented(file) == documented
    assert edges(ours, scan(tmp_path)).changed == ("task",)


@pytest.mark.parametrize("how", ["in place", "renamed over"])
def test_a_replacement_with_preserved_mtime_is_a_new_fingerprint(tmp_path, how):
    file, other = tmp_path / "task", tmp_path / ".incoming"
    file.write_text("aaaa")
    stamp = file.stat().st_mtime_ns
    documented = as_documented(file)
    first = by_content(file, tmp_path) if how == "in place" else by_stat(file, tmp_path)
    written = file if how == "in place" else other
    written.write_text("bbbb")
    os.utime(written, ns=(stamp, stamp))
    written.replace(file)
    again = by_content(file, tmp_path) if how == "in place" else by_stat(file, tmp_path)
    assert as_documented(file) == documented
    assert again != first


def test_a_file_removed_and_recreated_is_a_new_fingerprint(tmp_path):
    file = tmp_path / "task"
    file.write_text("aaaa")
    before, first = file.stat(), scan(tmp_path)
    file.unlink()
    file.write_text("aaaa")
    os.utime(file, ns=(before.st_mtime_ns, before.st_mtime_ns))
    # Inode numbers are reused at once; the change time is not, once the file system's clock has moved on.
    while file.stat().st_ctime_ns == before.st_ctime_ns:
        os.utime(file, ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert edges(first, scan(tmp_path)).changed == ("task",)


def test_a_newline_or_colon_in_a_name_cannot_forge_another_entry(tmp_path):
    honest, forger = tmp_path / "b", tmp_path / "a:1:1\nb"
    forger.write_text("x")
    first = scan(tmp_path)
    assert list(first) == ["a:1:1\nb"]
    honest.write_text("x")
    assert edges(first, scan(tmp_path)) == Edges(new=("b",), same=("a:1:1\nb",))


parts = st.fixed_dictionaries(
    {
        "path": st.text(alphabet="a:-1/\n", min_size=1, max_size=6),
        "mtime_ns": st.integers(0, 30),
        "ctime_ns": st.integers(0, 30),
        "inode": st.integers(0, 30),
        "size": st.integers(0, 30),
        "content_hash": st.none() | st.text(alphabet="01af", min_size=1, max_size=3),
    }
)


@given(parts, parts, st.sampled_from(PARTS))
def test_each_part_of_a_file_makes_its_own_fingerprint(one, other, part):
    for second in (other, {**one, part: other[part]}):
        assert (file_fingerprint(**one) == file_fingerprint(**second)) == (one == second)


def test_edges_are_what_is_new_changed_gone_and_the_same():
    known = {"stale": "1", "edited": "1", "consumed": "1"}
    observed = {"stale": "1", "edited": "2", "fresh": "1"}
    told = edges(known, observed)
    assert told == Edges(new=("fresh",), changed=("edited",), gone=("consumed",), same=("stale",))
    assert edges(observed, observed) == Edges(same=("edited", "fresh", "stale"))


looks = st.lists(st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=4), max_size=15)


@given(looks)
def test_any_sequence_of_lists_rings_once_for_each_generation_of_an_item(sequence):
    """An item rings when it appears and when it changes, and never else."""
    known: dict[str, str] = {}
    for look in sequence:
        found = edges(known, look)
        rang = {*found.new, *found.changed}
        assert rang == {id for id, mark in look.items() if known.get(id) != mark}
        assert set(found.gone) == known.keys() - look.keys()
        assert edges(look, look).new == edges(look, look).changed == ()
        known = look
