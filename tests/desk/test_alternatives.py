"""Alternatives side by side, of tables that are not like others."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from sdcduck.desk.alternatives import alternatives_statement, can_be_drawn, compared, release_statements
from sdcduck.desk.statements import Draft, call
from sdcduck.errors import SDCError

TOWNS = """CREATE TABLE p AS SELECT range AS id, ['a', 'b', NULL][1 + range % 3] AS keys, range % 4 AS age FROM range(40)
    WHERE NOT (range % 3 = 0 AND range % 4 = 0)"""


def test_cells_of_nobody_are_there_and_a_dimension_may_have_any_name(con: duckdb.DuckDBPyConnection) -> None:
    """Nobody in 'a' is 0: a cell where zeros are protected; and a column is called as the noise is in the statement."""
    con.execute(TOWNS)
    con.execute("FROM sdc_add_record_key('p', unit := 'id')").fetchall()
    draft, rules = Draft("x", "p", ("keys", "age"), ()), {"max_count": 2, "protect_zeros": True}
    cells = con.sql(alternatives_statement(draft, rules, keys=True, seed=7)).to_arrow_table()
    plain = con.sql(f"FROM ({call('sdc_suppress', draft.query, **rules)})").to_arrow_table()
    assert cells.num_rows == plain.num_rows == 20
    [nobody] = [row for row in cells.to_pylist() if (row["keys"], row["age"]) == ("a", 0)]
    assert nobody == {
        "keys": "a", "age": 0, "_original": 0, "_status": "primary", "_suppression": None, "_rounded": 0, "_midpoint": 0,
        "_drawn": 0, "_keys": 0,
    }  # fmt: skip
    by_sql = con.sql("FROM p SELECT keys, age, sdc_count(record_key) GROUP BY CUBE (keys, age)").fetchall()
    noisy = sorted((row["_keys"] for row in cells.to_pylist() if row["_original"] > 0), key=repr)
    assert noisy == sorted((row[2] for row in by_sql), key=repr)
    suppression, *_, keys = compared(cells)
    assert suppression.left_out == sum(plain["suppressed"].to_pylist())
    assert (keys.name, keys.left_out) == ("Cell keys", 0)


def test_synthetic_counts_add_up_and_are_the_same_for_the_same_seed(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(TOWNS)
    draft, rules = Draft("x", "p", ("keys", "age"), ()), {"max_count": 2}
    answers = [
        con.sql(alternatives_statement(draft, rules, keys=False, seed=seed)).to_arrow_table() for seed in (7, 7, 8)
    ]
    assert answers[0].equals(answers[1])
    assert not answers[0]["_drawn"].equals(answers[2]["_drawn"])
    rows = answers[0].to_pylist()
    whole = [row["_drawn"] for row in rows if row["keys"] is None and row["age"] is None]
    assert max(whole) == sum(row["_drawn"] for row in rows if row["keys"] is not None and row["age"] is not None) + sum(
        row["_drawn"] for row in rows if row["keys"] is None and row["age"] is not None
    ) - sum(max(row["_drawn"] for row in rows if row["keys"] is None and row["age"] == age) for age in range(4))
    assert not can_be_drawn(Draft("x", "p", ("Count",), ()))


def test_risk_and_loss_by_hand() -> None:
    """Counts 1, 2, 2, 9 are primary or not: who sees 3 guesses 2, and is right for two of the three primary cells."""
    cells = pa.table({
        "_original": [1, 2, 2, 9], "_status": ["primary", "primary", "primary", "open"],
        "_suppression": [None, None, None, 9], "_rounded": [0, 3, 0, 9], "_midpoint": [3, 3, 3, 9],
    })  # fmt: skip
    suppression, rounded, midpoint = compared(cells)
    assert (suppression.risk, suppression.loss) == (2 / 3, 3 / 4)
    assert (midpoint.risk, midpoint.loss) == (2 / 3, (1 + 0.5 + 0.5) / 4)
    assert rounded.risk == 2 / 3  # of 1 and 2 behind the 0, the smaller; the 3 is a 2
    assert rounded.loss == (1 + 0.5 + 1) / 4


@pytest.mark.parametrize("column", ["_suppression", "_original", "", "; DROP TABLE p"])
def test_what_is_no_alternative_is_not_released(column: str) -> None:
    with pytest.raises(SDCError, match="unknown alternative"):
        release_statements(Draft("x", "p", ("age",), ()), {"max_count": 2}, column, seed=1, replace=False)
