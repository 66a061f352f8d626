"""A command as a person writes it in RUN, CHECK or DREAM, and as it is executed.

Laws:
- A plain command, words and quotes, is executed directly: one process less, and a program that is not there is told as
  a mistake in the configuration instead of a shell's exit code 127.
- Whatever a shell would do more to is given to `/bin/sh -c` as it stands: pipes, redirections, variables, patterns,
  assignments, built-in words. So a line means here what it means in a terminal; only the plain case is shorter.
- A plain command that is a relative path is looked for in the work folder, then beside the fleet file.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from wakeful.core.errors import Mistake

SHELL = ("/bin/sh", "-c")

# Everything that POSIX lets a shell act on outside of plain quotes.
_SYNTAX = re.compile(r"[|&;<>()$`\\*?\[\]{}~#!\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
# Words that no program stands behind.
_BUILT_IN = frozenset(
    {
        *(".", ":", "alias", "cd", "command", "eval", "exec", "exit", "export", "hash", "read", "readonly", "return"),
        *("set", "shift", "source", "times", "trap", "type", "ulimit", "umask", "unset", "wait"),
    }
)


def split_command(text: str, key: str, workdir: Path, root: Path) -> tuple[str, ...]:
    """The words to execute; `key` names where the text stands, for whoever has to mend it."""
    if "\0" in text or not text.strip():
        raise Mistake(f"{key} holds no command", f"write a command line in {key}")
    if _SYNTAX.search(text):
        return (*SHELL, text)
    try:
        words = shlex.split(text)
    except ValueError:
        raise Mistake(f"{key} has a quote that is not closed: {text}", "close it") from None
    if _ASSIGNMENT.match(words[0]) or words[0] in _BUILT_IN:
        return (*SHELL, text)
    return (_found(words[0], workdir, root), *words[1:])


def _found(word: str, workdir: Path, root: Path) -> str:
    beside = root / word
    if "/" in word and not (workdir / word).exists() and beside.exists():
        return str(beside.absolute())
    return word
