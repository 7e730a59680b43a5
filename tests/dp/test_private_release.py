"""Releases of counts, sums and means: their noise, what they charge, and what they do with values that are none.

OpenDP's noise has no seed. What is tested of it holds always, or but for a chance below 1e-9.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import duckdb
import numpy as np
import pytest
from effort import times
from scipy.stats import chi2, norm

import sdcduck
from sdcduck.errors import SDCError
from sdcduck.methods.dp.allocation import allocate, allocate_laplace
from sdcduck.methods.dp.calibration import gaussian_ratio
from sdcduck.methods.dp.noise import LAPLACE_STEPS, LEAST_STEPS, grid_noise, step_of, with_noise
from sdcduck.methods.dp.ratios import Ratio, two_laplace_tail

DRAWS = 100_000
CHANCE = 1e-10
EXACT = "epsilon := 1e12, delta := 0.1, noise := 'normal'"
"""With so large an epsilon hardly any noise is left."""


def _make_people(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE people AS SELECT i AS id, i % 3 = 0 AS ill, (18 + i % 70)::INT AS age, (100 * (i % 97))::DECIMAL(9, 2) AS income FROM range(1000) r(i)"
    )


@pytest.fixture
def people(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    _make_people(con)
    return con


# --- the noise -------------------------------------------------------------------------------------------------------


def _drawn(width: float, deviation: float, draws: int = DRAWS) -> np.ndarray:
    step = step_of(width, deviation)
    return np.array(grid_noise(deviation / step, draws)) * step


@pytest.mark.parametrize("objective", ["volume", "mse", "none"])
@pytest.mark.newest
def test_intervals_and_regions_hold_what_they_say(objective: str) -> None:
    # A count, a sum and a mean of 1,000 values between 0 and 10,000.
    widths, records = np.array([1.0, 1e4, 1e4]), np.array([1, 1, 1000])
    shared = allocate(widths / records, gaussian_ratio(1, 1e-5), objective)
    draws = times(25_000, DRAWS)
    noise = np.stack([_drawn(w, d * n, draws) / n for w, d, n in zip(widths, shared.deviations, records, strict=True)])
    inside = np.abs(noise) <= shared.half_widths(0.95)[:, None]
    assert ((inside.mean(axis=1) >= 0.943) & (inside.mean(axis=1) <= 0.957)).all()
    together = (noise**2 / shared.deviations[:, None] ** 2).sum(axis=0) <= chi2.ppf(0.95, 3)
    assert 0.943 <= together.mean() <= 0.957
    assert shared.half_axes(0.95) ** 2 == pytest.approx(chi2.ppf(0.95, 3) * shared.deviations**2)
    eta = np.array([3.0, -1e4, 5.0])
    # Five standard errors of so many tests: the band of 10,000 that the specification of the tests asks for.
    assert 0.043 <= (shared.p_values(eta, noise.T) < 0.05).mean() <= 0.057
    assert shared.p_values(eta, noise.T[:5]) == pytest.approx([shared.p_value(eta, one) for one in noise.T[:5]])


@pytest.mark.newest
def test_the_law_of_the_noise() -> None:
    noise = np.sort(np.array(grid_noise(3.7 * LEAST_STEPS, DRAWS)) / (3.7 * LEAST_STEPS))
    distance = np.abs(norm.cdf(noise) - np.arange(1, DRAWS + 1) / DRAWS).max()
    # Dvoretzky, Kiefer and Wolfowitz bound the chance of a larger distance, whatever the law.
    assert distance < math.sqrt(math.log(2 / CHANCE) / (2 * DRAWS)) + 1 / DRAWS


def _least_epsilon(one: np.ndarray, other: np.ndarray, delta: float) -> float:
    """The epsilon that two neighbours' answers show to be exceeded, wrong with a chance below 1e-6 for each event."""
    slack = math.sqrt(math.log(2 / 1e-6) / (2 * len(one)))  # Hoeffding, on both sides
    found = 0.0
    for at in np.linspace(-6, 6, 25) * one.std() + one.mean():
        for more, less in (((one > at).mean(), (other > at).mean()), ((other < at).mean(), (one < at).mean())):
            if more - slack - delta > 0:
                found = max(found, math.log((more - slack - delta) / (less + slack)))
    return found


@pytest.mark.newest
def test_an_audit_does_not_find_more_than_is_charged() -> None:
    for epsilon in (0.5, 1.0, 4.0):
        deviation = 1 / gaussian_ratio(epsilon, 1e-5)
        with_one, without = (one + _drawn(1.0, deviation, times(50_000, DRAWS)) for one in (1, 0))
        assert _least_epsilon(with_one, without, 1e-5) <= epsilon
    # It would find that a fifth of the noise is too little.
    assert _least_epsilon(1 + (with_one - 1) / 5, without / 5, 1e-5) > 4


def test_noise_is_added_in_whole_numbers() -> None:
    huge = 2**100 + 1
    (made,) = with_noise([huge], [2.0**40])
    assert 0 < abs(made - huge) < 2**50
    assert with_noise([], []) == []


