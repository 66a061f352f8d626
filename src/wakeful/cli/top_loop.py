"""The one thread of `wakeful top` that draws: keys, signals and answers in, pictures out.

Laws:
- It sleeps until a key, a signal, an answer or the next second. What others found is taken over here, whole.
- The terminal is left before the process ends, whatever ends it.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from wakeful.cli.output import has_colours, knows
from wakeful.cli.place import Place
from wakeful.cli.top_asking import Answer, Asking, Wanted
from wakeful.cli.top_cells import PLAIN, RICH
from wakeful.cli.top_feed import Feed
from wakeful.cli.top_input import Keys
from wakeful.cli.top_keys import press
from wakeful.cli.top_pages import Log, help_picture, log_picture, why_picture
from wakeful.cli.top_rows import arranged
from wakeful.cli.top_screen import Picture, fleet_picture
from wakeful.cli.top_state import FLEET, HELP, LOG, QUIT, REDRAW, WHY, Ask, Fleet, Seen, State
from wakeful.cli.top_terminal import Gone, Terminal, end_by

Row = dict[str, Any]

# A lone Esc is known from the beginning of another key by nothing following it.
ESCAPE = 0.1
# A storm of answers is drawn so often a second, at most.
MOST_OFTEN = 0.08
_END = {signal.SIGTERM, signal.SIGHUP}


class Top:
    def __init__(self, place: Place) -> None:
        encoding = sys.stdout.encoding or "utf-8"
        self._glyphs = RICH if knows("".join(RICH)) else PLAIN
        self._terminal = Terminal(coloured=has_colours(), encoding=encoding)
        self._feed = Feed(place, self._terminal.poke)
        self._asking = Asking(place, self._terminal.poke)
        self._keys = Keys()
        self._state = State()
        self._rows: Sequence[Row] = ()
        self._picture = Picture([], None, 1, 0, 0)
        self._wanted: Wanted | None = None
        self._log: Log | None = None
        self._why: Row | None = None

    def run(self) -> None:
        self._feed.begin()
        ended_by: int | None = None
        try:
            with self._terminal.held():
                ended_by = self._turn()
        except Gone:
            pass
        finally:
            self._feed.end()
            self._asking.end()
        if ended_by is not None:
            end_by(ended_by)

    def _turn(self) -> int | None:
        """Until it is quit; the signal that ended it, if one did."""
        drawn = heard = 0.0
        while True:
            rest = MOST_OFTEN - (time.monotonic() - drawn)
            if rest <= 0:
                rest, drawn = self._draw(), time.monotonic()
            typed, signals = self._terminal.wait(heard + ESCAPE - time.monotonic() if self._keys.unfinished else rest)
            # An answer that comes in the middle of a key does not end it.
            silent = self._keys.unfinished and typed is None and time.monotonic() - heard >= ESCAPE
            heard = time.monotonic() if typed or silent else heard
            ending = signals & _END
            if ending:
                return min(ending)
            if signal.SIGINT in signals or typed == b"":
                return None
            if signal.SIGTSTP in signals:
                self._terminal.step_aside()
            if signal.SIGCONT in signals:
                self._terminal.take_again()
            if signal.SIGWINCH in signals:
                self._terminal.forget()
            for answer in self._asking.answers():
                self._take(answer)
            for crash in (self._feed.crash, self._asking.crash):
                if crash is not None:
                    raise crash
            keys = self._keys.settle() if silent else self._keys.read(typed or b"")
            if keys:
                drawn = 0.0
            if self._pressed(keys):
                return None

    # ---- keys

    def _pressed(self, keys: list[str]) -> bool:
        """Whether that is the end."""
        for key in keys:
            self._state, act = press(self._state, key, self._seen())
            if act == QUIT:
                return True
            if act == REDRAW:
                self._terminal.forget()
            elif isinstance(act, Ask):
                self._state = replace(self._state, said=act.saying, said_badly=False)
                self._asking.do(act)
            self._show_page()
            self._arrange()
        return False

    def _seen(self) -> Seen:
        fleet = self._feed.fleet()
        names = [row["name"] for row in self._rows]
        newest = self._log.newest if self._log else None
        row = fleet.rows.get(self._state.selected)
        return Seen(names, self._picture.room, self._picture.length, row, newest)

    # ---- pages

    def _show_page(self) -> None:
        state = self._state
        wanted = None
        if state.view == LOG:
            wanted = Wanted(LOG, state.page_of, state.stream, state.run)
        elif state.view == WHY:
            wanted = Wanted(WHY, state.page_of, state.cause)
        if wanted != self._wanted:
            self._wanted = wanted
            self._log = Log(state.page_of, state.stream) if state.view == LOG else None
            self._why = None
            self._asking.show(wanted)

    def _take(self, answer: Answer) -> None:
        told = answer.told
        if answer.wanted is None:
            if "said" in told:
                self._state = replace(self._state, said=told["said"], said_badly=told["badly"])
                self._feed.ask_again(told["agent"])
        elif answer.wanted != self._wanted:
            return
        elif "why" in told:
            self._why = told["why"]
        elif self._log is not None:
            self._log.take(told)

    # ---- pictures

    def _arrange(self) -> None:
        fleet, state = self._feed.fleet(), self._state
        rows = arranged(fleet.rows.values(), state.sort, state.backwards, state.filter, datetime.now(UTC))
        names = {row["name"] for row in rows}
        if state.selected not in names:
            # The next one takes its place, not the first.
            before = [row["name"] for row in self._rows]
            at = before.index(state.selected) if state.selected in before else 0
            chosen = rows[min(at, len(rows) - 1)]["name"] if rows else ""
            self._state = replace(state, selected=chosen)
        self._rows = rows

    def _draw(self) -> float:
        """How long it holds."""
        self._arrange()
        fleet, now = self._feed.fleet(), datetime.now(UTC)
        self._picture = self._pictured(fleet, now)
        if self._state.view == FLEET:
            self._state = replace(self._state, first=self._picture.first)
            first = self._picture.first
            self._feed.see(row["name"] for row in self._rows[first : first + self._picture.room])
        self._terminal.draw(self._picture)
        # What has lasted is told in whole seconds.
        return 1.0 - now.microsecond / 1e6 + 0.01

    def _pictured(self, fleet: Fleet, now: datetime) -> Picture:
        state, size, glyphs = self._state, self._terminal.size(), self._glyphs
        if state.view == LOG:
            return log_picture(state, fleet, self._log, now, size, glyphs)
        if state.view == WHY:
            return why_picture(state, fleet, self._why, now, size, glyphs)
        if state.view == HELP:
            return help_picture(state, fleet, size, glyphs)
        return fleet_picture(state, fleet, self._rows, now, size, glyphs)
