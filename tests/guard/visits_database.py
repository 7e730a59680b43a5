"""Patients and their visits, of one population: what is asked of the rows of one unit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb

import sdcduck
from sdcduck.guard import Guard

METHODS = {
    "threshold": "method := 'threshold', min_units := 1",
    "cell_key": "method := 'cell_key'",
    "rounding": "method := 'rounding', base := 5",
}
"""What `sdc_protect` is told; under a threshold of one nothing is hidden, and an answer must be DuckDB's."""


def made(method: str) -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute("""
        CREATE TABLE patients AS SELECT i AS id, ['n', 's', 'e'][1 + i % 3] AS region, 20 + i * 7 % 60 AS age,
            100 + i * 11 % 900 AS income FROM range(700) t(i);
        CREATE TABLE visits AS SELECT i * i * 7 % 690 AS id, ['flu', 'cold', 'cut'][1 + (i * 5 + i // 7) % 3] AS diagnosis,
            DATE '2024-01-01' + (i * 37 % 700)::INTEGER AS day,
            CASE WHEN i % 11 > 0 THEN 10 + i * 13 % 91 END AS cost, (i * 31 % 17 - 3) / 7.0::DOUBLE AS fee,
            (i * 7919 % 1000)::HUGEINT AS wide FROM range(3000) t(i)
            QUALIFY row_number() OVER (PARTITION BY id, day, diagnosis ORDER BY i) = 1""")
    con.execute(
        "CREATE TABLE kinds AS FROM (VALUES ('flu', 'illness'), ('cold', 'illness'), ('cut', 'wound')) k(diagnosis, kind)"
    )
    con.execute("CREATE TABLE ages AS SELECT 20 + i AS age, i // 20 AS class, i % 7 AS w FROM range(60) t(i)")
    for name in ("kinds", "ages"):
        con.execute(f"FROM sdc_declare_public('{name}')").fetchall()
    protect(con, "patients", "['region', 'age']", "['income']", method)
    protect(con, "visits", "['diagnosis', 'day']", "['cost', 'fee', 'wide']", method)
    return con


def protect(con: duckdb.DuckDBPyConnection, table: str, dimensions: str, measures: str, method: str) -> None:
    """Protect a table of persons, of whom several rows may be one."""
    con.execute(f"FROM sdc_add_record_key('{table}', unit := 'id')").fetchall()
    con.execute(
        f"FROM sdc_protect('{table}', unit := 'id', dimensions := {dimensions}, measures := {measures}, "
        f"population := 'persons', {METHODS[method]})"
    ).fetchall()


def answer(guard: Guard, query: str) -> list[tuple[Any, ...]]:
    """The rows of an answer, in an order of their own."""
    return in_order([tuple(row.values()) for row in guard.sql(query).to_pylist()])


def answer_of_duckdb(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    """The rows that DuckDB gives, in an order of their own."""
    return in_order(con.cursor().execute(query).fetchall())


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """In an order of their own, numbers of whatever type to nine digits."""
    numbers = (int, float, Decimal)
    return sorted(
        (
            tuple(
                f"{value:.9g}" if isinstance(value, numbers) and not isinstance(value, bool) else value for value in row
            )
            for row in rows
        ),
        key=repr,
    )
