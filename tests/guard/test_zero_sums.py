"""sum(CASE WHEN c THEN x ELSE 0 END) where nobody meets c: 0 where it can only mean nobody published, else NULL."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from visits_database import answer, answer_of_duckdb

import sdcduck
from sdcduck.guard import Guard

CELL_KEY = "method := 'cell_key'"
THRESHOLD = "method := 'threshold'"


def made(rules: str) -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(secret="the secret of the tests")
    # Of the 60 towns, those from t40 on have no woman, and those from t20 on a single one.
    con.execute("""
        CREATE TABLE people AS SELECT i AS id, 't' || lpad((i % 60)::VARCHAR, 2, '0') AS town,
            CASE WHEN i % 60 < 20 AND i % 7 < 3 OR i % 60 BETWEEN 20 AND 39 AND i < 60 THEN 'f' ELSE 'm' END AS sex,
            18 + i * 31 % 60 AS age, CASE WHEN i % 60 <> 59 THEN 1000 + i * 7919 % 4000 END AS income
            FROM range(900) t(i);
        CREATE TABLE visits AS SELECT id, town, sex, income AS cost FROM people, range(1 + id % 3)""")
    for table, measure in (("people", "income"), ("visits", "cost")):
        dimensions = "['town', 'sex', 'age']" if table == "people" else "['town', 'sex']"
        con.execute(f"FROM sdc_add_record_key('{table}', unit := 'id')").fetchall()
        con.execute(
            f"FROM sdc_protect('{table}', unit := 'id', dimensions := {dimensions}, measures := ['{measure}'], {rules})"
        ).fetchall()
    return con


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with made(CELL_KEY) as connection:
        yield connection


@pytest.fixture(scope="module")
def guarded(con: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(con)


FORMS = [
    "sum(CASE WHEN sex = 'f' THEN {0} ELSE 0 END)",
    "sum(CASE WHEN sex = 'f' THEN 2 * {0} ELSE 0 END)",
    "sum(CASE WHEN sex <> 'f' THEN 0 ELSE {0} END)",
    "sum(CASE WHEN sex = 'f' THEN coalesce({0}, 0) ELSE 0 END)",
    "sum(CASE WHEN sex = 'f' THEN {0} ELSE 0 END) FILTER (WHERE town > 't1')",
]


@pytest.mark.parametrize("table", ["people", "visits"])
@pytest.mark.parametrize("form", FORMS)
def test_nobody_adds_up_to_0_as_in_duckdb(
    guarded: Guard, con: duckdb.DuckDBPyConnection, table: str, form: str
) -> None:
    measure = {"people": "income", "visits": "cost"}[table]
    asked = f"SELECT town, {form.format(measure)} AS s FROM {table} WHERE town >= 't40' GROUP BY town"
    wanted = answer_of_duckdb(con, asked)
    assert {number for _, number in wanted} == {"0"}
    assert answer(guarded, asked) == wanted


@pytest.mark.parametrize("form", FORMS[:4])
def test_figures_of_dimensions_too(guarded: Guard, con: duckdb.DuckDBPyConnection, form: str) -> None:
    asked = f"SELECT town, {form.format('age')} AS s FROM people WHERE town >= 't40' GROUP BY town"
    assert answer(guarded, asked) == answer_of_duckdb(con, asked) != []
    whole = f"SELECT {form.format('age')} AS s FROM people WHERE "
    assert answer(guarded, whole + "town >= 't40'") == [("0",)]
    assert answer(guarded, whole + "age > 200") == [(None,)]


@pytest.mark.parametrize("form", FORMS)
def test_of_no_rows_at_all_the_sum_is_null(guarded: Guard, form: str) -> None:
    assert answer(guarded, f"SELECT {form.format('income')} AS s FROM people WHERE age > 200") == [(None,)]


def test_missing_values_are_null_unless_they_are_filled(guarded: Guard, con: duckdb.DuckDBPyConnection) -> None:
    asked = """
        SELECT sum(income) AS a, sum(coalesce(income, 0)) AS b, avg(coalesce(income, 0)) AS c,
            sum(CASE WHEN sex = 'm' THEN income ELSE 0 END) AS d, sum(CASE WHEN sex = 'f' THEN income ELSE 0 END) AS e,
            sum(CASE WHEN sex = 'f' THEN coalesce(income, 0) END) AS f
        FROM people WHERE town = 't59'"""
    assert answer(guarded, asked) == answer_of_duckdb(con, asked) == [(None, "0", "0", None, "0", None)]


def test_one_who_is_published_as_nobody_looks_like_nobody(guarded: Guard) -> None:
    """The law: 0 comes with the published count of 0, whether somebody is there or not."""
    rows = guarded.sql(
        "SELECT town, count(*) FILTER (WHERE sex = 'f') AS n, sum(CASE WHEN sex = 'f' THEN income ELSE 0 END) AS s "
        "FROM people WHERE town >= 't20' GROUP BY town ORDER BY town"
    ).to_pylist()
    ones, nobody = rows[:20], rows[20:]
    hidden = [row for row in ones if row["n"] == 0]
    assert 0 < len(hidden) < 20
    assert {(row["n"], row["s"]) for row in [*hidden, *nobody]} == {(0, 0.0)}
    assert all(row["s"] is not None for row in rows)


@pytest.mark.parametrize("method", [CELL_KEY, THRESHOLD])
def test_nobody_and_few_are_both_null_where_few_are_hidden(method: str) -> None:
    with made(f"{method}, min_units := 3") as con:
        for table, measure in (("people", "income"), ("visits", "cost")):
            rows = answer(
                sdcduck.open_guard(con),
                f"SELECT town, sum(CASE WHEN sex = 'f' THEN {measure} ELSE 0 END) AS s, "
                f"avg(coalesce({measure}, 0)) AS a FROM {table} WHERE town >= 't20' GROUP BY town",
            )
            if method == THRESHOLD:
                assert {s for _, s, _ in rows} == {None}
            else:
                few = [s for town, s, _ in rows if str(town) < "t40"]
                assert {s for town, s, _ in rows if str(town) >= "t40"} == {None}
                assert None in few
                assert "0" not in few
            assert any(a is not None for _, _, a in rows)


def test_with_nothing_to_hide_it_is_what_duckdb_says() -> None:
    with made(f"{THRESHOLD}, min_units := 1") as con:
        guard = sdcduck.open_guard(con)
        for form in FORMS:
            asked = f"SELECT town, {form.format('income')} AS s FROM people GROUP BY town"
            assert answer(guard, asked) == answer_of_duckdb(con, asked)


def test_a_population_of_one_has_the_variance_0_and_a_sample_of_one_none() -> None:
    with made(f"{THRESHOLD}, min_units := 1") as con:
        for table, measure in (("people", "income"), ("visits", "cost")):
            asked = (
                f"SELECT town, sex, count({measure}) AS n, var_pop({measure}) AS v, stddev_pop({measure}) AS s, "
                f"var_samp({measure}) AS w FROM {table} GROUP BY town, sex"
            )
            rows = answer(sdcduck.open_guard(con), asked)
            assert rows == answer_of_duckdb(con, asked)
            assert {row[3:] for row in rows if row[2] == "1"} == {("0", "0", None)}


def test_under_suppression_0_is_of_groups_without_cells() -> None:
    with sdcduck.connect() as con:
        con.execute("""
            CREATE TABLE firms AS SELECT 'n' AS county, 'a' AS kind, 10 + i AS turnover FROM range(9) t(i)
            UNION ALL SELECT 's', 'a', 20 + i FROM range(9) t(i) UNION ALL SELECT 's', 'b', 30 FROM range(1)
            UNION ALL SELECT 'w', 'a', 20 + i FROM range(9) t(i) UNION ALL SELECT 'w', 'b', 30 + i FROM range(7) t(i)""")
        con.execute("ALTER TABLE firms ADD COLUMN id INTEGER")
        con.execute("UPDATE firms SET id = rowid")
        con.execute(
            "FROM sdc_publication('f', 'SELECT county, kind, count(*) AS n, sum(turnover) AS turnover FROM firms "
            "GROUP BY CUBE (county, kind)')"
        ).fetchall()
        con.execute("FROM sdc_publish('f', max_count := 2)").fetchall()
        con.execute(
            "FROM sdc_protect('firms', unit := 'id', dimensions := ['county', 'kind'], measures := ['turnover'], "
            "method := 'suppression', publication := 'f')"
        ).fetchall()
        asked = "SELECT county, sum(CASE WHEN kind = 'b' THEN turnover ELSE 0 END) AS s FROM firms GROUP BY county"
        assert answer(sdcduck.open_guard(con), asked) == [("n", "0"), ("s", None), ("w", None)]
