"""The desk in headless Chromium: pages fit a telephone, and the way in works with its cookies and headers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from desk_browser import Browser

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine: apt install chromium")


def chromium(folder: Path, *arguments: str) -> str:
    """What a browser with a profile of its own says."""
    assert CHROMIUM is not None
    profile = [f"--user-data-dir={folder / 'profile'}", "--no-first-run", "--disable-extensions", "--disable-gpu"]
    command = [CHROMIUM, "--headless=new", "--no-sandbox", *profile, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_address_of_the_terminal_leads_in(browser: Browser, tmp_path: Path) -> None:
    shown = chromium(tmp_path, "--dump-dom", f"{browser.base}{browser.token_path}")
    assert '<a href="/table?name=people">people</a>' in shown


@pytest.mark.parametrize("page", ["/tables/new?table=people", "/hierarchy?table=people&column=region"])
def test_a_page_is_drawn_375_pixels_wide(browser: Browser, tmp_path: Path, page: str) -> None:
    picture = tmp_path / "page.png"
    address = f"{browser.base}{page}&token={browser.token}"
    chromium(tmp_path, f"--screenshot={picture}", "--window-size=375,900", address)
    assert picture.read_bytes().startswith(b"\x89PNG")
