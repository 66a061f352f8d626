"""The log of verdicts: what was said to each wake, in plain words; found again; and never moving while it is read."""

import re

from playwright.sync_api import expect

from tests.browser.chromium import settled
from tests.browser.places import arrived


def rows(page):
    return page.locator(".work-verdicts").get_by_role("listitem")


def test_a_verdict_is_told_in_plain_words_and_found_by_what_is_looked_for(page_at, fleet):
    refused = fleet.client.decisions(agent="moss", verdict="refuse", guard="cooldown", limit=1)["items"][0]
    page = arrived(page_at("#/decisions"))
    page.get_by_label("Agent").fill("moss")
    page.get_by_label("Agent").press("Tab")
    page.get_by_label("Verdict").select_option("refuse")
    page.get_by_label("Guard").select_option("cooldown")
    expect(rows(page).first).to_contain_text("refused by cooldown")
    expect(rows(page).first).to_contain_text(refused["reason"])
    expect(rows(page).first).to_contain_text(re.compile("may be asked again at|could be asked again from"))
    expect(rows(page).first).to_contain_text(f"{refused['from']} woke it")
    assert re.search("agent=moss.*verdict=refuse.*guard=cooldown", page.url)
    page.reload()
    expect(page.get_by_label("Guard")).to_have_value("cooldown")
    expect(rows(page).first).to_contain_text("refused by cooldown")
    page.get_by_label("Search").fill("nothing has these words")
    expect(page.get_by_text("No verdict matches.")).to_be_visible()
    page.get_by_role("button", name="clear").click()
    page.get_by_label("Cause").select_option("task")
    expect(rows(page).first).to_contain_text("its task")
    page.get_by_role("button", name="last 15m").click()
    expect(page.get_by_label("Since")).not_to_have_value("")


def test_one_decision_is_told_whole(page_at, fleet):
    refused = fleet.client.decisions(agent="moss", verdict="refuse", limit=1)["items"][0]
    page = arrived(page_at("#/decisions?agent=moss&verdict=refuse"))
    page.get_by_role("link", name=f"wake {refused['wake_id']}", exact=True).first.click()
    expect(page.get_by_role("heading", name=f"Wake {refused['wake_id']}: it was refused")).to_be_visible()
    expect(page.get_by_text(refused["reason"])).to_be_visible()
    expect(page.get_by_text(f"{refused['from']} woke it")).to_be_visible()
    page.get_by_role("link", name="all decisions", exact=True).click()
    expect(rows(page).first).to_be_visible()


def test_new_verdicts_are_announced_and_do_not_move_what_is_read(page_at, fleet):
    page = arrived(page_at("#/decisions?agent=rook"))
    before = rows(page).count()
    fleet.client.tick("rook", reason="knock, knock")
    announced = page.get_by_role("button", name="1 new")
    expect(announced).to_be_visible()
    assert rows(page).count() == before
    announced.click()
    expect(rows(page)).to_have_count(before + 1)
    expect(announced).to_have_count(0)


def test_the_list_goes_on_when_that_is_asked_for(page_at):
    page = arrived(page_at("#/decisions"))
    expect(rows(page)).to_have_count(100)
    page.get_by_role("button", name="show more").click()
    expect(rows(page)).to_have_count(200)


def test_a_year_is_typed_one_digit_after_the_other(page_at):
    """The browser tells of each: the year 2 is no year to look for, and takes nothing away."""
    page = arrived(page_at("#/decisions"))
    field = page.get_by_label("Since")
    for year in ("0002", "0020", "0202"):
        field.fill(f"{year}-11-18T10:00")
        settled(page)
        expect(field).to_have_value(f"{year}-11-18T10:00")
        assert "since" not in page.url
    field.fill("2025-11-18T10:00")
    expect(page).to_have_url(re.compile("since=2025-11-1"))
    expect(field).to_have_value("2025-11-18T10:00")
    expect(rows(page).first).to_be_visible()
