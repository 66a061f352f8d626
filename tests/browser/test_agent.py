"""The page of one agent: what it does, why it does not, what comes next; and everything that may be asked of it."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect

from tests.browser.places import arrived

GUARDS = 14


def region(page, name):
    return page.get_by_role("region", name=name)


def button(page, name):
    return page.get_by_role("main").get_by_role("button", name=name)


@pytest.fixture(autouse=True)
def meant(page_at):
    """What is brought about on purpose: mistakes, names that nobody has, and an answer that is lost."""
    page_at.allow("400", "404", "ERR_FAILED")


# ---- at a glance


def test_the_first_thing_told_is_why_it_is_not_running(page_at, fleet):
    page, found = page_at("#/agents/lark"), {}
    for name in ("lark", "thorn", "owl", "flint", "kit", "rook"):
        page.goto(f"{fleet.url}/#/agents/{name}")
        answer = region(page, f"Why is {name} not running?").locator(".agent-why-answer")
        expect(answer).not_to_have_text("…")
        expect(answer).not_to_be_empty()
        found[name] = answer.inner_text()
    assert "lunch" in found["lark"] and "Held by a pause" in found["lark"]
    assert "quarantine" in found["thorn"]
    assert "quiet hours until" in found["owl"] or "held by quiet_hours" in found["owl"]
    assert "$" in found["flint"]
    assert "no timer" in found["kit"]
    assert found["rook"].strip()
    assert not [text for text in found.values() if "T" in text and re.search(r"\d{4}-\d\d-\d\dT", text)]


def test_the_numbers_of_a_guard_about_money_are_dollars(page_at):
    page = arrived(page_at("#/agents/flint/why"))
    spend = page.get_by_role("row").filter(has_text="Are the dollars or tokens of today used up?")
    expect(spend.locator(".agent-numbers")).to_contain_text("limit $0.50")


def test_one_that_runs_says_who_asked_for_it(page_at, fleet):
    page = arrived(page_at("#/agents/jay"))
    answer = region(page, "Why is jay running?")
    expect(answer).to_contain_text("asked for by operator: read the archive")
    expect(page.locator(".agent-doing")).to_contain_text("running")


def test_one_page_shows_what_comes_what_is_used_its_day_and_its_cost(page_at):
    page = arrived(page_at("#/agents/wren"))
    ahead = region(page, "What happens next").get_by_role("listitem")
    expect(ahead).to_have_count(6)
    expect(ahead.filter(has_text=re.compile(r"write\s+1 of 3"))).not_to_have_count(0)
    steps = region(page, "Its day").get_by_role("list").get_by_role("listitem")
    expect(steps).to_have_count(4)
    expect(page.locator("[aria-current=step]")).to_have_count(1)
    expect(region(page, "Today, against its limits").get_by_role("meter", name="Dollars")).to_have_attribute(
        "aria-valuemax", "2.5"
    )
    expect(region(page, "Last runs").get_by_role("listitem")).to_have_count(6)
    expect(region(page, "Last runs")).to_contain_text("asked by jay")
    chart = region(page, "Cost of the last 14 days").get_by_role("img")
    told = chart.get_attribute("aria-label") or ""
    assert len(re.findall(r"\d{4}-\d\d-\d\d \$", told)) == 14
    assert told.count("$0.00") < 3, "there was a past"


def test_what_is_stuck_and_what_is_away_stand_before_everything_else(page_at, fleet):
    page = arrived(page_at("#/agents/moss"))
    stuck = region(page, "Stuck: 1 message")
    expect(stuck).to_contain_text("remove or change the file")
    expect(region(page, "Why is moss not running?")).to_contain_text(re.compile(r"Last ran \S+, asked by [\w ]+: "))
    page.goto(f"{fleet.url}/#/agents/flint")
    expect(region(page, "Why is flint not running?")).to_contain_text("Connection refused")


def test_a_name_that_nobody_has_leads_to_whoever_was_meant(page_at, fleet):
    page = page_at("#/agents/wrne")
    expect(page.get_by_role("alert").filter(has_text="did you mean wren?")).to_be_visible()
    page.get_by_role("main").get_by_role("link", name="wren").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("wren")
    page.goto(f"{fleet.url}/#/agents/pip")
    expect(page.get_by_role("main").get_by_role("link", name="pip-2")).to_be_visible()


# ---- to ask for its time


def test_a_tick_is_answered_by_the_guards(page_at, fleet):
    page = arrived(page_at("#/agents/lark"))
    button(page, "Tick now").click()
    answer = page.get_by_role("status", name="the guards' answer")
    expect(answer).to_contain_text("refused by a pause")
    expect(answer).to_contain_text("lunch")
    page.goto(f"{fleet.url}/#/agents/fern")
    button(page, "Tick now").click()
    expect(answer).to_contain_text("admitted")
    answer.get_by_role("link", name=re.compile(r"run \d+")).click()
    expect(page).to_have_url(re.compile(r"#/runs/\d+$"))


def test_a_wake_leaves_its_message(page_at, fleet):
    page = arrived(page_at("#/agents/lark"))
    button(page, "Wake…").click()
    dialog = page.get_by_role("dialog", name="Wake lark")
    dialog.get_by_label("Why").fill("the headlines changed")
    dialog.get_by_label("Message").fill("read the third one again")
    dialog.get_by_role("button", name="Wake it").click()
    expect(dialog).to_contain_text("refused by a pause")
    dialog.get_by_role("button", name="Close", exact=True).click()
    (kept,) = [each for each in fleet.client.inbox("lark")["items"] if each["body"] == "read the third one again"]
    fleet.client.mark_read("lark", [kept["id"]])


def test_a_beat_at_an_instant_or_what_to_write_instead(page_at, fleet):
    page = arrived(page_at("#/agents/fern"))
    button(page, "Beat at…").click()
    dialog = page.get_by_role("dialog", name="A beat of fern at an instant")
    dialog.get_by_label("When").fill("20m")
    dialog.get_by_role("button", name="Ask for it").click()
    expect(dialog.get_by_role("alert")).to_contain_text("write: in 20m")
    expect(dialog.get_by_label("When")).to_have_value("20m")
    dialog.get_by_label("When").fill("in 9h")
    dialog.get_by_role("button", name="Ask for it").click()
    expect(dialog).to_contain_text("it waits")


def test_an_agent_is_paused_and_resumed_where_one_looks_at_it(page_at, fleet):
    page = arrived(page_at("#/agents/fern"))
    button(page, "Pause fern").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Why").fill("a look into its letters")
    dialog.get_by_role("button", name="Pause fern").click()
    expect(dialog).to_contain_text("Nothing of fern begins any more")
    dialog.get_by_role("button", name="Close", exact=True).click()
    expect(page.locator(".agent-doing")).to_contain_text("a look into its letters")
    expect(region(page, "Why is fern not running?")).to_contain_text("Held by a pause")
    button(page, "Resume fern").last.click()
    expect(button(page, "Pause fern")).to_be_visible()
    expect(region(page, "Why is fern not running?")).not_to_contain_text("Held by a pause")
    assert fleet.client.agent("fern")["paused"] is None


# ---- why, and why then


def test_each_guard_says_what_it_thinks_now_and_then(page_at, fleet):
    page = arrived(page_at("#/agents/moss/why"))
    table = page.get_by_role("table", name="what each guard says")
    expect(table.get_by_role("row")).to_have_count(GUARDS + 1)
    # Ten minutes into the fleet's pause of three hours ago.
    then = datetime.now(UTC) - timedelta(hours=2, minutes=50)
    page.get_by_label("At", exact=True).fill(then.astimezone(ZoneInfo(fleet.zone)).strftime("%Y-%m-%dT%H:%M:%S"))
    expect(page.locator(".agent-why-answer")).to_contain_text("a new prompt for everybody")
    paused = table.get_by_role("row").filter(has=page.get_by_role("rowheader", name="paused", exact=True))
    expect(paused).to_contain_text("waits")
    expect(page.get_by_role("heading", level=2)).to_contain_text(" at ")
    page.get_by_role("button", name="Now", exact=True).click()
    expect(page.get_by_role("heading", level=2)).to_have_text(re.compile("Why is moss (not )?running"))
    expect(paused).to_contain_text("no objection")


def test_the_strip_is_pointed_at_by_hand_and_by_keys(page_at):
    page = arrived(page_at("#/agents/moss/why"))
    strip = page.locator(".agent-strip")
    expect(strip.locator(".is-run").first).to_be_attached()
    box = strip.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    heading = page.get_by_role("heading", level=2)
    expect(heading).to_contain_text(" at ")
    page.mouse.move(0, 0)
    expect(heading).not_to_contain_text(" at ")
    slider = page.get_by_role("slider", name="instant")
    slider.focus()
    slider.press("PageDown")
    expect(heading).to_contain_text(" at ")
    expect(slider).to_be_focused()
    slider.press("End")
    expect(heading).not_to_contain_text(" at ")


def test_whoever_would_wake_it_is_part_of_the_question(page_at):
    page = arrived(page_at("#/agents/moss/why"))
    page.get_by_label("Asked by").select_option("peer")
    page.get_by_label("Which").select_option("wren")
    expect(page.locator(".agent-why-answer")).to_contain_text("Refused by cooldown")


# ---- its inbox


def test_a_message_is_sent_once_although_its_answer_was_lost(page_at, fleet):
    page = arrived(page_at("#/agents/lark/inbox"))

    def lose(route):
        route.fetch()
        route.abort()

    page.route("**/v1/agents/lark/messages", lose, times=1)
    button(page, "Write to lark").click()
    dialog = page.get_by_role("dialog", name="Message to lark")
    dialog.get_by_label("Subject").fill("the fourth page")
    dialog.get_by_label("Message", exact=True).fill("<b>as it is</b>\nin two lines")
    dialog.get_by_label("Type").select_option("work_assignment")
    dialog.get_by_label("Priority").select_option("urgent")
    dialog.get_by_role("button", name="Send").click()
    expect(dialog.get_by_role("alert")).to_contain_text("the engine does not answer")
    dialog.get_by_role("button", name="Send").dblclick()
    expect(dialog).to_contain_text("it is there once")
    expect(dialog).to_contain_text("paused")
    dialog.get_by_role("button", name="Close", exact=True).click()
    message = page.get_by_role("listitem").filter(has_text="the fourth page")
    expect(message).to_have_count(1)
    expect(message).to_contain_text("<b>as it is</b>")
    expect(message).to_contain_text("urgent")
    message.get_by_role("button", name=re.compile("^Mark message")).click()
    expect(message).to_have_count(0)
    page.get_by_role("button", name="closed", exact=True).click()
    expect(message).to_have_count(1)


@pytest.fixture
def letters(fleet):
    """Three to owl, which sleeps."""
    sent = [
        fleet.client.send("owl", "the first", subject="letter one"),
        fleet.client.send("owl", "the second", subject="letter two", type="help_request"),
        fleet.client.send("owl", "the third", subject="letter three", priority="low"),
    ]
    ids = [each["message"]["id"] for each in sent]
    yield ids
    fleet.client.mark_read("owl", ids)


def test_messages_are_found_put_off_and_closed(page_at, letters):
    page = arrived(page_at("#/agents/owl/inbox"))
    listed = page.get_by_role("list", name="messages").get_by_role("listitem")
    expect(listed).to_have_count(3)
    expect(listed.first).to_contain_text("letter three")
    page.get_by_label("Type").select_option("help_request")
    expect(listed).to_have_count(1)
    page.get_by_label("Type").select_option("")
    page.get_by_label("Priority").select_option("normal")
    expect(listed).to_have_count(2)
    page.get_by_label("Priority").select_option("")
    page.get_by_label("From").fill("nobody")
    page.get_by_label("From").press("Enter")
    expect(page.get_by_text("No message is like that.")).to_be_visible()
    page.get_by_label("From").fill("operator")
    page.get_by_label("From").press("Enter")
    expect(listed).to_have_count(3)
    page.get_by_role("button", name=f"Snooze message {letters[0]}").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("For how long, or until when").fill("later")
    dialog.get_by_role("button", name="Snooze", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("expected an instant")
    dialog.get_by_role("button", name="4 hours").click()
    dialog.get_by_role("button", name="Snooze", exact=True).click()
    expect(page.get_by_text("put off until").first).to_be_visible()
    for number in letters[1:]:
        page.get_by_label(f"choose message {number}").check()
    page.get_by_role("group", name="chosen messages").get_by_role("button", name="Mark 2 messages read").click()
    expect(listed.filter(has_text="letter two")).to_have_count(0)


def test_what_is_typed_and_chosen_stays_while_news_come(page_at, fleet, letters):
    page = arrived(page_at("#/agents/owl/inbox"))
    chosen = page.get_by_label(f"choose message {letters[0]}")
    chosen.check()
    button(page, "Write to owl").click()
    dialog = page.get_by_role("dialog")
    field = dialog.get_by_label("Message", exact=True)
    field.fill("half of what I w")
    fleet.client.pause_agent("owl", reason="news")
    late = fleet.client.send("owl", "one more", subject="letter four")["message"]["id"]
    try:
        expect(page.get_by_text("letter four")).to_be_attached()
        expect(page.locator(".agent-doing")).to_contain_text("paused")
        expect(field).to_be_focused()
        expect(field).to_have_value("half of what I w")
        dialog.get_by_role("button", name="Cancel").click()
        expect(chosen).to_be_checked()
        button(page, "Write to owl").click()
        expect(field).to_have_value("half of what I w")
    finally:
        fleet.client.mark_read("owl", [late])
        fleet.client.resume_agent("owl")


# ---- its runs


def test_runs_are_listed_by_outcome_and_go_on(page_at, fleet):
    page = arrived(page_at("#/agents/wren/runs"))
    rows = page.get_by_role("table", name="runs of wren").get_by_role("row")
    expect(rows).to_have_count(51)
    page.get_by_role("button", name="show more").click()
    expect(rows.nth(52)).to_be_visible()
    page.goto(f"{fleet.url}/#/agents/thorn/runs")
    page.get_by_role("group", name="outcome").get_by_role("button", name="failed").click()
    table = page.get_by_role("table", name="runs of thorn")
    expect(table.get_by_text("the printer is on fire").first).to_be_visible()
    expect(table.get_by_text("✔")).to_have_count(0)
    page.get_by_label("Asked by").select_option("peer")
    expect(page.get_by_text("No run is like that.")).to_be_visible()


def test_no_page_of_an_agent_is_wider_than_a_small_screen(page_at, fleet):
    page = page_at("#/agents/wren")
    page.set_viewport_size({"width": 360, "height": 740})
    for tab in ("wren", "thorn", "moss/why", "moss/inbox", "wren/settings", "thorn/runs"):
        page.goto(f"{fleet.url}/#/agents/{tab}")
        arrived(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, tab
    page.set_viewport_size({"width": 1280, "height": 800})
