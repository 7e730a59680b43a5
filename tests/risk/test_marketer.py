"""Marketer risk under four assumptions: the worked examples of the specification of Zhang et al. (2022), and its relations."""

from __future__ import annotations

import datetime
from collections import Counter
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

MEASURES = "records, classes, invalid, im, cem, orem, arem"
POLICIES = "{'county': ['county'], 'sex': ['county', 'sex'], 'band': ['county', 'band'], 'both': ['county', 'band', 'sex'], 'age': ['county', 'age', 'sex']}"
FINER = [("county", "sex"), ("county", "band"), ("sex", "both"), ("band", "both"), ("both", "age")]


def make(con: duckdb.DuckDBPyConnection, pairs: list[tuple[int, int]]) -> None:
    """Classes with so many records released and so many people outside."""
    con.execute("CREATE OR REPLACE TABLE d (q INTEGER); CREATE OR REPLACE TABLE e (q INTEGER)")
    for place, (released, outside) in enumerate(pairs):
        con.execute("INSERT INTO d SELECT ? FROM range(?)", [place, released])
        con.execute("INSERT INTO e SELECT ? FROM range(?)", [place, outside])


def risk(con: duckdb.DuckDBPyConnection, columns: str = MEASURES, more: str = "") -> tuple[Any, ...]:
    (found,) = con.execute(f"SELECT {columns} FROM sdc_marketer_risk('d', 'e', keys := ['q']{more})").fetchall()
    return found


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        ([(3, 2), (1, 0), (2, 4), (1, 1)], (7, 4, 4, 4 / 7, 3.5 / 7, 1.5 / 3, 1.5 / 7)),
        ([(3, 2), (1, 0), (2, 8), (4, 100), (1, 5), (5, 5)], (16, 6, 4, 0.375, 0.218125, 1.49 / 12, 0.093125)),
        ([(1, 1), (10, 5)], (11, 2, 10, 2 / 11, 2 / 11, 1, 1 / 11)),  # where the paper's OREM <= CEM is not so
        ([(2, 1), (3, 0)], (5, 2, 5, 0.4, 0.4, None, 0)),
    ],
)
def test_worked_examples(con: duckdb.DuckDBPyConnection, pairs: list[tuple[int, int]], wanted: tuple[Any, ...]) -> None:
    make(con, [*pairs, (0, 7)])  # people of whom nobody is released do not matter
    found = risk(con)
    assert [None if x is None else pytest.approx(x, abs=1e-9) for x in wanted] == list(found)
    reductions = risk(con, "reduction_cem, reduction_orem, reduction_arem")
    assert reductions == tuple(
        None if x is None else pytest.approx(100 * (wanted[3] - x) / wanted[3], abs=1e-9) for x in wanted[4:]
    )
    if wanted[0] == 16:
        assert reductions == pytest.approx((41.8333, 66.8889, 75.1667), abs=5e-5)


def test_the_highest_risks_stand_beside_the_means(con: duckdb.DuckDBPyConnection) -> None:
    make(con, [(1000, 2000), *[(1, 3)] * 10])
    wanted = (11 / 1010, 1, 1, 1 / 3, 10 / 1010, 10 / 1010, True)
    assert risk(
        con, "im, k, max_prosecutor, max_journalist, share_unique, share_below_k, im_acceptable"
    ) == pytest.approx(wanted)
    make(con, [(11, 11)] * 9)  # 0.0909 is the limit, not 0.09
    assert risk(con, "im_acceptable, cem_acceptable, orem_acceptable, arem_acceptable, share_below_k") == (
        True,
    ) * 4 + (0,)
    assert risk(con, "im_acceptable", ", k := 12") == (False,)


