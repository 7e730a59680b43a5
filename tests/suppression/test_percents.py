"""``sdc_percent_table``: percentages of a published table, which tell nothing that its numbers do not."""

from __future__ import annotations

import duckdb
import pytest

CUBE = "SELECT region, sex, count(*) AS n, sum(pay) AS pay FROM p GROUP BY CUBE (region, sex)"


@pytest.fixture(scope="module")
def published(lasting: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    lasting.execute(
        """CREATE TABLE p AS SELECT region, sex, CASE WHEN region = 'N' THEN 10.5 * range WHEN region = 'S' THEN range END AS pay
        FROM (VALUES ('N', 'f', 12), ('N', 'm', 8), ('S', 'f', 7), ('S', 'm', 2), ('E', 'f', 2), ('E', 'm', 11),
            (NULL, 'f', 5), (NULL, 'm', 4)) v(region, sex, k), range(k)"""
    )
    lasting.execute(f"FROM sdc_publish('cube', '{CUBE}', max_count := 2)").fetchall()
    return lasting


def test_percentages_are_of_published_numbers(published: duckdb.DuckDBPyConnection) -> None:
    """Each follows from the stored cells, and there is none where one of its two numbers is suppressed."""
    cells = {
        (region, sex, level): None if status in ("primary", "secondary") else n
        for region, sex, level, n, status in published.execute(
            "SELECT region, sex, level, n, status FROM sdc.cube_cells"
        ).fetchall()
    }
    rows = published.execute("FROM sdc_percent_table('cube', ['sex'])").fetchall()
    assert len(rows) == sum("sex" in level for *_, level in cells)
    assert {row[-1] for row in rows} == {None, "suppressed"}
    for region, sex, level, number, total, percent, reason in rows:
        n, of = cells[region, sex, level], cells[region, None, "region" if level == "region x sex" else "total"]
        assert (number, total) == (n, of)
        if n is None or of is None:
            assert (percent, reason) == (None, "suppressed")
        else:
            assert (percent, reason) == (pytest.approx(100 * n / of, abs=0.05 + 1e-9), None)


def test_null_is_a_category_and_no_total(published: duckdb.DuckDBPyConnection) -> None:
    rows = published.execute(
        "SELECT region, number, total FROM sdc_percent_table('cube', ['region']) WHERE level = 'region' AND region IS NULL"
    ).fetchall()
    assert rows == [(None, 9, 51)]


@pytest.mark.parametrize(("digits", "expected"), [(0, 24), (1, 23.5), (3, 23.529)])
def test_digits_and_all_columns(published: duckdb.DuckDBPyConnection, digits: int, expected: float) -> None:
    """Of all people: 12 of 51 are women of the north."""
    rows = published.execute(
        f"SELECT percent FROM sdc_percent_table('cube', ['SEX', 'region'], digits := {digits}) WHERE number = 12 AND total = 51"
    ).fetchall()
    assert rows == [(expected,)]


def test_sums_and_those_of_no_values(published: duckdb.DuckDBPyConnection) -> None:
    rows = published.execute(
        "SELECT region, percent, reason FROM sdc_percent_table('cube', ['region'], measure := 'PAY') "
        "WHERE level = 'region' ORDER BY region NULLS LAST"
    ).fetchall()
    assert rows == [("E", None, "no number"), ("N", pytest.approx(97.8), None), ("S", pytest.approx(2.2), None), (None, None, "no number")]  # fmt: skip


def test_suppressed_totals_and_those_that_are_not_published(published: duckdb.DuckDBPyConnection) -> None:
    published.execute(
        """FROM sdc_publish('some', 'SELECT region, sex, count(*) AS n FROM p
            GROUP BY GROUPING SETS ((region, sex), (region))', primary_if := 'sex IS NULL AND n = 20')"""
    ).fetchall()
    rows = published.execute(
        "SELECT reason, number IS NULL, percent FROM sdc_percent_table('some', ['sex']) WHERE region = 'N' ORDER BY ALL"
    ).fetchall()
    assert rows == [("suppressed", True, None), ("total suppressed", False, None)]
    published.execute(
        """FROM sdc_publish('parts', 'SELECT region, sex, count(*) AS n FROM p
            GROUP BY GROUPING SETS ((region, sex), (region), (sex))', max_count := 1)"""
    ).fetchall()
    rows = published.execute(
        "SELECT level, reason, count(percent) FROM sdc_percent_table('parts', ['sex']) GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert rows == [("region x sex", None, 8), ("sex", "no total", 0)]


def test_a_total_of_nothing(published: duckdb.DuckDBPyConnection) -> None:
    published.execute(
        """FROM sdc_publish('zeros', 'SELECT region, sex, sum(CASE WHEN region = ''N'' THEN 1 ELSE 0 END) AS n
            FROM p GROUP BY CUBE (region, sex)', freq := 'n', max_count := 2)"""
    ).fetchall()
    rows = published.execute(
        "SELECT DISTINCT percent, reason FROM sdc_percent_table('zeros', ['sex']) WHERE region = 'S'"
    ).fetchall()
    assert rows == [(None, "total is 0")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("NULL, ['sex']", "'publication' must be the name of a stored publication"),
        ("'nothing', ['sex']", "unknown publication 'nothing'"),
        ("'stored', ['sex']", "'stored' has not been published yet"),
        ("'cube', []", "'columns' must name grouping columns"),
        ("'cube', ['n']", "'n'"),
        ("'cube', ['age']", "'age'"),
        ("'cube', ['sex'], measure := 'sex'", "unknown measure 'sex'"),
        ("'cube', ['sex'], digits := -1", "'digits' must be a whole number"),
        ("'cube', ['sex'], digits := 99", "'digits' must be a whole number"),
        ("'cube', ['sex'], digits := NULL", "'digits' must be a whole number"),
        ("'taken', ['percent']", "'percent' is also one of the result"),
        ("'no_total', ['sex']", "no totals over these columns"),
    ],
)
def test_what_cannot_be_used(published: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    stored = "SELECT region, sex, count(*) AS n FROM p GROUP BY region, sex"
    published.execute(f"FROM sdc_publication('stored', '{stored}')").fetchall()
    published.execute(f"FROM sdc_publish('no_total', '{stored}', max_count := 1)").fetchall()
    taken = "SELECT sex AS percent, count(*) AS n FROM p GROUP BY CUBE (percent)"
    published.execute(f"FROM sdc_publish('taken', '{taken}', max_count := 1)").fetchall()
    with pytest.raises(duckdb.Error, match=message):
        published.execute(f"FROM sdc_percent_table({arguments})")
