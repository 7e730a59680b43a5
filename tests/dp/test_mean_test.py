"""The private comparison of two groups, its covariance and its directions: the numbers of the paper and of the theory.

Noise in these tests is drawn by a generator with a seed: they are about what is made of it.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from effort import times
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ive
from scipy.stats import binom
from seeded_noise import Seeded, moments_of

from sdcduck.methods.dp.covariance import private_covariance, share_of_part
from sdcduck.methods.dp.directions import direction, envelope
from sdcduck.methods.dp.mean_test import critical_index, hotelling, mean_scale, pooled, private_mean_test
from sdcduck.methods.dp.moments import GRID, Moments
from sdcduck.methods.dp.noise import Released, normals

SIDE = math.sqrt(3)


# --- without noise ---------------------------------------------------------------------------------------------------


def test_the_statistic_of_one_column() -> None:
    first, second = (moments_of(np.array(values, float)[:, None]) for values in ([1, 2, 3, 4], [2, 4, 6]))
    common = pooled(first.covariance, second.covariance, 4, 3)
    assert common == pytest.approx(np.array([[2.6]]))
    assert hotelling(first.means - second.means, common, 4, 3) == pytest.approx(1.483516, abs=5e-7)


def test_the_statistic_of_two_columns() -> None:
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)
    first, second = moments_of(corners), moments_of(corners + np.array([1, 0]))
    common = pooled(first.covariance, second.covariance, 4, 4)
    assert common == pytest.approx(np.eye(2) / 3)
    assert hotelling(first.means - second.means, common, 4, 4) == pytest.approx(6)


def test_the_matrix_of_unequal_covariances() -> None:
    first, second = np.array([[2.0, 1], [1, 3]]), np.array([[5.0, 0], [0, 1]])
    n1, n2 = 10, 40
    weights = pooled(first, second, n1, n2, unequal=True)
    # n1 n2 / (n1 + n2) times the variance of the difference of the means.
    assert weights == pytest.approx(n1 * n2 / (n1 + n2) * (first / n1 + second / n2))
    assert pooled(first, second, n1, n2) == pytest.approx((9 * first + 39 * second) / 48)


def test_the_scale_of_the_means_and_the_index() -> None:
    scale = mean_scale(SIDE, 1, 1000, 1 / 4)
    assert scale == pytest.approx(0.0138564, abs=5e-8)
    assert 4 * scale**2 == pytest.approx(0.000768, abs=5e-10)
    assert critical_index(200, 0.05) == 190
    # In floating-point numbers (1 - 0.1) * 70 is 62.999..
    assert [critical_index(rounds, alpha) for rounds, alpha in ((70, 0.1), (1000, 0.01), (3, 0.7))] == [63, 990, 0]


@given(
    st.lists(st.lists(st.integers(-GRID, GRID), min_size=3, max_size=3), min_size=2, max_size=30),
)
def test_moments_are_those_of_numpy(steps: list[list[int]]) -> None:
    values = np.array(steps) / GRID
    found = moments_of(values)
    assert found.means == pytest.approx(values.mean(axis=0), abs=1e-14)
    assert found.covariance == pytest.approx(np.cov(values.T), abs=1e-14)
    assert found.second() == pytest.approx(values.T @ values / len(values), abs=1e-14)


# --- directions ------------------------------------------------------------------------------------------------------


def test_the_mean_square_of_a_direction() -> None:
    kappa = 0.5 / 4 * 30
    expected = (1 + ive(1, kappa / 2) / ive(0, kappa / 2)) / 2
    assert expected == pytest.approx(0.838070, abs=5e-7)
    sampler, draws = Seeded(3), times(4000, 100_000)
    squares = np.array([direction(np.diag([40.0, 10.0]), 0.125, sampler)[0] ** 2 for _ in range(draws)])
    assert squares.mean() == pytest.approx(expected, abs=4 * squares.std() / math.sqrt(draws))


def test_directions_of_the_random_source_of_the_system() -> None:
    draws = 2000
    squares = np.array([direction(np.diag([40.0, 10.0]), 0.125, Released())[0] ** 2 for _ in range(draws)])
    assert squares.mean() == pytest.approx(0.838070, abs=10 * squares.std() / math.sqrt(draws))
    uniform = Released().uniform(10_000)
    assert 0 < uniform.min() < uniform.max() < 1
    assert len(np.unique(uniform)) == 10_000
    assert normals(Released(), 10_000).std() == pytest.approx(1, abs=10 / math.sqrt(20_000))


@pytest.mark.parametrize("columns", [2, 3, 6])
def test_directions_follow_their_density(columns: int) -> None:
    # Against importance weights of uniform directions; the matrix has no axes along the coordinates.
    generator = np.random.default_rng(columns)
    root = generator.normal(size=(columns, columns))
    matrix, sampler, draws = root @ root.T, Seeded(columns), times(3000, 50_000)
    uniform = generator.normal(size=(400_000, columns))
    uniform /= np.linalg.norm(uniform, axis=1, keepdims=True)
    weights = np.exp(np.einsum("ij,jk,ik->i", uniform, matrix, uniform) - np.linalg.eigvalsh(matrix)[-1])
    expected = np.einsum("i,ij,ik->jk", weights, uniform, uniform) / weights.sum()
    drawn = np.array([direction(matrix, 1.0, sampler) for _ in range(draws)])
    assert np.abs(np.linalg.norm(drawn, axis=1) - 1).max() < 1e-12
    assert np.abs(drawn.T @ drawn / draws - expected).max() < 5 * 0.5 / math.sqrt(draws)


@given(st.lists(st.floats(0, 1e8), min_size=1, max_size=30))
def test_the_envelope_is_never_below(penalties: list[float]) -> None:
    found = np.array([0.0, *penalties])
    q = len(found)
    b, log_bound = envelope(found)
    assert 0.99 <= b <= q
    squares = np.random.default_rng(1).dirichlet(np.full(q, 0.3), size=200)
    log_chance = q / 2 * np.log(squares @ (1 + 2 * found / b)) - squares @ found - log_bound
    assert log_chance.max() < 1e-6 * (1 + found.max() * 1e-6)


def test_equal_eigenvalues_and_one_dimension() -> None:
    assert direction(np.array([[7.0]]), 3.0, Seeded(1)).tolist() == [1.0]
    squares = np.array([direction(np.eye(3), 5.0, Seeded(seed)) ** 2 for seed in range(1500)])
    assert squares.mean(axis=0) == pytest.approx(np.full(3, 1 / 3), abs=5 * 0.3 / math.sqrt(1500))


# --- the covariance --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_with_much_budget_it_is_the_covariance(columns: int) -> None:
    generator = np.random.default_rng(columns)
    values = generator.uniform(-1, 1, (500, columns)) @ generator.normal(size=(columns, columns)) / (2 * columns)
    truth = np.cov(values.T).reshape(columns, columns)
    found = private_covariance(truth, 500, 1.0, 1e12, Seeded(1))
    assert found == pytest.approx(truth, abs=1e-5 * np.abs(truth).max())
    assert private_covariance(truth, 500, 2.0, 1e12, Released()) == pytest.approx(truth, abs=1e-4 * np.abs(truth).max())


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 10])
def test_it_is_symmetric_and_has_no_eigenvalue_below_zero(epsilon: float) -> None:
    truth = np.diag([1.0, 0.5, 0.2, 0])
    for seed in range(20):
        found = private_covariance(truth, 100, 1.0, epsilon, Seeded(seed))
        assert (found == found.T).all()
        values = np.linalg.eigvalsh(found)
        assert values.min() >= -1e-12 * values.max()


@pytest.mark.parametrize("columns", [2, 7, 30, 60])
@pytest.mark.parametrize("variance", [0.0, 1e-9, 0.3, 1.0])
def test_columns_that_vary_alike_have_a_private_covariance(columns: int, variance: float) -> None:
    """Their eigenvalues differ by rounding alone, so all directions are alike."""
    found = private_covariance(variance * np.eye(columns), 100, SIDE, 1.25, Seeded(columns))
    assert np.isfinite(found).all()
    assert np.linalg.eigvalsh(found)[0] >= -1e-9 * np.abs(found).max()


def test_the_noise_of_one_column() -> None:
    # |variance + m^2/n Laplace(2/epsilon)|, far from 0.
    n, epsilon, bound = 1000, 2.0, 1.5
    found = np.array([private_covariance(np.eye(1), n, bound, epsilon, Seeded(seed))[0, 0] for seed in range(4000)])
    scale = bound**2 / n * 2 / epsilon
    assert found.mean() == pytest.approx(1, abs=5 * math.sqrt(2) * scale / math.sqrt(4000))
    assert np.abs(found - 1).mean() == pytest.approx(scale, rel=5 / math.sqrt(4000))


def test_a_record_moves_the_centred_scatter_by_up_to_four_in_one_column() -> None:
    # Why 'safe' doubles the bound: as printed the eigenvalue, whose noise is for 2, changes by nearly 4.
    n = 1000
    before, after = np.ones((n, 1)), np.ones((n, 1))
    after[0] = -1
    change = n * (np.cov(after.T) - np.cov(before.T))
    assert change == pytest.approx(4)


def test_the_noise_covers_what_a_record_changes() -> None:
    # The trace norm of the difference of neighbours, in the scaling of 'safe', is at most that of the noise.
    generator, worst = np.random.default_rng(5), 0.0
    for _ in range(300):
        columns, n = generator.integers(1, 6), generator.integers(3, 20)
        values = generator.choice([-1.0, 1.0], (n, columns))
        other = values.copy()
        other[0] = -values[0]
        change = n * (np.cov(other.T) - np.cov(values.T)).reshape(columns, columns) / (columns * 2.0**2)
        worst = max(worst, np.abs(np.linalg.eigvalsh(change)).sum())
    assert worst <= 2


# --- the test --------------------------------------------------------------------------------------------------------


def rejections(
    n: int, columns: int, epsilon: float, runs: int, *, apart: float = 0.0, seed: int = 1, **how: object
) -> tuple[float, float]:
    """The shares of rejections by the bootstrap and by the asymptotic rule, of uniform groups, as published."""
    generator, sampler = np.random.default_rng(seed), Seeded(seed + 1)
    bound, counts = SIDE + apart / math.sqrt(columns), np.zeros(2)
    for _ in range(runs):
        first = moments_of(generator.uniform(-SIDE, SIDE, (n, columns)))
        second = moments_of(generator.uniform(-SIDE, SIDE, (n, columns)) + apart / math.sqrt(columns))
        test = private_mean_test(first, second, epsilon, sampler, generator, bound=bound, **how)  # type: ignore[arg-type]
        counts += test.reject, test.p_asymptotic < 0.05
    return counts[0] / runs, counts[1] / runs


@pytest.mark.parametrize("mode", ["literal", "safe"])
@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 5])
def test_the_size_in_one_dimension(mode: str, n: int, epsilon: float) -> None:
    assert 0.03 <= rejections(n, 1, epsilon, 1000, mode=mode)[0] <= 0.08


def test_the_size_in_ten_dimensions() -> None:
    assert 0.03 <= rejections(1000, 10, 1, times(300, 1000), mode="literal")[0] <= 0.08


@pytest.mark.parametrize(("n", "epsilon"), [(1000, 0.5), (10_000, 5)])
def test_the_size_in_thirty_dimensions(n: int, epsilon: float) -> None:
    # 150 runs in each run of the tests, in which the paper's sizes lie within four standard errors.
    generator, sampler, runs = np.random.default_rng(30), Seeded(31), times(150, 1000)
    rejected = 0
    for _ in range(runs):
        groups = [_moments_of_many(n, 30, generator) for _ in range(2)]
        rejected += private_mean_test(*groups, epsilon, sampler, generator, bound=SIDE, mode="literal").reject
    slack = 4 * math.sqrt(11 / 201 * 190 / 201 / runs)
    assert abs(rejected / runs - 11 / 201) <= slack


@pytest.mark.long
@pytest.mark.parametrize("columns", [1, 10, 30])
@pytest.mark.parametrize("n", [100, 1000, 10_000, 100_000])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 5])
def test_the_size_in_every_published_cell(columns: int, n: int, epsilon: float) -> None:
    # The law of covariances of many records matters less than the noise; sums of them are drawn as normal ones.
    generator, sampler, runs, rejected = np.random.default_rng(n + columns), Seeded(columns), 1000, 0
    for _ in range(runs):
        groups = [_moments_of_many(n, columns, generator) for _ in range(2)]
        rejected += private_mean_test(*groups, epsilon, sampler, generator, bound=SIDE, mode="literal").reject
    # The band of every cell but one, whose size cannot lie in it: the next test shows why.
    low, high = (0.005, 0.04) if (columns, n, epsilon) == CONSERVATIVE else (0.03, 0.08)
    assert low <= rejected / runs <= high


CONSERVATIVE = (30, 100, 5)
"""The published cell with more noise in the covariances than variance, and little in the means."""


def test_why_one_published_cell_rejects_less_than_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bootstrap draws sampling error from covariances whose eigenvalues, 1, are |1 + noise|, 45 on average.

    So what it repeats varies by a third more than the means do. With the covariances of the records it has its level.
    """
    columns, n, epsilon = CONSERVATIVE
    part = epsilon / 4
    noise = columns * SIDE**2 / n * 2 / share_of_part(part, columns)
    mean = 1 + noise * math.exp(-1 / noise)
    assert mean == pytest.approx(44.65, abs=0.01)
    traces = [np.trace(private_covariance(np.eye(columns), n, SIDE, part, Seeded(seed))) for seed in range(40)]
    assert np.mean(traces) / columns == pytest.approx(mean, rel=5 / math.sqrt(40 * columns))
    of_means = 2 * mean_scale(SIDE, columns, n, part) ** 2
    assert (of_means + mean / n) / (of_means + 1 / n) == pytest.approx(1.31, abs=0.01)

    monkeypatch.setattr("sdcduck.methods.dp.mean_test.private_covariance", lambda covariance, *_: covariance)
    runs = times(800, 4000)
    generator, sampler = np.random.default_rng(77), Seeded(78)
    groups = ([_moments_of_many(n, columns, generator) for _ in range(2)] for _ in range(runs))
    tests = [private_mean_test(*pair, epsilon, sampler, generator, bound=SIDE, mode="literal") for pair in groups]
    slack = 4 * math.sqrt(11 / 201 * 190 / 201 / runs)
    assert abs(sum(test.reject for test in tests) / runs - 11 / 201) <= slack


