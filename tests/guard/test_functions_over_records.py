"""Functions of single records that are allowed: as group keys and in conditions they are what DuckDB has."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from visits_database import answer, answer_of_duckdb

import sdcduck
from sdcduck.guard import Guard, Refused


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            "CREATE TABLE hits AS SELECT i AS id, ['', 'news of sport', 'Étude', NULL][1 + i % 4] AS title, "
            "i % 9 - 2 AS level, (i % 5) / 2.0::DOUBLE AS share, i * 7 % 100 AS ms FROM range(1200) t(i)"
        )
        con.execute("FROM sdc_add_record_key('hits', unit := 'id')").fetchall()
        con.execute(
            "FROM sdc_protect('hits', unit := 'id', dimensions := ['title', 'level', 'share'], measures := ['ms'], "
            "method := 'threshold', min_units := 1)"
        ).fetchall()
        yield con


@pytest.fixture(scope="module")
def guard(con: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(con)


@pytest.mark.parametrize(
    "expression",
    [
        "position('sport' IN title)", "strpos(title, 'o')", "instr(title, 'news')", "ascii(title)", "unicode(title)",
        "sqrt(abs(level))", "cbrt(level)", "pow(level, 2)", "level ** 2", "level ^ 3", "exp(level)", "ln(level)", "log(level)",
        "log10(share)", "log2(share)", "floor(log2(greatest(level, 1)))", "sin(share)", "atan2(share, level)",
        "degrees(share)", "level & 1", "level | 4", "xor(level, 1)", "level << 2", "level >> 1", "~level",
        "bit_count(level)", "isnan(share)", "isinf(1 / share)", "isfinite(share)", "even(share)",
    ],
)  # fmt: skip
def test_as_group_and_as_condition(con: duckdb.DuckDBPyConnection, guard: Guard, expression: str) -> None:
    """Where DuckDB has no value but an error, it is NULL."""
    for query in (
        "SELECT {} AS x, count(*) AS n, sum(ms) AS ms FROM hits GROUP BY x",
        "SELECT level, count(*) AS n FROM hits WHERE {} > 0 GROUP BY level",
    ):
        asked, caught = query.format(expression), query.format(f"try({expression})")
        assert answer(guard, asked) == answer_of_duckdb(con, caught)


def test_what_could_take_long_is_refused(guard: Guard) -> None:
    for expression in (
        "translate(title, 'a', 'b')",
        "md5(title)",
        "format('{}', title)",
        "hash(title)",
        "levenshtein(title, 'x')",
    ):
        with pytest.raises(Refused, match="SDC010"):
            guard.sql(f"SELECT {expression} AS x, count(*) FROM hits GROUP BY x")