@pytest.mark.parametrize(("width", "deviation"), [(1.0, 3.7), (1e4, 1e-3), (1e-3, 1e3), (1e150, 1e149), (3.0, 1e6)])
def test_the_grid_is_fine_and_a_power_of_two(width: float, deviation: float) -> None:
    step = step_of(width, deviation)
    assert math.frexp(step)[0] == 0.5
    assert deviation / step >= LEAST_STEPS
    assert width / step >= 2**30


def test_there_is_not_every_noise() -> None:
    with pytest.raises(SDCError, match="'epsilon' is so small or so large"):
        step_of(1.0, 1e30)
    with pytest.raises(SDCError, match="'epsilon' is so small or so large"):
        step_of(1.0, 1e-290)


# --- the release -----------------------------------------------------------------------------------------------------


def test_what_is_released_is_right_but_for_the_noise(people: duckdb.DuckDBPyConnection) -> None:
    rows = people.execute(
        "SELECT statistic, estimate, noise_sd, ci_low, ci_high, half_axis, sensitivity FROM sdc_dp_release('people', "
        "['ill', 'age >= 65 AND NOT ill'], sums := ['income'], means := ['AGE', 'income'], "
        f"bounds := {{'age': [20, 60], 'Income': [0, 5000]}}, {EXACT})"
    ).fetchall()
    truth = people.execute(
        "SELECT count(*) FILTER (ill), count(*) FILTER (age >= 65 AND NOT ill), sum(least(income, 5000)), "
        "avg(greatest(least(age, 60), 20)), avg(least(income, 5000)) FROM people"
    ).fetchall()[0]
    assert [row[0] for row in rows] == [
        "count(ill)",
        "count(age >= 65 AND NOT ill)",
        "sum(income)",
        "avg(AGE)",
        "avg(income)",
    ]
    ratio = gaussian_ratio(1e12, 0.1)
    for row, true, sensitivity in zip(rows, truth, [1, 1, 5000, 40 / 1000, 5], strict=True):
        _, estimate, noise, low, high, half, changed = row
        assert changed == pytest.approx(sensitivity)
        assert noise == pytest.approx(math.sqrt(5) * sensitivity / ratio, rel=1e-6)
        assert abs(estimate - float(true)) < 10 * noise
        assert (high - low, (high + low) / 2) == pytest.approx((2 * 1.959964 * noise, estimate), rel=1e-6)
        assert half == pytest.approx(math.sqrt(chi2.ppf(0.95, 5)) * noise)


def test_the_numbers_are_those_of_the_allocation(people: duckdb.DuckDBPyConnection) -> None:
    shared = "noise_sd, xi, sigma, half_axis"
    for more in ("'volume'", "'mse', weights := [16, 9, 1]", "'none'"):
        released = people.execute(
            f"SELECT {shared} FROM sdc_dp_release('people', ['ill'], ['age'], ['income'], {{'age': [-5, 5], 'income': [0, 100]}}, 1, 1e-5, {more}, noise := 'normal')"
        ).fetchall()
        expected = people.execute(f"SELECT {shared} FROM sdc_dp_allocation([1, 10, 0.1], 1, 1e-5, {more})").fetchall()
        for one, other in zip(released, expected, strict=True):
            assert one == pytest.approx(other, rel=1e-8)


def test_a_test_asks_the_one_number_that_tells(people: duckdb.DuckDBPyConnection) -> None:
    rows = people.execute(
        "SELECT statistic, estimate, noise_sd, xi, ci_low, half_axis, p_value FROM sdc_dp_release('people', ['ill'], ['age'], "
        f"bounds := {{'age': [0, 10]}}, {EXACT}, objective := 'lrt', eta := [5, 10], expected := [334, 0])"
    ).fetchall()
    assert rows[0][1] == pytest.approx(334, abs=1e-4)
    assert rows[0][3] == pytest.approx(101)
    assert rows[1][1:6] == (None, None, 0, None, None)
    assert 0 < rows[0][6] == rows[1][6] < 1
    found = people.execute(
        "SELECT DISTINCT p_value < 1e-12, half_axis IS NOT NULL FROM sdc_dp_release('people', ['ill'], ['age'], "
        f"bounds := {{'age': [0, 10]}}, {EXACT}, eta := [5, 10], expected := [300, 9000])"
    ).fetchall()
    assert found == [(True, True)]


