"""Correlations, lines and means that are written in other answers, of measures and dimensions in either place."""

from __future__ import annotations

import math

import duckdb
import pytest
from people_with_amounts import LIMITS, looked_at, made

import sdcduck
from sdcduck.guard import Refused

BOTH = "(WHERE {y} IS NOT NULL AND {x} IS NOT NULL)"
MEANS = "avg({x}) FILTER (WHERE {y} IS NOT NULL)", "avg({y}) FILTER (WHERE {x} IS NOT NULL)"
SPREADS = "var_pop({x}) FILTER (WHERE {y} IS NOT NULL)", "var_pop({y}) FILTER (WHERE {x} IS NOT NULL)"
COVARIANCE = f"(avg({{y}} * {{x}}) - {MEANS[1]} * {MEANS[0]})"
ROWS = f"count(*) FILTER {BOTH}"
PAIRS = {
    "covar_pop": COVARIANCE,
    "covar_samp": f"{COVARIANCE} * {ROWS} / ({ROWS} - 1)",
    "corr": f"{COVARIANCE} / sqrt({SPREADS[0]} * ({SPREADS[1]}))",
    "regr_r2": f"pow({COVARIANCE}, 2) / ({SPREADS[0]} * ({SPREADS[1]}))",
    "regr_slope": f"{COVARIANCE} / {SPREADS[0]}",
    "regr_intercept": f"{MEANS[1]} - {COVARIANCE} / {SPREADS[0]} * ({MEANS[0]})",
    "regr_avgx": MEANS[0],
    "regr_avgy": MEANS[1],
    "regr_count": ROWS,
    "regr_sxx": f"{ROWS} * ({SPREADS[0]})",
    "regr_syy": f"{ROWS} * ({SPREADS[1]})",
    "regr_sxy": f"{ROWS} * {COVARIANCE}",
}


def rows(method: str, query: str) -> list[dict[str, object]]:
    return looked_at(method)[1].sql(query).to_pylist()


@pytest.mark.parametrize("name", PAIRS)
def test_two_measures_follow_from_what_is_answered(name: str) -> None:
    """Under cell keys, by region, in both places, with people of whom one is not known."""
    for y, x in (("income", "bonus"), ("won", "income")):
        formula = PAIRS[name].format(y=y, x=x)
        asked = "SELECT region, {} AS found FROM people GROUP BY region ORDER BY region"
        found, wanted = rows("cell_key", asked.format(f"{name}({y}, {x})")), rows("cell_key", asked.format(formula))
        assert len(found) == 3
        for one, other in zip(found, wanted, strict=True):
            assert one == {"region": other["region"], "found": pytest.approx(other["found"], rel=1e-9)}
        true = looked_at("cell_key")[0].execute(asked.format(f"{name}({y}, {x})")).fetchall()
        if name in ("regr_avgx", "regr_count", "regr_sxx", "regr_syy"):
            assert [row["found"] for row in found] == pytest.approx([row[1] for row in true], rel=0.1)


@pytest.mark.parametrize("name", ["regr_count", "regr_avgx", "regr_avgy"])
def test_exact_means_are_those_of_duckdb(name: str) -> None:
    con, guard = looked_at("threshold")
    for query in (f"SELECT {name}(income, bonus) AS n FROM people", f"SELECT {name}(won, income) AS n FROM people"):
        assert guard.sql(query).to_pylist()[0]["n"] == pytest.approx(con.execute(query).fetchall()[0][0], rel=1e-6)


