"""Bands of a measure: dimensions, exactly on the borders that the custodian declared."""

from __future__ import annotations

from functools import cache

import duckdb
import pytest
import visits_database
from people_with_amounts import BAND, METHODS, looked_at, made
from visits_database import answer, answer_of_duckdb

import sdcduck
from sdcduck.guard import Guard, Refused

BY_BAND = [
    (f"SELECT {BAND} AS b, {{}} FROM people GROUP BY 1", "SELECT band AS b, {} FROM people GROUP BY 1"),
    ("SELECT {} FROM people WHERE income < 10000", "SELECT {} FROM people WHERE band = 'low'"),
    ("SELECT {} FROM people WHERE 10000 > income", "SELECT {} FROM people WHERE band = 'low'"),
    ("SELECT {} FROM people WHERE income BETWEEN 10000 AND 19999", "SELECT {} FROM people WHERE band = 'middle'"),
    ("SELECT {} FROM people WHERE income > 9999 AND income <= 19999", "SELECT {} FROM people WHERE band = 'middle'"),
    (
        "SELECT {} FROM people WHERE NOT (income < 10000.00 OR income >= 20000.0)",
        "SELECT {} FROM people WHERE band = 'middle'",
    ),
    (
        "SELECT region, {} FROM (SELECT *, income >= 20000 AS rich FROM people) WHERE rich GROUP BY region",
        "SELECT region, {} FROM people WHERE band = 'high' AND income IS NOT NULL GROUP BY region",
    ),
]
"""Questions by a band, and the same by a stored column of the band. Who has no income is among the high ones of both."""
NUMBERS = [
    "count(*) AS n",
    "sum(bonus) AS x",
    "avg(income) AS x, count(income) AS n",
    "sum(income) AS x",
    "median(bonus) AS x",
]


@pytest.fixture(scope="module", params=METHODS)
def guarded(request: pytest.FixtureRequest) -> tuple[str, duckdb.DuckDBPyConnection, Guard]:
    return (request.param, *looked_at(request.param))


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize(("by_band", "by_column"), BY_BAND)
def test_a_band_is_the_stored_column_of_it(
    guarded: tuple[str, duckdb.DuckDBPyConnection, Guard], by_band: str, by_column: str, numbers: str
) -> None:
    """The same set has the same noise, whether it is described by a band or by a column."""
    method, con, guard = guarded
    if method == "rounding" and numbers != "count(*) AS n":
        pytest.skip("rounding answers counts")
    if method == "threshold" and "median" in numbers:
        pytest.skip("a threshold answers no quantiles")
    asked, same = answer(guard, by_band.format(numbers)), answer(guard, by_column.format(numbers))
    assert asked == same != []
    if method == "threshold":
        assert asked == answer_of_duckdb(con, by_band.format(numbers))
    elif method == "cell_key" and "median" not in numbers:
        assert asked != answer_of_duckdb(con, by_band.format(numbers))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FILTER (WHERE income >= 20000) AS a, count(CASE WHEN income < 10000 THEN 1 END) AS b FROM people",
        "SELECT sum(CASE WHEN income < 10000 THEN bonus ELSE 0 END) AS a FROM people",
        "SELECT sum(income >= 20000) AS a, avg(CASE WHEN income >= 20000 THEN 1 ELSE 0 END) AS b FROM people",
        "SELECT (income >= 10000)::INTEGER + (income >= 20000)::INTEGER AS b, count(*) AS n FROM people GROUP BY b",
        "SELECT income < 10000 AS b, region, count(*) AS n FROM people GROUP BY CUBE (1, 2)",
        "SELECT count(*) AS n FROM people WHERE income >= 20000 OR region = 'n'",
        "SELECT count(*) AS n FROM people WHERE income BETWEEN 10000 AND 10000 + 9999 OR income < (20000 - 10000)",
        "SELECT count(*) AS n FROM people WHERE income IS NULL OR income < 10000",
        "SELECT count(*) AS n FROM (SELECT region, income AS earned FROM people) WHERE earned >= 0",
        f"SELECT count(DISTINCT {BAND}) AS n, max({BAND}) AS most FROM people",
        "SELECT region, sum(income - 10000) FILTER (WHERE income >= 10000) AS above FROM people GROUP BY region",
    ],
)
def test_a_band_is_usable_as_any_dimension(query: str) -> None:
    con, guard = looked_at("threshold")
    assert answer(guard, query) == answer_of_duckdb(con, query)


