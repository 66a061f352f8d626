"""Who asks, by bearer token: the operator, or one run of an agent.

Laws:
- The operator's token is compared in constant time. No token can make another: whoever can write the data folder makes
  a new one (`wakeful token --rotate`), and from then on the old one is nobody's, also where it has been let in.
- A run's token is `run.<run>.<epoch>.<since>.<mac>`. It holds only while the store says that this run is open in this
  epoch, so it dies with the run and needs no list of its own; it outlives a restart of the engine, as the run does.
  Numbers are counted anew in a store that was restored: when the run was begun, to the microsecond, never is.
- A right token is always let in. Wrong ones are counted for each address; past the limit they are told to wait. On
  the loopback everybody has the same address: whoever could lock an address out could lock out the operator.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from wakeful.control.callers import OPERATOR, Caller
from wakeful.http.errors import Problem, Refused

log = logging.getLogger(__name__)

_RUN_TOKEN = re.compile(r"run\.([1-9][0-9]{0,17})\.([0-9]{1,18})\.([0-9]{1,16})\.([0-9a-f]{64})", re.ASCII)
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Both are random and at least 256 bits; neither is ever shown."""

    operator: str = field(repr=False)
    secret: bytes = field(repr=False)


def run_token(keys: Keys, run: int, epoch: int, since: datetime) -> str:
    """`since` is when it was begun."""
    stem = f"run.{run}.{epoch}.{(since - _EPOCH) // _MICROSECOND}"
    return f"{stem}.{_mac(keys, stem)}"


def read_run_token(keys: Keys, token: str) -> tuple[int, int, datetime] | None:
    """The run, the epoch and since when, if the token is one of ours; whether the run is open, the store knows."""
    found = _RUN_TOKEN.fullmatch(token)
    if found is None:
        return None
    run, epoch, since = int(found[1]), int(found[2]), _EPOCH + int(found[3]) * _MICROSECOND
    return (run, epoch, since) if hmac.compare_digest(run_token(keys, run, epoch, since), token) else None


def _mac(keys: Keys, stem: str) -> str:
    return hmac.new(keys.secret, stem.encode(), hashlib.sha256).hexdigest()


class Register(Protocol):
    async def caller_of_run(self, run: int, epoch: int, since: datetime | None = None) -> Caller | None:
        """The agent of that run, while it is open in that epoch; where `since` is said, if it was begun then."""

    async def acted(self, caller: Caller, operation: str, **told: object) -> None:
        """The operator did this."""


class Failures:
    """How many wrong tokens came from an address within the window."""

    def __init__(
        self, clock: Callable[[], float], *, most: int = 20, window: float = 60.0, addresses: int = 1024
    ) -> None:
        self._clock = clock
        self._most = most
        self._window = window
        self._addresses = addresses
        self._seen: dict[str, tuple[int, float]] = {}

    def note(self, address: str) -> float | None:
        """One more; the seconds until the count begins anew once there were too many."""
        now, key = self._clock(), normal(address)
        count, since = self._seen.pop(key, (0, now))
        if now - since >= self._window:
            count, since = 0, now
        while len(self._seen) >= self._addresses:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = (count + 1, since)
        return since + self._window - now if count >= self._most else None


def normal(address: str) -> str:
    """An IPv4 address that came mapped into IPv6 is the same address."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    mapped = known.ipv4_mapped if isinstance(known, ipaddress.IPv6Address) else None
    return str(mapped or known)


class Authority:
    def __init__(
        self, keys: Keys, register: Register, failures: Failures, operator: Callable[[], str] | None = None
    ) -> None:
        """`operator` gives the operator's token as it is now; without it, it is the one among the keys for good."""
        self._keys = keys
        self._register = register
        self._failures = failures
        self._token = operator or (lambda: keys.operator)
        self._known = self._token()
        self._operator = self._sealed(self._known)
        self._telling: set[asyncio.Task[None]] = set()

    @property
    def operator(self) -> str:
        """The operator's token; nobody's while there is none."""
        token = self._token()
        if token != self._known:
            self._known, self._operator = token, self._sealed(token)
            log.warning("the operator's token is another one from now on")
            task = asyncio.get_running_loop().create_task(self._register.acted(OPERATOR, "rotate_token"))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)
        return token

    def _sealed(self, token: str) -> Caller:
        return replace(OPERATOR, seal=hmac.digest(self._keys.secret, token.encode(), "sha256"))

    async def caller(self, authorization: list[str], address: str) -> Caller:
        """Who sent these Authorization headers; raises `Refused`."""
        scheme, _, token = authorization[0].partition(" ") if len(authorization) == 1 else ("", "", "")
        if scheme.lower() != "bearer" or not token:
            raise _unauthenticated("one header `Authorization: Bearer TOKEN` was expected")
        if self.is_operator(token):
            return self._operator
        named = read_run_token(self._keys, token)
        if named is None:
            self.refuse_wrong(address)
        else:
            caller = await self._register.caller_of_run(*named)
            if caller is not None:
                return caller
        raise _unauthenticated("the token is wrong, or its run is over")

    def is_operator(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.operator.encode())

    async def still(self, caller: Caller) -> bool:
        """Whether somebody who was let in may stay: asked again and again by what lasts longer than a request."""
        if caller.run is None or caller.epoch is None:
            return caller.is_operator and bool(self.operator) and caller.seal in (None, self._operator.seal)
        return await self._register.caller_of_run(caller.run, caller.epoch) is not None

    def refuse_wrong(self, address: str, what: str = "token") -> None:
        """One more wrong token or signature from there; raises `Refused` once there were too many."""
        wait = self._failures.note(address)
        if wait is not None:
            seconds = str(int(wait) + 1)
            detail = f"too many wrong {what}s came from {address}"
            raise Refused(
                Problem(
                    status=429,
                    kind="too_many",
                    detail=detail,
                    remedy=f"use the right {what}: it is let in at any time",
                    headers=(("retry-after", seconds),),
                )
            )


def _unauthenticated(detail: str) -> Refused:
    remedy = "`wakeful token` prints the operator's; a run finds its own in WAKEFUL_TOKEN"
    headers = (("www-authenticate", 'Bearer realm="wakeful"'),)
    return Refused(Problem(status=401, kind="unauthenticated", detail=detail, remedy=remedy, headers=headers))
