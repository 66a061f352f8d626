"""Every place of the dashboard by name, and when one of them is there."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.chromium import answered
from tests.browser.desk import Desk

NAMES = (
    *("fleet", "timeline", "agent", "inbox", "settings", "runs", "why"),
    *("run", "live run", "tasks", "task", "dead", "decisions"),
)


def route(fleet: Desk, name: str) -> str:
    fixed = {
        "fleet": "#/",
        "timeline": "#/timeline",
        "agent": "#/agents/wren",
        "inbox": "#/agents/moss/inbox",
        "settings": "#/agents/wren/settings",
        "runs": "#/agents/wren/runs",
        "why": "#/agents/moss/why",
        "tasks": "#/tasks",
        "dead": "#/dead",
        "decisions": "#/decisions",
    }
    if name in fixed:
        return fixed[name]
    if name == "task":
        return f"#/tasks/{fleet.client.dead(text='torn')['items'][0]['id']}"
    if name == "run":
        return f"#/runs/{next(run['id'] for run in fleet.client.runs(agent='wren')['items'] if run['summary'])}"
    return f"#/runs/{fleet.run_of('jay')}"


def arrived(page: Page) -> Page:
    """Until the page shows what it is about, and not that it is still asking."""
    expect(page.get_by_role("status").first).to_contain_text("live")
    expect(page.get_by_role("main").get_by_text("…", exact=True)).to_have_count(0)
    expect(page.get_by_role("main").get_by_role("heading").first).to_be_visible()
    answered(page)
    return page
