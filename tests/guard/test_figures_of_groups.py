"""Sums and statistics of dimensions, made of what is published for each value: under thresholds and rounding, too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest
from visits_database import answer

import sdcduck
from sdcduck.guard import Guard, Refused

RARE = "INSERT INTO people SELECT 9000 + i, 99, 5, 'n', true, 1 FROM range(2) t(i)"
METHODS = {
    "shown": "method := 'threshold', min_units := 1",
    "threshold": "method := 'threshold', min_units := 3",
    "rounding": "method := 'rounding', base := 5",
    "cell_key": "method := 'cell_key'",
}


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """2,000 people, two of whom are 99, in the north; the others are of seven ages."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            "CREATE TABLE people AS SELECT i AS id, 20 + i % 7 AS age, i * 13 % 101 AS income, "
            "['n', 's', 'east'][1 + i % 3] AS region, i % 2 = 0 AS ill, CASE WHEN i % 11 > 0 THEN i % 4 END AS children "
            f"FROM range(1998) t(i); {RARE}"
        )
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        yield con


@pytest.fixture
def guard(con: duckdb.DuckDBPyConnection) -> Callable[[str], Guard]:
    """The guard of a method, of a role of its own."""

    def opened(method: str) -> Guard:
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['age', 'region', 'ill', 'children'], "
            f"measures := ['income'], {METHODS[method]})"
        ).fetchall()
        return sdcduck.open_guard(con)

    return opened


FIGURES = (
    "sum(age)",
    "avg(age)",
    "sum(children)",
    "avg(strlen(region))",
    "sum(age) FILTER (WHERE ill)",
    "sum(CASE WHEN ill THEN age ELSE 0 END)",
    "sum(1 - children)",
    "avg(age * 2 - 1)",
    "stddev(age)",
    "var_pop(children)",
    "corr(age, children)",
    "regr_slope(age, children)",
    "skewness(age)",
    "entropy(children)",
    "geomean(age)",
)
OF_MEASURES = (
    "sum(income * age)",
    "avg(income * children)",
    "sum(income + age)",
    "avg(income - (age + children))",
    "sum(income * age - income * children + 2 * age - 1)",
    "regr_slope(income, age)",
    "covar_pop(income, children)",
)


@pytest.mark.parametrize("figure", [*FIGURES, *OF_MEASURES])
@pytest.mark.parametrize("keys", ["region", "region, ill", ""])
def test_exact_where_nothing_is_hidden(
    con: duckdb.DuckDBPyConnection, guard: Callable[[str], Guard], figure: str, keys: str
) -> None:
    shown = guard("shown")
    query = f"SELECT {keys + ', ' if keys else ''}{figure} AS x FROM people {'GROUP BY ' + keys if keys else ''}"
    wanted = sorted(con.cursor().execute(query).fetchall(), key=repr)
    got = sorted((tuple(row.values()) for row in shown.sql(query).to_pylist()), key=repr)
    assert [row[:-1] for row in got] == [row[:-1] for row in wanted]
    for row, other in zip(got, wanted, strict=True):
        assert row[-1] == (None if other[-1] is None else pytest.approx(other[-1], rel=1e-9, abs=1e-9))


@pytest.mark.parametrize("figure", [one for one in FIGURES if "age" in one] + ["sum(income * age)"])
def test_null_where_a_group_is_hidden(
    con: duckdb.DuckDBPyConnection, guard: Callable[[str], Guard], figure: str
) -> None:
    # The two of 99 are in the north, and both ill: a sum without them would be too small, and nobody would know.
    query = f"SELECT region, {figure} AS x FROM people GROUP BY ROLLUP (region)"
    threshold = {row["region"]: row["x"] for row in guard("threshold").sql(query).to_pylist()}
    for region, wanted in con.cursor().execute(query).fetchall():
        if region in ("n", None):
            assert threshold[region] is None
        else:
            assert threshold[region] == pytest.approx(wanted, rel=1e-9)


def test_figures_that_few_do_not_have_are_added_up(
    con: duckdb.DuckDBPyConnection, guard: Callable[[str], Guard]
) -> None:
    threshold = guard("threshold")
    query = "SELECT region, sum(children) AS x FROM people WHERE age < 90 GROUP BY region"
    assert answer(threshold, query) == sorted(
        ((region, f"{x:.9g}") for region, x in con.cursor().execute(query).fetchall()), key=repr
    )
    assert answer(threshold, "SELECT sum(age) FROM people WHERE age > 100") == [(None,)]


