"""Tables that were counted before: `freq` names the sum of numbers of records, and all is as it is of the records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import sdcduck

COUNTED = "SELECT r, s, sum(n) AS n FROM counted GROUP BY CUBE (r, s)"
RECORDS = "SELECT r, s, count(*) AS n FROM records GROUP BY CUBE (r, s)"


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect() as connection:
        connection.execute("""
            CREATE TABLE counted AS SELECT ['a', 'b', 'c'][1 + i % 3] AS r, ['f', 'm'][1 + i // 3 % 2] AS s,
                [1, 5, 9, 2, 30, 7][1 + i % 6] AS n, i AS part FROM range(6) t(i);
            CREATE TABLE records AS SELECT r, s FROM counted, range(n)""")
        yield connection


def rows(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return con.execute(query).fetchall()


@pytest.mark.parametrize(
    "call",
    [
        "sdc_primary($${0}$$, max_count := 2{1})",
        "sdc_suppress($${0}$$, max_count := 2{1})",
        "sdc_suppress($${0}$$, max_count := 2, extend_zeros := true, protect_zeros := true{1})",
        "sdc_suppress($${0}$$, k_disclosure := 1{1})",
        "sdc_audit($${0}$$, max_count := 2, insider := true{1})",
        "sdc_optimum($${0}$$, max_count := 2, singleton := 'none'{1})",
        "sdc_decimals($${0}$$, max_count := 2, seed := 3{1})",
        "sdc_round_table($${0}$$, base := 4, method := 'controlled'{1})",
        "sdc_check_table($${0}$$, threshold := 3{1})",
    ],
)
def test_a_counted_table_is_as_its_records_are(con: duckdb.DuckDBPyConnection, call: str) -> None:
    wanted = rows(con, f"FROM {call.format(RECORDS, '')}")
    assert rows(con, "FROM " + call.format(COUNTED, ", freq := 'n'")) == wanted
    assert wanted


def test_it_is_stored_published_and_published_after(con: duckdb.DuckDBPyConnection) -> None:
    published = []
    for name, query, freq in (("of_counted", COUNTED, ", freq := 'n'"), ("of_records", RECORDS, "")):
        rows(con, f"FROM sdc_publication('{name}', $${query}$$)")
        published.append(rows(con, f"SELECT * EXCLUDE (name) FROM sdc_publish('{name}', max_count := 2{freq})"))
        published.append(rows(con, f"FROM sdc_audit('{name}')"))
        published.append(rows(con, f"SELECT * EXCLUDE (level) FROM sdc.{name}_cells ORDER BY ALL"))
        later = query.replace("CUBE (r, s)", "GROUPING SETS ((r, s), (r))")
        published.append(rows(con, f"FROM sdc_suppress($${later}$$, after := '{name}', max_count := 1{freq})"))
    assert published[:4] == published[4:]


def test_groups_without_a_number_have_nobody(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("UPDATE counted SET n = NULL WHERE n = 7")
    found = rows(
        con, f"SELECT n, status FROM sdc_primary($${COUNTED}$$, max_count := 2, freq := 'n') WHERE r = 'c' AND s = 'm'"
    )
    assert found == [(0, "open")]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (f"sdc_suppress($${COUNTED}$$, max_count := 2)", "as in a table that was counted before, add sum(n) AS n and say freq := 'n'"),
        (f"sdc_publish('x', $${COUNTED}$$, max_count := 2)", "say freq := 'n'"),
        (f"sdc_check_table($${COUNTED}$$)", "say freq := 'n'"),
        (f"sdc_round_table($${COUNTED}$$)", "say freq := 'n'"),
        (f"sdc_suppress($${COUNTED}$$, max_count := 2, freq := 'm')", "unknown measure 'm'"),
        (f"sdc_suppress($${COUNTED.replace('sum(n)', 'sum(n / 2)')}$$, max_count := 2, freq := 'n')", "counts records with whole numbers"),
        (f"sdc_primary($${COUNTED.replace('sum(n)', 'sum(-n)')}$$, max_count := 2, freq := 'n')", "a number of records is negative"),
    ],
)  # fmt: skip
def test_what_counts_no_records(con: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error) as caught:
        con.execute(f"FROM {call}").fetchall()
    assert message in str(caught.value)
