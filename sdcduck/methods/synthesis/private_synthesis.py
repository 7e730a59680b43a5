"""Differentially private tables: noisy counts from OpenDP, and what may be done with them afterwards.

Noise is put on the whole table or on some of its margins; noisy margins are reconciled by iterative proportional
fitting; synthetic records are drawn from the result (Raab 2022; methods catall and ipf of R package synthpop). All
that follows the noise sees nothing of the data and costs no privacy.

The noise comes from OpenDP (`sdcduck.methods.dp.noise`): there is no seed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.dp.noise import draw, measurement

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

MECHANISMS = ("geometric", "laplace")
FLOOR = 1e-6
"""What noisy counts are raised to: zero would forbid a cell for good."""


def _measurement(mechanism: str, scale: float) -> Any:
    return measurement(scale, gaussian=False, whole=mechanism == "geometric")


def epsilon_spent(mechanism: str, scale: float, sensitivity: int) -> float:
    """What OpenDP certifies for a table in which two neighbours differ by ``sensitivity`` in sum."""
    distance = sensitivity if mechanism == "geometric" else float(sensitivity)
    return float(_measurement(mechanism, scale).map(distance))


def noisy_counts(counts: Indices, mechanism: str, scale: float, check: Callable[[], object] = lambda: None) -> Floats:
    """Counts (k,) with independent noise of the scale: two-sided geometric ('geometric') or 'laplace'."""
    values = counts if mechanism == "geometric" else counts.astype(np.float64)
    return np.array(draw(_measurement(mechanism, scale), values.tolist(), check), dtype=np.float64)


def pairs(columns: int) -> list[tuple[int, ...]]:
    """All two-way margins; of one column the column itself."""
    return list(itertools.combinations(range(columns), 2)) if columns > 1 else [(0,)]


def margin(table: NDArray[Any], axes: Sequence[int]) -> NDArray[Any]:
    """The sums over all axes but these, which stay as axes of length 1 or more: it broadcasts over the table."""
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    summed: NDArray[Any] = table.sum(axis=others, keepdims=True)
    return summed


def total_of(noisy: Sequence[Floats], cells: Sequence[int]) -> int:
    """The number of records, estimated from noisy tables of it: each counts in inverse proportion to its cells."""
    weights = 1.0 / np.array(cells)
    sums = np.array([table.sum() for table in noisy])
    return max(0, round(float((weights * sums).sum() / weights.sum())))


def made_positive(noisy: Floats, possible: NDArray[np.bool_], total: float) -> Floats:
    """Noisy counts at or above `FLOOR`, none where nobody can be, rescaled to one total."""
    raised = np.where(possible, np.maximum(noisy, FLOOR), 0.0)
    return np.asarray(raised * (total / raised.sum()))


@dataclass(frozen=True)
class Fit:
    """A table fitted to margins.

    Attributes:
        table: float64, the fitted counts.
        converged: whether the last sweep changed no cell by as much as the tolerance.
        sweeps: how many there were.
        deviation: the largest difference of a fitted margin from what it was fitted to.
    """

    table: Floats
    converged: bool
    sweeps: int
    deviation: float


def fit_margins(
    possible: NDArray[np.bool_], margins: Sequence[Sequence[int]], targets: Sequence[Floats], *,
    tolerance: float = 1e-4, most_sweeps: int = 5000, check: Callable[[], object] = lambda: None,
) -> Fit:  # fmt: skip
    """Iterative proportional fitting from a table of ones, where cells that are not possible stay 0.

    possible: bool, one axis a column. margins: axes of each. targets: as `margin` shapes them, all of one total;
    margins of noisy counts need not agree, and then it need not converge.
    """
    table = possible.astype(np.float64)
    converged, sweeps = False, 0
    while not converged and sweeps < most_sweeps:
        before = table.copy()
        for axes, target in zip(margins, targets, strict=True):
            present = margin(table, axes)
            table *= np.divide(target, present, out=np.zeros_like(present), where=present > 0)
        sweeps += 1
        converged = bool(np.abs(table - before).max(initial=0.0) < tolerance)
        check()
    deviation = max(
        float(np.abs(margin(table, axes) - target).max()) for axes, target in zip(margins, targets, strict=True)
    )
    return Fit(table, converged, sweeps, deviation)


def drawn(table: Floats, total: int, generator: np.random.Generator) -> Indices:
    """Counts of ``total`` records, each in a cell with a chance in proportion to the table: int64, of its shape."""
    weights = table.ravel() / table.sum()
    return np.asarray(generator.multinomial(total, weights / weights.sum()).reshape(table.shape), dtype=np.int64)


def rounded(table: Floats, total: int) -> Indices:
    """The table scaled to ``total`` and rounded to whole numbers with that sum: by the largest remainders."""
    scaled = table.ravel() * (total / table.sum())
    counts = np.floor(scaled).astype(np.int64)
    order = np.argsort(counts - scaled, kind="stable")
    counts[order[: total - int(counts.sum())]] += 1
    return np.asarray(counts.reshape(table.shape), dtype=np.int64)


def signal_share(records: int, empty: int, scale: float) -> float:
    """The share of real records in a noisy table made positive: empty cells add half the scale of the noise each."""
    return records / (records + empty * scale / 2) if records else 0.0
