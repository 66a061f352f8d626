"""A picture of each page, light and dark: what the guide and the README show is what the tests have seen.

`make pictures` keeps them in docs/images; otherwise they go with the test.
"""

from playwright.sync_api import expect

from tests.browser.places import arrived
from tests.browser.tour import HIGH, PICTURED, WIDE, taken

# An empty page has less.
LEAST = 15_000


def test_each_page_has_its_picture_which_does_not_tell_where_it_was_taken(tour, fleet):
    for name in PICTURED:
        assert str(fleet.folder) not in tour.words[name], f"{name} tells where it was taken"
        for theme in ("light", "dark"):
            file = tour.album / f"{name.replace(' ', '-')}-{theme}.png"
            assert file.stat().st_size > LEAST, f"{file.name} shows next to nothing"


def test_a_paused_fleet_has_its_picture(page_at, fleet, album):
    page = arrived(page_at.new(width=WIDE, height=HIGH))
    fleet.client.pause(reason="a new prompt for everybody", duration="1h")
    try:
        expect(page.get_by_role("alert").filter(has_text="a new prompt")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="next beat")).to_have_count(0)
        assert str(fleet.folder) not in page.inner_text("body"), "it tells where it was taken"
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            file = album / f"paused-{theme}.png"
            taken(page, file)
            assert file.stat().st_size > LEAST
    finally:
        fleet.client.resume()
