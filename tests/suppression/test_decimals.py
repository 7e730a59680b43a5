"""Null space, decimals and stencil: the numbers of the paper, the identities, and the exact rank test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders import check_decimals
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from test_elimination import AGES, PAPER, PAPER_CELLS, PAPER_ORDER, columns_of, linked_tables, paper_table, rank_of

from sdcduck.methods.suppression import nullspace
from sdcduck.methods.suppression.decimals import decimals, residual_of
from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.nullspace import NullSpace, null_space, reveals
from sdcduck.methods.suppression.stencil import STENCIL_PRIME, stencil


def regression_fit(x: DummyMatrix, published: ArrayLike | NullSpace, y: np.ndarray) -> np.ndarray:
    """yhat = H y (equation 5): the values that follow from the published cells alone."""
    truth = np.asarray(y, dtype=np.float64)
    return np.asarray(truth - residual_of(x, published, truth[:, None])[:, 0])


def paper_publication() -> tuple[DummyMatrix, list[str], np.ndarray]:
    x, names = paper_table(with_size=False)
    primary = x.totals(PAPER.ravel()) <= 3
    order = [names.index(name) for name in PAPER_ORDER]
    result = suppress_secondary(x, order, primary, singleton_method="none")
    return x, names, ~(primary | result.secondary)


def size_cells() -> np.ndarray:
    """Columns small and big by young, middle, old, total; 18 x 8."""
    cells = np.zeros((6, 3, 2, 4))
    for m in range(6):
        for a in range(3):
            cells[m, a, int(m >= 3), [a, 3]] = 1
    return cells.reshape(18, 8)


def test_the_regression_fit_of_the_paper() -> None:
    """Spec 3.1: four known inner cells, five open dimensions, the fitted values, and those of the size groups."""
    x, _, published = paper_publication()
    space = null_space(x, published)
    assert space.dimension == 5
    known = [f"{PAPER_CELLS[r // 3]}:{AGES[r % 3]}" for r in np.flatnonzero(space.known)]
    assert known == ["C:middle", "D:middle", "E:old", "F:old"]
    fit = regression_fit(x, space, PAPER.ravel())
    expected = [[3, 3.5, 4.5], [3, 3.5, 4.5], [9.25, 9, -0.25], [27.75, 12, 18.25], [5.5, 23.5, 35], [2.5, 20.5, 14]]
    np.testing.assert_allclose(fit.reshape(6, 3), expected, atol=1e-12)
    np.testing.assert_allclose(size_cells().T @ fit, [15.25, 16, 8.75, 40, 35.75, 56, 67.25, 159], atol=1e-12)
    assert np.sum((PAPER.ravel() - fit) ** 2) == pytest.approx(280.25)
    np.testing.assert_allclose(regression_fit(x, published, PAPER.ravel()), fit, atol=1e-9)


def test_variances_and_published_sums_of_the_paper() -> None:
    """Spec 3.1: variance 0.5 sigma^2 for the inner cells of A and B, 0.25 for the other open ones, 1.5 for A:Total."""
    x, _, published = paper_publication()
    space = null_space(x, published)
    draws = decimals(x, space, PAPER.ravel(), replicates=20_000, sigma=2.0, seed=1)
    variance = draws.reshape(6, 3, -1).var(axis=2) / 4
    expected = np.where(space.known, 0, 0.25).reshape(6, 3)
    expected[:2] = 0.5
    np.testing.assert_allclose(variance, expected, rtol=0.05)
    sums = np.column_stack([x.totals(column) for column in draws[:, :50].T])
    np.testing.assert_allclose(sums[published], x.totals(PAPER.ravel())[published][:, None] + np.zeros(50), atol=1e-9)
    total = draws[[PAPER_CELLS.index("A") * 3 + a for a in range(3)]].sum(axis=0)
    assert total.var() / 4 == pytest.approx(1.5, rel=0.05)
    later = size_cells().T @ draws
    np.testing.assert_allclose(later.var(axis=1) / 4, [0.25, 0, 0.25, 0, 0.25, 0, 0.25, 0], rtol=0.05, atol=1e-12)
    whole = (np.abs(later[:, :3] - np.round(later[:, :3])) < 1e-5).all(axis=1)
    assert whole.tolist() == [False, True, False, True] * 2


def test_the_printed_draw_of_the_paper_is_in_the_null_space() -> None:
    """Table 3 of the paper, an input here: its distance to the fit is noticed by no published cell."""
    x, _, published = paper_publication()
    printed = np.array(
        [
            [2.6845, 3.3203, 4.4218],
            [3.3155, 3.6797, 4.5782],
            [9.7418, 9, -0.7418],
            [27.2582, 12, 18.7418],
            [5.6435, 23.3565, 35],
            [2.3565, 20.6435, 14],
        ]
    )
    distance = printed.ravel() - regression_fit(x, published, PAPER.ravel())
    assert np.abs(x.totals(distance)[published]).max() < 1e-9
    assert np.sqrt((distance**2).sum() / 5) == pytest.approx(0.5149, abs=1e-4)


def test_two_ages_and_three_countries() -> None:
    """Spec 3.2: one open dimension; the fit 10.75, 10.25 / 2.25, 1.75."""
    y = np.array([17, 10, 11, 17, 3, 1])
    groups = [range(6), [0, 1, 2], [3, 4, 5], [0, 3], [1, 4], [2, 5], [0], [3]]
    pairs = [(r, c) for c, members in enumerate(groups) for r in members]
    x = DummyMatrix.from_pairs(*np.array(pairs).T, (6, len(groups)))
    space = null_space(x, np.arange(len(groups)))
    assert space.dimension == 1
    np.testing.assert_allclose(regression_fit(x, space, y), [17, 10.75, 10.25, 17, 2.25, 1.75], atol=1e-12)


def test_four_by_four() -> None:
    """Spec 3.2, the table of the predecessor paper (Langsrud 2019)."""
    y = np.array([[3, 11, 32, 30], [1, 9, 13, 8], [12, 22, 2, 2], [18, 19, 16, 3]])
    suppressed = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2), (2, 3), (3, 0), (3, 3)]
    groups = [range(16)] + [range(4 * r, 4 * r + 4) for r in range(4)] + [range(c, 16, 4) for c in range(4)]
    groups += [[4 * r + c] for r in range(4) for c in range(4) if (r, c) not in suppressed]
    pairs = [(r, c) for c, members in enumerate(groups) for r in members]
    x = DummyMatrix.from_pairs(*np.array(pairs).T, (16, len(groups)))
    expected = [4.173913, 9.826087, 4.521739, 10.173913, 8.304348, 6.695652, -2.695652, 13.304348, 7.695652]
    for published in (np.arange(len(groups)), null_space(x, np.arange(len(groups)))):
        fit = regression_fit(x, published, y.ravel()).reshape(4, 4)
        np.testing.assert_allclose([fit[cell] for cell in suppressed], expected, atol=1e-6)


@settings(max_examples=times(60, 200), deadline=None)
@given(linked_tables(), st.randoms(use_true_random=False))
def test_the_stencil_agrees_with_the_exact_rank_on_later_groupings(problem, random) -> None:
    x, order, primary, _ = problem
    secondary = suppress_secondary(x, order, primary, singleton_method="none").secondary
    published = [c for c in range(x.columns) if not secondary[c] and c not in primary]
    space = null_space(x, published)
    rank = rank_of(x, published)
    assert space.dimension == x.rows - rank
    values = stencil(space, seed=random.randrange(1000))[:, 0]
    assert values.min(initial=0) >= 0
    assert values.max(initial=0) < STENCIL_PRIME
    codes = [random.randrange(3) for _ in range(x.rows)]
    for code in set(codes):
        members = [r for r in range(x.rows) if codes[r] == code]
        cells = [*(set(v) for v in columns_of(x)), set(members)]
        pairs = [(r, c) for c, rows in enumerate(cells) for r in rows]
        wider = DummyMatrix.from_pairs(*np.array(pairs).T, (x.rows, len(cells)))
        follows = rank_of(wider, [*published, x.columns]) == rank
        assert (sum(int(values[r]) for r in members) % STENCIL_PRIME == 0) == follows
    assert not set(reveals(space, x, primary))


@settings(max_examples=times(20, 60), deadline=None)
@given(linked_tables(), st.integers(0, 50))
def test_published_sums_are_whole_and_suppressed_ones_are_not(problem, seed: int) -> None:
    x, order, primary, _ = problem
    y = np.random.default_rng(seed).integers(0, 50, x.rows)
    secondary = suppress_secondary(x, order, primary, singleton_method="none").secondary
    suppressed = secondary.copy()
    suppressed[primary] = True
    for mode in (y, None):
        values = decimals(x, null_space(x, ~suppressed), mode, seed=seed)
        not_whole, whole = check_decimals(x, values, ~suppressed, suppressed)
        assert not len(not_whole)
        leaks = reveals(null_space(x, ~suppressed), x, np.flatnonzero(suppressed))
        assert whole.tolist() == leaks.tolist()
        assert not set(leaks) & set(primary)


def test_a_leak_of_a_bad_pattern_is_found() -> None:
    x, _, published = paper_publication()
    names = paper_table(with_size=False)[1]
    published[names.index("B:old")] = True
    values = decimals(x, null_space(x, published), PAPER.ravel())
    _, whole = check_decimals(x, values, published, ~published)
    # county-2 is B alone, and with its old the old of A follows.
    assert {names[c] for c in whole} == {"county-2:old", "A:old", "county-1:old"}


def test_large_entries_are_lifted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a bound so low that every fraction fails, lifting finds the same basis."""
    x, _, published = paper_publication()
    plain = null_space(x, published).basis.toarray()
    multiples = nullspace._common_denominators

    def none_fits(vector: np.ndarray, value: np.ndarray, vectors: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        top, bottom, multiple = multiples(vector, value, vectors)
        return top, bottom, np.zeros_like(multiple)

    monkeypatch.setattr(nullspace, "_common_denominators", none_fits)
    np.testing.assert_array_equal(null_space(x, published).basis.toarray(), plain)
    space = nullspace.modular_null_space(x, published)
    np.testing.assert_array_equal(null_space(x, space).basis.toarray(), plain)


def test_everything_or_nothing_published() -> None:
    x, _ = paper_table(with_size=False)
    everything = null_space(x, np.arange(x.columns))
    assert everything.dimension == 0
    assert not stencil(everything).any()
    np.testing.assert_array_equal(decimals(x, everything, PAPER.ravel()), PAPER.reshape(-1, 1) + np.zeros(3))
    nothing = null_space(x, [])
    assert nothing.dimension == 18
    noise = decimals(x, nothing, PAPER.ravel(), replicates=2)
    assert np.abs(noise - decimals(x, [], PAPER.ravel(), replicates=2)).max() < 1e-9
    assert not np.array_equal(noise[:, 0], noise[:, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"replicates": 0}, "at least one replicate"),
        ({"sigma": 0.0}, "sigma must be positive"),
        ({"y": np.array([1.0, np.nan] * 9)}, "counts must be finite"),
        ({"y": np.ones(3)}, "one count for each inner cell"),
    ],
)
def test_bad_input_is_named(change: dict[str, object], message: str) -> None:
    x, _, published = paper_publication()
    arguments: dict[str, object] = {"y": PAPER.ravel()} | change
    with pytest.raises(ValueError, match=message):
        decimals(x, published, **arguments)
    with pytest.raises(ValueError, match="at least one replicate"):
        stencil(NullSpace(None, published, published), replicates=0)


