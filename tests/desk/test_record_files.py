"""Files of records that may leave: single values suppressed, or synthetic, with what they give away said first."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from desk_browser import Answer, Browser
from desk_server import running

import sdcduck

FORM = [("table", "survey"), ("key", "region"), ("key", "sex"), ("k", "3"), ("filled", "1")]


@pytest.fixture(scope="module")
def surveyed(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    file = tmp_path_factory.mktemp("records") / "register.duckdb"
    shutil.copy(made, file)
    with sdcduck.connect(file) as con:
        con.execute(
            "CREATE TABLE survey AS SELECT range AS person_id, ['N', 'S', 'E'][1 + (hash(range) % 3)::INTEGER] AS region, "
            "['f', 'm'][1 + (hash(range + 999) % 2)::INTEGER] AS sex, (hash(range + 77) % 9)::INTEGER AS rooms "
            "FROM range(200) UNION ALL SELECT 900, 'X', 'f', 3"
        )
    with running(file) as browser:
        yield browser


def asked(browser: Browser, name: str, method: str, *more: tuple[str, str]) -> Answer:
    fields = [*FORM, ("release", name), ("method", method), *more]
    return browser.finished(browser.post("/records/release", fields))


def rows(browser: Browser, statement: str) -> list[dict[str, object]]:
    with browser.register.reading() as reading:
        found: list[dict[str, object]] = reading.rows(statement)
    return found


def test_values_are_suppressed_until_each_may_be_one_of_k(surveyed: Browser) -> None:
    answer = asked(surveyed, "few", "suppressed")
    assert answer.status == 200, answer.text
    assert "Each record may be one of 3 by region, sex" in answer.page.text
    [alone] = rows(surveyed, "FROM few WHERE region IS NULL OR sex IS NULL")
    assert alone == {"region": None, "sex": "f", "rooms": 3}
    assert "person_id" not in alone  # identifiers do not leave
    # Records do not stand where they stand in the register.
    assert rows(surveyed, "FROM few") == rows(surveyed, "FROM few ORDER BY ALL")
    assert rows(surveyed, "FROM few") != rows(surveyed, "SELECT region, sex, rooms FROM survey")
    assert rows(surveyed, "SELECT name, kind, cells FROM sdc_releases()") == [
        {"name": "few", "kind": "table", "cells": 201}
    ]


def test_synthetic_records_come_with_copies_beside_halves(surveyed: Browser) -> None:
    answer = asked(surveyed, "drawn", "synthetic", ("seed", "7"))
    assert answer.status == 200, answer.text
    [told] = rows(surveyed, "FROM sdc_identical_matches('(SELECT region, sex, rooms FROM survey)', 'drawn')")
    assert f"{told['matches']}" in answer.page.text
    assert "Of the persons of one half" in answer.page.text
    assert answer.page.unlabelled == []
    before = rows(surveyed, "FROM drawn ORDER BY ALL")
    assert asked(surveyed, "drawn", "synthetic", ("seed", "7"), ("replace", "1")).status == 200
    assert rows(surveyed, "FROM drawn ORDER BY ALL") == before


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"method": "copied"}, "unknown kind of file"),
        ({"release": "survey"}, "is a table of the register"),
        ({"release": "few"}, "is a release"),
        ({"release": ""}, "give the publication a name"),
        ({"key": "person_id"}, "is an identifier"),
        ({"key": "nothing"}, "unknown column"),
        ({"table": "nothing"}, "unknown table"),
    ],
)
def test_what_does_not_leave(surveyed: Browser, fields: dict[str, str], words: str) -> None:
    if fields.get("release") == "few":
        asked(surveyed, "few", "suppressed")
        words = "there is a release"
    given = {"table": "survey", "key": "sex", "k": "3", "release": "another", "method": "suppressed", **fields}
    answer = surveyed.post("/records/release", list(given.items()))
    assert (answer.status, words in answer.page.text) == (400, True), answer.text
