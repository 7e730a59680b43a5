"""Variances, correlations, modes and lists of dimensions: what follows from the published groups, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import duckdb
import pytest

import sdcduck
from sdcduck.guard import Guard, Refused

EQUAL = [
    "SELECT region, bool_or(age > 50), bool_and(age > 3), bool_and(age > 30) FILTER (WHERE age > 40) FROM patients GROUP BY region",
    "SELECT region, bool_or(age > 50 ORDER BY age), bool_and(age > 3 ORDER BY region DESC, age) FROM patients GROUP BY region",
    "SELECT seen, count(*) FROM (SELECT id, bool_or(diagnosis = 'flu' ORDER BY day) AS seen FROM visits GROUP BY id) GROUP BY seen",
    "SELECT string_agg(DISTINCT region, ', ' ORDER BY region DESC) FROM patients",
    "SELECT region, string_agg(DISTINCT (age // 10)::VARCHAR, ',' ORDER BY (age // 10)::VARCHAR) FROM patients GROUP BY region",
    "SELECT list(DISTINCT region ORDER BY region), array_agg(DISTINCT age ORDER BY age DESC) FROM patients",
    "SELECT region, sum(DISTINCT age), avg(DISTINCT age), sum(DISTINCT age / 8), avg(DISTINCT age % 7) FILTER (WHERE age > 30) FROM patients GROUP BY region",
    "SELECT sum(DISTINCT w * 1.5) FROM patients JOIN ages USING (age)",
    "SELECT mode(age) FROM (SELECT age FROM patients WHERE age = 22 OR age = 24)",
    "SELECT n, bool_or(seen > 6) FROM (SELECT id, count(*) AS n, min(month(day)) AS seen FROM visits GROUP BY id) GROUP BY n",
]  # fmt: skip


@pytest.mark.parametrize("query", EQUAL)
def test_with_nothing_to_hide_it_is_what_duckdb_says(same_as_duckdb: Callable[[str], None], query: str) -> None:
    same_as_duckdb(query)


@pytest.mark.parametrize("of", ["age // 20", "region", "nullif(age % 3, 1)"])
def test_a_histogram_is_what_group_by_publishes(exact: Guard, noisy: Guard, of: str) -> None:
    """NULL is no value of it, as in DuckDB, and of nobody there is none."""
    for guard in (exact, noisy):
        counts = [
            row
            for key in ("region", "NULL::VARCHAR AS region")
            for row in guard.sql(f"SELECT {key}, {of} AS v, count(*) AS n FROM patients GROUP BY ALL").to_pylist()
            if row["v"] is not None
        ]
        found = guard.sql(f"SELECT region, histogram({of}) AS h FROM patients GROUP BY ROLLUP (region)").to_pylist()
        assert len(found) == 4
        for row in found:
            of_region = sorted((one["v"], one["n"]) for one in counts if one["region"] == row["region"])
            assert row["h"] == (of_region or None)
        empty = guard.sql(f"SELECT histogram({of}) FILTER (WHERE age > 900) AS h FROM patients").to_pylist()
        assert empty == [{"h": None}]


FAR = "1577836800 + age * 86400"  # seconds since 1970, as of dates
_FAR = [
    f"var_pop({FAR})", f"stddev({FAR})", f"skewness({FAR})", f"kurtosis({FAR})", f"corr({FAR}, age)", f"covar_samp({FAR}, age)",
    f"regr_slope(age, {FAR})", f"regr_intercept(age, {FAR})", f"regr_slope({FAR}, age)", f"regr_intercept({FAR}, age)",
    f"regr_r2({FAR}, age % 7)", f"regr_avgx(age, {FAR})", f"regr_sxx(age, {FAR})", f"regr_sxy({FAR}, age)", f"regr_syy({FAR}, age)",
]  # fmt: skip


@pytest.mark.parametrize("statistic", _FAR)
def test_figures_far_from_zero_keep_their_digits(exact: Guard, noisy: Guard, statistic: str) -> None:
    """What does not depend on where they lie is that of the same figures near 0; a line through them, on both sides."""
    near = statistic.replace(FAR, "age * 86400")
    moved = {
        f"regr_intercept(age, {FAR})": "regr_intercept(age, age * 86400) - 1577836800 * regr_slope(age, age * 86400)",
        f"regr_intercept({FAR}, age)": "regr_intercept(age * 86400, age) + 1577836800",
        f"regr_avgx(age, {FAR})": "regr_avgx(age, age * 86400) + 1577836800",
    }.get(statistic, near)
    for guard in (exact, noisy):
        rows = guard.sql(
            f"SELECT region, {statistic} AS a, {moved} AS b FROM patients GROUP BY ROLLUP (region)"
        ).to_pylist()
        assert len(rows) == 4
        for row in rows:
            assert row["a"] == pytest.approx(row["b"], rel=1e-10, abs=1e-10)


STATISTICS = [
    ("var_pop(age)", "sum(n * age * age) / sum(n) - (sum(n * age) / sum(n)) ** 2"),
    ("var_samp(age)", "(sum(n * age * age) - sum(n * age) ** 2 / sum(n)) / (sum(n) - 1)"),
    ("stddev(age)", "sqrt((sum(n * age * age) - sum(n * age) ** 2 / sum(n)) / (sum(n) - 1))"),
    ("stddev_pop(age)", "sqrt(sum(n * age * age) / sum(n) - (sum(n * age) / sum(n)) ** 2)"),
    ("covar_pop(age, w)", "sum(n * age * w) / sum(n) - sum(n * age) / sum(n) * sum(n * w) / sum(n)"),
    ("covar_samp(age, w)", "(sum(n * age * w) - sum(n * age) * sum(n * w) / sum(n)) / (sum(n) - 1)"),
    ("regr_slope(age, w)", "(sum(n * age * w) - sum(n * age) * sum(n * w) / sum(n)) / (sum(n * w * w) - sum(n * w) ** 2 / sum(n))"),
    ("corr(age, w)", "(sum(n * age * w) - sum(n * age) * sum(n * w) / sum(n)) / sqrt((sum(n * w * w) - sum(n * w) ** 2 / sum(n)) * (sum(n * age * age) - sum(n * age) ** 2 / sum(n)))"),
    ("regr_r2(age, w)", "((sum(n * age * w) - sum(n * age) * sum(n * w) / sum(n)) ** 2 / ((sum(n * w * w) - sum(n * w) ** 2 / sum(n)) * (sum(n * age * age) - sum(n * age) ** 2 / sum(n))))"),
]  # fmt: skip


@pytest.mark.parametrize(("statistic", "formula"), STATISTICS)
def test_a_statistic_is_that_of_the_published_counts(noisy: Guard, statistic: str, formula: str) -> None:
    records = "FROM patients JOIN ages USING (age) WHERE age > 30"
    of = "age, w" if "w)" in statistic else "age"
    counts = f"(SELECT region, {of}, count(*) AS n {records} GROUP BY ALL)"
    wanted = noisy.sql(f"SELECT region, {formula} AS x FROM {counts} GROUP BY region ORDER BY region").to_pylist()
    found = noisy.sql(f"SELECT region, {statistic} AS x {records} GROUP BY region ORDER BY region").to_pylist()
    assert len(found) == 3
    for row, expected in zip(found, wanted, strict=True):
        assert row == {"region": expected["region"], "x": pytest.approx(expected["x"], rel=1e-6)}


@pytest.mark.parametrize("value", ["age", "age * age / 7.0", "nullif(age % 4, 0)"])
def test_the_shape_of_a_dimension_is_that_of_the_published_counts(noisy: Guard, value: str) -> None:
    """As DuckDB works it out of as many rows as are published for each value."""
    counts = noisy.sql(f"SELECT region, {value} AS v, count(*) AS n FROM patients GROUP BY ALL")
    with duckdb.connect() as con:
        con.register("counts", counts)
        rows = "(SELECT region, v::DOUBLE AS v FROM counts, range(n))"
        wanted = con.execute(
            f"SELECT region, skewness(v), kurtosis(v) FROM {rows} GROUP BY region ORDER BY 1"
        ).fetchall()
    asked = (
        f"SELECT region, skewness({value}) AS s, kurtosis({value}) AS k FROM patients GROUP BY region ORDER BY region"
    )
    found = [tuple(row.values()) for row in noisy.sql(asked).to_pylist()]
    assert [row[0] for row in found] == ["e", "n", "s"]
    assert [row[1:] for row in found] == [pytest.approx(row[1:], rel=1e-6, abs=1e-6) for row in wanted]


def test_of_few_or_of_equal_values_there_is_no_shape(noisy: Guard) -> None:
    """Those of one value, and of nobody."""
    for condition in ("age = 30", "age > 900"):
        asked = f"SELECT skewness(age) AS s, kurtosis(age) AS k FROM patients WHERE {condition}"
        assert noisy.sql(asked).to_pylist() == [{"s": None, "k": None}]


@pytest.mark.parametrize(
    ("of", "code"),
    [
        ("income", "SDC052"),
        ("age + income", "SDC052"),
        ("id", "SDC040"),
        ("region", "SDC052"),
        ("DISTINCT age", "SDC051"),
    ],
)
def test_of_measures_units_and_texts_there_is_no_shape(noisy: Guard, of: str, code: str) -> None:
    for asked in ("skewness", "kurtosis"):
        with pytest.raises(Refused, match=code):
            noisy.sql(f"SELECT {asked}({of}) FROM patients")


def test_a_slope_over_a_measure_is_that_of_published_sums(noisy: Guard) -> None:
    by_age = "(SELECT age, count(income) AS n, sum(income) AS m FROM patients GROUP BY age)"
    slope = "(sum(age * m) - sum(n * age) * sum(m) / sum(n)) / (sum(n * age * age) - sum(n * age) ** 2 / sum(n))"
    wanted = noisy.sql(f"SELECT {slope} AS s, (sum(m) - {slope} * sum(n * age)) / sum(n) AS i FROM {by_age}")
    found = noisy.sql("SELECT regr_slope(income, age) AS s, regr_intercept(income, age) AS i FROM patients")
    assert found.to_pylist() == [pytest.approx(wanted.to_pylist()[0], rel=1e-9)]


@pytest.mark.parametrize(("of", "condition"), [("", "TRUE"), ("FILTER (WHERE age > 30)", "age > 30")])
def test_a_correlation_with_a_measure_is_made_of_numbers_that_are_answered(
    noisy: Guard, of: str, condition: str
) -> None:
    """Which column comes first is the same, and a copy of it that is NULL for some is about the others."""
    known = "nullif(age % 10, 3)"
    for x in ("age", known):
        asked = f"corr(income, {x}) {of} AS c, corr({x}, income) {of} AS d, regr_r2(income, {x}) {of} AS r"
        parts = (
            f"regr_slope(income, {x}) AS s, covar_pop(income, {x}) AS k, "
            f"var_pop(income) FILTER (WHERE {x} IS NOT NULL) AS v"
        )
        wanted = noisy.sql(
            f"SELECT region, sign(s) * sqrt(s * k / v) AS c, sign(s) * sqrt(s * k / v) AS d, s * k / v AS r FROM "
            f"(SELECT region, {parts} FROM patients WHERE {condition} GROUP BY region) ORDER BY region"
        ).to_pylist()
        found = noisy.sql(f"SELECT region, {asked} FROM patients GROUP BY region ORDER BY region").to_pylist()
        assert [row.pop("region") for row in found] == [row.pop("region") for row in wanted] == ["e", "n", "s"]
        assert found == [pytest.approx(row, rel=1e-9) for row in wanted]
        assert all(0 < abs(row["c"]) < 1 for row in found)


def test_a_correlation_is_near_that_of_the_records() -> None:
    """Of many people, of whom the older earn more, under cell keys."""
    with closing(sdcduck.connect(secret="7" * 64)) as con:
        con.execute("""CREATE TABLE people AS SELECT i AS id, i % 50 AS age, i % 50 * 20 + i * 7919 % 1000 AS income
            FROM range(20_000) t(i)""")
        con.execute("FROM sdc_add_record_key('people', unit := 'id')").fetchall()
        con.execute(
            "FROM sdc_protect('people', unit := 'id', dimensions := ['age'], measures := ['income'])"
        ).fetchall()
        asked = "SELECT corr(income, age) AS c, regr_r2(income, age) AS r FROM people"
        found = sdcduck.open_guard(con).sql(asked).to_pylist()[0]
        wanted = con.execute(asked).fetchone()
        assert wanted is not None
        assert (found["c"], found["r"]) == pytest.approx(wanted, abs=0.02)


def test_the_length_of_a_text_is_a_number(noisy: Guard) -> None:
    by_length = "(SELECT strlen(diagnosis) AS l, count(*) AS n FROM visits GROUP BY l)"
    wanted = noisy.sql(f"SELECT sum(l * n) / sum(n) AS x FROM {by_length}").to_pylist()
    assert noisy.sql("SELECT avg(strlen(diagnosis)) AS x FROM visits").to_pylist() == [pytest.approx(wanted[0])]


def test_parts_agree(noisy: Guard) -> None:
    """A list has the groups that appear, a mode is the largest of them, and a variance goes with the mean."""
    listed = noisy.sql("SELECT list(DISTINCT age ORDER BY age) AS x FROM patients WHERE region = 'n'").to_pylist()
    groups = noisy.sql(
        "SELECT age, count(*) AS n FROM patients WHERE region = 'n' GROUP BY age ORDER BY age"
    ).to_pylist()
    assert listed == [{"x": [row["age"] for row in groups]}]
    largest = max(row["n"] for row in groups)
    mode = noisy.sql("SELECT mode(age) AS x FROM patients WHERE region = 'n'").to_pylist()
    assert mode == [{"x": min(row["age"] for row in groups if row["n"] == largest)}]
    rollup = noisy.sql("SELECT region, stddev(age) AS s FROM patients GROUP BY ROLLUP (region)").to_pylist()
    alone = noisy.sql("SELECT stddev(age) AS s FROM patients WHERE region = 'n'").to_pylist()
    assert {row["region"]: row["s"] for row in rollup}["n"] == alone[0]["s"]


@pytest.mark.parametrize("condition", ["age = 9999", "age = 40"])
def test_values_that_do_not_vary_have_no_correlation(noisy: Guard, condition: str) -> None:
    """Also nobody's: NULL, and not 1."""
    query = f"SELECT corr(age, age % 12) AS x FROM patients WHERE {condition}"
    assert noisy.sql(query).to_pylist() == [{"x": None}]


