"""How noise is shared: the numbers of Shoham & Rinott's theorems, and that each share is the best for its purpose."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdcduck.methods.dp.allocation import OBJECTIVES, Allocation, allocate
from sdcduck.methods.dp.calibration import gaussian_ratio

RATIO = gaussian_ratio(1, 1e-5)


def _of(*sensitivities: float, objective: str = "volume", eta: tuple[float, ...] | None = None) -> Allocation:
    return allocate(np.array(sensitivities), RATIO, objective, eta=None if eta is None else np.array(eta))


def test_the_example_of_three_and_four() -> None:
    adjusted, plain = _of(3, 4), _of(3, 4, objective="none")
    assert adjusted.volume_ratio == pytest.approx(0.96, rel=1e-12)
    assert plain.volume_ratio == pytest.approx(1, rel=1e-12)
    assert adjusted.sigma == pytest.approx(18.653158, rel=1e-7)
    assert plain.deviations == pytest.approx([18.653158] * 2, rel=1e-7)
    assert adjusted.xi == pytest.approx([25 / 18, 25 / 32], rel=1e-12)
    assert adjusted.deviations == pytest.approx([15.827730, 21.103639], rel=1e-7)
    assert plain.volume(0.95) == pytest.approx(6549.190, rel=1e-6)
    assert adjusted.volume(0.95) == pytest.approx(6287.223, rel=1e-6)
    assert adjusted.half_axes(0.95) == pytest.approx(np.sqrt(5.991465) * adjusted.deviations, rel=1e-6)


def test_the_example_of_one_and_ten() -> None:
    adjusted, plain = _of(1, 10), _of(1, 10, objective="none")
    assert adjusted.volume_ratio == pytest.approx(20 / 101, rel=1e-12)
    assert adjusted.sigma == pytest.approx(37.492384, rel=1e-7)
    assert adjusted.xi == pytest.approx([50.5, 0.505], rel=1e-12)
    assert adjusted.deviations == pytest.approx([5.275910, 52.759099], rel=1e-6)
    assert plain.volume(0.95) == pytest.approx(26458.729, rel=1e-6)
    assert adjusted.volume(0.95) == pytest.approx(5239.352, rel=1e-6)


def test_the_powers_of_that_example() -> None:
    eta = np.array([5.0, 10.0])
    assert _of(1, 10, objective="none").power(eta, 0.05) == pytest.approx(0.089046, abs=1e-6)
    assert _of(1, 10).power(eta, 0.05) == pytest.approx(0.248765, abs=1e-6)
    best = _of(1, 10, objective="lrt", eta=(5, 10))
    assert best.power(eta, 0.05) == pytest.approx(0.380336, abs=1e-6)
    assert best.xi == pytest.approx([101, 0])
    assert best.deviations[1] == math.inf
    # The likelihood ratio by hand: one coordinate, its noise, and the distance.
    assert best.p_value(eta, np.array([5.0, np.nan])) == pytest.approx(
        0.5 * math.erfc(5 * RATIO / math.sqrt(2)), rel=1e-9
    )


def test_equal_sensitivities_need_no_adjustment() -> None:
    equal = _of(1, 1, 1, 1)
    assert equal.volume_ratio == pytest.approx(1, rel=1e-12)
    assert equal.sigma == pytest.approx(7.461263, rel=1e-6)
    assert equal.deviations == pytest.approx([7.461263] * 4, rel=1e-6)


def test_ties_of_the_likelihood_ratio_go_to_the_first() -> None:
    assert _of(1, 2, 3, objective="lrt", eta=(1, -2, 3)).shares.tolist() == [1, 0, 0]


def test_what_never_changes_has_no_noise_and_no_share() -> None:
    for objective in OBJECTIVES:
        found = _of(0, 3, 4, objective=objective, eta=(9, 1, 1))
        without = _of(3, 4, objective=objective, eta=(1, 1))
        assert found.deviations.tolist() == [0, *without.deviations]
        assert found.volume_ratio == pytest.approx(without.volume_ratio, rel=1e-12)
        assert found.power(np.array([9.0, 1, 1]), 0.05) == pytest.approx(without.power(np.array([1.0, 1]), 0.05))


sizes = st.lists(st.floats(0.01, 1000), min_size=2, max_size=6)


@given(sizes=sizes, data=st.data())
def test_each_objective_is_the_best_of_its_purpose(sizes: list[float], data: st.DataObject) -> None:
    psi = np.array(sizes)
    draw = st.lists(st.floats(0.05, 1), min_size=len(psi), max_size=len(psi))
    eta, weights, other = (np.array(data.draw(draw)) for _ in range(3))
    others = Allocation(psi, other / other.sum(), RATIO)
    for found in (*(allocate(psi, RATIO, one, weights=weights, eta=eta) for one in OBJECTIVES), others):
        noisy = found.shares > 0
        assert ((psi / found.deviations)[noisy] ** 2).sum() <= RATIO**2 * (1 + 1e-12)
        assert (found.xi * psi**2).sum() == pytest.approx((psi**2).sum())
        best = {one: allocate(psi, RATIO, one, weights=weights, eta=eta) for one in OBJECTIVES}
        if noisy.all():
            assert best["volume"].volume(0.9) <= found.volume(0.9) * (1 + 1e-9)
            loss = (weights * best["mse"].deviations ** 2).sum()
            assert loss <= (weights * found.deviations**2).sum() * (1 + 1e-9)
        assert best["lrt"].power(eta, 0.05) >= found.power(eta, 0.05) - 1e-9


def test_by_sql(con: duckdb.DuckDBPyConnection) -> None:
    rows = con.execute(
        "SELECT place, sensitivity, xi, noise_sd, sigma, volume_ratio, power FROM sdc_dp_allocation([1, 10], 1, 1e-5, eta := [5, 10])"
    ).fetchall()
    assert [row[:2] for row in rows] == [(1, 1), (2, 10)]
    assert [row[2] for row in rows] == pytest.approx([50.5, 0.505])
    assert [row[3] for row in rows] == pytest.approx([5.275910, 52.759099], rel=1e-6)
    assert all(row[4:] == pytest.approx((37.492384, 20 / 101, 0.248765), rel=1e-5) for row in rows)
    volumes = con.execute("SELECT volume, half_axis, power FROM sdc_dp_allocation([3, 4], 1, 1e-5)").fetchall()
    assert [row[0] for row in volumes] == pytest.approx([6287.223] * 2, rel=1e-6)
    assert [row[1] for row in volumes] == pytest.approx(
        [math.sqrt(5.991465) * 15.827730, math.sqrt(5.991465) * 21.103639], rel=1e-6
    )
    assert volumes[0][2] is None
    lrt = con.execute(
        "SELECT xi, noise_sd, volume, power FROM sdc_dp_allocation([1, 10], 1, 1e-5, 'lrt', eta := [5, 10])"
    ).fetchall()
    assert lrt[0] == (pytest.approx(101), pytest.approx(1 / RATIO), None, pytest.approx(0.380336, abs=1e-6))
    assert lrt[1][:2] == (0, None)
    (mse,) = con.execute(
        "SELECT list(noise_sd) FROM sdc_dp_allocation([3, 4], 1, 1e-5, 'mse', weights := [16, 9])"
    ).fetchone() or [None]
    assert mse == pytest.approx([3 * math.sqrt(2) / RATIO, 4 * math.sqrt(2) / RATIO], rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("[], 1, 1e-5", "'sensitivities' must hold numbers of at least 0"),
        ("[1, NULL], 1, 1e-5", "'sensitivities' must hold numbers of at least 0"),
        ("[1, -1], 1, 1e-5", "'sensitivities' must hold numbers of at least 0"),
        ("[1, 'inf'::DOUBLE], 1, 1e-5", "'sensitivities' must hold numbers of at least 0"),
        ("[1e300, 1], 1, 1e-5", "'sensitivities' must hold numbers that are 0, or from 1e-100"),
        ("[1, 1e-300], 1, 1e-5", "'sensitivities' must hold numbers that are 0, or from 1e-100"),
        ("[1, 2], 1e-300, 1e-5", "'epsilon' must be a number from 1e-100 to"),
        ("[0, 0], 1, 1e-5", "'sensitivities' must hold a number above 0"),
        ("[1, 2], 0, 1e-5", "'epsilon' must be a number above 0"),
        ("[1, 2], NULL, 1e-5", "'epsilon' must be a number above 0"),
        ("[1, 2], 1, 0", "'delta' must be above 0 and below 1"),
        ("[1, 2], 1, NULL", "'delta' must be above 0 and below 1"),
        ("[1, 2], 1, 1e-5, 'lrt'", "'eta' must say what the alternative is"),
        ("[1, 2], 1, 1e-5, 'lrt', eta := [0, 0]", "'eta' must not be 0 everywhere"),
        ("[1, 2], 1, 1e-5, 'lrt', eta := [1]", "'eta' must hold 2 numbers, one for each"),
        ("[1, 2], 1, 1e-5, 'mse', weights := [1, 0]", "'weights' must hold 2 numbers above 0, one for each"),
        ("[1, 2], 1, 1e-5, 'volume', weights := [1, 1]", "'weights' is for objective := 'mse'"),
        ("[1, 2], 1, 1e-5, 'vol'", "'objective' must be 'volume', 'mse', 'lrt' or 'none'; did you mean 'volume'"),
        ("[1, 2], 1, 1e-5, confidence := 95", "'confidence' must be above 0 and below 1; 95 per cent is 0.95"),
        ("[1, 2], 1, 1e-5, eta := [1, 1], level := 1", "'level' must be above 0 and below 1"),
    ],
)  # fmt: skip
def test_wrong_arguments(lasting: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        lasting.execute(f"FROM sdc_dp_allocation({arguments})").fetchall()
