"""Settings by which SQL means something else: functions give what they give without them, or say which is in the way."""

from __future__ import annotations

import duckdb
import pytest

import sdcduck

_TABLE = "CREATE TABLE people AS SELECT i AS id, i % 3 AS region, i % 7 AS age, (i * 37 % 901)::DOUBLE AS income FROM range(300) t(i)"
_QUANTILES = "SELECT region, sdc_quantile(income, record_key, 0.9), sdc_sum(income, record_key) FROM people GROUP BY region ORDER BY region ASC"
_SETTINGS = ("default_order = 'desc'", "default_null_order = 'nulls_first'")


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(_TABLE)
    con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
    return con


@pytest.mark.parametrize("setting", [*_SETTINGS, "scalar_subquery_error_on_multiple_rows = false"])
def test_numbers_are_the_same(con: duckdb.DuckDBPyConnection, setting: str) -> None:
    before = con.execute(_QUANTILES).fetchall()
    con.execute(f"SET {setting}")
    assert con.execute(_QUANTILES).fetchall() == before


@pytest.mark.parametrize("scope", ["SESSION", "GLOBAL"])
@pytest.mark.parametrize("setting", [*_SETTINGS, "default_null_order = 'nulls_last_on_asc_first_on_desc'"])
def test_rows_in_another_order_are_refused(con: duckdb.DuckDBPyConnection, setting: str, scope: str) -> None:
    name = setting.split(" ")[0]
    con.execute(
        "FROM sdc_publication('p', 'SELECT region, age, count(*) AS n FROM people GROUP BY CUBE (region, age)')"
    ).fetchall()
    ask = "FROM sdc_suppress('p', max_count := 3)"
    before = con.execute(ask).fetchall()
    con.execute(f"SET {scope} {setting}")
    with pytest.raises(duckdb.InvalidInputException, match=f"{name} is set to .*: RESET {name} first"):
        con.execute(ask)
    con.execute(f"RESET {scope} {name}")
    assert con.execute(ask).fetchall() == before


def test_settings_that_change_nothing_are_not_in_the_way(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("SET default_order = 'asc'; SET default_null_order = 'nulls_last'; SET integer_division = 0")
    con.execute("FROM sdc_publication('p', 'SELECT region, count(*) AS n FROM people GROUP BY region')").fetchall()
    assert con.execute("SELECT count(*) FROM sdc_suppress('p', max_count := 3)").fetchall() == [(3,)]


@pytest.mark.parametrize("scope", ["SESSION", "GLOBAL"])
def test_risks_are_not_cut_to_whole_numbers(con: duckdb.DuckDBPyConnection, scope: str) -> None:
    """The marketer risk was 0 in a session of whole-number division; 30 other functions were as wrong."""
    asked = [
        "SELECT im, im_acceptable FROM sdc_marketer_risk('people', keys := ['region', 'age'])",
        "SELECT p_stay FROM sdc_ptable_check('default') WHERE i = 1",
        "SELECT share_homogeneous, entropy_l FROM sdc_l_diversity('people', keys := ['region'], sensitive := 'age')",
        "SELECT (sdc_mask_utility(age, age + 1)).ks FROM people",
    ]
    before = [con.execute(one).fetchall() for one in asked]
    assert before[0] == [(0.07, True)]
    con.execute(f"SET {scope} integer_division = true")
    for one in asked:
        with pytest.raises(
            duckdb.InvalidInputException, match=r"integer_division is set.*: RESET integer_division first"
        ):
            con.execute(one).fetchall()
    con.execute(f"RESET {scope} integer_division")
    assert [con.execute(one).fetchall() for one in asked] == before
