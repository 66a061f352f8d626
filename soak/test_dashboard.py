"""A dashboard that is left open: after ten minutes of changes, 95 a second, it takes no more memory than at first.

MINUTES= and AGENTS= in the environment change that.
"""

import os
import statistics

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser import chromium
from tests.browser.desk import crowd_of
from tests.browser.flood import RATE, Flood

MINUTES = float(os.environ.get("MINUTES", "10"))
AGENTS = int(os.environ.get("AGENTS", "1000"))
SAMPLES = 30
# What a page that forgets everything may still differ by from one moment to another.
SLACK = 2_000_000


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
            taken = watched(page, say)
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
    assert statistics.median(nodes[-third:]) < statistics.median(nodes[third : 2 * third]) * 1.2 + 1_000


def watched(page, say):
    """The heap in bytes and the nodes that are alive, after everything that can be forgotten was."""
    wire = page.context.new_cdp_session(page)
    wire.send("Performance.enable")
    taken = []
    for number in range(SAMPLES):
        page.wait_for_timeout(MINUTES * 60_000 / SAMPLES)
        wire.send("HeapProfiler.collectGarbage")
        told = {each["name"]: each["value"] for each in wire.send("Performance.getMetrics")["metrics"]}
        taken.append((told["JSHeapUsedSize"], told["Nodes"]))
        if number % 5 == 4:
            say(f"{told['JSHeapUsedSize'] / 1e6:.1f} MB, {told['Nodes']:.0f} nodes")
    return taken
