"""Audit of a suppression pattern: the interval that an attacker can compute for each suppressed cell.

The attacker knows the published cells and that inner values are not negative; two linear programs a cell give the
smallest and the largest value that agree with them (the attacker problem of Fischetti and Salazar 2001, section 2).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import highspy
import numba
import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.quiet import quiet_highs
from sdcduck.methods.suppression.rank import eliminate, fractions

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]

_CHUNK = 256  # objectives of one block that share a simplex basis; fixed, so that results do not depend on `jobs`
_LONG_ROW = 64
_LARGEST_SIDE = 1e6  # beyond it a block is scaled: the tolerances of the solver are absolute
_WHOLE = 1e-6


@dataclass(frozen=True)
class Audit:
    """What an attacker learns of suppressed cells.

    Attributes:
        cells: int64 (k,), the columns audited, ascending.
        lo: float64 (k,), the smallest value that agrees with what is published, in the unit of the cells.
        hi: float64 (k,), the largest one; infinite when nothing bounds it.
        exact: bool (k,), the interval gives the value away: ``hi - lo < 0.5`` for whole numbers, else ``hi == lo`` up
            to rounding, that of the largest cell included.
        protected: bool (k,), the interval is as wide as asked for: ``hi >= z + upl`` and ``lo <= z - lpl``; without
            limits, not exact.
        bounded: bool (k,), the interval has been computed: all of them but where time was up. Of the others `lo` and
            `hi` are NaN, unless `exact` is known, and they are not `protected`.
    """

    cells: Indices
    lo: Floats
    hi: Floats
    exact: Booleans
    protected: Booleans
    bounded: Booleans


def audit(
    x: DummyMatrix,
    z: ArrayLike,
    suppressed: ArrayLike,
    *,
    upl: ArrayLike | None = None,
    lpl: ArrayLike | None = None,
    lower: ArrayLike = 0.0,
    upper: ArrayLike = np.inf,
    prior: float | None = None,
    known: tuple[ArrayLike, ArrayLike] | None = None,
    cells: ArrayLike | None = None,
    integer: bool = False,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    until: float | None = None,
) -> Audit:
    """Audit suppressed cells: their feasibility intervals, those given away, and those wide enough.

    Args:
        x: n inner cells x N cells.
        z: numbers (N,), the cell totals, suppressed ones included.
        suppressed: bool (N,).
        upl: numbers (N,), upper protection level: how far above its value the interval of a cell must reach.
        lpl: numbers (N,), lower protection level; default the upper one.
        lower, upper, prior, known, cells, integer, jobs, progress, until: see `feasibility_intervals`.

    Raises:
        ValueError: as `feasibility_intervals`.
    """
    totals = _numbers(z, x.columns, "the cell totals")
    hidden = _flags(suppressed, x.columns, "suppressed")
    wanted = hidden if cells is None else hidden & _flags(cells, x.columns, "cells")
    up = None if upl is None else _numbers(upl, x.columns, "upper protection levels")
    down = up if lpl is None else _numbers(lpl, x.columns, "lower protection levels")
    lo, hi = feasibility_intervals(
        x,
        totals,
        hidden,
        lower=lower,
        upper=upper,
        prior=prior,
        known=known,
        cells=wanted,
        integer=integer,
        jobs=jobs,
        progress=progress,
        until=until,
    )
    index = np.flatnonzero(wanted)
    whole = bool(np.all(totals == np.rint(totals)))
    slack = _slack(totals[index], whole)
    # What is left of large cells that were subtracted from one another is rounding, however small the cell itself is.
    exact = hi - lo < (0.5 if whole else np.maximum(slack, 16 * _rounding_error(totals)))
    bounded = ~(np.isnan(lo) | np.isnan(hi))
    protected = ~exact & bounded
    if up is not None:
        protected = hi >= totals[index] + up[index] - slack
    if down is not None:
        protected &= lo <= totals[index] - down[index] + slack
    return Audit(index, lo, hi, exact, protected, bounded)


def known_by_sign(x: DummyMatrix, z: ArrayLike, suppressed: ArrayLike) -> Booleans:
    """The suppressed cells that follow from single published cells, as no inner value is negative; bool (N,).

    A published 0 gives away all that is in it. No linear program is solved, so an `audit` may find more.

    Args:
        x: n inner cells x N cells.
        z: numbers (N,), the cell totals, suppressed ones included.
        suppressed: bool (N,).

    Raises:
        ValueError: wrong lengths or kinds, or numbers that are not finite.
    """
    totals = _numbers(z, x.columns, "the cell totals")
    hidden = _flags(suppressed, x.columns, "suppressed")
    matrix = _matrix(x)
    known = _deduced_rows(matrix, totals, hidden, np.zeros(x.rows))
    given: Booleans = hidden & (matrix.T @ (~known).astype(np.float64) == 0)
    return given


def singleton_hazards(
    x: DummyMatrix,
    z: ArrayLike,
    suppressed: ArrayLike,
    y: ArrayLike,
    contributor: ArrayLike,
    *,
    upl: ArrayLike | None = None,
    lpl: ArrayLike | None = None,
    lower: ArrayLike = 0.0,
    cells: ArrayLike | None = None,
    outside: Audit | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    until: float | None = None,
) -> Audit:
    """Audit suppressed cells against attackers who are contributors and know their own contributions.

    Two suppressed cells of one contributor each protect nothing against each other: each contributor subtracts his own
    value. For every contributor the intervals of the cells that are not all his own are computed with his inner cells
    known; reported is the narrowest interval of each cell over the contributors.

    Args:
        x: n inner cells x N cells.
        z: numbers (N,), the cell totals.
        suppressed: bool (N,).
        y: numbers (n,), the inner values; only those of rows with a contributor are used.
        contributor: whole numbers (n,), the single contributor of an inner cell, 0 where there is none or several.
        upl, lpl: numbers (N,), protection levels as in `audit`.
        lower: number or numbers (n,), what everybody knows inner values to be at least.
        cells: bool (N,), audit these only (primary cells, as a rule); default all suppressed ones.
        outside: what `audit` with the same arguments found, where that is known already.
        jobs, progress, until: see `feasibility_intervals`; progress counts contributors. Where time is up before all
            contributors have been looked at, only cells out of the reach of the others count as bounded.

    Raises:
        ValueError: as `feasibility_intervals`.
    """
    totals = _numbers(z, x.columns, "the cell totals")
    hidden = _flags(suppressed, x.columns, "suppressed")
    wanted = hidden if cells is None else hidden & _flags(cells, x.columns, "cells")
    inner = _numbers(y, x.rows, "the inner values")
    owner = np.asarray(contributor)
    if owner.shape != (x.rows,):
        raise ValueError(f"contributors must be {x.rows} numbers, one an inner cell")
    low = np.broadcast_to(np.asarray(lower, dtype=np.float64), (x.rows,))
    finished, every = 0, 1

    def still(_done: int, _of: int) -> None:
        """Whoever waits is heard within a contributor, too: the intervals of one may take minutes."""
        if progress is not None:
            progress(finished, every)

    base = outside or audit(
        x, totals, hidden, upl=upl, lpl=lpl, lower=low, cells=wanted, jobs=jobs, progress=still, until=until
    )  # fmt: skip
    lo, hi, exact, protected = base.lo.copy(), base.hi.copy(), base.exact.copy(), base.protected.copy()
    bounded = base.bounded.copy()
    place = np.full(x.columns, -1, dtype=np.int64)
    place[base.cells] = np.arange(len(base.cells))
    matrix = _matrix(x)
    known = _deduced_rows(matrix, totals, hidden, low)
    block = _blocks(matrix, ~hidden, known)
    cells_of_row = matrix[:, base.cells].tocsr()
    owners = np.unique(owner[(owner != 0) & ~known])
    every = max(len(owners), 1)
    for finished, one in enumerate(owners):
        if until is not None and time.monotonic() >= until:
            # Nobody has looked at the cells near those who are left.
            left = (owner != 0) & ~known & (owner >= one)
            near = np.isin(block, block[left])
            bounded[np.unique(cells_of_row[np.flatnonzero(near)].indices)] = False
            break
        rows = np.flatnonzero(owner == one)
        # Beyond the blocks that his rows are in, what he knows changes nothing.
        near = np.isin(block, block[rows[~known[rows]]])
        touched = np.zeros(x.columns, dtype=np.bool_)
        touched[base.cells[np.unique(cells_of_row[np.flatnonzero(near)].indices)]] = True
        others = np.ones(x.rows)
        others[rows] = 0
        touched &= matrix.T @ others > 0
        if touched.any():
            try:
                his = audit(
                    x, totals, hidden, upl=upl, lpl=lpl, lower=low, known=(rows, inner[rows]), cells=touched, jobs=jobs,
                    progress=still, until=until,
                )  # fmt: skip
            except ValueError:
                # The true values are a solution: what finds none is rounding.
                if until is None:
                    raise
                bounded[place[touched]] = False
                continue
            at = place[his.cells]
            narrower = his.bounded & ~(his.hi - his.lo >= hi[at] - lo[at])
            lo[at] = np.where(narrower, his.lo, lo[at])
            hi[at] = np.where(narrower, his.hi, hi[at])
            exact[at] |= his.exact
            protected[at] &= his.protected
            bounded[at] &= his.bounded
        if progress is not None:
            progress(finished + 1, len(owners))
    unknown_ends = ~bounded & ~exact
    return Audit(
        base.cells,
        np.where(unknown_ends, np.nan, lo),
        np.where(unknown_ends, np.nan, hi),
        exact,
        protected & bounded,
        bounded,
    )


def feasibility_intervals(
    x: DummyMatrix,
    z: ArrayLike,
    suppressed: ArrayLike,
    *,
    lower: ArrayLike = 0.0,
    upper: ArrayLike = np.inf,
    prior: float | None = None,
    known: tuple[ArrayLike, ArrayLike] | None = None,
    cells: ArrayLike | None = None,
    integer: bool = False,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    until: float | None = None,
) -> tuple[Floats, Floats]:
    """The smallest and the largest value of each suppressed cell that agree with the published cells.

    Args:
        x: n inner cells x N cells.
        z: numbers (N,), the cell totals, suppressed ones included (they are used for `prior` only).
        suppressed: bool (N,).
        lower: number or numbers (n,), what the attacker knows inner values to be at least.
        upper: number or numbers (n,), what he knows them to be at most.
        prior: per cent; the attacker knows every suppressed cell to within plus and minus this share of its value.
        known: rows (k,) and values (k,) of inner cells that he knows, his own contributions for example.
        cells: bool (N,), the cells to compute; default all suppressed ones.
        integer: inner values are whole numbers: the bounds are exact ones of the integer program.
        jobs: threads; default the processors of the machine. The result does not depend on it.
        progress: called with (bounds found, bounds asked for), from any of the threads.
        until: on the clock of `time.monotonic`: no linear program begins later. Bounds that are not found by then, or
            that the solver cannot find, are NaN; without `until` the latter is an error.

    Returns:
        lo, hi: float64, one value a cell asked for, in column order.

    Raises:
        ValueError: wrong lengths or kinds, or no inner values within the bounds agree with the published cells.
    """
    totals = _numbers(z, x.columns, "the cell totals")
    hidden = _flags(suppressed, x.columns, "suppressed")
    wanted = hidden if cells is None else _flags(cells, x.columns, "cells")
    low = np.broadcast_to(np.asarray(lower, dtype=np.float64), (x.rows,)).copy()
    high = np.broadcast_to(np.asarray(upper, dtype=np.float64), (x.rows,)).copy()
    if known is not None:
        rows, values = np.asarray(known[0]), np.asarray(known[1], dtype=np.float64)
        if rows.shape != values.shape or (len(rows) and (rows.min() < 0 or rows.max() >= x.rows)):
            raise ValueError("known inner cells must be row numbers of the matrix with a value each")
        low[rows] = high[rows] = values
    if np.isnan(low).any() or np.isnan(high).any() or (low > high).any():
        raise ValueError("the lower bound of an inner cell must be a number not above its upper bound")
    if (wanted & ~hidden).any():
        raise ValueError("intervals are computed for suppressed cells only")
    if integer:
        low, high = np.ceil(low), np.floor(high)

    matrix = _matrix(x)
    least, most = totals.copy(), totals.copy()
    if prior is None:
        restricted = ~hidden
    else:
        if not prior >= 0:
            raise ValueError("prior knowledge must be a percentage, at least 0")
        restricted = np.ones(x.columns, dtype=np.bool_)
        reach = np.abs(totals) * (prior / 100)
        least[hidden] -= reach[hidden]
        most[hidden] += reach[hidden]
    if integer:
        least[hidden], most[hidden] = np.ceil(least[hidden]), np.floor(most[hidden])
    targets = np.flatnonzero(wanted)
    unknown_bounds = np.full(len(targets), np.nan)
    if until is not None and time.monotonic() >= until:
        return unknown_bounds, unknown_bounds.copy()
    try:
        problem = _reduce(matrix, restricted, least, most, low, high, targets)
    except _Unsolved:
        if until is None:
            raise
        return unknown_bounds, unknown_bounds.copy()
    _solve(problem, integer, jobs or os.cpu_count() or 1, progress, until)
    return problem.intervals()


def _numbers(values: ArrayLike, length: int, what: str) -> Floats:
    result = np.asarray(values, dtype=np.float64)
    if result.shape != (length,):
        raise ValueError(f"{what} must be {length} numbers")
    if not np.isfinite(result).all():
        raise ValueError(f"{what} must be finite numbers")
    return result


def _flags(values: ArrayLike, length: int, what: str) -> Booleans:
    result = np.asarray(values)
    if result.shape != (length,) or result.dtype != np.bool_:
        raise ValueError(f"{what} must be {length} booleans")
    return result


def _matrix(x: DummyMatrix) -> scipy.sparse.csc_matrix:
    return scipy.sparse.csc_matrix((np.ones(len(x.indices)), x.indices, x.indptr), shape=(x.rows, x.columns))


def _slack(values: Floats, whole: bool) -> Floats:
    """What two equal results may differ by."""
    return np.full(len(values), _WHOLE) if whole else 1e-7 * np.maximum(np.abs(values), 1e-3)


def _rounding_error(totals: Floats) -> float:
    """What sums of the cells may be off by: nothing for whole numbers that a double holds exactly."""
    largest = float(np.abs(totals).max(initial=0.0))
    if largest < 2**53 and bool(np.all(totals == np.rint(totals))):
        return 0.0
    return 256 * float(np.finfo(np.float64).eps) * largest


def _deduced_rows(matrix: scipy.sparse.csc_matrix, totals: Floats, hidden: Booleans, low: Floats) -> Booleans:
    """The inner cells that follow from single published cells, one after the other."""
    restricted = matrix[:, np.flatnonzero(~hidden)]
    by_row = restricted.tocsr()
    sides = totals[~hidden]
    fixed, _ = _deduce(
        restricted.indptr,
        restricted.indices,
        by_row.indptr,
        by_row.indices,
        sides,
        sides,
        low,
        np.full(matrix.shape[0], np.inf),
        _rounding_error(totals),
    )
    return np.asarray(fixed, dtype=np.bool_)


def _blocks(matrix: scipy.sparse.csc_matrix, restricted: Booleans, fixed: Booleans) -> Indices:
    """A number for each row: rows that no restriction links, even through others, have different ones."""
    rows = matrix.shape[0]
    links = matrix[:, np.flatnonzero(restricted)].multiply((~fixed)[:, None]).tocsc()
    links.eliminate_zeros()
    graph = scipy.sparse.bmat([[None, links], [links.T, None]], format="csr")
    if graph.shape[0] < rows:
        return np.arange(rows)
    _, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
    return np.asarray(label[:rows], dtype=np.int64)


@numba.njit(cache=True, nogil=True)
def _deduce(cptr, cidx, rptr, ridx, least, most, low, high, error):  # type: ignore[no-untyped-def]
    """Fix the rows that one restriction alone determines, until no more follows.

    A restriction determines its rows when only one is left and it is an equation, or when what is left of it equals
    the sum of the lower (upper) bounds of its rows.
    """
    rows, columns = len(rptr) - 1, len(cptr) - 1
    fixed = np.zeros(rows, dtype=np.bool_)
    value = np.zeros(rows)
    left = np.empty(columns, dtype=np.int64)
    taken, low_sum, high_sum = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    low_open, high_open = np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int64)
    for c in range(columns):
        left[c] = cptr[c + 1] - cptr[c]
        for k in range(cptr[c], cptr[c + 1]):
            r = cidx[k]
            if np.isinf(low[r]):
                low_open[c] += 1
            else:
                low_sum[c] += low[r]
            if np.isinf(high[r]):
                high_open[c] += 1
            else:
                high_sum[c] += high[r]
    queue = np.arange(columns)
    queued = np.ones(columns, dtype=np.bool_)
    waiting = columns
    head = 0
    rows_now = np.empty(rows, dtype=np.int64)
    equal_now = 0
    for r in range(rows):
        if low[r] == high[r]:
            fixed[r] = True
            value[r] = low[r]
            rows_now[equal_now] = r
            equal_now += 1
    first = True
    while waiting or first:
        count = 0
        if first:
            first = False
            count = equal_now
        else:
            c = queue[head]
            head = (head + 1) % columns
            waiting -= 1
            queued[c] = False
            if left[c] == 0:
                continue
            at_low = low_open[c] == 0 and most[c] - taken[c] <= low_sum[c] + error
            at_high = not at_low and high_open[c] == 0 and least[c] - taken[c] >= high_sum[c] - error
            single = left[c] == 1 and least[c] == most[c]
            if not (at_low or at_high or single):
                continue
            for k in range(cptr[c], cptr[c + 1]):
                r = cidx[k]
                if not fixed[r]:
                    fixed[r] = True
                    if single and not (at_low or at_high):
                        value[r] = most[c] - taken[c]
                    else:
                        value[r] = low[r] if at_low else high[r]
                    rows_now[count] = r
                    count += 1
        for i in range(count):
            r = rows_now[i]
            for k in range(rptr[r], rptr[r + 1]):
                d = ridx[k]
                left[d] -= 1
                taken[d] += value[r]
                if np.isinf(low[r]):
                    low_open[d] -= 1
                else:
                    low_sum[d] -= low[r]
                if np.isinf(high[r]):
                    high_open[d] -= 1
                else:
                    high_sum[d] -= high[r]
                if not queued[d]:
                    queued[d] = True
                    queue[(head + waiting) % columns] = d
                    waiting += 1
    return fixed, value


@dataclass
class _Problem:
    """The attacker problem, reduced.

    Variables are classes of rows; the solutions of the equations are point + basis t, where every direction (column of
    the basis) has a variable of its own with the coefficient 1. Objectives are sums of variables of one block.
    """

    equations: scipy.sparse.csr_matrix  # equations x variables
    point: Floats
    basis: scipy.sparse.csr_matrix  # variables x directions
    block: Indices  # of each direction
    ranged: scipy.sparse.csr_matrix  # sums of variables that are known to within bounds only
    ranges: scipy.sparse.csr_matrix  # the same in directions
    range_low: Floats  # less the value at the point
    range_high: Floats
    low: Floats  # of the variables
    high: Floats
    objectives: scipy.sparse.csr_matrix  # objectives x variables
    objective_block: Indices
    bound: tuple[Floats, Floats]  # what no solution of an objective can pass
    want: tuple[Booleans, Booleans]  # whether its minimum and its maximum are asked for
    found: tuple[Floats, Floats]
    parts: tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]  # cells x objectives: whose minima and maxima add up
    base: tuple[Floats, Floats]  # what the determined inner values add to the minimum and the maximum of each cell
    whole: bool

    def intervals(self) -> tuple[Floats, Floats]:
        ends = []
        for side in (0, 1):
            extreme = np.where(self.want[side], self.found[side], 0.0)
            unbounded = np.isinf(extreme)
            total = self.base[side] + self.parts[side] @ np.where(unbounded, 0.0, extreme)
            total[(self.parts[side] @ unbounded.astype(np.float64)) > 0] = np.inf if side else -np.inf
            if self.whole:
                finite = np.where(np.isinf(total), 0.0, total)
                near = np.isfinite(total) & (np.abs(finite - np.rint(finite)) < _WHOLE)
                total[near] = np.rint(total[near])
            ends.append(total)
        lo, hi = ends
        return np.minimum(lo, hi), np.maximum(lo, hi)  # NaN where either end is


def _keys(matrix: scipy.sparse.spmatrix, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Two random 64-bit sums for each row of a 0/1 matrix: rows are equal when both are (2^-128 a pair otherwise)."""
    ones = scipy.sparse.csr_matrix(
        (np.ones(len(matrix.indices), dtype=np.uint64), matrix.indices, matrix.indptr), shape=matrix.shape
    )
    weights = rng.integers(0, 2**64, size=(matrix.shape[1], 2), dtype=np.uint64)
    return np.column_stack([ones @ weights[:, 0], ones @ weights[:, 1]])


