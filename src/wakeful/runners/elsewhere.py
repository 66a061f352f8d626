"""Agents that live elsewhere, behind an address or in a tmux session: the program of ours that speaks to one.

Law: it is a command like any other, so that whatever holds for a process holds for it: the guardian, the wall clock,
the lease, the output, the exit record.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from wakeful.core.endpoints import read_endpoint
from wakeful.core.errors import Mistake
from wakeful.runners.errand import BEARER, TARGET

# So long nothing may have happened in a session before something is typed there.
QUIET = timedelta(seconds=2)

_HTTP = "wakeful.runners.http"
_TMUX = "wakeful.runners.tmux"
_ROOT = Path(__file__).resolve().parents[2]
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from {module} import main; main()"
_VISIBLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What it is told goes into its environment, which nobody else can read."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    secrets: tuple[str, ...] = field(default=(), repr=False)


def at_address(written: str, base: Mapping[str, str]) -> Errand:
    """`base` is our own environment, where the token is."""
    endpoint = read_endpoint(written)
    if endpoint.token is None:
        return Errand(command=_command(_HTTP), environment={TARGET: endpoint.url})
    token = base.get(endpoint.token, "")
    if not _VISIBLE.fullmatch(token):
        found = "holds what cannot be sent" if token else "is not set"
        raise Mistake(f"{endpoint.token}, the token in URL, {found}", "set it where the engine is started")
    told = {TARGET: endpoint.url, BEARER: token}
    return Errand(command=_command(_HTTP), environment=told, secrets=(token,))


def in_session(session: str, quiet: timedelta = QUIET) -> Errand:
    return Errand(command=_command(_TMUX, str(quiet.total_seconds())), environment={TARGET: session})


def _command(module: str, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", _START.format(module=module), str(_ROOT), *words)
