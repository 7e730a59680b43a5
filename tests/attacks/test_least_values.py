"""The least number of an integer type has no absolute value in that type: -128 stands for "missing" in many files.

An error where somebody with it is among the records, and none where not, would tell of anybody with such a value what is
asked of that person: one question, exactly, under the method that is there unless another is named.
"""

from __future__ import annotations

import pytest

import sdcduck
from sdcduck.guard import guard

LEAST = {
    "TINYINT": -128,
    "INTEGER": -(2**31),
    "BIGINT": -(2**63),
    "HUGEINT": "'-170141183460469231731687303715884105728'",
}
ASKED = (
    "sum({0})", "avg({0})", "sum(2 * {0} - 5)", "sum(coalesce({0}, 0))", "sum({0} * age)", "regr_slope({0}, age)",
    "covar_pop({0}, age)", "corr({0}, age)", "stddev({0})", "median({0})", "sum(CASE WHEN age = 1 THEN {0} ELSE 0 END)",
)  # fmt: skip


@pytest.mark.parametrize("rows", [1, 2])
def test_no_error_tells_that_a_value_is_the_least_of_its_type(rows: int) -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        columns = ", ".join(
            f"CASE WHEN i = 77 THEN ({least})::{kind} ELSE (i % 7)::{kind} END AS m_{kind}"
            for kind, least in LEAST.items()
        )
        con.execute(
            f"CREATE TABLE people AS SELECT i AS id, i % 3 AS age, {columns} FROM range(300) t(i), range({rows})"
        )
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute(
            f"FROM sdc_protect('people', unit := 'id', dimensions := ['age'], measures := {[f'm_{kind}' for kind in LEAST]})"
        ).fetchall()
        guarded = guard(con)
        for what in ASKED:
            if rows == 2 and "age)" in what and not what.startswith("sum"):
                continue  # statistics of several rows of a unit are not what is tried here
            shown = ", ".join(f"{what.format(f'm_{kind}')} AS v_{kind}" for kind in LEAST)
            assert guarded.sql(f"SELECT {shown} FROM people").num_rows == 1, what


def test_the_plain_functions_take_it_too() -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("CREATE TABLE people AS SELECT i * 1237 AS record_key, (i - 128)::TINYINT AS x FROM range(20) t(i)")
        narrow = con.execute("SELECT sdc_sum(x, record_key), sdc_mean(x, record_key) FROM people").fetchall()
        wide = con.execute("SELECT sdc_sum(x::INT, record_key), sdc_mean(x::INT, record_key) FROM people").fetchall()
        assert narrow == wide
