"""How much noise: the numbers of the analytic calibration, and that it is the least that is private."""

from __future__ import annotations

import math

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from sdcduck.errors import SDCError
from sdcduck.methods.dp.calibration import (
    gaussian_epsilon,
    gaussian_ratio,
    gaussian_sigma,
    log_delta,
    zcdp_epsilon,
    zcdp_rho,
)

PUBLISHED = [
    (0.1, 1e-5, 0.0325208, 30.7496), (0.5, 1e-5, 0.1422106, 7.03183), (1, 1e-5, 0.2680511, 3.730632),
    (1, 1e-6, 0.2367044, 4.224679), (2, 1e-5, 0.5015517, 1.993812), (5, 1e-5, 1.1212418, 0.891868),
]  # fmt: skip
"""epsilon, delta, Lambda and sigma / sensitivity of the analytic Gaussian mechanism."""


@pytest.mark.parametrize(("epsilon", "delta", "ratio", "sigma"), PUBLISHED)
def test_the_published_ratios(
    con: duckdb.DuckDBPyConnection, epsilon: float, delta: float, ratio: float, sigma: float
) -> None:
    assert gaussian_ratio(epsilon, delta) == pytest.approx(ratio, rel=1.6e-6)  # as many digits as are given
    found = con.execute("SELECT sdc_dp_sigma(?, ?), sdc_dp_sigma(?, ?, 7)", [epsilon, delta] * 2).fetchone()
    assert found == (pytest.approx(sigma, rel=2e-6), pytest.approx(7 * sigma, rel=2e-6))


@given(epsilon=st.floats(0.01, 30), delta=st.floats(1e-12, 0.4))
def test_the_analytic_rule_is_private_and_no_less_noise_is(epsilon: float, delta: float) -> None:
    ratio = gaussian_ratio(epsilon, delta)

    def spent(x: float) -> float:
        return float(norm.cdf(x / 2 - epsilon / x) - math.exp(epsilon + norm.logcdf(-x / 2 - epsilon / x)))

    assert spent(ratio) <= delta * (1 + 1e-6)
    assert spent(ratio * 1.001) > delta
    assert gaussian_epsilon(ratio, delta) == pytest.approx(epsilon, rel=1e-6)


@given(epsilon=st.floats(0.01, 1), delta=st.floats(1e-12, 0.01))
def test_the_other_rules_are_private_and_need_more(epsilon: float, delta: float) -> None:
    least, zcdp, classic = (gaussian_sigma(epsilon, delta, 1, rule) for rule in ("analytic", "zcdp", "classic"))
    assert least < zcdp < classic
    for sigma in (zcdp, classic):
        assert log_delta(1 / sigma, epsilon) <= math.log(delta)
    assert zcdp_epsilon(zcdp_rho(epsilon, delta), delta) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-20, 1e-20), (1e-14, 1e-18), (1e-100, 1e-30), (1e-9, 1e-9)])
def test_tiny_costs_have_as_much_noise_as_they_need(epsilon: float, delta: float) -> None:
    ratio = gaussian_ratio(epsilon, delta)
    # The total variation is about ratio / sqrt(2 pi), and no more than epsilon and delta together.
    assert ratio / math.sqrt(2 * math.pi) <= epsilon + delta
    assert log_delta(ratio, epsilon) <= math.log(delta) + 1e-9
    # The bound for tiny ratios is near what it bounds.
    assert log_delta(0.999e-8, 1e-8) == pytest.approx(log_delta(1.001e-8, 1e-8), abs=2)
    assert log_delta(0.999e-8, 1e-8) > log_delta(1.001e-8, 1e-8)


def test_extremes_are_answered() -> None:
    assert 0.1 < gaussian_sigma(1, 1e-320, 1, "zcdp") / gaussian_sigma(1, 1e-300, 1, "zcdp") < 10
    assert all(0 < gaussian_sigma(epsilon, 1e-5, 1) < math.inf for epsilon in (1e-100, 1e100))
    with pytest.raises(SDCError, match="'epsilon' or 'delta' is so small or so large that there is no such noise"):
        gaussian_ratio(1e-320, 1e-320)
    assert gaussian_ratio(1e6, 0.5) == pytest.approx(math.sqrt(2e6), rel=1e-3)
    assert gaussian_ratio(1e-9, 0.1) == pytest.approx(2 * norm.ppf(0.55), rel=1e-6)
    assert 0 < gaussian_ratio(0.1, 1e-300) < 0.01
    assert gaussian_epsilon(1e-3, 0.5) == 0
    assert zcdp_epsilon(0, 1e-5) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("0, 1e-5", "'epsilon' must be a number above 0"),
        ("-1, 1e-5", "'epsilon' must be a number above 0"),
        ("'nan'::DOUBLE, 1e-5", "'epsilon' must be a number above 0"),
        ("'inf'::DOUBLE, 1e-5", "'epsilon' must be a number above 0"),
        ("1e307, 1e-5, method := 'zcdp'", "'epsilon' must be a number from 1e-100 to"),
        ("1e-300, 1e-5", "'epsilon' must be a number from 1e-100 to"),
        ("1, 0", "'delta' must be above 0 and below 1: normal noise is never private with delta 0"),
        ("1, 1", "'delta' must be above 0 and below 1"),
        ("1, 'nan'::DOUBLE", "'delta' must be above 0 and below 1"),
        ("1, 1e-5, 0", "'sensitivity' must be a number above 0"),
        ("1, 1e-5, 'inf'::DOUBLE", "'sensitivity' must be a number above 0"),
        ("1, 1e-5, method := 'best'", "'method' must be 'analytic', 'zcdp' or 'classic'"),
        ("1, 1e-5, method := NULL", "'method' must be 'analytic', 'zcdp' or 'classic'"),
        ("2, 1e-5, method := 'classic'", "'classic' is proven for an epsilon of at most 1"),
    ],
)
def test_wrong_arguments(lasting: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        lasting.execute(f"SELECT sdc_dp_sigma({arguments})").fetchall()


def test_null_is_null_and_many_rows_are_answered(con: duckdb.DuckDBPyConnection) -> None:
    assert con.execute("SELECT sdc_dp_sigma(NULL, 1e-5), sdc_dp_sigma(1, NULL)").fetchone() == (None, None)
    answer = con.execute(
        "SELECT count(DISTINCT sdc_dp_sigma(1 + i % 3, 1e-5)), min(sdc_dp_sigma(1, 1e-5, i + 1)) FROM range(3000) r(i)"
    ).fetchone()
    assert answer == (3, pytest.approx(3.730632, rel=1e-6))
