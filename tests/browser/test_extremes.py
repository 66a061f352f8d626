"""Long names and long reasons, windows of every size, and a clock that is wrong."""

from tests.browser.chromium import settled
from tests.browser.places import arrived

CUT_OFF = """() => [...document.querySelectorAll(".fleet-row")].slice(0, 3).flatMap((row) => {
  const edge = row.getBoundingClientRect().right;
  const buttons = [...row.querySelectorAll("button")];
  return buttons.filter((each) => each.getBoundingClientRect().right > edge).map((each) => each.ariaLabel);
})"""


def test_at_every_width_whatever_can_be_done_to_an_agent_lies_within_its_row(page_at):
    page, found = arrived(page_at()), {}
    for width in (360, 701, 1200, 1280, 1700, 1920, 2119, 2120, 3840):
        page.set_viewport_size({"width": width, "height": 740})
        settled(page)
        if said := page.evaluate(CUT_OFF):
            found[width] = said
    assert found == {}
