"""PIVOT without a list of values, and with ORDER BY and LIMIT behind it, as DuckDB has it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import sdcduck
from sdcduck.guard import Guard, guard
from sdcduck.guard.refusals import Refused

RECORDS = r"""
CREATE TABLE people AS SELECT i AS person_id, (i + 1) * 7368787 % 100000000 AS record_key, ['f', 'm', 'x'][1 + i % 3] AS sex,
    ['North', 'South', 'east'][1 + i // 3 % 3] AS region, 20 + i % 7 AS age, i % 4 = 0 AS ok, (i % 3)::DECIMAL(5, 2) AS d,
    DATE '2024-01-01' + (i % 900)::INTEGER AS day, 1000 + i % 977 AS income,
    ['it''s', 'a"b', ' ', 'Ünï', 'x\y', E'two\nlines', '$$', 'B', 'b', 'region', '; DROP', '--', NULL, '_x', ')'][1 + i % 15]
        AS odd
FROM range(3000) _(i);
"""
QUERIES = [
    "PIVOT people ON sex USING count(*) GROUP BY region",
    "PIVOT people ON sex USING count(*) GROUP BY region ORDER BY region DESC LIMIT 2",
    "PIVOT people ON sex IN ('m', 'f') USING count(*) GROUP BY region ORDER BY m, f, region LIMIT 1 OFFSET 1",
    "pivot_wider people on region using sum(income) group by ok order by ok",
    "WITH q AS (FROM people WHERE age < 24), r(a, b) AS (SELECT region, sex FROM q) "
    "PIVOT r ON b USING count(*) GROUP BY a ORDER BY ALL",
    "WITH p AS (PIVOT people ON sex USING count(*) GROUP BY age) FROM p WHERE f > 10",
    "PIVOT (SELECT region, sex, sum(income) AS s FROM people GROUP BY ALL) ON sex USING sum(s) ORDER BY region",
    "PIVOT (SELECT region, sex, count(*) AS n FROM people GROUP BY ALL) ON sex, region",
    "SELECT * FROM (PIVOT people ON sex, region USING count(*) GROUP BY age) ORDER BY age LIMIT 3",
    "PIVOT people ON sex, region IN ('North') USING count(*) GROUP BY age",
    "PIVOT people ON year(day) USING count(*), sum(income) AS Money GROUP BY region",
    "PIVOT people ON year(day) IN (2025) USING count(*) GROUP BY region",
    "PIVOT people ON upper(left(sex, 1)) || '-' || region USING count(*) GROUP BY ok",
    "PIVOT people ON age USING count(*) GROUP BY region",
    "PIVOT people ON ok USING count(*) GROUP BY region",
    "PIVOT people ON d, ok USING count(*) GROUP BY region",
    "PIVOT people ON odd USING count(*) GROUP BY region",
    "PIVOT people ON odd, sex USING count(*) AS N GROUP BY region",
    "PIVOT (PIVOT people ON sex USING count(*) GROUP BY region, age) ON region USING sum(m) GROUP BY age ORDER BY age",
    "PIVOT people ON sex -- by sex\n USING count(*) -- all\n GROUP BY region -- and region\n ORDER BY region -- in order",
    "SELECT (SELECT max(f) FROM (PIVOT people ON sex USING count(*) GROUP BY region)) AS most",
    "FROM (PIVOT people ON sex USING count(*) GROUP BY region) a JOIN (PIVOT people ON ok USING count(*) GROUP BY region) b "
    "USING (region)",
    "SELECT * FROM (FROM people WHERE age < 23) PIVOT (count(*) FOR sex IN ('f', 'x') GROUP BY region) ORDER BY ALL",
]
NOT_ANSWERED = {
    "PIVOT people ON income USING count(*) GROUP BY region": "SDC041",
    "PIVOT people ON record_key USING count(*) GROUP BY region": "SDC030",
    "PIVOT people ON person_id USING count(*) GROUP BY region": "SDC040",
    "PIVOT people ON day USING count(*) GROUP BY region": "SDC002",
    "PIVOT people ON age, odd, sex USING count(*) GROUP BY region": "SDC002",
    "PIVOT nobody ON sex USING count(*)": "SDC020",
    "PIVOT people ON sex": "SDC040",  # of each unit
    "PIVOT (FROM people WHERE age > 1000) ON sex USING count(*) GROUP BY region": "SDC011",
    "PIVOT (FROM people WHERE age > ?) ON sex USING count(*) GROUP BY region": "SDC011",
    "PIVOT people ON (SELECT max(sex) FROM people) USING count(*) GROUP BY region": "SDC001",  # as DuckDB says
    "SELECT * FROM (WITH people AS (FROM people WHERE sex = 'f') PIVOT people ON sex USING count(*) GROUP BY age)": "SDC011",
    "PIVOT people ON sex USING count(*) GROUP BY region; DROP TABLE people": "SDC003",
}


def database(path: Path | None = None) -> duckdb.DuckDBPyConnection:
    con = sdcduck.connect() if path is None else sdcduck.connect(path)
    con.execute(RECORDS)
    return con


def protect(con: duckdb.DuckDBPyConnection, method: str) -> None:
    con.execute(f"""FROM sdc_protect('people', unit := 'person_id', record_key := 'record_key', measures := ['income'],
        dimensions := ['sex', 'region', 'age', 'ok', 'd', 'day', 'odd'], {method})""").fetchall()


@pytest.fixture(scope="module")
def one() -> Iterator[Guard]:
    with database() as con:
        protect(con, "method := 'threshold', min_units := 1")
        one = guard(con)
        yield one
        one.close()


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with database() as con:
        yield con


def rows(answer: pa.Table) -> list[list[str | float]]:
    """Sorted; sums are decimals for the guard and floating-point numbers for DuckDB, and nobody is NULL and 0."""
    values = [column.to_pylist() for column in answer.columns]
    shown = [
        [
            float(value or 0) if value is None or isinstance(value, (int, float, Decimal)) else str(value)
            for value in row
        ]
        for row in zip(*values, strict=True)
    ]
    return sorted(shown, key=str)


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_duckdb(one: Guard, plain: duckdb.DuckDBPyConnection, query: str) -> None:
    wanted = plain.sql(query).to_arrow_table()
    answer = one.sql(query)
    assert answer.column_names == wanted.column_names
    assert rows(answer) == rows(wanted)
    assert [name for name, _ in one.columns(query)] == wanted.column_names
    if "ORDER" in query:  # by something that differs in each row: what ties is in any order
        assert one.stream(query).read_all().equals(answer)


@pytest.mark.skipif(duckdb.__version__.startswith("1."), reason="DuckDB 1 has another name for several empty texts")
def test_empty_texts_are_called_as_duckdb_calls_them(one: Guard, plain: duckdb.DuckDBPyConnection) -> None:
    query = """PIVOT (SELECT replace(region, 'east', '') AS region, replace(sex, 'x', '') AS sex, age FROM people)
        ON region, sex USING count(*) GROUP BY age"""
    assert one.sql(query).column_names == plain.sql(query).columns


@pytest.mark.parametrize("query", NOT_ANSWERED)
def test_what_could_not_be_asked_is_refused(one: Guard, query: str) -> None:
    for ask in (one.sql, one.columns, one.rewrite):
        with pytest.raises(Refused) as caught:
            ask(query)
        assert caught.value.code == NOT_ANSWERED[query]


def test_values_are_those_that_the_guard_tells() -> None:
    """A value of two persons is no group under a threshold of three, and so no column."""
    with database() as con:
        con.execute("UPDATE people SET sex = 'rare' WHERE person_id < 2")
        protect(con, "method := 'threshold', min_units := 3")
        one = guard(con)
        assert one.sql("PIVOT people ON sex USING count(*) GROUP BY region").column_names == ["region", "f", "m", "x"]
        con.execute("UPDATE people SET sex = 'rare' WHERE person_id < 3")  # seen with the next question
        query = "PIVOT people ON sex USING count(*) GROUP BY region ORDER BY region"
        assert one.sql(query).column_names == ["region", "f", "m", "rare", "x"]


def test_numbers_are_those_of_a_written_list() -> None:
    with database() as con:
        protect(con, "method := 'cell_key'")
        one = guard(con)
        written = (
            "SELECT * FROM (PIVOT people ON sex IN ('f', 'm', 'x') USING count(*) GROUP BY region, age) ORDER BY ALL"
        )
        query = "PIVOT people ON sex USING count(*) GROUP BY region, age ORDER BY ALL"
        assert one.sql(query).equals(one.sql(written))
        assert one.rewrite(query) == one.rewrite(written)


def test_each_list_is_asked_for_once(tmp_path: Path) -> None:
    """Of eight PIVOTs in a WITH the last one asked about those before it anew: 255 questions."""
    with database(tmp_path / "records.duckdb") as con:
        protect(con, "method := 'threshold', min_units := 1")
    one = guard(tmp_path / "records.duckdb", log=tmp_path / "log")
    pivots = [f"p{n} AS (PIVOT people ON sex USING count(*) GROUP BY age)" for n in range(8)]
    one.sql(f"WITH {', '.join(pivots)} SELECT count(*) AS n FROM people")
    assert (tmp_path / "log").read_text().count("SELECT CAST(v") == len(pivots)
    one.close()


def test_many_pivots_are_not_looked_for(one: Guard) -> None:
    with pytest.raises(Refused):
        one.sql("PIVOT " * 10_000)


def test_a_question_for_values_is_stopped_with_the_other() -> None:
    """The other one has no time limit of its own: it ran until it was through."""
    with database() as con:
        con.execute("CREATE TABLE numbers AS SELECT i AS x FROM range(30000) _(i)")
        con.execute("FROM sdc_declare_public('numbers')").fetchall()
        one = guard(con, seconds=120)
        asked = one.question(
            "PIVOT (SELECT (a.x * b.x + c.x) % 5 AS y FROM numbers a, numbers b, numbers c) ON y USING count(*) GROUP BY y"
        )
        codes: list[str] = []

        def ask() -> None:
            with pytest.raises(Refused) as caught:
                asked.ask()
            codes.append(caught.value.code)

        asking = threading.Thread(target=ask)
        asking.start()
        for _ in range(1200):
            asking.join(0.1)
            if not asking.is_alive():
                break
            asked.interrupt()
        assert codes == ["SDC091"]


def test_both_questions_are_written_down(tmp_path: Path) -> None:
    with database(tmp_path / "records.duckdb") as con:
        protect(con, "method := 'cell_key'")
    one = guard(tmp_path / "records.duckdb", log=tmp_path / "log")
    query = "PIVOT people ON sex USING count(*) GROUP BY region"
    one.sql(query, user="ann")
    with pytest.raises(Refused):
        one.sql(query.replace("sex", "income"), user="ben")
    one.columns(query, user="cleo")
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    told = [
        (line["user"], line["verdict"], line["query"].startswith("SELECT CAST(v")) for line in lines if "query" in line
    ]
    assert told == [
        ("ann", "answered", True), ("ann", "answered", False), ("ben", "SDC041", True), ("ben", "SDC041", False),
        ("cleo", "answered", True),
    ]  # fmt: skip
    one.close()
