"""What holds for every page: who may enter, where one is, the keyboard, light and dark, small and large."""

import re

from playwright.sync_api import expect

from tests.browser.chromium import answered
from tests.browser.places import arrived
from tests.browser.tour import TOO_WIDE, UNUSABLE

# ---- who may enter


def test_the_token_is_taken_out_of_the_address(page_at, fleet):
    page = arrived(page_at.new())
    assert page.url == f"{fleet.url}/#/"
    assert fleet.token not in page.content()
    page.goto("about:blank")
    page.go_back()
    arrived(page)
    assert page.url == f"{fleet.url}/#/"


def test_the_token_is_kept_over_a_reload_but_not_for_another_tab(page_at, fleet):
    page = page_at.new("#/timeline")
    page.reload()
    arrived(page)
    assert page.url == f"{fleet.url}/#/timeline"
    another = page.context.new_page()
    another.goto(fleet.url)
    expect(another.get_by_label("token")).to_be_visible()


def test_without_a_token_the_page_asks_for_it(page_at, fleet):
    page = page_at(entered=False)
    field = page.get_by_label("token")
    expect(field).to_be_focused()
    assert field.get_attribute("type") == "password"
    field.fill(fleet.token)
    field.press("Enter")
    arrived(page)
    assert fleet.token not in page.url


def test_a_wrong_token_is_told_and_asked_for_again(page_at, fleet):
    page_at.allow("401")
    page = page_at(entered=False)
    page.get_by_label("token").fill("not-the-token")
    page.get_by_role("button", name="Enter").click()
    expect(page.get_by_role("alert")).to_contain_text("token")
    page.get_by_label("token").fill(fleet.token)
    page.get_by_role("button", name="Enter").click()
    arrived(page)
    expect(page.get_by_role("alert").filter(has_text="wrong")).to_have_count(0)


def test_whoever_has_no_token_is_shown_nothing_of_the_fleet(page_at):
    page = page_at("#/agents/wren", entered=False)
    expect(page.get_by_label("token")).to_be_visible()
    assert "wren" not in page.content()


# ---- where one is


def test_each_page_is_one_click_away_and_says_that_one_is_there(page_at):
    page = arrived(page_at("#/"))
    for name in ("Timeline", "Tasks", "Dead letters", "Decisions", "Fleet"):
        link = page.get_by_role("navigation").get_by_role("link", name=name)
        link.click()
        arrived(page)
        expect(link).to_have_attribute("aria-current", "page")
        expect(page).to_have_title(re.compile(f"^{name} · wakeful"))


def test_back_and_forward_lead_where_one_was(page_at, fleet):
    page = arrived(page_at("#/decisions"))
    page.get_by_role("navigation").get_by_role("link", name="Tasks").click()
    page.goto(f"{fleet.url}/#/agents/wren")
    expect(page).to_have_title("wren · wakeful")
    page.go_back()
    expect(page).to_have_title("Tasks · wakeful")
    page.go_forward()
    expect(page).to_have_title("wren · wakeful")


def test_an_address_that_leads_nowhere_is_told_so(page_at, fleet):
    page_at.allow("404")
    page = page_at()
    for place in ("#/nowhere", "#/agents/nobody", "#/runs/999999", "#/tasks/999999"):
        page.goto(f"{fleet.url}/{place}")
        said = re.compile("nothing here|no (such )?(agent|run|task)|unknown", re.I)
        expect(page.get_by_role("main")).to_contain_text(said)


def test_the_fleet_is_summed_up_on_every_page(page_at):
    said = arrived(page_at("#/decisions")).get_by_role("main")
    for words in ("night desk", "12 agents", "of 4", "of $12.00"):
        expect(said).to_contain_text(words)


# ---- the keyboard


def test_every_control_can_be_used_by_keyboard_and_shows_where_one_is(tour):
    assert tour.unusable == {}


def test_the_tab_key_goes_from_the_top_of_the_page_to_its_end(page_at):
    page = arrived(page_at("#/tasks"))
    page.evaluate("window.places = []; document.activeElement.blur()")
    place = "window.places.push([...document.querySelectorAll('*')].indexOf(document.activeElement))"
    for _ in range(20):
        page.keyboard.press("Tab")
        page.evaluate(place)
    places = page.evaluate("window.places")
    assert places == sorted(places)
    assert len(set(places)) == len(places), "the focus is caught somewhere"


def test_escape_closes_a_dialog_and_leads_back_to_where_it_was_opened(page_at):
    page = arrived(page_at("#/"))
    opener = page.get_by_role("button", name="Pause fleet")
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_label("Why")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()


def test_the_navigation_can_be_skipped(page_at):
    page = arrived(page_at.new())
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    assert page.url.endswith("#/")


# ---- light and dark, small and large


def brightness(page):
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


def test_the_page_is_light_or_dark_as_the_system_is_and_as_one_chooses(page_at):
    page = arrived(page_at.new(theme="dark"))
    assert brightness(page) < 80
    page.emulate_media(color_scheme="light")
    assert brightness(page) > 180
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="theme").click()
    assert brightness(page) > 180
    page.reload()
    arrived(page)
    assert brightness(page) > 180
    page.get_by_role("button", name="theme").click()
    assert brightness(page) < 80


def test_nothing_is_wider_than_the_window(tour):
    assert tour.too_wide == {}


# ---- that these tests see what is wrong


def test_that_a_page_which_complains_is_heard(page_at, fleet):
    page = arrived(page_at.new())
    page.evaluate("console.error('of its own'); setTimeout(() => { throw new Error('fallen'); })")
    page.evaluate("fetch('http://localhost:1/').catch(() => 0)")
    page.evaluate(f"fetch('/v1/status?token={fleet.token}').then((answer) => answer.text())")
    page.evaluate("document.body.setAttribute('style', 'color: red')")
    answered(page)
    said = " ".join(page_at.complaints())
    for words in ("of its own", "fallen", "status of 401", "violates", "style-src", "the token is in an address"):
        assert words in said, said
    page_at.allow("")


def test_that_what_cannot_be_used_by_keyboard_or_is_too_wide_is_found(page_at):
    page = arrived(page_at.new())
    page.evaluate("""() => {
      const odd = document.createElement("div");
      odd.textContent = "a button of sorts";
      odd.style.cursor = "pointer";
      odd.style.width = "5000px";
      const blind = document.createElement("button");
      blind.textContent = "unseen";
      blind.style.outline = "none";
      blind.style.all = "initial";
      document.querySelector("main").append(odd, blind);
    }""")
    said = " ".join(page.evaluate(UNUSABLE))
    assert "only for a mouse: DIV a button of sorts" in said and "not seen to be reached: BUTTON unseen" in said
    assert "a button of sorts" in page.evaluate(TOO_WIDE)[0]
