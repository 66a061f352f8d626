"""What a run prints never holds a registered secret: a filter over bytes, chunk by chunk.

Laws:
- Every byte that is part of a registered value, in any of its forms, is hidden; each unbroken stretch of hidden bytes
  becomes one `[redacted]`. Every other byte comes out as it went in, in its order.
- How the output is cut into chunks makes no difference: a tail that may be the beginning of a value waits for more.
- Forms: as it is; base64 (both alphabets, at each of the three places a value can have in a longer encoded text);
  URL-quoted; JSON-escaped, once or twice. White space around a value is not part of it.
- Not seen: values of fewer than six bytes, which would blot out ordinary text; base64 broken into lines within the
  value; any other encoding, cipher or compression. The one or two base64 digits that a value shares with its
  neighbours stay; they tell at most four bits at each end.

The guardian imports this, so the imports stay small.
"""

from __future__ import annotations

import sys
from binascii import b2a_base64
from collections.abc import Iterable, Iterator

MARK = b"[redacted]"
SHORTEST = 6

# From so many long forms on, one pass that looks up the 8 bytes at every 32nd place is quicker than a search for each.
SIEVE_FROM = 24
GRID = 32
BLOCK = 8
HEAD = 4

_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def _in_base64(value: bytes) -> Iterator[bytes]:
    for before in range(3):
        digits = b2a_base64(bytes(before) + value, newline=False)
        # Only the digits that the value alone decides; those at its ends also depend on its neighbours.
        whole = digits[-(-before * 8 // 6) : (before + len(value)) * 8 // 6]
        yield whole
        yield whole.translate(_URL_SAFE)


def _in_urls(value: bytes) -> Iterator[bytes]:
    for kept in (b"", b"/"):
        safe = _UNRESERVED.union(kept)
        for pattern in (b"%%%02X", b"%%%02x"):
            quoted = b"".join(bytes((byte,)) if byte in safe else pattern % byte for byte in value)
            yield quoted
            yield quoted.replace(b"%20", b"+")


def _in_json(text: str) -> Iterator[str]:
    import json  # here, because most values have nothing to escape

    for plain in (True, False):
        once = json.dumps(text, ensure_ascii=plain)[1:-1]
        for escaped in (once, once.replace("/", "\\/")):
            yield escaped
            yield json.dumps(escaped, ensure_ascii=plain)[1:-1]


def forms(secret: str) -> set[bytes]:
    """Every spelling of a value that is looked for; none for one that is too short."""
    text = secret.strip()
    value = text.encode("utf-8", "surrogateescape")
    if len(value) < SHORTEST:
        return set()
    found = {value, *_in_base64(value)}
    if not _UNRESERVED.issuperset(value):
        found.update(_in_urls(value))
        found.update(form.encode("utf-8", "surrogateescape") for form in _in_json(text))
    return found


def _block(form: bytes, at: int) -> int:
    return int.from_bytes(form[at : at + BLOCK], sys.byteorder)


class Redactor:
    def __init__(self, secrets: Iterable[str]) -> None:
        found = sorted(set().union(*map(forms, secrets)), key=len)
        # A form of this length has a whole block on the grid wherever it stands, and it is one of its first 32.
        long = tuple(form for form in found if len(form) >= GRID + BLOCK - 1)
        self._sieved = long if len(long) >= SIEVE_FROM else ()
        self._searched = tuple(found[: len(found) - len(self._sieved)])
        self._blocks = frozenset(_block(form, at) for form in self._sieved for at in range(GRID))
        self._longest = len(found[-1]) if found else 0
        self._heads: dict[bytes, tuple[bytes, ...]] = {}
        for form in found:
            self._heads[form[:HEAD]] = (*self._heads.get(form[:HEAD], ()), form)
        self._stubs = frozenset(form[:size] for form in found for size in range(1, HEAD))
        self._pending = b""
        self._hidden = 0  # how many bytes at the beginning of what is pending a mark already stands for
        self._marked = False  # whether a mark was the last thing given out

    def feed(self, chunk: bytes) -> bytes:
        """What can be given out now; the very same object when there is nothing to hide in it."""
        if not self._longest:
            return chunk
        buffer = self._pending + chunk if self._pending else chunk
        return self._give_out(buffer, self._undecided_from(buffer))

    def flush(self) -> bytes:
        """What was still waiting; the redactor is then as new."""
        rest = self._give_out(self._pending, len(self._pending))
        self._marked = False
        return rest

    def whole(self, text: bytes) -> bytes:
        """A text that is all there; the very same object when there is nothing to hide in it. Nothing is kept."""
        spans = self._spans(text) if self._longest else []
        position = 0
        parts: list[bytes] = []
        for start, stop in spans:
            if start > position or not parts:
                parts += [text[position:start], MARK]
            position = max(position, stop)
        return b"".join((*parts, text[position:])) if parts else text

    def _give_out(self, buffer: bytes, end: int) -> bytes:
        """`buffer` up to `end`, redacted; the rest is kept."""
        spans = self._spans(buffer)
        position, marked, parts = self._hidden, self._marked, []
        for start, stop in spans:
            if start >= end:
                break
            if start > position:
                parts.append(buffer[position:start])
                position, marked = start, False
            if not marked:
                parts.append(MARK)
                marked = True
            position = max(position, stop)
        if position < end:
            parts.append(buffer[position:end])
            position, marked = end, False
        self._pending, self._hidden, self._marked = buffer[end:], position - end, marked
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _spans(self, buffer: bytes) -> list[tuple[int, int]]:
        """Where any form stands, in order; stretches of one form that touch are one."""
        spans = []
        for form in (*self._searched, *self._suspects(buffer)):
            size = len(form)
            first = buffer.find(form)
            while first >= 0:
                last = first
                # The furthest one that still touches will do: what lies between is hidden either way.
                while (further := buffer.rfind(form, last + 1, last + 2 * size)) >= 0:
                    last = further
                spans.append((first, last + size))
                first = buffer.find(form, last + size)
        spans.sort()
        return spans

    def _undecided_from(self, buffer: bytes) -> int:
        """Where the longest tail begins that more bytes could turn into a form."""
        end = best = len(buffer)
        for head, group in self._heads.items():
            at = buffer.find(head, max(0, end - self._longest + 1), best + HEAD - 1)
            while 0 <= at < best:
                tail = buffer[at:]
                if any(len(form) > len(tail) and form.startswith(tail) for form in group):
                    best = at
                else:
                    at = buffer.find(head, at + 1, best + HEAD - 1)
        if best == end:
            sizes = (size for size in range(min(HEAD - 1, end), 0, -1) if buffer[end - size :] in self._stubs)
            best = end - next(sizes, 0)
        return best

    def _suspects(self, buffer: bytes) -> tuple[bytes, ...]:
        """The long forms that may stand in the text."""
        if not self._sieved:
            return ()
        grid = memoryview(buffer)[: len(buffer) // BLOCK * BLOCK].cast("Q")[:: GRID // BLOCK]
        if self._blocks.isdisjoint(grid):
            return ()
        blocks = [block.to_bytes(BLOCK, sys.byteorder) for block in self._blocks.intersection(grid)]
        return tuple(form for form in self._sieved if any(block in form for block in blocks))
