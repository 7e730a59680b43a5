"""Records that UNION repeats: numbers of several copies would tell what noise and rounding leave out of one."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import cache
from statistics import correlation

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused

_MADE = """
    CREATE TABLE people AS SELECT i AS id, ['n', 's', 'e'][1 + i % 3] AS region, 20 + i * 7 % 60 AS age,
        (100 + i * 11 % 900)::BIGINT AS income FROM range(200) t(i);
    CREATE TABLE visits AS SELECT i * i * 7 % 190 AS id, i * 37 % 100 AS day FROM range(500) t(i);
    CREATE TABLE homes AS SELECT id, region FROM people;
"""
NOISE = ("method := 'cell_key'", "method := 'cell_key', min_units := 3", "method := 'rounding', base := 5")
EXACT = "method := 'threshold', min_units := 3"


def made(method: str) -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect(secret="the secret of the tests")
    con.execute(_MADE)
    for table, columns in (
        ("people", "dimensions := ['region', 'age'], measures := ['income']"),
        ("visits", "dimensions := ['day']"),
        ("homes", "dimensions := ['region']"),
    ):
        con.execute(f"FROM sdc_add_record_key('{table}', unit := 'id')").fetchall()
        con.execute(
            f"FROM sdc_protect('{table}', unit := 'id', {columns}, population := 'persons', {method})"
        ).fetchall()
    return con


@pytest.fixture(scope="module", params=NOISE)
def guard(request: pytest.FixtureRequest) -> Iterator[Guard]:
    with made(request.param) as con:
        yield sdcduck.open_guard(con)


def copies(number: int, query: str) -> str:
    return " UNION ALL ".join([query] * number)


REPEATED = [
    # 5 n is a multiple of the base, and says n
    f"SELECT count(*) AS n FROM ({copies(5, 'SELECT id FROM people WHERE age = 27')})",
    f"SELECT count(*) AS n FROM ({copies(2, 'SELECT id FROM people WHERE age < 40')})",
    "SELECT count(*) AS n FROM (SELECT id, 1 AS k FROM people UNION SELECT id, 2 FROM people)",
    "SELECT count(*) AS n FROM (SELECT region FROM people WHERE age < 40 UNION ALL SELECT region FROM people WHERE age < 50)",
    # Other digits of one sum
    f"SELECT sum(income) / 3 AS n FROM ({copies(3, 'SELECT id, income FROM people WHERE age = 27')})",
    # Behind other queries
    "WITH a AS (SELECT id, region FROM people), b AS (FROM a) SELECT count(*) AS n FROM (FROM a UNION ALL FROM b)",
    "SELECT count(*) AS n FROM (SELECT id FROM (SELECT id, count(*) AS k FROM people GROUP BY id) UNION ALL SELECT id FROM people)",
    "SELECT count(*) AS n FROM (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY id ORDER BY age) AS r FROM people) UNION ALL SELECT id FROM people)",
    "SELECT count(*) AS n FROM (SELECT id FROM (SELECT id FROM people UNION SELECT id FROM visits) UNION ALL SELECT id FROM people)",
    "SELECT count(*) AS n FROM (SELECT id FROM (SELECT id FROM people EXCEPT SELECT id FROM visits) UNION ALL SELECT id FROM people)",
    "SELECT count(*) AS n FROM (SELECT v.id FROM visits v JOIN people p USING (id) UNION ALL SELECT id FROM people)",
    "SELECT count(*) AS n FROM people p JOIN (SELECT id FROM homes UNION ALL SELECT id FROM homes) h USING (id)",
    "SELECT k, count(*) AS n FROM (SELECT id, count(*) AS k FROM (SELECT id FROM homes UNION ALL SELECT id FROM homes) GROUP BY id) GROUP BY k",
]  # fmt: skip


@pytest.mark.parametrize("query", REPEATED)
def test_no_record_is_there_twice(guard: Guard, query: str) -> None:
    with pytest.raises(Refused) as refused:
        guard.sql(query)
    assert refused.value.code in ("SDC043", "SDC052")  # a sum under rounding


@cache
def _exact() -> tuple[duckdb.DuckDBPyConnection, Guard]:
    con = made(EXACT)
    return con, sdcduck.open_guard(con)


@pytest.mark.parametrize("query", REPEATED)
def test_where_numbers_are_exact_records_may_be_repeated(query: str) -> None:
    con, exact = _exact()
    true = con.cursor().execute(query).fetchall()
    assert [tuple(row.values()) for row in exact.sql(query).to_pylist()] == true


def test_rows_of_other_tables_are_not_rounded_with_those_of_one() -> None:
    """Of two tables with a row for each unit each number of units is half a number of rows."""
    query = "SELECT count(*) AS n FROM (SELECT id FROM people UNION ALL SELECT id FROM homes)"
    with made(NOISE[-1]) as con, pytest.raises(Refused, match="SDC043"):
        sdcduck.open_guard(con).sql(query)
    with made(NOISE[0]) as con:
        assert abs(sdcduck.open_guard(con).sql(query).to_pylist()[0]["n"] - 400) < 20


@pytest.mark.parametrize("other", ["people WHERE age > 60", "visits WHERE day < 30"])
def test_units_that_are_only_looked_for_may_be_repeated(guard: Guard, other: str) -> None:
    query = (
        "SELECT region, count(*) AS n FROM people WHERE id {} (SELECT id FROM people WHERE age < 30 {} SELECT id FROM {}) "
        "GROUP BY region ORDER BY region"
    )
    for asked in ("IN", "NOT IN"):
        repeated, once = (guard.sql(query.format(asked, kind, other)).to_pylist() for kind in ("UNION ALL", "UNION"))
        assert repeated == once
        assert len(once) == 3


ONCE = [
    "SELECT a.id, a.region, a.income FROM people a JOIN people b ON a.id = b.id",
    "SELECT b.id, b.region, b.income FROM people a JOIN people b ON a.id = b.id JOIN people c ON c.id = b.id",
    "SELECT a.id, a.region, a.income FROM people a LEFT JOIN (FROM people WHERE age < 40) b ON a.id = b.id",
    "SELECT p.id, p.region, income FROM people p JOIN homes h ON p.id = h.id",
    "SELECT id, region, income FROM people WHERE id IN (SELECT id FROM people WHERE age < 40 UNION ALL SELECT id FROM people WHERE age >= 40)",
    "SELECT id, region, income FROM people p WHERE EXISTS (FROM people q WHERE q.id = p.id)",
    "SELECT id, region, income FROM people SEMI JOIN people q USING (id)",
    "SELECT id, region, income FROM people WHERE age < 40 OR age >= 40",
    "SELECT id, region, sum(income) AS income FROM people GROUP BY ALL",
    "SELECT p.id, p.region, sum(income) AS income FROM people p JOIN homes h ON p.id = h.id GROUP BY ALL",
    "SELECT DISTINCT ON (id) id, region, income FROM people",
    "SELECT a.id, a.region, a.income FROM people a FULL JOIN people b ON a.id = b.id",
    "SELECT id, region, income FROM people QUALIFY row_number() OVER (PARTITION BY id ORDER BY age) = 1",
    "SELECT id, region, value AS income FROM (UNPIVOT (SELECT id, region, income FROM people) ON income INTO NAME w VALUE value)",
]  # fmt: skip


def test_the_same_records_have_one_noise_however_they_are_put_together(guard: Guard) -> None:
    """Copies, halves, joins of a table with itself and parts of it: the same set, and so the same numbers."""
    rounds = "SDC052" in str(guard.explain("SELECT sum(income) FROM people").notes)
    of_amounts = "" if rounds else ", sum(income) AS s, avg(income) AS a, quantile_cont(income, [0.1, 0.5]) AS q"
    asked = (
        f"SELECT region, count(*) AS n, count(DISTINCT id) AS u{of_amounts} FROM ({{}}) GROUP BY region ORDER BY region"
    )
    one = guard.sql(asked.format("SELECT id, region, income FROM people"))
    assert one.num_rows == 3
    for form in ONCE:
        assert guard.sql(asked.format(form)) == one, form


HALVES = [
    "SELECT id, region FROM people WHERE age < 40 UNION ALL SELECT id, region FROM people WHERE age >= 40",
    "SELECT id, region FROM people WHERE age < 40 UNION SELECT id, region FROM people WHERE age >= 40",
    "SELECT a.id, a.region FROM people a, people b",
    "SELECT a.id, a.region FROM people a JOIN people b ON a.region = b.region",
    "SELECT id, region FROM people, (VALUES (1), (2)) v(k)",
    "SELECT id, region FROM people, range(2) v(k)",
    "SELECT id, region, value FROM (UNPIVOT (SELECT id, region, income, income AS again FROM people) ON income, again INTO NAME w VALUE value)",
]  # fmt: skip


@pytest.mark.parametrize("form", HALVES)
def test_neither_halves_nor_products_are_put_together(guard: Guard, form: str) -> None:
    with pytest.raises(Refused) as refused:
        guard.sql(f"SELECT region, count(*) AS n FROM ({form}) GROUP BY region")
    assert refused.value.code in ("SDC033", "SDC034", "SDC035", "SDC043")


def test_tables_with_one_row_of_each_unit_are_two_draws_of_a_count_and_no_more() -> None:
    """What docs/limits.md says of them: two of them halve the variance, a third adds nothing, and sums have one noise."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            "CREATE TABLE a AS SELECT i AS id, i // 10 AS town, 100 + i * 7919 % 400 AS pay FROM range(6000) t(i)"
        )
        con.execute("FROM sdc_add_record_key('a', unit := 'id')").fetchall()
        con.execute("CREATE TABLE b AS FROM a; CREATE TABLE c AS FROM a")
        for table in "abc":
            declared = "unit := 'id', dimensions := ['town'], measures := ['pay'], population := 'persons'"
            con.execute(f"FROM sdc_protect('{table}', {declared})").fetchall()
        one = sdcduck.open_guard(con)

        def errors(tables: str, number: str) -> list[float]:
            rows = " UNION ALL ".join(f"SELECT id, town, pay FROM {table}" for table in tables)
            answer = one.sql(f"SELECT town, {number} AS n FROM ({rows}) GROUP BY town")
            true = con.execute(f"SELECT town, {number} FROM a GROUP BY town ORDER BY town").fetchall()
            told = {row["town"]: row["n"] for row in answer.to_pylist()}
            return [told[town] / len(tables) - exact for town, exact in true]

        counts = [errors(tables, "count(*)") for tables in ("a", "ab", "abc")]
        sums = [errors(tables, "sum(pay)") for tables in ("a", "ab")]
    assert abs(correlation(counts[0], counts[1])) < 0.2
    assert correlation(counts[1], counts[2]) > 0.95
    assert correlation(sums[0], sums[1]) > 0.95
    means = [statistics.fmean(both) for both in zip(*counts[:2], strict=True)]
    assert 0.6 < statistics.pstdev(means) / statistics.pstdev(counts[0]) < 0.85
