"""Quantiles of dimensions under methods that draw none of their own, and of expressions of them: those of the published values and counts."""

from __future__ import annotations

import math
from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused

_PEOPLE = """
CREATE TABLE people AS SELECT i AS id, i % 3 AS region, i % 5 = 0 AS ill, (i * 37 % 901)::DOUBLE AS income,
       CASE WHEN i % 13 > 0 THEN (i * 7 % 90)::SMALLINT END AS age, (i % 11) / 4.0::DOUBLE AS hours,
       (i % 19)::DECIMAL(9, 2) AS price, DATE '2020-01-01' + (i % 17)::INTEGER AS day, 'x' || (i % 9) AS word
FROM range(897) t(i)
"""
_METHODS = {
    "exact": "method := 'threshold', min_units := 1",
    "threshold": "method := 'threshold', min_units := 5",
    "rounding": "method := 'rounding', base := 5",
    "cell_key": "method := 'cell_key'",
}


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(_PEOPLE)
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        for role, method in _METHODS.items():
            con.execute(
                "FROM sdc_protect('people', unit := 'id', measures := ['income'], dimensions := ['region', 'ill', 'age', "
                f"'hours', 'price', 'day', 'word'], {method}, role := '{role}')"
            ).fetchall()
        yield con


def _guard(con: duckdb.DuckDBPyConnection, role: str) -> Guard:
    return sdcduck.open_guard(con, role=role)


def _rows(one: Guard, query: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in one.sql(query).to_pylist()]


_GROUPS = {
    "": "ORDER BY ALL",
    "region, ": "GROUP BY region ORDER BY ALL",
    "region, ill, ": "GROUP BY ROLLUP (region, ill) ORDER BY ALL",
}


@pytest.mark.parametrize("keys", _GROUPS)
@pytest.mark.parametrize(
    "quantile",
    [
        "median(age)",
        "quantile_disc(age, 0.3)",
        "quantile(age, 0.9)",
        "quantile_disc(age, 0)",
        "quantile_disc(age, 1.0)",
        "quantile_disc(age, 5e-1)",
        "percentile_disc(0.4) WITHIN GROUP (ORDER BY age)",
        "median(hours)",
        "quantile_disc(price, 0.25)",
        "quantile_disc(day, 0.5)",
        "quantile_disc(word, 0.5)",
        "median(word)",
        "median(age * 2 + 1)",
        "median(CASE WHEN ill THEN age END)",
        "median(age) FILTER (WHERE ill)",
        "median(age) FILTER (WHERE age > 100)",
        "quantile_disc(age, [0.25, 0.5, 0.75])",
        "quantile_disc(date_diff('day', day, DATE '2021-01-01'), 0.33)",
        "median(age) - quantile_disc(age, 0.25)",
    ],
)
def test_they_are_those_of_duckdb(con: duckdb.DuckDBPyConnection, keys: str, quantile: str) -> None:
    query = f"SELECT {keys}{quantile} AS x FROM people {_GROUPS[keys]}"
    assert _rows(_guard(con, "exact"), query) == con.cursor().execute(query).fetchall()


@pytest.mark.parametrize("share", ["0.123", "0.25", "0.4", "0.87654", "1"])
def test_between_two_values_they_are_to_the_last_digits(con: duckdb.DuckDBPyConnection, share: str) -> None:
    # DuckDB 1.5 and 2.0 differ in the last bit of what is between two values.
    for name in (f"quantile_cont(age, {share})", f"percentile_cont({share}) WITHIN GROUP (ORDER BY age DESC)"):
        query = f"SELECT region, {name} AS x FROM people GROUP BY region ORDER BY region"
        plain = con.cursor().execute(query).fetchall()
        assert [x for _, x in _rows(_guard(con, "exact"), query)] == pytest.approx([x for _, x in plain], rel=1e-14)


@pytest.mark.parametrize("role", ["exact", "rounding"])
def test_they_follow_from_the_published_table(con: duckdb.DuckDBPyConnection, role: str) -> None:
    one = _guard(con, role)
    table = _rows(one, "SELECT age, count(*) AS n FROM people WHERE age IS NOT NULL GROUP BY age ORDER BY age")
    values = [age for age, n in table for _ in range(int(str(n)))]
    [(low, high, middle)] = _rows(
        one, "SELECT quantile_disc(age, 0.2), quantile_disc(age, 0.71), median(age) FROM people"
    )
    assert (low, high) == tuple(
        values[max(1, len(values) - math.floor(len(values) * part / 100)) - 1] for part in (80, 29)
    )
    place = (len(values) - 1) / 2
    ends = [float(str(values[end(place)])) for end in (math.floor, math.ceil)]
    assert middle == sum(ends) / 2


@pytest.mark.parametrize(
    "value", ["age * 2 + 1", "age // 7", "date_diff('day', DATE '2019-12-25', day)", "CASE WHEN ill THEN age % 8 END"]
)
def test_under_cell_keys_those_of_expressions_follow_from_the_published_table(
    con: duckdb.DuckDBPyConnection, value: str
) -> None:
    """Of a dimension as it is a quantile has noise of its own; of several together it could show who has all of them."""
    one = _guard(con, "cell_key")
    table = _rows(one, f"SELECT {value} AS v, count(*) AS n FROM people GROUP BY v HAVING v IS NOT NULL ORDER BY v")
    values = [v for v, n in table for _ in range(int(str(n)))]
    [(low, middle, high)] = _rows(
        one, f"SELECT quantile_disc({value}, 0.2), median({value}), quantile_disc({value}, 0.9) FROM people"
    )
    place = (len(values) - 1) / 2
    assert low == values[len(values) - math.floor(len(values) * 0.8) - 1]
    assert high == values[math.ceil(len(values) * 0.9) - 1]
    assert middle == (values[math.floor(place)] + values[math.ceil(place)]) / 2


def test_where_a_value_is_hidden_there_is_none(con: duckdb.DuckDBPyConnection) -> None:
    one = _guard(con, "threshold")
    query = "SELECT median(age) AS a, quantile_disc(age, 0.1) AS b FROM people"
    assert _rows(one, query) != [(None, None)]
    hidden = f"{query} WHERE age > 50 OR (age = 3 AND day = DATE '2020-01-11')"  # one of that age
    assert con.cursor().execute(hidden).fetchall() != [(None, None)]
    assert _rows(one, hidden) == [(None, None)]


@pytest.mark.parametrize(
    ("quantile", "why"),
    [
        ("median(income)", "of a measure; of dimensions they are answered"),
        ("median(CASE WHEN ill THEN income END)", "of a measure"),
        ("median(day)", r"quantile_disc\(x, 0.5\)"),
        ("quantile_cont(price, 0.3)", r"quantile_disc\(x, 0.3\)"),
        ("quantile_disc(age, -0.5)", "between 0 and 1"),
        ("quantile_disc(age, 1.5)", "between 0 and 1"),
        ("quantile_disc(id, 0.5)", "quantile of units"),
        ("median(DISTINCT age)", "quantile"),
    ],
)
@pytest.mark.parametrize("role", ["exact", "rounding"])
def test_others_are_refused(con: duckdb.DuckDBPyConnection, role: str, quantile: str, why: str) -> None:
    with pytest.raises(Refused, match=rf"SDC052.*{why}"):
        _guard(con, role).sql(f"SELECT {quantile} AS x FROM people")