@pytest.mark.parametrize(
    "condition",
    [
        "income < 10001",
        "income < 9999.99",
        "income > 10000",
        "income <= 10000",
        "income = 10000",
        "income < 1e4",
        "income BETWEEN 10000 AND 20000",
        "income BETWEEN 20000 AND 30000",
        "income BETWEEN SYMMETRIC 10000 AND 19999",
        "income >= 10000.0000000000000001",
        "income > 9999.0",
        "income >= '10000'",
        "income >= 9999 + 2",
        "income >= 9999.5 + 0.5",
        "income >= 999999999999 - 999999989999",
        "income BETWEEN 0 + 10000 AND 19999 + 1",
        f"income >= 0.{'0' * 34}",
        f"income < 10000.{'0' * 33}",
        f"0.{'0' * 35} > income",
        f"NOT income < 0.{'0' * 36}",
        "income >= 10000.000",
        "income >= 0010000",
        f"income BETWEEN {'0' * 40}10000 AND 19999",
        "income + 1 >= 10000",
        "income::VARCHAR >= '10000'",
        "income >= bonus",
        "income >= discount",
        "income IN (10000)",
        "income IS DISTINCT FROM 10000",
        "income >= (SELECT 10000)",
        "(CASE WHEN income < 10000 THEN income END) IS NULL",
        "greatest(income, 10000) >= 20000",
        "bonus >= 10000",
        "sign(income) >= 0",
    ],
)
def test_any_other_border_is_refused(condition: str) -> None:
    with pytest.raises(Refused):
        looked_at("cell_key")[1].sql(f"SELECT count(*) AS n FROM people WHERE {condition}")


def test_the_refusal_names_the_borders() -> None:
    _, guard = looked_at("cell_key")
    with pytest.raises(Refused, match="compare it by < and >= with 0, 10000, 20000, the borders of its bands"):
        guard.sql("SELECT count(*) AS n FROM people WHERE income > 15000")
    with pytest.raises(Refused) as refused:
        guard.sql("SELECT count(*) AS n FROM people WHERE bonus > 15000")
    assert "borders" not in str(refused.value)


def test_a_template_of_a_question_is_no_way_to_another_border() -> None:
    with made("cell_key") as con:
        guard = sdcduck.open_guard(con)
        for border in (0, 10000, 20000, 10000, 20000, "9999 + 1", "9998 + 2", "9999 + 1", "10000 + 0"):
            guard.sql(f"SELECT count(*) AS n FROM people WHERE income >= {border} AND region = 'n'")
        for border in (15000, 10001, "9999 + 2", "10000 + 1"):
            with pytest.raises(Refused, match="SDC041"):
                guard.sql(f"SELECT count(*) AS n FROM people WHERE income >= {border} AND region = 'n'")
        with pytest.raises(Refused, match="SDC041"):
            guard.sql("SELECT count(*) AS n FROM people WHERE income >= ?", [10000])


def test_floating_point_numbers_have_no_last_one_below_a_border() -> None:
    with made("threshold", "bands := {'won': [-0.25, 0, 0.5]}") as con:
        guard = sdcduck.open_guard(con)
        for condition in ("won >= -0.25", "won < 0.5", "won < 0.50", "won >= 0 AND 0.5 > won", "0 <= won"):
            query = f"SELECT count(*) AS n FROM people WHERE {condition}"
            assert answer(guard, query) == answer_of_duckdb(con, query)
        for condition in ("won > -1", "won <= -1", "won BETWEEN 0 AND 0.5", "won >= 0.51"):
            with pytest.raises(Refused, match=r"-0\.25, 0, 0\.5"):
                guard.sql(f"SELECT count(*) AS n FROM people WHERE {condition}")


