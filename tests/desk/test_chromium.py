"""The desk in headless Chromium: pages fit a telephone, and the way in works with its cookies and headers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from desk_browser import Browser
from driven_chromium import window

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine: apt install chromium")


PATTERN = [
    ("table", "people"), ("publication", "by_region"), ("dimension", "region"), ("dimension", "sex"), ("max_count", "1"),
    ("filled", "1"),
]  # fmt: skip


def command(folder: Path) -> list[str]:
    """A browser with a profile of its own."""
    assert CHROMIUM is not None
    profile = [f"--user-data-dir={folder / 'profile'}", "--no-first-run", "--disable-extensions", "--disable-gpu"]
    return [CHROMIUM, "--headless=new", "--no-sandbox", *profile]


def chromium(folder: Path, *arguments: str) -> str:
    """What it says."""
    return subprocess.run([*command(folder), *arguments], capture_output=True, text=True, check=True).stdout


def test_the_address_of_the_terminal_leads_in(browser: Browser, tmp_path: Path) -> None:
    shown = chromium(tmp_path, "--dump-dom", f"{browser.base}{browser.token_path}")
    assert '<a href="/table?name=people">people</a>' in shown


# The ratio of luminances that the guidelines for web content ask of text (WCAG 2.2, 1.4.3), and the least of a page.
CONTRAST = """(() => {
  const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = rgb => rgb.slice(0, 3).map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, place) => sum + c * [.2126, .7152, .0722][place], 0);
  const behind = one => {
    for (; one; one = one.parentElement) {
      const color = parts(getComputedStyle(one).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const least = [99, ""], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const one = node.parentElement;
    if (!node.data.trim() || !one.checkVisibility()) continue;
    const pair = [light(parts(getComputedStyle(one).color)), light(behind(one))].sort((a, b) => b - a);
    const ratio = (pair[0] + .05) / (pair[1] + .05);
    if (ratio < least[0]) least.splice(0, 2, ratio, node.data.trim());
  }
  return least;
})()"""


def test_pages_fit_a_telephone_and_can_be_read_and_used_by_keys(browser: Browser, tmp_path: Path) -> None:
    pattern = browser.finished(browser.post("/tables/pattern", PATTERN)).path
    pages = ["/", "/table?name=people", "/hierarchy?table=people&column=region", "/tables", "/tables/new?table=people",
             "/records?table=people", "/access?table=people", "/releases", pattern]  # fmt: skip
    with window(command(tmp_path)) as page:
        page.narrow(375)
        for path in pages:
            page.open(f"{browser.base}{path}{'&' if '?' in path else '?'}token={browser.token}")
            for details in (False, True):
                page.read(f"document.querySelectorAll('details').forEach(one => one.open = {str(details).lower()})")
                assert page.read("document.documentElement.scrollWidth") <= 375, path
                ratio, words = page.read(CONTRAST)
                assert ratio >= 4.5, (path, words)
                nameless = [role for role, name in page.names() if not name and role != "RootWebArea"]
                assert nameless == [], path
            assert page.read("document.documentElement.lang") == "en"
            assert page.read("document.querySelectorAll('h1, main').length") == 2, path
            page.press("Tab")
            assert page.read("document.activeElement.textContent") == "To the page", path


def test_a_slider_is_moved_by_keys_and_the_pattern_is_made_again(browser: Browser, tmp_path: Path) -> None:
    made = browser.finished(browser.post("/tables/pattern", PATTERN))
    slider = "document.getElementById('slide.max_count')"
    with window(command(tmp_path)) as page:
        page.open(f"{browser.base}{made.path}?token={browser.token}")
        assert ("slider", "Cells of 1 to so many records are not published") in page.names()
        assert all(name for role, name in page.names() if role != "RootWebArea"), page.names()
        page.read(f"{slider}.focus()")
        page.press("ArrowRight")
        page.until(f"location.pathname != '{made.path}' && {slider} && {slider}.value == '2'")
        page.until("document.body.textContent.includes('Cells of 1 to 2 records are not published')")
        # Whoever moves it by keys goes on from there.
        page.until(f"document.readyState == 'complete' && document.activeElement == {slider}")
        page.press("ArrowLeft")
        page.until(f"{slider} && {slider}.value == '1' && document.body.textContent.includes('Cells of 1 record are')")