def _classes(keys: NDArray[np.uint64]) -> tuple[Indices, Indices]:
    """Equal rows of keys: the first row of each class, and the class of each row."""
    if not len(keys):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    order = np.lexsort(keys.T)
    new = np.r_[True, (keys[order[1:]] != keys[order[:-1]]).any(axis=1)]
    label = np.empty(len(keys), dtype=np.int64)
    label[order] = np.cumsum(new) - 1
    return order[new], label


def _reduce(
    matrix: scipy.sparse.csc_matrix,
    restricted: Booleans,
    least: Floats,
    most: Floats,
    low: Floats,
    high: Floats,
    targets: Indices,
) -> _Problem:
    """State the attacker problem in as few variables, restrictions and objectives as give the same intervals."""
    rng = np.random.default_rng(20010501)
    columns = np.flatnonzero(restricted)
    bounds = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
    whole = all(bool(np.all(v == np.rint(v))) for v in (least[columns], most[columns], bounds))
    error = _rounding_error(np.concatenate([least[columns], most[columns], bounds]))
    by_column = matrix[:, columns]
    by_row = by_column.tocsr()
    fixed, value = _deduce(
        by_column.indptr,
        by_column.indices,
        by_row.indptr,
        by_row.indices,
        least[columns],
        most[columns],
        low,
        high,
        error,
    )
    beyond = 1e-6 * np.maximum(1.0, np.abs(value)) + error
    if (fixed & ((value < low - beyond) | (value > high + beyond))).any():
        raise ValueError("no inner values within the bounds agree with the published cells")

    # Values are counted from the lower bound, where there is one.
    start = np.where(fixed, value, np.where(np.isfinite(low), low, 0.0))
    taken = by_column.T @ start
    base = matrix[:, targets].T @ start
    rows = np.flatnonzero(~fixed)
    open_rows = by_row[rows]
    target_rows = matrix[:, targets].tocsr()[rows]

    # Rows in the same restrictions are one variable. What a class of rows without upper bounds adds up to may lie in
    # any of them, so a cell gets all of it in its maximum and, unless it has all rows, nothing in its minimum. Other
    # rows must agree in the cells asked for, too.
    free = np.isfinite(low[rows]) & np.isinf(high[rows])
    keys = _keys(open_rows, rng)
    target_keys = np.where(free[:, None], np.uint64(0), _keys(target_rows, rng) | np.uint64(1))
    first, label = _classes(np.column_stack([keys, target_keys]))
    variables = len(first)
    size = np.bincount(label, minlength=variables)
    member = scipy.sparse.csr_matrix((np.ones(len(rows)), (label, np.arange(len(rows)))), shape=(variables, len(rows)))
    v_low = member @ np.where(np.isfinite(low[rows]), 0.0, -np.inf)
    v_high = member @ (high[rows] - start[rows])

    # The restrictions in these variables; equal ones count once.
    restrictions = open_rows[first].T.tocsr()
    lo_side, hi_side = least[columns] - taken, most[columns] - taken
    lengths = np.diff(restrictions.indptr)
    off = 1e-6 * np.maximum(1.0, np.abs(most[columns])) + error
    if ((lengths == 0) & ((lo_side > off) | (hi_side < -off))).any():
        raise ValueError("no inner values within the bounds agree with the published cells")
    kept = np.flatnonzero(lengths)
    restrictions, lo_side, hi_side = restrictions[kept], lo_side[kept], hi_side[kept]
    head, same = _classes(_keys(restrictions, rng))
    tight_low, tight_high = lo_side[head].copy(), hi_side[head].copy()
    np.maximum.at(tight_low, same, lo_side)
    np.minimum.at(tight_high, same, hi_side)
    if (tight_low > tight_high + 1e-6 * np.maximum(1.0, np.abs(tight_high)) + error).any():
        raise ValueError("no inner values within the bounds agree with the published cells")
    tight_low = np.minimum(tight_low, tight_high)
    restrictions = restrictions[head]

    # What solves the equations: a feasible point and directions. A variable without a direction is determined.
    # Sums of decimals may contradict each other by their rounding.
    point = _feasible_point(restrictions, tight_low - error, tight_high + error, v_low, v_high)
    is_equation = tight_low == tight_high
    equations = restrictions[np.flatnonzero(is_equation)]
    basis = _directions(equations)
    ranged = restrictions[np.flatnonzero(~is_equation)]
    ranges = (ranged @ basis).tocsr()
    links = scipy.sparse.vstack([basis, ranges])
    _, label_all = scipy.sparse.csgraph.connected_components(
        scipy.sparse.bmat([[None, links], [links.T, None]], format="csr"), directed=False
    )
    block = label_all[links.shape[0] :].astype(np.int64)
    moving = np.flatnonzero(np.diff(basis.indptr))
    variable_block = np.full(variables, -1, dtype=np.int64)
    variable_block[moving] = block[basis.indices[basis.indptr[moving]]]

    # Objectives: the part of a cell within a block. Minima and maxima of the blocks add up; equal parts count once.
    share = (member @ target_rows).tocoo()
    in_min = share.data >= size[share.row]
    cell = np.concatenate([share.col[in_min], share.col + len(targets)]).astype(np.int64)
    variable = np.concatenate([share.row[in_min], share.row]).astype(np.int64)
    still = variable_block[variable] < 0
    constant = np.bincount(cell[still], point[variable[still]], 2 * len(targets))
    cell, variable = cell[~still], variable[~still]
    n_blocks = max(int(block.max(initial=-1)) + 1, links.shape[0] + links.shape[1], 1)
    part_code, part = np.unique(cell * n_blocks + variable_block[variable], return_inverse=True)
    sets = scipy.sparse.csr_matrix((np.ones(len(part)), (part, variable)), shape=(len(part_code), variables))
    sets.sum_duplicates()
    chosen, objective = _classes(_keys(sets, rng))
    objectives = sets[chosen]
    part_cell = part_code // n_blocks
    parts, want = [], []
    for side in (0, 1):
        mine = (part_cell >= len(targets)) == bool(side)
        index = (part_cell[mine] - side * len(targets), objective[mine])
        parts.append(scipy.sparse.csr_matrix((np.ones(int(mine.sum())), index), shape=(len(targets), len(chosen))))
        asked = np.zeros(len(chosen), dtype=np.bool_)
        asked[objective[mine]] = True
        want.append(asked)
    return _Problem(
        equations,
        point,
        basis,
        block,
        ranged,
        ranges,
        tight_low[~is_equation] - ranged @ point,
        tight_high[~is_equation] - ranged @ point,
        v_low,
        v_high,
        objectives,
        (part_code % n_blocks)[chosen],
        # Bounds that save linear programs: a solution that attains them is optimal.
        _plain_bounds(objectives, restrictions, tight_low, tight_high, v_low, v_high),
        (want[0], want[1]),
        (np.full(len(chosen), np.inf), np.full(len(chosen), -np.inf)),
        (parts[0], parts[1]),
        (base + constant[: len(targets)], base + constant[len(targets) :]),
        whole,
    )


