"""What is seen is what is true: through a restart of the engine, and while a hundred things a second change."""

import pytest
from playwright.sync_api import expect

from tests.browser.chromium import held
from tests.browser.flood import RATE, Flood
from tests.browser.places import arrived

SECONDS = 4.0
MANY = 8
# Of each change one element and its text would be left, and of the page around them far more.
LEFT = MANY


def test_the_page_says_that_it_is_stale_and_comes_back_by_itself(page_at, fleet):
    page_at.allow("Failed to load resource", "ERR_")
    page = arrived(page_at())
    fleet.leave()
    try:
        expect(page.get_by_role("alert").filter(has_text="NOT LIVE")).to_be_visible()
        expect(page.get_by_role("status").first).to_contain_text("stale")
        # What was known is still there.
        expect(page.get_by_role("link", name="wren").first).to_be_visible()
    finally:
        fleet.up()
    expect(page.get_by_role("alert").filter(has_text="NOT LIVE")).to_have_count(0)
    arrived(page)
    fleet.client.pause_agent("owl", reason="seen after the restart")
    try:
        expect(page.get_by_role("alert").filter(has_text="seen after the restart")).to_be_visible()
    finally:
        fleet.client.resume_agent("owl")


def test_what_happens_meanwhile_is_shown_without_asking(page_at, fleet):
    page = arrived(page_at())
    fleet.client.pause_agent("fern", reason="for a look")
    try:
        expect(page.get_by_role("row", name="fern").get_by_text("paused").first).to_be_visible()
    finally:
        fleet.client.resume_agent("fern")
    expect(page.get_by_role("row", name="fern").get_by_text("paused")).to_have_count(0)


@pytest.fixture
def flood(crowd):
    """Begun by the test; ended with it."""
    thread = Flood(crowd, SECONDS)
    yield thread
    thread.close()


def test_at_95_changes_a_second_neither_filter_nor_focus_nor_scroll_is_lost(crowd_at, flood):
    """In two tabs: somebody types in one, and has gone far down in the other."""
    typing, reading = arrived(crowd_at()), arrived(crowd_at())
    asked = []
    typing.on("request", lambda request: asked.append(request.url))
    reading.mouse.wheel(0, 2_000)
    link = reading.get_by_role("link", name="agent-0060")
    link.focus()
    reading.evaluate("document.activeElement.marked = true")
    assert reading.evaluate("scrollY") > 500
    before = link.bounding_box()["y"]
    field = typing.get_by_role("searchbox")
    field.click()
    flood.start()
    field.press_sequentially("agent-01", delay=250)
    while flood.is_alive():
        expect(field).to_be_focused()
        expect(field).to_have_value("agent-01")
        typing.wait_for_timeout(200)
    expect(field).to_be_focused()
    expect(field).to_have_value("agent-01")
    assert flood.changed == RATE * SECONDS, f"in {flood.took:.1f} s"
    expect(typing.get_by_role("row").filter(has_text="agent-0105")).to_be_visible()
    expect(typing.get_by_role("row").filter(has_text="agent-0042")).to_have_count(0)
    # Row after row would be 95 a second.
    assert len([url for url in asked if "/v1/agents" in url]) <= 5 * (flood.took + 2)
    # Where it stands before one's eyes: a banner that comes above all that moves nothing there.
    assert abs(link.bounding_box()["y"] - before) < 2
    assert reading.evaluate("document.activeElement.marked"), "another element has the focus, or none"
    expect(link).to_be_focused()


def test_what_is_no_longer_shown_is_let_go(crowd_at, flood):
    """One row after the other, so that each time most of the page stays what it was."""
    page = arrived(crowd_at())
    nodes = []
    for _ in range(3):
        for verb, shown in (("fail", "no open tasks"), ("retry", "1 open tasks")):
            for number in range(MANY):
                flood.client.change_tasks(verb, tasks=flood.tasks[number : number + 1])
                row = page.get_by_role("row").filter(has_text=f"agent-{number:04}")
                expect(row.get_by_label(shown)).to_be_visible()
        nodes.append(held(page).nodes)
    # At first, something of what was there before is still held.
    assert nodes[-1] < nodes[1] + LEFT, nodes
