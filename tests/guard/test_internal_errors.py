"""Internal errors of DuckDB, which end a database for everybody who asks it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NoReturn

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Refused
from sdcduck.guard.passes.reading import read
from sdcduck.guard.running import watched


class Ended:
    """A connection to a database that has ended: no statement that ends one on purpose is known."""

    def execute(self, *_: object) -> NoReturn:
        raise duckdb.FatalException("FATAL Error: database has been invalidated because of a previous fatal error")


def test_whoever_asks_an_ended_database_is_told_so() -> None:
    with pytest.raises(Refused, match=r"SDC090.*has ended this database"):
        read(Ended(), "SELECT 1")  # type: ignore[arg-type]
    with pytest.raises(Refused, match=r"SDC090.*has ended this database"):
        watched(duckdb.connect(), Ended().execute, None)


WRONG = ["common_subplan"]
"""What changes answers of the DuckDB that runs."""
if duckdb.__version__.startswith("2.0."):
    WRONG += ["distinct_aggregate_rewrite", "statistics_propagation"]


def test_what_ended_databases_is_switched_off(tmp_path: Path) -> None:
    """Two tables of several distinct counts, joined on the text that they are grouped by and on more, ended DuckDB 2.0.0
    for one file of TPC-DS in 5 of 5 runs, and in none of 60 without this optimizer."""
    path = tmp_path / "people.duckdb"
    with contextlib.closing(sdcduck.connect(path)) as con:
        con.execute("CREATE TABLE people AS SELECT i AS person_id, 'r' || i % 3 AS region FROM range(30) r(i)")
        con.execute(
            "FROM sdc_protect('people', unit := 'person_id', dimensions := ['region'], method := 'threshold', min_units := 3)"
        )
    with contextlib.closing(sdcduck.open_guard(path)) as guard:
        off = guard._con.execute("SELECT current_setting('disabled_optimizers')").fetchall()
        assert sorted(off[0][0].split(",")) == WRONG


def test_what_changes_answers_is_switched_off_over_a_connection() -> None:
    """What somebody else has switched off stays off; where nothing can be switched off, no guard is opened."""
    for locked in (False, True):
        with contextlib.closing(sdcduck.connect()) as con:
            _people_and_visits(con)
            con.execute("SET disabled_optimizers = 'join_order'")
            if locked:
                con.execute("SET lock_configuration = true")
                with pytest.raises(
                    sdcduck.SDCError, match=r"SET disabled_optimizers = 'join_order,[a-z_,]*common_subplan' before lock"
                ):
                    sdcduck.open_guard(con)
                continue
            for _ in range(2):
                sdcduck.open_guard(con)
                off = con.execute("SELECT current_setting('disabled_optimizers')").fetchall()[0][0].split(",")
                assert sorted(off) == sorted([*WRONG, "join_order"])
            con.execute("SET lock_configuration = true")
            sdcduck.open_guard(con)


def test_a_join_that_a_query_has_twice_loses_no_rows() -> None:
    """DuckDB 2.0.1 works it out once, and finds 1731 of 2065 rows then (`common_subplan`)."""
    joined = "FROM drugs b LEFT JOIN drugs a ON b.patient = a.patient AND b.stay = a.stay AND b.day > 2"
    with contextlib.closing(sdcduck.connect()) as con:
        con.execute(
            "CREATE TABLE drugs AS SELECT i % 400 AS stay, i % 400 * 7 % 90 AS patient, i % 9 AS day FROM range(1000) t(i)"
        )
        con.execute(
            "FROM sdc_protect('drugs', unit := 'patient', dimensions := ['stay', 'day'], method := 'threshold', min_units := 1)"
        )
        guard = sdcduck.open_guard(con)
        [both] = guard.sql(f"SELECT count(b.day) AS n, avg(a.day) AS m {joined}").to_pylist()
        [(n,)] = con.execute(f"SELECT count(*) {joined}").fetchall()
        [(m,)] = con.execute(f"SELECT avg(a.day) {joined}").fetchall()
        assert both == {"n": n, "m": pytest.approx(m)} == {"n": 2065, "m": pytest.approx(4.342, abs=1e-3)}


def test_a_column_of_a_join_that_a_query_has_twice_is_no_other_one() -> None:
    """DuckDB 1.5.6 works the join out once, and the sum of ``b.w`` stands for that of ``a.m`` then (`common_subplan`)."""
    joined = "FROM a LEFT JOIN b ON a.id = b.id AND b.y < a.x WHERE b.y IS NULL OR b.y > 2"
    with contextlib.closing(sdcduck.connect()) as con:
        con.execute("CREATE TABLE a AS SELECT i AS id, i % 7 AS x, i % 90 AS m FROM range(600) t(i)")
        con.execute("CREATE TABLE b AS SELECT i * 3 % 1000 AS id, i % 5 AS y, i % 50 AS w FROM range(500) t(i)")
        for table, dimension, measure in [("a", "x", "m"), ("b", "y", "w")]:
            con.execute(
                f"FROM sdc_protect('{table}', unit := 'id', dimensions := ['{dimension}'], measures := ['{measure}'], "
                "method := 'threshold', min_units := 1, population := 'persons')"
            )
        query = f"SELECT 1 AS k, sum(b.w) AS v {joined} UNION ALL SELECT 2, sum(a.m) {joined} ORDER BY k"
        rows = [(row["k"], int(row["v"])) for row in sdcduck.open_guard(con).sql(query).to_pylist()]
        assert rows == [(1, 1376), (2, 19445)]


@pytest.mark.parametrize("over", ["a file", "a connection"])
def test_that_nobody_is_beyond_a_border_is_no_error_and_no_other_number(tmp_path: Path, over: str) -> None:
    """DuckDB 2.0.1 takes a sum beside nobody to be 0: it failed exactly where the largest number of days was less."""
    path = tmp_path / "people.duckdb"
    asked = "SELECT region, sum(income) AS s FROM people p LEFT JOIN visits v ON v.id = p.id AND v.days > {} GROUP BY region {}"
    with contextlib.closing(sdcduck.connect(path)) as con:
        _people_and_visits(con)
        if over == "a file":
            con.close()
        with contextlib.closing(sdcduck.open_guard(con if over == "a connection" else path)) as guard:
            for behind in ("ORDER BY region", "HAVING sum(income) > 300 ORDER BY region"):
                found = [guard.sql(asked.format(days, behind)).to_pylist() for days in (5, 6, 77)]
                assert len(found[0]) == 3
                assert [row["s"] for row in found[1]] == [row["s"] for row in found[2]] == [1225] * 3
                assert [row["region"] for row in found[0]] == ["r0", "r1", "r2"]


def _people_and_visits(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE people AS SELECT i AS id, 'r' || i % 3 AS region, i % 50 AS income FROM range(150) r(i)")
    con.execute("CREATE TABLE visits AS SELECT i % 100 AS id, i % 7 AS days FROM range(300) r(i)")
    for table, columns in {"people": "['region'], measures := ['income']", "visits": "['days']"}.items():
        con.execute(
            f"FROM sdc_protect('{table}', unit := 'id', dimensions := {columns}, population := 'persons', "
            "method := 'threshold', min_units := 1)"
        ).fetchall()
