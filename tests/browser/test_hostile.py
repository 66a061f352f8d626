"""What agents and strangers wrote is text: it is shown as it is, and does nothing, wherever words of theirs appear."""

from playwright.sync_api import expect

from tests.browser.agents import HOSTILE
from tests.browser.places import arrived

MARKUP = "<img src=x onerror="

# Elements that could only have come out of what was written, and links that would run.
GROWN = """() => [
  ...[..."img[src=x];svg[onload];script:not([src]);u;[onerror];[onload]".split(";")]
    .flatMap((kind) => [...document.querySelectorAll(kind)]).map((one) => one.outerHTML.slice(0, 100)),
  ...[...document.links].filter((one) => !/^https?:$/.test(one.protocol)).map((one) => one.href),
]"""

# Words with a turned direction that could turn what stands beside them: neither isolated nor alone in their block.
TURNING = r"""() => {
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walk.nextNode(); text; text = walk.nextNode()) {
    if (!/[\u202a-\u202e\u2066-\u2069]/.test(text.data)) continue;
    let one = text.parentElement;
    const isApart = (style) => !style.display.startsWith("inline") || /isolate|plaintext/.test(style.unicodeBidi);
    while (one !== document.body && !isApart(getComputedStyle(one))) one = one.parentElement;
    const apart = one.textContent.trim() === text.data.trim();
    if (!apart) found.push(one.outerHTML.slice(0, 200));
  }
  return found;
}"""


def places(den):
    """Where those words are to be found."""
    task = den.client.dead()["items"][0]
    return {
        "output": f"#/runs/{den.run}",
        "runs": "#/agents/hex/runs",
        "inbox": "#/agents/moss/inbox",
        "task": f"#/tasks/{task['id']}",
        "tasks": "#/tasks",
        "dead": "#/dead",
    }


def harmed(page):
    """What came to life, or turns its surroundings."""
    alive = page.evaluate("window.harmed ?? null")
    return [*([alive] if alive else []), *page.evaluate(GROWN), *page.evaluate(TURNING)]


def test_markup_is_shown_as_it_was_written_and_nothing_comes_to_life(den_at, den):
    page, found = den_at(), {}
    for name, route in places(den).items():
        page.goto(f"{den.url}/{route}")
        arrived(page)
        expect(page.get_by_role("main").get_by_text(MARKUP).first, f"it is to be read in: {name}").to_be_visible()
        if said := harmed(page):
            found[name] = said
    assert found == {}


def test_nothing_comes_to_life_where_those_words_are_only_hinted_at(den_at, den):
    page, found = den_at(), {}
    for route in ("#/", "#/agents/hex", "#/agents/hex/inbox", "#/agents/hex/why", "#/timeline", "#/decisions"):
        page.goto(f"{den.url}/{route}")
        arrived(page)
        if said := harmed(page):
            found[route] = said
        assert "\x1b" not in page.title()
    assert found == {}


def test_what_a_terminal_would_obey_is_no_more_than_a_mark(den_at, den):
    """An escape has no width and no colour here: it is taken out, or shown as a sign."""
    page = arrived(den_at(places(den)["output"]))
    expect(page.get_by_role("main").get_by_text("javascript:").first).to_be_visible()
    assert "\x1b" not in page.get_by_role("main").inner_text()


def test_nothing_that_is_printed_keeps_the_page_busy_for_long(den_at):
    """What begins again and again and never ends is read once, not once for each beginning."""
    page = arrived(den_at())
    took = page.evaluate(r"""async () => {
      const { cleaned } = await import("/dashboard/escapes.js");
      const begun = performance.now();
      for (const piece of ["\x90", "\x9da", "\x1b]", "\x1bPa", "\x1b[1", "\x1b "]) cleaned(piece.repeat(100_000));
      return performance.now() - begun;
    }""")
    assert took < 10_000


def test_the_reason_of_a_pause_is_text_in_the_banner(den_at, den):
    page = arrived(den_at())
    den.client.pause_agent("moss", reason=HOSTILE)
    try:
        expect(page.get_by_role("alert").filter(has_text="moss")).to_contain_text(MARKUP)
        assert harmed(page) == []
    finally:
        den.client.resume_agent("moss")


def test_that_words_which_come_to_life_are_found(den_at):
    page = arrived(den_at.new())
    page.evaluate(r"""() => {
      const grown = document.createElement("u"), text = document.createElement("p"), link = document.createElement("a");
      text.append("before \u202egnp.exe", document.createElement("span"), "after");
      link.href = "javascript:0";
      document.querySelector("main").append(grown, text, link);
    }""")
    said = harmed(page)
    assert len(said) == 3 and "javascript:0" in said and "<u></u>" in said
