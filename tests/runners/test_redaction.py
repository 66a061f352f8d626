"""No secret leaves in what a run prints, however the output is cut and whatever form it takes."""

import base64
import json
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Callable
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wakeful.runners.redaction import GRID, MARK, SIEVE_FROM, Redactor, forms

KEY = "sk-live_9aZ~bY8cX7dW6eV5"
PASSWORD = 'pä"ss\\wo/rd +\n&1'


def redact(secrets: list[str], text: bytes, cuts: list[int] | None = None) -> bytes:
    redactor = Redactor(secrets)
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts or [])})
    chunks = [text[start:stop] for start, stop in pairwise(places)]
    return b"".join([*(redactor.feed(chunk) for chunk in chunks), redactor.flush()])


def simply(secrets: list[str], text: bytes) -> bytes:
    """The whole text at once, byte by byte: what is covered by any form, in stretches."""
    covered = [False] * len(text)
    for form in set().union(*map(forms, secrets)):
        for start in range(len(text) - len(form) + 1):
            if text.startswith(form, start):
                covered[start : start + len(form)] = [True] * len(form)
    out = b""
    for place, hidden in enumerate(covered):
        if not hidden:
            out += text[place : place + 1]
        elif place == 0 or not covered[place - 1]:
            out += MARK
    return out


# Few letters, so that secrets overlap, repeat and begin one another all the time.
SECRETS = st.lists(st.text("ab", min_size=5, max_size=9), min_size=1, max_size=4)


@st.composite
def noisy_texts(draw: st.DrawFn) -> tuple[list[str], bytes]:
    secrets = draw(SECRETS)
    known = sorted(set().union(*map(forms, secrets))) or [b"ab"]
    partial = st.sampled_from(known).flatmap(lambda form: st.integers(0, len(form)).map(lambda size: form[:size]))
    pieces = st.one_of(
        partial, st.sampled_from(known), st.text("ab", max_size=6).map(str.encode), st.binary(max_size=5)
    )
    return secrets, b"".join(draw(st.lists(pieces, max_size=12)))


@given(noisy_texts(), st.lists(st.integers(0, 200), max_size=8))
@example((["aaaaaa", "aaaaaaaaa"], b"a" * 40), [6, 7, 8, 20])
@example((["abcabcabc"], b"abcabcabcabcabc"), [1, 4, 9, 10])
@example((["abcdef", "defghi"], b"xabcdefghix"), [4])
@example((["abcdefghij", "defghi"], b"xabcdefghijx"), [4])
def test_any_cutting_gives_what_the_whole_text_gives(case, cuts):
    secrets, text = case
    assert redact(secrets, text, cuts) == simply(secrets, text)


@given(noisy_texts())
def test_byte_by_byte_gives_the_same_too(case):
    secrets, text = case
    assert redact(secrets, text, list(range(len(text)))) == simply(secrets, text)


@given(st.lists(st.binary(max_size=30), max_size=6))
def test_without_secrets_every_chunk_comes_back_as_the_same_object(chunks):
    redactor = Redactor([])
    assert all(redactor.feed(chunk) is chunk for chunk in chunks)
    assert redactor.flush() == b""


def test_a_chunk_with_nothing_to_hide_comes_back_as_the_same_object():
    chunk = b"nothing here\n" * 100
    assert Redactor([KEY]).feed(chunk) is chunk


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_all_other_bytes_are_exact(text, cuts):
    assert redact([KEY, PASSWORD], text, cuts) == text


# ---- forms

ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "as it is": lambda value: value.encode(),
    "URL-quoted": lambda value: urllib.parse.quote(value, safe="").encode(),
    "URL-quoted but for slashes": lambda value: urllib.parse.quote(value).encode(),
    "URL-quoted as a form": lambda value: urllib.parse.quote_plus(value).encode(),
    "URL-quoted in small letters": lambda value: re.sub(
        "%..", lambda found: found[0].lower(), ENCODINGS["URL-quoted"](value).decode()
    ).encode(),
    "JSON": lambda value: json.dumps(value)[1:-1].encode(),
    "JSON in UTF-8": lambda value: json.dumps(value, ensure_ascii=False)[1:-1].encode(),
    "JSON with escaped slashes": lambda value: json.dumps(value)[1:-1].replace("/", "\\/").encode(),
    "JSON in JSON": lambda value: json.dumps(json.dumps(value))[3:-3].encode(),
}


@pytest.mark.parametrize("secret", [KEY, PASSWORD, "~~~~~~", "秘密の言葉"])
@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS)
def test_every_form_is_hidden_wherever_it_is_cut(encode, secret):
    text = b"before " + encode(secret) + b" after"
    for cut in range(len(text)):
        assert redact([secret], text, [cut]) == b"before [redacted] after"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("secret", [KEY, PASSWORD, "??>>~~ÿÿ", "sixsix"])
