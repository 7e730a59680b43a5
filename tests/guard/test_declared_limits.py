"""Bounds and bands as `sdc_protect` takes, stores and shows them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from people_with_amounts import LIMITS, made, protect

import sdcduck
from sdcduck.guard import Refused
from sdcduck.guard.relations import use_of

SHOWN = "SELECT bounds, bands FROM sdc_policies() WHERE name = 'people'"


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with made("cell_key", "") as connection:
        yield connection


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("bounds := {'incme': [0, 1]}", "unknown column 'incme' in 'people'"),
        ("bands := {'region': [0, 1]}", "argument 'bands': column 'region' is not one of the measures"),
        ("bounds := {'id': [0, 1]}", "argument 'bounds': column 'id' is not one of the measures"),
        ("bounds := {'income': [1, 0]}", "argument 'bounds': the numbers of 'income' must ascend"),
        ("bounds := {'income': [1, 1]}", "must ascend"),
        ("bands := {'income': [0, 20000, 10000]}", "argument 'bands': the numbers of 'income' must ascend"),
        ("bands := {'income': [0, 0]}", "must ascend"),
        ("bands := {'income': [20000]}", "one border makes no band"),
        ("bands := {'income': []}", "one border makes no band"),
        ("bands := {'income': range(101)}", "101 borders are more than 100"),
        ("bounds := {'income': [0]}", "name for each measure the least and the largest value"),
        ("bounds := {'income': [0, 1, 2]}", "name for each measure the least and the largest value"),
        ("bounds := {'income': [0, 'nan'::DOUBLE]}", "NaN, infinite or beyond 9e14"),
        ("bounds := {'income': [0, 'inf'::DOUBLE]}", "NaN, infinite or beyond 9e14"),
        ("bands := {'income': ['-inf'::DOUBLE, 0]}", "NaN, infinite or beyond 9e14"),
        ("bands := {'income': [0, 1e15]}", "NaN, infinite or beyond 9e14"),
        ("bands := {'income': [0, NULL]}", "'income' is not so; such as"),
        ("bands := {'income': ['0', '1']}", "'income' is not so; such as"),
        ("bands := {'income': [true, false]}", "'income' is not so; such as"),
        ("bounds := {'income': 5}", "'income' is not so; such as"),
        ("bounds := 5", "name for each measure the least and the largest value"),
        ("bands := 'income'", "name for each measure two borders or more"),
        ("bands := MAP {'income': [0, 1], 'INCOME': [0, 2]}", "has column 'income' twice"),
    ],
)
def test_what_is_no_bound_and_no_band(con: duckdb.DuckDBPyConnection, given: str, said: str) -> None:
    before = con.execute(SHOWN).fetchall()
    with pytest.raises(duckdb.Error) as caught:
        protect(con, "cell_key", given)
    assert said in str(caught.value)
    assert con.execute(SHOWN).fetchall() == before


def test_they_are_stored_and_shown_and_go_with_the_policy(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with made("cell_key", "") as con:
        con.execute(f"ATTACH '{path}' AS other; CREATE TABLE other.people AS FROM people; DETACH other")
    with sdcduck.connect(path, secret="the secret of the tests") as con:
        protect(con, "cell_key", "bounds := MAP {'INCOME': [1, 5e4]}, bands := {'won': [-0.5, 0, 100]}")
        assert con.execute(SHOWN).fetchall() == [({"income": [1.0, 50000.0]}, {"won": [-0.5, 0.0, 100.0]})]
    with sdcduck.connect(path, secret="the secret of the tests", read_only=True) as con:
        (policy, _), *_ = sdcduck.open_guard(con).relations()
        assert (policy.bounds, policy.bands) == ((("income", (1.0, 50000.0)),), (("won", (-0.5, 0.0, 100.0)),))
        assert use_of(policy, "income") == "measure: sum and avg; bounds 1, 50000"
        assert use_of(policy, "won") == "measure: sum and avg; bands at -0.5, 0, 100"
        assert use_of(policy, "bonus") == "measure: sum and avg"
    with contextlib.closing(sdcduck.open_guard(path)) as locked:
        assert locked.sql("SELECT count(*) AS n FROM people WHERE won >= -0.5").num_rows == 1
    with sdcduck.connect(path, secret="the secret of the tests") as con:
        guard = sdcduck.open_guard(con)
        protect(con, "cell_key", "bands := {'won': [0, 100]}")
        assert con.execute(SHOWN).fetchall() == [({}, {"won": [0.0, 100.0]})]
        with pytest.raises(Refused, match="with 0, 100, the borders"):
            guard.sql("SELECT count(*) AS n FROM people WHERE won >= -0.5")
        protect(con, "cell_key", "")
        assert con.execute(SHOWN).fetchall() == [(None, None)]
        con.execute("FROM sdc_unprotect('people')").fetchall()
        assert con.execute("SELECT count(*) FROM sdc.settings WHERE name LIKE 'limits%'").fetchall() == [(0,)]


def test_each_role_has_its_own() -> None:
    with made("cell_key", "") as con:
        protect(con, "cell_key", f"{LIMITS}, role := 'research'")
        assert (
            sdcduck.open_guard(con, role="research")
            .sql("SELECT count(*) AS n FROM people WHERE income < 10000")
            .num_rows
        )
        with pytest.raises(Refused, match="SDC041"):
            sdcduck.open_guard(con).sql("SELECT count(*) AS n FROM people WHERE income < 10000")
        shown = con.execute("SELECT role, bands IS NULL FROM sdc_policies() ORDER BY role").fetchall()
        assert shown == [("", True), ("research", False)]


def test_answers_without_them_are_the_same_with_them() -> None:
    queries = [
        "SELECT region, count(*) AS n, sum(income) AS x, avg(won) AS y, median(bonus) AS z FROM people GROUP BY region"
    ]
    with made("cell_key", "") as con:
        before = [sdcduck.open_guard(con).sql(query).to_pylist() for query in queries]
        protect(con, "cell_key", LIMITS)
        assert [sdcduck.open_guard(con).sql(query).to_pylist() for query in queries] == before
