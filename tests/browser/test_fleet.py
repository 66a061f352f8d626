"""The fleet at a glance: who needs somebody, what each is doing, and what one is looking for stays looked for."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.places import arrived
from tests.engine.stage import heading

# More than fit on the screen, by far less than there are.
ROWS = 60
NAMES = "[...document.querySelectorAll('.fleet-row .fleet-name a')].map((one) => one.textContent)"


def names(page):
    return page.evaluate(NAMES)


def row(page, name):
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def chip(page, name):
    return page.get_by_role("group", name="filter by state").get_by_role("button", name=name)


def column(page, name):
    return page.get_by_role("columnheader", name=name)


# ---- at a glance


def test_who_needs_somebody_comes_first_and_each_row_says_what_is_going_on(dashboard, fleet):
    page = arrived(dashboard)
    order = names(page)
    assert order[0] == "thorn"
    assert order.index("kit") < order.index("lark") < order.index("jay") < order.index("fern")
    assert order[-1] == "rook"
    expect(page.get_by_role("main")).to_contain_text("need attention")
    expect(row(page, "thorn")).to_contain_text("quarantined after 5 failures")
    expect(row(page, "thorn")).to_contain_text("the printer is on fire")
    expect(row(page, "jay")).to_contain_text(re.compile(r"running (\d+m )?\d+s of 15m"))
    expect(row(page, "jay").get_by_role("link", name="running")).to_have_attribute(
        "href", f"#/runs/{fleet.run_of('jay')}"
    )
    expect(row(page, "lark")).to_contain_text("paused by operator: lunch, until")
    expect(row(page, "fern")).to_contain_text("backing off (streak")
    expect(row(page, "rook")).to_contain_text("disabled")
    expect(row(page, "flint")).to_contain_text("its source is away")
    expect(row(page, "wren").get_by_role("img", name="day: write ×3 → audit → rest → plan; now")).to_be_visible()
    expect(row(page, "wren")).to_contain_text(re.compile("done .* ago"))
    spent = row(page, "flint").get_by_role("meter", name="dollars today")
    expect(spent).to_have_attribute("aria-valuemax", "0.5")
    assert float(spent.get_attribute("aria-valuenow")) == pytest.approx(
        fleet.client.agent("flint")["today"]["usd"]["used"]
    )
    expect(row(page, "moss").locator(".fleet-inbox")).to_have_text(str(fleet.client.agent("moss")["unread"]))
    left = page.get_by_role("link", name=re.compile("^moss: notes.txt, since .*, shown to 1 run$"))
    expect(left).to_have_attribute("href", "#/agents/moss/inbox")


def test_the_strip_above_says_what_today_cost_and_what_happens_next(dashboard, fleet):
    page = arrived(dashboard)
    strip = page.locator(".summary")
    spent = fleet.client.status()["fleet"]["spent"]["usd"]
    assert spent > 0
    expect(strip).to_contain_text(f"${spent:.2f} of $12.00")
    expect(strip).to_contain_text(re.compile(r"next .*\w+ (in \d|now)"))
    strip.get_by_role("link", name="next").click()
    expect(column(page, "Next")).to_have_attribute("aria-sort", "ascending")


def test_who_woke_whom_lately_stands_above_the_rows(dashboard, fleet):
    page = arrived(dashboard)
    lately = page.get_by_role("main").get_by_role("listitem")
    expect(lately.filter(has_text="jay woke wren")).to_be_visible()
    said = fleet.client.tick("lark")
    assert said["verdict"] == "refuse"
    told = lately.filter(has_text="operator asked for lark")
    expect(told).to_contain_text("refused by paused")
    told.get_by_role("link").click()
    expect(page).to_have_url(f"{fleet.url}/#/decisions?wake={said['wake_id']}")


# ---- to look for somebody


def test_any_column_orders_the_rows_by_keyboard_too_and_the_address_keeps_it(dashboard, fleet):
    page = arrived(dashboard)
    everybody = sorted(names(page))
    expect(column(page, "Doing")).to_have_attribute("aria-sort", "ascending")
    column(page, "Agent").get_by_role("button").focus()
    page.keyboard.press("Enter")
    expect(column(page, "Agent")).to_have_attribute("aria-sort", "ascending")
    assert names(page) == everybody
    page.keyboard.press("Enter")
    expect(column(page, "Agent")).to_have_attribute("aria-sort", "descending")
    assert names(page) == everybody[::-1]
    assert page.url.endswith("#/?sort=-name")
    page.reload()
    arrived(page)
    expect(row(page, "thorn")).to_be_visible()
    assert names(page) == everybody[::-1]
    column(page, "Dollars").get_by_role("button").click()
    expect(column(page, "Dollars")).to_have_attribute("aria-sort", "descending")
    expect(column(page, "Agent")).to_have_attribute("aria-sort", "none")
    used = {told["name"]: told["today"]["usd"]["used"] for told in fleet.client.agents()["items"]}
    assert names(page)[:3] == sorted(used, key=lambda name: -used[name])[:3]
    for name in ("Day", "Wakes", "Minutes", "Inbox", "Tasks", "Last outcome", "Next"):
        column(page, name).get_by_role("button").click()
        expect(column(page, name)).to_have_attribute("aria-sort", re.compile("ascending|descending"))
        assert sorted(names(page)) == everybody


def test_what_is_filtered_stays_filtered_while_agents_come_and_go_and_on_the_way_back(dashboard, fleet):
    page = arrived(dashboard)
    chip(page, "paused").click()
    expect(chip(page, "paused")).to_have_attribute("aria-pressed", "true")
    assert names(page) == ["lark"]
    fleet.client.pause_agent("fern", reason="for a look")
    try:
        expect(chip(page, "paused 2")).to_be_visible()
        expect(row(page, "fern")).to_be_visible()
        page.get_by_role("link", name="lark", exact=True).click()
        expect(page).to_have_title("lark · wakeful")
        page.go_back()
        expect(row(page, "fern")).to_be_visible()
        assert names(page) == ["fern", "lark"]
    finally:
        fleet.client.resume_agent("fern")
    expect(row(page, "fern")).to_have_count(0)
    chip(page, "running").click()
    expect(row(page, "jay")).to_be_visible()
    assert page.url.endswith("#/?state=paused%2Crunning")
    page.reload()
    arrived(page)
    expect(row(page, "jay")).to_be_visible()
    expect(row(page, "wren")).to_have_count(0)
    chip(page, "all").click()
    expect(row(page, "wren")).to_be_visible()


def test_agents_are_found_by_name_state_and_what_they_do(dashboard):
    page = arrived(dashboard)
    page.keyboard.press("/")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    for words, found in (
        ("LARK", ["lark"]),
        ("lunch", ["lark"]),
        ("pip", ["pip-1", "pip-2"]),
        ("backing off", ["fern"]),
    ):
        field.fill(words)
        assert names(page) == found, words
    assert page.url.endswith("text=backing+off")
    field.fill("nobody of that name")
    expect(page.get_by_role("main")).to_contain_text("No agent is")
    page.get_by_role("button", name="Show all").click()
    expect(field).to_have_value("")
    expect(row(page, "wren")).to_be_visible()


# ---- to do something


def test_an_agent_is_ticked_woken_and_written_to_from_its_row(dashboard, fleet):
    page, client = arrived(dashboard), fleet.client
    said = page.get_by_role("status").last
    before = client.runs(agent="fern")["items"][0]["id"]
    row(page, "fern").get_by_role("button", name="Tick fern").click()
    expect(said).to_contain_text("fern: begun")
    fleet.until(lambda: client.runs(agent="fern")["items"][0]["id"] > before, "fern to be ticked")
    row(page, "lark").get_by_role("button", name="Tick lark").click()
    expect(said).to_contain_text("lark: refused by paused")
    opener = row(page, "moss").get_by_role("button", name="Wake moss")
    opener.click()
    dialog = page.get_by_role("dialog", name="Wake moss")
    dialog.get_by_label("Why").fill("a look at the front page")
    dialog.get_by_role("button", name="Wake it").click()
    dialog.get_by_role("button", name="Close").last.click()
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()
    assert any(wake["cause"] == "operator" for wake in client.decisions(agent="moss")["items"])
    row(page, "owl").get_by_role("button", name="Message owl").click()
    dialog = page.get_by_role("dialog", name="Message to owl")
    dialog.get_by_label("Subject").fill("from the fleet page")
    dialog.get_by_role("textbox", name="Message").fill("one line")
    dialog.get_by_role("button", name="Send").click()
    fleet.until(
        lambda: any(told["subject"] == "from the fleet page" for told in client.inbox("owl")["items"]),
        "the message to arrive",
    )


# ---- while things change


def test_a_row_keeps_the_focus_when_it_moves_to_another_place(dashboard, fleet):
    page = arrived(dashboard)
    link = page.get_by_role("link", name="fern", exact=True)
    link.focus()
    fleet.client.pause_agent("fern", reason="to see it move")
    try:
        expect(row(page, "fern")).to_contain_text("to see it move")
        # Not at once: nothing moves under a hand.
        order = names(page)
        assert order.index("fern") > order.index("jay")
        page.wait_for_function(
            f"() => {{ const found = {NAMES}; return found.indexOf('fern') < found.indexOf('jay'); }}"
        )
        expect(link).to_be_focused()
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("link", name="lark", exact=True)).to_be_focused()
    finally:
        fleet.client.resume_agent("fern")


def test_who_joins_the_fleet_is_shown_and_who_leaves_is_not(dashboard, fleet):
    page = arrived(dashboard)
    file = fleet.folder / "fleet.org"
    before = file.read_text()
    try:
        file.write_text(before + heading("vole", run="true", interval="1d"))
        fleet.client.reload()
        expect(row(page, "vole")).to_be_visible()
    finally:
        file.write_text(before)
        fleet.client.reload()
    expect(row(page, "vole")).to_have_count(0)
    expect(row(page, "wren")).to_be_visible()


def test_what_is_wrong_with_the_fleet_file_is_told_soon_after_it_is_saved(dashboard, fleet):
    page = arrived(dashboard)
    file = fleet.folder / "fleet.org"
    before = file.read_text()
    said = page.get_by_role("region", name="troubles").get_by_text("found 'banana'")
    try:
        file.write_text(before + heading("vole", run="true", interval="banana"))
        expect(said).to_be_visible()
    finally:
        file.write_text(before)
    expect(said).to_have_count(0)


# ---- small and many


def test_on_a_small_screen_each_agent_is_a_card_that_can_do_the_same(page_at):
    page = arrived(page_at(width=360, height=740))
    assert names(page)[0] == "thorn"
    expect(row(page, "thorn").get_by_role("button", name="Resume thorn")).to_be_visible()
    page.get_by_label("order by").select_option("name")
    assert names(page)[0] == "fern"
    page.get_by_role("button", name="turn round").click()
    assert names(page)[0] == "wren"


# The rows that were drawn since it was last asked, and those in which something else was changed.
WATCH = """() => {
  const drawn = new Set(), changed = new Set();
  const name = (row) => row?.querySelector(".fleet-name a")?.textContent;
  new MutationObserver((all) => all.forEach(({ addedNodes, target }) => {
    const rows = [...addedNodes].filter((one) => one.classList?.contains("row"));
    rows.forEach((one) => drawn.add(name(one)));
    if (!rows.length) changed.add(name((target.closest ? target : target.parentElement)?.closest(".row")));
  })).observe(document.querySelector("main"), { subtree: true, childList: true, characterData: true });
  window.seen = () => {
    const found = [[...drawn], [...changed].filter(Boolean)];
    drawn.clear();
    changed.clear();
    return found;
  };
}"""


def test_of_a_thousand_agents_only_what_is_new_and_in_sight_is_drawn(crowd_at, crowd):
    page = arrived(crowd_at())
    page.evaluate(WATCH)
    crowd.client.send("agent-0003", "one word")
    expect(row(page, "agent-0003").locator(".fleet-inbox")).to_have_text("1")
    assert page.evaluate("window.seen()") == [[], ["agent-0003"]]
    column(page, "Agent").get_by_role("button").click()
    column(page, "Agent").get_by_role("button").click()
    expect(row(page, "agent-0999")).to_be_visible()
    assert len(page.evaluate("window.seen()")[0]) < ROWS
    page.get_by_role("searchbox").fill("agent-07")
    expect(page.get_by_text("showing 100 of 1,000")).to_be_visible()
    expect(row(page, "agent-0799")).to_be_visible()
    assert len(page.evaluate("window.seen()")[0]) < ROWS
    page.mouse.wheel(0, 1_500)
    expect(row(page, "agent-0750")).to_be_visible()
    assert 0 < len(page.evaluate("window.seen()")[0]) < ROWS
