"""Conditions on measures under differential privacy, and how sums and templates of such questions are made."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from private_people import RECORDS, made

import sdcduck
from sdcduck.guard import Guard, Refused
from sdcduck.guard.methods.dp import in_steps, of_many, within_ends
from sdcduck.guard.opening import LOCKED
from sdcduck.guard.templates import asked, template

pytest.importorskip("opendp")

DOMAINS = "{'region': ['n', 's', 'e', 'w', 'unknown'], 'age': range(0, 90)}"


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    with closing(sdcduck.open_guard(made(tmp_path_factory.mktemp("borders") / "register", domains=DOMAINS))) as opened:
        yield opened


@pytest.mark.parametrize(
    "question",
    [
        "SELECT region, count(*) FROM people WHERE income > 2000 GROUP BY region",
        "SELECT count(*) FROM people WHERE income BETWEEN 100 AND 200.5",
        "SELECT count(*) FROM people WHERE income IN (37.25, 74.25, 111.25)",
        "SELECT count(*) FROM people WHERE NOT (4000 <= income OR ill)",
        "SELECT count_if(income < 3000), count(*) FILTER (WHERE income <> 0.25) FROM people",
        "SELECT sum(CASE WHEN income > 4000 THEN 1 ELSE 0 END) FROM people WHERE region <> 'n'",
        "SELECT avg(income), sum(income), stddev(income) FROM people WHERE income >= 1000 AND age < 50",
        "SELECT count(*) FROM (SELECT income AS x FROM people WHERE age > 3) WHERE x < 2500",
    ],
)
def test_a_measure_is_compared_with_any_number(guard: Guard, question: str) -> None:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE people AS {RECORDS}")
        true = sorted(con.execute(question).fetchall())
    found = sorted(tuple(row.values()) for row in guard.sql(question).to_pylist() if None not in row.values())
    assert len(found) == len(true)
    for mine, its in zip(found, true, strict=True):
        assert [value for value in mine if isinstance(value, str)] == [value for value in its if isinstance(value, str)]
        numbers = [(float(a), float(b)) for a, b in zip(mine, its, strict=True) if not isinstance(a, str)]
        assert all(a == pytest.approx(b, rel=0.01, abs=10) for a, b in numbers)


@pytest.mark.parametrize(
    ("question", "groups"),
    [
        ("SELECT income > 2000 AS rich, count(*) FROM people GROUP BY rich", {(True,), (False,), (None,)}),
        (
            "SELECT CASE WHEN income < 1000 THEN 'a' WHEN income <= 2000.5 THEN 'b' ELSE 'c' END AS band, sum(income), "
            "count(*) FROM people WHERE age > 20 GROUP BY ALL",
            {("a",), ("b",), ("c",)},
        ),
        (
            "SELECT region, band, count(*) FROM (SELECT region, CASE WHEN income BETWEEN 1000 AND 2000 THEN 'in' "
            "WHEN income IN (37.25, 74.25) THEN 'two' WHEN income IS NULL THEN 'none' END AS band FROM people "
            "WHERE region <> 'unknown') GROUP BY region, band",
            {(region, band) for region in "nsew" for band in ("in", "two", "none", None)},
        ),
        # What the condition leaves over is known, too: nobody below 3000 is above 4000.
        (
            "SELECT income > 4000 AS rich, region, count(*) FROM people WHERE income < 3000 GROUP BY ALL",
            {(False, region) for region in ("n", "s", "e", "w", "unknown", None)},
        ),
        (
            "SELECT CASE WHEN income > 2000 THEN region END AS of_rich, avg(income) FROM people GROUP BY 1",
            {(region,) for region in ("n", "s", "e", "w", "unknown", None)},
        ),
    ],
)
def test_sides_of_written_numbers_are_groups_that_anybody_knows(
    guard: Guard, question: str, groups: set[tuple[object, ...]]
) -> None:
    """Which they are follows from the question; what is in them is compared with what DuckDB finds."""
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE people AS {RECORDS}")
        rows = con.execute(question).fetchall()
    found = [tuple(row.values()) for row in guard.sql(question).to_pylist()]
    width = len(next(iter(groups)))
    assert {row[:width] for row in found} == groups
    true = {row[:width]: row[width:] for row in rows}
    assert set(true) <= groups
    for row in found:
        for mine, its in zip(row[width:], true.get(row[:width], [0] * len(row)), strict=False):
            assert float(mine or 0) == pytest.approx(float(its or 0), rel=0.02, abs=10)


@pytest.mark.parametrize(
    "values", ["'NaN'::DOUBLE", "'inf'::DOUBLE", "-1e300", "2000.0", "1999.9999999", "NULL::DOUBLE"]
)
def test_whatever_a_record_has_is_in_a_group_that_is_known(tmp_path: Path, values: str) -> None:
    """All people with one value: they are counted, on the side where DuckDB has them."""
    records = f"SELECT * REPLACE ({values} AS income) FROM ({RECORDS})"
    question = "SELECT income >= 2000 AS rich, count(*) AS n FROM people GROUP BY rich"
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE people AS {records}")
        [(side, number)] = con.execute(question).fetchall()
    with closing(sdcduck.open_guard(made(tmp_path / "register", records=records, domains=DOMAINS))) as guard:
        found = {row["rich"]: row["n"] for row in guard.sql(question).to_pylist()}
    assert set(found) == {True, False, None}
    assert found.pop(side) == pytest.approx(number, abs=10)
    assert all(abs(count) <= 10 for count in found.values())


@pytest.mark.parametrize(
    "question",
    [
        "SELECT CASE WHEN income > 1000 THEN income END AS rich, count(*) FROM people GROUP BY rich",
        "SELECT income > 1e3 AS rich, count(*) FROM people GROUP BY rich",
        "SELECT income > 0.00001 AS rich, count(*) FROM people GROUP BY rich",
        "SELECT income > age AS rich, count(*) FROM people GROUP BY rich",
        "SELECT income, count(*) FROM people GROUP BY income",
        "SELECT region FROM people WHERE income > 2000",
        "SELECT bool_or(income > 4999) FROM people",
        "SELECT max(income > 4999) FROM people",
        "SELECT min(age) FILTER (WHERE income > 4999) FROM people",
        "SELECT count(*) FROM people WHERE income > age",
        "SELECT count(*) FROM people WHERE 1 / (income - 7) > 3",
        "SELECT count(*) FROM people WHERE income > '2000'",
        "SELECT count(*) FROM people WHERE income > (SELECT 2000)",
        "SELECT count(*) FROM people TABLESAMPLE 10%",
    ],
)
@pytest.mark.parametrize("domains", [DOMAINS, "'private'"])
def test_what_else_is_made_of_a_measure_is_refused(tmp_path: Path, question: str, domains: str) -> None:
    with closing(sdcduck.open_guard(made(tmp_path / "register", domains=domains))) as guard:
        with pytest.raises(Refused):
            guard.sql(question)
        assert guard.sql("SELECT questions FROM (SHOW sdc_budget)").to_pylist() == [{"questions": 0}]


def test_a_border_changes_neither_the_noise_nor_what_is_read_first(guard: Guard) -> None:
    """Whether DuckDB has to read a block of records hangs on its largest value: that would be seen by the clock."""
    by_measure, by_dimension = (
        guard.rewritten(f"SELECT sum(income) FROM people WHERE {column} > 44")[0] for column in ("income", "age")
    )
    assert by_measure.releases[0].columns == by_dimension.releases[0].columns
    assert 'TRY(CAST("people"."income" > 44 AS BOOLEAN))' in by_measure.releases[0].totals


@pytest.mark.parametrize("statistic", ["sum(income)", "var_samp(income)"])
def test_sums_are_whole_steps_and_the_same_of_very_many(guard: Guard, statistic: str) -> None:
    """Of so many records that DOUBLE would not have all digits the same steps are added up as BIGINT."""
    [release] = guard.rewritten(f"SELECT {statistic} FROM people WHERE age > 3")[0].releases
    name = release.totals.split('"."main"')[0].rsplit('"', 1)[1]
    with duckdb.connect() as con:
        con.execute(f"ATTACH ':memory:' AS {name}; USE {name}; CREATE TABLE people AS {RECORDS}")
        [few] = con.execute(release.totals).fetchall()
        [many] = con.execute(of_many(release.totals)).fetchall()
        con.execute("CREATE OR REPLACE TABLE people AS FROM people ORDER BY hash(id)")
        assert con.execute(release.totals).fetchall() == [few]
    assert of_many(release.totals) != release.totals
    assert few == many
    assert all(value == int(value) for value in few)


@pytest.mark.parametrize(
    "ends", [(0.0, 10000.0), (-3.0, 3.0), (10.0, 10.7), (-1e308, 7e307), (5.0, 5.0), (-8.0, -1e-3)]
)
def test_values_within_their_ends_are_those_of_their_definition(ends: tuple[float, float]) -> None:
    """In whole steps of the grid of a sum, for numbers at, near and far beyond the ends, and for what is no number."""
    low, high = ends
    near = [math.nextafter(end, beyond) for end in ends for beyond in (-math.inf, math.inf)]
    values = [
        *ends,
        *near,
        (low + high) / 2,
        0.0,
        -0.0,
        1e-300,
        -1e-300,
        1.7976931348623157e308,
        -1.7976931348623157e308,
    ]
    values += [low - 1, high + 1, 1e17, -1e17]
    none = [math.nan, math.inf, -math.inf, None]
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT unnest($1) AS place, unnest($2) AS x", [list(range(len(values))), values])
        found = con.execute(
            f"SELECT x, {in_steps(within_ends('x', low, high), low, high)[0]} FROM t ORDER BY place"
        ).fetchall()
        con.execute("CREATE OR REPLACE TABLE t AS SELECT unnest($1::DOUBLE[]) AS x", [none])
        assert con.execute(f"SELECT count({within_ends('x', low, high)}) FROM t").fetchall() == [(0,)]
    step = in_steps("x", low, high)[1]
    assert [steps for _, steps in found] == [float(round(min(max(x, low), high) / step)) for x, _ in found]


def test_values_that_are_counted_are_those_that_are_added_up(guard: Guard) -> None:
    """One number, in whatever order it is asked for, and what DuckDB works out for the sum anyway."""
    for question in ("SELECT avg(income), count(income) FROM people", "SELECT count(income), avg(income) FROM people"):
        [release] = guard.rewritten(question)[0].releases
        assert len(release.columns) == 2
        counted = re.search(r"COUNT\((CASE WHEN ABS.* END)\) AS", release.totals)
        assert counted is not None
        assert release.totals.count(counted[1]) == 2


@pytest.mark.parametrize("statistic", ["sum(income)", "avg(income)", "var_samp(income)"])
def test_one_value_beyond_its_bounds_changes_no_plan(guard: Guard, statistic: str) -> None:
    """DuckDB leaves out a comparison that the least and largest value of a column make needless, if it is let."""
    [release] = guard.rewritten(f"SELECT {statistic} FROM people WHERE age > 3")[0].releases
    name = release.totals.split('"."main"')[0].rsplit('"', 1)[1]
    plans = set()
    for income in ("income", "CASE WHEN id = 7 THEN 1e9 ELSE income END"):
        with duckdb.connect(config={"disabled_optimizers": LOCKED.get("disabled_optimizers", "")}) as con:
            con.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
            con.execute(
                f"CREATE TABLE people AS SELECT * REPLACE (CAST({income} AS DOUBLE) AS income) FROM ({RECORDS})"
            )
            plans.add(con.execute(f"EXPLAIN (FORMAT json) {release.totals}").fetchall()[0][1])
    assert len(plans) == 1


def test_another_constant_needs_no_new_rewriting(guard: Guard) -> None:
    """What is drawn for a question depends on its constants in its texts alone: these are filled in."""
    question = "SELECT region, avg(income) FROM people WHERE age > {} AND region <> 'n' GROUP BY region"
    found = asked(question.format(40))
    assert found is not None
    policies = guard._schema.policies(guard._schema.version())

    def rewrite(text: str):  # type: ignore[no-untyped-def]
        return guard._rewritings._rewriter.made(text, policies)

    made_of = template(found, rewrite(question.format(40)), rewrite)
    assert made_of is not None
    other = made_of.filled(["41", "'n'"])
    wanted = rewrite(question.format(41))
    assert [(one.cells, one.totals, one.columns) for one in other.releases] == [
        (one.cells, one.totals, one.columns) for one in wanted.releases
    ]
    assert all(release.stands_for in other.sql for release in other.releases)