def test_without_an_identified_file(con: duckdb.DuckDBPyConnection) -> None:
    make(con, [(3, 0), (1, 0)])
    (row,) = con.execute("SELECT * FROM sdc_marketer_risk('d', keys := ['q'])").fetchall()
    names = [column[0] for column in con.description or []]
    found = dict(zip(names, row, strict=True))
    assert (found["im"], found["k"], found["max_prosecutor"], found["im_acceptable"]) == (0.5, 1, 1, False)
    for name in names:
        if any(word in name for word in ("cem", "orem", "arem", "invalid", "journalist")):
            assert found[name] is None, name
    assert con.execute("FROM sdc_marketer_risk_classes('d', keys := ['q']) ORDER BY q").fetchall() == [
        (0, 3, None, None, pytest.approx(1 / 3), None, None), (1, 1, None, None, 1, None, None)
    ]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 60)), min_size=1, max_size=8))
def test_relations(lasting: duckdb.DuckDBPyConnection, pairs: list[tuple[int, int]]) -> None:
    con = lasting
    make(con, pairs)
    records, classes, invalid, im, cem, orem, arem = risk(con)
    assert im == pytest.approx(classes / records)
    assert arem <= cem + 1e-12
    assert cem <= im + 1e-12
    assert (orem is None) == (invalid == records)
    if orem is not None:
        assert arem <= orem + 1e-12
        assert arem == pytest.approx(orem * (1 - invalid / records), abs=1e-12)
    if invalid == 0:
        assert cem == pytest.approx(orem)
    rows = con.execute("FROM sdc_marketer_risk_classes('d', 'e', keys := ['q']) ORDER BY q").fetchall()
    assert [row[1:4] for row in rows] == [(f, there, f <= there) for f, there in pairs]
    for place, whole in ((4, im), (5, cem)):
        assert sum(row[1] * row[place] for row in rows) / records == pytest.approx(whole)
    assert sum(row[1] * row[6] for row in rows if row[6] is not None) / records == pytest.approx(arem)


