"""Where nothing is hidden, an answer is DuckDB's own to the same text: nobody counts as 0, and one column is one key."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Refused, guard

PEOPLE = """CREATE TABLE people AS SELECT id, (id * 7368787) % 99999989 AS record_key, ['N', 'S', NULL][1 + id % 3] AS region,
    id % 5 AS age, id % 4 - 1.5 AS shift, 100 * id AS income FROM range(1, 31) t(id);
CREATE TABLE regions AS FROM (VALUES ('N', 1), ('S', 2)) t(region, num)"""


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(PEOPLE)
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'age', 'shift'], measures := ['income'], "
            "method := 'threshold', min_units := 1)"
        ).fetchall()
        con.execute("FROM sdc_declare_public('regions')").fetchall()
        yield con


NOBODY = "FILTER (WHERE age = 77)"
SAME = (
    f"SELECT region, count(*) {NOBODY} AS n, count(DISTINCT id) {NOBODY} AS u, count(income) {NOBODY} AS i, sum(income) {NOBODY} AS s "
    "FROM people GROUP BY region ORDER BY region",
    f"SELECT count(*) AS n, sum(income) AS s, count(DISTINCT age) AS a, regr_count(age, shift) {NOBODY} AS r FROM people WHERE age > 70",
    f"SELECT age, sum((age > 2)::INTEGER) AS n, avg((age > 2)::INTEGER) AS a, entropy(region) {NOBODY} AS e FROM people GROUP BY age ORDER BY age",
    "SELECT region, age, sum((age > 2)::INTEGER) + count(*) AS n FROM people GROUP BY CUBE (region, age) HAVING sum((age > 2)::INTEGER) >= 0 ORDER BY ALL",
    f"SELECT age, sum(1) {NOBODY} AS one, sum(CASE WHEN age > 2 THEN 2.5 END) AS half, sum(CASE WHEN age > 2 THEN 1 ELSE 0 END) AS none, "
    f"countif(age > 2) AS c, countif(CASE WHEN age > 2 THEN shift > 0 END) AS k, count_if(age > 2) {NOBODY} AS f, sum((shift > 0)::INTEGER) {NOBODY} AS t, sum(age > 2) AS u, sum(DISTINCT age > 2) AS v, sum(shift > 0) {NOBODY} AS w FROM people GROUP BY age ORDER BY age",
    "SELECT p.age, age AS again, count(*) AS n FROM people p GROUP BY p.age, age ORDER BY ALL",
    "SELECT p.region, q.region AS other, count(*) AS n FROM people p JOIN regions q ON p.region = q.region GROUP BY ROLLUP (p.region, q.region) ORDER BY ALL",
)


@pytest.mark.parametrize("question", SAME)
def test_nobody_is_counted_as_0_where_nothing_is_hidden(con: duckdb.DuckDBPyConnection, question: str) -> None:
    answer = guard(con).sql(question)
    plain = con.execute(question)
    names = [column[0] for column in plain.description]
    assert answer.to_pylist() == [dict(zip(names, row, strict=True)) for row in plain.fetchall()]


@pytest.mark.parametrize(
    ("joined", "keys"),
    [
        ("", "ROLLUP (p.age, age)"),
        ("", "CUBE (age + 1, p.age + 1)"),
        ("", "age, ROLLUP (p.age)"),
        (" JOIN regions q ON p.region = q.region", "GROUPING SETS ((age), (p.age))"),
    ],
)
def test_a_column_with_and_without_its_table_is_no_two_keys(
    con: duckdb.DuckDBPyConnection, joined: str, keys: str
) -> None:
    with pytest.raises(Refused, match="one expression as two keys"):
        guard(con).sql(f"SELECT count(*) AS n FROM people p{joined} GROUP BY {keys}")


def test_a_geometric_mean_of_negative_values_and_zeros_is_no_number(con: duckdb.DuckDBPyConnection) -> None:
    (row,) = guard(con).sql("SELECT geomean(age - 2) AS g, geomean(age) AS z FROM people").to_pylist()
    assert row["g"] != row["g"]
    assert row["z"] == 0


@pytest.mark.parametrize(
    "question",
    [
        "SELECT sum(coalesce(log(age - 3), 1)) AS n FROM people",
        "SELECT count(*) AS n FROM people WHERE ifnull(ln(age), 1) > 0",
    ],
)
def test_coalesce_of_a_logarithm_ends_no_process(con: duckdb.DuckDBPyConnection, question: str) -> None:
    """DuckDB 1.5 ended with a fault of memory where one logarithm failed, inside of TRY, too."""
    if duckdb.__version__.startswith("1."):
        with pytest.raises(Refused, match="coalesce of a logarithm or a root"):
            guard(con).sql(question)
    else:
        assert guard(con).sql(question).num_rows == 1
