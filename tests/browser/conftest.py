"""What a test of the dashboard is given: the night desk at work, and pages of it in real Chromium.

- `fleet`: the night desk (`desk.Desk`), for all tests of the folder. Who changes something of it changes it back.
- `page_at(route, …)`: a tab at `#/`, `#/agents/wren`, …; `page_at.new(…)` one that has never been anywhere, entered
  with the token as a person enters.
- `dashboard`: the first page.
- `tour`: what is to be seen at every place, for all tests.
- `crowd` and `crowd_at(route, …)`: a thousand agents that have nothing to do.
- `den` and `den_at(route, …)`: one that means ill has written wherever it may.
- `shop` and `shop_at(route, …)`: the workshop (`workshop.Workshop`), for what changes a fleet.

A page that complains of anything fails its test (`chromium.Watched`); `page_at.allow("401")` says what is meant to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser import chromium
from tests.browser.desk import Den, Desk, Running, crowd_of
from tests.browser.tour import HIGH, WIDE, Tour
from tests.browser.workshop import Workshop

ROOT = Path(__file__).resolve().parents[2]
KEPT = os.environ.get("PICTURES")
PATIENCE = 10_000
TOLD = pytest.StashKey[bool]()

expect.set_options(timeout=PATIENCE)


class Missing(pytest.Module):
    """One line for all of them."""

    def collect(self) -> list[pytest.Item]:
        config = self.config
        if config.stash.get(TOLD, False):
            return []
        config.stash[TOLD] = True
        pytest.skip("no Chromium, so no test of the dashboard: install the package chromium", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return None if chromium.found() else Missing.from_parent(parent, path=module_path)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Chromium and the fleet take seconds to begin: all their tests are for one process."""
    for item in items:
        if config.pluginmanager.hasplugin("xdist") and item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium.found(), args=chromium.ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="package")
def ground() -> Iterator[Callable[[str], Path]]:
    """A folder for a fleet."""
    with TemporaryDirectory(prefix="wakeful-") as folder:
        yield lambda name: Path(mkdtemp(prefix=f"{name}-", dir=folder))


@pytest.fixture(scope="package")
def fleet(ground: Callable[[str], Path]) -> Iterator[Desk]:
    desk = Desk(ground("desk"))
    try:
        yield desk.begin()
    finally:
        desk.close()


@pytest.fixture(scope="package")
def den(ground: Callable[[str], Path]) -> Iterator[Den]:
    den = Den(ground("den"))
    try:
        yield den.begin()
    finally:
        den.close()


@pytest.fixture(scope="package")
def crowd(ground: Callable[[str], Path]) -> Iterator[Running]:
    gathered = crowd_of(ground("crowd"), 1_000)
    try:
        yield gathered.begin()
    finally:
        gathered.close()


@pytest.fixture(scope="package")
def shop(ground: Callable[[str], Path]) -> Iterator[Workshop]:
    opened = Workshop(ground("shop"))
    try:
        yield opened.begin()
    finally:
        opened.close()