@pytest.fixture
def epidemic(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A population of 67 counties, the list of most of its adults, and a file of cases that grows."""
    con.execute("""
        CREATE TABLE population AS
        SELECT i AS id, (67 * pow((hash(i) % 100000) / 100000.0, 2.5))::INTEGER AS county, (hash(7 * i) % 95)::INTEGER AS age,
            ['f', 'm'][1 + (hash(11 * i) % 2)::INTEGER] AS sex, age // 30 AS band FROM range(200000) r(i);
        CREATE TABLE voters AS FROM population WHERE age >= 18 AND hash(13 * id) % 4 > 0;
        CREATE TABLE cases AS SELECT *, DATE '2020-04-01' + (hash(17 * id) % 400)::INTEGER AS day
        FROM population WHERE hash(19 * id) % 10 = 0;
    """)
    return con


def test_policies_over_time(epidemic: duckdb.DuckDBPyConnection) -> None:
    days = [datetime.date(2020, 4, 2), datetime.date(2020, 7, 1), datetime.date(2021, 6, 1)]
    rows = epidemic.execute(
        f"SELECT policy, as_of, {MEASURES} FROM sdc_policy_risk('cases', 'voters', policies := {POLICIES}, date := 'day', as_of := $1)",
        [days],
    ).fetchall()
    found = {row[:2]: row[2:] for row in rows}
    assert len(found) == 15
    people = epidemic.execute("SELECT county, sex, band, age, day FROM cases").fetchall()
    outside = epidemic.execute("SELECT county, sex, band, age FROM voters").fetchall()
    place = {"county": (0,), "sex": (0, 1), "band": (0, 2), "both": (0, 2, 1), "age": (0, 3, 1)}
    for (policy, day), (records, classes, invalid, im, cem, orem, arem) in found.items():
        here = Counter(tuple(row[i] for i in place[policy]) for row in people if row[4] <= day)
        there = Counter(tuple(row[i] for i in place[policy]) for row in outside)
        valid = [(f, there[q]) for q, f in here.items() if f <= there[q]]
        assert (records, classes) == (sum(here.values()), len(here))
        assert invalid == records - sum(f for f, _ in valid)
        assert im == pytest.approx(classes / records, abs=1e-12)
        assert cem == pytest.approx(sum(f / max(f, there[q]) for q, f in here.items()) / records, abs=1e-12)
        assert arem == pytest.approx(sum(f / outside_ for f, outside_ in valid) / records, abs=1e-12)
        assert arem == pytest.approx(orem * (1 - invalid / records), abs=1e-12)
        assert arem <= cem <= im
    for coarse, fine in FINER:
        for day in days:
            assert found[coarse, day][3] <= found[fine, day][3]
    whole = epidemic.execute(
        f"SELECT as_of, {MEASURES} FROM sdc_policy_risk('cases', 'voters', policies := {{'sex': ['county', 'sex']}})"
    )
    assert whole.fetchall() == [(None, *epidemic.execute(
        f"SELECT {MEASURES} FROM sdc_marketer_risk('cases', 'voters', keys := ['county', 'sex'])").fetchall()[0])]  # fmt: skip


def test_years_of_birth(epidemic: duckdb.DuckDBPyConnection) -> None:
    found = epidemic.execute(
        "SELECT sdc_yob_range(DATE '2021-03-01', 30, 30), sdc_yob_range(DATE '2021-03-01', 30, 59), "
        "sdc_yob_range(DATE '2021-03-01', 90, NULL), sdc_yob_range(DATE '2021-03-01', NULL, 5)"
    ).fetchone()
    assert found == (
        {"low": 1990, "high": 1991}, {"low": 1961, "high": 1991}, {"low": None, "high": 1931}, {"low": 2015, "high": None}
    )  # fmt: skip


def test_nulls(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE d AS FROM (VALUES (1), (NULL), (NULL)) v(q); CREATE TABLE e AS FROM (VALUES (1), (NULL)) v(q)"
    )
    assert risk(con) == (3, 2, 2, pytest.approx(2 / 3), pytest.approx(2 / 3), 1, pytest.approx(1 / 3))
    assert risk(con, more=", nulls := 'drop'") == (1, 1, 0, 1, 1, 1, 1)
    con.execute("DELETE FROM d")
    assert risk(con, f"{MEASURES}, max_prosecutor, im_acceptable") == (0, 0, None, *[None] * 6)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("sdc_marketer_risk('d', 'e', keys := ['r'])", "unknown column 'r'"),
        (
            "sdc_marketer_risk('d', 'words', keys := ['q'])",
            "column 'q' is INTEGER in 'internal' and VARCHAR in 'external'",
        ),
        ("sdc_marketer_risk('d', '(SELECT 1 AS p)', keys := ['q'])", "unknown column 'q'"),
        ("sdc_marketer_risk('d', 'nowhere', keys := ['q'])", "unknown table 'nowhere'"),
        ("sdc_marketer_risk('d', 'e', keys := ['q'], k := 0)", "argument 'k' must be"),
        (
            "sdc_marketer_risk('d', '(SELECT true AS q)', keys := ['q'])",
            "column 'q' is INTEGER in 'internal' and BOOLEAN",
        ),
        (
            "sdc_marketer_risk('d', '(SELECT DATE ''2020-01-01'' AS q)', keys := ['q'])",
            "is INTEGER in 'internal' and DATE in",
        ),
        (
            "sdc_policy_risk('words', 'words', policies := {'one': ['q']}, date := 'q', as_of := [DATE '2020-01-01'])",
            "argument 'date' must name a column of dates or timestamps",
        ),
        ("sdc_policy_risk('d', 'e')", "argument 'policies' must name lists of columns"),
        ("sdc_policy_risk('d', 'e', policies := {'one': 'q'})", "policy 'one' must be a list of columns"),
        ("sdc_policy_risk('d', 'e', policies := {'one': []})", "argument 'keys' must name"),
        (
            "sdc_policy_risk('d', 'e', policies := {'one': ['q']}, date := 'q')",
            "arguments 'date' and 'as_of' go together",
        ),
        (
            "sdc_policy_risk('d', 'e', policies := {'one': ['q']}, date := 'q', as_of := [])",
            "argument 'as_of' must hold dates",
        ),
    ],
)
def test_bad_arguments(lasting: duckdb.DuckDBPyConnection, call: str, text: str) -> None:
    make(lasting, [(1, 1)])
    lasting.execute("CREATE OR REPLACE TABLE words AS SELECT 'a' AS q")
    with pytest.raises(duckdb.Error, match=text):
        lasting.execute(f"FROM {call}").fetchall()
