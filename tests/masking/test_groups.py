"""The kernels of microaggregation: what was published of them, and brute force.

Castro, Gentile and Spagnolo-Arrizabalaga (2022), "An Optimization-Based Decomposition Heuristic for the Microaggregation
Problem": tables 1 and 2, and figures that were worked out again from its text for a file that anyone can build.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from effort import LONG

from sdcduck.methods.masking import decomposition
from sdcduck.methods.masking.columns import columns_of
from sdcduck.methods.masking.decomposition import best_v_mdav, cut, decompose, first_groups
from sdcduck.methods.masking.dives import dive
from sdcduck.methods.masking.exchanges import exchange
from sdcduck.methods.masking.microaggregation import squared_error, standardised
from sdcduck.methods.masking.nearest_groups import mdav, v_mdav
from sdcduck.methods.masking.neighbourhoods import improve
from sdcduck.methods.masking.one_dimension import best_groups
from sdcduck.methods.masking.partitions import best_partition, possible_groups
from sdcduck.methods.masking.pricing import cheap_groups

Matrix = np.ndarray
STEP_2 = {("Tarragona", 3): 15.85, ("Tarragona", 5): 22.46, ("Tarragona", 10): 33.19,
          ("CASCrefmicrodata", 3): 5.66, ("CASCrefmicrodata", 5): 8.98, ("CASCrefmicrodata", 10): 14.04}  # fmt: skip
STEP_3 = {("Tarragona", 3): 15.00, ("Tarragona", 5): 20.74, ("Tarragona", 10): 30.77,
          ("CASCrefmicrodata", 3): 5.25, ("CASCrefmicrodata", 5): 8.12, ("CASCrefmicrodata", 10): 12.36}  # fmt: skip
MDAV = {("Tarragona", 3): 16.9326, ("Tarragona", 5): 22.4619, ("Tarragona", 10): 33.1929,
        ("CASCrefmicrodata", 3): 5.6922, ("CASCrefmicrodata", 5): 9.0884, ("CASCrefmicrodata", 10): 14.1559}  # fmt: skip
TOY = np.array([(0, 0), (1, 0), (0, 1), (10, 10), (11, 10), (10, 11), (5, 5), (6, 5)], float)


@cache
def file_of_200() -> Matrix:
    i = np.arange(200)
    return np.column_stack([37 * i % 101, 17 * i * i % 103, i**3 % 97]).astype(float)


@cache
def reference(folder: Path, name: str) -> Matrix:
    return standardised(np.loadtxt(folder / "sdcmicro" / f"input_{name}.csv.gz", delimiter=",", skiprows=1))


def loss(points: Matrix, groups: Matrix) -> float:
    return 100 * squared_error(points, groups) / squared_error(points, np.zeros(len(points), np.int64))


def test_the_file_of_200_is_the_one_meant() -> None:
    assert file_of_200().sum(axis=0).tolist() == [10009, 9165, 9440]
    assert possible_groups(1000, 3) == 8_291_874_541_950


@pytest.mark.parametrize(
    ("k", "plain", "groups", "variable", "variable_groups", "exchanged", "exchanges"),
    [(3, 4.6665, 66, 4.3771, 61, 4.2718, 16), (5, 7.9254, 40, 7.6665, 37, 6.8646, 31), (10, 15.7904, 20, 15.6356, 19, 13.7718, 26)],
)  # fmt: skip
def test_a_file_that_anyone_can_build(
    k: int, plain: float, groups: int, variable: float, variable_groups: int, exchanged: float, exchanges: int
) -> None:
    points = standardised(file_of_200())
    first, second = mdav(points, k), v_mdav(points, k, 0.6)
    assert loss(points, first) == pytest.approx(plain, abs=1e-3)
    assert loss(points, second) == pytest.approx(variable, abs=1e-3)
    assert (first.max() + 1, second.max() + 1) == (groups, variable_groups)
    better, made = exchange(points, first)
    assert loss(points, better) == pytest.approx(exchanged, abs=1e-3)
    assert made == exchanges
    assert sorted(np.bincount(better)) == sorted(np.bincount(first))
    if k == 3:
        assert squared_error(points, first) == pytest.approx(27.859185, abs=1e-6)
    order = np.random.default_rng(k).permutation(200)
    mixed = points[order]
    assert loss(mixed, exchange(mixed, mdav(mixed, k))[0]) == pytest.approx(exchanged, abs=1e-3)


def test_24_records_and_their_optimum() -> None:
    points = standardised(file_of_200()[:24])
    first = mdav(points, 3)
    better, _ = exchange(points, first)
    found = best_partition(points, 3, better)
    total = squared_error(points, np.zeros(24, np.int64))
    assert found.bound is not None
    measured = [loss(points, first), loss(points, better), loss(points, found.groups), 100 * found.bound / total]
    assert measured == pytest.approx([21.1649, 17.8020, 17.2300, 17.0191], abs=1e-4)


def test_eight_records_by_hand() -> None:
    errors = [
        squared_error(TOY, groups)
        for groups in (mdav(TOY, 3), v_mdav(TOY, 3, 0.6), best_partition(TOY, 3, mdav(TOY, 3)).groups)
    ]
    assert errors == pytest.approx([65.3333, 70.75, 61.3333], abs=1e-4)
    assert [squared_error(TOY, v_mdav(TOY, 3, gamma)) for gamma in (0, 1, 2)] == [70.75] * 3
    start = np.array([0, 0, 1, 1, 1, 0, 0, 1])
    assert squared_error(TOY, start) == 275.75
    groups, made = exchange(TOY, start)
    assert (squared_error(TOY, groups), made) == (275.75 - 205, 1)
    assert groups.tolist() == [0, 0, 0, 1, 1, 1, 0, 1]


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("name", ["Tarragona", "CASCrefmicrodata"])
def test_what_was_published_of_the_heuristics(reference_data: Path, name: str, k: int) -> None:
    points = reference(reference_data, name)
    assert loss(points, mdav(points, k)) == pytest.approx(MDAV[name, k], abs=1e-4)
    first = first_groups(points, k)
    assert loss(points, first) == pytest.approx(STEP_2[name, k], abs=0.01)
    assert loss(points, exchange(points, first)[0]) == pytest.approx(STEP_3[name, k], abs=0.01)


@pytest.mark.parametrize(
    ("name", "exchange_first", "step_5", "step_7"),
    [("Tarragona", True, 14.96, 14.85), pytest.param("Tarragona", False, 15.15, 14.95, marks=pytest.mark.long),
     pytest.param("CASCrefmicrodata", True, 5.21, 5.20, marks=pytest.mark.long), ("CASCrefmicrodata", False, 5.56, 5.19)],
)  # fmt: skip
def test_what_was_published_of_pieces(
    reference_data: Path, monkeypatch: pytest.MonkeyPatch, name: str, exchange_first: bool, step_5: float, step_7: float
) -> None:
    points, steps = reference(reference_data, name), []
    choose = decomposition._best
    monkeypatch.setattr(
        decomposition, "_best", lambda points, several: (steps.append(several), choose(points, several))[1]
    )
    found = decompose(points, 3, 40, exchange_first=exchange_first)
    assert loss(points, steps[-1][2]) == pytest.approx(step_5, abs=0.02)
    assert loss(points, steps[-1][3]) == pytest.approx(step_7, abs=0.02)
    assert loss(points, found.groups) == min(loss(points, groups) for groups in steps[-1])


STEP_7 = {  # by file, k and the number of pieces, where step 3 was taken
    "Tarragona": {
        3: {40: 14.85, 20: 14.81, 10: 14.65, 5: 14.53, 2: 14.50}, 5: {40: 20.73, 20: 20.73, 10: 20.40, 5: 20.25, 2: 20.46},
        10: {40: 30.77, 20: 30.87, 10: 30.56, 5: 30.79, 2: 30.80},
    },
    "CASCrefmicrodata": {
        3: {40: 5.20, 20: 5.19, 10: 5.18, 5: 5.07, 2: 4.79}, 5: {40: 8.12, 20: 8.11, 10: 8.09, 5: 7.84, 2: 8.19},
        10: {40: 12.36, 20: 12.32, 10: 12.40, 5: 12.63, 2: 12.46},
    },
}  # fmt: skip


@pytest.mark.skipif(not LONG, reason="ten seconds each: in `make test-long`")
@pytest.mark.parametrize(
    ("name", "k", "pieces"),
    [(name, k, pieces) for name, of in STEP_7.items() for k, by in of.items() for pieces in by],
)
def test_all_rows_of_the_table(reference_data: Path, name: str, k: int, pieces: int) -> None:
    points = reference(reference_data, name)
    assert loss(points, decompose(points, k, pieces).groups) <= STEP_7[name][k][pieces] + 0.10


@pytest.mark.skipif(not LONG, reason="minutes each: in `make test-long`")
@pytest.mark.parametrize(
    ("name", "neighbours", "published"),
    [("Tarragona", 16, 14.475), ("CASCrefmicrodata", 12, 4.681)],
)
def test_all_records_at_once(reference_data: Path, name: str, neighbours: int, published: float) -> None:
    points = reference(reference_data, name)
    assert loss(points, decompose(points, 3, 1, neighbours=neighbours).groups) <= published + 0.01


@pytest.mark.parametrize("seed", range(4))
def test_the_members_of_a_cheap_group_are_the_best_for_its_mean(seed: int) -> None:
    draws = np.random.default_rng(seed)
    points, prices, k = draws.normal(size=(11, 2)), draws.uniform(-1, 2, 11), 2 + seed % 2
    found = cheap_groups(points, prices, k, points)
    assert found.shape == (11, 2 * k - 1)
    for line in found:
        members = line[line >= 0]
        assert k <= len(members) == len(set(members))
        worth = ((points - points[members].mean(axis=0)) ** 2).sum(axis=1) - prices
        least = min(worth[list(some)].sum() for size in range(k, 2 * k) for some in combinations(range(11), size))
        assert worth[members].sum() == pytest.approx(least)


def test_cheap_groups_lower_the_loss_where_neighbours_are_too_few() -> None:
    points, k = standardised(file_of_200()), 10
    known = exchange(points, first_groups(points, k))[0]
    found = best_partition(points, k, known)
    assert found.bound is None
    assert np.bincount(found.groups).min() >= k
    assert loss(points, found.groups) < 12.1 < 13.9 < loss(points, known)


@pytest.mark.parametrize(("n", "k", "neighbours"), [(8, 2, None), (11, 3, None), (40, 3, 5), (41, 5, 7), (60, 7, 8)])
def test_a_dive_gives_groups_of_all_records(n: int, k: int, neighbours: int | None) -> None:
    for seed in range(4):
        points = np.random.default_rng(seed).normal(size=(n, 2))
        columns = columns_of(points, k, neighbours, mdav(points, k))
        found = dive(points, k, columns, np.arange(len(columns.costs)))
        assert found is not None
        assert np.bincount(found).min() >= k
        assert squared_error(points, found) < 1.15 * squared_error(points, exchange(points, mdav(points, k))[0])
        if neighbours is None:
            best = best_partition(points, k, mdav(points, k)).groups
            assert squared_error(points, found) <= 1.15 * squared_error(points, best)
    assert dive(points, k, columns, np.arange(len(columns.costs)), over=0.0) is None  # there was no time


def test_a_dive_prices_what_is_left_anew() -> None:
    points, k = standardised(file_of_200()), 10
    known = exchange(points, first_groups(points, k))[0]
    columns = columns_of(points, k, 11, known)
    found = dive(points, k, columns, np.arange(len(columns.costs)))
    assert found is not None
    assert loss(points, found) < 12.3 < 13.7 < loss(points, known)


def test_neighbourhoods_are_improved_until_none_can_be() -> None:
    few = standardised(file_of_200()[:24])
    total = squared_error(few, np.zeros(24, np.int64))
    found = improve(few, 3, exchange(few, mdav(few, 3))[0])  # all records are one neighbourhood
    assert 100 * squared_error(few, found) / total == pytest.approx(17.2300, abs=1e-4)
    points = standardised(file_of_200()[:48])
    for k in (3, 5):
        begun = exchange(points, mdav(points, k))[0]
        found = improve(points, k, begun)
        assert np.bincount(found).min() >= k
        assert squared_error(points, found) < squared_error(points, begun)
        assert (improve(points, k, found) == found).all()
    stopped = improve(points, 3, begun, over=0.0)  # there was no time
    assert squared_error(points, stopped) == pytest.approx(squared_error(points, begun))


def partitions(items: tuple[int, ...], k: int) -> list[list[tuple[int, ...]]]:
    """All partitions into groups of at least k."""
    if not items:
        return [[]]
    first, found = items[0], []
    for size in range(k - 1, len(items)):
        for others in combinations(items[1:], size):
            left = tuple(item for item in items[1:] if item not in others)
            found += [[(first, *others), *rest] for rest in partitions(left, k) if not left or len(left) >= k]
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "k"), [(6, 2), (7, 3), (8, 2), (9, 3), (9, 4)])
def test_the_optimum_against_all_partitions(n: int, k: int, seed: int) -> None:
    points = np.random.default_rng(seed).integers(0, 6, (n, 1 + seed % 2)).astype(float)
    best = np.inf
    for several in partitions(tuple(range(n)), k):
        groups = np.empty(n, np.int64)
        for number, members in enumerate(several):
            groups[list(members)] = number
        best = min(best, squared_error(points, groups))
    found = best_partition(points, k, mdav(points, k))
    assert squared_error(points, found.groups) == pytest.approx(best)
    assert found.bound is not None
    assert found.bound <= best + 1e-6
    if points.shape[1] == 1:
        assert squared_error(points, best_groups(points[:, 0], k)) == pytest.approx(best)


def plain_mdav(points: Matrix, k: int) -> Matrix:
    """As the paper says it, without any bound."""
    left, groups, number = list(range(len(points))), np.zeros(len(points), np.int64), 0

    def apart(one: int, center: Matrix) -> float:
        return float(((points[one] - center) ** 2).sum())

    def take(one: int) -> None:
        nonlocal left, number
        chosen = sorted(left, key=lambda other: (apart(other, points[one]), other))[:k]
        groups[chosen] = number
        left, number = [other for other in left if other not in chosen], number + 1

    while len(left) >= 2 * k:
        several, center = len(left) >= 3 * k, points[left].mean(axis=0)
        one = max(left, key=lambda other: (apart(other, center), -other))
        take(one)
        if several:
            take(max(left, key=lambda other: (apart(other, points[one]), -other)))
    groups[left] = number
    return groups


@pytest.mark.parametrize("width", [1, 3, 9])
@pytest.mark.parametrize("n", [1, 5, 7, 60, 301])
def test_bounds_leave_nobody_out(n: int, width: int) -> None:
    """Over 256 records in several blocks, in one, and of few columns, where bounds cut off most."""
    points = np.random.default_rng(n).normal(size=(n, width)) * np.linspace(1, 5, width)
    for k in (2, 3, 7):
        assert mdav(points, k).tolist() == plain_mdav(points, k).tolist()


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("n", [1, 2, 6, 20, 21, 62, 600])
def test_every_group_has_at_least_k(n: int, k: int) -> None:
    values = np.random.default_rng(n).integers(0, 4, (n, 2)).astype(float)  # with many ties
    sizes = np.bincount(mdav(values, k))
    assert n < k or (sizes.min() >= k and sizes.max() < 2 * k)
    for gamma in (0.0, 0.7, 1.1, 50.0):
        assert n < k or np.bincount(v_mdav(values, k, gamma)).min() >= k
    if k <= n <= 62:
        for groups in (best_v_mdav(values, k), best_groups(values[:, 0], k)):
            assert np.bincount(groups).min() >= k
        assert k > 3 or np.bincount(decompose(values, k).groups).min() >= k


def test_units_do_not_matter() -> None:
    values = np.random.default_rng(5).normal(size=(50, 3))
    for method in (mdav, first_groups):
        assert (method(standardised(values), 4) == method(standardised(values * [1, 1000, 0.01] + [0, 5, -1]), 4)).all()


def test_a_constant_column_tells_nothing() -> None:
    values = np.column_stack([np.arange(20.0), np.full(20, 0.1)])
    assert standardised(values)[:, 1].tolist() == [0.0] * 20
    assert (mdav(standardised(values), 3) == mdav(standardised(values[:, :1]), 3)).all()


def test_pieces_are_of_whole_groups() -> None:
    groups = first_groups(standardised(file_of_200()), 3)
    for pieces in (1, 2, 7, 40, 500):
        parts = cut(groups, pieces)
        assert sorted(np.concatenate(parts)) == list(range(200))
        assert len(parts) <= max(pieces, 1)
        assert sum(len(np.unique(groups[rows])) for rows in parts) == groups.max() + 1


def test_a_limit_of_time_gives_what_is_known() -> None:
    points = standardised(file_of_200())
    known = first_groups(points, 3)
    found = best_partition(points, 3, known, seconds=1e-9, neighbours=6)
    assert found.bound is None
    assert squared_error(points, found.groups) <= squared_error(points, known)
