"""To stop everything, or one agent: with a reason, for how long, and what is still running."""

import pytest
from playwright.sync_api import expect

from tests.browser.places import arrived


@pytest.fixture
def desk(fleet):
    """As it was, afterwards."""
    yield fleet
    (fleet.data / "PAUSE").unlink(missing_ok=True)
    fleet.until(lambda: not any(pause["owner"] == "file" for pause in fleet.client.status()["pauses"]), "no PAUSE file")
    fleet.client.resume()
    if not fleet.run_of("jay"):
        fleet.client.resume_agent("jay")
        fleet.client.tick("jay")
        fleet.until(lambda: fleet.run_of("jay"), "jay to run again")


def held(page, words):
    return page.get_by_role("alert").filter(has_text=words)


def test_the_fleet_is_paused_with_a_receipt_and_a_banner_on_every_page_and_goes_on(page_at, desk):
    page, run = arrived(page_at()), desk.run_of("jay")
    page.get_by_role("button", name="Pause fleet").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("under way (jay")
    dialog.get_by_label("Why").fill("the paper is late")
    dialog.get_by_label("15 minutes").check()
    dialog.get_by_role("button", name="Pause the whole fleet").click()
    expect(dialog).to_contain_text("Nothing begins any more, until")
    # The receipt follows what it lists.
    expect(dialog).to_contain_text("Still running: 1 run")
    rows = page.locator(".fleet-row")
    expect(rows.filter(has_text="jay")).to_contain_text(", then paused with the fleet, until")
    expect(rows.filter(has_text="moss")).to_contain_text("paused with the fleet, until")
    expect(rows.filter(has_text="lark")).to_contain_text("paused by operator: lunch, until")
    expect(page.locator(".summary")).to_contain_text("12 agents, 1 running")
    expect(dialog.get_by_role("link", name=f"run {run}")).to_be_visible()
    dialog.get_by_role("button", name=f"end run {run}").click()
    expect(dialog).to_contain_text("Nothing is running")
    dialog.get_by_role("button", name="Close", exact=True).click()
    (pause,) = (each for each in desk.client.status()["pauses"] if each["scope"] == "fleet")
    assert pause["reason"] == "the paper is late" and pause["until"]
    for route in ("#/timeline", "#/decisions", "#/"):
        page.goto(f"{desk.url}/{route}")
        expect(held(page, "THE FLEET IS PAUSED")).to_contain_text("the paper is late")
    # However far one has gone down.
    page.mouse.wheel(0, 2_000)
    expect(held(page, "THE FLEET IS PAUSED")).to_be_in_viewport()
    expect(page.locator(".summary")).to_contain_text("nothing, until")
    page.get_by_role("button", name="Resume the fleet").click()
    expect(held(page, "THE FLEET IS PAUSED")).to_have_count(0)
    expect(page.get_by_role("button", name="Pause fleet")).to_be_visible()
    assert not any(each["scope"] == "fleet" for each in desk.client.status()["pauses"])


def test_what_runs_can_be_ended_with_the_pause_of_its_agent(page_at, desk):
    page, run = arrived(page_at()), desk.run_of("jay")
    page.get_by_role("row").get_by_role("button", name="Pause jay").click()
    dialog = page.get_by_role("dialog", name="Pause jay")
    dialog.get_by_label("also end what runs now").check()
    dialog.get_by_label("until somebody resumes").check()
    dialog.get_by_role("button", name="Pause jay").click()
    receipt = page.get_by_role("dialog", name="jay is paused")
    expect(receipt).to_contain_text("Asked to end")
    expect(receipt).to_contain_text("Nothing is running")
    last = desk.client.runs(agent="jay")["items"][0]
    assert (last["id"], last["outcome"]) == (run, "killed")
    receipt.get_by_role("button", name="Close", exact=True).click()
    expect(held(page, "jay is paused")).to_contain_text("until somebody resumes")
    page.get_by_role("row").get_by_role("button", name="Resume jay").click()
    expect(held(page, "jay is paused")).to_have_count(0)


def test_a_duration_that_is_none_is_told_and_nothing_that_was_typed_is_lost(page_at, desk):
    page_at.allow("400", "422")
    page = arrived(page_at())
    page.get_by_role("button", name="Pause fleet").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Why").fill("a long reason")
    dialog.get_by_label("other").check()
    dialog.get_by_label("How long").fill("soon")
    dialog.get_by_role("button", name="Pause the whole fleet").click()
    expect(dialog.get_by_role("alert")).to_contain_text("soon")
    expect(dialog.get_by_label("Why")).to_have_value("a long reason")
    assert not any(each["scope"] == "fleet" for each in desk.client.status()["pauses"])
    dialog.get_by_label("How long").fill("90m")
    dialog.get_by_role("button", name="Pause the whole fleet").click()
    expect(dialog).to_contain_text("is paused")
    desk.client.resume()


def test_a_pause_that_runs_out_is_gone_by_itself(page_at, desk):
    page = arrived(page_at())
    desk.client.pause_agent("owl", reason="a moment", duration="3s")
    expect(held(page, "owl is paused")).to_contain_text("a moment")
    expect(held(page, "owl is paused")).to_have_count(0)
    expect(page.get_by_role("row").get_by_role("button", name="Pause owl")).to_be_visible()


def test_a_pause_by_file_says_how_it_is_lifted(page_at, desk):
    page_at.allow("400", "409")
    page = arrived(page_at())
    (desk.data / "PAUSE").write_text("hands off\n")
    expect(held(page, "THE FLEET IS PAUSED")).to_contain_text("PAUSE file")
    page.get_by_role("button", name="Resume the fleet").click()
    expect(page.get_by_role("status").last).to_contain_text("remove that file")
    (desk.data / "PAUSE").unlink()
    expect(held(page, "THE FLEET IS PAUSED")).to_have_count(0)


def test_the_keys_are_told_and_can_be_switched_off(page_at):
    page = arrived(page_at.new())
    page.keyboard.press("?")
    help = page.get_by_role("dialog", name="Keys")
    expect(help).to_contain_text("pause the fleet")
    help.get_by_role("button", name="Close").first.click()
    page.keyboard.press("g")
    page.keyboard.press("d")
    expect(page).to_have_title("Decisions · wakeful")
    page.get_by_role("button", name="help: keys").click()
    help.get_by_label("single keys do something").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("p")
    expect(page.get_by_role("dialog")).to_have_count(0)