def _moments_of_many(n: int, columns: int, generator: np.random.Generator) -> Moments:
    """Of uniform records; of many the moments are normal, and covariances hardly vary."""
    if n <= 1000:
        return moments_of(generator.uniform(-SIDE, SIDE, (n, columns)))
    means = generator.normal(scale=1 / math.sqrt(n), size=columns)
    second = np.eye(columns) + np.outer(means, means)
    steps = GRID * GRID * n
    return Moments(
        n, tuple(int(mean * n * GRID) for mean in means),
        tuple(int(second[i, j] * steps) for i in range(columns) for j in range(i, columns)),
    )  # fmt: skip


def test_the_asymptotic_rule_of_the_appendix() -> None:
    generator, sampler, runs = np.random.default_rng(8), Seeded(9), times(2500, 20_000)
    for epsilon, low, high in ((4.0, 0.05, 0.08), (1.0, 0.17, 0.21)):
        rejected = 0
        for _ in range(runs):
            # The density exp(-2 t^2) on [-1, 1]: normal ones of sd 1/2 between the ends.
            drawn = generator.normal(scale=0.5, size=2400)
            values = drawn[np.abs(drawn) <= 1][:1000].reshape(2, 500, 1)
            test = private_mean_test(
                moments_of(values[0]), moments_of(values[1]), epsilon, sampler, generator, mode="literal", rounds=20
            )
            rejected += test.p_asymptotic < 0.05
        assert low <= rejected / runs <= high


