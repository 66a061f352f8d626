"""Names and words from outside: two stay two, and everything can be stored and shown."""

import os

from hypothesis import given
from hypothesis import strategies as st

from wakeful.sources import text

ANYTHING = st.text(st.characters(codec=None), max_size=30)


@given(ANYTHING)
def test_a_name_is_one_line_that_can_be_stored(name):
    found = text.name(name)
    found.encode("utf-8")
    assert len(found.splitlines()) <= 1
    assert not set(found) & set("\u202e\u2066\x1b\x00\x9b")


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_two_names_of_files_stay_two(one, other):
    if one != other:
        assert text.name(os.fsdecode(one)) != text.name(os.fsdecode(other))


def test_a_plain_name_stays_as_it_is():
    for name in ("note.txt", "räksmörgås", "日本語", "a b:c", "👍"):
        assert text.name(name) == name


@given(ANYTHING)
def test_words_can_be_stored(words):
    text.whole(words).encode("utf-8")


def test_a_sentence_is_one_short_line():
    assert text.sentence("  no\n such\tfolder: C:\\x \x1b[31m") == r"no such folder: C:\x \u001b[31m"
    assert len(text.sentence("x" * 10_000)) == text.LONGEST_WHY + 1


def test_the_beginning_of_bytes_ends_with_a_whole_character():
    assert text.beginning("aä".encode()[:2], complete=False) == "a"
    assert text.beginning("aä".encode()[:2], complete=True) == "a\ufffd"
