"""Subtotals over nobody have the row of the total that DuckDB has, and one expression is no two keys of subtotals."""

from __future__ import annotations

import duckdb
import pytest
from visits_database import answer, answer_of_duckdb

import sdcduck
from sdcduck.guard import Refused

METHODS = {
    "cell_key": "method := 'cell_key'",
    "rounding": "method := 'rounding', base := 3",
}


def made(rules: str) -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute("""
        CREATE TABLE people AS SELECT i AS id, ['n', 's'][1 + i % 2] AS region, ['f', 'm'][1 + i % 3 % 2] AS sex,
            i % 50 AS age, 1000 + i AS income FROM range(400) t(i);
        CREATE TABLE stays AS FROM people UNION ALL FROM people WHERE age < 20;
        CREATE TABLE known AS FROM people""")
    for table in ("people", "stays"):
        con.execute(f"FROM sdc_add_record_key('{table}', unit := 'id')").fetchall()
        con.execute(
            f"FROM sdc_protect('{table}', unit := 'id', dimensions := ['region', 'sex', 'age'], measures := ['income'], {rules})"
        ).fetchall()
    con.execute("FROM sdc_declare_public('known')").fetchall()
    return con


ASKED = [
    "SELECT region, count(*) AS n FROM {} GROUP BY ROLLUP (region)",
    "SELECT region, sex, count(*) AS n, grouping(region, sex) AS g, grouping(sex) AS h FROM {} GROUP BY CUBE (region, sex)",
    "SELECT region, count(DISTINCT id) AS n FROM {} GROUP BY GROUPING SETS ((region, sex), ())",
    "SELECT region, sex, count(*) AS n FROM {} GROUP BY ROLLUP (region), sex",
    "SELECT region, count(*) AS n FROM {} GROUP BY GROUPING SETS ((region), (sex))",
    "SELECT region, count(*) AS n FROM {} GROUP BY region",
]


@pytest.mark.parametrize("method", METHODS)
def test_the_total_of_nobody_has_a_row_where_duckdb_has_one(method: str) -> None:
    with made(METHODS[method]) as con:
        guard = sdcduck.open_guard(con)
        for asked in ASKED:
            for table in ("people", "stays", "known"):
                query = asked.format(f"(FROM {table} SELECT region, sex, id WHERE age > 200)")
                wanted = answer_of_duckdb(con, query)
                assert len(wanted) == (
                    "ROLLUP (region)," not in asked and ("()" in asked or "ROLLUP" in asked or "CUBE" in asked)
                )
                assert answer(guard, query) == wanted


@pytest.mark.parametrize("rules", ["method := 'cell_key', min_units := 11", "method := 'threshold', min_units := 11"])
@pytest.mark.parametrize("table", ["people", "stays"])
def test_the_total_of_few_looks_like_that_of_nobody(rules: str, table: str) -> None:
    with made(rules) as con:
        guard = sdcduck.open_guard(con)
        few, nobody = (
            answer(guard, f"SELECT region, count(*) AS n, sum(income) AS s FROM {table} WHERE age = {age} AND region = 's' "
                   "AND sex = 'f' GROUP BY ROLLUP (region)")
            for age in (31, 200)
        )  # fmt: skip
        count = f"SELECT count(DISTINCT id) FROM {table} WHERE age = 31 AND region = 's' AND sex = 'f'"
        assert con.execute(count).fetchall() == [(5,)]
        assert few == nobody == [(None, None, None)]


def test_somebody_published_as_nobody_looks_like_nobody() -> None:
    with made(METHODS["cell_key"]) as con:
        guard, hidden = sdcduck.open_guard(con), 0
        for age in range(50):
            for table in ("people", "stays"):
                asked = f"FROM {table} WHERE age = {age} AND region = 'n' AND sex = 'm'"
                if answer(guard, f"SELECT count(DISTINCT id) AS n {asked}") == [("0",)]:
                    hidden += 1
                    rows = answer(
                        guard,
                        f"SELECT region, count(DISTINCT id) AS n, sum(income) AS s {asked} GROUP BY CUBE (region)",
                    )
                    assert (None, "0", None) in rows
        assert hidden > 1


@pytest.mark.parametrize("table", ["people", "stays", "known"])
def test_one_expression_is_no_two_keys_of_subtotals(table: str) -> None:
    with made(METHODS["cell_key"]) as con:
        guard = sdcduck.open_guard(con)
        for keys in ("ROLLUP (1, 2)", "CUBE (a, b)", "GROUPING SETS ((1), (b))", "ROLLUP ((1, 2), 3)"):
            with pytest.raises(Refused, match=r"SDC047.*take it once"):
                guard.sql(
                    f"SELECT upper(region) AS a, upper({table}.region) AS b, sex, count(*) FROM {table} GROUP BY {keys}"
                )
        for keys in ("ROLLUP (1, 3)", "CUBE (a, sex)", "GROUPING SETS ((1, 1, 3), (3))"):
            query = f"SELECT upper(region) AS a, upper(region) AS b, sex, count(*) AS n FROM {table} GROUP BY {keys}"
            kept = [row[:3] for row in answer(guard, query)]
            assert kept == [row[:3] for row in answer_of_duckdb(con, query)]
