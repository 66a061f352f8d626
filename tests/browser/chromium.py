"""Debian's Chromium, where it is, and everything that a page of it complains of.

Law: a page that writes an error or a warning to its console, throws, breaks its own content security policy, asks
another origin, or puts the token into an address, fails its test, whatever the test was about.
"""

from __future__ import annotations

import re
import shutil
import time
from typing import NamedTuple
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, WebError

# The first is how Debian calls it, and the package.
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=none")

_TELL_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`violates its policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile ?? ""}`));
"""


def found() -> str | None:
    """The path of its program, if it is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


# An answer that goes on for as long as somebody listens.
_STREAM = re.compile(r"/v1/(stream|runs/\d+/log)")
_PATIENCE = 20.0


class Watched:
    """All pages of one context, for as long as a test lasts."""

    def __init__(self, context: BrowserContext, origin: str, token: str) -> None:
        self.context = context
        self._origin = origin
        self._token = token
        self._complaints: list[str] = []
        self._allowed: list[re.Pattern[str]] = []
        self._asked: set[Request] = set()
        _WATCHED[context] = self
        context.on("console", self._console)
        context.on("weberror", self._thrown)
        context.on("request", self._request)
        context.on("requestfinished", self._answered)
        context.on("requestfailed", self._answered)
        context.add_init_script(_TELL_VIOLATIONS)

    def allow(self, *patterns: str) -> None:
        """A test brings this about on purpose: what matches is no complaint."""
        self._allowed += map(re.compile, patterns)

    def complaints(self) -> list[str]:
        return [said for said in self._complaints if not any(pattern.search(said) for pattern in self._allowed)]

    def forget(self) -> None:
        """Another test begins."""
        self._complaints.clear()
        self._allowed.clear()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self._complaints.append(f"console {message.type}: {message.text} ({message.location.get('url', '')})")

    def _thrown(self, error: WebError) -> None:
        self._complaints.append(f"thrown: {error.error}")

    def _answered(self, request: Request) -> None:
        self._asked.discard(request)

    def awaited(self, page: Page) -> list[str]:
        """What a page has asked for and not been given."""
        return [request.url for request in self._asked if request.frame.page is page]

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if not _STREAM.match(parts.path):
            self._asked.add(request)
        if f"{parts.scheme}://{parts.netloc}" != self._origin:
            self._complaints.append(f"asked another origin: {request.url}")
        elif self._token in request.url.partition("#")[0]:
            self._complaints.append(f"the token is in an address: {parts.path}")


_WATCHED: WeakKeyDictionary[BrowserContext, Watched] = WeakKeyDictionary()


class Held(NamedTuple):
    """What the page holds after everything that can be forgotten was: bytes of its heap, and nodes, drawn or not."""

    heap: float
    nodes: float


def held(page: Page) -> Held:
    wire = page.context.new_cdp_session(page)
    wire.send("Performance.enable")
    wire.send("HeapProfiler.collectGarbage")
    told = {each["name"]: each["value"] for each in wire.send("Performance.getMetrics")["metrics"]}
    wire.detach()
    return Held(told["JSHeapUsedSize"], told["Nodes"])


def settled(page: Page) -> None:
    """Until the page has drawn what it knows."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def answered(page: Page) -> None:
    """Until the page has been given everything that it asked for, and asks for nothing more because of it."""
    watched, end = _WATCHED[page.context], time.monotonic() + _PATIENCE
    quiet = 0
    while quiet < 2:
        assert time.monotonic() < end, f"still waits for {watched.awaited(page)}"
        # What it asks for while it draws is told before it says that it has drawn.
        settled(page)
        quiet = 0 if watched.awaited(page) else quiet + 1
