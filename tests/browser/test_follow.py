"""What the page follows: through another store, another token, and while nobody looks."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import pages_of
from tests.browser.desk import Running
from tests.browser.places import arrived
from tests.engine.stage import heading

HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture(scope="module")
def corner(ground):
    """Two that have nothing to do."""
    agents = heading("ash", interval="1d") + heading("elm", interval="1d")
    corner = Running(ground("corner"), f"#+TITLE: corner\n#+RUN: true\n#+GRACE: 2h\n{agents}")
    try:
        yield corner.begin()
    finally:
        corner.close()


@pytest.fixture
def corner_at(browser, corner, kept):
    with pages_of(browser, corner, kept) as pages:
        yield pages


def paused(page, words):
    return page.get_by_role("alert").filter(has_text=words)


def test_a_tab_that_nobody_sees_asks_for_nothing_and_knows_all_when_it_is_seen_again(corner_at, corner):
    page = arrived(corner_at.new())
    page.evaluate(HIDE, True)
    page.wait_for_timeout(400)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for number in range(10):
        corner.client.send("ash", f"word {number}")
    page.wait_for_timeout(1_500)
    assert asked == []
    corner.client.pause_agent("ash", reason="unseen")
    page.evaluate(HIDE, False)
    expect(paused(page, "unseen")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="ash").locator(".fleet-inbox")).to_have_text("10")
    corner.client.resume_agent("ash")
    expect(paused(page, "unseen")).to_have_count(0)


def test_an_engine_that_comes_back_with_another_store_is_followed_from_its_beginning(corner_at, corner):
    corner_at.allow("ERR_", "Failed to load resource")
    for number in range(30):
        corner.client.send("elm", f"word {number}")
    page = arrived(corner_at())
    corner.leave()
    expect(paused(page, "NOT LIVE")).to_be_visible()
    for file in corner.data.glob("wakeful.db*"):
        file.unlink()
    corner.up()
    expect(paused(page, "NOT LIVE")).to_have_count(0)
    arrived(page)
    expect(page.get_by_role("row").filter(has_text="elm").locator(".fleet-inbox")).to_have_text("0")
    corner.client.pause_agent("elm", reason="in the new one")
    expect(paused(page, "in the new one")).to_be_visible(timeout=3_000)
    corner.client.resume_agent("elm")


def test_when_the_token_is_changed_the_page_asks_for_the_new_one_and_goes_on_where_it_was(corner_at, corner):
    corner_at.allow("401")
    page = arrived(corner_at("#/?sort=-name"))
    assert corner.ask("token", "--rotate").returncode == 0
    field = page.get_by_label("token")
    expect(field).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("not accepted")
    field.fill(corner.token)
    field.press("Enter")
    arrived(page)
    assert page.url.endswith("#/?sort=-name")
    # An address with the token, typed into the tab where the page is open, is taken up too.
    page.goto(corner.address)
    arrived(page)
    assert corner.token not in page.url
