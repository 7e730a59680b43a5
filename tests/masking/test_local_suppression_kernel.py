"""Local suppression of arrays: as a slow reading of the same rules does it, never worse with `best`, and right each time."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sdcduck.methods.masking.local_suppression import Demand, LocalSuppression, order_of_keys
from sdcduck.methods.masking.matches import Matches
from sdcduck.methods.masking.suppression_programme import fewest_values

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


def alike(codes: Indices, alpha: float = 1.0) -> NDArray[np.float64]:
    """What each record counts: the equal ones in full, those that may be equal with alpha."""
    one, two = codes[:, None], codes[None]
    may = ((one == two) | (one < 0) | (two < 0)).all(axis=2)
    same = (one == two).all(axis=2)
    return np.asarray(np.where(same, 1.0, np.where(may, alpha, 0.0)).sum(axis=1))


def slowly(codes: Indices, strata: Indices, demands: list[Demand], order: tuple[int, ...]) -> Indices:
    """What sdcMicro leaves, one record after the other and every count from the beginning."""
    left = codes.copy()
    for demand in demands:
        for stratum in np.unique(strata):
            rows = np.flatnonzero(strata == stratum)
            keys = list(demand.keys)
            while (counts := alike(left[np.ix_(rows, keys)])).min() < demand.k:
                for place in sorted(np.flatnonzero(counts < demand.k), key=lambda one: (counts[one], one)):
                    row, now = rows[place], alike(left[np.ix_(rows, keys)])[place]
                    open_keys = [key for key in order if key in keys and left[row, key] >= 0]
                    helps = []
                    for key in open_keys:
                        kept, left[row, key] = left[row, key], -1
                        helps += [key] if alike(left[np.ix_(rows, keys)])[place] > now else []
                        left[row, key] = kept
                    left[row, [*helps, *open_keys][0]] = -1
    return left


def a_file(seed: int, records: int, keys: int, missing: float, strata: int) -> tuple[Indices, Indices]:
    chance = np.random.default_rng(seed)
    levels = chance.integers(2, 7, keys)
    codes = np.column_stack([chance.binomial(level - 1, 0.4, records) for level in levels]).astype(np.int64)
    codes[chance.random(codes.shape) < missing] = -1
    return codes, np.sort(np.arange(records) % strata)


def after(codes: Indices, suppressed: Mask) -> Indices:
    return np.where(suppressed, -1, codes)


@pytest.mark.parametrize(
    ("keys", "missing", "strata", "k"), [(3, 0, 1, 2), (4, 0, 1, 3), (5, 0.1, 1, 4), (4, 0.05, 3, 3), (7, 0.02, 2, 2)]
)
@pytest.mark.parametrize("seed", range(4))
def test_in_turn_it_is_what_a_slow_reading_of_the_rules_gives(
    keys: int, missing: float, strata: int, k: int, seed: int
) -> None:
    codes, groups = a_file(seed, 60, keys, missing, strata)
    order = tuple(np.random.default_rng(seed).permutation(keys).tolist())
    for demands in (
        [Demand(tuple(range(keys)), k)],
        [Demand(some, k + 1) for some in combinations(range(keys), 2)] + [Demand(tuple(range(keys)), 2)],
    ):
        made = LocalSuppression(demands, order, method="sdcmicro").of(codes, groups)
        assert (after(codes, made) == slowly(codes, groups, demands, order)).all()


def test_the_keys_with_most_values_go_first_and_of_equal_ones_the_last() -> None:
    codes = np.array([[0, 0, 0, 1], [1, 1, 1, -1], [0, 2, 1, 0], [0, 0, 2, 0]])
    assert order_of_keys(codes) == (2, 1, 3, 0)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000), records=st.integers(6, 90), keys=st.integers(1, 5), k=st.integers(2, 5),
    strata=st.integers(1, 2), missing=st.sampled_from([0, 0.08]), alpha=st.sampled_from([1.0, 1.0, 0.5, 0.1, 0.0]),
    pairs=st.booleans(),
)  # fmt: skip
def test_the_best_is_never_worse_and_both_are_safe(
    seed: int, records: int, keys: int, k: int, strata: int, missing: float, alpha: float, pairs: bool
) -> None:
    codes, groups = a_file(seed, max(records, 2 * k * strata), keys, missing, strata)
    several = list(combinations(range(keys), 2)) if pairs and keys > 2 else [tuple(range(keys))]
    demands, order, found = [Demand(one, k) for one in several], order_of_keys(codes), {}
    for method in ("best", "sdcmicro"):
        suppressed = LocalSuppression(demands, order, alpha, method).of(codes, groups)
        assert not suppressed[codes < 0].any()
        left = after(codes, suppressed)
        for one, stratum in product(several, np.unique(groups)):
            assert alike(left[groups == stratum][:, list(one)], alpha).min() >= k - 1e-9
        found[method] = int(suppressed.sum())
    assert found["best"] <= found["sdcmicro"]


def test_a_record_that_is_not_rare_keeps_all_and_a_rare_one_loses_something() -> None:
    for seed in range(20):
        codes, groups = a_file(seed, 80, 5, 0.03, 1)
        rare = alike(codes) < 3
        for method in ("best", "sdcmicro"):
            suppressed = LocalSuppression([Demand(tuple(range(5)), 3)], order_of_keys(codes), method=method).of(
                codes, groups
            )
            assert (suppressed.any(axis=1) == rare).all()


def fewest(codes: Indices, k: int) -> int:
    """The fewest values that will do, of all ways to take values from the rare records."""
    rare = np.flatnonzero(alike(codes) < k)
    ways = [one for one in product([False, True], repeat=codes.shape[1]) if any(one)]
    best = codes.size
    for chosen in product(ways, repeat=len(rare)):
        left = codes.copy()
        left[rare] = np.where(chosen, -1, left[rare])
        if alike(left).min() >= k:
            best = min(best, int(np.sum(chosen)))
    return best


def test_small_files_lose_as_little_as_can_be() -> None:
    looked, needed_more = 0, 0
    for seed in range(40):
        chance = np.random.default_rng(seed)
        common = np.repeat(chance.integers(0, 2, (2, 3)), 3, axis=0)
        codes = np.concatenate([common, chance.integers(0, 3, (4, 3))]).astype(np.int64)
        groups = np.zeros(len(codes), np.int64)
        rare = int((alike(codes) < 3).sum())
        if not 1 <= rare <= 4:
            continue
        looked += 1
        suppressed = LocalSuppression([Demand((0, 1, 2), 3)], (2, 1, 0)).of(codes, groups)
        best = fewest(codes, 3)
        assert suppressed.sum() == best
        needed_more += best > rare
    assert looked > 10
    assert needed_more > 0


def test_the_programme_finds_what_is_fewer_and_leaves_what_is_not() -> None:
    codes = np.array([[0, 0], [0, 0], [0, 0], [0, 1], [1, 0], [1, 1]])
    begun, strata = np.zeros(6, np.int64), np.zeros(6, np.int64)
    rare = np.array([3, 4, 5])
    all_of_them = np.array([0, 0, 0, 3, 3, 3])
    found = fewest_values(codes, strata, 3, rare, all_of_them, begun, (1, 0))
    assert sorted(found.tolist()) == [0, 0, 0, 1, 2, 2]  # of two that do equally well the second key goes rather
    assert alike(np.where(found[:, None] >> np.arange(2) & 1, -1, codes)).min() >= 3
    assert fewest_values(codes, strata, 3, rare, found, begun, (0, 1)) is found


def test_counts_follow_what_is_suppressed() -> None:
    codes, groups = a_file(3, 50, 4, 0.1, 2)
    for alpha in (1.0, 0.3):
        matches, left = Matches(codes, groups, alpha), codes.copy()
        chance = np.random.default_rng(0)
        for _ in range(30):
            row = np.array([chance.integers(0, 50)])
            left[row, chance.integers(0, 4)] = -1
            matches.move(row, (left[row] < 0) @ (1 << np.arange(4)))
            expected = np.concatenate([alike(left[groups == stratum], alpha) for stratum in (0, 1)])
            assert matches.counts(np.arange(50)) == pytest.approx(expected)


def test_when_values_missing_count_nothing_the_last_ones_are_joined_by_others() -> None:
    codes = np.array([[0, 0]] * 5 + [[1, 1], [2, 2]])
    for method in ("best", "sdcmicro"):
        suppressed = LocalSuppression([Demand((0, 1), 3)], (0, 1), 0.0, method).of(codes, np.zeros(7, np.int64))
        assert suppressed.all(axis=1).tolist() == [False, False, False, True, False, True, True]
        assert suppressed.sum() == 6
