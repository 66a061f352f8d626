"""axe-core finds nothing serious on any page, light or dark, wide or narrow."""

from importlib.resources import files

import pytest

from tests.browser.places import NAMES, arrived, route

AXE = files("axe_playwright_python") / "axe.min.js"
FINDINGS = """async (options) => (await axe.run(document, { resultTypes: ["violations"], ...options })).violations
  .filter((each) => ["serious", "critical"].includes(each.impact))
  .map((each) => `${each.id}: ${each.help}: ` + each.nodes.slice(0, 3)
    .map((node) => `${node.html.slice(0, 200)} ${node.any[0]?.message ?? ""}`).join(" | "))"""

# What a theme can change.
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
COLOURED = ("fleet", "timeline", "agent", "settings", "live run", "tasks", "decisions")


def findings(page, options=None):
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8") + "; null")
    return page.evaluate(FINDINGS, options or {})


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_bars_anybody_from_a_page(page_at, fleet, theme):
    page = page_at(theme=theme)
    found = {}
    for name in COLOURED if theme == "dark" else NAMES:
        page.goto(f"{fleet.url}/{route(fleet, name)}")
        arrived(page)
        if said := findings(page, COLOURS if theme == "dark" else None):
            found[name] = said
    assert found == {}


def test_nothing_bars_anybody_from_pausing(page_at):
    page = arrived(page_at())
    page.get_by_role("button", name="Pause fleet").click()
    assert findings(page) == []


def test_nothing_bars_anybody_from_entering(page_at):
    assert findings(page_at(entered=False)) == []


def test_nothing_bars_anybody_on_a_small_screen(page_at):
    assert findings(arrived(page_at(width=360, height=740))) == []


def test_that_axe_sees_what_is_wrong(page_at):
    page = arrived(page_at())
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert any("button-name" in found for found in findings(page))