class Pages:
    """Opens pages, and hears what they complain of.

    The first of a test is the tab that the tests before it had, taken to another place, for a tenth of what a new one
    costs; what one of them left open or was allowed is gone.
    """

    def __init__(self, browser: Browser, fleet: Running, kept: Kept) -> None:
        self._browser = browser
        self.fleet = fleet
        self._kept = kept
        self._watched: list[chromium.Watched] = []
        self._allowed: list[str] = []

    def __call__(
        self, route: str = "#/", *, theme: Any = "light", width: int = 1280, height: int = 800, entered: bool = True
    ) -> Page:
        """A tab at that route; without having `entered` it has no token, and is a new one."""
        if entered and (page := self._again(theme, width, height)) is not None:
            page.goto(f"{self.fleet.url}/{route}")
            chromium.settled(page)
            return page
        page = self.new(route, theme=theme, width=width, height=height, entered=entered)
        if entered and self._kept.page is None:
            self._kept.keep(self._watched.pop(), page, self.fleet)
        return page

    def new(
        self, route: str = "#/", *, theme: Any = "light", width: int = 1280, height: int = 800, entered: bool = True
    ) -> Page:
        """One that has never been anywhere, in a context of its own."""
        page = self.tab(theme=theme, width=width, height=height)
        page.goto(self.fleet.address if entered else self.fleet.url)
        if entered:
            expect(page.get_by_role("main")).to_be_visible()
        if route != "#/":
            page.goto(f"{self.fleet.url}/{route}")
        chromium.settled(page)
        return page

    def _again(self, theme: Any, width: int, height: int) -> Page | None:
        """The tab that is kept, if it is one of this fleet and not in use."""
        page = self._kept.taken(self.fleet)
        if page is None:
            return None
        assert self._kept.watched is not None
        self._kept.watched.allow(*self._allowed)
        page.emulate_media(color_scheme=theme)
        if page.viewport_size != {"width": width, "height": height}:
            page.set_viewport_size({"width": width, "height": height})
        page.mouse.move(0, 0)
        dialog = page.locator("dialog[open]")
        if dialog.count():
            page.keyboard.press("Escape")
            expect(dialog).to_have_count(0)
        page.evaluate("document.activeElement?.blur()")
        return page

    def tab(self, *, theme: Any = "light", width: int = 1280, height: int = 800) -> Page:
        """An empty one, in a context of its own."""
        context = self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            reduced_motion="reduce",
            timezone_id=self.fleet.zone,
            locale="en-GB",
        )
        context.set_default_timeout(PATIENCE)
        watched = chromium.Watched(context, self.fleet.url, self.fleet.token)
        watched.allow(*self._allowed)
        self._watched.append(watched)
        return context.new_page()

    def allow(self, *patterns: str) -> None:
        """What a test brings about on purpose is no complaint."""
        self._allowed += patterns
        for watched in self._all():
            watched.allow(*patterns)

    def _all(self) -> list[chromium.Watched]:
        return [*self._watched, *([self._kept.watched] if self._kept.watched else [])]

    def complaints(self) -> list[str]:
        return [said for watched in self._all() for said in watched.complaints()]

    def close(self) -> list[str]:
        """What they complained of."""
        for watched in self._watched:
            watched.context.close()
        complaints = self.complaints()
        self._kept.free()
        return complaints


class Kept:
    """One tab, of the fleet that was looked at last."""

    def __init__(self) -> None:
        self.watched: chromium.Watched | None = None
        self.page: Page | None = None
        self._fleet: Running | None = None
        self._is_free = False

    def keep(self, watched: chromium.Watched, page: Page, fleet: Running) -> None:
        self.watched, self.page, self._fleet, self._is_free = watched, page, fleet, False

    def taken(self, fleet: Running) -> Page | None:
        if self.page is not None and self._fleet is not fleet:
            self.close()
        if self.page is None or not self._is_free or not self.page.url.startswith(fleet.url):
            return None
        self._is_free = False
        return self.page

    def free(self) -> None:
        """Its test is over: it waits where nothing is asked for, while what the test made is cleared away."""
        self._is_free = True
        if self.page is not None and self._fleet is not None and self.page.url.startswith(self._fleet.url):
            self.page.goto(f"{self._fleet.url}/#/nowhere")
            chromium.settled(self.page)
        if self.watched is not None:
            self.watched.forget()

    def close(self) -> None:
        if self.watched is not None:
            self.watched.context.close()
        self.watched = self.page = self._fleet = None


@pytest.fixture(scope="package")
def kept(browser: Browser) -> Iterator[Kept]:
    tab = Kept()
    yield tab
    tab.close()


@contextmanager
def pages_of(browser: Browser, fleet: Running, kept: Kept) -> Iterator[Pages]:
    pages = Pages(browser, fleet, kept)
    yield pages
    complaints = pages.close()
    assert complaints == [], "\n".join(complaints)


@pytest.fixture
def page_at(browser: Browser, fleet: Desk, kept: Kept) -> Iterator[Pages]:
    with pages_of(browser, fleet, kept) as pages:
        yield pages


@pytest.fixture
def crowd_at(browser: Browser, crowd: Running, kept: Kept) -> Iterator[Pages]:
    """The same, of the crowd."""
    with pages_of(browser, crowd, kept) as pages:
        yield pages


@pytest.fixture
def den_at(browser: Browser, den: Den, kept: Kept) -> Iterator[Pages]:
    """The same, of the den."""
    with pages_of(browser, den, kept) as pages:
        yield pages


@pytest.fixture
def shop_at(browser: Browser, shop: Workshop, kept: Kept) -> Iterator[Pages]:
    """The same, of the workshop."""
    with pages_of(browser, shop, kept) as pages:
        yield pages


@pytest.fixture(scope="package")
def album(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures go: what `make pictures` says, or away with the test."""
    folder = ROOT / KEPT if KEPT else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="package")
def tour(browser: Browser, fleet: Desk, album: Path) -> Tour:
    """What is to be seen at every place."""
    with pages_of(browser, fleet, Kept()) as pages:
        return Tour(album).of(pages.new(width=WIDE, height=HIGH), fleet)


@pytest.fixture
def dashboard(page_at: Pages) -> Page:
    return page_at("#/")
