"""A thousand agents: the page is there within a second, is small, and draws only what can be seen."""

from playwright.sync_api import expect

from tests.browser.chromium import settled
from tests.browser.places import arrived

FIRST_PAINT = 1_000.0
BYTES = 200_000
ROWS = 150
# A machine that is busy with other tests may be slow for a moment, not each time.
TRIES = 4

PAINTED = """() => new Promise((done) => new PerformanceObserver((list) => {
  const found = list.getEntriesByName("first-contentful-paint")[0];
  if (found) done(found.startTime);
}).observe({ type: "paint", buffered: true }))"""


def opened(crowd_at, crowd):
    """A tab that has never seen anything: when it was painted, when its rows were there, how many bytes came."""
    page = crowd_at.tab()
    wire = page.context.new_cdp_session(page)
    wire.send("Network.enable")
    wire.send("Network.setCacheDisabled", {"cacheDisabled": True})
    received = []
    wire.on("Network.loadingFinished", lambda told: received.append(told["encodedDataLength"]))
    page.goto(crowd.address, wait_until="commit")
    page.wait_for_function("() => document.querySelectorAll('[role=row]').length > 10", polling="raf")
    there = page.evaluate("performance.now()")
    expect(page.get_by_role("link", name="agent-0000")).to_be_visible()
    settled(page)
    painted = page.evaluate(PAINTED)
    page.context.close()
    return painted, there, sum(received)


def test_a_thousand_agents_are_painted_within_a_second_from_less_than_200_kB(crowd_at, crowd):
    tries: list[tuple[float, float, int]] = []
    while len(tries) < TRIES and all(painted >= FIRST_PAINT for painted, *_ in tries):
        tries.append(opened(crowd_at, crowd))
    painted, _, received = min(tries)
    assert painted < FIRST_PAINT, f"painted, there, bytes: {tries}"
    assert 30_000 < received < BYTES, f"{received} bytes"


def test_only_what_is_seen_is_drawn_and_all_of_it_can_be_reached(crowd_at, crowd):
    page = arrived(crowd_at())
    table = page.get_by_role("table").first
    expect(table).to_have_attribute("aria-rowcount", "1000")
    assert page.get_by_role("row").count() < ROWS
    page.keyboard.press("End")
    expect(page.get_by_role("link", name="agent-0999")).to_be_visible()
    assert page.get_by_role("row").count() < ROWS
    page.get_by_role("searchbox").fill("agent-0512")
    expect(page.get_by_role("link", name="agent-0512")).to_be_visible()
    settled(page)
    expect(page.get_by_role("link", name="agent-0000")).to_have_count(0)
