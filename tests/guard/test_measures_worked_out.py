"""Sums of expressions of measures: of parts that agree, or of functions within declared bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import duckdb
import pytest
import visits_database
from own_numbers import GRIDS, own, spread
from people_with_amounts import made
from visits_database import answer, answer_of_duckdb

import sdcduck
from sdcduck.guard import Guard, Refused


@pytest.fixture(scope="module")
def plain() -> Iterator[duckdb.DuckDBPyConnection]:
    with made("threshold") as con:
        yield con


@pytest.fixture(scope="module")
def exact(plain: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(plain)


@pytest.fixture(scope="module")
def keyed() -> Iterator[duckdb.DuckDBPyConnection]:
    with made("cell_key") as con:
        yield con


@pytest.fixture(scope="module")
def noisy(keyed: duckdb.DuckDBPyConnection) -> Guard:
    return sdcduck.open_guard(keyed)


LINEAR = {
    "sum(2 * income)": "2 * sum(income)",
    "sum(income - 10)": "sum(income) - 10 * count(income)",
    "avg(income - 10)": "avg(income) - 10",
    "avg(income / 12)": "avg(income) / 12",
    "sum(-(income + 1) / 4)": "-sum(income) / 4 - count(income) / 4",
    "sum(income + bonus)": "sum(income) + sum(bonus) FILTER (WHERE income IS NOT NULL)",
    "sum(income::DOUBLE - bonus * (1 + 1))": "sum(income) - 2 * sum(bonus) FILTER (WHERE income IS NOT NULL)",
    "count(income + bonus)": "count(income)",
    "sum(income - 10) FILTER (WHERE region = 'n')": "sum(income) FILTER (WHERE region = 'n') - 10 * count(income) FILTER (WHERE region = 'n')",
    "sum(coalesce(income + bonus, 0))": "sum(income) + sum(bonus) FILTER (WHERE income IS NOT NULL)",
    "sum(CASE WHEN region = 'n' THEN income - bonus ELSE 0 END)": "coalesce(sum(income) FILTER (WHERE region = 'n') - sum(bonus) FILTER (WHERE region = 'n' AND income IS NOT NULL), 0)",
    "sum(bonus - coalesce(income, 0))": "sum(bonus) - sum(income)",
    "sum(coalesce(income, bonus))": "sum(income) + sum(bonus) FILTER (WHERE income IS NULL)",
    "count(coalesce(income, bonus))": "count(bonus)",
    "sum(coalesce(income, won, 0) * 3)": "3 * sum(income) + 3 * sum(won) FILTER (WHERE income IS NULL)",
    "avg(coalesce(income, bonus))": "(sum(income) + sum(bonus) FILTER (WHERE income IS NULL)) / count(*)",
    "sum(CASE WHEN region = 'n' THEN bonus - coalesce(income, 0) ELSE 0 END)": "coalesce(sum(bonus) FILTER (WHERE region = 'n') - sum(income) FILTER (WHERE region = 'n'), 0)",
    "avg(CAST(income::DECIMAL(9, 2) AS DECIMAL(12, 3)))": "avg(income)",
    "sum(log10(income))": "sum(ln(income)) / ln(10)",
    "avg(log2(income + 1))": "avg(ln(1 + income)) / ln(2)",
    "sum(bonus * bonus)": "sum(power(bonus, 2))",
    "sum(income * bonus)": "sum(bonus * income)",
    "sum(abs(income))": "sum(income)",
    "sum(3 * ln(income) - sqrt(bonus))": "3 * sum(ln(income)) - sum(sqrt(bonus)) FILTER (WHERE income IS NOT NULL)",
}
"""Sums, and the parts that they are made of."""


@pytest.mark.parametrize("whole", LINEAR)
def test_a_sum_is_that_of_its_parts(plain: duckdb.DuckDBPyConnection, exact: Guard, noisy: Guard, whole: str) -> None:
    """As in DuckDB where nothing is hidden; where there is noise it is that of the parts."""
    for groups in ("", " GROUP BY region", " GROUP BY ROLLUP (region)"):
        key = "region, " if groups else ""
        query, parts = (f"SELECT {key}{number} AS x FROM people{groups}" for number in (whole, LINEAR[whole]))
        assert answer(exact, query) == answer_of_duckdb(plain, query)
        assert answer(noisy, query) == answer(noisy, parts) != answer_of_duckdb(plain, query)


FUNCTIONS = {
    "ln(income)": ("ln income", "ln(income)", math.log(50000)),
    "ln(income + 1)": ("ln of 1 + income", "ln(income + 1)", math.log1p(50000)),
    "sqrt(bonus)": ("sqrt bonus", "sqrt(bonus)", math.sqrt(1000)),
    "power(won, 2)": ("product of won and won", "won * won", 250000.0),
    "abs(won)": ("abs won", "abs(won)", 500.0),
    "won * income": ("product of income and won", "won * income", 25_000_000.0),
}
"""Functions of measures: what their noise is called, what they are in DuckDB, and the largest that they can be."""


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_noise_of_a_function_is_that_of_its_range(
    keyed: duckdb.DuckDBPyConnection, plain: duckdb.DuckDBPyConnection, exact: Guard, noisy: Guard, function: str
) -> None:
    """It is made here with keys of our own, of all who have a value, for the largest contribution that there could be."""
    called, sql, most = FUNCTIONS[function]
    query = f"SELECT region, sum({function}) AS x FROM people GROUP BY region"
    assert answer(exact, query) == answer_of_duckdb(plain, query)
    own_key, of_grid = own(keyed, f"sum of {called}"), own(keyed, f"grid of the sum of {called}") % 99_999_989
    found = dict(noisy.sql(query).to_pydict().items())
    published = dict(zip(found["region"], found["x"], strict=True))
    parts = keyed.cursor().execute(
        f"""SELECT region, sum(round(({sql}) * 1e4)::BIGINT) / 1e4, sum(record_key) FILTER (({sql}) IS NOT NULL)
        FROM people GROUP BY region"""
    )
    noise = []
    for region, value, keys in parts.fetchall():
        # A sum of both signs has the noise of one that is as large as its largest contribution.
        size = value if abs(value) * 1.001 >= most else math.copysign(most, value)
        (moved,) = keyed.cursor().execute(
            "SELECT sdc_ckm_sum(?::DOUBLE, [?::DOUBLE], ?::BIGINT)", [size, most, spread(own_key, int(keys), value)]
        ).fetchone() or (None,)
        share = ((math.floor(most * 1e4 % 99_999_989 + 0.5) + of_grid) % 99_999_989) ** 2 % 99_999_989 / 99_999_989
        finest = 0.02 * most * (1 + 1.5 * share)
        step = min(grid for grid in map(float, GRIDS.split(", ")) if grid >= finest)
        assert moved is not None
        assert published[region] == pytest.approx(round((value + (moved - size)) / step) * step, rel=1e-9)
        noise.append(moved - size)
    assert len(noise) == 3
    assert any(noise)


REFUSED_FUNCTIONS = [
    "greatest(income - 20000, 0)", "least(income, 1)", "income % 10", "income // 1000", "sign(income)", "sign(income - 20000)",
    "abs(income - 20000)", "abs(2 * won)", "ln(income + 2)", "ln(2 * income)", "log(1.5 * income)", "log(0.5, income)",
    "power(income, 3)", "power(income, 1.0001)", "power(income, -1)", "1 / income", "income / bonus", "exp(bonus)", "round(income)",
    "floor(income / 20000)", "round(won)", "income::INTEGER::BOOLEAN::INTEGER", "sin(income)", "income * bonus * won", "income * income * income",
    "sqrt(income + 1)", "sqrt(abs(won))", "income & 1", "xor(income, 1)", "bit_count(income)",
    "CASE WHEN income < 9999 THEN income ELSE 0 END", "CASE WHEN income % 2 = 0 THEN 1 ELSE 0 END", "nullif(income, 10000)",
    "coalesce(nullif(income, 10000), 1)", "(income > bonus)::INTEGER", "length(income::VARCHAR)", "hash(income)", "ln(won)", "sqrt(won)", "ln(bonus)",
    "income / 0", "income / (1 - 1)", "coalesce(income, 10000)", "coalesce(income, bonus, 1)", "coalesce(income, region = 's', 0)",
    "coalesce(income, length(region), 0)", "bonus - coalesce(income, 1)", "income::DECIMAL(9, 2)::DECIMAL(4, 0)",
]  # fmt: skip
"""What would make a condition of a measure, or as many draws of noise as one likes."""


@pytest.mark.parametrize("function", REFUSED_FUNCTIONS)
def test_no_function_that_could_be_a_condition(noisy: Guard, function: str) -> None:
    for query in ("SELECT sum({}) AS x FROM people", "SELECT sum(v) AS x FROM (SELECT {} AS v FROM people)"):
        try:
            answered = noisy.sql(query.format(function)).to_pylist()
        except Refused:
            continue
        assert function.startswith("income / "), function
        assert answered == [{"x": None}]


def test_functions_need_bounds() -> None:
    with made("cell_key", "") as con:
        guard = sdcduck.open_guard(con)
        for function in ("ln(income)", "ln(income + 1)", "sqrt(bonus)", "abs(won)", "won * bonus", "won * won"):
            with pytest.raises(Refused, match=r"sdc_protect\(.., bounds := "):
                guard.sql(f"SELECT sum({function}) AS x FROM people")
        assert guard.sql("SELECT sum(won - 1) AS x, avg(income + bonus) AS y FROM people").num_rows == 1


@pytest.mark.parametrize(
    ("bounds", "function", "said"),
    [
        ("[0, 100]", "ln(income)", r"values above 0, .* begin at 0; ln\(income \+ 1\) takes 0"),
        ("[-1, 100]", "sqrt(income)", r"values of 0 or more, and the bounds of 'income' begin at -1"),
        ("[-1, 100]", "ln(income + 1)", r"values of 0 or more, and the bounds of 'income' begin at -1"),
        ("[1, 1.01]", "ln(income)", "less than 0.1"),
        ("[0, 1e9]", "income * income", "more than 9e14"),
    ],
)
def test_bounds_have_to_fit(bounds: str, function: str, said: str) -> None:
    with made("cell_key", f"bounds := {{'income': {bounds}}}") as con, pytest.raises(Refused, match=said):
        sdcduck.open_guard(con).sql(f"SELECT sum({function}) AS x FROM people")


def test_values_count_as_the_bounds_that_they_are_beyond() -> None:
    with made("threshold", "bounds := {'income': [5000, 30000], 'won': [-10, 20]}") as con:
        con.execute("UPDATE people SET won = 'nan' WHERE id = 1; UPDATE people SET won = '-inf' WHERE id = 2")
        found = (
            sdcduck.open_guard(con).sql("SELECT avg(ln(income)) AS a, sum(abs(won)) AS b FROM people").to_pylist()[0]
        )
        wanted = con.execute("""SELECT avg(ln(least(greatest(income, 5000), 30000))) FILTER (income IS NOT NULL),
            sum(abs(least(greatest(won, -10), 20))) FROM people""").fetchone()
    assert wanted is not None
    assert [found["a"], found["b"]] == pytest.approx(wanted)


SUBQUERIES = {
    "SELECT region, sum(v) AS x FROM (SELECT region, income * (1 - discount) AS v FROM people) GROUP BY region":
        "SELECT region, sum(income * (1 - discount)) AS x FROM people GROUP BY region",
    "WITH t AS (SELECT *, income - bonus AS net FROM people), u AS (SELECT region, net / 12 AS monthly FROM t) SELECT region, sum(monthly) AS x, avg(monthly) AS y, count(monthly) AS n FROM u GROUP BY region HAVING sum(monthly) > 0":
        "SELECT region, sum(income - bonus) / 12 AS x, avg(income - bonus) / 12 AS y, count(income - bonus) AS n FROM people GROUP BY region HAVING sum(income - bonus) > 0",
    "SELECT sum(income) AS x, sum(income_2) AS y FROM (SELECT income + 1 AS income, bonus AS income_2 FROM people)":
        "SELECT sum(income + 1) AS x, sum(bonus) AS y FROM people",
    "SELECT sum(v) AS x FROM (SELECT CASE WHEN income >= 10000 THEN income - 10000 ELSE 0 END AS v FROM people)":
        "SELECT sum(CASE WHEN income >= 10000 THEN income - 10000 ELSE 0 END) AS x FROM people",
    "SELECT b, avg(v) AS x FROM (SELECT ln(income) AS v, income >= 10000 AS b FROM people) GROUP BY b":
        "SELECT income >= 10000 AS b, avg(ln(income)) AS x FROM people GROUP BY b",
    "SELECT sum(t.v) AS x FROM people p LEFT JOIN (SELECT id, income * 2 AS v FROM people WHERE region = 'n') t ON t.id = p.id":
        "SELECT 2 * sum(income) AS x FROM people WHERE region = 'n'",
    "SELECT sum(t.v) AS x FROM (SELECT income * 2 AS v, region FROM people) t WHERE region IN (SELECT t.v FROM (SELECT 'n' AS v) t)":
        "SELECT sum(income * 2) AS x FROM people WHERE region = 'n'",
}  # fmt: skip


@pytest.mark.parametrize("query", SUBQUERIES)
def test_a_subquery_that_works_a_measure_out_is_another_way_to_write_it(
    noisy: Guard, exact: Guard, plain: duckdb.DuckDBPyConnection, query: str
) -> None:
    assert answer(noisy, query) == answer(noisy, SUBQUERIES[query]) != []
    if "discount" not in query:
        assert answer(exact, query) == answer_of_duckdb(plain, query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v, count(*) AS n FROM (SELECT income * 2 AS v FROM people) GROUP BY v",
        "SELECT v FROM (SELECT income * 2 AS v FROM people)",
        "SELECT count(*) AS n FROM (SELECT income * 2 AS v FROM people) WHERE v >= 20000",
        "SELECT sum(v) AS x FROM (SELECT income * 2 AS v FROM people UNION ALL SELECT bonus FROM people)",
        "SELECT v, count(*) AS n FROM (SELECT coalesce(income, bonus) AS v FROM people) GROUP BY v",
        "SELECT avg(v) AS x FROM (SELECT DISTINCT income * 2 AS v FROM people)",
        "SELECT avg(v) AS x FROM (SELECT income * 2 AS v FROM people LIMIT 5)",
        "SELECT avg(v) AS x FROM (SELECT income * 2 AS v FROM people ORDER BY income)",
        "SELECT max(v) AS x FROM (SELECT income * 2 AS v FROM people)",
        "SELECT sum(t.v) AS x FROM people p LEFT JOIN (SELECT id, coalesce(income, 0) AS v FROM people) t ON t.id = p.id",
        "SELECT count(*) AS n FROM (SELECT income * 2 AS v, region FROM people) t WHERE EXISTS (SELECT 1 FROM (VALUES (20000)) y(z) WHERE y.z = t.v)",
    ],
)
def test_what_is_worked_out_is_still_a_measure(noisy: Guard, query: str) -> None:
    with pytest.raises(Refused):
        noisy.sql(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT diagnosis, sum(cost - 1) AS a, avg(cost + wide) AS b, sum(cost + fee) AS c, count(cost - 1) AS d FROM visits GROUP BY diagnosis",
        "SELECT diagnosis, sum(ln(cost)) AS a, avg(ln(cost)) AS b, sum(abs(fee)) AS c, sum(cost * fee) AS d FROM visits GROUP BY diagnosis",
        "SELECT region, sum(cost - income) AS x FROM patients JOIN visits USING (id) GROUP BY region",
        "SELECT sum(total - 1) AS x FROM (SELECT id, sum(cost) AS total FROM visits GROUP BY id)",
        "SELECT region, sum(net) AS x FROM (SELECT region, cost - fee AS net FROM visits JOIN patients USING (id)) GROUP BY region",
    ],
)
def test_where_a_unit_has_several_rows(query: str) -> None:
    for method in ("threshold", "cell_key"):
        con, guard = _visits_with_bounds(method)
        guarded, wanted = answer(guard, query), answer_of_duckdb(con, query)
        assert (guarded == wanted) == (method == "threshold")
        assert len(guarded) == len(wanted)


@cache
def _visits_with_bounds(method: str) -> tuple[duckdb.DuckDBPyConnection, Guard]:
    con = visits_database.made(method)
    con.execute(
        "FROM sdc_protect('visits', unit := 'id', dimensions := ['diagnosis', 'day'], measures := ['cost', 'fee', 'wide'], "
        f"population := 'persons', {visits_database.METHODS[method]}, bounds := {{'cost': [1, 200], 'fee': [-1, 3]}})"
    ).fetchall()
    return con, sdcduck.open_guard(con)


def test_under_rounding_sums_are_refused_for_its_own_reason() -> None:
    with made("rounding") as con:
        guard = sdcduck.open_guard(con)
        for number in ("sum(income - 1)", "avg(income + bonus)", "sum(ln(income))", "sum(income * (1 - discount))"):
            with pytest.raises(Refused, match=r"SDC052.*rounding answers counts"):
                guard.sql(f"SELECT {number} AS x FROM people")
        assert guard.sql("SELECT count(income - 1) AS n FROM people").num_rows == 1


def test_under_suppression_sums_of_sums_follow() -> None:
    with made("threshold") as con:
        con.execute("UPDATE people SET income = 5000 WHERE income IS NULL")
        con.execute(
            "FROM sdc_publish('amounts', 'SELECT region, band, discount, count(*) AS n, sum(income) AS income, sum(bonus) AS bonus, sum(won) AS won "
            "FROM people GROUP BY GROUPING SETS ((region, band), (region, discount))', max_count := 2)"
        ).fetchall()
        protect = "FROM sdc_protect('people', unit := 'id', dimensions := ['region', 'band', 'discount'], measures := ['income', 'bonus'], method := 'suppression', publication := 'amounts'{})"
        con.execute(protect.format("")).fetchall()
        guard = sdcduck.open_guard(con)
        query = "SELECT region, sum(2 * income - bonus + 3) AS x, avg(income - bonus) AS y, count(income + bonus) AS n FROM people GROUP BY region"
        assert answer(guard, query) == answer_of_duckdb(con, query)
        for number, said in {
            "sum(ln(income))": "a publication has sums of cells",
            "sum(income * bonus)": "a publication has sums of cells",
            "sum(income * discount)": "GROUP BY the dimension",
            "count(*) FILTER (WHERE income < 10000)": "of a publication, bands are dimensions where it has a column of them",
        }.items():
            with pytest.raises(Refused, match=said):
                guard.sql(f"SELECT {number} AS x FROM people")
        for argument in ("bounds := {'income': [0, 1]}", "bands := {'income': [0, 1]}"):
            with pytest.raises(duckdb.Error, match="does not go with method := 'suppression'"):
                con.execute(protect.format(f", {argument}"))
