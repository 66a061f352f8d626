"""The quiet beat: no model, the same envelope as any run.

A dream is a process under a guardian like every other run. By default it is this module, which consolidates the
journal that it reads on its standard input into the agent's memory; `:DREAM:` puts a command of the operator's in its
place. A dream that cannot be written has failed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from wakeful.core.codec import decode, encode
from wakeful.core.journal import Journal, consolidate, remember

_ROOT = Path(__file__).resolve().parents[2]
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from wakeful.runners.dream import main; main()"


def dream_command(memory: Path) -> tuple[str, ...]:
    """The built-in dream; its briefing is the journal, as `journal_briefing` writes it."""
    return (sys.executable, "-I", "-S", "-c", _START, str(_ROOT), str(memory))


def memory_path(data: Path, agent: str) -> Path:
    return data / "memory" / f"{agent}.md"


def journal_briefing(journal: Journal) -> str:
    return json.dumps(encode(journal), ensure_ascii=False)


def dream(journal: Journal, memory: Path) -> str:
    """Consolidate, and replace the memory as a whole: a crash leaves the old one or the new one."""
    text = consolidate(journal)
    memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = memory.read_text(encoding="utf-8") if memory.exists() else ""
    temporary = memory.with_name(f"{memory.name}.{os.getpid()}")
    file = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as stream:
        stream.write(remember(before, text, journal.agent))
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(memory)
    return text


def main() -> None:
    """Any failure is an exit code and a line on stderr: the guardian's record tells it."""
    try:
        journal = decode(Journal, json.loads(sys.stdin.read()))
        print(f"dreamt of {len(journal.entries)} runs", flush=True)
        dream(journal, Path(sys.argv[1]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        sys.exit(f"the dream failed: {error}")


if __name__ == "__main__":
    main()
