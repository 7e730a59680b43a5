"""Suppressed publications in the terms of SDMX."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sdcduck

QUERY = "SELECT sector, geo, count(*) AS n, sum(value) AS value FROM accounts GROUP BY CUBE (sector, geo)"


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = sdcduck.connect()
    connection.execute("""
        CREATE TABLE accounts AS SELECT * FROM (VALUES
            ('A', 'x', 1, 90), ('A', 'x', 2, 5), ('A', 'x', 3, 5), ('A', 'y', 1, 50), ('A', 'y', 2, 45), ('A', 'y', 3, 5),
            ('B', 'x', 1, 40), ('B', 'x', 2, 35), ('B', 'x', 3, 25), ('B', 'y', 1, 20), ('B', 'y', 2, 20), ('B', 'y', 3, 30),
            (NULL, 'x', 1, 30), (NULL, 'x', 2, 30), (NULL, 'x', 3, 20), (NULL, 'y', 1, 25), (NULL, 'y', 2, 20), (NULL, 'y', 4, 20)
        ) accounts(sector, geo, firm, value)""")
    yield connection
    connection.close()


def status(con: duckdb.DuckDBPyConnection, rules: str, sector: str, geo: str) -> Any:
    row = con.execute(
        f"SELECT DISTINCT CONF_STATUS FROM sdc_sdmx('{QUERY}', {rules}) WHERE sector = '{sector}' AND geo = '{geo}'"
    ).fetchall()
    assert len(row) == 1
    return row[0][0]


def test_one_row_a_cell_and_measure_with_codes_for_totals(con: duckdb.DuckDBPyConnection) -> None:
    rows = con.execute(f"FROM sdc_sdmx('{QUERY}')").fetchall()
    assert len(rows) == 4 * 3 * 2
    assert rows[:2] == [("_T", "_T", "n", 18, "A", "F"), ("_T", "_T", "value", 515, "A", "F")]
    assert {row[0] for row in rows} == {"_T", "_U", "A", "B"}
    assert ("_U", "x", "value", 80, "A", "F") in rows
    assert ("_U", "_T", "n", 6, "A", "F") in rows


def test_the_numbers_are_those_of_sdc_suppress(con: duckdb.DuckDBPyConnection) -> None:
    rules = "dominance := [(1, 80)]"
    long = con.execute(
        f"SELECT sector, geo, max(OBS_VALUE) FILTER (MEASURE = 'n'), max(OBS_VALUE) FILTER (MEASURE = 'value'), "
        f"min(OBS_STATUS) FROM sdc_sdmx('{QUERY}', {rules}) GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    wide = con.execute(f"""
        SELECT CASE WHEN level LIKE '%sector%' THEN coalesce(sector, '_U') ELSE '_T' END,
            CASE WHEN level LIKE '%geo%' THEN geo ELSE '_T' END, n, value, CASE WHEN suppressed THEN 'Q' ELSE 'A' END
        FROM sdc_suppress('{QUERY}', {rules}) ORDER BY ALL""").fetchall()
    assert long == wide
    assert "Q" in {row[4] for row in wide}


def test_why_a_value_is_confidential(con: duckdb.DuckDBPyConnection) -> None:
    assert status(con, "max_count := 3", "A", "x") == "A"
    assert status(con, "min_contributors := 4", "A", "x") == "A"
    assert status(con, "dominance := [(1, 80)]", "A", "x") == "O"
    assert status(con, "dominance := [(2, 95)]", "A", "y") == "T"
    assert status(con, "dominance := [(1, 80), (2, 95)]", "A", "x") == "G"
    assert status(con, "dominance := [(1, 80), (2, 95)]", "A", "y") == "T"
    assert status(con, "dominance := [(3, 99)]", "A", "y") == "M"
    assert status(con, "p_percent := 10", "A", "x") == "M"
    assert status(con, "pq := (10, 50)", "A", "x") == "M"
    assert status(con, "primary_if := 'value = 100 AND geo = ''x'''", "A", "x") == "C"
    assert status(con, "dominance := [(1, 80)], max_count := 3", "A", "x") == "A"
    rules = "primary_if := 'sector = ''A'' AND geo = ''x'''"
    found = con.execute(f"SELECT CONF_STATUS, count(*) FROM sdc_sdmx('{QUERY}', {rules}) GROUP BY ALL").fetchall()
    assert dict(found) == {"C": 2, "D": 6, "F": 16}


def test_forced_cells_are_free_and_hidden_ones_absent(con: duckdb.DuckDBPyConnection) -> None:
    forced = "max_count := 3, forced_if := 'sector = ''A'' AND geo = ''x'''"
    assert status(con, forced, "A", "x") == "F"
    hidden = f"sdc_sdmx('{QUERY}', hidden_if := 'level = ''total''')"
    assert con.execute(f"SELECT count(*) FROM {hidden} WHERE sector = '_T' AND geo = '_T'").fetchone() == (0,)


def test_a_sum_of_no_values_is_missing_but_not_suppressed(con: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT geo, count(*) AS n, sum(value) FILTER (value > 85) AS large FROM accounts GROUP BY CUBE (geo)"
    rows = con.execute(f"FROM sdc_sdmx('{query}') WHERE MEASURE = 'large'").fetchall()
    assert rows == [
        ("_T", "large", 90, "A", "F"), ("x", "large", 90, "A", "F"), ("y", "large", None, "O", "F"),
    ]  # fmt: skip


def test_the_values_have_a_type_that_holds_all_measures(con: duckdb.DuckDBPyConnection) -> None:
    for value, kind in (("value", "HUGEINT"), ("value::DOUBLE", "DOUBLE"), ("value::DECIMAL(9, 2)", "DECIMAL(38,2)")):
        query = f"SELECT geo, count(*) AS n, sum({value}) AS value FROM accounts GROUP BY CUBE (geo)"
        described = con.execute(f"DESCRIBE FROM sdc_sdmx('{query}')").fetchall()
        assert {row[0]: row[1] for row in described}["OBS_VALUE"] == kind


def test_it_goes_into_a_file(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute(f"COPY (FROM sdc_sdmx('{QUERY}', dominance := [(1, 80)])) TO '{tmp_path}/cells.csv'")
    header, *rows = csv.reader((tmp_path / "cells.csv").open(encoding="utf-8"))
    assert header == ["sector", "geo", "MEASURE", "OBS_VALUE", "OBS_STATUS", "CONF_STATUS"]
    assert ["A", "x", "value", "", "Q", "O"] in rows
    assert len(rows) == 24


def test_a_stored_publication_keeps_its_rules(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"FROM sdc_publish('accounts', '{QUERY}', dominance := [(1, 80)])").fetchall()
    call = "sdc_sdmx('{}'{})"
    named = con.execute(f"FROM {call.format('accounts', '')}").fetchall()
    assert named == con.execute(f"FROM {call.format(QUERY, ', dominance := [(1, 80)]')}").fetchall()


def test_columns_that_the_result_has_are_refused(con: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT geo AS measure, count(*) AS n FROM accounts GROUP BY CUBE (geo)"
    with pytest.raises(duckdb.Error, match="sdc_sdmx: the publication has a column 'measure'"):
        con.execute(f"FROM sdc_sdmx('{query}')")


@pytest.mark.parametrize("code", ["_T", "_U"])
def test_a_category_with_the_code_of_a_total_is_refused(con: duckdb.DuckDBPyConnection, code: str) -> None:
    query = f"SELECT replace(geo, 'x', '{code}') AS geo, count(*) AS n FROM accounts GROUP BY CUBE (geo)"
    with pytest.raises(duckdb.Error, match="a category has the code _T or _U, which are for totals and NULL"):
        con.execute(f"FROM sdc_sdmx($${query}$$)").fetchall()


def test_an_empty_table(con: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT geo, count(*) AS n FROM accounts WHERE geo = 'z' GROUP BY GROUPING SETS ((geo))"
    assert con.execute(f"FROM sdc_sdmx($${query}$$, max_count := 1)").fetchall() == []
