"""What masking has done to each column: sdc_mask_loss, by hand, and in the report of a release."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from sdcduck import assess

BEFORE = "(FROM (VALUES (1, 10.0, 'a', 3), (2, 20.0, 'b', 3), (3, 30.0, NULL, 3), (4, NULL, 'a', 3)) t(id, x, c, z))"
AFTER = "(FROM (VALUES (4, 1.0, 'a', '3'), (2, 26.0, NULL, '[0, 9]'), (3, 30.0, 'b', '3'), (1, NULL, 'a', '3')) t(ID, x, c, z))"


def test_by_hand(con: duckdb.DuckDBPyConnection) -> None:
    found = con.execute(f"FROM sdc_mask_loss({quoted(BEFORE)}, {quoted(AFTER)}, id := 'id')").fetchall()
    x, c, z = found
    assert x[:4] == ("x", 4, 3, 1)
    # Known in both tables are 20 and 30: they changed by 6 and 0, and lie 5 from their mean.
    assert x[4] == pytest.approx(100 * 36 / 50)
    assert x[5] == pytest.approx(3 / (2**0.5 * 50**0.5))  # on average 3, by the standard deviation of 20 and 30
    assert x[6:10] == pytest.approx((20, 19, 10, np.std([26, 30, 1], ddof=1)))
    assert x[10] == pytest.approx(1)
    assert c == ("c", 4, 2, 1, *[None] * 7)
    assert z == ("z", 4, 1, 0, *[None] * 7)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def test_random_numbers(con: duckdb.DuckDBPyConnection) -> None:
    chance = np.random.default_rng(4)
    x, y = chance.normal(5, 2, 300), chance.normal(0, 1, 300)
    con.register("drawn", {"id": np.arange(300), "x": x, "y": x + y})
    con.execute("CREATE TABLE a AS SELECT id, x FROM drawn")
    con.execute("CREATE TABLE b AS SELECT id, y AS x FROM drawn ORDER BY y")
    found = con.execute("SELECT * EXCLUDE (column_name) FROM sdc_mask_loss('a', 'b', ['X'], id := 'id')").fetchone()
    assert found == pytest.approx(
        (
            300, 300, 0, 100 * (y**2).sum() / ((x - x.mean()) ** 2).sum(), np.abs(y).mean() / 2**0.5 / x.std(ddof=1),
            x.mean(), (x + y).mean(), x.std(ddof=1), (x + y).std(ddof=1), np.corrcoef(x, x + y)[0, 1],
        )
    )  # fmt: skip


def test_numbers_of_no_variation(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE a AS SELECT i AS id, 1 AS same, 2 AS other FROM range(3) r(i)")
    con.execute("CREATE TABLE b AS SELECT id, same, 3 AS other FROM a")
    found = con.execute("SELECT column_name, changed, il, correlation FROM sdc_mask_loss('a', 'b', id := 'id')")
    assert found.fetchall() == [("same", 0, 0, None), ("other", 3, None, None)]
    empty = con.execute("FROM sdc_mask_loss('(FROM a LIMIT 0)', '(FROM b LIMIT 0)', id := 'id')").fetchall()
    assert [row[1:4] for row in empty] == [(0, 0, 0)] * 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'a', 'b'", "argument 'id' must name the column that tells which records belong together"),
        ("'a', 'b', id := 'nobody'", "unknown column 'nobody'"),
        ("'a', '(SELECT id + 1 AS id, x FROM b)', id := 'id'", "of 3 records of 'original' and 3 of 'protected' 2 belong"),
        ("'a', '(SELECT id // 2 AS id, x FROM b)', id := 'id'", "argument 'protected': column 'id' is the same in several"),
        ("'a', '(SELECT id, ''nan''::DOUBLE AS x FROM b)', id := 'id'", "column 'x' has NaN or an infinite number"),
        ("'a', '(SELECT id, 1 AS other FROM b)', id := 'id'", "original and protected have no column in common"),
        ("'a', 'b', ['x', 'x'], id := 'id'", "names column 'x' twice"),
    ],
)  # fmt: skip
def test_bad_input(con: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    con.execute("CREATE TABLE a AS SELECT i AS id, i * 1.5 AS x FROM range(3) r(i)")
    con.execute("CREATE TABLE b AS FROM a")
    with pytest.raises(duckdb.Error) as raised:
        con.execute(f"FROM sdc_mask_loss({call})").fetchall()
    assert message in str(raised.value)


def test_a_masked_file_in_the_report_of_a_release(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT i AS id, ['N', 'S'][1 + i % 2] AS region, 20 + i * i % 60 AS age, 1000 + i * 37 % 900 AS income "
        "FROM range(200) r(i)"
    )
    con.execute(
        "CREATE TABLE m AS SELECT * EXCLUDE (group_id, group_size) FROM sdc_microaggregate('p', ['age', 'income'], by := ['region'], id := 'id')"
    )
    given = "'p', 'm', keys := ['region', 'age'], id := 'id'"
    found = con.execute(
        f"SELECT measure, about, value FROM sdc_assess({given}) WHERE section = 'records' ORDER BY ALL"
    ).fetchall()
    told = dict(
        con.execute(
            "SELECT column_name, (n, changed, il, sd_protected) FROM sdc_mask_loss('p', 'm', id := 'id')"
        ).fetchall()
    )
    assert [row for row in found if row[0] == "information loss, per cent"] == [
        ("information loss, per cent", name, told[name][2]) for name in ("age", "income")
    ]
    assert ("share of values that changed", "age", told["age"][1] / 200) in found
    assert ("share of values that changed", "region", 0) in found
    assert {row[1] for row in found} == {"region", "age", "income"}
    # What tells records from each other is nobody's attribute: nothing else compares it.
    assert con.execute(f"SELECT count(*) FROM sdc_assess({given}) WHERE about LIKE '%id%'").fetchall() == [(0,)]
    page = assess(con, "p", "m", tmp_path / "page.html", keys=["region", "age"], id="id").read_text()
    assert "What has happened to the records" in page
