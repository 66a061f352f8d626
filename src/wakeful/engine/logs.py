"""How the log looks: JSON, one object a line, for machines; the same in short words where a person watches.

Laws:
- What agents and files say is told without a character that a terminal would obey.
- No line holds a secret, from when it is known what is one (`hide`).
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import IO, Any


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str)


class Words(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        fields = getattr(record, "fields", {})
        agent = f"{fields['agent']:<12} " if "agent" in fields else ""
        rest = " ".join(f"{key}={_short(value)}" for key, value in fields.items() if key != "agent")
        text = f"{at} {agent}{record.getMessage()} {rest}".rstrip()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return "".join(sign if sign.isprintable() or sign in "\n\t" else "\ufffd" for sign in text)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    # A line break in what an agent says must not look like a line of ours.
    return json.dumps(text, ensure_ascii=False) if any(map(str.isspace, text)) else text


class Lines(logging.StreamHandler[IO[str]]):
    """Each line is written at once, but for those within `gathered`, which are written together."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(stream)
        self._gathering = False
        self.hide: Callable[[str], str] = str

    def format(self, record: logging.LogRecord) -> str:
        return self.hide(super().format(record))

    def flush(self) -> None:
        if not self._gathering:
            super().flush()

    @contextmanager
    def gathered(self) -> Iterator[None]:
        self._gathering = True
        try:
            yield
        finally:
            self._gathering = False
            self.flush()


@contextmanager
def gathered() -> Iterator[None]:
    """What is logged inside is written as one."""
    with ExitStack() as stack:
        for handler in logging.getLogger().handlers:
            if isinstance(handler, Lines):
                stack.enter_context(handler.gathered())
        yield


def hide(secrets: Callable[[str], str]) -> None:
    """From now on, in every line: what `secrets` takes out of a text."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, Lines):
            handler.hide = secrets


def set_up(stream: IO[str] | None = None, *, level: int = logging.INFO) -> None:
    """Everything that is logged in this process goes to one place, in one shape."""
    out = stream or sys.stderr
    handler = Lines(out)
    handler.setFormatter(Words() if out.isatty() else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("wakeful").setLevel(level)
