"""A gateway to a register whose records are Parquet files: `--allow-dir`."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from served_gateway import PASSWORD, start

import sdcduck

psycopg = pytest.importorskip("psycopg")

ASKED = "SELECT region, count(*) FROM people GROUP BY region ORDER BY region"


def test_a_folder_is_allowed_or_the_gateway_says_what_it_cannot_answer(tmp_path: Path) -> None:
    records, register = tmp_path / "records", tmp_path / "register.duckdb"
    records.mkdir()
    duckdb.execute(f"COPY (SELECT range AS id, range % 2 AS region FROM range(100)) TO '{records}/a.parquet'")
    with sdcduck.connect(register) as con:
        con.execute(f"CREATE VIEW people AS FROM '{records}/*.parquet'; CREATE TABLE numbers AS SELECT 7 AS n")
        sdcduck.protect(con, "people", unit="id", dimensions=["region"], method="threshold", min_units=3)
        sdcduck.declare_public(con, "numbers")
        sdcduck.create_user(con, "ann", PASSWORD)
    for options in ((), ("--allow-dir", str(records))):
        served = start(register, tmp_path / f"served{len(options)}", *options)
        try:
            with psycopg.connect(**served.options, autocommit=True) as client:
                assert client.execute("SELECT n FROM numbers").fetchall() == [(7,)]
                if options:
                    assert client.execute(ASKED).fetchall() == [(0, 50), (1, 50)]
                    assert client.execute("SELECT table_name FROM information_schema.tables ORDER BY 1").fetchall() == [
                        ("numbers",), ("people",),
                    ]  # fmt: skip
                else:
                    with pytest.raises(psycopg.Error, match=r"SDC060.*a view of files"):
                        client.execute(ASKED)
        finally:
            assert served.stop() == 0
        assert ("people: a view of files" in served.events.read_text()) == (not options)
