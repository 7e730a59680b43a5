"""Who the desk answers: the browser that has the token, under the desk's own address, from the desk's own pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from desk_browser import Browser

import sdcduck.desk

TEMPLATES = Path(sdcduck.desk.__file__).parent / "templates"
POSTS = ["/table/roles", "/tables/pattern", "/tables/audit", "/tables/publish", "/tables/release", "/work/1/stop", "/records/risk", "/records/release",
         "/access/protect", "/releases/approve", "/releases/export", "/releases/remove"]  # fmt: skip
GETS = ["/", "/table?name=people", "/tables", "/tables/new?table=people", "/work/1", "/records", "/access", "/releases",
        "/releases/cells.csv?name=p", "/script.sql", "/desk.css", "/nowhere"]  # fmt: skip


@pytest.mark.parametrize("path", GETS)
def test_nothing_is_shown_without_the_cookie(browser: Browser, path: str) -> None:
    for cookie in (None, "", "a=b", f"sdcduck-desk-{browser.port}=", f"sdcduck-desk-{browser.port}={browser.token}"):
        answer = browser.ask("GET", path, Cookie=cookie)
        assert answer.status == 403, cookie
        assert answer.text == "Open the address that the terminal shows, with its token.\n"


@pytest.mark.parametrize("token", ["", "x", "é", "%FF", "{token}x", "{token}&token={token}"])
def test_a_wrong_token_lets_nobody_in(browser: Browser, token: str) -> None:
    path = f"/?token={token.format(token=browser.token)}"
    answer = browser.ask("GET", path.replace("é", "%C3%A9"), Cookie=None)
    assert (answer.status, answer.headers["Set-Cookie"]) == (403, None)


def test_the_token_is_changed_for_a_cookie_and_leaves_the_address(browser: Browser) -> None:
    answer = browser.ask("GET", f"/table?name=a+b&token={browser.token}", Cookie=None)
    assert (answer.status, answer.headers["Location"]) == (303, "/table?name=a+b")
    kept = answer.headers["Set-Cookie"]
    assert browser.token not in kept
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(kept.split("; "))


def test_the_way_in_leads_to_no_other_machine(browser: Browser) -> None:
    for path, here in (("//example.org/", "/example.org/"), ("/\\example.org/", "/%5Cexample.org/")):
        answer = browser.ask("GET", f"{path}?token={browser.token}", Cookie=None)
        assert answer.headers["Location"] == here


@pytest.mark.parametrize("host", [None, "", "example.org", "localhost", "127.0.0.1:1", "127.0.0.1.example.org:{port}"])
def test_another_name_is_not_answered(browser: Browser, host: str | None) -> None:
    """A name that somebody made stand for this machine; with the cookie, too."""
    given = host and host.format(port=browser.port)
    assert browser.ask("GET", "/", Host=given).status in (400, 421)
    assert browser.ask("GET", browser.token_path, Host=given, Cookie=None).status in (400, 421)


def test_localhost_is_a_name_of_this_machine(browser: Browser) -> None:
    assert browser.ask("GET", "/", Host=f"localhost:{browser.port}").status == 200


@pytest.mark.parametrize("path", POSTS)
def test_a_form_of_another_page_is_not_taken(browser: Browser, path: str) -> None:
    others: list[dict[str, str | None]] = [
        {"Origin": None}, {"Origin": "null"}, {"Origin": "http://example.org"}, {"Origin": "http://127.0.0.1"},
        {"Origin": f"https://127.0.0.1:{browser.port}"}, {"Origin": f"http://localhost:{browser.port}"},
        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
    ]  # fmt: skip
    for headers in others:
        answer = browser.ask("POST", path, "table=people", **headers)
        assert (answer.status, answer.text) == (403, "A form is taken from pages of the desk only.\n"), headers
    assert browser.ask("POST", path, "table=people", Cookie=None).status == 403
    assert browser.register.worker.written == []


def test_other_methods_and_long_forms_are_not_taken(browser: Browser) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert browser.ask(method, "/").status == 405
    assert browser.ask("POST", "/tables/pattern", "", Content_Length="1000001").status == 413
    assert browser.ask("POST", "/tables/pattern", "", Content_Length=None, Transfer_Encoding="chunked").status == 413
    many = "&".join("dimension=a" for _ in range(3000))
    assert browser.ask("POST", "/tables/pattern", many).status == 400


def test_each_answer_says_what_a_browser_may_do_with_it(browser: Browser) -> None:
    for path in ("/", "/nowhere", "/desk.css", "/desk.js"):
        for cookie in (browser.cookie, None):
            headers = browser.ask("GET", path, Cookie=cookie).headers
            policy = headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; ")
            assert "unsafe" not in policy
            assert "; script-src 'self'; " in policy
            assert "frame-ancestors 'none'" in policy
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cache-Control"] == "no-store"
            assert headers["Referrer-Policy"] == "same-origin"
            assert headers["Server"] is None


def test_pages_have_no_script_no_style_inside_and_nothing_from_elsewhere() -> None:
    for template in TEMPLATES.iterdir():
        # That of the sliders is a file of the desk.
        text = template.read_text(encoding="utf-8").replace('<script src="/desk.js" defer></script>', "")
        assert not re.search(r"<script|\son\w+=|\sstyle=|<style|https?:|url\(|@import|\|\s*safe", text), template.name
