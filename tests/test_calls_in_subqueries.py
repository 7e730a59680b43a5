"""A function that computes a table may stand wherever a table may, beside rows that it is joined to or tied to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import duckdb
import pyarrow as pa
import pytest

import sdcduck
from sdcduck.functions import registry
from sdcduck.functions.jobs import Display, Work

CALL = "sdc_microaggregate('amounts', columns := ['x'], k := 3)"
FORMS = {
    "scalar": f"SELECT count(*) FROM ids a WHERE (SELECT max(i) FROM {CALL} s WHERE s.i > a.i) IS NULL",
    "of each": f"SELECT list((SELECT max(s.i + a.i) FROM {CALL} s) ORDER BY a.i)[:3] FROM ids a",
    "EXISTS": f"SELECT count(*) FROM ids a WHERE EXISTS (SELECT 1 FROM {CALL} s WHERE s.i > a.i)",
    "ALL": f"SELECT count(*) FROM ids a WHERE i > ALL (SELECT s.i - a.i FROM {CALL} s)",
    "LATERAL": f"SELECT count(*), sum(z) FROM ids a, LATERAL (SELECT s.i + a.i AS z FROM {CALL} s WHERE s.i > a.i)",
    "WITH inside": f"SELECT count(*) FROM ids a WHERE (WITH s AS (FROM {CALL}) SELECT max(i) FROM s WHERE s.i > a.i) > 1",
    "nobody": f"SELECT count(*) FROM ids a WHERE i < 0 AND (SELECT max(i) FROM {CALL} s WHERE s.i > a.i) IS NULL",
}
"""Statements of which each is also asked of a table that has the rows of the call."""


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect() as connection:
        connection.execute("CREATE TABLE amounts AS SELECT i, (i * 7919 % 101)::DOUBLE AS x FROM range(30) numbers(i)")
        # More rows than DuckDB hands to a function at a time.
        connection.execute("CREATE TABLE ids AS SELECT i FROM range(5000) numbers(i)")
        connection.execute(f"CREATE TABLE computed AS FROM {CALL}")
        yield connection


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_tied_to_other_rows(con: duckdb.DuckDBPyConnection, form: str) -> None:
    """With DuckDB 2 these did not end: its subqueries lost the LIMIT that ended the waiting."""
    expected = con.execute(form.replace(CALL, "computed")).fetchall()
    assert con.execute(form).fetchall() == expected
    assert con.execute(f"WITH answer AS ({form}) FROM answer WHERE ? = 1", [1]).fetchall() == expected


def test_all_rows_of_a_statement_have_one_table(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows ask for it, it is made once."""
    made = []

    def counted(make: Callable[[], pa.Table], display: Display | None) -> Work:
        made.append(make)
        return Work(make, display)

    monkeypatch.setattr(registry, "Work", counted)
    con.execute(FORMS["of each"]).fetchall()
    assert len(made) == 1


def test_the_same_call_later_sees_what_has_changed(con: duckdb.DuckDBPyConnection) -> None:
    """In one transaction, too, where a table was handed out to several rows before."""
    largest = f"SELECT max(m) FROM (SELECT (SELECT max(s.x + 0 * a.i) FROM {CALL} s) AS m FROM ids a)"
    con.begin()
    ((before,),) = con.execute(largest).fetchall()
    with con.cursor() as other:
        other.execute("UPDATE amounts SET x = x + 1000")
    assert con.execute(largest).fetchall() == [(before + 1000,)]
    con.commit()
