"""Suppression of records on another engine: what is published is what it would be with the records here, to the bit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import sdcduck
from sdcduck.catalog.engines import engine_of
from sdcduck.udfs import engine_cells

sys.path.insert(0, str(Path(__file__).parent))
from every_engine import ENGINES, in_duckdb

_SECRET = "the secret of the records of firms"
_FIRMS = """SELECT i::INTEGER AS id, ['n', 's', 'e', NULL][1 + i % 4] AS region, (i % 9)::INTEGER AS size, (i % 90)::INTEGER AS age,
    'firm ' || (i * i % 160) AS firm, (i % 37)::INTEGER AS branch, sqrt(i) AS income,
    CASE WHEN i % 11 > 0 THEN ((i * 7919 % 100000 - 500) / 100)::DECIMAL(12, 2) END AS turnover, (i * i % 50)::INTEGER AS staff
    FROM range(400) r(i)"""
_ZONES = "CREATE TABLE zones AS SELECT * FROM (VALUES ('n', 'north'), ('s', 'south')) z(region, zone)"
_SETS = "GROUP BY GROUPING SETS ((region, size), (region), (size), ())"
_OF = f"""SELECT region, size, count(*) AS n, sum(turnover) AS turnover, sum(staff) FILTER (age > 20) AS staff,
    count(income) AS filled FROM firms WHERE age < 80 {_SETS}"""
_COUNTS = f"SELECT region, size, count(*) AS n FROM firms {_SETS}"


@pytest.fixture(scope="module")
def alone() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret=_SECRET) as con:
        con.execute(f"CREATE TABLE firms AS {_FIRMS}")
        con.execute(_ZONES)
        yield con


def _there(alone: duckdb.DuckDBPyConnection, engine: str) -> duckdb.DuckDBPyConnection:
    records = ENGINES[engine]({"firms": alone.sql("FROM firms").to_arrow_table()})
    con = sdcduck.connect(secret=_SECRET, records=records)
    con.execute(_ZONES)
    return con


def _same(one: duckdb.DuckDBPyConnection, other: duckdb.DuckDBPyConnection, statement: str) -> int:
    here, there = one.sql(statement).to_arrow_table(), other.sql(statement).to_arrow_table()
    assert here.equals(there), statement
    return here.num_rows


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_every_engine(alone: duckdb.DuckDBPyConnection, engine: str) -> None:
    with _there(alone, engine) as con:
        for statement in (
            f"FROM sdc_suppress($${_OF}$$, max_count := 9)",
            f"FROM sdc_primary($${_OF}$$, max_count := 3, dominance := [(1, 80), (2, 90)], min_contributors := 3, value := 'turnover')",
            f"FROM sdc_primary($${_OF}$$, p_percent := 10, min_contributors := 4, value := 'turnover', contributor := 'firm', "
            "not_counted := ['firm 4'])",
        ):
            assert _same(alone, con, statement) == 50


@pytest.mark.parametrize(
    "statement",
    [
        f"FROM sdc_suppress($${_OF}$$, p_percent := 10, value := 'turnover', contributor := 'firm')",
        f"FROM sdc_primary($${_OF}$$, pq := (10, 50), min_contributors := 5, value := 'staff', contributor := 'branch', "
        "not_counted := ['3', 'none'])",
        f"FROM sdc_suppress($${_COUNTS}$$, max_count := 3, contributor := 'id')",
        f"FROM sdc_audit($${_OF}$$, p_percent := 10, value := 'staff', contributor := 'branch', insider := true)",
        "FROM sdc_suppress($$SELECT zone, age // 10 AS decade, count(*) AS n FROM firms JOIN zones USING (region) "
        "GROUP BY CUBE (zone, age // 10)$$, max_count := 12)",
        "FROM sdc_suppress($$SELECT count(*) AS n, sum(turnover) AS t FROM firms GROUP BY ()$$, max_count := 3)",
        "FROM sdc_suppress($$SELECT region, count(*) AS n FROM firms WHERE age > 900 GROUP BY region$$, max_count := 3)",
        f"FROM sdc_round_table($${_OF}$$, base := 5, seed := 1)",
        f"FROM sdc_suppress($${_COUNTS}$$, k_disclosure := 1)",
    ],
)
def test_functions(alone: duckdb.DuckDBPyConnection, statement: str) -> None:
    with _there(alone, "duckdb") as con:
        _same(alone, con, statement)


def test_what_is_published_needs_the_engine_no_more(tmp_path: Path) -> None:
    with duckdb.connect() as con:
        records = in_duckdb({"firms": con.sql(_FIRMS).to_arrow_table()})
    with sdcduck.connect(secret=_SECRET) as here:
        here.execute(f"CREATE TABLE firms AS {_FIRMS}")
        with sdcduck.connect(tmp_path / "policies.duckdb", secret=_SECRET, records=records) as there:
            for statement in (
                f"FROM sdc_publication('firms_by_size', $${_COUNTS}$$)",
                "FROM sdc_publish('firms_by_size', max_count := 11)",
                "FROM sdc_suppress('firms_by_size')",
                "FROM sdc_audit('firms_by_size')",
                "FROM sdc_suppress($$SELECT region, size, age % 3 AS third, count(*) AS n FROM firms "
                "GROUP BY GROUPING SETS ((region, size, age % 3), (region), ())$$, max_count := 2, after := 'firms_by_size')",
                "FROM sdc_percent_table('firms_by_size', columns := ['region'])",
                "SELECT * EXCLUDE stencil FROM sdc.firms_by_size_stencil ORDER BY ALL",
            ):
                _same(here, there, statement)
            for con, name in ((here, "here"), (there, "there")):
                con.execute(f"FROM sdc_write_table('firms_by_size', '{tmp_path / name}.csv')").fetchall()
            assert (tmp_path / "there.csv").read_text() == (tmp_path / "here.csv").read_text()
            records.execute("UPDATE firms SET size = 0 WHERE id = 7")
            with pytest.raises(duckdb.Error, match="changed since it was published"):
                there.execute("FROM sdc_suppress('firms_by_size')")
        open_ = (
            "SELECT size, sdc_open_count(n, stencil) AS n FROM sdc.firms_by_size_stencil GROUP BY size ORDER BY size"
        )
        with duckdb.connect(
            str(tmp_path / "policies.duckdb")
        ) as plain:  # stencils are drawn: what is shown is the same
            assert plain.sql(open_).fetchall() == here.sql(open_).fetchall()
        with (
            sdcduck.connect(tmp_path / "policies.duckdb", secret=_SECRET) as without,
            pytest.raises(duckdb.Error, match="another engine"),
        ):
            without.execute("FROM sdc_suppress('firms_by_size')")


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("FROM sdc_suppress($$SELECT size, count(*) AS n, sum(income) AS y FROM firms GROUP BY size$$, max_count := 1)", "DOUBLE"),
        ("FROM sdc_suppress($$SELECT size, count(*) AS n, sum(staff * 2) AS y FROM firms GROUP BY size$$, max_count := 1)", "as they are"),
        ("FROM sdc_suppress($$SELECT size, sum(staff) AS y, count(*) AS n FROM firms WHERE staff > 3 GROUP BY size$$, max_count := 1)", "no condition"),
        ("FROM sdc_suppress($$SELECT income, count(*) AS n FROM firms GROUP BY income$$, max_count := 1)", "DOUBLE"),
        ("FROM sdc_suppress($$SELECT size, count(*) AS n FROM (FROM firms) GROUP BY size$$, max_count := 1)", "FROM begins with"),
        ("FROM sdc_suppress($$SELECT size, count(*) AS n FROM small GROUP BY size$$, max_count := 1)", "FROM begins with"),
        ("FROM sdc_suppress($$SELECT size, count(*) AS n FROM firms WHERE id IN (SELECT id FROM small) GROUP BY size$$, max_count := 1)", "no subquery"),
        ("FROM sdc_suppress($$SELECT f.size, count(*) AS n FROM firms f JOIN firms g USING (id) GROUP BY f.size$$, max_count := 1)", "named once"),
        ("FROM sdc_suppress($$SELECT z.zone, count(*) AS n FROM zones z JOIN firms USING (region) GROUP BY zone$$, max_count := 1)", "FROM begins with"),
        (f"FROM sdc_primary($${_OF}$$, p_percent := 10, contributor := 'id % 7')", "names a column"),
        (f"FROM sdc_primary($${_OF}$$, p_percent := 10, weight := '2')", "without 'weight'"),
        (f"FROM sdc_primary($${_OF}$$, min_contributors := 3, contributor := 'firm', not_counted := ['it''s'])", "without quotes"),
        (f"FROM sdc_primary($${_OF}$$, p_percent := 10, contributor := 'region')", "NULL"),
        (f"FROM sdc_check_table($${_OF}$$)", "one by one"),
        ("FROM sdc_protect('firms', unit := 'id', dimensions := ['size'], method := 'suppression', publication := 'p')", "sdc_open_count"),
    ],
)  # fmt: skip
def test_what_is_refused(alone: duckdb.DuckDBPyConnection, statement: str, says: str) -> None:
    with _there(alone, "duckdb") as con:
        con.execute("CREATE VIEW small AS FROM firms WHERE size < 3")
        with pytest.raises(duckdb.Error, match=says):
            con.sql(statement).fetchall()


def test_an_engine_that_fails_says_nothing_of_its_data(alone: duckdb.DuckDBPyConnection) -> None:
    records = in_duckdb({"firms": alone.sql("FROM firms").to_arrow_table()})
    with sdcduck.connect(secret=_SECRET, records=records) as con:
        records.execute("DROP TABLE firms")
        records.execute("CREATE VIEW firms AS SELECT 'Miller' AS firm, error('Miller')::INTEGER AS size")
        with pytest.raises(duckdb.Error, match="refused, or is not there") as failed:
            con.execute("FROM sdc_suppress($$SELECT size, count(*) AS n FROM firms GROUP BY size$$, max_count := 1)")
        assert "Miller" not in str(failed.value)


def test_an_engine_in_another_mode_is_not_asked(
    alone: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = in_duckdb({"firms": alone.sql("FROM firms").to_arrow_table()})
    with sdcduck.connect(secret=_SECRET, records=records) as con:
        monkeypatch.setattr("sdcduck.catalog.engine_self_test._bits", lambda value, kind: object())
        with pytest.raises(duckdb.Error, match="does not answer as DuckDB does"):
            con.execute(f"FROM sdc_suppress($${_COUNTS}$$, max_count := 1)")


def test_rows_are_kept_once(alone: duckdb.DuckDBPyConnection) -> None:
    """A statement may be bound several times, and asks each time."""
    engine = engine_of(in_duckdb({"firms": alone.sql("FROM firms").to_arrow_table()}))
    with sdcduck.connect(secret=_SECRET, records=engine) as con:
        for _ in range(2):
            con.sql(f"FROM sdc_suppress($${_COUNTS}$$, max_count := 1)").fetchall()
        assert len(engine_cells._OF_ENGINES[engine]) == 1


def test_rows_that_nobody_asks_for_are_let_go(
    alone: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_cells, "_MOST_ROWS", 60)
    monkeypatch.setattr(engine_cells, "_LAST", 2)
    records = in_duckdb({"firms": alone.sql("FROM firms").to_arrow_table()})
    engine, names = engine_of(records), set[str]()
    with sdcduck.connect(secret=_SECRET, records=engine) as con:
        con.execute(f"PREPARE asked AS FROM sdc_suppress($${_COUNTS}$$, max_count := 1)")
        for number in range(5):
            records.execute(f"UPDATE firms SET size = {number} WHERE id = 7")
            found = con.sql(f"FROM sdc_suppress($${_COUNTS}$$, max_count := 1)").fetchall()
            names |= set(engine_cells._OF_ENGINES[engine])
        left = set(engine_cells._OF_ENGINES[engine])
        assert len(names) == 6
        assert len(left) == 2
        for name in names:
            if name in left:
                con.execute(f"FROM {name}").fetchall()
            else:
                with pytest.raises(duckdb.Error, match="does not exist"):
                    con.execute(f"FROM {name}")
        assert con.execute("EXECUTE asked").fetchall() == found
