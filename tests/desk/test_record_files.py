"""Files of records that may leave: single values suppressed, or synthetic, with what they give away said first."""

from __future__ import annotations

import re
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
        con.execute(
            "CREATE TABLE panel AS SELECT *, (hash(person_id + 5) % 5000) / 4 AS income, DATE '2020-01-01' "
            "+ (hash(person_id + 6) % 900)::INTEGER AS since, person_id % 2 = 0 AS member FROM survey"
        )
        con.execute("CREATE TABLE nobody AS FROM survey LIMIT 0")
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


MASKS = {"region": "rest", "sex": "change", "rooms": "out", "income": "group", "since": "group", "member": ""}


def masks(browser: Browser, name: str, *more: tuple[str, str], **changed: str) -> Answer:
    picked = [(f"mask.{column}", mask) for column, mask in (MASKS | changed).items()]
    fields = [("table", "panel"), ("key", "sex"), ("key", "region"), ("k", "3"), ("filled", "1"), ("seed", "5")]
    fields += [("release", name), ("method", "masked"), *picked, *more]
    return browser.finished(browser.post("/records/release", fields))


def test_each_column_has_the_masks_that_are_for_it(surveyed: Browser) -> None:
    page = surveyed.get("/records?table=panel").page
    assert page.unlabelled == []
    options = {
        column: re.findall(r'<option value="(\w*)"', menu)
        for column, menu in re.findall(r'<select name="mask\.(\w+)"(.*?)</select>', page.source, re.DOTALL)
    }
    assert options == {
        "region": ["", "rest", "change", "out"], "sex": ["", "rest", "change", "out"],
        "rooms": ["", "change", "swap", "noise", "group", "out"], "income": ["", "swap", "noise", "group", "out"],
        "since": ["", "swap", "group", "out"], "member": ["", "change", "out"],
    }  # fmt: skip


def test_columns_are_masked_each_in_its_way(surveyed: Browser) -> None:
    answer = masks(surveyed, "masked")
    assert answer.status == 200, answer.text
    assert [row[0] for row in answer.page.rows] == ["column", "region", "sex", "income", "since"]
    assert answer.page.unlabelled == []
    [kept] = rows(surveyed, "SELECT count(*) AS n, sum(income) AS total FROM masked")
    [original] = rows(surveyed, "SELECT count(*) AS n, sum(income) AS total FROM panel")
    assert kept["n"] == original["n"]
    assert kept["total"] == pytest.approx(original["total"])  # means of groups
    [groups] = rows(surveyed, "SELECT min(n) AS least FROM (SELECT count(*) AS n FROM masked GROUP BY income, since)")
    assert groups == {"least": 3}
    assert rows(surveyed, "SELECT count(*) AS n FROM masked WHERE region = 'X'") == [{"n": 0}]
    assert rows(surveyed, "FROM masked") == rows(surveyed, "FROM masked ORDER BY ALL")
    assert list(rows(surveyed, "FROM masked LIMIT 1")[0]) == ["region", "sex", "income", "since", "member"]
    before = rows(surveyed, "FROM masked")
    assert masks(surveyed, "masked", ("replace", "1")).status == 200
    assert rows(surveyed, "FROM masked") == before


def test_numbers_are_exchanged_or_get_noise_and_values_are_suppressed_afterwards(surveyed: Browser) -> None:
    answer = masks(
        surveyed,
        "noisy",
        ("suppress", "1"),
        region="",
        sex="",
        rooms="noise",
        income="swap",
        since="swap",
        member="out",
    )
    assert answer.status == 200, answer.text
    assert "Each record may be one of 3 by sex, region" in answer.page.text
    [kinds] = rows(surveyed, "SELECT typeof(rooms) AS rooms, typeof(since) AS since FROM noisy LIMIT 1")
    assert kinds == {"rooms": "BIGINT", "since": "DATE"}
    assert rows(surveyed, "SELECT income FROM noisy ORDER BY 1") == rows(
        surveyed, "SELECT income FROM panel ORDER BY 1"
    )
    together = "SELECT count(*) AS n FROM (SELECT region, sex, income, since FROM {} INTERSECT SELECT region, sex, income, since FROM {})"
    [same] = rows(surveyed, together.format("noisy", "panel"))
    assert isinstance(same["n"], int)
    assert same["n"] < 5
    assert rows(surveyed, "SELECT count(*) AS n FROM noisy WHERE region IS NULL OR sex IS NULL") == [{"n": 1}]


@pytest.mark.parametrize("method", ["masked", "synthetic", "suppressed"])
def test_of_no_records_there_is_no_file(surveyed: Browser, method: str) -> None:
    fields = [("table", "nobody"), ("key", "region"), ("k", "3"), ("filled", "1"), ("release", "none")]
    answer = surveyed.finished(
        surveyed.post("/records/release", [*fields, ("method", method), ("mask.region", "change")])
    )
    assert (answer.status, "'nobody' has no records" in answer.page.text) == (400, True), answer.text


@pytest.mark.parametrize(
    ("changed", "more", "words"),
    [
        ({"sex": "noise"}, (), "unknown mask of 'sex'"),
        ({"income": "rest"}, (), "unknown mask of 'income'"),
        (dict.fromkeys(MASKS, ""), (), "pick a mask for at least one column"),
        (dict.fromkeys(MASKS, "out"), (), "all columns were left out"),
        ({"sex": "out"}, (("suppress", "1"),), "'sex' is left out"),
    ],
)
def test_masks_that_are_none(
    surveyed: Browser, changed: dict[str, str], more: tuple[tuple[str, str], ...], words: str
) -> None:
    answer = masks(surveyed, "wrong", *more, **changed)
    assert (answer.status, words in answer.page.text) == (400, True), answer.page.text


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
