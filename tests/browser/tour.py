"""Every place is visited once for all that is to be seen there: light and dark, small and large, by eye and by key.

Law: a tour only looks. What is wanted of what it saw is said by the tests: `test_access`, `test_shell`,
`test_pictures`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.browser.chromium import settled
from tests.browser.desk import Desk
from tests.browser.places import NAMES, arrived, route

WIDE, HIGH = 1440, 960
SIZES = ((360, 740), (3840, 1_000))
# Of these the guide has a picture.
PICTURED = tuple(name for name in NAMES if name not in ("runs", "task"))

AXE = files("axe_playwright_python") / "axe.min.js"
# Of many rows that are alike the first are looked at.
FINDINGS = """async (options) => (await axe.run(
    { exclude: [["main li:nth-child(n + 16)"]] }, { resultTypes: ["violations"], ...options })).violations
  .filter((each) => ["serious", "critical"].includes(each.impact))
  .map((each) => `${each.id}: ${each.help}: ` + each.nodes.slice(0, 3)
    .map((node) => `${node.html.slice(0, 200)} ${node.any[0]?.message ?? ""}`).join(" | "))"""

# What a theme can change.
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}

# Each control in turn is given the focus as the Tab key gives it, and must show it: by an outline, or by what differs
# from when it is left. And whatever looks as if it could be clicked is a control, or within one, or holds one.
UNUSABLE = """() => {
  const kinds = "a[href], button, input, select, textarea, summary, [tabindex]";
  const named = (one) => `${one.tagName} ${one.ariaLabel ?? one.textContent}`.slice(0, 80);
  const isSeen = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const look = (one) => {
    const style = getComputedStyle(one);
    const outline = style.outlineStyle === "none" ? "" : style.outlineStyle + style.outlineWidth;
    return [outline, style.boxShadow, style.backgroundColor, style.borderColor, style.textDecorationLine].join();
  };
  const found = [];
  document.activeElement.blur();
  for (const one of document.querySelectorAll(kinds)) {
    if (one.disabled || !isSeen(one)) continue;
    if (one.tabIndex > 0) found.push(`out of order: ${named(one)}`);
    // Of several that the arrow keys lead through, one stands for all.
    const group = one.closest("[role=cell], [role=tablist], [role=toolbar], [role=listbox]");
    const others = group ? [...group.querySelectorAll(kinds)] : [];
    const isLed = one.matches("main, dialog") || others.some((each) => each.tabIndex === 0);
    if (one.tabIndex < 0 && !isLed) found.push(`passed over: ${named(one)}`);
    if (one.tabIndex < 0 || one.type === "radio") continue;
    const before = look(one);
    one.focus({ focusVisible: true });
    if (document.activeElement !== one) found.push(`not reached: ${named(one)}`);
    else if (look(one) === before) found.push(`not seen to be reached: ${named(one)}`);
    one.blur();
  }
  for (const one of document.querySelectorAll("main *, header *")) {
    if (getComputedStyle(one).cursor !== "pointer" || !isSeen(one)) continue;
    const held = one.closest(`${kinds}:not(main), label`) || one.querySelector(kinds);
    if (!held) found.push(`only for a mouse: ${named(one)} ${one.outerHTML.slice(0, 80)}`);
  }
  return [...new Set(found)].slice(0, 12);
}"""

TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  const inside = (one) => {
    for (let up = one.parentElement; up && up !== document.body; up = up.parentElement)
      if (getComputedStyle(up).overflowX !== "visible") return true;
    return false;
  };
  if (document.documentElement.scrollWidth <= width && document.body.scrollWidth <= width) return [];
  return [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > width + 1 && !inside(one))
    .slice(0, 5).map((one) => one.outerHTML.slice(0, 120));
}"""


def barred(page: Page, options: dict[str, Any] | None = None) -> list[str]:
    """What axe-core finds serious."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8") + "; null")
    return list(page.evaluate(FINDINGS, options or {}))


def taken(page: Page, file: Path) -> None:
    page.mouse.move(0, 0)
    settled(page)
    page.screenshot(path=file, animations="disabled", caret="hide")


@dataclass
class Tour:
    """What was wrong, by place; and the folder of the pictures."""

    album: Path
    barred: dict[str, dict[str, list[str]]] = field(default_factory=lambda: {"light": {}, "dark": {}})
    unusable: dict[str, list[str]] = field(default_factory=dict)
    too_wide: dict[str, list[str]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)

    def of(self, page: Page, fleet: Desk) -> Tour:
        for name in NAMES:
            page.set_viewport_size({"width": WIDE, "height": HIGH})
            page.goto(f"{fleet.url}/{route(fleet, name)}")
            arrived(page)
            self.words[name] = page.inner_text("body")
            for theme, options in (("light", None), ("dark", COLOURS)):
                page.emulate_media(color_scheme="light" if theme == "light" else "dark")
                settled(page)
                if name in PICTURED:
                    taken(page, self.album / f"{name.replace(' ', '-')}-{theme}.png")
                self._keep(self.barred[theme], name, barred(page, options))
            page.emulate_media(color_scheme="light")
            self._keep(self.unusable, name, page.evaluate(UNUSABLE))
            for width, height in SIZES:
                page.set_viewport_size({"width": width, "height": height})
                arrived(page)
                self._keep(self.too_wide, f"{name} at {width}", page.evaluate(TOO_WIDE))
        return self

    @staticmethod
    def _keep(found: dict[str, list[str]], name: str, said: list[str]) -> None:
        if said:
            found[name] = said
