"""Agents that wake each other, as programs: `python -I -S soak/company.py NAME ARGUMENTS`, in the fleet's own folder.

What each of them was told, and what it was shown, it appends to the witness, a line in one write. An engine that is
gone is waited for: the same request is made again under the same key until it is answered. Only the standard library.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import sys
import time
from typing import Any
from urllib.parse import urlsplit

# Seconds. An engine that is not back after so long will not come.
PATIENCE = 120.0
ME = os.environ.get("WAKEFUL_AGENT", "")
RUN = os.environ.get("WAKEFUL_RUN_ID", "")


def tell(*words: object) -> None:
    file = os.open("witness", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(file, " ".join(map(str, words)).encode() + b"\n")
    os.close(file)


def inbox() -> list[dict[str, Any]]:
    with open(os.environ["WAKEFUL_BRIEFING"]) as file:
        shown: list[dict[str, Any]] = json.load(file)["inbox"]
    tell("shown", ME, RUN, *(item["id"] for item in shown))
    return shown


def say(usd: float | None = None, **result: Any) -> None:
    if usd is not None:
        result["usage"] = {"usd": usd}
    with open(os.environ["WAKEFUL_RESULT"], "w") as file:
        json.dump({"outcome": "done", **result}, file)


class Line:
    """To the engine, whichever it is by now."""

    def __init__(self) -> None:
        self._where = urlsplit(os.environ["WAKEFUL_URL"])
        self._line: http.client.HTTPConnection | None = None

    def wake(self, target: str, key: str) -> dict[str, Any]:
        """Asked until it is answered; what was asked twice is one wake."""
        body = json.dumps({"reason": "blocker", "body": f"{ME} needs you ({key})"})
        headers = {
            "Authorization": f"Bearer {os.environ['WAKEFUL_TOKEN']}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        }
        end = time.monotonic() + PATIENCE
        while True:
            try:
                status, answer = self._ask("POST", f"/v1/agents/{target}/wake", body, headers)
                if status < 500:
                    break
            except (OSError, http.client.HTTPException, ValueError):
                self._line = None
            if time.monotonic() > end:
                tell("gave-up", ME, target, key)
                sys.exit(1)
            time.sleep(0.1)
        if status >= 300:
            tell("wrong", ME, target, key, status, json.dumps(answer))
            sys.exit(1)
        told: dict[str, Any] = answer
        tell("told", ME, target, told["message_id"], told["verdict"], told["guard"] or "-")
        return told

    def _ask(self, method: str, path: str, body: str, headers: dict[str, str]) -> tuple[int, Any]:
        if self._line is None:
            self._line = http.client.HTTPConnection(self._where.hostname or "", self._where.port, timeout=10)
        self._line.request(method, path, body, headers)
        response = self._line.getresponse()
        return response.status, json.loads(response.read())


def is_own_beat() -> bool:
    return os.environ["WAKEFUL_CAUSE"] in ("timer", "operator")


def sender(count: str, targets: str, first: str = "") -> None:
    """Wakes so many times, in one run. Some begin by themselves, each with one target until that guard refuses; the
    others wait for them."""
    inbox()
    if not is_own_beat() or os.path.exists("over"):
        return
    names, line, dice = targets.split(","), Line(), random.Random(ME)
    left = iter(range(int(count)))
    tell("begin", ME, RUN)
    if first:
        name, guard = first.split(":")
        while line.wake(name, f"{RUN}-{next(left)}")["guard"] != guard:
            # Until whoever was woken has run; who waits already is not woken again.
            time.sleep(0.4)
        tell("used-up", ME, guard)
    while not os.path.exists("go"):
        time.sleep(0.05)
    for wake in left:
        line.wake(dice.choice(names), f"{RUN}-{wake}")
    tell("end", ME, RUN)


def target() -> None:
    """Is shown its inbox, and wakes the first who wrote."""
    senders = [item["from"] for item in inbox() if item["from"] and item["from"] != "operator"]
    if senders and os.environ["WAKEFUL_CAUSE"] == "peer" and not os.path.exists("over"):
        Line().wake(senders[0], RUN)


def wakes(others: str, usd: str) -> None:
    """One of a loop: wakes the others at every run of its own, unless that is over."""
    inbox()
    if not os.path.exists("over"):
        line = Line()
        for other in others.split(","):
            line.wake(other, f"{RUN}-{other}")
    say(usd=float(usd))


def spends(least: str, most: str, then: str) -> None:
    """Costs something between these, in cents; says so, or says nothing; and is done, fails or dies."""
    usd = random.Random(f"{ME} {RUN}").randint(int(least), int(most)) / 100
    if then != "silent":
        tell("cost", ME, RUN, usd)
        say(usd=usd, outcome="failed" if then == "fails" else "done")
    if then == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(1 if then == "fails" else 0)


BY_NAME = (sender, target, wakes, spends)

if __name__ == "__main__":
    {program.__name__: program for program in BY_NAME}[sys.argv[1]](*sys.argv[2:])
