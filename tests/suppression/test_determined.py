"""Cells with a single possible value: the same as those whose interval has no width."""

from __future__ import annotations

import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import publication

from sdcduck.methods.suppression.audit import feasibility_intervals, known_by_sign
from sdcduck.methods.suppression.determined import determined


@settings(max_examples=times(40, 200), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 0.6, 0.8]), st.sampled_from([0.4, 0.6, 0.9]))
def test_they_are_those_without_a_width(seed: int, zeros: float, share: float) -> None:
    rng = np.random.default_rng(seed)
    records = [{"a": f"{a}", "b": f"{b}", "g": f"{a % 2}"} for a in range(5) for b in range(5) if rng.random() < 0.8]
    x, _ = publication(records, [[["a", "g", ""], ["b", ""]]])
    y = np.where(rng.random(x.rows) < zeros, 0.0, rng.integers(1, 50, x.rows))
    suppressed = rng.random(x.columns) < share
    lo, hi = feasibility_intervals(x, x.totals(y), suppressed, jobs=1)
    found = determined(x, y, suppressed)
    assert not found[~suppressed].any()
    np.testing.assert_array_equal(found[suppressed], hi - lo < 1e-6)


def test_there_are_such_that_no_single_published_cell_tells() -> None:
    """a + b + u and c + d + v are as much as a + c and b + d together."""
    records = [{"r": r, "s": s} for r in "12" for s in "xyz"]
    x, names = publication(records, [[["r", ""], ["s"]], [["r"], ["s", ""]]])
    y = np.array([3.0, 4, 0, 5, 2, 0])
    of_zeros = np.array([name[1] == "z" for name in names])
    suppressed = (np.diff(x.indptr) == 1) | of_zeros
    assert np.count_nonzero(of_zeros) == 3
    np.testing.assert_array_equal(determined(x, y, suppressed), of_zeros)
    assert not known_by_sign(x, x.totals(y), suppressed).any()


def test_bad_input_is_refused() -> None:
    x, _ = publication([{"a": "1"}, {"a": "2"}], [[["a", ""]]])
    hidden = np.ones(3, dtype=bool)
    for y in ([1.0], [1.0, -1.0], [1.0, np.inf]):
        with pytest.raises(ValueError, match="2 finite numbers"):
            determined(x, y, hidden)
    with pytest.raises(ValueError, match="3 booleans"):
        determined(x, [1.0, 2.0], np.ones(3))
