"""The type of a number: DuckDB's own over public tables, and what a protected sum has under each method."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import duckdb
import pyarrow as pa
import pytest

import sdcduck
from sdcduck.guard import Guard

TYPES = {"i": "BIGINT", "u": "UBIGINT", "h": "HUGEINT", "d": "DECIMAL(12,2)", "w": "DECIMAL(38,4)", "f": "FLOAT"}
ASKED = [
    "sum({0})", "avg({0})", "max({0})", "fsum({0})", "favg({0})", "sumkahan({0}) FILTER (WHERE i > 3)", "list({0} ORDER BY i)",
    "sum({0}) - sum(i)", "sum(CASE WHEN i > 3 THEN {0} ELSE 0 END)", "{{'a': max({0})}}", "sum(sum({0})) OVER ()",
]  # fmt: skip


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as connection:
        columns = ", ".join(
            f"(i + CASE WHEN i = 9 THEN 2 ** 20 ELSE 0 END)::{kind} AS {name}" for name, kind in TYPES.items()
        )
        connection.execute(
            f"CREATE TABLE numbers AS SELECT {columns}, 9223372036854775807::HUGEINT + i AS large, 'ab'[1 + i % 2] AS r "
            "FROM range(1, 40) t(i)"
        )
        connection.execute("FROM sdc_declare_public('numbers')").fetchall()
        yield connection


guard_of = lru_cache(1)(sdcduck.open_guard)


def compared(con: duckdb.DuckDBPyConnection, query: str) -> None:
    wanted, found = con.sql(query).to_arrow_table(), guard_of(con).sql(query)
    assert found.schema.types == wanted.schema.types
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))
    assert wanted.num_rows


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("column", [*TYPES, "large"])
def test_over_public_tables_it_is_that_of_duckdb(con: duckdb.DuckDBPyConnection, column: str, asked: str) -> None:
    number = asked.format(column)
    compared(con, f"SELECT {number} AS v FROM numbers")
    compared(con, f"SELECT r, {number} AS v FROM numbers GROUP BY r ORDER BY r")
    compared(con, f"SELECT v FROM (SELECT {number} AS v FROM numbers) WHERE v IS NOT NULL")


def test_2_to_the_63_has_all_its_digits(con: duckdb.DuckDBPyConnection) -> None:
    answer = sdcduck.open_guard(con).sql("SELECT min(large) AS n, sum(i) FILTER (WHERE i < 3) AS s FROM numbers")
    assert answer.schema.types == [pa.decimal128(38, 0), pa.decimal128(38, 0)]
    assert list(map(int, answer.to_pylist()[0].values())) == [2**63, 3]


REAL, WHOLE = pa.float64(), pa.decimal128(38, 0)


@pytest.mark.parametrize(
    ("method", "kinds"),
    [
        ("cell_key", [REAL, REAL, REAL, REAL]),
        ("threshold", [WHOLE, REAL, pa.decimal128(38, 2), REAL]),
        ("suppression", [WHOLE, WHOLE, pa.decimal128(38, 2), pa.decimal128(38, 2)]),
    ],
)
def test_a_protected_sum_has_the_type_that_its_method_says(method: str, kinds: list[pa.DataType]) -> None:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            "CREATE TABLE people AS SELECT i AS id, 'ab'[1 + i % 2] AS r, i AS whole, i::HUGEINT AS huge, "
            "i::DECIMAL(12, 2) AS small, i::DECIMAL(30, 2) AS wide FROM range(1, 301) t(i)"
        )
        measures = ["whole", "huge", "small", "wide"]
        sums = ", ".join(f"sum({measure}) AS {measure}" for measure in measures)
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        more = ", min_units := 2" if method == "threshold" else ""
        if method == "suppression":
            con.execute(
                f"FROM sdc_publication('p', 'SELECT r, count(*) AS n, {sums} FROM people GROUP BY CUBE (r)')"
            ).fetchall()
            con.execute("FROM sdc_publish('p', max_count := 1)").fetchall()
            more = ", publication := 'p'"
        con.execute(
            f"FROM sdc_protect('people', unit := 'id', dimensions := ['r'], measures := {measures}, method := '{method}'{more})"
        ).fetchall()
        assert sdcduck.open_guard(con).sql(f"SELECT {sums} FROM people").schema.types == kinds


PROBED = [
    "SELECT d * d AS a, round(d, 1) AS b, 1.5 AS c, [i, 2][1] AS e, list_sum([i]) AS f, map_keys(MAP {'k': i}) AS g FROM numbers",
    "SELECT sum(i) OVER () AS a, sum(d) OVER () AS b, strpos(r, 'b') AS c, CASE WHEN i > 3 THEN 1 ELSE 2.5 END AS e FROM numbers",
    "SELECT r, sum(i) AS a, sum(d) AS b, avg(d) AS c, count(*) AS e FROM numbers GROUP BY r",
    "SELECT r, sum(i) AS a, sum(d) AS b, avg(d) AS c, count(*) AS e, sum(i) / 2 AS f FROM people GROUP BY r",
    "SELECT sum(a) AS a FROM (SELECT r, sum(i) AS a FROM people GROUP BY r)",
    "SELECT 100000000000000000000 AS a, 1.25 AS b, NULL AS c",
]


@pytest.fixture(scope="module", params=["cell_key", "threshold"])
def probed(request: pytest.FixtureRequest) -> Iterator[Guard]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(f"""
            CREATE TABLE numbers AS SELECT i, i::DECIMAL(12,2) AS d, 'ab'[1 + i % 2] AS r FROM range(90) t(i);
            CREATE TABLE people AS SELECT *, i AS id FROM numbers; FROM sdc_declare_public('numbers');
            FROM sdc_add_record_key('people', unit := 'id');
            FROM sdc_protect('people', unit := 'id', dimensions := ['r'], measures := ['i', 'd'], method := '{request.param}',
                min_units := 1);
        """).fetchall()
        yield sdcduck.open_guard(con)


@pytest.mark.parametrize("query", PROBED)
def test_a_probe_for_the_columns_has_the_types_of_the_answer(probed: Guard, query: str) -> None:
    columns = probed.columns(query)
    for probe in (f"{query} LIMIT 0", f"SELECT * FROM ({query}) AS t WHERE 1 = 0"):
        assert probed.columns(probe) == columns
        assert probed.sql(probe).schema == probed.sql(query).schema
        assert not any(table in probed.rewrite(probe) for table in ("people", "numbers"))


@pytest.mark.parametrize(
    ("query", "given"),
    [
        ("SELECT r, sum(i) AS a FROM people WHERE r <> ? GROUP BY r", ["a"]),
        ("SELECT i + $1 AS a, $2 || r AS b FROM numbers WHERE i < $1", [3, "x"]),
        ("SELECT i * $times AS a FROM numbers", {"times": 2}),
    ],
)
def test_a_probe_is_asked_with_parameters(probed: Guard, query: str, given: object) -> None:
    asked = probed.sql(f"{query} LIMIT 0", given)  # type: ignore[arg-type]
    assert asked.num_rows == 0
    assert asked.schema == probed.sql(query, given).schema  # type: ignore[arg-type]


def test_a_probe_of_records_is_asked_with_parameters(probed: Guard) -> None:
    asked = probed.sql("SELECT i, r FROM people WHERE r = ? OR i > ? LIMIT 0", ["a", 3])
    assert (asked.num_rows, asked.schema.types) == (0, [pa.int64(), pa.string()])
