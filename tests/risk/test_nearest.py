"""Nearest rows: the very answers of comparing all pairs, whatever the columns are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sdcduck.methods.risk.nearest import nearest

Table = NDArray[np.float64]


def all_pairs(queries: Table, reference: Table, scales: Table, weights: Table) -> Table:
    """The definition: distances of every row to every row, summed up column by column."""
    total = np.zeros((len(queries), len(reference)))
    for place, scale in enumerate(scales):
        x, y = queries[:, place, None], reference[None, :, place]
        apart = np.minimum(np.abs(x - y) / scale, 1.0) if scale > 0 else (x != y).astype(float)
        apart = np.where(np.isnan(x) | np.isnan(y), np.where(np.isnan(x) & np.isnan(y), 0.0, 1.0), apart)
        total += weights[place] * apart
    return total


def check(queries: Table, reference: Table, scales: Table, weights: Table | None = None, k: int = 2) -> None:
    pairs = all_pairs(queries, reference, scales, np.ones(len(scales)) if weights is None else weights)
    order = np.argsort(pairs, axis=1, kind="stable")[:, :k]
    wanted = np.full((len(queries), k), np.inf)
    wanted[:, : order.shape[1]] = np.take_along_axis(pairs, order, axis=1)
    places = np.full((len(queries), k), -1)
    places[:, : order.shape[1]] = order
    found = nearest(queries, reference, scales, weights, k=k)
    assert found.rows is None
    np.testing.assert_array_equal(found.distances, wanted)
    with_rows = nearest(queries, reference, scales, weights, k=k, rows=True)
    np.testing.assert_array_equal(with_rows.distances, wanted)
    np.testing.assert_array_equal(with_rows.rows, places)


def table(seed: int, rows: int, kinds: str, missing: float = 0.0) -> Table:
    """Columns by kind: f few categories, m many, h texts' hashes, n numbers, i whole numbers, z mostly zeros, c constant."""
    random = np.random.default_rng(seed)
    makes: dict[str, Any] = {
        "f": lambda: random.integers(0, 4, rows), "m": lambda: random.integers(0, 3000, rows) ** 2,
        "h": lambda: random.integers(0, 50, rows) * 1e15 + 0.5, "n": lambda: random.normal(size=rows),
        "i": lambda: random.integers(-20, 80, rows), "c": lambda: np.full(rows, 7.0),
        "z": lambda: np.where(random.random(rows) < 0.9, 0, random.integers(0, 10**6, rows)),
    }  # fmt: skip
    made = np.column_stack([makes[kind]().astype(float) for kind in kinds])
    made[random.random(made.shape) < missing] = np.nan
    return made


def scales_of(kinds: str, one: Table, other: Table) -> Table:
    both = np.vstack([one, other])
    return np.array(
        [0.0 if kind in "fmhc" else np.nanmax(both[:, k]) - np.nanmin(both[:, k]) for k, kind in enumerate(kinds)]
    )


@pytest.mark.parametrize("kinds", ["f", "n", "fffff", "nnn", "fmnizc", "ffffffmmnnniiz", "hzf", "ccc", "iiiiii"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_answer_is_that_of_all_pairs(kinds: str, missing: float, weighted: bool) -> None:
    queries, reference = table(1, 400, kinds, missing), table(2, 1500, kinds, missing)
    weights = np.random.default_rng(3).integers(0, 4, len(kinds)) + 0.1 if weighted else None
    check(queries, reference, scales_of(kinds, queries, reference), weights, k=3)


def test_numbers_are_never_further_apart_than_categories() -> None:
    """Where the scale is the range of other data, as of the originals without the synthetic records."""
    queries, reference = table(1, 300, "nnif") * 3, table(2, 1000, "nnif")
    check(queries, reference, np.array([0.5, 2.0, 10.0, 0.0]))
    check(table(1, 300, "zz"), table(2, 1000, "zz"), np.array([1e-3, 1e9]))


def test_many_equal_rows() -> None:
    queries, reference = table(1, 500, "ff"), np.repeat(table(2, 30, "ff"), 100, axis=0)
    check(queries, reference, np.zeros(2), k=5)
    rows = np.random.default_rng(4).permutation(reference)
    check(queries, rows, np.zeros(2), k=150)


def test_all_nulls_and_the_two_zeros_are_equal() -> None:
    check(np.array([[np.nan, -0.0], [1.0, 0.0]]), np.array([[-np.nan, 0.0], [np.nan, 0.0]]), np.array([0.0, 1.0]))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_answer_is_that_of_all_pairs_for_any_small_tables(data: st.DataObject) -> None:
    columns = data.draw(st.integers(1, 6))
    number = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6), st.just(float("nan")))
    rows = st.lists(st.lists(number, min_size=columns, max_size=columns), min_size=0, max_size=12)
    made = [np.array(data.draw(rows), dtype=float).reshape(-1, columns) for _ in range(2)]
    scales = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.5, 1e6]), min_size=columns, max_size=columns)))
    check(made[0], made[1], scales, k=data.draw(st.integers(1, 4)))


def test_nothing_to_find() -> None:
    check(np.empty((0, 2)), table(1, 5, "fn"), np.array([0.0, 1.0]))
    check(table(1, 5, "fn"), np.empty((0, 2)), np.array([0.0, 1.0]))
    check(table(1, 5, "fn"), table(2, 1, "fn"), np.array([0.0, 1.0]))


def test_a_column_of_weight_zero_is_not_there_and_scaling_a_number_changes_nothing() -> None:
    queries, reference = table(1, 200, "ffni"), table(2, 800, "ffni")
    scales = scales_of("ffni", queries, reference)
    without = nearest(queries[:, :3], reference[:, :3], scales[:3])
    zero = nearest(queries, reference, scales, np.array([1.0, 1.0, 1.0, 0.0]))
    np.testing.assert_array_equal(zero.distances, without.distances)
    larger = np.array([1, 1, 1024.0, 1])
    scaled = nearest(queries * larger, reference * larger, scales * larger)
    np.testing.assert_array_equal(scaled.distances, nearest(queries, reference, scales).distances)


def test_threads_change_nothing_and_the_work_can_be_watched_and_stopped() -> None:
    queries, reference = table(1, 3000, "ffnni"), table(2, 3000, "ffnni")
    scales, seen = scales_of("ffnni", queries, reference), []
    one = nearest(
        queries, reference, scales, rows=True, threads=1, check=lambda done, total: seen.append((done, total))
    )
    more = nearest(queries, reference, scales, rows=True, threads=3)
    np.testing.assert_array_equal(one.distances, more.distances)
    np.testing.assert_array_equal(one.rows, more.rows)
    assert seen[-1] == (3000, 3000)
    for threads in (1, 3):

        def stop(done: int, total: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            nearest(queries, reference, scales, threads=threads, check=stop)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": np.zeros((2, 3))}, "the same columns"),
        ({"queries": np.array([[np.inf, 0.0]])}, "infinite"),
        ({"reference": np.array([[0.0, -np.inf]])}, "infinite"),
        ({"scales": np.array([-1.0, 0.0])}, "scales"),
        ({"scales": np.array([np.nan, 0.0])}, "scales"),
        ({"weights": np.array([-1.0, 0.0])}, "weights"),
        ({"weights": np.array([0.0, 0.0])}, "weights"),
        ({"weights": np.ones(3)}, "weights"),
        ({"k": 0}, "k must"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "queries": np.zeros((2, 2)),
        "reference": np.zeros((2, 2)),
        "scales": np.zeros(2),
        **change,
    }
    with pytest.raises(ValueError, match=message):
        nearest(**given)
