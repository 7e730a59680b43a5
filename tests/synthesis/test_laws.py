"""The laws, the exact law of their mean, the measures, and the draws: spec of Jackson, Mitra, Francis and Dove (2022)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sdcduck.methods.synthesis.draws import draw_counts, random_bits
from sdcduck.methods.synthesis.laws import MODELS, Law
from sdcduck.methods.synthesis.tau import (
    Histogram,
    Synthesis,
    Target,
    expected_size,
    expected_squared_distance,
    expected_tau,
    tune,
)

TOY = Histogram.of([1, 2, 3, 4, 10], [20, 10, 5, 3, 2], 100)
TITANIC = [0, 0, 35, 0, 0, 0, 17, 0, 118, 154, 387, 670, 4, 13, 89, 3, 5, 11, 13, 0, 1, 13, 14, 0, 57, 14, 75, 192, 140, 80,
           76, 20]  # fmt: skip
LAWS = [Law("poisson"), Law("nbi", 0.5), Law("nbi", 10), Law("pig", 0.5), Law("pig", 5), Law("delaporte", 2, 0.3)]


def probabilities(law: Law, mu: float, last: int) -> np.ndarray:
    return np.array([law.window([mu], 1, k, 0)[0] for k in range(last + 1)])


# --- printed values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sigma", "values"),
    [
        (0, (0.367879, 0.270671, 0.224042, 0.175467, 0.125110)),
        (0.1, (0.350494, 0.246745, 0.196120, 0.142871, 0.088099)),
        (0.5, (0.296296, 0.187500, 0.138240, 0.091070, 0.049349)),
        (1, (0.250000, 0.148148, 0.105469, 0.066980, 0.035049)),
        (2, (0.192450, 0.107331, 0.074381, 0.046072, 0.023605)),
        (10, (0.071527, 0.036793, 0.024752, 0.014956, 0.007517)),
    ],
)
def test_tau3_of_the_negative_binomial(sigma: float, values: tuple[float, ...]) -> None:
    found = [Law("nbi", sigma).window([k], 1, k, 0)[0] for k in (1, 2, 3, 5, 10)]
    assert found == pytest.approx(values, abs=1e-6)


def test_tau3_of_pig_and_delaporte() -> None:
    sigmas = (0.1, 0.5, 2, 10)
    pig = [Law("pig", sigma).window([1], 1, 1, 0)[0] for sigma in sigmas]
    delaporte = [Law("delaporte", sigma, 0.5).window([1], 1, 1, 0)[0] for sigma in sigmas]
    assert pig == pytest.approx((0.351477, 0.308819, 0.241050, 0.152511), abs=1e-6)
    assert delaporte == pytest.approx((0.36349, 0.34936, 0.32166, 0.29577), abs=1e-5)


def test_first_probabilities_of_pig_and_delaporte() -> None:
    assert probabilities(Law("pig", 0.5), 2, 3) == pytest.approx((0.231286, 0.267066, 0.198701, 0.125582), abs=1e-6)
    assert probabilities(Law("delaporte", 0.5, 0.3), 2, 3) == pytest.approx(
        (0.189900, 0.270329, 0.224608, 0.145973), abs=1e-6
    )
    assert Law("pig", 0.5).variance([2]) == 4
    assert Law("delaporte", 0.5, 0.3).variance([2])[0] == pytest.approx(2.98)


@pytest.mark.parametrize(
    ("sigma", "exact", "normal"),
    [
        (0, ".3679 .2707 .1755 .3640 .4236 .4771 .5233 .5634", ".0797 .1125 .1769 .2482 .3453 .4161 .4729 .5205"),
        (0.5, ".2963 .2195 .1429 .3003 .3515 .3980 .4387 .4747", ".0651 .0919 .1449 .2037 .2850 .3453 .3944 .4363"),
        (10, ".0715 .0614 .0461 .1055 .1290 .1492 .1670 .1830", ".0241 .0340 .0538 .0760 .1073 .1312 .1512 .1688"),
    ],
)
def test_the_initial_fall(sigma: float, exact: str, normal: str) -> None:
    releases = (1, 2, 5, 10, 20, 30, 40, 50)
    law = Law("nbi", sigma)
    assert [law.window([1], m, 1, 0.1)[0] for m in releases] == pytest.approx(list(map(float, exact.split())), abs=5e-5)
    assert [law.normal_window([1], m, 1, 0.1)[0] for m in releases] == pytest.approx(
        list(map(float, normal.split())), abs=5e-5
    )


@pytest.mark.parametrize(
    ("sigma", "m", "d", "tau1", "tau3", "tau4", "normal"),
    [
        (0, 1, 0, 0.110318, 0.367879, 0.666944, None),
        (0, 20, 0.5, 0.202476, 0.981530, 0.969527, 0.971614),
        (0.5, 1, 0, 0.099230, 0.296296, 0.597193, None),
        (0.5, 5, 0.5, 0.164187, 0.647021, 0.788151, 0.810129),
        (0.5, 50, 0.75, 0.219005, 0.999931, 0.913156, 0.913786),
        (2, 5, 0.5, 0.145096, 0.487604, 0.672112, 0.758558),
        (2, 50, 0.5, 0.206113, 0.964077, 0.935483, 0.933324),
    ],
)
def test_the_toy_table(
    sigma: float, m: int, d: float, tau1: float, tau3: float, tau4: float, normal: float | None
) -> None:
    synthesis = Synthesis(Law("nbi", sigma), m=m)
    found = expected_tau(TOY, synthesis, 1, d)
    assert (found.tau1, found.tau3, found.tau4) == pytest.approx((tau1, tau3, tau4), abs=1e-6)
    if normal is not None:
        assert expected_tau(TOY, synthesis, 1, d, "clt").tau4 == pytest.approx(normal, abs=1e-6)


def test_the_titanic_table() -> None:
    cells = Histogram.of(TITANIC, np.ones(32))
    syntheses = [Synthesis(Law("nbi", sigma)) for sigma in (0, 0.1, 0.5, 2, 10)]
    assert [expected_size(cells, s)[1] ** 2 for s in syntheses] == pytest.approx(
        (2201, 74_673.9, 364_565.5, 1_451_659, 7_249_491)
    )
    assert [expected_squared_distance(cells, s) for s in syntheses] == pytest.approx(
        [2201 + sigma * 724_729 for sigma in (0, 0.1, 0.5, 2, 10)]
    )
    assert [expected_tau(cells, s, 0, 0).tau1 for s in syntheses] == pytest.approx(
        (0.26383579, 0.26599061, 0.27912650, 0.37175063, 0.67654118), abs=1e-8
    )
    assert [expected_tau(cells, s, 1, 0).tau4 for s in syntheses] == pytest.approx(
        (0.58908890, 0.51244389, 0.29956301, 0.10910156, 0.05304752), abs=1e-8
    )
    many = [Synthesis(s.law, m=20) for s in syntheses]
    assert [expected_tau(cells, s, 1, 0.5).tau4 for s in many] == pytest.approx(
        (0.99998556, 0.99990633, 0.99704469, 0.92914903, 0.44899524), abs=1e-8
    )


def test_closed_forms_of_zero_and_one() -> None:
    assert expected_tau(TOY, Synthesis(Law("nbi", 0.5), alpha=0.2), 0, 0).tau3 == pytest.approx(1.1**-2)
    assert expected_tau(TOY, Synthesis(Law("poisson"), alpha=0.2), 0, 0).tau3 == pytest.approx(math.exp(-0.2))
    assert expected_tau(TOY, Synthesis(Law("nbi", 0.5)), 0, 0).tau3 == 1
    sigma, nu = 2.0, 0.3
    rest = 1 + sigma * (1 - nu)
    closed = math.exp(-nu) * rest ** (-1 / sigma) * (nu + (1 - nu) / rest)
    assert Law("delaporte", sigma, nu).window([1], 1, 1, 0)[0] == pytest.approx(closed, abs=1e-12)


# --- properties ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_sum_of_counts_is_the_convolution(law: Law) -> None:
    once = probabilities(law, 1.7, 400)
    thrice = np.convolve(np.convolve(once, once), once)[:60]
    assert [law.sum_between([1.7], 3, k, k)[0] for k in range(60)] == pytest.approx(thrice, abs=1e-13)
    assert once.sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("mu", [0.5, 30.0, 1e5])
def test_the_recursion_of_pig_does_not_overflow(mu: float) -> None:
    law = Law("pig", 0.5)
    assert law.sum_between([mu], 1, 0, int(40 * mu) + 1000)[0] == pytest.approx(1, abs=1e-9)


def test_limits_of_the_laws() -> None:
    for k in range(6):
        poisson = Law("poisson").window([2], 1, k, 0)[0]
        assert Law("nbi", 1e-5).window([2], 1, k, 0)[0] == poisson
        assert Law("nbi", 2e-4).window([2], 1, k, 0)[0] == pytest.approx(poisson, abs=2e-4)
        assert Law("delaporte", 0.5, 1e-9).window([2], 1, k, 0)[0] == pytest.approx(
            Law("nbi", 0.5).window([2], 1, k, 0)[0], abs=1e-7
        )


@settings(max_examples=60, deadline=None)
@given(
    law=st.sampled_from(LAWS), m=st.integers(1, 40), k=st.integers(0, 12), d=st.floats(0, 5),
    alpha=st.sampled_from([0, 0.01, 1]),
)  # fmt: skip
def test_the_measures_are_probabilities_and_obey_bayes(law: Law, m: int, k: int, d: float, alpha: float) -> None:
    found = expected_tau(TOY, Synthesis(law, alpha, m), k, d)
    assert -1e-12 <= found.tau1 <= 1 + 1e-9
    assert -1e-12 <= found.tau3 <= 1 + 1e-9
    if found.tau4 is not None:
        assert found.tau3 * found.tau2 == pytest.approx(found.tau4 * found.tau1, abs=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_distance_falls_with_the_root_of_the_number_of_releases(law: Law) -> None:
    once = expected_squared_distance(TOY, Synthesis(law, 0.3))
    assert once == pytest.approx(sum(law.variance(TOY.count[TOY.count > 0]) * TOY.cells[TOY.count > 0])
                                 + 60 * (law.variance([0.3])[0] + 0.3**2))  # fmt: skip
    for m in (4, 25):
        means = 60 * 0.3**2  # of empty cells: no release brings them nearer to 0
        assert expected_squared_distance(TOY, Synthesis(law, 0.3, m)) - means == pytest.approx((once - means) / m)


def test_the_mean_of_several_releases_has_its_variance() -> None:
    cells = 100_000
    columns = (np.full(cells, MODELS.index("nbi"), np.int8), np.full(cells, 4.0), np.full(cells, 0.5), np.zeros(cells))
    key, seed = np.arange(cells).astype(np.uint64), np.full(cells, 3, np.int64)
    releases = np.array([draw_counts(*columns, key, np.full(cells, m, np.int64), seed) for m in range(1, 6)])
    means = releases.mean(axis=0)
    variance = (4 + 0.5 * 4**2) / 5
    assert abs(means.mean() - 4) < 5 * math.sqrt(variance / cells)
    # The kurtosis of the mean of five is below 3 + 6 / 5, so that the variance of a variance is below 3.2 times its square.
    assert means.var() == pytest.approx(variance, rel=5 * math.sqrt(3.2 / cells))


def test_the_shares_add_up() -> None:
    shares = [expected_tau(TOY, Synthesis(Law("nbi", 0.5), 0.01), k, 0).tau1 for k in range(300)]
    assert sum(shares) == pytest.approx(1, abs=1e-9)


def test_more_releases_bring_the_unique_back() -> None:
    at = [expected_tau(TOY, Synthesis(Law("nbi", 0.5), m=m), 1, 0.5).tau3 for m in (1, 10, 100, 1000)]
    assert at == sorted(at)
    assert at[-1] == pytest.approx(1, abs=1e-12)


# --- draws -----------------------------------------------------------------------------------------------------------


def draws(law: Law, mu: float, size: int, seed: int = 7) -> np.ndarray:
    def column(value: float, dtype: type) -> np.ndarray:
        return np.full(size, value, dtype=dtype)

    return draw_counts(
        column(MODELS.index(law.model), np.int8), column(mu, np.float64), column(law.sigma, np.float64),
        column(law.nu or 0, np.float64), np.arange(size).astype(np.uint64), column(1, np.int64), column(seed, np.int64),
    )  # fmt: skip


@pytest.mark.parametrize("mu", [0.3, 2.0, 9.9, 10.1, 60.0])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_follow_their_law(law: Law, mu: float) -> None:
    size = 200_000
    found = draws(law, mu, size)
    last = int(np.quantile(found, 0.999)) + 1
    expected = size * probabilities(law, mu, last)
    observed = np.bincount(np.minimum(found, last + 1), minlength=last + 2)
    kept = expected > 10
    # Everything else is one class.
    classes = np.r_[observed[:-1][kept], size - observed[:-1][kept].sum()]
    wanted = np.r_[expected[kept], size - expected[kept].sum()]
    # A seed that is fixed fails never or always: one in a million of good generators would.
    assert stats.chisquare(classes, wanted, sum_check=False).pvalue > 1e-6
    sd = math.sqrt(law.variance([mu])[0] / size)
    assert abs(found.mean() - mu) < 5 * sd


def test_large_counts() -> None:
    found = draws(Law("poisson"), 1e12, 1000)
    assert abs(found.mean() - 1e12) < 5 * math.sqrt(1e12 / 1000)
    assert draws(Law("nbi", 1e6), 1e12, 10_000).min() >= 0


def test_a_draw_depends_on_seed_cell_and_replicate_alone() -> None:
    size = 5000
    rng = np.random.default_rng(1)
    columns = (
        rng.integers(0, 4, size).astype(np.int8), rng.uniform(0, 50, size), rng.uniform(0, 3, size),
        rng.uniform(0.1, 0.9, size), rng.integers(0, 2**63, size).astype(np.uint64), rng.integers(1, 50, size),
        rng.integers(-(2**62), 2**62, size),
    )  # fmt: skip
    whole = draw_counts(*columns)
    shuffled = rng.permutation(size)
    assert (draw_counts(*(column[shuffled] for column in columns)) == whole[shuffled]).all()
    parts = [draw_counts(*(column[at : at + 7] for column in columns)) for at in range(0, size, 7)]
    assert (np.concatenate(parts) == whole).all()


def test_streams_do_not_follow_each_other() -> None:
    cells = np.arange(100_000).astype(np.uint64)
    ones = np.ones(len(cells), dtype=np.int64)
    one, two = (random_bits(cells, ones, ones * replicate, ones) / 2.0**64 for replicate in (1, 2))
    other = random_bits(cells, ones, ones, 2 * ones) / 2.0**64
    assert stats.kstest(one, "uniform").pvalue > 1e-6
    for second in (two, other, np.roll(one, 1)):
        assert abs(np.corrcoef(one, second)[0, 1]) < 5 / math.sqrt(len(cells))


def test_draws_are_the_same_for_ever() -> None:
    # Whoever changes a stream changes what custodians have published.
    assert [draws(law, 5.0, 6).tolist() for law in LAWS] == GOLDEN


GOLDEN = [
    [1, 2, 3, 5, 8, 5],
    [10, 3, 3, 4, 7, 3],
    [0, 0, 0, 0, 27, 0],
    [6, 10, 5, 4, 8, 4],
    [3, 28, 6, 3, 2, 4],
    [0, 3, 4, 1, 14, 4],
]


# --- tuning ----------------------------------------------------------------------------------------------------------


def test_the_sigma_that_was_asked_for() -> None:
    found = tune(TOY, Synthesis(Law("nbi", 0)), Target.parse("tau3(1) <= 0.192450089729875"), "sigma")
    assert found.law.sigma == pytest.approx(2, abs=1e-9)
    assert tune(TOY, Synthesis(Law("nbi", 0)), Target.parse("tau3(1) <= 0.9"), "sigma").law.sigma == 0


def test_the_number_of_releases() -> None:
    target = Target.parse("tau4(1, 0.5) <= 0.8")
    found = tune(TOY, Synthesis(Law("nbi", 0.5)), target, "m")
    assert all(target.attained(TOY, Synthesis(Law("nbi", 0.5), m=m), "exact") <= 0.8 for m in range(1, found.m + 1))
    assert target.attained(TOY, Synthesis(Law("nbi", 0.5), m=found.m + 1), "exact") > 0.8
    enough = tune(TOY, Synthesis(Law("nbi", 0.5)), Target.parse("tau3(1, 0.5) >= 0.9"), "m")
    assert expected_tau(TOY, enough, 1, 0.5).tau3 >= 0.9
    assert expected_tau(TOY, Synthesis(enough.law, m=enough.m - 1), 1, 0.5).tau3 < 0.9


def test_what_cannot_be_had() -> None:
    with pytest.raises(ValueError, match=r"no sigma fulfils the target: tau4\(1, 0\) lies between 0.5 and 0.6669"):
        tune(TOY, Synthesis(Law("nbi", 0)), Target.parse("tau4(1) <= 0.4"), "sigma")
    for text in ("", "tau5(1) <= 1", "tau4(1) < 0.5", "tau4(-1) <= 0.5", "tau4(1, .) <= 0.5"):
        with pytest.raises(ValueError, match="target must read like"):
            Target.parse(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("normal",), "model must be one of"),
        (("nbi", -0.1), "sigma must be a number between 0"),
        (("nbi", math.nan), "sigma must be a number between 0"),
        (("nbi", 1.0, 0.5), "nu goes with"),
        (("delaporte", 1.0), "nu goes with"),
        (("delaporte", 1.0, 1.0), "nu must lie between 0 and 1"),
    ],
)
def test_laws_that_are_none(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Law(*arguments)  # type: ignore[arg-type]
