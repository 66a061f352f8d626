"""Those whom a worker tells: the engine that gave it its shift, and whoever adopts it later.

Law: everybody is told everything; a request of the handler's goes to one of them, and to another when that one is gone
without an answer. Its number makes sure that it is answered once.
"""

from __future__ import annotations

from wakeful.runners.link import Wire, accept, listen
from wakeful.runners.whole import now


class Audience:
    def __init__(self, folder: str) -> None:
        self.listener = listen(folder)
        self.wires: list[Wire] = []
        self.called = False
        self._number = ""
        self._request = b""
        self._asked: Wire | None = None
        self._alone_since = 0.0

    def __bool__(self) -> bool:
        return bool(self.wires)

    @property
    def behind(self) -> bool:
        return any(wire.behind for wire in self.wires)

    def welcome(self, hello: bytes, so_far: bytes) -> None:
        wire = accept(self.listener)
        if wire is not None:
            self.called = True
            self.wires.append(wire)
            wire.send(hello + so_far)
            if self._number and self._asked is None:
                self._pass_on()

    def prune(self) -> None:
        """Forget those who have gone."""
        gone = [wire for wire in self.wires if wire.closed]
        for wire in gone:
            self.wires.remove(wire)
            wire.close()
        if self._asked in gone:
            self._pass_on()

    def tell(self, lines: bytes) -> None:
        for wire in self.wires:
            wire.send(lines)

    # -- requests -----------------------------------------------------------------------------------------------
    def ask(self, number: str, request: bytes) -> None:
        self._number, self._request = number, request
        self._pass_on()

    def _pass_on(self) -> None:
        self._asked = self.wires[-1] if self.wires else None
        if self._asked is not None:
            self._asked.send(self._request)
        else:
            self._alone_since = now()

    def settled(self, number: str) -> bool:
        """Whether that was the question; it is answered now."""
        if not self._number or number != self._number:
            return False
        self.hush()
        return True

    def hush(self) -> None:
        """Nobody waits for an answer any more."""
        self._number, self._request, self._asked = "", b"", None

    @property
    def question(self) -> str:
        return self._number

    @property
    def alone_since(self) -> float:
        """Since when a question has nobody who could answer it."""
        return self._alone_since if self._number and self._asked is None else float("inf")

    def close(self) -> None:
        self.listener.close()
        for wire in self.wires:
            wire.close()
