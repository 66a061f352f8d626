"""The environment of a run, made from nothing.

Laws:
- Of our own environment a run gets what is on the allow-list and what its agent declares by name in ENV; nothing else.
- Every WAKEFUL_ variable is always there, empty where it does not apply, so that a script may use it without asking.
- Nothing here can keep a program from starting: no value holds a NUL, and none is longer than a kernel takes.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wakeful.core.agents import Agent
from wakeful.core.codec import write_time
from wakeful.core.orders import Order
from wakeful.runners.dream import memory_path
from wakeful.runners.protocol import BRIEFING_JSON, RESULT

# Where programs are, who the user is, and how people there write and count time. Not TERM: there is no terminal.
ALLOWED = frozenset({"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL"})
ALLOWED_PREFIX = "LC_"
OURS = "WAKEFUL_"
# A program without a PATH finds nothing; this is where every system keeps its own.
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"

SECRET_ENDINGS = ("KEY", "TOKEN", "SECRET", "PASSWORD")

# The kernel refuses a single variable of 128 KiB; a reason is a sentence.
LONGEST_REASON = 4_000
_CUT = " [cut here; the whole of it is in WAKEFUL_BRIEFING]"
_UNPRINTABLE = re.compile("[\x00\ud800-\udfff]")


# What a run is told of itself; what is asked before there is one is told nothing.
_ABOUT_A_RUN = (
    *("WAKEFUL_TOKEN", "WAKEFUL_RUN_ID", "WAKEFUL_WAKE_ID", "WAKEFUL_CAUSE", "WAKEFUL_REASON", "WAKEFUL_STATE"),
    *("WAKEFUL_HITS", "WAKEFUL_ATTEMPT", "WAKEFUL_DEADLINE", "WAKEFUL_TASK_ID", "WAKEFUL_BRIEFING", "WAKEFUL_RESULT"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is the same for every run of a fleet: our own environment, the folder of the fleet file, the data folder."""

    base: Mapping[str, str]
    root: Path = Path()
    data: Path = Path()


def build_environment(
    order: Order, before: Mapping[str, str], *, token: str, folder: Path, traceparent: str | None = None
) -> dict[str, str]:
    """`before` is what was there before the run (see `before_a_run`), `folder` the run's own."""
    passed = {**before, **_about(order, token, folder)}
    if traceparent:
        passed["TRACEPARENT"] = traceparent
    return passed


def before_a_run(agent: Agent, around: Surroundings, *, url: str) -> dict[str, str]:
    """For what is asked in the agent's name before there is a run: without a token, and nothing of a run in it."""
    declared = {name for name in agent.environment if not name.startswith(OURS)}
    passed = {
        name: value
        for name, value in around.base.items()
        if name in ALLOWED or name.startswith(ALLOWED_PREFIX) or name in declared
    }
    passed.setdefault("PATH", DEFAULT_PATH)
    passed.update(dict.fromkeys(_ABOUT_A_RUN, ""))
    passed["WAKEFUL_URL"] = url
    passed["WAKEFUL_AGENT"] = agent.name
    passed["WAKEFUL_ROOT"] = str(around.root.absolute())
    passed["WAKEFUL_MEMORY"] = str(memory_path(around.data, agent.name).absolute())
    return passed


def _about(order: Order, token: str, folder: Path) -> dict[str, str]:
    run = order.run
    return {
        "WAKEFUL_TOKEN": token,
        "WAKEFUL_AGENT": run.agent,
        "WAKEFUL_RUN_ID": str(run.id),
        "WAKEFUL_WAKE_ID": str(run.wake),
        "WAKEFUL_CAUSE": run.cause.value,
        "WAKEFUL_REASON": _sentence(order.wake.reason or "") if order.wake else "",
        "WAKEFUL_STATE": run.position.state,
        "WAKEFUL_HITS": str(run.position.hits),
        "WAKEFUL_ATTEMPT": str(run.attempt),
        "WAKEFUL_DEADLINE": write_time(order.deadline) if order.deadline else "",
        # A shift has no one task; its worker hands them out one by one.
        "WAKEFUL_TASK_ID": str(order.tasks[0].id) if len(order.tasks) == 1 else "",
        "WAKEFUL_BRIEFING": f"{folder}{os.sep}{BRIEFING_JSON}",
        "WAKEFUL_RESULT": f"{folder}{os.sep}{RESULT}",
    }


def _sentence(text: str) -> str:
    clean = _UNPRINTABLE.sub("\ufffd", text)
    return clean if len(clean) <= LONGEST_REASON else clean[:LONGEST_REASON] + _CUT


def secret_values(agent: Agent, base: Mapping[str, str], token: str = "") -> tuple[str, ...]:
    """What must not be seen in anything that the run leaves behind: values of SECRETS, of ENV names that sound like
    one, and the run's own token."""
    telling = (name for name in agent.environment if name.upper().endswith(SECRET_ENDINGS))
    values = (base.get(name, "") for name in (*agent.secrets, *telling))
    return tuple(dict.fromkeys(value for value in (token, *values) if value))


def with_ourselves(base: Mapping[str, str]) -> dict[str, str]:
    """Whoever is started may use our own command line: where PATH does not lead to it, its folder comes last."""
    path, ours = base.get("PATH", ""), Path(sys.executable).parent
    if path and shutil.which("wakeful", path=path) is None and (ours / "wakeful").exists():
        path = f"{path}{os.pathsep}{ours}"
    return {**base, "PATH": path} if path else dict(base)
