"""Tables of skewed values with primary cells that want a width, and a linear program of its own that audits patterns."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from sdcduck.methods.suppression.matrix import DummyMatrix

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


def cube(shape: tuple[int, ...]) -> DummyMatrix:
    """Inner cells and all sums over dimensions; the inner cells come first."""
    place = np.indices(shape).reshape(len(shape), -1)
    inner = np.arange(place.shape[1])
    rows, columns, used = [], [], 0
    for kept in itertools.product((True, False), repeat=len(shape)):
        sizes = [size for size, keep in zip(shape, kept, strict=True) if keep]
        code = np.zeros(len(inner), dtype=np.int64)
        for axis, keep in enumerate(kept):
            code = code * shape[axis] + place[axis] if keep else code
        rows.append(inner)
        columns.append(used + code)
        used += int(np.prod(sizes))
    return DummyMatrix.from_pairs(np.concatenate(rows), np.concatenate(columns), (len(inner), used))


def table(shape: tuple[int, ...], seed: int, unit: float = 1.0) -> tuple[DummyMatrix, Floats, Booleans, Floats]:
    """Cube, skewed inner values, primary cells and the widths that they want."""
    rng = np.random.default_rng(seed)
    x = cube(shape)
    y = np.round(np.exp(rng.normal(5, 1.5, x.rows))) * unit
    primary = np.zeros(x.columns, dtype=bool)
    primary[: x.rows] = rng.random(x.rows) < 0.12
    return x, y, primary, np.where(primary, 0.15 * x.totals(y), 0.0)


def protects(x: DummyMatrix, y: Floats, suppressed: Booleans, primary: Booleans, width: Floats) -> bool:
    """Whether other inner values, none negative, with the same published cells put each primary cell far enough away."""
    equations = x.sparse().T.tocsr()
    shown = equations[np.flatnonzero(~suppressed)]
    still = np.zeros(shown.shape[0])
    for cell in np.flatnonzero(primary):
        # What changes, in widths of the cell.
        bounds = np.column_stack([-y / width[cell], np.full(x.rows, np.inf)])
        for sign, far in ((1, 1.0), (-1, min(1.0, float(x.totals(y)[cell]) / width[cell]))):
            goal = -sign * equations[cell].toarray().ravel()
            found = linprog(goal, A_eq=shown, b_eq=still, bounds=bounds, method="highs")
            if found.status != 3 and -found.fun < far * (1 - 1e-5):
                return False
    return True


def value(x: DummyMatrix, y: Floats, suppressed: Booleans) -> float:
    return float(np.asarray(x.totals(y))[suppressed].sum())
