"""What was called otherwise in 0.1 still works, and says what it is called now."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import sdcduck


def test_the_guard_opens_under_its_old_name(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE regions AS SELECT range AS region FROM range(3)")
    con.execute("FROM sdc_public('regions')").fetchall()
    with pytest.warns(DeprecationWarning, match=r"^sdcduck\.guard is called sdcduck\.open_guard now$") as said:
        guard = sdcduck.guard(con, role="anybody")  # type: ignore[operator]
    assert said[0].filename == __file__
    assert guard.sql("FROM regions").num_rows == 3


def test_a_publication_is_reported_under_its_old_name(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE people AS SELECT range % 3 AS region FROM range(30)")
    with pytest.warns(DeprecationWarning, match=r"^sdcduck\.report is called sdcduck\.publication_report now$"):
        page = sdcduck.report(  # type: ignore[operator]
            con, "SELECT region, count(*) AS n FROM people GROUP BY CUBE (region)", tmp_path / "page.html", max_count=2
        )
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_packages_are_not_hidden() -> None:
    assert sdcduck.guard.Refused is not None
    assert sdcduck.report.publication_report is sdcduck.publication_report