def test_values_that_are_none_count_as_what_everybody_knows(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT unnest([1, NULL, 'nan'::DOUBLE, 'inf'::DOUBLE, '-inf'::DOUBLE]) AS x")
    question = "SELECT estimate FROM sdc_dp_release('t', ['x > 0'], ['x'], ['x'], {{'x': [0, 10]}}, {}, defaults := {})"
    counted, total, mean = con.execute(question.format(EXACT, "NULL")).fetchall()
    # A NaN is more than anything in SQL.
    assert (counted[0], total[0], mean[0]) == pytest.approx((3, 1 + 5 + 5 + 10 + 0, 21 / 5), abs=1e-3)
    _, total, mean = con.execute(question.format(EXACT, "{'X': 2}")).fetchall()
    assert (total[0], mean[0]) == pytest.approx((1 + 2 + 2 + 10 + 0, 3), abs=1e-3)


def test_a_condition_that_fails_for_some_record_tells_nothing(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT unnest(['1', '2', 'secret', NULL]) AS code")
    ((counted,),) = con.execute(f"SELECT estimate FROM sdc_dp_release('t', ['code::INT >= 2'], {EXACT})").fetchall()
    assert counted == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("kind", ["TINYINT", "BIGINT", "HUGEINT", "DECIMAL(18, 3)", "FLOAT", "DOUBLE"])
def test_numbers_of_any_type(con: duckdb.DuckDBPyConnection, kind: str) -> None:
    con.execute(f'CREATE TABLE "the ""t""" AS SELECT (i % 100)::{kind} AS "a ""b""" FROM range(1000) r(i)')
    ((total,),) = con.execute(
        f"""SELECT estimate FROM sdc_dp_release('the "t"', sums := ['A "b"'], bounds := {{'a "b"': [0, 99]}}, {EXACT})"""
    ).fetchall()
    assert total == pytest.approx(49_500, abs=0.1)


def test_whole_numbers_that_no_double_holds_and_wide_bounds(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE t AS SELECT (9007199254740993 + i % 2) AS x FROM range(1000) r(i)")
    rows = con.execute(
        f"SELECT estimate FROM sdc_dp_release('t', means := ['x'], bounds := {{'x': [9007199254740990, 9007199254741000]}}, {EXACT}) UNION ALL "
        f"SELECT estimate FROM sdc_dp_release('t', sums := ['x'], bounds := {{'x': [-1e150, 1e150]}}, {EXACT})"
    ).fetchall()
    assert rows[0][0] == pytest.approx(9007199254740994, abs=2)
    assert math.isfinite(rows[1][0])


def test_nothing_is_left_of_a_single_record_in_the_digits(con: duckdb.DuckDBPyConnection) -> None:
    # Both neighbours have their answers on one grid, which follows from the bounds: no low bit tells them apart.
    con.execute("CREATE TABLE t AS SELECT 0.1 * i AS x FROM range(7) r(i)")
    step = step_of(1.0, 1 / gaussian_ratio(1, 1e-5))
    for source in ("t", "(FROM t WHERE x <> 0.3)", "(SELECT x / 3 AS x FROM t)"):
        ((total,),) = con.execute(
            f"SELECT estimate FROM sdc_dp_release('{source}', sums := ['x'], bounds := {{'x': [0, 1]}}, epsilon := 1, delta := 1e-5, noise := 'normal')"
        ).fetchall()
        assert (total / step).is_integer()


def test_records_there_or_not(people: duckdb.DuckDBPyConnection) -> None:
    rows = people.execute(
        "SELECT statistic, round(estimate, 1), sensitivity FROM sdc_dp_release('people', ['true'], ['age'], "
        f"bounds := {{'age': [18, 87]}}, {EXACT}, neighbours := 'add_remove')"
    ).fetchall()
    assert rows == [("count(true)", 1000, 1), ("sum(age)", pytest.approx(51670, abs=700), 87)]
    assert people.execute("SELECT neighbours FROM sdc_synth_dp_ledger()").fetchall() == [("add_remove",)]
    rows = people.execute(
        "SELECT round(estimate, 2) FROM sdc_dp_release('(FROM people WHERE false)', ['true'], ['age'], "
        f"bounds := {{'age': [18, 87]}}, {EXACT}, neighbours := 'add_remove')"
    ).fetchall()
    assert rows == [(0,), (pytest.approx(0, abs=0.01),)]


def test_a_mean_where_the_number_of_records_is_a_secret(people: duckdb.DuckDBPyConnection) -> None:
    call = "'people', ['ill'], means := ['age'], bounds := {'age': [20, 60]}, neighbours := 'add_remove'"
    counted, mean, records = people.execute(
        f"SELECT statistic, estimate, noise_sd, ci_low, ci_high, sensitivity, half_axis FROM sdc_dp_release({call}, {EXACT})"
    ).fetchall()
    ((truth,),) = people.execute("SELECT avg(greatest(least(age, 60), 20)) FROM people").fetchall()
    ratio = gaussian_ratio(1e12, 0.1)
    assert (counted[0], mean[0], records[0]) == ("count(ill)", "avg(age)", "count(*)")
    assert mean[1] == pytest.approx(truth, abs=1e-3)
    assert records[1] == pytest.approx(1000, abs=1e-3)
    # The sum about 40 changes by 20, the number of records by 1.
    expected = math.sqrt(3) / ratio * math.hypot(20, truth - 40) / 1000
    assert mean[2] == pytest.approx(expected, rel=1e-4)
    assert mean[3] < mean[1] < mean[4]
    assert mean[5:] == (None, None)
    # What is not clear from the noisy numbers is said so, and stays between the bounds.
    for source in ("people", "(FROM people WHERE false)"):
        asked = call.replace("'people'", f"'{source}'")
        rows = people.execute(
            f"SELECT estimate, ci_low, ci_high FROM sdc_dp_release({asked}, epsilon := 1e-3, delta := 1e-9) WHERE statistic = 'avg(age)'"
        ).fetchall()
        assert 20 <= rows[0][1] <= rows[0][2] <= 60
        assert rows[0][0] is None or 20 <= rows[0][0] <= 60


@pytest.mark.newest
def test_fiellers_intervals_hold_what_they_say() -> None:
    generator, draws, half = np.random.default_rng(7), 20_000, 2.0
    for records, mean in ((500, 0.7), (40, -1.9), (15, 0.3), (3, 1.0)):
        sd = 4.0
        totals = records * mean + generator.normal(scale=half * sd, size=draws)
        counted = records + generator.normal(scale=sd, size=draws)
        ends = np.array(
            [Ratio(*one, half * sd, sd).ends(0.95, half) for one in zip(totals.tolist(), counted.tolist(), strict=True)]
        )
        covered = ((ends[:, 0] <= mean) & (mean <= ends[:, 1])).mean()
        assert covered >= 0.943
        assert covered <= 0.957 or records < 100
    deviations = [Ratio(350 + noise, 500.0, half * sd, sd).deviation(0.7) for noise in (0, 10)]
    assert deviations == [pytest.approx(math.hypot(half * sd, 0.7 * sd) / 500)] * 2


# --- Laplace noise ---------------------------------------------------------------------------------------------------


def _released(con: duckdb.DuckDBPyConnection, columns: str, arguments: str) -> list[tuple[object, ...]]:
    return con.execute(f"SELECT {columns} FROM sdc_dp_release('people', {arguments})").fetchall()


def test_few_numbers_have_laplace_noise_and_cost_no_delta(people: duckdb.DuckDBPyConnection) -> None:
    rows = _released(people, "noise, noise_sd, sensitivity, xi, sigma", "['ill'], epsilon := 1, delta := 1e-6")
    assert rows == [("laplace", pytest.approx(math.sqrt(2)), 1, None, None)]
    many = ", ".join(["'ill'"] * 30)
    assert _released(people, "DISTINCT noise", f"[{many}], epsilon := 1, delta := 1e-6") == [("normal",)]
    # The larger delta is, the sooner normal noise is the smaller.
    assert _released(people, "DISTINCT noise", "['ill', 'ill', 'ill'], epsilon := 1, delta := 0.01") == [("normal",)]
    # A test is one of normal noise.
    assert _released(people, "noise", "['ill'], epsilon := 1, delta := 1e-6, eta := [5]") == [("normal",)]
    told = people.execute("SELECT epsilon, delta, rho, what FROM sdc_synth_dp_ledger() ORDER BY release").fetchall()
    assert told[0] == (1, 0, pytest.approx(0.5), "Laplace noise, objective 'volume': count(ill)")
    assert [row[1] > 0 for row in told] == [False, True, True, True]


def test_laplace_noise_is_shared_by_purpose(people: duckdb.DuckDBPyConnection) -> None:
    asked = "['ill'], ['age'], bounds := {'age': [-5, 5]}, epsilon := 3, delta := 1e-9, noise := 'laplace'"
    root = math.sqrt(2)
    for objective, parts in (
        ("volume", (1.5, 1.5)),
        ("none", (3 / 11, 30 / 11)),
        ("mse", (3 / (1 + 100 ** (1 / 3)), None)),
    ):
        (count, total) = _released(people, "noise_sd, sensitivity", f"{asked}, objective := '{objective}'")
        second = 3 - parts[0] if parts[1] is None else parts[1]
        assert (count[0], total[0]) == (pytest.approx(root / parts[0]), pytest.approx(10 * root / second))
        assert (count[1], total[1]) == (1, 10)


@pytest.mark.newest
def test_intervals_and_boxes_of_laplace_noise_hold_what_they_say() -> None:
    shared = allocate_laplace(np.array([1.0, 1e4, 10.0]), 1.0, "mse")
    steps = [
        step_of(width, sd, steps=LAPLACE_STEPS) for width, sd in zip((1.0, 1e4, 10.0), shared.deviations, strict=True)
    ]
    scales = np.repeat(shared.scales / steps, DRAWS).tolist()
    noise = np.array(with_noise([0] * len(scales), scales, gaussian=False)).reshape(3, DRAWS) * np.array(steps)[:, None]
    inside = np.abs(noise) <= shared.half_widths(0.95)[:, None]
    assert ((inside.mean(axis=1) >= 0.943) & (inside.mean(axis=1) <= 0.957)).all()
    together = (np.abs(noise) <= shared.half_axes(0.95)[:, None]).all(axis=0)
    assert 0.943 <= together.mean() <= 0.957
    assert noise.std(axis=1) == pytest.approx(shared.deviations, rel=0.05)
    assert _least_epsilon(1 + noise[0] / shared.scales[0], noise[0] / shared.scales[0], 0.0) <= 1


@pytest.mark.newest
def test_intervals_of_means_by_laplace_noise_hold_what_they_say() -> None:
    generator, draws, half = np.random.default_rng(11), 4_000, 2.0
    for records, mean in ((500, 0.7), (60, -1.9), (40, 0.0), (5, 1.0)):
        totals = records * mean + generator.laplace(scale=half * 3, size=draws)
        counted = records + generator.laplace(scale=3, size=draws)
        sd = 3 * math.sqrt(2)
        ends = np.array(
            [
                Ratio(*one, half * sd, sd, laplace=True).ends(0.95, half)
                for one in zip(totals.tolist(), counted.tolist(), strict=True)
            ]
        )
        assert (ends[:, 0] <= ends[:, 1]).all()
        covered = ((ends[:, 0] <= mean) & (mean <= ends[:, 1])).mean()
        assert covered >= 0.935
        assert covered <= 0.965 or records < 100
    # A known number of records: the interval is that of the sum alone.
    assert Ratio(50, 100, math.sqrt(2), 0, laplace=True).ends(0.95, 2) == pytest.approx((0.47004, 0.52996), abs=1e-5)


def test_a_tail_of_two_laplace_numbers_is_what_draws_say() -> None:
    draws = np.random.default_rng(3).laplace(size=(2, 200_000))
    for one, other, distance in ((1.0, 0.3, 2.0), (1.0, 1.0, 3.0), (2.0, 1.9999, 4.0), (0.0, 1.0, 1.5)):
        seen = (np.abs(one * draws[0] + other * draws[1]) > distance).mean()
        assert two_laplace_tail(distance, one, other) == pytest.approx(seen, abs=0.006)


def test_released_by_laplace_noise_is_right_but_for_it(people: duckdb.DuckDBPyConnection) -> None:
    arguments = "['ill'], ['income'], ['age'], {'income': [0, 5000], 'age': [20, 60]}, epsilon := 1e6, delta := 1e-9, noise := 'laplace'"
    groups = "by := 'ill', groups := ['true', 'false']"
    for more in ("", ", neighbours := 'add_remove'", f", {groups}", f", {groups}, neighbours := 'add_remove'"):
        rows = _released(people, "category, statistic, estimate, noise_sd, ci_low, ci_high", arguments + more)
        for category, statistic, estimate, sd, low, high in rows:
            if category is None and "by :=" in more:
                continue
            within = "true" if category is None else f"ill = {category}"
            asked = {
                "count(ill)": "count(*) FILTER (ill)", "count(*)": "count(*)", "sum(income)": "sum(least(income, 5000))",
                "avg(age)": "avg(greatest(least(age, 60), 20))",
            }[str(statistic)]  # fmt: skip
            ((truth,),) = people.execute(f"SELECT {asked} FROM people WHERE {within}").fetchall()
            assert abs(float(estimate) - float(truth)) <= 30 * float(sd) + 1e-9  # type: ignore[arg-type]
            assert low <= estimate <= high  # type: ignore[operator]


# --- separately by groups --------------------------------------------------------------------------------------------

GROUPS = "by := 'region', groups := ['North', 'South', 'nobody''s']"


@pytest.fixture
def regions(people: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    # The names of the result are columns, too.
    people.execute(
        "CREATE TABLE lives AS SELECT *, [NULL, 'North', 'South', 'Elsewhere'][1 + id % 4] AS region, 7 AS label, 8 AS category FROM people"
    )
    return people


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_groups_are_released_separately(regions: duckdb.DuckDBPyConnection, neighbours: str) -> None:
    rows = regions.execute(
        "SELECT category, statistic, estimate, sensitivity, noise_sd, ci_low, ci_high FROM sdc_dp_release('lives', ['ill'], ['income'], ['age'], "
        f"bounds := {{'income': [-1000, 5000], 'age': [20, 60]}}, {EXACT}, neighbours := '{neighbours}', {GROUPS})"
    ).fetchall()
    truth = regions.execute(
        "SELECT CASE WHEN region IN ('North', 'South') THEN region END AS r, count(*) FILTER (ill), sum(least(income, 5000)), "
        "avg(greatest(least(age, 60), 20)), count(*) FROM lives GROUP BY r"
    ).fetchall()
    expected = {row[0]: list(map(float, row[1:])) for row in truth} | {"nobody's": [0, 0, None, 0]}
    assert [row[0] for row in rows] == [label for label in ("North", "South", "nobody's", None) for _ in range(4)]
    assert [row[1] for row in rows[:4]] == ["count(ill)", "sum(income)", "avg(age)", "count(*)"]
    # A record that is another one changes a sum by 6,000, or two sums by 5,000 each.
    root = math.sqrt(2)
    changes = [root, 5000 * root, None, root] if neighbours == "replace" else [1, 5000, None, 1]
    for place, row in enumerate(rows):
        true, change = expected[row[0]][place % 4], changes[place % 4]
        assert row[3] == (None if change is None else pytest.approx(change))
        if true is not None:
            assert row[2] == pytest.approx(true, abs=0.2)
            assert abs(row[2] - true) <= 10 * row[4]
        else:
            # By chance one noisy count in forty looks as if somebody were there.
            assert 20 <= row[5] <= row[6] <= 60


def test_a_record_of_wide_bounds_changes_its_own_group_most(regions: duckdb.DuckDBPyConnection) -> None:
    rows = regions.execute(
        f"SELECT DISTINCT sensitivity FROM sdc_dp_release('lives', sums := ['age'], bounds := {{'age': [-100, 100]}}, {EXACT}, {GROUPS})"
    ).fetchall()
    assert rows == [(pytest.approx(200),)]


def test_groups_cost_no_more_than_one(regions: duckdb.DuckDBPyConnection) -> None:
    call = "sdc_dp_release('lives', ['ill', 'true'], epsilon := 1, delta := 1e-5, neighbours := 'add_remove', noise := 'normal'{})"
    alone = regions.execute(f"SELECT noise_sd, half_axis FROM {call.format('')}").fetchall()
    rows = regions.execute(f"SELECT noise_sd, half_axis FROM {call.format(f', {GROUPS}')}").fetchall()
    assert len(rows) == 8
    assert {row[0] for row in rows} == {row[0] for row in alone}
    # Of eight numbers, and not of two.
    assert rows[0][1] / alone[0][1] == pytest.approx(math.sqrt(chi2.ppf(0.95, 8) / chi2.ppf(0.95, 2)))
    told = regions.execute("SELECT epsilon, delta, what FROM sdc_synth_dp_ledger() ORDER BY release").fetchall()
    assert [row[:2] for row in told] == [(1, 1e-5)] * 2
    assert told[1][2] == "normal noise, objective 'volume': count(ill), count(true) by region"


def test_each_group_has_a_test_of_its_own(regions: duckdb.DuckDBPyConnection) -> None:
    rows = regions.execute(
        f"SELECT category, p_value < 1e-9 FROM sdc_dp_release('lives', ['true'], {EXACT}, eta := [-1], expected := [249], {GROUPS})"
    ).fetchall()
    assert rows == [("North", False), ("South", False), ("nobody's", True), (None, False)]


@pytest.mark.parametrize(
    "call",
    [
        "sdc_dp_release('people', sums := ['income'], bounds := {'income': [0, 9999]}, epsilon := 1e30, delta := 1e-5)",
        "sdc_dp_release('people', means := ['income'], bounds := {'income': [0, 9999]}, epsilon := 1e99, delta := 0.5)",
        "sdc_dp_mean_region('people', ['income'], [[1e6]], [5000], 3, 1e30, 1e-5)",
        "sdc_dp_mean_region('people', ['income'], [[1e6]], [5000], epsilon := 1e17, delta := 1e-5, clip := false, gamma := 0.001)",
    ],
)
def test_no_error_has_a_value_of_a_record(people: duckdb.DuckDBPyConnection, call: str) -> None:
    # A record that is more steps of the grid than 64 bits hold was named by the error of its cast.
    with pytest.raises(duckdb.Error, match="'epsilon' is so small or so large that there is no such noise"):
        people.execute(f"FROM {call}").fetchall()


def test_what_cannot_change_is_told_as_it_is(people: duckdb.DuckDBPyConnection) -> None:
    rows = people.execute(
        "SELECT estimate, noise_sd, ci_high, xi, half_axis, sensitivity FROM sdc_dp_release('people', ['ill'], ['age'], "
        f"bounds := {{'age': [7, 7]}}, {EXACT})"
    ).fetchall()
    assert rows[1] == (7000, 0, 7000, None, 0, 0)
    assert rows[0][1] > 0


def test_an_empty_table_has_counts_and_sums_and_no_mean(people: duckdb.DuckDBPyConnection) -> None:
    nobody = "'(FROM people WHERE false)'"
    rows = people.execute(
        f"SELECT estimate FROM sdc_dp_release({nobody}, ['ill'], ['age'], bounds := {{'age': [0, 9]}}, {EXACT})"
    ).fetchall()
    assert [row[0] for row in rows] == pytest.approx([0, 0], abs=1e-3)
    with pytest.raises(duckdb.Error, match="the query has no records, and nothing has a mean"):
        people.execute(
            f"FROM sdc_dp_release({nobody}, means := ['age'], bounds := {{'age': [0, 9]}}, {EXACT})"
        ).fetchall()


# --- what it costs ---------------------------------------------------------------------------------------------------

ONE = "FROM sdc_dp_release('people', ['ill'], epsilon := 1, delta := 1e-5, noise := 'normal'{})"


def test_each_release_is_charged_with_epsilon_delta_and_rho(people: duckdb.DuckDBPyConnection) -> None:
    for _ in range(2):
        people.execute(ONE.format("")).fetchall()
    people.execute("CREATE VIEW ill AS SELECT p.* FROM people p JOIN (SELECT 3 AS age) USING (age)")
    people.execute("FROM sdc_dp_release('ill', ['ill'], epsilon := 2, delta := 1e-6, noise := 'normal')").fetchall()
    rows = people.execute(
        "SELECT release, data, neighbours, epsilon, delta, rho, spent, spent_delta, what FROM sdc_synth_dp_ledger()"
    ).fetchall()
    rho = gaussian_ratio(1, 1e-5) ** 2 / 2
    what = "normal noise, objective 'volume': count(ill)"
    assert rows[1] == (2, "people", "replace", 1, 1e-5, pytest.approx(rho, rel=1e-6), 2, 2e-5, what)
    assert rows[2][:2] + rows[2][6:8] == (3, "people", 4, pytest.approx(2.1e-5))
    assert len(rows) == 3


def test_a_budget_is_kept_in_epsilon_and_in_delta(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("FROM sdc_synth_dp_budget('people', 10, neighbours := 'replace')").fetchall()
    with pytest.raises(duckdb.Error, match="'people' may cost a delta of 0 together under neighbours := 'replace'"):
        people.execute(ONE.format("")).fetchall()
    stored = people.execute("FROM sdc_synth_dp_budget('people', 3, 'replace', delta := 2e-5)").fetchall()
    assert stored == [("people", "replace", 3, 2e-5)]
    for _ in range(2):
        people.execute(ONE.format("")).fetchall()
    left = people.execute("SELECT remaining, spent_delta, budget_delta FROM sdc_synth_dp_budgets()").fetchall()
    assert left == [(1, 2e-5, 2e-5)]
    with pytest.raises(duckdb.Error, match="have cost 2e-05; it would cost 1e-05 more"):
        people.execute(ONE.format("")).fetchall()
    with pytest.raises(duckdb.Error, match=r"may cost 3 together .* have cost 2; it would cost 5 more"):
        people.execute(ONE.replace("epsilon := 1", "epsilon := 5").format("")).fetchall()
    assert people.execute("SELECT count(*) FROM sdc_synth_dp_ledger()").fetchall() == [(2,)]


def test_the_other_relation_costs_more(people: duckdb.DuckDBPyConnection) -> None:
    people.execute(ONE.format(", neighbours := 'add_remove'")).fetchall()
    people.execute("FROM sdc_synth_dp_budget('people', 9, 'replace', delta := 0.5)").fetchall()
    ((spent, delta),) = people.execute(
        "SELECT spent, spent_delta FROM sdc_synth_dp_budgets() WHERE neighbours = 'replace'"
    ).fetchall()
    # Two steps from one table to the other: epsilon twice, delta once and e^epsilon times.
    assert (spent, delta) == (2, pytest.approx((1 + math.e) * 1e-5))
    people.execute("FROM sdc_synth_dp_budget('people', 9, 'add_remove', delta := 0.5)").fetchall()
    with pytest.raises(duckdb.Error, match="it would tell the exact number of records"):
        people.execute(ONE.format("")).fetchall()


def test_a_table_that_cannot_be_charged_is_not_asked(people: duckdb.DuckDBPyConnection, tmp_path: object) -> None:
    path = f"{tmp_path}/register.duckdb"
    with sdcduck.connect(path) as con:
        con.execute("CREATE TABLE people AS SELECT true AS ill")
    with sdcduck.connect(path, read_only=True) as con, pytest.raises(duckdb.Error, match="open for reading only"):
        con.execute(ONE.format("")).fetchall()


def test_a_failed_reading_and_a_wrong_argument_cost_nothing(people: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error):
        people.execute(
            "FROM sdc_dp_release('(SELECT error(''no'') AS ill FROM people)', ['ill = ''x'''], epsilon := 1, delta := 1e-5)"
        ).fetchall()
    for more in (", confidence := 95", ", objective := 'lrt'"):
        with pytest.raises(duckdb.Error):
            people.execute(ONE.format(more)).fetchall()
    people.execute(f"EXPLAIN {ONE.format('')}").fetchall()
    assert people.execute("SELECT count(*) FROM sdc_synth_dp_ledger()").fetchall() == [(0,)]


# --- wrong arguments -------------------------------------------------------------------------------------------------

AGE = "bounds := {'age': [0, 100]}"
SPENT = "epsilon := 1, delta := 1e-5"


@pytest.fixture(scope="module")
def unchanged() -> Iterator[duckdb.DuckDBPyConnection]:
    """What is asked in vain changes nothing, so all that is refused is asked of one."""
    with sdcduck.connect(secret="the secret of the tests") as con:
        _make_people(con)
        yield con


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (f"'people', ['ill'], epsilon := {value}, delta := 1e-5", "'epsilon' must be a number above 0")
        for value in ("0", "-1", "'inf'::DOUBLE", "'nan'::DOUBLE", "NULL")
    ]
    + [
        (f"'people', ['ill'], epsilon := 1, delta := {value}", "'delta' must be above 0 and below 1")
        for value in ("0", "-1e-5", "1", "'nan'::DOUBLE", "NULL")
    ]
    + [
        (f"'people', {SPENT}", "'counts', 'sums' and 'means' must name something"),
        (f"'nobody', ['ill'], {SPENT}", "nobody"),
        (f"'people', ['no_such'], {SPENT}", "'no_such' is no column"),
        (f"'people', ['ill', NULL], {SPENT}", "'counts' holds a NULL"),
        (f"'people', ['id'], {SPENT}, neighbours := 'other'", "'neighbours' must be 'add_remove' or 'replace'"),
        (f"'people', ['income > (SELECT avg(income) FROM people)'], {SPENT}", "without subqueries"),
        (f"'people', ['count(*) > 1'], {SPENT}", "'counts' must be a condition"),
        (f"'people', ['row_number() OVER () > 1'], {SPENT}", "'counts' must be a condition"),
        (f"'people', ['random() > 0.5'], {SPENT}", "'random' may read something else"),
        (f"'people', ['age::VARCHAR'], {SPENT}", "'counts' must hold conditions, which is true or false: it is VARCHAR"),
        (f"'people', sums := ['income'], {SPENT}", "'bounds' must say between which numbers 'income' counts"),
        (f"'people', means := ['age'], {SPENT}, bounds := {{'age': [100, 0]}}", "the lowest number of 'age' before"),
        (f"'people', means := ['age'], {SPENT}, bounds := {{'age': [0]}}", "hold two numbers for 'age'"),
        (f"'people', means := ['age'], {SPENT}, bounds := {{'age': [0, NULL]}}", "hold two numbers for 'age'"),
        (f"'people', means := ['age'], {SPENT}, bounds := {{'age': [0, 'inf'::DOUBLE]}}", "hold two numbers for 'age'"),
        (f"'people', sums := ['age'], {SPENT}, bounds := {{'age': [0, 1e300]}}", "whose sums are numbers"),
        (f"'people', sums := ['age'], {SPENT}, bounds := {{'age': [5, 5]}}", "'bounds' must leave room"),
        (f"'people', sums := ['age'], {SPENT}, bounds := 5", "'bounds' must be a struct such as"),
        (f"'people', ['ill'], {AGE}, {SPENT}", "'bounds' names 'age', of which no sum and no mean is released"),
        (f"'people', sums := ['ill'], bounds := {{'ill': [0, 1]}}, {SPENT}", "must name a column of numbers"),
        (f"'people', sums := ['agee'], {AGE}, {SPENT}", "agee"),
        (f"'people', means := ['age'], {AGE}, {SPENT}, neighbours := 'add_remove', eta := [1]", "'eta' is for counts and sums"),
        (f"'people', means := ['age'], {AGE}, {SPENT}, by := 'ill', groups := ['true'], objective := 'mse', weights := [1]", "'weights' is for counts and sums"),
        (f"'people', ['ill'], {SPENT}, by := 'ill'", "'groups' must name the groups of 'by': which there are is not taken"),
        (f"'people', ['ill'], {SPENT}, by := 'ill', groups := ['true', 'true']", "'groups' must name each group once"),
        (f"'people', ['ill'], {SPENT}, by := 'ill', groups := ['true', NULL]", "'groups' must name each group once"),
        (f"'people', ['ill'], {SPENT}, by := 'il', groups := ['true']", "unknown column 'il'"),
        (f"'people', ['ill'], {SPENT}, groups := ['true']", "'groups' is for 'by'"),
        (f"'people', means := ['age'], {AGE}, {SPENT}, defaults := {{'age': 101}}", "'defaults' must hold a number within the bounds"),
        (f"'people', means := ['age'], {AGE}, {SPENT}, defaults := {{'x': 1}}", "'defaults' names 'x'"),
        (f"'people', ['ill'], {SPENT}, expected := [1]", "'expected' is for a test"),
        (f"'people', ['ill'], {SPENT}, eta := [1, 2]", "'eta' must hold 1 numbers"),
        (f"'people', ['ill'], {SPENT}, confidence := 95", "95 per cent is 0.95"),
        (f"'people', ['ill'], {SPENT}, noise := 'gaussian'", "'noise' must be"),
        (f"'people', ['ill'], {SPENT}, noise := 'laplace', eta := [1]", "'eta' is for a test, which is one of normal noise"),
        ("'people', ['ill'], epsilon := 1e-18, delta := 1e-12", "'epsilon' is so small or so large"),
        ("'people', ['ill'], epsilon := 1e300, delta := 1e-5", "'epsilon' must be a number from 1e-100 to"),
    ],
)  # fmt: skip
def test_wrong_arguments(unchanged: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        unchanged.execute(f"FROM sdc_dp_release({arguments})").fetchall()
    assert unchanged.execute("SELECT count(*) FROM sdc_synth_dp_ledger()").fetchall() == [(0,)]


def test_without_opendp(people: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(duckdb.Error, match="needs the package 'opendp': pip install 'sdcduck\\[dp\\]'"):
        people.execute(ONE.format("")).fetchall()
