"""Records in a folder of Parquet: views of a DuckDB that reads it, with the numbers of the same records in a table."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Refused

SECRET = "the secret of these tests"
_PEOPLE = """SELECT i AS id, ['n', 's', 'e'][1 + i % 3] AS region, i % 7 AS age, sqrt(i) AS income, sdc_record_key(i)::INTEGER AS record_key
    FROM range(3000) r(i)"""
_PROTECT = "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age'], measures := ['income'])"
_QUESTION = "SELECT region, count(*) AS n, avg(income) AS i FROM people WHERE age > 1 GROUP BY CUBE (region)"


def _register(folder: Path) -> duckdb.DuckDBPyConnection:
    with sdcduck.connect(secret=SECRET) as con:
        con.execute(f"COPY ({_PEOPLE}) TO '{folder}' (FORMAT parquet, PARTITION_BY (region), ROW_GROUP_SIZE 2048)")
    made = duckdb.connect()
    made.execute(
        f"CREATE VIEW people AS FROM read_parquet('{folder}/*/*.parquet', hive_partitioning := true, hive_types := {{region: VARCHAR}})"
    )
    return made


def test_a_folder_of_parquet(tmp_path: Path) -> None:
    register = _register(tmp_path / "people")
    with sdcduck.connect(secret=SECRET) as con:
        con.execute(f"CREATE TABLE people AS {_PEOPLE}")
        con.execute(_PROTECT).fetchall()
        con.execute("UPDATE sdc.settings SET value = 'noise' WHERE name = 'noise_secret'")
        meant = sdcduck.open_guard(con).sql(_QUESTION)
    with sdcduck.connect(secret=SECRET, records=register) as con:
        con.execute(_PROTECT).fetchall()
        con.execute("UPDATE sdc.settings SET value = 'noise' WHERE name = 'noise_secret'")
        guard = sdcduck.open_guard(con, records=register)
        assert guard.sql(_QUESTION).equals(meant)
        # A file that came since: looked at before anything is said of it, and here it has no keys.
        register.execute(
            f"COPY (SELECT 9999 AS id, 1 AS age, NULL::DOUBLE AS income, NULL::INTEGER AS record_key) TO '{tmp_path}/people/region=n/new.parquet' (FORMAT parquet)"
        )
        with pytest.raises(Refused, match=r"SDC060.*without a proper key") as refused:
            guard.sql(_QUESTION)
        assert "9999" not in str(refused.value)
        guard.close()
