"""The timeline: what happened, what comes, who woke whom; seen, moved and reached by keys as by the mouse."""

import json
import re
from datetime import UTC, datetime
from urllib.parse import parse_qs

from playwright.sync_api import expect

from tests.browser.chromium import settled
from tests.browser.places import arrived


def drawn(page, high=1000):
    """The page, with its lanes known."""
    page.set_viewport_size({"width": 1280, "height": high})
    arrived(page)
    expect(lane(page, "wren").get_by_role("link", name=re.compile("^wren: ")).first).to_be_attached()
    return page


def lane(page, agent):
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=agent, exact=True))


def mark(page, agent, pattern):
    """The latest that is like that."""
    return lane(page, agent).get_by_role("link", name=re.compile(pattern, re.S)).last


def tip(page):
    return page.get_by_role("tooltip")


def looked_at(page, otherwise=None):
    """The stretch in milliseconds, as the address keeps it; once it is another."""
    page.wait_for_function(
        "old => /since=/.test(location.hash) && location.hash !== old", arg=otherwise and otherwise[2]
    )
    kept = page.evaluate("location.hash")
    found = parse_qs(kept.partition("?")[2])
    return (*(datetime.fromisoformat(found[each][0]).timestamp() * 1000 for each in ("since", "until")), kept)


def test_it_tells_who_woke_whom_why_one_does_not_run_and_what_comes_next(page_at):
    page = drawn(page_at("#/timeline"))
    expect(lane(page, "owl")).to_contain_text("quiet hours")
    expect(mark(page, "owl", "^owl: quiet hours, from")).to_be_attached()
    expect(lane(page, "lark")).to_contain_text("paused by operator: lunch")
    expect(mark(page, "lark", "^lark: paused, by operator: lunch")).to_be_attached()
    for each in ("wren", "owl"):
        expect(mark(page, each, "^.*: the fleet paused, by operator: a new prompt for everybody")).to_be_attached()
    expect(mark(page, "jay", "^jay: running, since")).to_be_attached()
    expect(mark(page, "wren", r"^wren: \w+ expected, .* in \d+.*if every run before it")).to_be_attached()
    expect(mark(page, "thorn", "expected")).to_have_count(0)
    expect(page.get_by_text(re.compile(r"\w+ (woke|asked for) \w+ \d\d:\d\d")).first).to_be_visible()

    woken = mark(page, "wren", r"^wren: done.*woken by jay \(run \d+\); about its inbox")
    # Not by the pointer: another mark may lie over it.
    woken.focus()
    expect(tip(page)).to_contain_text("wren: done")
    expect(tip(page)).to_contain_text("woken by jay")
    expect(page.locator(".timeline-arrows .is-meant")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"#/runs/\d+$"))
    page.go_back()

    refused = mark(page, "moss", "^moss: wake refused.*woken by wren.*cooldown: .*possible again at")
    refused.focus()
    expect(tip(page)).to_contain_text("by cooldown: ")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"#/decisions\?wake=\d+$"))


def test_it_zooms_moves_and_follows_again_by_buttons_keys_wheel_and_hand(page_at):
    page = drawn(page_at("#/timeline"))
    now = page.get_by_role("button", name="now")
    expect(now).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="24 h").click()
    expect(page.get_by_role("columnheader", name="hours")).to_contain_text(re.compile(r"\w{3} \d+ \w{3}"))
    page.get_by_role("button", name="zoom in").click()
    expect(now).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="earlier").click()
    expect(now).to_have_attribute("aria-pressed", "false")
    first = looked_at(page)
    page.get_by_role("group", name="lanes").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("+")
    nearer = looked_at(page, first)
    assert nearer[0] > first[0]
    assert nearer[1] - nearer[0] < (first[1] - first[0]) * 0.8
    track = page.locator(".timeline-track").first.bounding_box()
    page.mouse.move(track["x"] + 300, track["y"] + 40)
    page.mouse.down()
    page.mouse.move(track["x"] + 500, track["y"] + 40, steps=4)
    page.mouse.up()
    dragged = looked_at(page, nearer)
    assert dragged[0] < nearer[0]
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    zoomed = looked_at(page, dragged)
    assert zoomed[1] - zoomed[0] < dragged[1] - dragged[0]
    page.keyboard.press("n")
    expect(now).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_text(re.compile(r"now \d\d:\d\d"))).to_be_visible()


