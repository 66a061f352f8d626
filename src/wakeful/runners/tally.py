"""The tokens in what an agent program prints while it goes on, as far as it says so before its last word.

`claude -p --output-format stream-json` prints each message of the model on a line, with the `usage` of the step it is
of; the messages of one step have the same id, and the last of them has counted most. What its own helpers use is not
counted, so that this never comes to more than the bill at the end. `codex exec --json` has no such lines.

Laws:
- Memory does not grow with the output, nor with the length of a line.
- What is not of that shape is text: it counts for nothing.
"""

from __future__ import annotations

import json
from typing import Any

from wakeful.runners.meter import MOST_TOKENS, number

_HEAD = b'{"type":"assistant"'
_LONGEST = 4 * 1024 * 1024
_KINDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class Tally:
    def __init__(self) -> None:
        self._before = 0
        self._step: str | None = None
        self._most = 0
        self._part = b""
        # The rest of a line that is of no interest.
        self._passing = False

    @property
    def tokens(self) -> int:
        return self._before + self._most

    def hear(self, data: bytes) -> None:
        *lines, part = data.split(b"\n")
        for line in lines:
            if not self._passing:
                self._count(self._part + line)
            self._part, self._passing = b"", False
        if not self._passing:
            self._part += part
            head = self._part[: len(_HEAD)]
            if not _HEAD.startswith(head) or len(self._part) > _LONGEST:
                self._part, self._passing = b"", True

    def _count(self, line: bytes) -> None:
        if not line.startswith(_HEAD):
            return
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            return
        message = told.get("message")
        usage = message.get("usage") if isinstance(message, dict) else None
        if not isinstance(usage, dict) or told.get("parent_tool_use_id"):
            return
        self._add(message.get("id"), sum(int(number(usage.get(kind), MOST_TOKENS)) for kind in _KINDS))

    def _add(self, step: Any, tokens: int) -> None:
        # Without a name it may be of the step before: then it is not counted twice.
        if isinstance(step, str) and step != self._step:
            self._before, self._step, self._most = self.tokens, step, 0
        self._most = max(self._most, tokens)
