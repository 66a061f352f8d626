"""The queue on the page: the board and its counts, one task and what may be done to it, dead letters by the hundred."""

import pytest
from playwright.sync_api import expect

from tests.browser.places import arrived


@pytest.fixture(autouse=True)
def _clear(shop):
    """Each test begins with an empty queue."""
    yield
    (shop.folder / "harder").unlink(missing_ok=True)
    shop.client.change_tasks("cancel", all=True)
    shop.until(lambda: not shop.client.runs(agent="mill", open=True)["items"], "the mill to stand still")
    while shop.client.change_tasks("remove", all=True)["next"]:
        pass


def column(page, name):
    return page.get_by_role("region", name=name, exact=True)


def test_a_task_is_added_with_the_form_and_is_seen_done(shop_at, shop):
    page = arrived(shop_at("#/tasks"))
    page.get_by_role("button", name="Add a task").click()
    form = page.get_by_role("dialog")
    form.get_by_label("What is to be done").fill("wheat")
    form.get_by_role("radio", name="whoever has the role").check()
    form.get_by_label("Role", exact=True).fill("grinding")
    form.get_by_label("At length").fill("as fine as you can")
    form.get_by_label("Tags").fill("grain, soon")
    form.get_by_role("button", name="Add the task").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("wheat")
    expect(page.get_by_text("as fine as you can")).to_be_visible()
    expect(page.get_by_text("attempt 1")).to_be_visible()
    expect(page.locator(".work-lead")).to_contain_text("completed")
    expect(page.get_by_text("ground: wheat")).to_be_visible()
    assert shop.counts() == {"completed": 1}


def test_what_is_wrong_with_a_new_task_is_said_and_nothing_is_lost(shop_at, shop):
    shop_at.allow("400")
    page = arrived(shop_at("#/tasks"))
    page.get_by_role("button", name="Add a task").click()
    form = page.get_by_role("dialog")
    form.get_by_label("What is to be done").fill("rye")
    form.get_by_label("Agent", exact=True).fill("mill")
    form.get_by_text("More", exact=True).click()
    form.get_by_label("Payload").fill("{no json")
    form.get_by_role("button", name="Add the task").click()
    expect(form.get_by_role("alert")).to_contain_text("the payload is not JSON")
    form.get_by_label("Payload").fill('{"sacks": 3}')
    form.get_by_label("Not before").fill("yesterday or so")
    form.get_by_role("button", name="Add the task").click()
    expect(form.get_by_role("alert")).to_contain_text("yesterday or so")
    expect(form.get_by_label("What is to be done")).to_have_value("rye")
    form.get_by_label("Not before").fill("in 20m")
    form.get_by_role("button", name="Add the task").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("rye")
    expect(page.get_by_text('"sacks": 3')).to_be_visible()
    assert shop.counts() == {"pending": 1}


def test_the_board_counts_all_and_holds_what_was_asked_for(shop_at, shop):
    rows = [
        {"title": f"sack {number}", "role": "nobody", "priority": "high" if number == 7 else "normal"}
        for number in range(1_000)
    ]
    shop.client.add_tasks(rows)
    page = arrived(shop_at("#/tasks"))
    pending = column(page, "Pending")
    expect(pending.locator(".work-count")).to_have_text("1,000")
    expect(pending.get_by_role("listitem")).to_have_count(50)
    pending.get_by_role("button", name="show 50 more").click()
    expect(pending.get_by_role("listitem")).to_have_count(100)
    shop.client.add_tasks([{"title": "a late sack", "role": "nobody"}])
    expect(pending.locator(".work-count")).to_have_text("1,001")
    expect(pending.get_by_role("listitem")).to_have_count(100)
    page.get_by_label("Priority").select_option("high")
    expect(pending.get_by_role("listitem")).to_have_count(1)
    expect(pending).to_contain_text("sack 7")
    page.get_by_label("Priority").select_option("")
    page.get_by_label("Search").fill("late")
    expect(pending.get_by_role("link")).to_contain_text("a late sack")
    assert "text=late" in page.url
    page.reload()
    expect(page.get_by_label("Search")).to_have_value("late")
    expect(column(page, "Pending").get_by_role("listitem")).to_have_count(1)


def test_a_task_goes_from_column_to_column_while_one_looks(shop_at, shop):
    page = arrived(shop_at("#/tasks"))
    expect(column(page, "Dead").locator(".work-count")).to_have_text("0")
    page.get_by_label("Agent").press_sequentially("mi")
    (task,) = shop.dead(1)
    expect(column(page, "Dead").get_by_role("link", name="stone 1")).to_be_visible()
    (shop.folder / "harder").touch()
    shop.client.replay(task)
    expect(column(page, "Completed").get_by_role("link", name="stone 1")).to_be_visible()
    expect(column(page, "Dead").locator(".work-count")).to_have_text("0")
    expect(page.get_by_label("Agent")).to_have_value("mi")
    expect(page.get_by_label("Agent")).to_be_focused()


