"""What `wakeful top` asks for beside the fleet: what a key asks, and what a page shows. Threads ask; their answers
wait in a queue until they are drawn.

Laws:
- Nothing that is drawn is touched here: an answer names what it was asked for, and is dropped if
  that is no longer shown.
- A log is read as `wakeful logs -f` reads it, from its last part on; without an engine it is looked at less often.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import click

from wakeful.cli.asking import reply_words
from wakeful.cli.connection import ask, is_held
from wakeful.cli.pausing import receipt_words, resumed_words
from wakeful.cli.place import Place
from wakeful.cli.runs import killed_words
from wakeful.cli.top_feed import TROUBLE
from wakeful.cli.top_state import LOG, WHY, Ask

Row = dict[str, Any]

# So much of the end of a log is read first; then by as much as an answer holds.
TAIL, PIECE = 262_144, 262_144
MOST_BEHIND = 4 * TAIL
QUICK, SLOW, OFFLINE, WHY_EACH, NEWEST_EACH = 0.3, 1.0, 3.0, 3.0, 2.0


class Wanted(NamedTuple):
    """What the page shows: a log by agent, stream and run (None for the newest), a why by agent and cause."""

    view: str
    agent: str
    what: str
    run: int | None = None


class Answer(NamedTuple):
    """`wanted` is None for what a key asked."""

    wanted: Wanted | None
    told: Row


class Asking:
    def __init__(self, place: Place, poke: Callable[[], None]) -> None:
        self._place, self._poke = place, poke
        self._answers: deque[Answer] = deque()
        self._wanted: Wanted | None = None
        self._changed, self._over = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="page", daemon=True)
        self._begun = False
        self.crash: BaseException | None = None

    def answers(self) -> list[Answer]:
        found = []
        while self._answers:
            found.append(self._answers.popleft())
        return found

    def end(self) -> None:
        self._over = True
        self._changed.set()

    # ---- what a key asked

    def do(self, asked: Ask) -> None:
        threading.Thread(target=self._do, args=(asked,), name="key", daemon=True).start()

    def _do(self, asked: Ask) -> None:
        try:
            answer = ask(self._place, asked.operation, **asked.parameters)
            told = {"said": words_of(asked, answer), "badly": answer.get("verdict") == "refuse"}
        except TROUBLE as trouble:
            told = {"said": _complaint(trouble), "badly": True}
        except BaseException as error:
            self.crash = error
            told = {}
        self._put(None, {**told, "agent": asked.parameters.get("agent", "")})

    # ---- what a page shows

    def show(self, wanted: Wanted | None) -> None:
        if wanted == self._wanted:
            return
        self._wanted = wanted
        self._changed.set()
        if not self._begun and wanted is not None:
            self._begun = True
            self._thread.start()

    def _run(self) -> None:
        try:
            while not self._over:
                self._changed.wait()
                self._changed.clear()
                wanted = self._wanted
                if wanted is not None and wanted.view == LOG:
                    self._follow(wanted)
                elif wanted is not None and wanted.view == WHY:
                    self._explain(wanted)
        except BaseException as error:
            self.crash = error
            self._poke()

    def _explain(self, wanted: Wanted) -> None:
        while not self._changed.is_set():
            try:
                told = {"why": ask(self._place, "why", agent=wanted.agent, cause=wanted.what)}
            except TROUBLE as trouble:
                told = {"why": {"problem": _complaint(trouble)}}
            self._put(wanted, told)
            self._changed.wait(WHY_EACH)

    def _follow(self, wanted: Wanted) -> None:
        """Until another page is wanted; a newer run is told of, and followed only when asked for."""
        run, offset, over = wanted.run, None, False
        while not self._changed.is_set():
            rest = QUICK if is_held(self._place) else OFFLINE
            try:
                if run is None:
                    run = self._find(wanted)
                    rest = NEWEST_EACH if run is None else 0.0
                elif not over:
                    offset, over, moved = self._read(wanted, run, offset)
                    rest = 0.0 if over else rest if moved else max(rest, SLOW if rest > QUICK else QUICK)
                else:
                    self._find(wanted)
                    rest = max(rest, NEWEST_EACH)
            except TROUBLE as trouble:
                self._put(wanted, {"problem": _complaint(trouble)})
                rest = max(rest, SLOW)
            self._changed.wait(rest)

    def _find(self, wanted: Wanted) -> int | None:
        found = ask(self._place, "runs", agent=wanted.agent, limit=1)["items"]
        if not found:
            self._put(wanted, {"nothing": "it has not run yet; t asks for a beat"})
            return None
        self._put(wanted, {"newest": found[0]["id"]})
        return int(found[0]["id"])

    def _read(self, wanted: Wanted, run: int, offset: int | None) -> tuple[int, bool, bool]:
        """Where it ends now, whether that is all, and whether there was more."""
        if offset is None:
            self._put(wanted, {"run": ask(self._place, "show_run", run=run)})
        start = -TAIL if offset is None else offset
        answer = ask(self._place, "output", run=run, stream=wanted.what, offset=start, limit=PIECE)
        end = int(answer["next_offset"])
        moved = offset is None or end > offset
        if offset is None and answer["offset"] > 0:
            self._put(wanted, {"text": f"[{answer['offset']:,} bytes before this: wakeful logs {run}]\n"})
        self._put(wanted, {"text": answer["text"]} if answer["text"] else {})
        behind = int(answer["size"]) - end
        if behind > MOST_BEHIND:
            # Nobody reads as fast as that: what it prints now is worth more than what it printed then.
            end += behind - TAIL
            self._put(wanted, {"text": f"\n[{behind - TAIL:,} bytes left out here: wakeful logs {run}]\n"})
            return end, False, True
        if answer["over"]:
            self._put(wanted, {"run": ask(self._place, "show_run", run=run), "over": True})
        return end, bool(answer["over"]), moved

    def _put(self, wanted: Wanted | None, told: Row) -> None:
        if told:
            self._answers.append(Answer(wanted, told))
            self._poke()


def words_of(asked: Ask, answer: Row) -> str:
    """The answer as the command of that name would say it, on one line."""
    now = datetime.now(UTC)
    if asked.operation in ("pause", "pause_agent"):
        told = receipt_words(answer, False, now)
    elif asked.operation in ("resume", "resume_agent"):
        told = resumed_words(answer)
    elif asked.operation == "kill":
        told = killed_words(answer)
    else:
        told = reply_words(asked.parameters["agent"], answer, now)
    return told.replace("\n", "; ")


def _complaint(trouble: BaseException) -> str:
    return trouble.message if isinstance(trouble, click.ClickException) else str(trouble) or repr(trouble)
