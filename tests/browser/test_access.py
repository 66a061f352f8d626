"""axe-core finds nothing serious on any page, light or dark, wide or narrow."""

import pytest

from tests.browser.places import arrived
from tests.browser.tour import barred


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_bars_anybody_from_a_page(tour, theme):
    assert tour.barred[theme] == {}


def test_nothing_bars_anybody_from_pausing(page_at):
    page = arrived(page_at())
    page.get_by_role("button", name="Pause fleet").click()
    assert barred(page) == []


def test_nothing_bars_anybody_from_entering(page_at):
    assert barred(page_at(entered=False)) == []


def test_nothing_bars_anybody_on_a_small_screen(page_at):
    assert barred(arrived(page_at(width=360, height=740))) == []


def test_that_axe_sees_what_is_wrong(page_at):
    page = arrived(page_at.new())
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert any("button-name" in found for found in barred(page))