@pytest.mark.parametrize(
    ("button", "field", "words", "state"),
    [
        ("Call it done", "What came of it", "by hand", "completed"),
        ("Give it up", "Why", "no use", "dead_letter"),
        ("Cancel it", "Why", "not wanted", "cancelled"),
    ],
)
def test_an_open_task_is_ended_by_hand(shop_at, shop, button, field, words, state):
    task = shop.client.add_task("oats", role="nobody")["id"]
    page = arrived(shop_at(f"#/tasks/{task}"))
    expect(page.get_by_text("Waits for")).to_be_visible()
    page.get_by_role("button", name=button).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(field).fill(words)
    dialog.get_by_role("button", name=button).click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text(words)).to_be_visible()
    assert shop.client.task(task)["state"] == state


def test_a_dead_task_tells_its_whole_history_and_is_tried_again_then_removed(shop_at, shop):
    (task,) = shop.dead(1)
    page = arrived(shop_at(f"#/tasks/{task}"))
    expect(page.get_by_text("exit code 1")).to_be_visible()
    expect(page.get_by_text("a stone is in it").first).to_be_visible()
    page.get_by_text("what it printed last").click()
    expect(page.get_by_text("grinding stone 1")).to_be_visible()
    (shop.folder / "harder").touch()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("attempt 2")).to_be_visible()
    expect(page.locator(".work-lead")).to_contain_text("completed")
    expect(page.get_by_text("attempt 1")).to_be_visible()
    page.get_by_role("button", name="Remove it").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove it").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Tasks")
    assert shop.counts() == {}


def test_some_dead_letters_are_replayed_and_each_one_is_told(shop_at, shop):
    ids = shop.dead(4)
    page = arrived(shop_at("#/dead"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("4")
    first = page.get_by_role("listitem").filter(has_text=f"task {ids[0]} ")
    first.get_by_text("whole history").click()
    expect(first.get_by_text("attempt 1")).to_be_visible()
    for task in ids[:2]:
        page.get_by_role("checkbox", name=f"choose task {task}", exact=True).check()
    # Gone from under them: it cannot be taken up again, and that is told.
    shop.client.discard(ids[1])
    (shop.folder / "harder").touch()
    page.get_by_role("button", name="Replay 2").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Replay 2").click()
    expect(dialog.get_by_role("status")).to_contain_text("1 of 2 taken up again, 1 not")
    expect(dialog.get_by_text(f"task {ids[1]} is gone")).to_be_visible()
    expect(dialog.get_by_role("link", name=f"task {ids[0]}", exact=True)).to_be_visible()
    dialog.get_by_role("button", name="Close").last.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("2")
    expect(page.get_by_role("checkbox", name=f"choose task {ids[0]}", exact=True)).to_have_count(0)
    shop.until(lambda: shop.client.task(ids[0])["state"] == "completed", "it to be ground")


def test_all_that_match_are_discarded_and_nothing_else(shop_at, shop):
    kept = shop.client.add_task("keep me", role="nobody")["id"]
    shop.client.fail_task(kept, reason="an accident")
    lost = [
        row["id"]
        for row in shop.client.add_tasks([{"title": f"chaff {n}", "role": "nobody"} for n in range(250)])["items"]
    ]
    shop.client.change_tasks("fail", tasks=lost)
    page = arrived(shop_at("#/dead"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("251")
    page.get_by_label("Search").fill("chaff")
    expect(page.get_by_role("heading", level=1)).to_contain_text("250")
    page.get_by_role("checkbox", name="choose all 250 that match").check()
    page.get_by_role("button", name="Discard 250").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("gone for good")
    dialog.get_by_role("button", name="Leave them").click()
    assert shop.counts() == {"dead_letter": 251}
    page.get_by_role("button", name="Discard 250").click()
    dialog.get_by_role("button", name="Discard 250").click()
    expect(dialog.get_by_role("status")).to_contain_text("250 of 250 discarded")
    dialog.get_by_role("button", name="Close").last.click()
    expect(page.get_by_text("No dead letter matches.")).to_be_visible()
    page.get_by_role("button", name="clear").click()
    expect(page.get_by_text("keep me")).to_be_visible()
    assert shop.counts() == {"dead_letter": 1}