def _feasible_point(
    restrictions: scipy.sparse.csr_matrix, least: Floats, most: Floats, low: Floats, high: Floats
) -> Floats:
    """Values of the variables that agree with all that is known."""
    variables = restrictions.shape[1]
    nearest = np.clip(np.zeros(variables), low, high)
    if not restrictions.shape[0]:
        return nearest
    scale = _scale(np.concatenate([least, most]))
    highs = quiet_highs()
    highs.setOptionValue("primal_feasibility_tolerance", 1e-9)
    highs.passModel(_model(restrictions, least / scale, most / scale, low / scale, high / scale))
    _, point = _run(highs)
    return np.clip(point * scale, low, high)


def _directions(equations: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """A sparse basis of the vectors that the equations do not see, each with a coefficient 1 that no other shares."""
    as_columns = DummyMatrix(equations.indptr.astype(np.int64), equations.indices.astype(np.int32), equations.shape[1])
    found = eliminate(as_columns, np.arange(equations.shape[0]))
    basis = fractions(found.basis).tocsr()
    error = np.abs(equations @ basis)
    if error.nnz and error.data.max() > 1e-9:
        raise _Unsolved("the equations of the published cells have no small rational solution")
    basis.sort_indices()
    return basis


def _plain_bounds(
    objectives: scipy.sparse.csr_matrix,
    restrictions: scipy.sparse.csr_matrix,
    least: Floats,
    most: Floats,
    low: Floats,
    high: Floats,
) -> tuple[Floats, Floats]:
    """Bounds of the objectives that follow from the bounds of variables and from one restriction each."""
    signed = restrictions @ np.isinf(low).astype(np.float64) == 0  # all variables of the restriction are >= 0
    cap = high.copy()
    entries = restrictions.tocoo()
    usable = signed[entries.row]
    np.minimum.at(cap, entries.col[usable], most[entries.row[usable]])
    unbounded_low = objectives @ np.isinf(low).astype(np.float64) > 0
    unbounded_high = objectives @ np.isinf(cap).astype(np.float64) > 0
    bottom = np.where(unbounded_low, -np.inf, 0.0)
    top = np.where(unbounded_high, np.inf, objectives @ np.where(np.isinf(cap), 0.0, cap))
    common = (objectives @ restrictions.T).tocoo()
    if common.nnz:
        length = np.diff(objectives.indptr)
        covered = (common.data >= length[common.row]) & signed[common.col]
        np.minimum.at(top, common.row[covered], most[common.col[covered]])
        whole_row = common.data >= np.diff(restrictions.indptr)[common.col]
        inside = whole_row & ~unbounded_low[common.row]
        np.maximum.at(bottom, common.row[inside], least[common.col[inside]])
    return bottom, top


class _Unsolved(RuntimeError):
    """A linear program whose end the solver does not find, even from the start."""


class _Interrupted(Exception):
    """Another thread has failed, or the caller has been interrupted."""


class _Progress:
    def __init__(self, total: int, call: Callable[[int, int], None] | None) -> None:
        self.total, self.call, self.done = total, call, 0
        self.lock = threading.Lock()

    def add(self, count: int) -> None:
        if self.call is not None and count:
            with self.lock:
                self.done += count
                self.call(self.done, self.total)


def _solve(
    problem: _Problem, integer: bool, jobs: int, call: Callable[[int, int], None] | None, until: float | None
) -> None:
    """Fill in the minima and maxima asked for; with `until` those that are not found are NaN."""
    progress = _Progress(int(problem.want[0].sum() + problem.want[1].sum()), call)
    _, block, width = np.unique(problem.block, return_inverse=True, return_counts=True)
    of_block = np.full(int(problem.block.max(initial=-1)) + 1, -1, dtype=np.int64)
    of_block[problem.block] = block
    objective_block = of_block[problem.objective_block]
    if not len(objective_block):
        return
    line = (width[objective_block] == 1) & (not integer)
    _solve_lines(problem, block, width, np.flatnonzero(line), progress)
    order = np.lexsort((_walk(problem), objective_block))
    order = order[~line[order]]
    if not len(order):
        return
    directions = _groups(block, len(width))
    by_direction = problem.basis.tocsc()
    edges = np.flatnonzero(np.diff(objective_block[order])) + 1
    tasks: list[tuple[int, Indices]] = []
    for group in np.split(order, edges):
        pieces = -(-len(group) // _CHUNK)
        tasks += [(int(objective_block[group[0]]), piece) for piece in np.array_split(group, pieces)]
    tasks.sort(key=lambda task: (-len(directions[task[0]]) * len(task[1]), task[0]))
    stop = threading.Event()

    def run(task: tuple[int, Indices]) -> None:
        mine = directions[task[0]]
        variables = np.unique(by_direction[:, mine].indices).astype(np.int64)
        _solve_block(problem, variables, mine, task[1], integer, progress, stop, until)

    if jobs == 1 or len(tasks) == 1:
        for task in tasks:
            run(task)
        return
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(run, task) for task in tasks]
        try:
            for future in futures:
                future.result()
        except BaseException:
            stop.set()
            for future in futures:
                future.cancel()
            raise


def _walk(problem: _Problem) -> Floats:
    """Where objectives stand on a walk past their directions.

    Neighbours on it have solutions that are fewer steps of the simplex method apart than those of a random order:
    measured, two thirds of the time. Long rows link everything to everything and are left out.
    """
    short = problem.basis[np.flatnonzero(np.diff(problem.basis.indptr) <= _LONG_ROW)]
    walk = scipy.sparse.csgraph.reverse_cuthill_mckee((short.T @ short).tocsr(), symmetric_mode=True)
    position = np.empty(len(walk))
    position[walk] = np.arange(len(walk))
    touched = abs(problem.objectives @ problem.basis).sign()
    mean: Floats = touched @ position / np.maximum(np.diff(touched.indptr), 1)
    return mean


def _groups(label: Indices, count: int) -> list[Indices]:
    """The positions with each label."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])


def _solve_lines(problem: _Problem, block: Indices, width: Indices, chosen: Indices, progress: _Progress) -> None:
    """Blocks with one direction: how far one can go along it is the tightest of the bounds of their variables."""
    single = width[block] == 1
    reach = [np.full(len(block), -np.inf), np.full(len(block), np.inf)]
    rows = scipy.sparse.vstack([problem.basis, problem.ranges]).tocoo()
    use = single[rows.col]
    direction, slope = rows.col[use], rows.data[use]
    below = np.concatenate([problem.low - problem.point, problem.range_low])[rows.row[use]] / slope
    above = np.concatenate([problem.high - problem.point, problem.range_high])[rows.row[use]] / slope
    np.maximum.at(reach[0], direction, np.minimum(below, above))
    np.minimum.at(reach[1], direction, np.maximum(below, above))
    slopes = (problem.objectives[chosen] @ problem.basis).tocoo()
    value = problem.objectives[chosen] @ problem.point
    ends = [value.copy(), value.copy()]
    for end, side in zip(ends, (0, 1), strict=True):
        toward = np.where(slopes.data > 0, reach[side][slopes.col], reach[1 - side][slopes.col])
        moves = slopes.data != 0
        end[slopes.row[moves]] += slopes.data[moves] * toward[moves]
        problem.found[side][chosen] = end
        progress.add(int(problem.want[side][chosen].sum()))


def _solve_block(
    problem: _Problem,
    variables: Indices,
    directions: Indices,
    chosen: Indices,
    integer: bool,
    progress: _Progress,
    stop: threading.Event,
    until: float | None,
) -> None:
    """Minima and maxima of objectives of one block, from one simplex basis to the next.

    Every solution is a feasible point, so it bounds the other objectives as well: those that attain their plain bound
    need no linear program of their own.
    """
    basis = problem.basis[variables][:, directions].tocsr()
    sets = problem.objectives[chosen][:, variables].tocsr()
    slopes = (sets @ basis).tocsr()
    slopes.sum_duplicates()
    solver = _BlockSolver(problem, variables, directions, basis, integer)
    start = problem.point[variables]
    want = [problem.want[side][chosen] for side in (0, 1)]
    bound = [problem.bound[side][chosen] for side in (0, 1)]
    best = [np.full(len(chosen), np.inf), np.full(len(chosen), -np.inf)]
    found = [np.zeros(len(chosen), dtype=np.bool_) for _ in (0, 1)]
    near = _WHOLE if problem.whole else 1e-9 * max(1.0, float(np.abs(start).max(initial=0.0)))

    def note(point: Floats) -> None:
        values = sets @ point
        np.minimum(best[0], values, out=best[0])
        np.maximum(best[1], values, out=best[1])
        met = [found[0] | (best[0] <= bound[0] + near), found[1] | (best[1] >= bound[1] - near)]
        progress.add(sum(int((want[side] & met[side] & ~found[side]).sum()) for side in (0, 1)))
        found[0], found[1] = met

    for i in range(len(chosen)):
        for side in (1, 0):
            if found[side][i] or not want[side][i]:
                continue
            if stop.is_set():
                raise _Interrupted
            if until is not None and time.monotonic() >= until:
                continue
            span = slice(slopes.indptr[i], slopes.indptr[i + 1])
            members = sets.indices[sets.indptr[i] : sets.indptr[i + 1]]
            try:
                change, step = solver.optimum(slopes.indices[span], slopes.data[span], maximise=bool(side))
            except _Unsolved:
                if until is None:
                    raise
                continue
            value = change + float(start[members].sum())
            if np.isfinite(value):
                point = start + basis @ step
                if integer and np.abs(point - np.rint(point)).max(initial=0.0) >= _WHOLE:
                    limit = np.floor(value + _WHOLE) if side else np.ceil(value - _WHOLE)
                    bound[side][i] = limit
                    if (best[1][i] >= limit) if side else (best[0][i] <= limit):
                        value = limit
                    else:
                        value, point = solver.whole_optimum(members, maximise=bool(side))
                        note(np.rint(point))
                else:
                    note(np.rint(point) if integer else point)
            best[side][i] = value
            if not found[side][i]:
                found[side][i] = True
                progress.add(1)
    for side in (0, 1):
        problem.found[side][chosen] = np.where(found[side] | ~want[side], best[side], np.nan)


class _BlockSolver:
    """HiGHS on one block, in steps along its directions from the feasible point.

    Only the objective changes, so the last basis stays feasible and primal simplex goes on from it.
    """

    def __init__(
        self, problem: _Problem, variables: Indices, directions: Indices, basis: scipy.sparse.csr_matrix, integer: bool
    ) -> None:
        self.problem, self.variables = problem, variables
        low, high = (
            problem.low[variables] - problem.point[variables],
            problem.high[variables] - problem.point[variables],
        )
        near = np.flatnonzero(np.diff(problem.ranges[:, directions].tocsr().indptr))
        rows = scipy.sparse.vstack([basis, problem.ranges[near][:, directions]]).tocsr()
        low = np.concatenate([low, problem.range_low[near]])
        high = np.concatenate([high, problem.range_high[near]])
        self.scale = 1.0 if integer else _scale(problem.point[variables])

        # A row of one direction bounds it; equal rows count once.
        length = np.diff(rows.indptr)
        step_low, step_high = np.full(len(directions), -np.inf), np.full(len(directions), np.inf)
        single = np.flatnonzero(length == 1)
        direction, slope = rows.indices[rows.indptr[single]], rows.data[rows.indptr[single]]
        below, above = low[single] / slope, high[single] / slope
        np.maximum.at(step_low, direction, np.minimum(below, above))
        np.minimum.at(step_high, direction, np.maximum(below, above))
        longer = np.flatnonzero(length > 1)
        rng = np.random.default_rng(1)
        marks = rows[longer] @ rng.random((len(directions), 2))
        head, same = _classes(np.ascontiguousarray(marks).view(np.uint64))
        row_low, row_high = low[longer][head], high[longer][head]
        np.maximum.at(row_low, same, low[longer])
        np.minimum.at(row_high, same, high[longer])

        self.highs = quiet_highs()
        self.highs.setOptionValue("primal_feasibility_tolerance", 1e-9)
        self.highs.setOptionValue("presolve", "off")
        self.highs.setOptionValue("solver", "simplex")
        self.highs.setOptionValue("simplex_strategy", 4)
        sides = [side / self.scale for side in (row_low, row_high, step_low, step_high)]
        self.highs.passModel(_model(rows[longer[head]], *sides))
        self.cost: NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    def optimum(self, index: NDArray[np.int32], slope: Floats, *, maximise: bool) -> tuple[float, Floats]:
        """The largest or smallest value of a sum of steps, and the steps."""
        sign = -1.0 if maximise else 1.0
        self.highs.changeColsCost(len(self.cost), self.cost, np.zeros(len(self.cost)))
        self.highs.changeColsCost(len(index), index, sign * slope)
        self.cost = index
        try:
            value, step = _run(self.highs)
        except (_Unsolved, ValueError):
            # No step at all is a solution: what the last basis led to is rounding, and the solver begins anew.
            self.highs.clearSolver()
            self.highs.setOptionValue("presolve", "choose")
            try:
                value, step = _run(self.highs)
            except ValueError as problem:
                raise _Unsolved(str(problem)) from problem
            finally:
                self.highs.setOptionValue("presolve", "off")
        return sign * value * self.scale, step * self.scale

    def whole_optimum(self, members: NDArray[np.int32], *, maximise: bool) -> tuple[float, Floats]:
        """The optimum over whole values."""
        problem, variables = self.problem, self.variables
        rows = scipy.sparse.vstack([problem.equations[:, variables], problem.ranged[:, variables]]).tocsr()
        at_point = rows @ problem.point[variables]
        equations = problem.equations.shape[0]
        sides = [at_point.copy(), at_point.copy()]
        for side, reach in zip(sides, (problem.range_low, problem.range_high), strict=True):
            side[:equations] = np.rint(side[:equations])
            side[equations:] += reach
        used = np.flatnonzero(np.diff(rows.indptr))
        model = _model(rows[used], sides[0][used], sides[1][used], problem.low[variables], problem.high[variables])
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(variables)
        sign = -1.0 if maximise else 1.0
        mip = quiet_highs()
        mip.setOptionValue("mip_rel_gap", 0.0)
        mip.setOptionValue("mip_abs_gap", 0.5)
        mip.passModel(model)
        mip.changeColsCost(len(members), members, np.full(len(members), sign))
        value, point = _run(mip)
        return float(np.rint(sign * value)), point


def _scale(sides: Floats) -> float:
    """Large values are scaled: the tolerances of the solver are absolute."""
    return max(1.0, float(np.abs(sides[np.isfinite(sides)]).max(initial=0.0)) / _LARGEST_SIDE)


def _model(matrix: scipy.sparse.csr_matrix, least: Floats, most: Floats, low: Floats, high: Floats) -> highspy.HighsLp:
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_ = np.zeros(matrix.shape[1])
    lp.col_lower_, lp.col_upper_ = low, high
    lp.row_lower_, lp.row_upper_ = least, most
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    lp.a_matrix_.index_ = matrix.indices.astype(np.int32)
    lp.a_matrix_.value_ = matrix.data
    return lp


def _run(highs: highspy.Highs) -> tuple[float, Floats]:
    """The optimum and where it is attained; minus infinity without bound."""
    highs.run()
    status = highs.getModelStatus()
    if status == highspy.HighsModelStatus.kUnbounded:
        return -np.inf, np.zeros(0)
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        raise ValueError("no inner values within the bounds agree with the published cells")
    if status != highspy.HighsModelStatus.kOptimal:
        raise _Unsolved(f"HiGHS ended with {highs.modelStatusToString(status)}")
    point = np.asarray(highs.getSolution().col_value, dtype=np.float64)
    return float(highs.getInfo().objective_function_value), point