@given(before=st.binary(max_size=7), after=st.binary(max_size=7))
def test_in_base64_at_any_place_at_most_a_digit_at_each_end_is_left(encode, secret, before, after):
    value = secret.encode()
    text = encode(before + value + after)
    hidden = redact([secret], text)
    assert hidden.count(MARK) == 1
    head, tail = hidden.split(MARK)
    # Only digits that also encode a neighbour may stay: fewer than two digits' worth of the value in all.
    assert len(head) <= -(-len(before) * 8 // 6)
    assert len(tail.rstrip(b"=")) <= -(-len(after) * 8 // 6) + 1
    assert text.startswith(head) and text.endswith(tail)


def test_a_secret_at_the_very_end_is_hidden_by_the_flush_at_the_latest():
    redactor = Redactor([KEY])
    assert redactor.feed(b"the key is " + KEY.encode()) + redactor.flush() == b"the key is [redacted]"


def test_half_a_secret_waits_and_comes_out_when_nothing_follows():
    redactor = Redactor([KEY])
    assert redactor.feed(b"a " + KEY[:10].encode()) == b"a "
    assert redactor.flush() == KEY[:10].encode()
    assert redactor.feed(b"b") == b"b"


def test_nothing_waits_that_cannot_become_a_secret_and_a_whole_one_does_not_wait_either():
    assert Redactor([KEY]).feed(b"$ ") == b"$ "
    assert Redactor([KEY]).feed(b"$ " + KEY.encode()) == b"$ [redacted]"


def test_after_a_flush_it_begins_anew():
    redactor = Redactor([KEY])
    whole = [redactor.feed(KEY.encode()), redactor.flush(), redactor.feed(KEY.encode()), redactor.flush()]
    assert whole == [MARK, b"", MARK, b""]


def test_the_longer_of_two_secrets_that_begin_alike_is_hidden_whole():
    short, long = "abcdefgh", "abcdefghijkl"
    for cut in range(13):
        assert redact([short, long], b"<abcdefghijkl>", [cut]) == b"<[redacted]>"
        assert redact([short, long], b"<abcdefghijk>", [cut]) == b"<[redacted]ijk>"


def test_no_end_of_a_secret_shows_where_two_overlap():
    assert redact(["secret-one", "one-secret"], b"(secret-one-secret)") == b"([redacted])"


def test_short_values_are_left_alone_and_white_space_around_a_value_does_not_count():
    assert forms("12345") == set()
    assert redact(["12345", "  1234 \n"], b"12345 1234") == b"12345 1234"
    assert redact([KEY + "\n"], KEY.encode() + b";") == b"[redacted];"


def test_what_is_no_utf_8_in_the_environment_is_hidden_too():
    secret = b"caf\xe9-caf\xe9".decode("utf-8", "surrogateescape")
    assert redact([secret], b"x caf\xe9-caf\xe9 y") == b"x [redacted] y"


def test_the_mark_itself_is_not_looked_into():
    assert redact(["redacted"], b"redacted [redacted]") == b"[redacted] [[redacted]]"


# ---- many secrets are looked for on a grid


def many() -> list[str]:
    return [f"token-{sha256(bytes([number])).hexdigest()[number:]}" for number in range(12)]


def test_many_long_secrets_are_found_at_every_place_of_the_grid():
    secrets = many()
    assert len(Redactor(secrets)._sieved) >= SIEVE_FROM
    for secret in (secrets[0], secrets[-1]):
        for place in range(2 * GRID + 1):
            text = b"." * place + secret.encode() + b"." * (place % 5)
            assert redact(secrets, text) == b"." * place + MARK + b"." * (place % 5)


@given(st.lists(st.sampled_from([*many(), "token-", "abcdef", "x", "\n"]), max_size=8), st.lists(st.integers(0, 400)))
def test_on_the_grid_too_any_cutting_gives_what_the_whole_text_gives(pieces, cuts):
    text = "".join(pieces).encode()
    assert redact(many(), text, cuts) == simply(many(), text)


def test_the_sieve_and_the_search_agree_on_a_secret_of_many_repetitions():
    secrets = [*many(), "ab" * 30]
    assert redact(secrets, b"ab" * 500, [13, 500, 501]) == MARK


# ---- in the guardian


def test_importing_it_brings_in_no_heavy_module():
    program = (
        "import sys; before = set(sys.modules); import wakeful.runners.redaction as r; r.Redactor(['abcdefgh']);"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert not {"json", "re", "urllib.parse", "base64", "asyncio", "dataclasses"} & set(loaded.stdout.split())


@given(st.lists(st.sampled_from(["hidden-one", "one-hidden-two", "abcabcabc", "äöüäöü"])), st.lists(st.integers(0, 40)))
def test_a_text_that_is_all_there_is_redacted_as_one_that_comes_in_parts(secrets, places):
    parts = ["hidden-one", "one-hidden-two", "abcabcabcabc", "äöü", " ", "x"]
    text = "".join(parts[place % len(parts)] for place in places).encode()
    redactor = Redactor(secrets)
    assert redactor.whole(text) == simply(secrets, text)
    if MARK not in redactor.whole(text):
        assert redactor.whole(text) is text
    assert redactor.feed(text) + redactor.flush() == simply(secrets, text)
