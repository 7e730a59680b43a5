"""k-disclosure: the differences that count, and the same suppression as the R package, cell for cell."""

from __future__ import annotations

from pathlib import Path

import builders
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_elimination import linked_tables, rank_of

from sdcduck.methods.suppression.differences import difference_columns, direct_disclosure_order
from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.matrix import DummyMatrix


@pytest.mark.parametrize("coalition", [0, 1, 2, 3])
def test_the_reference(reference_data: Path, coalition: int) -> None:
    built = builders.count_case(reference_data, f"skd_mun_c{coalition}", "freq", ["mun", "inj"])
    y = built.inner["count"].to_numpy().astype(np.int64)
    freq = built.x.totals(y)
    result = suppress_secondary(
        built.x,
        direct_disclosure_order(freq),
        built.primary,
        singleton=y == 0,
        singleton_method="anySumNOTprimary",
        extra=difference_columns(built.x, freq, coalition),
    )
    np.testing.assert_array_equal(result.secondary, built.suppressed)


def members(x: DummyMatrix) -> list[frozenset[int]]:
    return [frozenset(x.indices[a:b].tolist()) for a, b in zip(x.indptr, x.indptr[1:], strict=False)]


@settings(max_examples=200, deadline=None)
@given(linked_tables(), st.integers(0, 50), st.integers(0, 4), st.sampled_from([np.inf, 3]))
def test_the_differences_are_those_of_the_definition(problem, seed: int, coalition: int, bound: float) -> None:
    x, *_ = problem
    freq = x.totals(np.random.default_rng(seed).integers(0, 4, x.rows))
    cells = members(x)
    expected = {
        parent - child
        for p, parent in enumerate(cells)
        for c, child in enumerate(cells)
        if child < parent and 0 < freq[c] <= bound and freq[p] > 0 and freq[p] - freq[c] <= coalition
    }
    found = members(difference_columns(x, freq, coalition, bound))
    assert len(found) == len(set(found))
    assert set(found) == expected


@settings(max_examples=100, deadline=None)
@given(linked_tables(), st.integers(0, 50), st.integers(0, 3))
def test_no_difference_follows_from_the_published_cells(problem, seed: int, coalition: int) -> None:
    x, *_ = problem
    freq = x.totals(np.random.default_rng(seed).integers(0, 4, x.rows))
    extra = difference_columns(x, freq, coalition)
    result = suppress_secondary(x, direct_disclosure_order(freq), [], singleton_method="none", extra=extra)
    assert len(result.secondary) == x.columns
    published = np.flatnonzero(~result.secondary).tolist()
    pairs = [(r, c) for c, rows in enumerate(members(x) + members(extra)) for r in rows]
    both = DummyMatrix.from_pairs(*np.array(pairs).T, (x.rows, x.columns + extra.columns))
    rank = rank_of(both, published)
    assert result.rank == (rank if extra.columns else 0)
    for c in range(x.columns, both.columns):
        assert rank_of(both, [*published, c]) == rank + 1


def test_bad_input_is_named() -> None:
    x = DummyMatrix.from_pairs(np.array([0, 1, 0]), np.array([0, 0, 1]), (2, 2))
    with pytest.raises(ValueError, match="one count for each cell"):
        difference_columns(x, np.ones(3))
    with pytest.raises(ValueError, match="coalition must not be negative"):
        difference_columns(x, np.ones(2), coalition=-1)
    with pytest.raises(ValueError, match="another number of inner cells"):
        suppress_secondary(x, [0], [1], extra=DummyMatrix.from_pairs(np.array([0]), np.array([0]), (3, 1)))
    assert difference_columns(x, np.array([5, 0])).columns == 0
    nothing = suppress_secondary(x, [0], [], extra=difference_columns(x, np.array([5, 0])))
    assert not nothing.secondary.any()