def test_keys_go_from_mark_to_mark_and_what_happens_takes_neither_focus_nor_zoom_nor_scroll(page_at, fleet):
    page = drawn(page_at("#/timeline?past=7200"), 500)
    running = mark(page, "jay", "^jay: running")
    running.focus()
    page.keyboard.press("ArrowLeft")
    expect(tip(page)).to_contain_text(re.compile("jay: (?!running)"))
    page.keyboard.press("ArrowUp")
    expect(tip(page)).to_contain_text("flint: ")
    page.keyboard.press("ArrowDown")
    expect(tip(page)).to_contain_text("jay: ")
    down = page.evaluate("scrollY")
    held = page.evaluate("document.activeElement.dataset.key")
    last = fleet.client.runs(agent="moss")["items"][0]["id"]
    fleet.client.tick("moss", reason="look again")
    expect(mark(page, "moss", "^moss: done, .*an operator asked for it; about its beat")).to_be_attached()
    assert fleet.client.runs(agent="moss")["items"][0]["id"] != last
    expect(tip(page)).to_contain_text("jay: ")
    assert page.evaluate("[scrollY, document.activeElement.dataset.key]") == [down, held]
    assert "past=7200" in page.url
    page.keyboard.press("Escape")
    expect(tip(page)).to_have_count(0)


def test_lanes_are_found_by_name_doing_and_state_and_all_of_it_is_a_table_too(page_at):
    page = drawn(page_at("#/timeline"))
    find, state = page.get_by_role("searchbox", name="find lanes"), page.get_by_role("combobox", name="state")
    find.fill("lunch, moss")
    expect(page.get_by_text("2 lanes", exact=True)).to_be_visible()
    expect(lane(page, "lark")).to_be_visible()
    expect(lane(page, "moss")).to_be_visible()
    find.fill("")
    state.select_option("quarantined")
    expect(page.get_by_text("1 lane", exact=True)).to_be_visible()
    expect(lane(page, "thorn")).to_be_visible()
    page.get_by_role("button", name="as a table").click()
    expect(page.get_by_role("cell", name=re.compile("failed")).first).to_be_visible()
    expect(page).to_have_url(re.compile("state=quarantined&as=table"))
    page.reload()
    expect(page.get_by_role("cell", name=re.compile("failed")).first).to_be_visible()
    state.select_option("disabled")
    expect(page.get_by_text("Nothing happened in this stretch.")).to_be_visible()
    for wide in (360, 3840):
        page.set_viewport_size({"width": wide, "height": 1200})
        page.goto(page.url.partition("?")[0] + f"?find=moss&past={wide}")
        expect(lane(page, "moss")).to_be_visible()
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= wide


def test_of_a_thousand_lanes_those_in_sight_are_asked_for_and_drawn(crowd_at):
    page = crowd_at()
    asked = []
    page.on("request", lambda sent: "/v1/timeline" in sent.url and asked.append(sent.url.count("agent-")))
    page.goto(f"{crowd_at.fleet.url}/#/timeline?past=259200")
    expect(page.get_by_role("link", name=re.compile("^agent-0000: .*expected")).first).to_be_attached()
    assert page.locator("canvas").count() < 90
    page.keyboard.press("End")
    expect(page.get_by_role("link", name=re.compile("^agent-0999: .*expected")).first).to_be_attached()
    assert page.locator("canvas").count() < 90
    assert 0 < sum(asked) < 300


TICKS = """async ([since, until, wide]) => {
  const { ticks } = await import("/dashboard/timeline_scale.js");
  return JSON.stringify(ticks({ since, until }, wide).map((tick) => tick.label));
}"""


def test_hours_are_the_readers_also_when_clocks_are_changed(browser, fleet):
    context = browser.new_context(timezone_id="Europe/Berlin")
    page = context.new_page()
    page.goto(fleet.url)
    since, until = (datetime(2026, 3, day, hour, tzinfo=UTC).timestamp() * 1000 for day, hour in ((28, 21), (29, 3)))
    found = json.loads(page.evaluate(TICKS, [since, until, 700]))
    context.close()
    assert found == ["22:00", "23:00", "Sun 29 Mar", "01:00", "03:00", "04:00", "05:00"]
