"""How many orders, stays or visits: what belongs to one unit is counted, grouped and looked for with its unit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused, guard

_TABLES = """
CREATE TABLE stays AS SELECT i AS stay, i * 7 % 90 AS person, i % 4 AS ward, i % 11 AS days FROM range(400) t(i);
CREATE TABLE tests AS SELECT CASE WHEN i % 40 = 7 THEN NULL ELSE i * 3 % 380 END AS of_stay, i * 21 % 380 AS of_visit,
    i * 3 % 380 * 7 % 90 AS patient, i % 5 AS kind, (i * 13 % 70)::DECIMAL(9, 2) AS price FROM range(1200) t(i);
CREATE TABLE drugs AS SELECT i % 400 AS of_stay, i % 400 * 7 % 90 AS patient, i // 400 % 3 AS drug, i % 9 AS day FROM range(1000) t(i);
"""
_POLICIES = (
    ("stays", "person", ["stay", "ward", "days"], [], "{'stay': 'stay'}"),
    ("tests", "patient", ["of_stay", "kind"], ["price"], "{'of_stay': 'stay'}"),
    ("drugs", "patient", ["of_stay", "drug", "day"], [], "{'of_stay': 'stay'}"),
)


@contextmanager
def _hospital(method: str) -> Iterator[tuple[duckdb.DuckDBPyConnection, Guard]]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(_TABLES)
        for table, unit, dimensions, measures, owned in _POLICIES:
            con.execute(f"FROM sdc_add_record_key('{table}', unit := '{unit}')").fetchall()
            con.execute(
                f"FROM sdc_protect('{table}', unit := '{unit}', dimensions := {dimensions}, measures := {measures}, "
                f"method := '{method}', population := 'patients', owned := {owned}"
                f"{', min_units := 1' if method == 'threshold' else ''})"
            ).fetchall()
        con.execute("CREATE TABLE x AS SELECT i AS stay, i % 3 AS person FROM range(50) t(i)")
        con.execute("FROM sdc_declare_public('x')").fetchall()
        yield con, guard(con)


_COUNTED = {
    "of a table of them": (
        "SELECT ward, count(DISTINCT stay) AS n FROM stays GROUP BY ward",
        "SELECT ward, count(stay) AS n FROM stays GROUP BY ward",
    ),
    "of others": (
        "SELECT drug, count(DISTINCT of_stay) AS n FROM drugs GROUP BY drug",
        "SELECT drug, count(*) AS n FROM (SELECT DISTINCT drug, of_stay, patient FROM drugs) GROUP BY drug",
    ),
    "where some are missing": (
        "SELECT count(DISTINCT of_stay) AS n FROM tests WHERE kind < 3",
        "SELECT count(*) AS n FROM (SELECT DISTINCT of_stay, patient FROM tests WHERE kind < 3 AND of_stay IS NOT NULL)",
    ),
    "in FILTER and CASE": (
        "SELECT count(DISTINCT of_stay) FILTER (WHERE drug = 1) AS a, count(DISTINCT CASE WHEN drug = 2 THEN of_stay END) AS b FROM drugs",
        "SELECT (SELECT count(DISTINCT of_stay) FROM drugs WHERE drug = 1) AS a, "
        "(SELECT count(DISTINCT of_stay) FROM drugs WHERE drug = 2) AS b",
    ),
    "of a subquery": (
        "SELECT d, count(DISTINCT s) AS n FROM (SELECT drug AS d, of_stay AS s, patient FROM drugs WHERE day > 3) GROUP BY d",
        "SELECT drug AS d, count(DISTINCT of_stay) AS n FROM drugs WHERE day > 3 GROUP BY d",
    ),
    "behind a join": (
        "SELECT ward, count(DISTINCT stay) AS n FROM stays LEFT JOIN drugs ON of_stay = stay AND drug = 1 GROUP BY ward",
        "SELECT ward, count(*) AS n FROM stays GROUP BY ward",
    ),
    "different ones": (
        "SELECT count(*) AS n FROM (SELECT DISTINCT of_stay FROM drugs WHERE drug = 2)",
        "SELECT count(*) AS n FROM (SELECT DISTINCT of_stay, patient FROM drugs WHERE drug = 2)",
    ),
    "groups of them": (
        "SELECT n, count(*) AS stays FROM (SELECT of_stay, count(*) AS n FROM drugs GROUP BY of_stay) GROUP BY n",
        "SELECT n, count(*) AS stays FROM (SELECT of_stay, count(*) AS n FROM drugs GROUP BY of_stay, patient) GROUP BY n",
    ),
    "groups in WITH, read twice": (
        "WITH a AS (SELECT of_stay, count(*) AS n FROM drugs GROUP BY 1), b AS (SELECT of_stay FROM a WHERE n > 2) "
        "SELECT ward, count(*) AS m FROM b JOIN stays ON stay = b.of_stay GROUP BY ward",
        "WITH a AS (SELECT of_stay, patient, count(*) AS n FROM drugs GROUP BY 1, 2), "
        "b AS (SELECT of_stay, patient FROM a WHERE n > 2) "
        "SELECT ward, count(*) AS m FROM b JOIN stays ON stay = b.of_stay AND person = patient GROUP BY ward",
    ),
    "GROUP BY ALL": (
        "SELECT drug, count(*) AS n FROM (SELECT drug, of_stay, max(day) AS last FROM drugs GROUP BY ALL HAVING count(*) > 0) GROUP BY drug",
        "SELECT drug, count(*) AS n FROM (SELECT drug, of_stay, patient, max(day) AS last FROM drugs GROUP BY ALL HAVING count(*) > 0) "
        "GROUP BY drug",
    ),
    "a subquery tied by it": (
        "SELECT ward, count(*) AS n FROM stays s JOIN (SELECT DISTINCT of_stay FROM drugs WHERE drug = 1) d ON d.of_stay = s.stay GROUP BY ward",
        "SELECT ward, count(*) AS n FROM stays s JOIN (SELECT DISTINCT of_stay, patient FROM drugs WHERE drug = 1) d "
        "ON d.of_stay = s.stay AND d.patient = s.person GROUP BY ward",
    ),
    "a query of WITH tied by it": (
        "WITH d AS (SELECT of_stay, day FROM drugs WHERE drug = 1) SELECT ward, count(*) AS n FROM stays, d WHERE stay = of_stay AND day < days "
        "GROUP BY ward",
        "WITH d AS (SELECT of_stay, day, patient FROM drugs WHERE drug = 1) SELECT ward, count(*) AS n FROM stays, d "
        "WHERE stay = of_stay AND patient = person AND day < days GROUP BY ward",
    ),
    "among groups": (
        "SELECT ward, count(*) AS n FROM stays WHERE stay IN (SELECT of_stay FROM drugs GROUP BY of_stay HAVING count(*) > 2) GROUP BY ward",
        "SELECT ward, count(*) AS n FROM stays WHERE (stay, person) IN "
        "(SELECT of_stay, patient FROM drugs GROUP BY of_stay, patient HAVING count(*) > 2) GROUP BY ward",
    ),
    "among different ones": (
        "SELECT ward, count(*) AS n FROM stays WHERE stay IN (SELECT DISTINCT of_stay FROM drugs WHERE drug = 1) GROUP BY ward",
        "SELECT ward, count(*) AS n FROM stays WHERE (stay, person) IN (SELECT of_stay, patient FROM drugs WHERE drug = 1) GROUP BY ward",
    ),
    "among others of a subquery": (
        "SELECT count(*) AS n FROM stays WHERE stay IN (SELECT d.s FROM (SELECT of_stay AS s FROM drugs WHERE drug = 1) d)",
        "SELECT count(*) AS n FROM stays WHERE stay IN (SELECT of_stay FROM drugs WHERE drug = 1)",
    ),
    "not among": (
        "SELECT ward, count(*) AS n FROM stays WHERE stay NOT IN (SELECT of_stay FROM drugs WHERE drug = 2) GROUP BY ward",
        "SELECT ward, count(*) AS n FROM stays WHERE NOT EXISTS (FROM drugs WHERE drug = 2 AND of_stay = stay AND patient = person) "
        "GROUP BY ward",
    ),
    "among or not, in OR": (
        "SELECT count(*) AS n FROM stays WHERE ward = 1 OR stay NOT IN (SELECT of_stay FROM drugs WHERE drug = 2) "
        "OR stay IN (SELECT of_stay FROM drugs WHERE day = 3)",
        "SELECT count(*) AS n FROM stays WHERE ward = 1 OR NOT EXISTS (FROM drugs WHERE drug = 2 AND of_stay = stay AND patient = person) "
        "OR EXISTS (FROM drugs WHERE day = 3 AND of_stay = stay AND patient = person)",
    ),
    "of each person": (
        "SELECT sum(n)::BIGINT AS n FROM (SELECT patient, count(DISTINCT of_stay) AS n FROM drugs GROUP BY patient)",
        "SELECT count(DISTINCT of_stay) AS n FROM drugs",
    ),
    "beside a table that is called as a query elsewhere": (
        "SELECT count(*) AS n FROM drugs d JOIN x p ON p.stay = d.of_stay "
        "WHERE d.of_stay IN (WITH x AS (SELECT stay FROM stays) SELECT x.stay FROM x WHERE x.stay > 20)",
        "SELECT count(*) AS n FROM drugs d JOIN x p ON p.stay = d.of_stay WHERE d.of_stay IN (SELECT stay FROM stays WHERE stay > 20)",
    ),
    "means of each": (
        "SELECT avg(n) AS m FROM (SELECT count(*) AS n FROM drugs GROUP BY of_stay)",
        "SELECT avg(n) AS m FROM (SELECT count(*) AS n FROM drugs GROUP BY of_stay, patient)",
    ),
    "each with its stay, thrice": (
        "SELECT a.ward, count(*) AS n FROM drugs LEFT JOIN stays a ON a.stay = of_stay LEFT OUTER JOIN stays b ON b.stay = of_stay "
        "LEFT JOIN stays c ON c.stay = b.stay GROUP BY ALL",
        "SELECT ward, count(*) AS n FROM drugs JOIN stays ON stay = of_stay AND person = patient GROUP BY ALL",
    ),
    "two tables of them, each with their stay": (
        "SELECT a.drug, b.drug AS other, count(DISTINCT a.person) AS n "
        "FROM (SELECT s.person, stay, drug, day FROM drugs JOIN stays s ON stay = of_stay) a "
        "JOIN (SELECT s.person, stay, drug, day FROM drugs JOIN stays s ON stay = of_stay) b ON a.person = b.person "
        "WHERE a.day < b.day AND a.stay = b.stay GROUP BY ALL",
        "SELECT a.drug, b.drug AS other, count(DISTINCT a.patient) AS n FROM drugs a JOIN drugs b "
        "ON a.patient = b.patient WHERE a.day < b.day AND a.of_stay = b.of_stay GROUP BY ALL",
    ),
}


def _rows(one: Guard, query: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in one.sql(query).to_pylist()), key=repr)


@pytest.fixture(scope="module")
def exact() -> Iterator[tuple[duckdb.DuckDBPyConnection, Guard]]:
    with _hospital("threshold") as made:
        yield made


@pytest.mark.parametrize("question", _COUNTED)
def test_it_is_the_answer_of_duckdb(exact: tuple[duckdb.DuckDBPyConnection, Guard], question: str) -> None:
    con, one = exact
    asked, _ = _COUNTED[question]
    assert _rows(one, asked) == sorted(con.cursor().execute(asked).fetchall(), key=repr) != []


@pytest.mark.parametrize("method", ["cell_key", "rounding"])
def test_the_noise_is_that_of_the_units(method: str) -> None:
    # Of 400 stays of 90 persons: were each published by itself, some 240 would be left.
    with _hospital(method) as (_, one):
        for asked, by_units in _COUNTED.values():
            assert _rows(one, asked) == _rows(one, by_units) != []
        assert abs(one.sql("SELECT count(DISTINCT stay) AS n FROM stays").to_pylist()[0]["n"] - 400) < 20


@pytest.mark.parametrize("method", ["cell_key", "rounding"])
def test_who_has_none_adds_no_noise(method: str) -> None:
    # Else each of these would have a noise of its own, and their mean nearly none.
    with _hospital(method) as (_, one):
        conditions = ["of_stay IS NOT NULL", "true", *(f"of_stay IS NOT NULL OR kind > {kind}" for kind in range(4))]
        found = [_rows(one, f"SELECT count(DISTINCT of_stay) AS n FROM tests WHERE {asked}") for asked in conditions]
        found.append(_rows(one, "SELECT count(*) AS n FROM stays WHERE stay IN (SELECT of_stay FROM tests)"))
        assert found == found[:1] * len(found)


def test_records_without_a_number_are_one_group(exact: tuple[duckdb.DuckDBPyConnection, Guard]) -> None:
    # 30 tests are of no stay: a group of several persons, which no group of a person is.
    con, one = exact
    for query in (
        "SELECT count(*) AS n FROM (SELECT of_stay, count(*) AS m FROM tests GROUP BY of_stay)",
        "SELECT count(*) AS n FROM (SELECT DISTINCT of_stay FROM tests)",
        "SELECT max(m) AS n FROM (SELECT of_stay, count(*) AS m FROM tests GROUP BY of_stay)",
    ):
        assert _rows(one, query) == con.cursor().execute(query).fetchall()


@pytest.mark.parametrize(
    "query",
    [
        # NOT IN is so for no stay where there is a NULL among those that it is looked for in, or it is one itself.
        "SELECT count(*) FROM stays WHERE stay NOT IN (SELECT of_stay FROM tests)",
        "SELECT count(*) FROM tests WHERE of_stay NOT IN (SELECT stay FROM stays)",
        "SELECT count(*) FROM stays WHERE stay NOT IN (SELECT d.of_stay FROM stays s LEFT JOIN drugs d ON d.of_stay = s.stay)",
        # One row for each drug says nothing of the others that are left out.
        "SELECT count(*) FROM stays WHERE stay IN (SELECT DISTINCT ON (drug) of_stay FROM drugs)",
        # The tests of no stay are one group of several persons, which would be one of each.
        "SELECT count(*), count(stay) FROM (SELECT of_stay, count(*) AS n FROM tests GROUP BY ALL) LEFT JOIN stays ON stay = of_stay",
        # What LEFT JOIN and ANTI JOIN look for leaves all rows of the others as they are.
        "SELECT count(*) FROM stays a JOIN stays b ON a.person = b.person JOIN stays c ON c.person = a.person "
        "LEFT JOIN drugs d ON d.patient = a.person AND a.stay = b.days AND b.stay = c.days",
        "SELECT count(*) FROM stays a JOIN stays b ON a.person = b.person JOIN stays c ON c.person = a.person "
        "ANTI JOIN drugs d ON d.patient = a.person AND a.stay = b.days AND b.stay = c.days",
        # Rows of one unit, joined again and again: a number of tests is none of stays.
        "SELECT count(*) FROM drugs a JOIN drugs b ON a.patient = b.patient JOIN tests c ON c.patient = a.patient "
        "JOIN tests d ON d.patient = a.patient",
        "SELECT count(*) FROM stays JOIN drugs a ON a.of_stay = stay JOIN drugs b ON b.of_stay = stay JOIN tests c ON c.of_stay = stay "
        "JOIN tests d ON d.of_stay = stay",
    ],
)
def test_others_stay_refused(exact: tuple[duckdb.DuckDBPyConnection, Guard], query: str) -> None:
    with pytest.raises(Refused, match=r"SDC044|SDC033|SDC045"):
        exact[1].sql(query)


def test_a_list_of_them_is_a_table_of_groups(exact: tuple[duckdb.DuckDBPyConnection, Guard]) -> None:
    con, one = exact
    query = "SELECT of_stay, count(*) AS n FROM drugs GROUP BY of_stay ORDER BY n DESC, of_stay LIMIT 3"
    assert [tuple(row.values()) for row in one.sql(query).to_pylist()] == con.cursor().execute(query).fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT max(s) AS most FROM ({})",
        "WITH t AS ({}) SELECT max(s) AS most FROM t",
        "WITH t(one) AS ({}) SELECT max(one) AS most FROM t",
        "WITH t AS ({}), u AS (SELECT s AS again FROM t) SELECT max(again) AS most FROM u",
        "SELECT max(again) AS most FROM (SELECT s AS again FROM ({}))",
        "SELECT max(one) AS most FROM ({}) t(one)",
        "SELECT max(again) AS most FROM (SELECT one + 1 AS again FROM ({}) t(one))",
    ],
)
def test_the_largest_sum_of_all_is_of_published_ones(
    exact: tuple[duckdb.DuckDBPyConnection, Guard], query: str
) -> None:
    # Joined to its unit, a sum would be a figure of one, of which the largest is not shown.
    con, one = exact
    query = query.format("SELECT sum(price) AS s FROM tests WHERE of_stay IS NOT NULL GROUP BY of_stay")
    assert _rows(one, query) == con.cursor().execute(query).fetchall()


def test_what_is_known_of_them_is_stored() -> None:
    with _hospital("threshold") as (con, _):
        stored = {
            policy.name: (policy.identifying, policy.never_missing) for policy in sdcduck.catalog.policies(con.cursor())
        }
        assert stored == {
            "drugs": ((), ("of_stay",)),
            "stays": (("stay",), ("stay",)),
            "tests": ((), ()),
            "x": ((), ()),
        }


def test_records_that_miss_theirs_by_now_are_refused() -> None:
    # One group of several persons: it was taken for one of each, and NOT IN for one that finds no NULL.
    with _hospital("threshold") as (con, one):
        query = "SELECT count(*) AS n FROM (SELECT of_stay, count(*) AS m FROM drugs GROUP BY of_stay)"
        assert _rows(one, query) == [(400,)]
        con.execute("INSERT INTO drugs SELECT * REPLACE (NULL AS of_stay) FROM drugs LIMIT 30").fetchall()
        with pytest.raises(Refused, match=r"SDC060.*drugs"):
            one.sql(query)
        assert _rows(one, "SELECT count(*) AS n FROM stays") == [(400,)]


def test_what_they_are_worth_is_that_of_rows() -> None:
    with _hospital("cell_key") as (_, one):
        rows, stays, patients = one.noise(
            "SELECT count(*) AS a, count(DISTINCT of_stay) AS b, count(DISTINCT patient) AS c FROM drugs"
        ).to_pylist()
        assert stays["per"] == rows["per"] == "rows of the unit that has most"
        assert stays["sd"] == rows["sd"] > patients["sd"]
