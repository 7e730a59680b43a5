"""Alternatives side by side, of tables that are not like others."""

from __future__ import annotations

import duckdb

from sdcduck.desk.alternatives import alternatives_statement, compared
from sdcduck.desk.statements import Draft, call

TOWNS = """CREATE TABLE p AS SELECT range AS id, ['a', 'b', NULL][1 + range % 3] AS keys, range % 4 AS age FROM range(40)
    WHERE NOT (range % 3 = 0 AND range % 4 = 0)"""


def test_cells_of_nobody_are_there_and_a_dimension_may_have_any_name(con: duckdb.DuckDBPyConnection) -> None:
    """Nobody in 'a' is 0: a cell where zeros are protected; and a column is called as the noise is in the statement."""
    con.execute(TOWNS)
    con.execute("FROM sdc_add_record_key('p', unit := 'id')").fetchall()
    draft, rules = Draft("x", "p", ("keys", "age"), ()), {"max_count": 2, "protect_zeros": True}
    cells = con.sql(alternatives_statement(draft, rules, keys=True)).to_arrow_table()
    plain = con.sql(f"FROM ({call('sdc_suppress', draft.query, **rules)})").to_arrow_table()
    assert cells.num_rows == plain.num_rows == 20
    [nobody] = [row for row in cells.to_pylist() if (row["keys"], row["age"]) == ("a", 0)]
    assert nobody == {
        "keys": "a", "age": 0, "_original": 0, "_status": "primary", "_suppression": None, "_rounded": 0, "_midpoint": 0,
        "_keys": 0,
    }  # fmt: skip
    by_sql = con.sql("FROM p SELECT keys, age, sdc_count(record_key) GROUP BY CUBE (keys, age)").fetchall()
    noisy = sorted((row["_keys"] for row in cells.to_pylist() if row["_original"] > 0), key=repr)
    assert noisy == sorted((row[2] for row in by_sql), key=repr)
    suppression, *_, keys = compared(cells)
    assert suppression.left_out == sum(plain["suppressed"].to_pylist())
    assert (keys.name, keys.left_out) == ("Cell keys", 0)
