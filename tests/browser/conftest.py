"""What a test of the dashboard is given: the night desk at work, and pages of it in real Chromium.

- `fleet`: the night desk (`desk.Desk`), for all tests of the folder. Who changes something of it changes it back.
- `page_at(route, …)`: a fresh tab at `#/`, `#/agents/wren`, …; entered with the token as a person enters.
- `visiting(route)`: the same tab for all tests of a module, which is much cheaper.
- `dashboard`: the first page.
- `crowd` and `crowd_at(route, …)`: a thousand agents that have nothing to do.
- `den` and `den_at(route, …)`: one that means ill has written wherever it may.

A page that complains of anything fails its test (`chromium.Watched`); `page_at.allow("401")` says what is meant to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser import chromium
from tests.browser.desk import Den, Desk, Running, crowd_of

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
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    try:
        yield desk.begin()
    finally:
        desk.close()


@pytest.fixture(scope="package")
def den(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Den]:
    den = Den(tmp_path_factory.mktemp("den"))
    try:
        yield den.begin()
    finally:
        den.close()


@pytest.fixture(scope="package")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    gathered = crowd_of(tmp_path_factory.mktemp("crowd"), 1_000)
    try:
        yield gathered.begin()
    finally:
        gathered.close()


class Pages:
    """Opens pages, and hears what they complain of."""

    def __init__(self, browser: Browser, fleet: Running) -> None:
        self._browser = browser
        self.fleet = fleet
        self._watched: list[chromium.Watched] = []
        self._allowed: list[str] = []

    def __call__(
        self, route: str = "#/", *, theme: Any = "light", width: int = 1280, height: int = 800, entered: bool = True
    ) -> Page:
        """A tab of its own at that route; without having `entered` it has no token."""
        page = self.tab(theme=theme, width=width, height=height)
        page.goto(self.fleet.address if entered else self.fleet.url)
        if entered:
            expect(page.get_by_role("main")).to_be_visible()
        if route != "#/":
            page.goto(f"{self.fleet.url}/{route}")
        chromium.settled(page)
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
        for watched in self._watched:
            watched.allow(*patterns)

    def complaints(self) -> list[str]:
        return [said for watched in self._watched for said in watched.complaints()]

    def close(self) -> list[str]:
        """What they complained of."""
        for watched in self._watched:
            watched.context.close()
        return self.complaints()


class Visit:
    """A tab that is taken from place to place, for a tenth of what a new one costs."""

    def __init__(self, pages: Pages) -> None:
        self._url = pages.fleet.url
        self.allow = pages.allow
        self.page = pages()

    def __call__(self, route: str) -> Page:
        # Also when it is there already: what the test before left open is gone.
        self.page.goto(f"{self._url}/#/")
        self.page.goto(f"{self._url}/{route}")
        return self.page


@contextmanager
def pages_of(browser: Browser, fleet: Running) -> Iterator[Pages]:
    pages = Pages(browser, fleet)
    yield pages
    complaints = pages.close()
    assert complaints == [], "\n".join(complaints)


@pytest.fixture
def page_at(browser: Browser, fleet: Desk) -> Iterator[Pages]:
    with pages_of(browser, fleet) as pages:
        yield pages


@pytest.fixture(scope="module")
def visiting(browser: Browser, fleet: Desk) -> Iterator[Visit]:
    """One tab of the night desk for all tests of a module: `visiting("#/agents/wren")` takes it there."""
    with pages_of(browser, fleet) as pages:
        yield Visit(pages)


@pytest.fixture
def crowd_at(browser: Browser, crowd: Running) -> Iterator[Pages]:
    """The same, of the crowd."""
    with pages_of(browser, crowd) as pages:
        yield pages


@pytest.fixture
def den_at(browser: Browser, den: Den) -> Iterator[Pages]:
    """The same, of the den."""
    with pages_of(browser, den) as pages:
        yield pages


@pytest.fixture
def dashboard(page_at: Pages) -> Page:
    return page_at("#/")
