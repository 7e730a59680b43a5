"""A column that is no record key: told by the mean of all of it, and never by the sum of a cell."""

from __future__ import annotations

import duckdb
import pytest

import sdcduck


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(
        "CREATE TABLE people AS SELECT i AS id, sdc_record_key(i) AS record_key, i * 317 % 90000 AS income, i % 90 AS age "
        "FROM range(20000) _(i)"
    )
    return con


@pytest.mark.parametrize(("column", "is_key"), [("record_key", True), ("income", False), ("age", False), ("id", False)])
def test_the_mean_of_a_column_tells_whether_it_is_a_key(
    con: duckdb.DuckDBPyConnection, column: str, is_key: bool
) -> None:
    (row,) = con.execute(f"SELECT mean_key FROM sdc_check_keys('people', record_key := '{column}')").fetchall()
    assert (abs(row[0] - 0.5) < 0.02) == is_key
    declared = f"FROM sdc_protect('people', unit := 'id', dimensions := ['age'], record_key := '{column}')"
    if is_key:
        con.execute(declared)
    else:
        with pytest.raises(duckdb.Error, match="record key"):
            con.execute(declared)


def test_many_visits_of_one_unit_with_a_low_key_are_counted(con: duckdb.DuckDBPyConnection) -> None:
    """Their keys add up to as little as incomes do, so that the sum of a cell cannot be the reason of an error."""
    con.execute(
        "CREATE TABLE visits AS SELECT id, record_key FROM (FROM people ORDER BY record_key LIMIT 9) p, range(40) _(n)"
    )
    told = con.execute(
        "SELECT avg(record_key), count(*), sdc_count(record_key) FROM visits GROUP BY id ORDER BY 1"
    ).fetchall()
    assert [rows for _, rows, _ in told] == [40] * 9
    assert max(key for key, _, _ in told) < 1e5  # the mean of the incomes is 44834.5
    assert all(abs(n - 40) <= 10 for _, _, n in told)
