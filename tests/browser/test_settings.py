"""The limits of an agent, edited on its page: with where each comes from, live, and never over another's change."""

import pytest
from playwright.sync_api import expect

from tests.browser.places import arrived

# Of the document's own page: from, to, step.
SLIDERS = {
    "Cooldown": ("0", "3600", "30"),
    "Wakes a day": ("0", "100", "1"),
    "Wakes a pair": ("0", "50", "1"),
    "Minutes a day": ("10", "1440", "10"),
}


@pytest.fixture
def page(page_at):
    page_at.allow("400", "412")
    return arrived(page_at("#/agents/wren/settings"))


@pytest.fixture(autouse=True)
def as_declared(fleet):
    yield
    told = fleet.client.settings("wren")["settings"]
    if changed := {name: None for name, setting in told.items() if setting["origin"] == "override"}:
        fleet.client.set("wren", changed)


def field(page, word):
    return page.get_by_label(word, exact=True)


def limit(page, word):
    return page.locator(".agent-limit").filter(has=field(page, word))


def held(fleet, name):
    return fleet.client.settings("wren")["settings"][name]["value"]


def save(page):
    page.get_by_role("button", name="Save").click()


def test_every_limit_is_there_with_its_value_and_where_it_comes_from(page, fleet):
    told = fleet.client.settings("wren")["settings"]
    for name, setting in told.items():
        box = page.locator(f"input[name={name}]")
        expect(box).to_have_value(setting["value"] or "")
        expect(page.locator(".agent-limit").filter(has=box)).to_contain_text(setting["origin"])
    assert {setting["origin"] for setting in told.values()} == {"default", "fleet", "agent"}


def test_the_sliders_are_those_of_the_document_and_move_with_the_field(page, fleet):
    for word, (least, most, step) in SLIDERS.items():
        slider = page.get_by_role("slider", name=f"{word}, slider")
        assert [slider.get_attribute(name) for name in ("min", "max", "step")] == [least, most, step], word
    slider = page.get_by_role("slider", name="Cooldown, slider")
    expect(slider).to_have_value("300")
    slider.focus()
    slider.press("ArrowRight")
    expect(field(page, "Cooldown")).to_have_value("5m30s")
    field(page, "Cooldown").fill("10m")
    expect(slider).to_have_value("600")
    save(page)
    expect(limit(page, "Cooldown")).to_contain_text("instead of 5m (default)")
    assert held(fleet, "cooldown") == "10m"


def test_a_limit_edited_in_the_dashboard_holds_for_the_next_wake_without_a_restart(den_at, den):
    page, client = arrived(den_at("#/agents/moss/settings")), den.client
    engine, last = client.status()["engine"]["since"], client.decisions(agent="moss")["items"][0]["event_id"]
    page.get_by_role("slider", name="Cooldown, slider").press("Home")
    field(page, "Wakes a day").fill("0")
    field(page, "Wakes a day").press("Enter")
    expect(limit(page, "Wakes a day")).to_contain_text("override")
    client.tick("hex", reason="wake moss")

    def verdicts():
        told = client.decisions(agent="moss")["items"]
        return [each for each in told if each["event_id"] > last and each["cause"] == "peer"]

    den.until(verdicts, "hex to wake moss")
    assert [verdicts()[0][name] for name in ("verdict", "guard", "numbers")] == [
        "refuse",
        "wakes_per_day",
        verdicts()[0]["numbers"] | {"limit": 0},
    ]
    page.get_by_role("button", name="Reset Wakes a day to 12").click()
    expect(limit(page, "Wakes a day")).to_contain_text("default")
    expect(field(page, "Wakes a day")).to_have_value("12")
    page.get_by_role("button", name="Reset Cooldown to 5m").click()
    expect(field(page, "Cooldown")).to_have_value("5m")
    assert client.status()["engine"]["since"] == engine, "nobody was restarted"


