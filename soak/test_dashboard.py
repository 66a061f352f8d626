"""A dashboard that is left open: after ten minutes of changes, 95 a second, it takes no more memory than at first.

Three more a second are of one agent at a time: what is held of the rest of the page would then never be let go.

MINUTES= and AGENTS= in the environment change that.
"""

import os
import random
import statistics
import time
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser import chromium
from tests.browser.desk import crowd_of
from tests.browser.flood import RATE, Flood

MINUTES = float(os.environ.get("MINUTES", "10"))
AGENTS = int(os.environ.get("AGENTS", "1000"))
SAMPLES = 30
DRIP = 0.3
# What a page that forgets everything may still differ by from one moment to another.
SLACK = 500_000
LEFT = 100


def test_the_memory_of_an_open_page_does_not_grow(tmp_path, say):
    program = chromium.found()
    if program is None:
        pytest.skip("no Chromium: install the package chromium")
    crowd = crowd_of(tmp_path / "crowd", AGENTS)
    crowd.begin()
    changes = Flood(crowd, MINUTES * 60 + 60)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=chromium.ARGUMENTS)
            page = browser.new_page()
            page.goto(crowd.address)
            expect(page.get_by_role("link", name="agent-0000")).to_be_visible()
            changes.start()
            taken = watched(page, drip(changes), say)
            expect(page.get_by_role("status").first).to_contain_text("live")
            browser.close()
    finally:
        changes.close()
        crowd.close()
    heaps, nodes = zip(*taken, strict=True)
    third = len(taken) // 3
    say(f"{changes.changed} changes; heap {[round(heap / 1e6, 1) for heap in heaps]} MB; nodes {nodes}")
    assert changes.changed > RATE * MINUTES * 60 * 0.8
    assert statistics.median(heaps[-third:]) < statistics.median(heaps[third : 2 * third]) * 1.05 + SLACK
    assert statistics.median(nodes[-third:]) < statistics.median(nodes[third : 2 * third]) + LEFT


def drip(changes):
    """One agent at a time, of those that are seen: its task is given up, or taken up again."""
    chosen = random.Random(1)
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    rows = [{"title": "a drip", "agent": f"agent-{number:04}", "not_before": tomorrow} for number in range(30)]
    tasks = {row["id"]: False for row in changes.client.add_tasks(rows)["items"]}
    while True:
        task = chosen.choice(list(tasks))
        tasks[task] = not tasks[task]
        yield changes.client.change_tasks("fail" if tasks[task] else "retry", tasks=[task])


def watched(page, dripping, say):
    """What the page held, at so many moments."""
    taken = []
    for number in range(SAMPLES):
        end = time.monotonic() + MINUTES * 60 / SAMPLES
        while time.monotonic() < end:
            next(dripping)
            page.wait_for_timeout(DRIP * 1000)
        taken.append(chromium.held(page))
        if number % 5 == 4:
            say(f"{taken[-1].heap / 1e6:.1f} MB, {taken[-1].nodes:.0f} nodes")
    return taken