def test_a_column_of_another_table_has_its_own_borders() -> None:
    """Both tables have a measure of that name, and only one has bands."""
    with made("cell_key", "population := 'persons', bands := {'bonus': [0, 100]}") as con:
        con.execute("CREATE TABLE others AS SELECT id, record_key, region, bonus FROM people")
        con.execute(
            "FROM sdc_protect('others', unit := 'id', dimensions := ['region'], measures := ['bonus'], population := 'persons')"
        ).fetchall()
        guard = sdcduck.open_guard(con)
        joined = "FROM (SELECT {} FROM people JOIN others USING (id)) WHERE bonus >= 100"
        assert guard.sql(f"SELECT count(*) AS n {joined.format('people.bonus')}").num_rows == 1
        with pytest.raises(Refused, match="SDC041"):
            guard.sql(f"SELECT count(*) AS n {joined.format('others.bonus')}")


OF_UNITS = [
    "SELECT b, count(*) AS n FROM (SELECT id, max(cost >= 50) AS b FROM visits GROUP BY id) GROUP BY b",
    "SELECT b, n, count(*) AS m FROM (SELECT id, cost < 20 AS b, count(*) AS n FROM visits GROUP BY 1, 2) GROUP BY 1, 2",
    "SELECT count(*) AS n FROM patients WHERE EXISTS (FROM visits v WHERE v.id = patients.id AND v.cost >= 50)",
    "SELECT region, count(*) AS n FROM patients WHERE id NOT IN (SELECT id FROM visits WHERE cost < 20) GROUP BY region",
    "SELECT count(*) AS n FROM (SELECT id, cost, lag(day) OVER (PARTITION BY id ORDER BY day) AS l FROM visits) WHERE cost >= 50 AND l IS NOT NULL",
    "SELECT count(*) AS n FROM patients WHERE (SELECT count(*) FROM visits v WHERE v.id = patients.id AND cost >= 50) > 2",
]


@cache
def _visits_with_bands(method: str) -> tuple[duckdb.DuckDBPyConnection, Guard]:
    con = visits_database.made(method)
    con.execute(
        "FROM sdc_protect('visits', unit := 'id', dimensions := ['diagnosis', 'day'], measures := ['cost', 'fee', 'wide'], "
        f"population := 'persons', {visits_database.METHODS[method]}, bands := {{'cost': [20, 50]}})"
    ).fetchall()
    return con, sdcduck.open_guard(con)


@pytest.mark.parametrize("query", OF_UNITS)
def test_bands_describe_what_units_have(query: str) -> None:
    for method in ("threshold", "cell_key"):
        con, guard = _visits_with_bands(method)
        guarded = answer(guard, query)
        assert guarded
        if method == "threshold":
            assert guarded == answer_of_duckdb(con, query)


def test_sums_of_units_have_no_bands() -> None:
    with pytest.raises(Refused, match="SDC041"):
        looked_at("cell_key")[1].sql(
            "SELECT count(*) AS n FROM (SELECT id, sum(income) AS income FROM people GROUP BY id) WHERE income >= 20000"
        )


def test_which_of_equal_rows_comes_first_is_up_to_their_bands() -> None:
    """Not to their amounts, of which a digest would tell."""
    query = "SELECT b, count(*) AS n FROM (SELECT id, first(cost >= 50 ORDER BY diagnosis) AS b FROM visits GROUP BY id) GROUP BY b"
    written = _visits_with_bands("cell_key")[1].rewrite(query)
    ordered = written.split("ORDER BY", 1)[1]
    assert (
        0
        < ordered.index('"cost" >= 20')
        < ordered.index('"cost" >= 50')
        < ordered.index('MD5(CAST("visits"."cost" AS TEXT))')
    )


