"""A guard over somebody's connection answers as DuckDB does whose settings nobody has changed."""

from __future__ import annotations

import contextlib

import duckdb
import pytest

import sdcduck

SETTINGS = {
    "integer_division": "true", "default_null_order": "'nulls_first'", "default_order": "'desc'", "old_implicit_casting": "true",
    "scalar_subquery_error_on_multiple_rows": "false", "ieee_floating_point_ops": "false",
}  # fmt: skip
QUESTIONS = [
    "SELECT days, count(*) AS n, avg(cost) AS mean, count(*) / 7 AS part FROM visits GROUP BY days",
    "SELECT days, n FROM (SELECT days, count(*) AS n FROM visits GROUP BY days) ORDER BY days LIMIT 2",
    "SELECT days, row_number() OVER (ORDER BY days) AS place FROM visits GROUP BY days",
    "SELECT days // 2 AS half, days / 2 AS part, sum(cost) AS cost FROM visits WHERE days / 2 > 0.5 GROUP BY ALL",
    "SELECT 1.0 / 0 AS nothing, sum(cost) / 0 AS it FROM visits",
    "SELECT (SELECT k FROM numbers) AS k",
    "SELECT count(*) AS n FROM numbers WHERE word > 5",
    "SUMMARIZE visits",
]


def opened(method: str) -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(
        "CREATE TABLE visits AS SELECT i % 100 AS id, nullif(i % 7, 6) AS days, i % 11 AS cost FROM range(300) r(i)"
    )
    con.execute("CREATE TABLE numbers AS SELECT i AS k, 'w' || i AS word FROM range(3) r(i)")
    con.execute("FROM sdc_add_record_key('visits', unit := 'id')").fetchall()
    con.execute(
        f"FROM sdc_protect('visits', unit := 'id', dimensions := ['days'], measures := ['cost'], {method})"
    ).fetchall()
    con.execute("FROM sdc_declare_public('numbers')").fetchall()
    return con


def answers(con: duckdb.DuckDBPyConnection) -> list[str]:
    guard, found = sdcduck.open_guard(con), []
    for question in QUESTIONS:
        try:
            table = guard.sql(question)
            found.append(f"{table.to_pylist()} {table.schema.types}")
        except sdcduck.SDCError as problem:
            found.append(str(problem))
    return found


@pytest.mark.parametrize("method", ["method := 'threshold', min_units := 1", "min_units := 3"])
def test_what_somebody_has_set_changes_no_answer(method: str) -> None:
    """A mean was a whole number with integer_division, and with another order the p-table was taken for a changed one."""
    with contextlib.closing(opened(method)) as con:
        as_ever = answers(con)
        assert sum("SDC" in answer for answer in as_ever) == 2  # of several rows; of a text that is no number
        for name, value in SETTINGS.items():
            con.execute(f"SET GLOBAL {name} = {value}")
        assert answers(con) == as_ever
        for name, value in SETTINGS.items():
            changed = con.cursor().execute(f"SELECT current_setting('{name}')").fetchall()[0][0]
            assert f"{changed}".lower().startswith(value.strip("'")), "what is somebody's stays as it is"
        con.execute("SET lock_configuration = true")
        with pytest.raises(sdcduck.SDCError, match="settings by which questions mean something else are locked"):
            sdcduck.open_guard(con)
