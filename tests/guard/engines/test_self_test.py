"""An engine that is set up to give other numbers than DuckDB is refused when a guard is opened, with what is other."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import sdcduck
from sdcduck.catalog.engine_kinds import OfDuckDB
from sdcduck.catalog.engine_self_test import _checks, check_alike
from sdcduck.catalog.engines import engine_of
from sdcduck.errors import SDCError
from sdcduck.guard import Refused

sys.path.insert(0, str(Path(__file__).parent))
from clickhouse_session import clickhouse
from postgres_server import postgres


class Other(OfDuckDB):
    """DuckDB with some of its words changed."""

    def __init__(self, said: str, heard: str) -> None:
        super().__init__(duckdb.connect())
        self._said, self._heard = said, heard

    def rows(self, sql: str) -> pa.Table:
        return super().rows(sql.replace(self._said, self._heard))


_OTHERS = {
    # Halves are rounded away from 0; casts cut off; the ends of BIGINT.
    "rounding of floating-point numbers": [
        ("< CAST(0.5", "< CAST(0.1"),
        ("THEN CAST(1 AS DOUBLE)", "THEN CAST(0 AS DOUBLE)"),
        ("FLOOR(", "TRUNC("),
    ],
    "NULL, NaN and infinity": [("ISNAN(", "ISINF("), ("IS NULL", "= 0"), ("THEN TRUE", "THEN FALSE")],
    "sums of whole numbers of 18 digits and of decimals": [
        ("AS DECIMAL(38, 0)", "AS DOUBLE"),
        ("AS DECIMAL(38, 2)", "AS DECIMAL(38, 1)"),
    ],
    "texts, which have to be told apart by their bytes": [("'A'", "'a'"), ('"g" AS "c1"', 'lower("g") AS "c1"')],
    "dates and BOOLEAN": [("'1969-12-31'", "'1970-01-01'"), ('"d" AS "c3"', '"d" + 1 AS "c3"')],
    "comparisons of numbers": [("BETWEEN -4", "BETWEEN -3"), ('"m" > 5', '"m"::DOUBLE > 1e18')],
    "names of columns": [('COUNT(DISTINCT "c1")', 'COUNT("c1") + 1'), ('MAX("c1")', 'MAX("c0")')],
    "integer division": [("% 7", "% 8"), ("FLOOR(", "CEIL(")],
}


@pytest.mark.parametrize("name", _OTHERS)
def test_what_is_other_is_named(name: str) -> None:
    assert list(_OTHERS) == list(_checks())
    for said, heard in _OTHERS[name]:
        with pytest.raises(SDCError, match="does not answer as DuckDB does") as refused:
            for _ in _asked_only(name, Other(said, heard)):
                pass
        assert name in str(refused.value), (said, heard)


def _asked_only(name: str, engine: OfDuckDB) -> list[None]:
    """All of the test, of an engine whose words are other in one part alone."""
    from sdcduck.catalog import engine_self_test as self_test

    texts = {text: part for part, text in self_test._texts("duckdb").items()}
    plain, other = duckdb.connect(), engine.rows

    def rows(sql: str) -> pa.Table:
        return other(sql) if texts[sql] == name else plain.sql(sql).to_arrow_table()

    engine.rows = rows  # type: ignore[method-assign]
    return [check_alike(engine)]


def test_engines_as_they_come() -> None:
    check_alike(engine_of(duckdb.connect()))
    check_alike(engine_of(pytest.importorskip("datafusion", reason="DataFusion is not installed").SessionContext()))


def test_clickhouse_as_it_comes() -> None:
    check_alike(engine_of(clickhouse({})))


def test_postgresql_as_it_comes() -> None:
    check_alike(engine_of(postgres().fill({})))


def test_modes_of_duckdb() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE people AS SELECT 1 AS id, 'a' AS g")
    with sdcduck.connect(records=con) as policies:
        con.execute("SET GLOBAL default_collation = 'nocase'")
        with pytest.raises(
            SDCError, match=r"duckdb does not answer as DuckDB does \(texts, which have to be told apart"
        ):
            sdcduck.open_guard(policies, records=con)
        con.execute("RESET GLOBAL default_collation")
        sdcduck.open_guard(policies, records=con).close()


def test_a_dialect_of_datafusion() -> None:
    """In MySQL's words a name in double quotes is a text."""
    datafusion = pytest.importorskip("datafusion", reason="DataFusion is not installed")
    session = datafusion.SessionContext(datafusion.SessionConfig().set("datafusion.sql_parser.dialect", "mysql"))
    with pytest.raises(SDCError, match="datafusion does not answer as DuckDB does"):
        check_alike(engine_of(session))


def test_an_engine_that_fails() -> None:
    with pytest.raises(SDCError, match="it fails") as refused:
        check_alike(Other("SELECT", "SELECT 'nobody' FROM nowhere SELECT"))
    assert "nowhere" not in str(refused.value)


def test_columns_of_duckdb_with_a_collation_are_left_out() -> None:
    """'a' and 'A' were one cell of the engine, with the text of either: WHERE region = 'a' found all of it, or nobody."""
    con = duckdb.connect()
    kinds = ["", " COLLATE NOCASE", " COLLATE NOACCENT", " COLLATE NFC", " COLLATE C"]
    con.execute(f"CREATE TABLE people (id INTEGER, {', '.join(f'c{i} VARCHAR{kind}' for i, kind in enumerate(kinds))})")
    con.execute("INSERT INTO people SELECT i, 'A', 'A', 'A', 'A', 'A' FROM range(90) r(i)")
    con.execute('CREATE VIEW seen AS SELECT id, c0 AS "1", c1 AS "a""b", c0 COLLATE NOCASE AS told FROM people')
    with sdcduck.connect(records=con, secret="the secret of these tests") as policies:
        columns = "SELECT list(column_name ORDER BY column_index) FROM duckdb_columns() WHERE table_name = ?"
        assert policies.execute(columns, ["people"]).fetchall() == [(["id", "c0", "c4"],)]
        assert policies.execute(columns, ["seen"]).fetchall() == [(["id", "1"],)]
        policies.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        policies.execute("FROM sdc_protect('people', unit := 'id', dimensions := ['c0'])").fetchall()
        con.execute("ALTER TABLE people ALTER c0 TYPE VARCHAR COLLATE NOCASE")
        guard = sdcduck.open_guard(policies, records=con)
        with pytest.raises(Refused, match="SDC06"):
            guard.sql("SELECT c0, count(*) AS n FROM people GROUP BY c0")
        guard.close()