REFUSED = [
    ("mode(income)", "SDC050"),
    ("mode(id)", "SDC050"),
    ("bool_or(income > 50)", "SDC050"),
    ("list(DISTINCT income)", "SDC050"),
    ("list(DISTINCT id)", "SDC050"),
    ("list(region)", "SDC050"),
    ("string_agg(region, ',')", "SDC050"),
    ("list(DISTINCT region ORDER BY age)", "SDC050"),
    ("string_agg(DISTINCT region, ',' ORDER BY income)", "SDC050"),
    ("stddev(id)", "SDC040"),
    ("stddev(DISTINCT age)", "SDC05"),
    ("sum(DISTINCT income)", "SDC051"),
    ("avg(DISTINCT id)", "SDC051"),
    ("sum(DISTINCT region)", "SDC05"),
    ("histogram(income)", "SDC050"),
    ("histogram(id)", "SDC050"),
    ("histogram(DISTINCT region)", "SDC050"),
    ("histogram(age, [20, 40])", "SDC050"),
    ("corr(income * 2, age)", "SDC052"),
    ("corr(id, income)", "SDC04"),
    ("corr(income, income)", "SDC041.*bounds"),
    ("regr_slope(income * 2, age)", "SDC052"),
    ("covar_pop(income, income)", "SDC041.*bounds"),
    ("covar_pop(id, age)", "SDC04"),
    ("corr(region, age)", "SDC052"),
    ("string_agg(DISTINCT region, region)", "SDC052"),
    ("string_agg(DISTINCT region, (SELECT min(region) FROM patients))", "SDC052"),
]


@pytest.mark.parametrize(("aggregate", "code"), REFUSED)
def test_others_are_refused(noisy: Guard, aggregate: str, code: str) -> None:
    with pytest.raises(Refused, match=code):
        noisy.sql(f"SELECT {aggregate} FROM patients")
