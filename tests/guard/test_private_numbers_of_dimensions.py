"""Sums, means, spreads and quantiles of dimensions of whole numbers under `method := 'dp'`: their domains have the ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from private_numbers import totals
from private_people import RECORDS, REGIONS_OF, made

import sdcduck
from sdcduck.guard import Guard, Refused

pytest.importorskip("opendp")

RECORDS_WITH_YEARS = f"SELECT *, age AS years FROM ({RECORDS})"


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    path = made(tmp_path_factory.mktemp("numbers") / "register.duckdb", RECORDS, epsilon="1000", per_question="50")
    with closing(sdcduck.open_guard(path)) as guard:
        yield guard


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE people AS {RECORDS}; CREATE TABLE regions AS {REGIONS_OF}")
        con.execute("UPDATE people SET region = NULL WHERE region = 'unknown'")
        yield con


@pytest.mark.parametrize(
    "query",
    [
        "SELECT region, avg(age), sum(age), count(age) FROM people GROUP BY region ORDER BY region",
        "SELECT stddev(age), variance(age), var_pop(age) FROM people",
        "SELECT median(age), quantile_cont(age, 0.9) FROM people",
        "SELECT avg(a) FROM (SELECT age AS a, region FROM people WHERE ill) WHERE region = 'n'",
        "WITH t AS (SELECT age AS b, ill FROM people) SELECT sum(b) FILTER (ill), sum(2 * b) FROM t",
        "SELECT sum(CASE WHEN ill THEN age ELSE 0 END), avg(CASE WHEN ill THEN age END) FROM people",
        "SELECT r.area, avg(age) FROM people p JOIN regions r USING (region) GROUP BY 1 ORDER BY 1",
        "SELECT avg(coalesce(age, 0)), avg(age::DOUBLE), sum(age) / count(*) FROM people",
        "SELECT count(DISTINCT (region, ill)), count(DISTINCT (region, ill)) FILTER (age = 0 AND NOT ill) FROM people",
    ],
)
def test_they_are_answered_near_the_truth(guard: Guard, plain: duckdb.DuckDBPyConnection, query: str) -> None:
    """Ten standard deviations and more of the noise at this epsilon, and less than a slip would make."""
    came = [tuple(row.values()) for row in guard.sql(query).to_pylist()]
    wanted = plain.execute(query).fetchall()
    assert len(came) == len(wanted)
    for row, true in zip(came, wanted, strict=True):
        for number, truth in zip(row, true, strict=True):
            assert (
                number == truth if isinstance(truth, str | None) else abs(number - truth) <= max(3, 0.05 * abs(truth))
            ), row


def test_their_noise_is_that_of_a_measure_with_the_ends_as_bounds(tmp_path: Path) -> None:
    con = sdcduck.connect(tmp_path / "register.duckdb")
    con.execute(f"CREATE TABLE people AS {RECORDS_WITH_YEARS}")
    sdcduck.protect(
        con, "people", unit="id", dimensions=["region", "age"], measures=["years"], method="dp", bounds={"years": [-7, 89]},
        domains={"region": ["n", "s"], "age": [-7, *range(3, 90)]}, epsilon=10, delta=1e-9, per_question=1,
    )  # fmt: skip
    con.close()
    with closing(sdcduck.open_guard(tmp_path / "register.duckdb")) as guard:
        for asked in ("sum({})", "avg({})", "stddev({})", "median({})"):
            of = [
                guard.explain(f"SELECT region, {asked.format(name)} AS x FROM people GROUP BY 1")
                for name in ("age", "years")
            ]
            assert of[0].worth[-1].sd == of[1].worth[-1].sd
            assert of[0].notes == of[1].notes


def test_a_value_outside_of_the_domain_adds_nothing(tmp_path: Path) -> None:
    """Whatever somebody wrote for one person, or for many: it is no value, as in groups."""
    records = RECORDS.replace("(i * 7) % 90 AS age", "CASE WHEN i % 2 = 0 THEN 2000000000 - i ELSE 10 END AS age")
    with closing(sdcduck.open_guard(made(tmp_path / "register.duckdb", records))) as guard:
        [row] = guard.sql(
            "SELECT sum(age) AS sum, avg(age) AS mean, stddev(age) AS sd, median(age) AS middle FROM people"
        ).to_pylist()
    assert abs(row["sum"] - 10_000) < 300
    assert abs(row["mean"] - 10) < 1
    assert row["sd"] < 5
    assert abs(row["middle"] - 10) < 2


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT avg(region) FROM people", "a dimension without a domain of whole numbers"),
        ("SELECT avg(age) FROM (SELECT age + 1 AS age FROM people)", "a dimension without a domain of whole numbers"),
        (
            "SELECT avg(age) FROM (SELECT 1000000 * age AS age FROM people)",
            "a dimension without a domain of whole numbers",
        ),
        ("SELECT avg(b) FROM (SELECT age AS a, id AS b FROM people)", "SDC0"),
        ("SELECT stddev(age) FROM (SELECT 3 * age AS age FROM people)", "SDC052"),
        ("SELECT sum(age * age) FROM people", "SDC041"),
        ("SELECT avg(DISTINCT age) FROM people", "SDC0"),
    ],
)
def test_what_has_no_ends_is_refused(guard: Guard, query: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        guard.sql(query)


@pytest.mark.parametrize(
    ("kind", "first", "last", "by_byte"),
    [("INTEGER", 0, 19, True), ("SMALLINT", 0, 255, True), ("BIGINT", 0, 256, False), ("BIGINT", -1, 19, False)],
)
def test_few_whole_numbers_are_grouped_by_byte_and_the_groups_are_the_same(
    tmp_path: Path, kind: str, first: int, last: int, by_byte: bool
) -> None:
    """Numbers that are no byte are in the group of all others, as those beside the domain and missing ones."""
    age = f"CASE WHEN i % 7 > 0 THEN [0, 3, 19, 20, 255, 256, -1, 1000][1 + i % 8] END::{kind}"
    records = f"SELECT i AS id, 'n' AS region, {age} AS age, i % 3 = 0 AS ill, 1.0 AS income FROM range(400) t(i)"
    register = made(tmp_path / "register", records, domains=f"{{'age': range({first}, {last + 1})}}")
    with closing(sdcduck.open_guard(register)) as guard:
        query = "SELECT age, count(*) AS n FROM people WHERE ill GROUP BY age"
        [(release, _, found)] = totals(guard, query)
        assert ("UTINYINT" in release.totals) == by_byte
        assert guard.sql(query)["n"].type == "int64"
        ages = guard.sql(f"{query} ORDER BY age NULLS LAST")["age"].to_pylist()
        [two] = guard.rewritten("SELECT age, ill, count(*) FROM people GROUP BY ALL")[0].releases
        assert "UTINYINT" not in two.totals
    with duckdb.connect() as con:
        exact = con.execute(
            f"SELECT CASE WHEN age BETWEEN {first} AND {last} THEN age END AS k, count(*) FROM ({records}) WHERE ill GROUP BY k"
        ).fetchall()
    assert ages == [*range(first, last + 1), None]
    assert {age: number for age, number in zip(ages, found, strict=True) if number} == dict(exact)
