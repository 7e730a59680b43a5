"""The same question has the same answer through every door: noise that is another one there would be averaged away."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from effort import LONG

import sdcduck
from sdcduck.guard import Guard, Refused, guard

MEASURES = ("whole", "partly", "zeros", "mixed", "negative", "real", "real_some", "decimal_some", "large_some")
FEW = ("partly", "real_some")
"""Of these each method is asked in each run; of how a column is read no method decides."""
METHODS = {
    "cell_key": "method := 'cell_key'",
    "few": "method := 'cell_key', min_units := 4",
    "threshold": "method := 'threshold', min_units := 3",
    "rounding": "method := 'rounding', base := 5",
}
AGGREGATES = (
    "sum({0})", "avg({0})", "count({0})", "var_samp({0})", "median({0})", "sum({0}) FILTER (sex = 'f')",
    "avg({0}) FILTER (age > 30)", "sum(CASE WHEN sex = 'f' THEN {0} END)", "sum(2 * {0})",
)  # fmt: skip
COUNTS = (
    "SELECT region, count(*) AS n FROM people GROUP BY region",
    "SELECT region, sex, count(*) AS n, count(DISTINCT id) AS u FROM people GROUP BY CUBE (region, sex)",
    "SELECT count(*) AS n FROM people WHERE age > 40 AND region = 'r1'",
    "SELECT n, count(*) FROM (SELECT region, age, count(*) AS n FROM people GROUP BY ALL) GROUP BY n",
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Measures with and without NULL and 0, each under every method, as roles."""
    path = tmp_path_factory.mktemp("doors") / "people.duckdb"
    with sdcduck.connect(path, secret="the secret of the tests") as con:
        con.execute(
            """CREATE TABLE people AS SELECT i AS id, sdc_record_key(i) AS record_key, 'r' || i % 5 AS region,
            ['f', 'm'][1 + i % 2] AS sex, (20 + i * 7 % 50)::INTEGER AS age, (100 + i * 37 % 991)::INTEGER AS whole,
            CASE WHEN i % 3 > 0 THEN 100 + i * 37 % 991 END AS partly, (i * 37 % 11 * 10)::INTEGER AS zeros,
            CASE WHEN i % 3 > 0 THEN i * 37 % 11 * 10 END AS mixed, CASE WHEN i % 4 > 0 THEN -1 - i % 77 END AS negative,
            (1 + i * 37 % 991) / 7 AS real, CASE WHEN i % 3 > 0 THEN (1 + i * 37 % 991) / 7 END AS real_some,
            CASE WHEN i % 3 > 0 THEN (1 + i % 991)::DECIMAL(9, 2) END AS decimal_some,
            CASE WHEN i % 5 > 0 THEN (10 ** 12)::HUGEINT + i END AS large_some
            FROM range(600) _(i)"""
        )
        for role, how in METHODS.items():
            measures = [] if role == "rounding" else list(MEASURES)
            con.execute(
                f"""FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'sex', 'age'],
                measures := {measures}, {how}, role := '{role}')"""
            ).fetchall()
    return path


def answers(guarded: Guard, role: str) -> dict[str, object]:
    found: dict[str, object] = {}
    columns = {"rounding": (), "cell_key": MEASURES}.get(role, MEASURES if LONG else FEW)
    shown = [
        ", ".join(f"{aggregate.format(column)} AS a{i}" for i, aggregate in enumerate(AGGREGATES)) for column in columns
    ]
    if role == "threshold":
        shown = [text.replace("median", "avg") for text in shown]
    for query in (*COUNTS, *(f"SELECT region, {text} FROM people GROUP BY region" for text in shown)):
        try:
            found[query] = sorted(guarded.sql(query).to_pylist(), key=str)
        except Refused as refused:
            found[query] = refused.code
    return found


@pytest.mark.parametrize("role", METHODS)
def test_a_file_that_is_read_and_one_that_is_written_to(file: Path, role: str) -> None:
    with closing(guard(file, role=role)) as guarded:
        read = answers(guarded, role)
    assert sum(isinstance(rows, list) for rows in read.values()) >= len(COUNTS)
    if role == "cell_key":  # which has all forms
        assert [query for query, rows in read.items() if isinstance(rows, str)] == []
    for threads in (1, 4):
        with sdcduck.connect(file, secret="the secret of the tests", threads=threads) as con:
            found = answers(guard(con, role=role), role)
            assert {query: rows for query, rows in found.items() if rows != read[query]} == {}
