"""Where the fleet is asked, and by which names.

Laws:
- The loopback is always served, in plain HTTP: commands and runs of this machine need no certificates.
- Another address is served besides it, and only by TLS, or where somebody has said `--insecure`: a token on the wire of
  a network is everybody's.
- A client calls us by a name that was said. An address that stands for all of the machine's has none of its own.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
import ssl
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wakeful.core.errors import Mistake

BACKLOG = 512

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LOOPBACK = "127.0.0.1"
_NAME = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """From where the fleet may be asked, as `up` was told."""

    host: str = _LOOPBACK
    port: int = 0
    names: tuple[str, ...] = ()
    certificate: Path | None = None
    private_key: Path | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """`local` is the loopback; `wide` is another address, if one is served, by TLS where there is a `context`."""

    local: socket.socket
    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    wide: socket.socket | None = None
    context: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        """Where commands and runs of this machine ask."""
        return url_of(self.local)

    @property
    def wide_url(self) -> str | None:
        return None if self.wide is None else url_of(self.wide, "http" if self.context is None else "https")

    def close(self) -> None:
        self.local.close()
        if self.wide is not None:
            self.wide.close()


def listen(reach: Reach, *, before: int | None = None) -> Listening:
    """`before` is the port of the loopback that was used last: runs of an earlier engine still know it."""
    address, names = _address(reach.host), tuple(_name(name) for name in reach.names)
    if address.is_loopback:
        if reach.certificate is not None or reach.private_key is not None:
            raise Mistake("the loopback is served in plain HTTP", "leave the certificate out, or name another --host")
        local = _bind_again(str(address), reach.port, before)
        # Whoever passes requests on to us from this machine may speak TLS to others.
        return Listening(local=local, hosts=hosts_of(local, names), origins=_passed_on(names))
    context = _context(reach)
    if address.is_unspecified and not names:
        remedy = "say by which name it will be called: --name fleet.example.org"
        raise Mistake(f"{reach.host} is every address of this machine, and none by which it can be called", remedy)
    wide = bind(reach.host, reach.port, anywhere=True)
    try:
        local = _beside(wide.getsockname()[1], before)
    except BaseException:
        wide.close()
        raise
    hosts = hosts_of(local) | hosts_of(wide, names)
    origins = _passed_on(names) if context is None else frozenset()
    return Listening(local=local, wide=wide, context=context, hosts=hosts, origins=origins)


def _bind_again(host: str, port: int, before: int | None) -> socket.socket:
    if port == 0 and before is not None:
        with suppress(Mistake):
            return bind(host, before)
    return bind(host, port)


def _beside(port: int, before: int | None) -> socket.socket:
    """The loopback beside another address: the same port where it is free, which it is not beside all addresses."""
    with suppress(Mistake):
        return bind(_LOOPBACK, port)
    return _bind_again(_LOOPBACK, 0, before)


def bind(host: str, port: int, *, anywhere: bool = False) -> socket.socket:
    """A socket that listens already, so that a taken port shows now; port 0 takes any that is free."""
    address = _address(host)
    if not (anywhere or address.is_loopback):
        raise _not_loopback(host)
    if not 0 <= port <= 65535:
        raise Mistake(f"a port is a number up to 65535, not {port}", "name another with --port")
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    # Named, because asyncio sends without delay only what is known to be TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # So that a restart need not wait for the last connections of the one before to be forgotten.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((str(address), port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        found = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {os.strerror(error.errno or 0)}"
        raise Mistake(f"port {port} of {host} {found}", "name another with --port, or 0 for any") from error
    listening.setblocking(False)
    return listening


def _address(host: str) -> Address:
    name = host.strip("[]")
    try:
        return ipaddress.ip_address(_LOOPBACK if name.lower() == "localhost" else name)
    except ValueError:
        raise _not_loopback(host) from None


def _not_loopback(host: str) -> Mistake:
    remedy = (
        "use 127.0.0.1, localhost or ::1; from another machine, a tunnel such as ssh -L; or see `wakeful up --help`"
    )
    return Mistake(f"{host} is not an address of the loopback, nor another of this machine", remedy)


def _name(name: str) -> str:
    lower = name.strip().lower()
    if not _NAME.fullmatch(lower):
        raise Mistake(f"expected a name such as fleet.example.org or fleet.example.org:8443, found {name!r:.80}", "")
    return lower


def _passed_on(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(f"https://{name}" for name in names)


# ---- certificates


def _context(reach: Reach) -> ssl.SSLContext | None:
    """None where somebody has said that it shall be without."""
    certificate, key = reach.certificate, reach.private_key
    if reach.insecure:
        if certificate is not None or key is not None:
            raise Mistake("found both a certificate and --insecure", "leave one of them out")
        return None
    if certificate is None or key is None:
        remedy = (
            "give --certificate and --private-key, or say --insecure; better, use 127.0.0.1 and a tunnel such as ssh -L"
        )
        raise Mistake(f"{reach.host} is not on the loopback: whoever is on its network could read the token", remedy)
    _must_be_private(key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        found = error.reason or str(error)
        remedy = "give a certificate and its key in PEM, the key without a passphrase"
        raise Mistake(f"{certificate} and {key} cannot be used together: {found}", remedy) from error
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise Mistake(f"{certificate} or {key} cannot be read: {what}", "name files that are there") from error
    return context


def _no_password() -> str:
    """Or the terminal would be asked."""
    raise ValueError("the key has a passphrase")


def _must_be_private(key: Path) -> None:
    try:
        mode = key.stat().st_mode
    except OSError as error:
        raise Mistake(f"{key} cannot be read: {error.strerror}", "name the file of the private key") from error
    if mode & stat.S_IROTH:
        raise Mistake(f"everybody can read {key}", f"chmod 600 {key}")


# ---- what it is called


def url_of(listening: socket.socket, scheme: str = "http") -> str:
    return f"{scheme}://{_bracketed(listening.getsockname()[0])}:{listening.getsockname()[1]}"


def hosts_of(listening: socket.socket, names: tuple[str, ...] = ()) -> frozenset[str]:
    """By which names a client may call what listens there. One that was said without a port may also be called on the
    port that needs no saying, by whoever passes requests on."""
    address, port = listening.getsockname()[:2]
    known = {"127.0.0.1", "localhost", "[::1]"} | (set() if _is_all(address) else {_bracketed(address)})
    told = {f"{name}:{port}" for name in known} | (known if port in (80, 443) else set())
    for name in names:
        told |= {name} if _has_port(name) else {name, f"{name}:{port}"}
    return frozenset(told)


def _is_all(address: str) -> bool:
    return ipaddress.ip_address(address).is_unspecified


def _has_port(name: str) -> bool:
    return re.search(r":[0-9]{1,5}$", name.rpartition("]")[2] if name.startswith("[") else name) is not None


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