def test_the_asymptotic_rule_fails_for_small_groups_and_the_full_correction_mends_it() -> None:
    assert rejections(100, 1, 0.5, 500, mode="literal")[1] > 0.4
    assert rejections(1000, 10, 0.5, 30, mode="literal")[1] == 1
    shares = [rejections(n, 1, epsilon, 1000, correction="full")[1] for n, epsilon in ((100, 1), (1000, 1), (1000, 5))]
    assert all(0.03 <= share <= 0.08 for share in shares)


POWERS = {
    (1, 100): (0.07, 0.18, 0.55, 1.0), (1, 300): (0.08, 0.91, 1, 1), (1, 1000): (0.59, 1, 1, 1),
    (10, 1000): (0.05, 0.10, 0.26, 1.0), (10, 3000): (0.04, 0.72, 1, 1), (10, 10_000): (0.31, 1, 1, 1),
}  # fmt: skip
"""By columns and records of a group, for epsilon 0.1, 0.5, 1 and 5, means 1 apart."""


@pytest.mark.parametrize(
    ("columns", "n"), [pytest.param(*cell, marks=[pytest.mark.long] if cell[0] > 1 else []) for cell in POWERS]
)
def test_the_power(columns: int, n: int) -> None:
    for epsilon, expected in zip((0.1, 0.5, 1, 5), POWERS[columns, n], strict=True):
        found = rejections(n, columns, epsilon, times(500, 1000), apart=1.0, mode="literal")[0]
        assert found == pytest.approx(expected, abs=0.07)


