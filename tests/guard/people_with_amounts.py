"""People with incomes, bonuses and what they won or lost, whose amounts have bounds and bands, under each method."""

from __future__ import annotations

from functools import cache

import duckdb

import sdcduck
from sdcduck.guard import Guard

METHODS = {
    "threshold": "method := 'threshold', min_units := 1",
    "cell_key": "method := 'cell_key'",
    "rounding": "method := 'rounding', base := 5",
}
LIMITS = (
    "bounds := {'income': [1, 50000], 'bonus': [0, 1000], 'won': [-500, 500]}, bands := {'income': [0, 10000, 20000]}"
)
BAND = "CASE WHEN income < 10000 THEN 'low' WHEN income < 20000 THEN 'middle' ELSE 'high' END"


def made(method: str, limits: str = LIMITS) -> duckdb.DuckDBPyConnection:
    """A database in which some people have no income, and none has one outside of the bounds."""
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(f"""
        CREATE TABLE people AS SELECT i AS id, sdc_record_key(i) AS record_key, ['n', 's', 'e'][1 + i % 3] AS region,
            (i % 8 / 16)::DOUBLE AS discount, CASE WHEN i % 37 > 0 THEN 100 + i * 7919 % 4000 * 10 END AS income,
            i * 31 % 700 AS bonus, ((i * 131 % 801) - 400) / 4::DOUBLE AS won FROM range(1, 1501) t(i);
        ALTER TABLE people ADD COLUMN band VARCHAR;
        UPDATE people SET band = {BAND}""")
    protect(con, method, limits)
    return con


@cache
def looked_at(method: str, limits: str = LIMITS) -> tuple[duckdb.DuckDBPyConnection, Guard]:
    """The same with its guard, once a process: for tests that ask and change nothing."""
    con = made(method, limits)
    return con, sdcduck.open_guard(con)


def protect(con: duckdb.DuckDBPyConnection, method: str, limits: str = LIMITS) -> None:
    """Declare the policy of the people, with bounds and bands or without."""
    more = f", {limits}" if limits else ""
    con.execute(
        "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'discount', 'band'], "
        f"measures := ['income', 'bonus', 'won'], {METHODS[method]}{more})"
    ).fetchall()