def test_a_sum_of_figures_and_measures_is_that_of_its_parts(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "FROM sdc_protect('people', unit := 'id', dimensions := ['age', 'region', 'children'], measures := ['income'], "
        "method := 'cell_key', role := 'noisy')"
    ).fetchall()
    noisy = sdcduck.open_guard(con, role="noisy")
    together = noisy.sql("SELECT region, sum(income - 2 * age + children * income) AS x FROM people GROUP BY region")
    parts = noisy.sql(
        "SELECT region, sum(income) FILTER (WHERE children IS NOT NULL) - sum(2 * age) FILTER (WHERE income IS NOT NULL "
        "AND children IS NOT NULL) + sum(children * income) AS x FROM people GROUP BY region"
    )
    assert together.to_pylist() == parts.to_pylist()


@pytest.mark.parametrize("keys", ["region", "region, ill"])
def test_rounded_sums_are_those_of_the_rounded_groups(guard: Callable[[str], Guard], keys: str) -> None:
    rounding = guard("rounding")
    by_age: dict[tuple[Any, ...], list[tuple[int, int]]] = defaultdict(list)
    for row in rounding.sql(f"SELECT {keys}, age, count(*) AS n FROM people GROUP BY ALL").to_pylist():
        *group, age, n = row.values()
        by_age[tuple(group)].append((age, n))
    got = rounding.sql(f"SELECT {keys}, sum(age) AS total, avg(age) AS mean FROM people GROUP BY ALL").to_pylist()
    assert len(got) == len(by_age)
    for row in got:
        *group, total, mean = row.values()
        groups = by_age[tuple(group)]
        assert total == sum(age * n for age, n in groups)
        assert mean == pytest.approx(float(total) / sum(n for _, n in groups))


@pytest.mark.parametrize("method", METHODS)
def test_sums_of_whole_numbers_are_whole_to_the_last_digit(guard: Callable[[str], Guard], method: str) -> None:
    one = guard(method)
    by_age = one.sql("SELECT age, count(*) AS n FROM people WHERE age < 90 GROUP BY age").to_pylist()
    exact = sum(row["age"] * row["n"] for row in by_age)
    far = 1_000_000_000_000_007  # times which a sum has more digits than a floating-point number
    got = one.sql(
        f"SELECT sum(age) AS a, sum(age * {far}) AS b, sum(-age) AS c, sum(age::DOUBLE) AS d FROM people WHERE age < 90"
    )
    assert [str(kind) for kind in got.schema.types] == ["decimal128(38, 0)"] * 3 + ["double"]
    assert list(got.to_pylist()[0].values()) == [exact, exact * far, -exact, float(exact)]


def test_rounding_has_no_sums_of_measures(guard: Callable[[str], Guard]) -> None:
    rounding = guard("rounding")
    for figure in OF_MEASURES:
        with pytest.raises(Refused, match="rounding answers counts"):
            rounding.sql(f"SELECT {figure} FROM people")


DATED = """
    SELECT {key} AS k, count(DISTINCT region) AS regions, sum(weekday(day)) AS x, min(region) AS first
    FROM stays GROUP BY k ORDER BY k
"""


@pytest.mark.parametrize(
    "key",
    [
        "extract(dow FROM day)",
        "week(since)",
        "isoyear(day)",
        "date_diff('month', day, DATE '2026-01-01')",
        "yearweek(since)",
    ],
)
def test_parts_of_times_beside_numbers_of_values(key: str) -> None:
    # The types of the keys are known where they are looked at once more, too: these functions take dates alone.
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute(
            "CREATE TABLE stays AS SELECT i AS id, DATE '2025-01-01' + (i % 40)::INTEGER AS day, "
            "TIMESTAMP '2025-01-01' + to_hours(i % 900) AS since, ['n', 's'][1 + i % 2] AS region FROM range(4000) t(i)"
        )
        con.execute("FROM sdc_add_record_key('stays', unit := 'id')").fetchall()
        con.execute(
            "FROM sdc_protect('stays', unit := 'id', dimensions := ['day', 'since', 'region'], "
            "method := 'threshold', min_units := 1)"
        ).fetchall()
        query = DATED.format(key=key)
        got = [tuple(row.values()) for row in sdcduck.open_guard(con).sql(query).to_pylist()]
        assert got == con.cursor().execute(query).fetchall()
