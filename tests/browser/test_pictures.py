"""A picture of each page, light and dark: what the guide and the README show is what the tests have seen.

`make pictures` keeps them in docs/images; otherwise they go with the test.
"""

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.chromium import settled
from tests.browser.places import arrived, route

ROOT = Path(__file__).resolve().parents[2]
KEPT = os.environ.get("PICTURES")
WIDE, HIGH = 1440, 960
# An empty page has less.
LEAST = 15_000
NAMES = ("fleet", "timeline", "agent", "inbox", "settings", "why", "run", "live run", "tasks", "dead", "decisions")


@pytest.fixture(scope="session")
def album(tmp_path_factory):
    folder = ROOT / KEPT if KEPT else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def taken(page, fleet, file):
    if KEPT:
        assert str(fleet.folder) not in page.inner_text("body"), f"{file.name} tells where it was taken"
    page.mouse.move(0, 0)
    settled(page)
    page.screenshot(path=file, animations="disabled", caret="hide")
    assert file.stat().st_size > LEAST, f"{file.name} shows next to nothing"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_page_has_its_picture(page_at, fleet, album, theme):
    page = page_at(theme=theme, width=WIDE, height=HIGH)
    for name in NAMES:
        page.goto(f"{fleet.url}/{route(fleet, name)}")
        arrived(page)
        taken(page, fleet, album / f"{name.replace(' ', '-')}-{theme}.png")


def test_a_paused_fleet_has_its_picture(page_at, fleet, album):
    pages = {theme: arrived(page_at(theme=theme, width=WIDE, height=HIGH)) for theme in ("light", "dark")}
    fleet.client.pause(reason="a new prompt for everybody", duration="1h")
    try:
        for theme, page in pages.items():
            expect(page.get_by_role("alert").filter(has_text="a new prompt")).to_be_visible()
            taken(page, fleet, album / f"paused-{theme}.png")
    finally:
        fleet.client.resume()
