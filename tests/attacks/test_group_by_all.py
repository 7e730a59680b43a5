"""GROUP BY ALL over no column groups by nothing: one row of figures as DuckDB has it, and records are not shown as one."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused, guard

PEOPLE = "CREATE TABLE people AS SELECT i AS id, i % 3 AS region, i * 17 AS income FROM range(99) _(i)"
KEYS = "ALTER TABLE people ADD COLUMN record_key BIGINT; UPDATE people SET record_key = sdc_record_key(id)"
METHODS = {"threshold": ", method := 'threshold', min_units := 1", "cell_key": ""}


@pytest.fixture(scope="module", params=METHODS)
def one(request: pytest.FixtureRequest) -> Iterator[tuple[str, Guard]]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(PEOPLE).execute(KEYS)
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['region'], measures := ['income']"
            f"{METHODS[request.param]})"
        ).fetchall()
        yield request.param, guard(con)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'all' AS x, count(*) AS n FROM people GROUP BY ALL",
        "SELECT 1 + 1 AS x, sum(income) AS s FROM people WHERE region = 7 GROUP BY ALL",
        "SELECT NULL AS x, count(DISTINCT id) AS n FROM people WHERE region < 0 GROUP BY ALL",
        "SELECT count(*) AS n FROM people GROUP BY ALL HAVING count(*) > 1",
        "SELECT 'all' AS x, count(*) AS n FROM people GROUP BY ALL ORDER BY ALL LIMIT 1",
        "SELECT 'all' AS x, region, count(*) AS n FROM people GROUP BY ALL",
    ],
)
def test_figures_of_all_are_one_row(one: tuple[str, Guard], query: str) -> None:
    method, guarded = one
    wanted = duckdb.connect().execute(PEOPLE).execute(query).fetchall()
    answer = guarded.sql(query).to_pylist()
    assert len(answer) == len(wanted)
    if method == "threshold":  # nobody is hidden as few are
        found = [tuple(0 if value is None else value for value in row.values()) for row in answer]
        assert sorted(found) == sorted(tuple(0 if value is None else value for value in row) for row in wanted)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 'all' AS x FROM people GROUP BY ALL",
        "SELECT 1 + 1 AS x, upper('a') AS y FROM people GROUP BY ALL LIMIT 50%",
        "WITH z AS (SELECT -1 AS x FROM people GROUP BY ALL) SELECT x, count(*) AS n FROM z GROUP BY x",
        "SELECT 'all' AS x, row_number() OVER () AS n FROM people GROUP BY ALL",
    ],
)
def test_a_row_for_each_record_is_refused(one: tuple[str, Guard], query: str) -> None:
    with pytest.raises(Refused, match="SDC040"):
        one[1].sql(query)


@pytest.mark.parametrize("keys", ["ROLLUP (region, 1)", "CUBE (1, people.region)", "GROUPING SETS ((1), (region))"])
def test_a_key_by_number_is_another_one_than_written_out(one: tuple[str, Guard], keys: str) -> None:
    """DuckDB groups by two keys, of which the answer shows one; with one key it would show other rows."""
    with pytest.raises(Refused, match="one expression as two keys"):
        one[1].sql(f"SELECT region, count(*) AS n FROM people GROUP BY {keys}")
    assert one[1].sql("SELECT region, count(*) AS n FROM people GROUP BY ROLLUP (1)").num_rows == 4
    assert one[1].sql("SELECT region, count(*) AS n FROM people GROUP BY GROUPING SETS ((region), ())").num_rows == 4
