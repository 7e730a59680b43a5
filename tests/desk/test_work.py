"""Long work: other pages are answered meanwhile, it waits its turn, and it can be stopped."""

from __future__ import annotations

from desk_browser import Browser

from sdcduck.desk.forms import Form
from sdcduck.desk.work import Work

ENDLESS = "SELECT count(*) AS n FROM range(10000000) a, range(10000000) b WHERE sqrt(a.range * b.range + 1) < 0.5"


def begun(browser: Browser, title: str, statement: str) -> Work:
    work: Work = browser.register.worker.start(Work("rows", title, statement, Form([]), writes=True))
    return work


def test_work_waits_its_turn_is_stopped_and_leaves_nothing(browser: Browser) -> None:
    endless = begun(browser, "an endless one", ENDLESS)
    other = begun(browser, "the other", "SELECT 42 AS answer")
    later = begun(browser, "a third", "SELECT 43 AS answer")
    while endless.state == "waiting":
        browser.get("/")  # pages are answered while it runs
    page = browser.get(f"/work/{endless.number}")
    assert "Is running" in page.text
    assert page.page.statements == [f"{ENDLESS};"]
    assert f'Waits for <a href="/work/{endless.number}">an endless one</a>' in browser.get(f"/work/{other.number}").text
    browser.register.worker.progress(0.25)
    assert "25 % done" in browser.get(f"/work/{endless.number}").text
    assert browser.post(f"/work/{later.number}/stop", []).status == 200
    assert "Stopped" in browser.finished(browser.post(f"/work/{endless.number}/stop", [])).text
    assert browser.finished(browser.get(f"/work/{other.number}")).page.rows == [["answer"], ["42"]]
    assert "Stopped" in browser.finished(browser.get(f"/work/{later.number}")).text
    assert [one.title for one in browser.register.worker.written] == ["the other"]


def test_an_error_of_the_database_is_shown_and_the_next_one_runs(browser: Browser) -> None:
    wrong = begun(browser, "wrong", "FROM sdc_publish('a', 'SELECT 1')")
    right = begun(browser, "right", "SELECT 1 AS one")
    answer = browser.finished(browser.get(f"/work/{wrong.number}"))
    assert answer.status == 400
    assert "sdc_publish: " in answer.text
    assert "LINE 1" not in answer.text
    assert browser.finished(browser.get(f"/work/{right.number}")).page.rows == [["one"], ["1"]]


def test_the_last_answers_are_kept(browser: Browser) -> None:
    first = begun(browser, "first", "SELECT 1 AS one")
    for _ in range(40):
        last = begun(browser, "more", "SELECT 1 AS one")
    last.over.wait()
    begun(browser, "more", "SELECT 1 AS one").over.wait()
    assert "this answer is gone" in browser.get(f"/work/{first.number}").text
    assert browser.get(f"/work/{last.number}").status == 200