def regsdc(folder: Path) -> tuple[DummyMatrix, NullSpace, np.ndarray]:
    """The table of section 7 of the paper behind RegSDC: all its cells, what the published ones leave open, counts."""
    members = np.loadtxt(folder / "sec7xAll.csv", delimiter=",", skiprows=1)
    x = DummyMatrix.from_pairs(*np.nonzero(members), members.shape)
    shown = np.array([line != "" for line in (folder / "sec7zAllSupp.csv").read_text().splitlines()[1:]])
    return x, null_space(x, shown), np.loadtxt(folder / "sec7y.csv", skiprows=1, dtype=np.int64)


@pytest.mark.parametrize(("case", "base"), [("mod4_exact", 4), ("mod10_rmse0", 10)])
def test_the_fit_of_regsdc(reference_data: Path, case: str, base: int) -> None:
    """Without residuals the synthetic numbers of RegSDC are the fit of what is left beside the multiples of the base."""
    x, space, y = regsdc(reference_data / "regsdc")
    expected = np.loadtxt(reference_data / "regsdc" / f"SuppressDec_{case}.csv", skiprows=1)
    np.testing.assert_allclose(regression_fit(x, space, y % base) + y - y % base, expected, atol=1e-9)


@pytest.mark.parametrize("case", ["basic", "rmse1", "rmse1_noy", "mod10_res01"])
def test_the_draws_of_regsdc_are_ours(reference_data: Path, case: str) -> None:
    """What RegSDC draws differs from our fit within what we take to be open, and nowhere else; with a root mean square
    error of 1 its square is the number of open dimensions."""
    x, space, y = regsdc(reference_data / "regsdc")
    drawn = np.loadtxt(reference_data / "regsdc" / f"SuppressDec_{case}.csv", skiprows=1)
    residual = drawn - regression_fit(x, space, y)
    np.testing.assert_allclose(residual, residual_of(x, space, residual), atol=1e-9)
    np.testing.assert_array_equal(drawn[space.known], y[space.known])
    if case.startswith("rmse1"):
        assert np.sum(residual**2) == pytest.approx(space.dimension)


def test_nothing_is_drawn_where_all_is_published_as_in_regsdc(reference_data: Path) -> None:
    x, _, y = regsdc(reference_data / "regsdc")
    expected = np.loadtxt(reference_data / "regsdc" / "SuppressDec_full_no_suppression.csv", skiprows=1)
    space = null_space(x, np.ones(x.columns, dtype=bool))
    np.testing.assert_array_equal(decimals(x, space, y, replicates=1, seed=1)[:, 0], expected)
