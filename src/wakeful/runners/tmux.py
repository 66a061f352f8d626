"""A run in a session that goes on: one line is typed into it, and the result file that it writes is its answer.

Laws:
- Nothing that others wrote is typed: the line says where the briefing lies and where the answer goes, in our own words.
- It is typed when the pane has been quiet, so not into the middle of a turn; not while the agent is paused; and once.
- Enter is pressed only when the pane shows the line: a question that stands in front there and wants an Enter is not
  answered by us (one that takes a single key without brackets has taken the first of the line). A second Enter only
  where the first has changed nothing.
- The run is over when the result file is whole, or the pane is gone.
"""

from __future__ import annotations

import http.client
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import quote, urlsplit

from wakeful.runners.errand import BEARER, TARGET, Dismissed, Trouble, carry_out, tell
from wakeful.runners.pane import Gone, Pane, View

# Seconds: between two looks at the pane and at the file; for the pane to heed a key; and how long a result that is no
# JSON must have stayed as it is before it is taken for all there will be. While the agent works, its pane is looked at
# as often as it would have to be quiet.
LOOK = 0.5
LOOK_FOR_RESULT = 0.1
HEEDING = 2.0
WRITING = 5.0
# So many times the quiet is the line given to appear.
APPEARING = 10

MOST_RESULT = 1024 * 1024
ENVIRONMENT = "env"

_LINE = (
    # No sign that a shell would act on: where a shell is all that runs there, this is a command that nobody knows.
    "Wakeful run {run} for {agent}: read the briefing in {briefing} and do what it asks. When you have finished, write"
    " JSON with outcome done, no_work or failed, and a summary, under another name, and rename it to {result} so that"
    " it appears whole. If you need the wakeful command, source {environment} first. {marker}"
)


class Wakeup:
    def __init__(self, environment: Mapping[str, str], quiet: float) -> None:
        self._about = environment
        self._quiet = quiet
        self._look = min(LOOK, quiet / 2)
        self._result = environment["WAKEFUL_RESULT"]
        self._beside = os.path.join(os.path.dirname(self._result), ENVIRONMENT)
        self._marker = f"wakeful{environment['WAKEFUL_RUN_ID']}x{os.urandom(4).hex()}"
        self._typed = False

    def carry_out(self) -> None:
        pane = Pane.find(self._about[TARGET])
        _write_private(self._beside, _as_script(self._about))
        try:
            self._until_quiet(pane)
            self._type(pane)
            self._until_answered(pane)
        except Dismissed:
            self._interrupt(pane)
            raise
        except Gone as gone:
            tell(f"{pane.session} is gone: {gone}")
            # Whoever has answered may go.
            if not _within(WRITING if os.path.exists(self._result) else LOOK, self._is_answered):
                raise Trouble(f"the tmux session {pane.session} is gone: {gone}") from None
        finally:
            with suppress(OSError):
                os.unlink(self._beside)

    # -- before -------------------------------------------------------------------------------------------------
    def _until_quiet(self, pane: Pane) -> None:
        seen, since, told = pane.look(), time.monotonic(), ""
        while True:
            time.sleep(self._look)
            view = pane.look()
            why = "somebody scrolls in it" if view.in_mode else "something goes on in it" if view != seen else ""
            if not why and time.monotonic() - since >= self._quiet:
                if not _is_paused(self._about):
                    return
                why = "the agent is paused"
            if why:
                seen, since = view, time.monotonic()
            if why and why != told:
                tell(f"waiting for {pane.session}: {why}")
                told = why

    # -- the line -----------------------------------------------------------------------------------------------
    def _type(self, pane: Pane) -> None:
        paths = {"briefing": self._about["WAKEFUL_BRIEFING"], "result": self._result, "environment": self._beside}
        quoted = {name: shlex.quote(path) for name, path in paths.items()}
        about = {"run": self._about["WAKEFUL_RUN_ID"], "agent": self._about["WAKEFUL_AGENT"], "marker": self._marker}
        self._typed = True
        pane.paste(_LINE.format(**about, **quoted), self._marker)
        if not _within(APPEARING * self._quiet, lambda: pane.look().shows(self._marker)):
            self._typed = False
            raise Trouble(f"what was typed into {pane.session} does not appear there: is a question in front of it?")
        tell(f"typed into {pane.session}, pane {pane.id}")
        before = self._settled(pane)
        for _ in range(2):
            pane.press("Enter")
            if _within(HEEDING, lambda: pane.look() != before or self._is_answered()):
                tell("it was taken; waiting for the result")
                return
        tell("Enter has changed nothing there; waiting for the result all the same")

    def _settled(self, pane: Pane) -> View:
        """As it is when the agent has drawn all that was pasted; not much later, unless somebody scrolls."""
        view, end = pane.look(), time.monotonic() + HEEDING
        while view.in_mode or time.monotonic() < end:
            time.sleep(self._look)
            last, view = view, pane.look()
            if view == last and not view.in_mode:
                break
        return view

    # -- the answer ---------------------------------------------------------------------------------------------
    def _until_answered(self, pane: Pane) -> None:
        look_at = time.monotonic()
        while not self._is_answered():
            if time.monotonic() >= look_at:
                pane.look()
                look_at = time.monotonic() + self._quiet
            time.sleep(LOOK_FOR_RESULT)

    def _is_answered(self) -> bool:
        """Whether the file is whole. One that stays no JSON object is too: what is wrong with it is told later."""
        try:
            with open(self._result, "rb") as file:
                written, data = os.fstat(file.fileno()).st_mtime, file.read(MOST_RESULT + 1)
        except OSError:
            return False
        if not data.strip():
            return False
        with suppress(ValueError, RecursionError):
            if isinstance(json.loads(data), dict):
                return True
        return time.time() - written >= WRITING

    def _interrupt(self, pane: Pane) -> None:
        """Best effort: nobody but the agent can end its turn."""
        if self._typed and not self._is_answered():
            with suppress(Trouble):
                if pane.look().in_mode:
                    pane.leave_mode()
                pane.press("C-c")


def _within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() >= end:
            return False
        time.sleep(LOOK / 5)
    return True


def _is_paused(about: Mapping[str, str]) -> bool:
    """The door has admitted this run, but the pane may have been busy for long since. No word is no pause."""
    parts = urlsplit(about["WAKEFUL_URL"])
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5.0)
    try:
        bearer = {"Authorization": f"Bearer {about['WAKEFUL_TOKEN']}"}
        connection.request("GET", f"/v1/agents/{quote(about['WAKEFUL_AGENT'])}", headers=bearer)
        with connection.getresponse() as response:
            told = json.loads(response.read(MOST_RESULT)) if response.status == 200 else {}
        return bool(told.get("paused"))
    except (OSError, ValueError, AttributeError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _as_script(about: Mapping[str, str]) -> str:
    ours = {name: value for name, value in about.items() if name.startswith("WAKEFUL_") or name == "TRACEPARENT"}
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in ours.items() if name not in (TARGET, BEARER))
    return "".join(lines)


def _write_private(path: str, text: str) -> None:
    file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "wb") as stream:
        stream.write(text.encode(errors="surrogateescape"))


def main() -> None:
    quiet = float(sys.argv[1])
    carry_out(lambda environment: Wakeup(environment, quiet).carry_out())


if __name__ == "__main__":
    main()
