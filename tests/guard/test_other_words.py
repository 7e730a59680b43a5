"""VALUES by itself, stars without columns, aggregates in other words: names and rows as DuckDB has them, or its error."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pytest

from sdcduck.guard import Guard, Refused

VALUES = [
    "VALUES (1), (2)", "VALUES (1, 'a'), (2, NULL) ORDER BY 1 DESC LIMIT 1", "(VALUES (1), (2))",
    "VALUES (1) UNION ALL VALUES (2)", "SELECT 1 AS a UNION ALL VALUES (2)", "WITH t AS (VALUES (1), (2)) SELECT col0 + 1 AS x FROM t",
    "WITH t(x) AS (VALUES (1), (2)) SELECT x FROM t", "SELECT * FROM (VALUES (1, 'a'))", "SELECT t.col1 FROM (VALUES (1, 'a')) t",
    "SELECT a.col0, b.col0 AS x FROM (VALUES (1)) a, (VALUES (2)) b",
    "SELECT (VALUES (1)) AS x", "VALUES (1), (2) LIMIT 1 OFFSET 1",
    "SELECT * EXCLUDE (kind) FROM kinds ORDER BY ALL", "SELECT k.* EXCLUDE (kind), q.* EXCLUDE (kind) FROM kinds k JOIN kinds q USING (kind) ORDER BY ALL",
    "SELECT * REPLACE (upper(kind) AS kind) FROM kinds ORDER BY ALL",
]  # fmt: skip


@pytest.mark.parametrize("query", VALUES)
def test_names_and_rows_are_those_of_duckdb(exact: Guard, plain: duckdb.DuckDBPyConnection, query: str) -> None:
    wanted = plain.cursor().sql(query).to_arrow_table()
    found = exact.sql(query)
    assert found.column_names == wanted.column_names
    assert [column.to_pylist() for column in found.columns] == [column.to_pylist() for column in wanted.columns]


def test_values_take_parameters(exact: Guard) -> None:
    assert exact.sql("VALUES (?, 'a'), (?, 'b')", [1, 2]).to_pydict() == {"col0": [1, 2], "col1": ["a", "b"]}


@pytest.mark.parametrize(
    ("query", "code", "detail"),
    [
        ("SELECT * EXCLUDE (no_such) FROM kinds", "SDC030", "no_such"),
        ("SELECT * EXCLUDE (kinds) FROM kinds", "SDC030", "'kind'"),
        ("SELECT region, n FROM (SELECT * EXCLUDE (nn) FROM (SELECT region, count(*) AS n FROM patients GROUP BY 1))", "SDC030", "nn"),
        ("SELECT * REPLACE (1 AS no_such) FROM kinds", "SDC030", "no_such"),
        ("SELECT count(*) FROM (SELECT * EXCLUDE (record_key) FROM patients)", "SDC030", "record_key"),
        ("SELECT sum(income ORDER BY no_such) FROM patients", "SDC030", "no_such"),
        ("SELECT sum(income ORDER BY record_key) FROM patients", "SDC030", "record_key"),
        ("SELECT list(region ORDER BY income) FROM patients", "SDC05", ""),
        ("VALUES ((SELECT max(income) FROM patients))", "SDC005", ""),
        ("VALUES (read_text('/etc/passwd'))", "SDC010", ""),
    ],
)  # fmt: skip
def test_others_are_refused(noisy: Guard, query: str, code: str, detail: str) -> None:
    with pytest.raises(Refused, match=code) as refused:
        noisy.sql(query)
    assert detail in str(refused.value)


ORDERED = {
    "count(income ORDER BY age)": "count(income)", "count(DISTINCT region ORDER BY region)": "count(DISTINCT region)",
    "sum(income ORDER BY income DESC)": "sum(income)", "avg(income ORDER BY region, age)": "avg(income)",
    "median(income ORDER BY age)": "median(income)", "stddev(income ORDER BY age)": "stddev(income)",
    "min(age ORDER BY age)": "min(age)", "max(age ORDER BY region)": "max(age)",
    "count(DISTINCT id ORDER BY id)": "count(DISTINCT id)",
    "sum(income ORDER BY age) FILTER (WHERE age > 40)": "sum(income) FILTER (WHERE age > 40)",
}  # fmt: skip


@pytest.mark.parametrize("ordered", ORDERED)
def test_an_order_inside_has_the_number_without_it(noisy: Guard, ordered: str) -> None:
    query = "SELECT region, {} AS x FROM patients GROUP BY region ORDER BY region"
    assert noisy.sql(query.format(ordered)) == noisy.sql(query.format(ORDERED[ordered]))


SIDES = {
    "sum(CASE WHEN (age > 40) THEN 1.0 WHEN NOT (age > 40) THEN 0.0 END)": "count(*) FILTER (WHERE age > 40)",
    "avg(CASE WHEN (age > 40) THEN 1.0 WHEN NOT (age > 40) THEN 0.0 END)": "count(*) FILTER (WHERE age > 40) / count(*)",
    "sum(CASE WHEN (age > 40) THEN income WHEN NOT (age > 40) THEN 0.0 END)": "sum(CASE WHEN age > 40 THEN income ELSE 0 END)",
    "sum(CASE WHEN (nullif(age, 41) > 40) THEN 1 WHEN NOT (nullif(age, 41) > 40) THEN 0 END)": "count(*) FILTER (WHERE age > 41)",
    "avg(CASE WHEN (nullif(age, 41) > 40) THEN 1 WHEN NOT (nullif(age, 41) > 40) THEN 0 END)": "count(*) FILTER (WHERE age > 41) / count(*) FILTER (WHERE age <> 41)",
    "sum(CASE WHEN (age > 40) THEN 1 WHEN NOT (age > 40) THEN 0 END) FILTER (WHERE age < 60)": "count(*) FILTER (WHERE age > 40 AND age < 60)",
    "approx_count_distinct(id)": "count(DISTINCT id)", "approx_count_distinct(age)": "count(DISTINCT age)",
}  # fmt: skip


@pytest.mark.parametrize("sides", SIDES)
def test_what_dbplyr_makes_of_ifelse_has_the_number_of_the_plain_question(noisy: Guard, sides: str) -> None:
    query = "SELECT region, {}::DOUBLE AS x FROM patients GROUP BY region ORDER BY region"
    assert noisy.sql(query.format(sides)).to_pydict() == noisy.sql(query.format(SIDES[sides])).to_pydict()


def test_sides_of_each_unit_are_rows_of_it(noisy: Guard, exact: Guard) -> None:
    each = "(SELECT id, sum(CASE WHEN (diagnosis = 'flu') THEN 1.0 WHEN NOT (diagnosis = 'flu') THEN 0.0 END) AS n FROM visits GROUP BY id)"
    for one in (noisy, exact):
        assert one.sql(f"SELECT sum(n)::BIGINT AS x FROM {each}") == one.sql(
            "SELECT count(*) AS x FROM visits WHERE diagnosis = 'flu'"
        )
        units = one.sql(
            "SELECT count(*) AS x FROM patients WHERE id IN (SELECT id FROM visits WHERE diagnosis = 'flu')"
        )
        assert one.sql(f"SELECT count(*) AS x FROM {each} WHERE n > 0") == units


@pytest.mark.parametrize(
    "query",
    [
        "SELECT region, sum(CASE WHEN (nullif(age, 41) > 40) THEN 1.0 WHEN NOT (nullif(age, 41) > 40) THEN 0.0 END), avg(CASE WHEN (nullif(age, 41) > 40) THEN 2 WHEN NOT (nullif(age, 41) > 40) THEN 0 END) FROM patients GROUP BY region",
        "SELECT n::DOUBLE, count(*) FROM (SELECT id, sum(CASE WHEN (diagnosis = 'flu') THEN 1.0 WHEN NOT (diagnosis = 'flu') THEN 0.0 END) AS n FROM visits GROUP BY id) GROUP BY n",
        "SELECT diagnosis, sum(CASE WHEN (day > DATE '2024-06-01') THEN cost WHEN NOT (day > DATE '2024-06-01') THEN 0.0 END)::DOUBLE FROM visits GROUP BY diagnosis",
        "SELECT region, sum(CASE WHEN n > 5 THEN 1.0 WHEN NOT (n > 5) THEN 0.0 END) FROM (SELECT region, age, count(*) AS n FROM patients GROUP BY ALL) GROUP BY region",
    ],
)  # fmt: skip
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


@pytest.mark.parametrize("query", ["count(*)::numeric", "round(avg(income)::numeric, 2)", "sum(income)::decimal / 7"])
def test_numeric_alone_is_what_duckdb_takes_it_for(noisy: Guard, query: str) -> None:
    written_out = query.replace("::numeric", "::numeric(18, 3)").replace("::decimal", "::decimal(18, 3)")
    asked = "SELECT region, {} AS x FROM patients GROUP BY region ORDER BY region"
    assert noisy.sql(asked.format(query)) == noisy.sql(asked.format(written_out))
