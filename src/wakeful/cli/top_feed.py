"""What is known of the fleet, kept fresh by a thread of its own.

Laws:
- Asked as `wakeful status` asks: of the engine, else of the store; each loss of either is told, and survived.
- While an engine is there its events say whose rows to ask again; rows that are in sight are asked again anyway, and
  all of them now and then: not everything that changes is an event.
- A store of our own is held as short as a command would, and never in the first moments after an engine went: another
  one may be about to take its place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any

import click

from wakeful.cli.complaints import NO_ENGINE, Complaint
from wakeful.cli.connection import Connection, ToEngine, connect, is_held
from wakeful.cli.hearing import Hearing
from wakeful.cli.place import Place
from wakeful.cli.top_state import Fleet
from wakeful.core.errors import WakefulError

Row = dict[str, Any]
TROUBLE = (click.ClickException, WakefulError, OSError)

PAGE = 1_000
# Between two looks at what the events named.
LULL = 0.4
# How often the fleet as a whole, the rows in sight and all rows are asked again though no event named them.
STATUS_EACH, SIGHT_EACH, ALL_EACH, ALL_EACH_AGENT = 4.0, 2.0, 5.0, 0.02
# So many are named in one request; above that it is cheaper to ask for all.
MOST_NAMED = 200
# How long nobody answers before that is said.
SILENT = 10.0
# Without an engine.
STORE_EACH, SHARED_EACH, RETURNING, RETRY = 5.0, 2.0, 3.0, 1.0
_STEP = 0.1

AWAY = "the engine is away"
# Events that change more than the one whom they name.
_OF_ALL = {"declared", "removed", "set", "paused", "resumed", "booted", "restored"}


class Feed:
    """`poke` is called when there is something new. Everything that others read is replaced, never changed."""

    def __init__(self, place: Place, poke: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._place, self._poke, self._clock = place, poke, clock
        self._status: Row = {}
        self._rows: dict[str, Row] = {}
        self._answered = 0.0
        self._at: datetime | None = None
        self._problem = ""
        # Whether the last answer was an engine's.
        self._by_engine = False
        self._patient_until = 0.0
        self._lock = threading.Lock()
        self._dirty: set[str] = set()
        self._all_dirty = False
        self._sight: tuple[str, ...] = ()
        self._call, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._hearing: Hearing | None = None
        self.crash: BaseException | None = None

    # ---- for whoever draws

    def begin(self) -> None:
        """The first look is taken here: what is wrong with the place is the command's own complaint."""
        with connect(self._place) as connection:
            self._by_engine = isinstance(connection, ToEngine)
            self._ask_all(connection)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._call.set()
        hearing = self._hearing
        if hearing is not None:
            hearing.close()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def fleet(self) -> Fleet:
        silent = self._clock() - self._answered
        old = self._problem or silent > SILENT
        as_of = f"{self._at.astimezone():%H:%M:%S}" if self._at and old else ""
        return Fleet(self._status, self._rows, silent if old else 0.0, self._problem, as_of)

    def see(self, names: Iterable[str]) -> None:
        """These are in sight."""
        self._sight = tuple(names)

    def ask_again(self, agent: str = "") -> None:
        """Something was done to it; "" is the fleet."""
        with self._lock:
            self._dirty |= {agent} if agent else set()
            self._all_dirty |= not agent
        self._call.set()

    # ---- the thread

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._follow()
            except TROUBLE as trouble:
                if self._over.is_set():
                    return
                self._failed(trouble)
            except BaseException as error:
                self.crash = error
                self._poke()
                return

    def _failed(self, trouble: BaseException) -> None:
        # It may have gone in the middle of an answer.
        left = self._by_engine and not is_held(self._place)
        gone = left or isinstance(trouble, OSError) or getattr(trouble, "exit_code", None) == NO_ENGINE
        message = trouble.message if isinstance(trouble, click.ClickException) else str(trouble)
        self._problem = AWAY if gone or not message else message
        self._poke()
        again = self._clock() + RETRY
        if self._by_engine:
            self._by_engine, self._patient_until = False, self._clock() + RETURNING
        held = is_held(self._place)
        while not self._over.wait(_STEP):
            before, held, now = held, is_held(self._place), self._clock()
            # Whoever takes the folder now is the next engine.
            if now >= (again if held else max(again, self._patient_until)) or (held and not before):
                return

    def _follow(self) -> None:
        if self._by_engine and not is_held(self._place):
            raise _away()
        with connect(self._place) as connection:
            if isinstance(connection, ToEngine):
                self._by_engine = True
                self._hear(connection)
                return
            if self._by_engine:
                # It went while we looked for it.
                raise _away()
            self._ask_all(connection)
            if self._status.get("shared"):
                self._watch_shared(connection)
                return
        self._rest(STORE_EACH)

    def _watch_shared(self, connection: Connection) -> None:
        """Others write to it too, and nobody waits for us."""
        while not self._over.is_set() and not is_held(self._place):
            self._rest(SHARED_EACH)
            self._ask_all(connection)

    def _rest(self, seconds: float) -> None:
        """Until then, or until an engine is here, or something was done."""
        deadline = self._clock() + seconds
        while self._clock() < deadline and not self._over.is_set() and not is_held(self._place):
            if self._call.wait(_STEP * 3):
                self._call.clear()
                return

    def _hear(self, connection: ToEngine) -> None:
        hearing = connection.hearing()
        hearing.open()
        self._hearing = hearing
        ended = threading.Event()
        reader = threading.Thread(target=self._listen, args=(hearing, ended), name="events", daemon=True)
        reader.start()
        try:
            # Only now: what happens while we ask is heard.
            self._ask_all(connection)
            self._keep(connection, ended)
        finally:
            self._hearing = None
            hearing.close()
            reader.join(1.0)

    def _listen(self, hearing: Hearing, ended: threading.Event) -> None:
        with suppress(OSError):
            for event in hearing.events():
                agent, kind = event.get("agent"), event.get("kind")
                with self._lock:
                    self._dirty |= {str(agent)} if agent else set()
                    self._all_dirty |= not agent and kind in _OF_ALL
                self._call.set()
        ended.set()
        self._call.set()

    def _keep(self, connection: ToEngine, ended: threading.Event) -> None:
        """Fresh, for as long as that engine lives."""
        every = max(ALL_EACH, ALL_EACH_AGENT * len(self._rows))
        status_at = sight_at = all_at = self._clock()
        while not self._over.is_set():
            rest = min(status_at + STATUS_EACH, sight_at + SIGHT_EACH) - self._clock()
            if self._call.wait(max(rest, 0.0)):
                # What comes in one moment is asked for together.
                self._over.wait(LULL)
            self._call.clear()
            if ended.is_set():
                raise _away()
            with self._lock:
                dirty, everything = self._dirty, self._all_dirty
                self._dirty, self._all_dirty = set(), False
            now = self._clock()
            if now - sight_at >= SIGHT_EACH:
                sight_at = now
                dirty |= set(self._sight)
            if everything or len(dirty) > MOST_NAMED or now - all_at >= every:
                self._ask_all(connection)
                status_at = sight_at = all_at = self._clock()
                continue
            if dirty:
                self._ask_some(connection, sorted(dirty))
            if now - status_at >= STATUS_EACH or (dirty and now - status_at >= 1.0):
                self._take(connection.ask("status"), self._rows)
                status_at = self._clock()

    # ---- asking

    def _ask_all(self, connection: Connection) -> None:
        status = connection.ask("status")
        rows: dict[str, Row] = {}
        after: str | None = ""
        while after is not None:
            page = connection.ask("agents", after=after, limit=PAGE)
            rows |= {row["name"]: row for row in page["items"]}
            after = page["next"]
        self._take(status, rows)

    def _ask_some(self, connection: Connection, names: list[str]) -> None:
        found = {row["name"]: row for row in connection.ask("agents", names=names)["items"]}
        # An address names its replicas; a name that finds nobody is of one that is gone.
        gone = {name for name in names if name in self._rows and name not in found}
        kept = {name: row for name, row in self._rows.items() if name not in gone}
        self._take(self._status, kept | found)

    def _take(self, status: Row, rows: dict[str, Row]) -> None:
        self._status, self._rows = status, rows
        self._answered, self._problem = self._clock(), ""
        self._at = datetime.now().astimezone()
        self._poke()


def _away() -> Complaint:
    return Complaint(AWAY, code=NO_ENGINE)