def test_the_power_in_ten_dimensions() -> None:
    assert rejections(1000, 10, 1, times(200, 1000), apart=1.0, mode="literal")[0] == pytest.approx(0.26, abs=0.07)
    assert rejections(1000, 10, 5, 20, apart=1.0, mode="literal")[0] == 1


def test_p_values_agree_with_the_verdict() -> None:
    generator, sampler, verdicts = np.random.default_rng(4), Seeded(5), []
    for _ in range(300):
        first, second = (moments_of(generator.uniform(-1, 1, (60, 2))) for _ in range(2))
        test = private_mean_test(first, second, 2.0, sampler, generator, rounds=99, alpha=0.25)
        # floor(0.75 * 99) = 74 of 99 are not above the critical value.
        assert test.reject == (test.p <= 26 / 100)
        assert test.p * 100 == pytest.approx(round(test.p * 100))
        verdicts.append(test.reject)
    assert binom.ppf(1e-6, 300, 0.26) <= sum(verdicts) <= binom.ppf(1 - 1e-6, 300, 0.26)


def test_constant_columns_and_more_columns_than_records() -> None:
    constant = moments_of(np.full((20, 2), 0.25))
    few = moments_of(np.random.default_rng(1).uniform(-1, 1, (4, 8)))
    for groups in ((constant, constant), (few, few)):
        test = private_mean_test(*groups, 1.0, Seeded(2), np.random.default_rng(3))
        assert math.isfinite(test.t2)
        assert test.critical > 0
