"""Known against observed gives the edges; a source that could not be read gives none."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wakeful.core.ledger import Edges, edges, file_fingerprint

FILE: dict[str, Any] = {
    "path": "tasks/a.md",
    "mtime_ns": 1_000_000_007,
    "ctime_ns": 1_000_000_009,
    "inode": 11,
    "size": 5,
}


def test_what_is_known_already_gives_no_edge():
    assert edges({"a": "1"}, {"a": "1"}) == Edges(same=("a",))


def test_what_is_new_gives_an_edge():
    assert edges({"a": "1"}, {"a": "1", "b": "1"}) == Edges(new=("b",), same=("a",))


def test_what_has_changed_gives_an_edge():
    assert edges({"a": "1"}, {"a": "2"}) == Edges(changed=("a",))


def test_what_is_gone_gives_an_edge_of_its_own():
    assert edges({"a": "1", "b": "1"}, {"b": "1"}) == Edges(gone=("a",), same=("b",))


def test_an_empty_source_has_lost_everything_and_an_unreadable_one_nothing():
    known = {"a": "1", "b": "2"}
    assert edges(known, {}) == Edges(gone=("a", "b"))
    assert edges(known, None) == Edges(same=("a", "b"))


lists = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("123"))


@given(lists, lists)
def test_every_id_lies_on_exactly_one_edge(known, observed):
    found = edges(known, observed)
    everyone = [*found.new, *found.changed, *found.gone, *found.same]
    assert sorted(everyone) == sorted(known.keys() | observed.keys())


@given(lists, lists)
def test_following_the_edges_leads_from_the_known_to_the_observed(known, observed):
    found = edges(known, observed)
    reached = {id: print for id, print in known.items() if id not in found.gone}
    reached |= {id: observed[id] for id in (*found.new, *found.changed)}
    assert reached == observed
    assert edges(reached, observed) == Edges(same=tuple(sorted(observed)))


def test_a_file_that_was_touched_in_no_way_keeps_its_fingerprint():
    assert file_fingerprint(**FILE) == file_fingerprint(**dict(FILE))


def test_a_rewrite_within_one_second_and_at_one_size_changes_the_fingerprint():
    later = FILE | {"mtime_ns": FILE["mtime_ns"] + 1, "ctime_ns": FILE["ctime_ns"] + 1}
    assert file_fingerprint(**later) != file_fingerprint(**FILE)


def test_a_rewrite_under_a_preserved_mtime_changes_the_fingerprint():
    assert file_fingerprint(**FILE | {"ctime_ns": FILE["ctime_ns"] + 1}) != file_fingerprint(**FILE)
    assert file_fingerprint(**FILE, content_hash="aa") != file_fingerprint(**FILE, content_hash="bb")


def test_a_file_removed_and_made_again_changes_the_fingerprint():
    assert file_fingerprint(**FILE | {"inode": 12}) != file_fingerprint(**FILE)


numbers = st.integers(0, 50)
paths = st.text(alphabet=":-/a\n1", min_size=1, max_size=6)
files = st.fixed_dictionaries(
    {
        "path": paths,
        "mtime_ns": numbers,
        "ctime_ns": numbers,
        "inode": numbers,
        "size": numbers,
        "content_hash": st.none() | st.sampled_from(["aa", "bb"]),
    }
)


@given(files, files)
def test_no_name_forges_the_fingerprint_of_another_file(one, other):
    assert (file_fingerprint(**one) == file_fingerprint(**other)) is (one == other)
