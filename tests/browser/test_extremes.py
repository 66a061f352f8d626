"""Long names and long reasons, windows of every size, and a clock that is wrong."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.browser.chromium import settled
from tests.browser.places import arrived
from tests.browser.tour import TOO_WIDE
from tests.engine.stage import heading

NAME = "reads-the-letters-of-the-eastern-archive-and-answers-every-one"
REASON = "מחר בבוקר " + "thereisnospaceinthis" * 5 + " and it goes on, for whoever asks why nothing happens" * 5

CUT_OFF = """() => [...document.querySelectorAll(".fleet-row")].slice(0, 3).flatMap((row) => {
  const edges = [row, row.querySelector(".fleet-acts")].map((each) => each.getBoundingClientRect());
  const isOut = ({ left, right }) => edges.some((edge) => right > edge.right + 0.5 || left < edge.left - 0.5);
  const buttons = [...row.querySelectorAll("button")];
  return buttons.filter((each) => isOut(each.getBoundingClientRect())).map((each) => each.ariaLabel);
})"""


def test_at_every_width_whatever_can_be_done_to_an_agent_lies_within_its_row(page_at):
    page, found = arrived(page_at()), {}
    for width in (360, 701, 1200, 1280, 1700, 1920, 2119, 2120, 3840):
        page.set_viewport_size({"width": width, "height": 740})
        settled(page)
        if said := page.evaluate(CUT_OFF):
            found[width] = said
    assert found == {}


@pytest.fixture
def longest(shop):
    """An agent with a name as long as may be, paused for a reason as long as may be."""
    file = shop.folder / "fleet.org"
    before = file.read_text()
    try:
        file.write_text(before + heading(NAME, run="true", interval="1d"))
        shop.client.reload()
        shop.client.pause_agent(NAME, reason=REASON[:400])
        yield NAME
        shop.client.resume_agent(NAME)
    finally:
        file.write_text(before)
        shop.client.reload()


def test_the_longest_name_and_reason_widen_no_page_of_a_small_screen(shop_at, shop, longest):
    page, found = shop_at(width=360, height=740), {}
    for route in ("#/", "#/timeline", *(f"#/agents/{longest}{tab}" for tab in ("", "/why", "/inbox", "/settings"))):
        page.goto(f"{shop.url}/{route}")
        arrived(page)
        expect(page.get_by_role("alert").get_by_role("button", name=f"Resume {longest}")).to_be_in_viewport(ratio=1)
        if said := page.evaluate(TOO_WIDE):
            found[route] = said
    assert found == {}
    page.goto(f"{shop.url}/#/")
    expect(page.get_by_role("row").get_by_role("link", name=longest)).to_have_attribute("title", longest)


def test_a_pause_with_a_long_reason_leaves_room_for_the_page_and_can_be_lifted(shop_at, shop):
    page = arrived(shop_at())
    shop.client.pause(reason=REASON[:400])
    try:
        banner = page.get_by_role("alert").filter(has_text="THE FLEET IS PAUSED")
        expect(banner).to_be_visible()
        for width, height in ((360, 740), (640, 400), (320, 256), (1280, 320), (1280, 800)):
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate("scrollTo(0, 2_000)")
            settled(page)
            box = page.locator(".banners").bounding_box()
            assert box["y"] >= 0 and box["height"] < height / 2, f"at {width} x {height}"
            expect(banner.get_by_role("button", name="Resume the fleet")).to_be_in_viewport(ratio=1)
    finally:
        shop.client.resume()
    expect(banner).to_have_count(0)


def test_whoever_goes_back_is_not_asked_to_pause_any_more(page_at, fleet):
    page = arrived(page_at("#/decisions"))
    page.goto(f"{fleet.url}/#/agents/wren")
    arrived(page)
    page.get_by_role("main").get_by_role("button", name="Pause wren").click()
    expect(page.get_by_role("dialog", name="Pause wren")).to_be_visible()
    page.go_back()
    expect(page).to_have_title("Decisions · wakeful")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.go_forward()
    expect(page).to_have_title("wren · wakeful")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_clock_that_is_wrong_here_changes_nothing_that_is_told(page_at, fleet, hours):
    """The engine's is the one that counts."""
    sent = fleet.client.send("rook", "for later")["message"]["id"]
    fleet.client.snooze("rook", [sent], "1h")
    page = page_at.tab()
    page.clock.install(time=datetime.now(UTC) + timedelta(hours=hours))
    page.goto(fleet.address)
    arrived(page)
    row = page.get_by_role("row", name="jay")
    expect(row).to_contain_text("running")
    expect(row).not_to_contain_text("beyond its limit")
    page.goto(f"{fleet.url}/#/agents/rook/inbox")
    page.get_by_role("button", name="all", exact=True).click()
    expect(page.get_by_role("listitem").filter(has_text=f"message {sent}")).to_contain_text("put off until")
    page.goto(f"{fleet.url}/#/decisions")
    arrived(page)
    page.get_by_role("button", name="last 1h").click()
    since = fleet.client.decisions(since=(datetime.now(UTC) - timedelta(hours=1)).isoformat(), limit=100)["items"]
    expect(page.locator(".work-verdict")).to_have_count(len(since))
    fleet.client.mark_read("rook", [sent])