@pytest.mark.parametrize(
    ("kind", "same", "others"),
    [
        ("DECIMAL(9, 2)", ["x < 20.0", "x <= 19.99", "NOT x > 19.99", "19.99 >= x"], ["x <= 19.9", "x <= 20", "x > 19.989", "x <= 19.990"]),
        ("DECIMAL(9, 0)", ["x < 20", "x <= 19", "NOT x > 19"], ["x <= 19.0", "x > 20", "x <= 19.99"]),
        ("DOUBLE", ["x < 20"], ["x <= 19.99", "x <= 19", "x > 19.99"]),
        ("DECIMAL(38, 20)", ["x < 20"], ["x <= 19.99", "x <= 19.99999999999999999999"]),
    ],
)  # fmt: skip
def test_decimals_up_to_the_last_before_a_border(kind: str, same: list[str], others: list[str]) -> None:
    """Between 19.99 and 20 there is no DECIMAL with two decimals, and there are floating-point numbers."""
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(
        f"CREATE TABLE people AS SELECT i AS id, sdc_record_key(i) AS record_key, 'n' AS region, [19.99, 20, 20.01, 3][1 + i % 4]::{kind} AS x FROM range(92) t(i)"
    )
    con.execute(
        "FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['x'], bands := {'x': [0, 20, 100]})"
    ).fetchall()
    guard = sdcduck.open_guard(con)
    query = "SELECT count(*) AS n, sum(x) AS total FROM people WHERE {}"
    answers = [guard.sql(query.format(condition)).to_pylist() for condition in same]
    assert all(one == answers[0] for one in answers)
    assert abs(answers[0][0]["n"] - (23 if kind == "DECIMAL(9, 0)" else 46)) < 10
    for condition in others:
        with pytest.raises(Refused, match="the borders of its bands"):
            guard.sql(query.format(condition))


ZEROS = [
    ("INTEGER", "0", [12, 345, 6789]),
    ("DECIMAL(20, 2)", "0.5", [12, 345, 6789]),
    ("HUGEINT", "10000", [10**4, 10**36, 10**37]),
    ("DECIMAL(38, 20)", "10000", ["9999.99999999999999999999", 3, 4]),
    ("FLOAT", "0.7", [0.7, 0.6, 0.8]),
]
"""Types of measures, a border, and values that some spelling of it with more zeros would tell from others."""


@pytest.mark.parametrize(("kind", "border", "values"), ZEROS)
def test_zeros_behind_a_border_do_not_move_it(kind: str, border: str, values: list[object]) -> None:
    """DuckDB casts both sides to one type: with 35 decimals no value from 1000 on has one, and the condition is NULL."""
    con = sdcduck.connect(secret="the secret of the tests")
    listed = ", ".join(f"{value}::{kind}" for value in values)
    con.execute(
        f"CREATE TABLE people AS SELECT i AS id, sdc_record_key(i) AS record_key, 'n' AS region, [{listed}][1 + i % 3] AS x FROM range(90) t(i)"
    )
    con.execute(
        f"FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['x'], method := 'threshold', min_units := 1, bands := {{'x': [{border}, 1e9]}})"
    ).fetchall()
    guard, answers = sdcduck.open_guard(con), set()
    point = "" if "." in border else "."
    for zeros in range(45):
        written = f"{border}{point}{'0' * zeros}" if zeros else border
        query = f"SELECT count(*) FILTER (WHERE x < {written}) AS below, count(*) FILTER (WHERE x >= {written}) AS above FROM people"
        try:
            answers.add(tuple(guard.sql(query).to_pylist()[0].values()))
        except Refused:
            assert zeros, "the border as it was declared"
    assert len(answers) == 1
