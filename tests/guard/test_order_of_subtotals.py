"""ORDER BY and windows of subtotals that say which columns are grouped, beside the names of the answer's columns."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused, guard


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[duckdb.DuckDBPyConnection, Guard]]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            "CREATE TABLE people AS SELECT i AS person_id, ['North', 'South'][1 + i % 2] AS region, "
            "['f', 'm'][1 + i % 3 % 2] AS sex, i * 7 % 100 AS income FROM range(90) t(i)"
        )
        con.execute(
            "FROM sdc_protect('people', unit := 'person_id', dimensions := ['region', 'sex'], measures := ['income'], "
            "method := 'threshold', min_units := 1)"
        ).fetchall()
        yield con, guard(con)


@pytest.mark.parametrize(
    "order",
    [
        "level DESC, CASE WHEN grouping(region) + grouping(sex) = 0 THEN region END, total",
        "CASE WHEN grouping(sex) = 0 THEN region END NULLS FIRST, total DESC",
        "grouping(region), coalesce(region, ''), count(*), sex",
        "CASE WHEN count(*) > 20 THEN sex END, total",
    ],
)
def test_it_is_the_order_of_duckdb(asked: tuple[duckdb.DuckDBPyConnection, Guard], order: str) -> None:
    con, one = asked
    query = (
        "SELECT sum(income) AS total, region, sex, grouping(region) + grouping(sex) AS level FROM people "
        f"GROUP BY ROLLUP (region, sex) ORDER BY {order}"
    )
    answer = [tuple(row.values()) for row in one.sql(query).to_pylist()]
    assert answer == con.cursor().execute(query).fetchall()
    assert len(answer) == 7


def test_a_column_that_is_not_in_the_answer_is_still_refused(asked: tuple[duckdb.DuckDBPyConnection, Guard]) -> None:
    with pytest.raises(Refused, match=r"SDC04[12]"):
        asked[1].sql(
            "SELECT region, count(*) AS n FROM people GROUP BY region ORDER BY CASE WHEN count(*) > 2 THEN income END"
        )
