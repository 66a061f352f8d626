"""The page of a run: what it prints while it prints it, what it was told, who led to it, and its end."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.places import arrived


@pytest.fixture
def run(shop):
    """One that goes on until its test is over."""
    number = shop.cries("fresh fish", "!\x1b[31mthe fish is gone\x1b[0m")
    yield number
    shop.say("end")
    shop.ended(number)


def printed(page, stream="stdout"):
    return page.get_by_role("region", name=re.compile(f"^{stream} of run"))


def test_what_a_run_prints_is_seen_as_it_prints_it_and_its_end_too(shop_at, shop):
    run = shop.cries("fresh fish")
    page = arrived(shop_at(f"#/runs/{run}"))
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Run {run} of crier")
    expect(page.get_by_text(re.compile(r"running for \d+s of 15m"))).to_be_visible()
    expect(page.get_by_text("operator asked for it: the market is open").first).to_be_visible()
    expect(printed(page)).to_contain_text("fresh fish")
    shop.say("and herring")
    expect(printed(page)).to_contain_text("fresh fish\nand herring")
    shop.say("end")
    expect(page.get_by_text("That is all: the run is over.")).to_be_visible()
    expect(page.get_by_text(re.compile("done after"))).to_be_visible()
    expect(page.get_by_role("button", name="End this run")).to_have_count(0)


def test_its_complaints_are_beside_it_without_their_colours(shop_at, run):
    page = arrived(shop_at(f"#/runs/{run}"))
    page.get_by_role("button", name="Complained").click()
    expect(printed(page, "stderr")).to_have_text("the fish is gone\n")
    page.get_by_role("button", name="Printed").click()
    expect(printed(page)).to_have_text("fresh fish\n")


def newest(page, stream="stdout"):
    """The end of what is printed: to look for words in all of a megabyte takes longer than to show it."""
    return printed(page, stream).locator("div").last


def test_much_is_kept_in_part_and_whoever_scrolled_up_is_left_where_they_are(shop_at, shop, run):
    page = arrived(shop_at(f"#/runs/{run}"))
    output = printed(page)
    expect(output).to_contain_text("fresh fish")
    shop.say("many", "the last word")
    expect(page.locator(".work-output > .dim").first).to_contain_text("are left out here")
    expect(newest(page)).to_contain_text("the last word")
    assert 800_000 < output.evaluate("one => one.textContent.length") < 1_200_000
    at_end = "one => one.scrollHeight - one.scrollTop - one.clientHeight < 24"
    assert output.evaluate(at_end)
    output.hover()
    page.mouse.wheel(0, -2_000)
    follow = page.locator(".work-output").get_by_role("button", name="follow the end")
    expect(follow).to_be_visible()
    shop.say("a word more")
    expect(newest(page)).to_contain_text("a word more")
    assert not output.evaluate(at_end)
    follow.click()
    assert output.evaluate(at_end)
    page.get_by_role("button", name="what came before").click()
    expect(printed(page).locator("div").first).to_contain_text("of very many")
    expect(page.get_by_role("button", name="later")).to_be_enabled()
    page.get_by_role("button", name="to the end").click()
    expect(newest(page)).to_contain_text("a word more")


def test_of_more_than_is_kept_the_end_is_shown_when_the_run_is_over(shop_at, shop):
    run = shop.cries(*["many"] * 4)
    page = arrived(shop_at(f"#/runs/{run}"))
    expect(page.locator(".work-output-state")).to_contain_text("what comes now is shown when it is over")
    shop.say("the very last word", "end")
    expect(newest(page)).to_contain_text("the very last word")
    expect(page.locator(".work-output-state")).to_contain_text("That is all: the run is over.")


def test_after_a_restart_of_the_engine_it_goes_on_where_it_was(shop_at, shop, run):
    shop_at.allow("ERR_", "Failed to load resource")
    page = arrived(shop_at(f"#/runs/{run}"))
    expect(printed(page)).to_have_text("fresh fish\n")
    shop.leave()
    shop.say("meanwhile")
    shop.up()
    shop.say("afterwards")
    expect(printed(page)).to_have_text("fresh fish\nmeanwhile\nafterwards\n")


@pytest.mark.parametrize(("how", "at_once"), [("ask it to end", False), ("KILL at once", True)])
def test_a_run_is_ended_by_hand_and_what_came_of_it_is_told(shop_at, shop, how, at_once):
    run = shop.cries("fresh fish")
    page = arrived(shop_at(f"#/runs/{run}"))
    page.get_by_role("button", name="End this run").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("radio", name=how).check()
    dialog.get_by_role("button", name="End the run").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text(re.compile("killed after"))).to_be_visible()
    assert shop.client.show_run(run)["outcome"] == "killed"
    stopped = shop.client.events(kinds=["stopped"], limit=1000)["items"][-1]
    assert (stopped["run_id"], stopped["fields"]["at_once"]) == (run, at_once)


def test_the_chain_is_drawn_from_its_root_to_whom_it_woke(page_at, fleet):
    """The archive's page led to a line more, which led to a reading."""
    links = [
        blame
        for run in fleet.client.runs(agent="moss", limit=100)["items"]
        if len((blame := fleet.client.blame(run["id"]))["chain"]) > 1
    ]
    blame = links[0]
    page = arrived(page_at(f"#/runs/{blame['run']}"))
    tree = page.locator(".work-chain")
    expect(tree.get_by_text("◄ this run")).to_be_visible()
    for link in blame["chain"]:
        expect(tree.get_by_role("link", name=f"wake {link['wake_id']}", exact=True)).to_be_visible()
    parent = blame["chain"][-2]["run_id"]
    tree.get_by_role("link", name=f"run {parent}", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Run {parent} of {blame['chain'][-2]['agent']}")
    expect(page.locator(".work-chain").get_by_role("link", name="moss", exact=True).first).to_be_visible()


def test_what_it_was_told_and_shown_and_its_neighbours(page_at, fleet):
    runs = fleet.client.runs(agent="wren", limit=100)["items"]
    shown = next(run for run in runs[1:] if run["shown"] and run["id"] != runs[-1]["id"])
    order = [run["id"] for run in runs]
    place = order.index(shown["id"])
    page = arrived(page_at(f"#/runs/{shown['id']}"))
    expect(page.get_by_text("What it was shown")).to_be_visible()
    expect(page.get_by_text("admitted").first).to_be_visible()
    page.get_by_role("link", name=f"earlier run {order[place + 1]}").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Run {order[place + 1]} of")
    page.get_by_role("link", name=f"later run {shown['id']}").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Run {shown['id']} of")


def test_a_run_that_is_not_there_is_said_so(page_at):
    page_at.allow("404")
    page = page_at("#/runs/999999")
    expect(page.get_by_role("alert").filter(has_text="no run 999999").first).to_be_visible()
