"""Questions under differential privacy that look at more than one table, or at records through subqueries.

Each is asked of DuckDB, too, over the same people: what is not declared as a region is missing there as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from private_numbers import charged
from private_people import RECORDS, REGIONS_OF, made

import sdcduck
from sdcduck.guard import Guard, Refused

pytest.importorskip("opendp")


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("questions") / "register", per_question="40")


@pytest.fixture(scope="module")
def guard(register: Path) -> Iterator[Guard]:
    """A guard whose noise is small: what is allowed for is more than ten of its standard deviations in every group."""
    with closing(sdcduck.open_guard(register)) as opened:
        yield opened


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    """The same people without protection."""
    with duckdb.connect() as con:
        known = RECORDS.replace("'unknown'", "NULL")
        con.execute(f"CREATE TABLE people AS {known}")
        con.execute(f"CREATE TABLE regions AS {REGIONS_OF}")
        con.execute("CREATE VIEW areas AS SELECT area AS name, bool_or(warm) AS any_warm FROM regions GROUP BY area")
        yield con


Row = dict[str, object]


def near(guard: Guard, plain: duckdb.DuckDBPyConnection, question: str, keys: int, *, most: float = 40.0) -> None:
    """Every group that there is has about its number, and every other one that is answered has about none."""
    wanted = {tuple(row[:keys]): row[keys:] for row in plain.execute(question).fetchall()}
    answered = [tuple(row.values()) for row in guard.sql(question).to_pylist()]
    found = {row[:keys]: row[keys:] for row in answered}
    assert len(found) == len(answered)
    assert wanted.keys() <= found.keys()
    for key, numbers in found.items():
        for number, true in zip(numbers, wanted.get(key, (0,) * len(numbers)), strict=True):
            assert number is not None or key not in wanted
            if key in wanted or isinstance(number, int):
                assert number == pytest.approx(float(true), rel=0.15, abs=most)


THROUGH = [
    ("SELECT region, count(*) FROM (SELECT * FROM people WHERE age > 20) GROUP BY region", 1),
    ("SELECT count(*) FROM (SELECT * FROM people WHERE ill)", 0),
    ("WITH a AS (SELECT * FROM people) SELECT count(*), avg(income) FROM a", 0),
    ("WITH a AS (SELECT *, age // 30 AS third FROM people WHERE ill), b AS (SELECT third, region AS r, income AS i "
     "FROM a WHERE region <> 'n') SELECT third, r, count(*), count(i) FROM b WHERE third < 2 GROUP BY ALL", 2),
    ("SELECT q.r, q.old, count(*) FROM (SELECT p.region AS r, p.age > 60 AS old FROM (SELECT region, age FROM people "
     "WHERE age < 80) AS p WHERE p.age > 10) AS q WHERE q.r <> 's' GROUP BY ALL", 2),
    ("WITH a AS (SELECT * FROM people) SELECT (SELECT count(*) FROM a) AS n, (SELECT count(*) FROM a WHERE ill) AS m",
     0),
    ("SELECT 'ill', count(*) FROM (SELECT * FROM people WHERE ill) UNION ALL SELECT 'all', count(*) FROM (FROM people)",
     1),
]  # fmt: skip
"""Questions about records in subqueries, and how many of their columns are groups."""


JOINED = [
    ("SELECT area, count(*) FROM people JOIN regions USING (region) GROUP BY area", 1),
    ("SELECT area, count(*), avg(income) FROM people LEFT JOIN regions USING (region) GROUP BY area", 1),
    ("SELECT count(*) FROM people, regions WHERE people.region = regions.region AND warm", 0),
    ("SELECT people.region, count(*) FROM people JOIN regions USING (region) GROUP BY people.region", 1),
    ("SELECT any_warm, count(*) FROM people p JOIN regions r ON p.region = r.region JOIN areas a ON r.area = a.name "
     "GROUP BY any_warm", 1),
    ("SELECT y, count(*) FROM people JOIN (VALUES (1, 'one'), (2, 'two')) AS v(x, y) ON age = x GROUP BY y", 1),
    ("WITH r AS (SELECT region, area FROM regions WHERE warm) SELECT area, count(*) FROM people JOIN r USING (region) "
     "GROUP BY area", 1),
    ("SELECT area, ill, count(*) FROM (SELECT p.ill, r.area FROM people p JOIN regions r USING (region)) GROUP BY ALL",
     2),
    ("SELECT region, count(*) FROM people WHERE region IN (SELECT region FROM regions WHERE warm) GROUP BY region", 1),
    ("SELECT sum(CASE WHEN region IN (SELECT region FROM regions) THEN 1 ELSE 0 END) FROM people", 0),
    ("SELECT count(*) FROM people WHERE age > (SELECT 10 * max(length(area)) FROM regions)", 0),
    ("SELECT count(*) FROM people WHERE EXISTS (SELECT 1 FROM regions r WHERE r.region = people.region AND warm)", 0),
    ("SELECT warm, count(*) FROM people JOIN regions USING (region) JOIN (VALUES (3)) AS v(x) ON age = x GROUP BY warm",
     1),
    ("SELECT label, count(*) FROM people JOIN (VALUES ('young', 0, 30), ('old', 30, 150)) AS b(label, low, high) "
     "ON age >= low AND age < high GROUP BY label", 1),
    ("WITH p AS (SELECT 30 AS low, 60 AS high) SELECT ill, count(*) FROM people, p WHERE age BETWEEN low AND high "
     "GROUP BY ill", 1),
]  # fmt: skip
"""Questions about records and public tables."""


def test_groups_of_public_tables_are_those_that_the_domain_finds(guard: Guard) -> None:
    """None that no value of the domain leads to; behind LEFT JOIN also that of values that are not there."""
    asked = "SELECT area, count(*) AS n FROM people JOIN regions USING (region) WHERE age > 7 GROUP BY area"
    assert {row["area"] for row in guard.sql(asked).to_pylist()} == {"upper", "lower"}
    asked = asked.replace("JOIN regions", "LEFT JOIN regions")
    assert {row["area"] for row in guard.sql(asked).to_pylist()} == {"upper", "lower", None}


SETS = [
    ("SELECT region, ill, grouping(region, ill), count(*) FROM people WHERE region <> 'n' GROUP BY ROLLUP(region, ill)", 3),
    ("SELECT grouping(ill), region, ill, grouping(region), count(*), avg(income) FROM people GROUP BY CUBE(region, ill)", 4),
    ("SELECT region, ill, grouping(region), count(*) FROM people GROUP BY GROUPING SETS ((region), (ill))", 3),
    ("SELECT region, ill, grouping(ill, region), count(*) FROM people GROUP BY GROUPING SETS ((region), (ill), ())", 3),
    ("SELECT region, ill, grouping(ill), count(*) FROM people GROUP BY region, ROLLUP(ill)", 3),
    ("SELECT count(*) FROM people GROUP BY GROUPING SETS (())", 0),
    ("SELECT area, ill, grouping(area, ill), count(*) FROM people JOIN regions USING (region) GROUP BY ROLLUP(area, ill)", 3),
    ("SELECT count(DISTINCT region), count(DISTINCT age), count(DISTINCT id) FROM people", 0),
    ("SELECT count(DISTINCT region) FILTER (WHERE age > 40), count(DISTINCT age // 10) FROM people", 0),
    ("SELECT ill, grouping(ill), count(DISTINCT region), count(*) FROM people GROUP BY ROLLUP(ill)", 2),
]  # fmt: skip
"""Questions with several groupings at once, and numbers that do not add up."""


@pytest.mark.parametrize(("question", "keys"), [*THROUGH, *JOINED, *SETS])
def test_numbers_are_near_those_of_the_records(
    guard: Guard, plain: duckdb.DuckDBPyConnection, question: str, keys: int
) -> None:
    near(guard, plain, question, keys)


SPREAD = [
    ("SELECT stddev(income), stddev_pop(income), avg(income) FROM people", 0),
    ("SELECT region, stddev(income) FROM people WHERE region <> 'n' GROUP BY region", 1),
    ("SELECT region, grouping(region), stddev(income), count(*) FROM people WHERE region < 'o' GROUP BY ROLLUP(region)", 2),
    ("SELECT median(income), quantile_cont(income, 0.25), quantile_cont(income, 0.95) FROM people", 0),
    ("SELECT region, median(income) FROM people WHERE region < 'o' GROUP BY region", 1),
    ("SELECT ill, grouping(ill), median(income) FILTER (WHERE age > 40) FROM people WHERE ill IS NOT NULL "
     "GROUP BY ROLLUP(ill)", 2),
]  # fmt: skip
"""Questions for how values of a measure are spread."""


@pytest.mark.parametrize(("question", "keys"), SPREAD)
def test_variances_and_quantiles(guard: Guard, plain: duckdb.DuckDBPyConnection, question: str, keys: int) -> None:
    near(guard, plain, question, keys, most=250)


def test_shares_stay_between_none_and_all(guard: Guard) -> None:
    """Also of nobody, and of few: a mean of 1 and 0 is between them, as other means are between their bounds."""
    asked = "SELECT age, avg(CASE WHEN ill THEN 1 ELSE 0 END) AS a, 100 * avg((income > 10)::INTEGER) AS b FROM people WHERE income > 99999 GROUP BY age"
    answered = guard.sql(asked).to_pylist()
    shares = [row[name] / most for row in answered for name, most in (("a", 1), ("b", 100)) if row[name] is not None]
    assert len(shares) > 9
    assert all(0 <= share <= 1 for share in shares)


def test_variances_and_quantiles_stay_within_what_bounds_allow(guard: Guard) -> None:
    """Also of nobody and of few: a variance is none of less than two, a quantile one of a thousand parts of the bounds."""
    asked = "SELECT age, var_samp(income) AS v, median(income) AS m, count(income) AS n FROM people GROUP BY age"
    for row in guard.sql(asked).to_pylist():
        assert (row["v"] is None) == (row["n"] <= 1)
        assert row["v"] is None or 0 <= row["v"] <= 3000**2 * row["n"] / (row["n"] - 1)
        assert 0 <= row["m"] <= 6000
        assert row["m"] % 6 == 0


def test_two_quantiles_of_the_same_records_are_two_numbers(guard: Guard, register: Path) -> None:
    """The same SQL over records, but another choice: neither has the answer that was drawn for the other."""
    before = charged(register)
    low, high = (
        guard.sql(f"SELECT quantile_cont(income, {share}) AS q FROM people").to_pylist()[0]["q"]
        for share in (0.25, 0.75)
    )
    assert low < 2000 < 3000 < high
    assert charged(register) == before + 2
    both = "SELECT quantile_cont(income, 0.25) AS a, quantile_cont(income, 0.75) AS b FROM people"
    (row,) = guard.sql(both).to_pylist()
    assert row["a"] < 2000 < 3000 < row["b"]


def test_subtotals_are_the_sums_of_their_groups(guard: Guard, register: Path) -> None:
    """To the last digit, and for no more than the finest set costs: it is made of what was drawn for that."""
    asked = "SELECT region, ill, grouping(region, ill) AS g, count(*) AS n, sum(income) AS s FROM people GROUP BY {}"
    before = charged(register)
    finest = guard.sql(asked.format("GROUPING SETS ((region, ill))")).to_pylist()
    rows = guard.sql(asked.format("CUBE(region, ill)")).to_pylist()
    assert charged(register) == before + 1
    assert [row for row in rows if row["g"] == 0] == finest
    (total,) = (row for row in rows if row["g"] == 3)
    assert total["n"] == sum(row["n"] for row in finest)
    assert total["s"] == pytest.approx(sum(row["s"] for row in finest), rel=1e-12)
    for row in (row for row in rows if row["g"] == 1):
        assert row["n"] == sum(one["n"] for one in finest if one["region"] == row["region"])
    assert guard.sql(asked.format("CUBE(region, ill)")).to_pylist() == rows
    said = {row["column"]: str(row) for row in guard.noise(asked.format("CUBE(region, ill)")).to_pylist()}
    assert "a subtotal of k groups is their sum" in said["n"]


@pytest.mark.parametrize(("delta", "more"), [("1e-9", 2**0.5), ("0", 2)])
def test_sets_that_do_not_follow_from_each_other_share_the_question(tmp_path: Path, delta: str, more: float) -> None:
    """Each has a release of its own, and the question costs the same: the noise of two is the root of two larger.

    Where it is Laplace noise, it is twice as large.
    """
    asked = "SELECT region, ill, count(*) AS n FROM people GROUP BY {}"
    with closing(sdcduck.open_guard(made(tmp_path / "r", delta=delta, per_question="0.1"))) as guard:

        def deviation(grouping: str) -> float:
            (found,) = (row["sd"] for row in guard.noise(asked.format(grouping)).to_pylist() if row["column"] == "n")
            return float(found)

        one = deviation("CUBE(region, ill)")
        assert deviation("GROUPING SETS ((region), (ill))") == pytest.approx(more * one, rel=1e-3)
        assert deviation("GROUPING SETS ((region), (ill), ())") == pytest.approx(more * one, rel=1e-3)


REFUSED = {
    "SELECT count(*) FROM people AS a JOIN people AS b USING (id)": "SDC081",
    "SELECT count(*) FROM people LEFT JOIN people AS b USING (id)": "SDC081",
    "SELECT count(*) FROM people, (VALUES (1), (2)) AS v(x)": "SDC034",
    "SELECT count(*) FROM people JOIN (VALUES ('n'), ('n')) AS v(x) ON region = x": "SDC034",
    "SELECT count(*) FROM people JOIN (SELECT region, count(*) AS n FROM people GROUP BY region) AS r USING (region)":
        "SDC081",
    "SELECT count(*) FROM people, (SELECT count(*) AS n FROM people) AS r WHERE n > 3": "SDC081",
    "SELECT count(*) FROM people WHERE region IN (SELECT region FROM people GROUP BY region HAVING count(*) > 3)":
        "SDC081",
    "SELECT count(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM people AS q WHERE q.id = p.id AND q.ill > p.ill)":
        "SDC081",
    "SELECT count(*) FROM (SELECT *, row_number() OVER (PARTITION BY region ORDER BY age) AS k FROM people) WHERE k = 1": "SDC045",
    "SELECT count(*) FROM (SELECT * FROM people UNION ALL SELECT * FROM people)": "SDC043",
    "SELECT count(*) FROM (SELECT * FROM people LIMIT 5)": "SDC045",
    "SELECT count(*) FROM (SELECT * FROM people USING SAMPLE 5)": "SDC",
    "WITH a AS (SELECT * FROM people) SELECT count(*) FROM a USING SAMPLE 5": "SDC",
    "SELECT count(*) FROM people JOIN (SELECT region FROM regions WHERE current_date > DATE '2020-01-01') USING (region)":
        "SDC081",
    "SELECT warm, count(*) FROM people JOIN (VALUES (5000, true)) AS v(x, warm) ON income = x GROUP BY warm": "SDC041",
    "SELECT max(region), min(age) FROM people": "SDC081",
    "SELECT max(income) FROM people": "SDC050",
    "SELECT median(age) FROM (SELECT age + 1 AS age FROM people)": "SDC081",
    "SELECT quantile_cont(income, 0.0001) FROM people": "SDC081",
    "SELECT sum(DISTINCT age) FROM people": "SDC081",
    "SELECT count(DISTINCT income) FROM people": "SDC041",
    "SELECT region, count(*) FROM people GROUP BY ROLLUP(region, income)": "SDC041",
    "WITH a AS (SELECT region FROM people) SELECT count(*) FROM a AS x(r) WHERE r = 'n'": "SDC022",
    "WITH RECURSIVE a AS (SELECT region FROM people UNION SELECT region FROM a) SELECT count(*) FROM a": "SDC",
}  # fmt: skip


@pytest.mark.parametrize("question", REFUSED)
def test_what_could_count_somebody_twice_is_refused_and_costs_nothing(
    guard: Guard, register: Path, question: str
) -> None:
    before = charged(register)
    with pytest.raises(Refused) as refused:
        guard.sql(question)
    assert str(refused.value).startswith(REFUSED[question])
    assert charged(register) == before


def test_groups_without_a_domain_are_refused_through_joins_and_subqueries(guard: Guard) -> None:
    """What a column of a public table may be is public, but not which of its rows some record finds."""
    narrow = "SELECT y, count(*) FROM people JOIN (VALUES (1, 'one')) AS v(x, y) ON {} = x GROUP BY y"
    for question in (
        "SELECT third, count(*) FROM (SELECT CAST(income AS INTEGER) IS NULL AS third FROM people) GROUP BY third",
        narrow.format("id"),
    ):
        with pytest.raises(Refused):
            guard.sql(question)


def test_the_same_numbers_through_a_name_cost_nothing_again(guard: Guard, register: Path) -> None:
    """A subquery under another name, or in a WITH, is the same question."""
    asked = "SELECT region, count(*) AS n FROM (SELECT * FROM people WHERE age > 33) AS a GROUP BY region ORDER BY 1"
    first, before = guard.sql(asked).to_pylist(), charged(register)
    again = "WITH a AS (SELECT * FROM people WHERE age > 33) SELECT region, count(*) AS n FROM a GROUP BY 1 ORDER BY 1"
    assert guard.sql(again).to_pylist() == first
    assert charged(register) == before


def test_a_name_that_stands_for_two_things_is_not_looked_through(guard: Guard) -> None:
    """The inner one is another relation: nothing is answered rather than the wrong thing."""
    asked = "WITH a AS (FROM people) SELECT n FROM (WITH a AS (SELECT 1 AS n) SELECT n FROM a) UNION ALL SELECT count(*) FROM a"
    with pytest.raises(Refused, match="SDC081"):
        guard.sql(asked)


def test_other_names_for_the_columns_of_a_subquery_are_not_lost(tmp_path: Path) -> None:
    """Where `WITH` stood for records, what a name meant was what it had meant inside."""
    with closing(sdcduck.open_guard(made(tmp_path / "r"))) as guard:
        query = (
            "WITH c AS (SELECT age, region FROM people) SELECT {0}, count(*) AS n FROM c AS t(region, age) GROUP BY {0}"
        )
        for column in ("region", "age"):
            with pytest.raises(Refused):
                guard.sql(query.format(column))
        renamed = (
            "SELECT region AS x, count(*) AS n FROM (SELECT age, region FROM people) AS t(region, age) GROUP BY region"
        )
        assert guard.sql(renamed).num_rows == 91
        assert guard.sql("SHOW sdc_budget").to_pylist()[0]["questions"] == 1