def test_a_correlation_of_many_is_near_the_true_one() -> None:
    """The noise of the product is a share of what the bounds allow: with 30,000 records it hardly shows."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        con.execute("""CREATE TABLE people AS SELECT i AS id, i % 50 AS age, sdc_record_key(i) AS record_key,
            (hash(i) % 1000)::DOUBLE AS a, (hash(i) % 1000 + hash(i, 1) % 1000) / 2 AS b,
            (1000 - hash(i) % 1000)::INTEGER AS c FROM range(30000) r(i)""")
        con.execute("""FROM sdc_protect('people', unit := 'id', dimensions := ['age'], measures := ['a', 'b', 'c'],
            bounds := {'a': [0, 1000], 'b': [0, 1000], 'c': [0, 1000]})""").fetchall()
        guard = sdcduck.open_guard(con)
        asked = "SELECT corr(a, b), corr(b, a), corr(a, c), regr_r2(a, b), regr_slope(b, a), regr_intercept(b, a) FROM people"
        found = list(guard.sql(asked).to_pylist()[0].values())
        true = con.execute(asked).fetchall()[0]
        assert found[0] == found[1]
        assert found[2] >= -1
        assert found == pytest.approx(true, abs=0.02, rel=0.05)
        # Over nobody there is none, as in DuckDB.
        assert [*guard.sql(f"{asked} WHERE age > 900").to_pylist()[0].values()] == [None] * 6
        assert guard.sql("SELECT regr_count(a, b) AS n FROM people WHERE age > 900").to_pylist() == [{"n": 0}]


DIMENSION_FIRST = {
    "corr": "corr", "regr_r2": "regr_r2", "covar_pop": "covar_pop", "covar_samp": "covar_samp",
    "regr_count": "regr_count", "regr_avgx": "regr_avgy", "regr_avgy": "regr_avgx", "regr_sxx": "regr_syy",
    "regr_syy": "regr_sxx", "regr_sxy": "regr_sxy",
}  # fmt: skip


def test_a_dimension_may_be_the_first_of_two() -> None:
    turned = ", ".join(f"{name}(discount, income)" for name in DIMENSION_FIRST)
    straight = ", ".join(f"{name}(income, discount)" for name in DIMENSION_FIRST.values())
    one, other = (list(rows("cell_key", f"SELECT {asked} FROM people")[0].values()) for asked in (turned, straight))
    assert one == other
    assert None not in one
    slope = rows(
        "cell_key",
        "SELECT regr_slope(discount, income) AS s, covar_pop(income, discount) / var_pop(income) AS w, "
        "regr_intercept(discount, income) AS i, regr_avgx(income, discount) AS x, avg(income) AS y FROM people",
    )[0]
    assert slope["s"] == pytest.approx(slope["w"])
    assert abs(slope["i"] - (slope["x"] - slope["s"] * slope["y"])) < 0.02  # type: ignore[operator]


def test_a_line_over_a_dimension_is_that_of_the_sums_of_its_values() -> None:
    by_value = "(SELECT discount AS x, count(income) AS n, sum(income) AS s FROM people GROUP BY discount)"
    formulas = {
        "regr_count": "sum(n)", "regr_avgx": "sum(n * x) / sum(n)", "regr_avgy": "sum(s) / sum(n)",
        "regr_sxx": "sum(n * x * x) - sum(n * x) ** 2 / sum(n)", "regr_sxy": "sum(s * x) - sum(n * x) * sum(s) / sum(n)",
    }  # fmt: skip
    found = rows("cell_key", f"SELECT {', '.join(f'{name}(income, discount)' for name in formulas)} FROM people")
    wanted = rows("cell_key", f"SELECT {', '.join(formulas.values())} FROM {by_value}")
    assert [*found[0].values()] == pytest.approx([*map(float, wanted[0].values())], rel=1e-9)
    assert rows("cell_key", "SELECT regr_count(income, discount) AS n FROM people WHERE region = 'q'") == [{"n": 0}]


NAMED = {
    "sem(income)": "stddev_pop(income) / sqrt(count(income))",
    "sem(discount)": "stddev_pop(discount) / sqrt(count(discount))",
    "geomean(income)": "exp(avg(ln(income)))",
    "geometric_mean(income)": "exp(avg(ln(income)))",
    "weighted_avg(bonus, income)": "sum(bonus * income) / sum(income)",
    "wavg(income, discount)": "sum(income * discount) / sum(discount) FILTER (WHERE income IS NOT NULL)",
    "weighted_avg(discount, income)": "sum(discount * income) / sum(income)",
}


@pytest.mark.parametrize("asked", NAMED)
def test_means_of_other_names(asked: str) -> None:
    found, wanted = (rows("cell_key", f"SELECT {one} AS x FROM people") for one in (asked, NAMED[asked]))
    assert found[0]["x"] == pytest.approx(wanted[0]["x"], rel=1e-9)
    true = looked_at("cell_key")[0].execute(f"SELECT {asked} FROM people").fetchall()[0][0]
    assert found[0]["x"] == pytest.approx(true, rel=0.1)


def test_entropy_and_geometric_mean_of_dimensions() -> None:
    """Of what is published for each value; 0 makes a mean 0, and a negative value none."""
    counts = [row["n"] for row in rows("cell_key", "SELECT region, count(*) AS n FROM people GROUP BY region")]
    shares = [n / sum(counts) for n in counts]  # type: ignore[type-var, operator, call-overload]
    found = rows("cell_key", "SELECT entropy(region) AS e, entropy(region || discount) AS more FROM people")[0]
    assert found["e"] == pytest.approx(-sum(share * math.log2(share) for share in shares))
    assert found["more"] == pytest.approx(math.log2(24), abs=0.01)
    asked = "SELECT geomean(discount + 1) AS a, geomean(discount) AS b, geomean(discount - 1) AS c, entropy(region) FILTER (WHERE region = 'q') AS d FROM people"
    of_values = rows("cell_key", "SELECT discount AS x, count(*) AS n FROM people GROUP BY discount")
    total = sum(row["n"] for row in of_values)  # type: ignore[misc]
    mean = math.exp(sum(row["n"] * math.log(row["x"] + 1) for row in of_values) / total)  # type: ignore[operator, misc]
    found = rows("cell_key", asked)[0]
    assert (found["a"], found["b"], found["d"]) == (pytest.approx(mean), 0, 0)
    assert math.isnan(found["c"])  # type: ignore[arg-type]


OF_FIGURES = ("weighted_avg(income, discount)", "entropy(region)", "regr_sxx(income, discount)", "sem(discount)")


@pytest.mark.parametrize("asked", OF_FIGURES)
def test_what_follows_from_counts_of_figures_is_exact_under_a_threshold(asked: str) -> None:
    query = f"SELECT {asked} AS x FROM people"
    con, guard = looked_at("threshold")
    assert guard.sql(query).to_pylist()[0]["x"] == pytest.approx(con.execute(query).fetchall()[0][0], rel=1e-9)


def test_rounding_answers_what_follows_from_counts_alone() -> None:
    for asked in OF_FIGURES:
        query = f"SELECT {asked} AS x FROM people"
        if "income" in asked:
            with pytest.raises(Refused, match="rounding answers counts"):
                rows("rounding", query)
        else:
            true = looked_at("rounding")[0].execute(query).fetchall()[0][0]
            assert rows("rounding", query)[0]["x"] == pytest.approx(true, rel=0.02)


REFUSED = {
    "entropy(income)": "SDC050",
    "corr(income + bonus, won)": "SDC041",
    "corr(income, bonus, won)": "SDC",
    "regr_slope(DISTINCT income, bonus)": "SDC",
    "sem(DISTINCT discount)": "SDC051",
    "skewness(income)": "SDC052",
    "covar_pop(income, region)": "SDC052",
    "corr(income, id)": "SDC",
    "weighted_avg(income)": "SDC",
    "geomean(won)": "ln takes values above 0, and the bounds of 'won' begin at -500",
}


@pytest.mark.parametrize("asked", REFUSED)
def test_what_is_refused(asked: str) -> None:
    for method in ("cell_key", "threshold", "rounding"):
        with pytest.raises((Refused, duckdb.Error)) as raised:
            rows(method, f"SELECT {asked} FROM people")
        if method == "cell_key":
            assert REFUSED[asked] in str(raised.value)


def test_two_measures_need_bounds() -> None:
    with made("cell_key", "") as con:
        guard = sdcduck.open_guard(con)
        for asked in ("corr(income, bonus)", "regr_slope(income, bonus)", "weighted_avg(income, bonus)"):
            with pytest.raises(Refused, match=r"a product of measures needs bounds of 'bonus', which the custodian"):
                guard.sql(f"SELECT {asked} FROM people")
        assert guard.sql("SELECT regr_count(income, bonus) AS n FROM people").to_pylist()[0]["n"] > 1000
    assert "bonus" in LIMITS


def test_numbers_that_begin_with_a_point() -> None:
    """.5 is 0.5, whatever number of digits DuckDB gives it."""
    for asked, same in (
        ("quantile_cont(income, .5)", "quantile_cont(income, 0.5)"),
        ("count(*) * .5 - -.25", "count(*) * 0.5 - -0.25"),
        ("count(*) FILTER (WHERE discount > .25)", "count(*) FILTER (WHERE discount > 0.25)"),
    ):
        one, other = (rows("cell_key", f"SELECT {of} AS x FROM people") for of in (asked, same))
        assert one == other