def test_what_is_no_value_is_said_in_the_servers_words_and_nothing_is_lost(page, fleet):
    field(page, "Wakes a pair").fill("9")
    field(page, "Cooldown").fill("soon")
    save(page)
    wrong = limit(page, "Cooldown").get_by_role("alert")
    expect(wrong).to_contain_text("expected a duration, found 'soon'")
    expect(wrong).to_contain_text("write it as 45s, 10m, 2h, 1d or 1h30m")
    expect(field(page, "Cooldown")).to_be_focused()
    expect(field(page, "Wakes a pair")).to_have_value("9")
    assert held(fleet, "max_wakes_per_pair") == "12", "all or nothing"
    page.get_by_role("link", name="Why", exact=True).click()
    page.get_by_role("link", name="Settings", exact=True).click()
    expect(field(page, "Cooldown")).to_have_value("soon")
    field(page, "Cooldown").fill("20m")
    save(page)
    expect(page.get_by_role("button", name="Nothing is changed")).to_be_visible()
    assert (held(fleet, "cooldown"), held(fleet, "max_wakes_per_pair")) == ("20m", "9")


def test_what_somebody_else_changes_is_seen_at_once_and_takes_nothing_away(page, fleet):
    field(page, "Cooldown").fill("7m")
    fleet.client.set("wren", {"max_chain": "4"})
    expect(field(page, "Chain")).to_have_value("4")
    expect(field(page, "Cooldown")).to_have_value("7m")
    expect(page.get_by_role("table", name="changed meanwhile")).to_have_count(0)
    save(page)
    expect(limit(page, "Cooldown")).to_contain_text("override")
    assert (held(fleet, "cooldown"), held(fleet, "max_chain")) == ("7m", "4")


def test_two_who_change_the_same_limit_see_both_and_choose(page, fleet):
    field(page, "Cooldown").fill("7m")
    field(page, "Wakes a day").fill("20")
    fleet.client.set("wren", {"cooldown": "9m", "max_wakes_per_day": "30"})
    table = page.get_by_role("table", name="changed meanwhile")
    row = table.get_by_role("row").filter(has_text="Cooldown")
    for told in ("5m (default)", "9m (override)", "7m"):
        expect(row).to_contain_text(told)
    expect(page.get_by_role("button", name="Save 2 changes")).to_be_disabled()
    row.get_by_role("button", name="Keep theirs: Cooldown 9m").click()
    table.get_by_role("button", name="Keep mine: Wakes a day 20").click()
    expect(table).to_have_count(0)
    expect(field(page, "Cooldown")).to_have_value("9m")
    page.get_by_role("button", name="Save 1 change").click()
    expect(page.get_by_role("button", name="Nothing is changed")).to_be_visible()
    assert (held(fleet, "cooldown"), held(fleet, "max_wakes_per_day")) == ("9m", "20")


def test_a_change_that_was_not_heard_of_in_time_is_not_overwritten(page, fleet):
    def overtake(route):
        fleet.client.set("wren", {"cooldown": "9m"})
        route.continue_()

    page.route("**/v1/agents/wren/settings", overtake, times=1)
    field(page, "Cooldown").fill("7m")
    save(page)
    told = page.get_by_role("alert").filter(has_text="Nothing was saved: somebody else has changed 1 limit")
    expect(told).to_contain_text("9m (override)")
    assert held(fleet, "cooldown") == "9m"
    told.get_by_role("button", name="Keep mine: Cooldown 7m").click()
    save(page)
    expect(page.get_by_role("button", name="Nothing is changed")).to_be_visible()
    assert held(fleet, "cooldown") == "7m"


def test_what_was_typed_is_taken_back(page, fleet):
    field(page, "Dollars a day").fill("9.00")
    expect(limit(page, "Dollars a day")).to_contain_text("not saved")
    page.get_by_role("button", name="Discard").click()
    expect(field(page, "Dollars a day")).to_have_value("$2.5")
    assert held(fleet, "budget_usd") == "$2.5"
