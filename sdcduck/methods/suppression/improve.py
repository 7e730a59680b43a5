"""Fewer suppressed cells: publish secondary suppressions that a safe pattern does not need, and trade dear for cheap.

A pattern is safe when no primary cell is a rational combination of published cells. Elimination publishes cells in
one fixed order and never looks back; here cells are closed again where that lets dearer ones, or more of them, open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.suppression.audit import audit
from sdcduck.methods.suppression.checked import flags
from sdcduck.methods.suppression.matrix import DummyMatrix, classes, row_keys
from sdcduck.methods.suppression.nullspace import modular_null_space, reveals_modular
from sdcduck.methods.suppression.walk import suppressed_in_order

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]

_FEWEST, _MOST = 0.1, 0.3  # the part of the published cells that a trial closes
_PATIENCE = 50  # trials in turn that gain nothing, after which no more are made
SECOND = 5e7
"""Steps of the elimination (`Walk.steps`) in a second of a processor core, more or less."""
_NOISE = 0.3  # standard deviation of the logarithm of the factors that shake up the order


class UnsafePatternError(ValueError):
    """A pattern that gives a primary cell away: arithmetic modulo a prime had an accident where it was chosen."""


@dataclass(frozen=True)
class Improvement:
    """A pattern that costs no more than the one before, and is as safe.

    Attributes:
        suppressed: bool (N,), primary and secondary cells.
        opened: int64, cells suppressed before and published now.
        closed: int64, cells published before and suppressed now.
        cells_saved: suppressed cells before less those now (negative when several cheap cells replace a dear one).
        cost_saved: their cost before less that now, at least 0.
        ended: whether all trials were made that were to be made, and not only as many as there was time for.
    """

    suppressed: Booleans
    opened: Indices
    closed: Indices
    cells_saved: int
    cost_saved: float
    ended: bool


def improve(
    x: DummyMatrix,
    suppressed: ArrayLike,
    primary: ArrayLike,
    cost: ArrayLike,
    *,
    trials: int = 200,
    seconds: float = np.inf,
    seed: int = 0,
    frozen: ArrayLike | None = None,
    z: ArrayLike | None = None,
    upl: ArrayLike | None = None,
    lpl: ArrayLike | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Improvement:
    """Publish secondary cells in descending cost as long as no primary cell is given away, then try other patterns.

    A trial closes a random part of the published cells and publishes what can be published again in an order that is
    shaken up; the pattern is kept when it does not cost more (large neighbourhood search, Shaw 1998).

    Args:
        x: n inner cells x N cells. Sums that must be protected without being cells (those of the singleton methods) are
            further columns, primary and of cost 0.
        suppressed: bool (N,), a safe pattern.
        primary: bool (N,), suppressed cells that must not follow from published ones, and that stay suppressed.
        cost: numbers (N,), at least 0, of suppressing a cell.
        trials: at most so many other patterns are tried, until 50 in turn gain nothing; each takes an elimination. 0:
            cells are published only.
        seconds: about so many of a processor core are spent, counted in steps of the elimination, so that the answer
            is the same on every machine. A trial that does not end in them is left.
        seed: of the random choices; the same input and seed give the same answer.
        frozen: bool (N,), cells that keep their state.
        z: numbers (N,), the cell totals; needed with protection levels.
        upl: numbers (N,), upper protection levels: primary cells whose feasibility interval is wide enough before
            keep one that is. Every cell opened then takes an audit: for small publications.
        lpl: numbers (N,), lower ones; default the upper ones.
        jobs: threads of the audits.
        progress: called with (trials made, trials to make), several times a trial where trials are long.

    Raises:
        ValueError: wrong lengths or kinds, or a primary cell that is not suppressed.
        UnsafePatternError: the pattern is not safe.
    """
    hidden = flags(suppressed, x.columns, "suppressed").copy()
    first = flags(primary, x.columns, "primary")
    fixed = np.zeros(x.columns, dtype=np.bool_) if frozen is None else flags(frozen, x.columns, "frozen")
    weight = np.asarray(cost, dtype=np.float64)
    if weight.shape != (x.columns,) or not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(f"costs must be {x.columns} finite numbers, none negative")
    if (first & ~hidden).any():
        raise ValueError("a primary cell is not suppressed")
    if (upl is None) != (z is None):
        raise ValueError("protection levels and cell totals are needed together")
    before = hidden.copy()
    small = _smaller(x)
    if not _is_safe(small, hidden, first):
        raise UnsafePatternError("the pattern is not safe: a primary cell follows from published cells")

    def wide(pattern: Booleans) -> Booleans:
        assert z is not None
        # What the solver cannot tell counts as not protected.
        return audit(x, z, pattern, upl=upl, lpl=lpl, cells=first, jobs=jobs, until=np.inf).protected

    must = wide(hidden) if upl is not None else None
    keeps_intervals = None if must is None else lambda pattern: bool(wide(pattern)[must].all())
    movable = ~first & ~fixed
    hidden, ended = _searched(
        small, hidden, first, movable, weight, trials, seconds * SECOND, seed, keeps_intervals, progress
    )
    return Improvement(
        hidden,
        np.flatnonzero(before & ~hidden),
        np.flatnonzero(hidden & ~before),
        int(before.sum() - hidden.sum()),
        float(weight[before].sum() - weight[hidden].sum()),
        ended,
    )


def _searched(
    x: DummyMatrix,
    hidden: Booleans,
    primary: Booleans,
    movable: Booleans,
    weight: Floats,
    trials: int,
    most: float,
    seed: int,
    allowed: Callable[[Booleans], bool] | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[Booleans, bool]:
    """The best pattern of so many trials, or of as many as there are in ``most`` steps; and whether all were made.

    Many trials in turn that gain nothing are all.
    """
    rng = np.random.default_rng(seed)
    steps = made = failed = 0

    def enough(new: int) -> bool:
        nonlocal steps
        steps += new
        if progress is not None:
            progress(made, trials)
        return steps > most

    opened = _open(x, hidden, primary, movable, weight, allowed, enough)
    if opened is None:
        return hidden, False
    hidden = opened
    while made < trials and failed < _PATIENCE:
        if (hidden | ~movable).all() or not (hidden & movable).any():
            break
        tried = None if steps > most else _tried(x, hidden, primary, movable, weight, rng, allowed, enough)
        if tried is None:
            return hidden, False
        failed = 0 if weight[tried].sum() < weight[hidden].sum() else failed + 1
        hidden = tried
        made += 1
    return hidden, True


def _tried(
    x: DummyMatrix,
    hidden: Booleans,
    primary: Booleans,
    movable: Booleans,
    weight: Floats,
    rng: np.random.Generator,
    allowed: Callable[[Booleans], bool] | None,
    enough: Callable[[int], bool],
) -> Booleans | None:
    """Another pattern, with a random part of the published cells closed first; the same if that would cost more.

    None where ``enough`` says so (`suppressed_in_order`).
    """
    published = np.flatnonzero(~hidden & movable)
    share = np.exp(rng.uniform(np.log(_FEWEST), np.log(_MOST)))
    again = hidden.copy()
    again[rng.permutation(published)[: max(1, round(share * len(published)))]] = True
    order = (weight + _least(weight)) * np.exp(rng.normal(0.0, _NOISE, x.columns))
    pattern = _open(x, again, primary, movable, order, None, enough)
    if pattern is not None and allowed is not None and weight[pattern].sum() < weight[hidden].sum():
        pattern = _open(x, again, primary, movable, order, allowed, enough)
    if pattern is None:
        return None
    # Patterns of the same cost are taken too: they lead on to others.
    kept = weight[pattern].sum() <= weight[hidden].sum() and (allowed is None or allowed(pattern))
    return pattern if kept else hidden


def _smaller(x: DummyMatrix) -> DummyMatrix:
    """The matrix with one row of each class of equal rows: no combination of columns can tell them apart."""
    kept, _ = classes(row_keys(x.sparse().tocsr(), np.random.default_rng(3)))
    position = np.full(x.rows, -1)
    position[np.sort(kept)] = np.arange(len(kept))
    columns = np.repeat(np.arange(x.columns), np.diff(x.indptr))
    inside = position[x.indices] >= 0
    return DummyMatrix.from_pairs(position[x.indices[inside]], columns[inside], (len(kept), x.columns))


def _open(
    x: DummyMatrix,
    hidden: Booleans,
    primary: Booleans,
    movable: Booleans,
    weight: Floats,
    allowed: Callable[[Booleans], bool] | None,
    enough: Callable[[int], bool],
) -> Booleans | None:
    """Publish secondary cells in descending cost, each if the pattern stays safe (and is allowed)."""
    candidates = np.flatnonzero(hidden & movable)
    candidates = candidates[np.argsort(-weight[candidates], kind="stable")]
    # What is published already comes first: it gives nothing away, so it stays.
    turns = np.concatenate([_short_first(x, np.flatnonzero(~hidden)), candidates])
    found = suppressed_in_order(x, turns, primary, enough)
    if found is None:
        return None
    together = hidden.copy()
    together[candidates] = found[candidates]
    if allowed is None or allowed(together):
        return together
    pattern = hidden.copy()
    for cell in candidates:
        pattern[cell] = False
        if not (_is_safe(x, pattern, primary) and allowed(pattern)):
            pattern[cell] = True
    return pattern


def _is_safe(x: DummyMatrix, hidden: Booleans, primary: Booleans) -> bool:
    """Does no primary cell follow from the published ones?"""
    return not len(reveals_modular(modular_null_space(x, ~hidden), x, primary))


def _short_first(x: DummyMatrix, cells: Indices) -> Indices:
    """The cells of few inner cells first: those of many are then nearly cleared, and fill in less."""
    result: Indices = cells[np.argsort(np.diff(x.indptr)[cells], kind="stable")]
    return result


def _least(weight: Floats) -> float:
    """Something small beside the costs, so that cells of no cost come in random order too."""
    return 1e-6 * float(weight[weight > 0].min(initial=np.inf)) if (weight > 0).any() else 1.0
