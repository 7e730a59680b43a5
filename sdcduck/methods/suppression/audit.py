"""Audit of a suppression pattern: the interval that an attacker can compute for each suppressed cell.

The attacker knows the published cells and that inner values are not negative; two linear programs a cell give the
smallest and the largest value that agree with them (the attacker problem of Fischetti and Salazar 2001, section 2).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.linear_programs import Unsolved
from sdcduck.methods.numerics import scipy
from sdcduck.methods.suppression.attacker import WHOLE, Known, reduced
from sdcduck.methods.suppression.checked import flags, numbers
from sdcduck.methods.suppression.deduction import deduced_rows, rounding_error
from sdcduck.methods.suppression.extremes import fill_in
from sdcduck.methods.suppression.matrix import DummyMatrix

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Indices = NDArray[np.int64]


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
    totals, hidden, wanted = _asked(x, z, suppressed, cells)
    up = None if upl is None else numbers(upl, x.columns, "upper protection levels")
    down = up if lpl is None else numbers(lpl, x.columns, "lower protection levels")
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
    exact = hi - lo < (0.5 if whole else np.maximum(slack, 16 * rounding_error(totals)))
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
    totals = numbers(z, x.columns, "the cell totals")
    hidden = flags(suppressed, x.columns, "suppressed")
    matrix = x.sparse()
    known = deduced_rows(matrix, totals, hidden, np.zeros(x.rows))
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
    totals, hidden, wanted = _asked(x, z, suppressed, cells)
    inner = numbers(y, x.rows, "the inner values")
    owner = _owners(contributor, x.rows)
    low = np.broadcast_to(np.asarray(lower, dtype=np.float64), (x.rows,)).copy()  # an array like any other (`compiled`)
    finished, every = 0, 1

    def still(_done: int, _of: int) -> None:
        """Whoever waits is heard within a contributor, too: the intervals of one may take minutes."""
        if progress is not None:
            progress(finished, every)

    base = outside or audit(
        x, totals, hidden, upl=upl, lpl=lpl, lower=low, cells=wanted, jobs=jobs, progress=still, until=until
    )  # fmt: skip
    narrowest = _Narrowest(base, x.columns)
    reach = _Reach(x, totals, hidden, low, owner, base.cells)
    owners = reach.owners()
    every = max(len(owners), 1)
    for finished, one in enumerate(owners):
        if until is not None and time.monotonic() >= until:
            # Nobody has looked at the cells near those who are left.
            narrowest.leave(reach.near(owner >= one))
            break
        rows = np.flatnonzero(owner == one)
        touched = reach.of(rows)
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
                narrowest.leave(touched)
                continue
            narrowest.narrow(his)
        if progress is not None:
            progress(finished + 1, len(owners))
    return narrowest.audit()


class _Reach:
    """Which cells what single contributors know can matter to."""

    def __init__(
        self, x: DummyMatrix, totals: Floats, hidden: Booleans, low: Floats, owner: NDArray[np.generic], cells: Indices
    ) -> None:
        self.matrix, self.owner, self.cells = x.sparse(), owner, cells
        self.known = deduced_rows(self.matrix, totals, hidden, low)
        self.block = _blocks(self.matrix, ~hidden, self.known)
        self.cells_of_row = self.matrix[:, cells].tocsr()

    def owners(self) -> NDArray[np.generic]:
        """The contributors that know more than what follows anyway."""
        found: NDArray[np.generic] = np.unique(self.owner[(self.owner != 0) & ~self.known])
        return found

    def near(self, rows: Booleans) -> Booleans:
        """The cells in the blocks of those of these rows that have a contributor and are not known; bool (N,)."""
        # Beyond the blocks that his rows are in, what he knows changes nothing.
        inside = np.isin(self.block, self.block[rows & (self.owner != 0) & ~self.known])
        found = np.zeros(self.matrix.shape[1], dtype=np.bool_)
        found[self.cells[np.unique(self.cells_of_row[np.flatnonzero(inside)].indices)]] = True
        return found

    def of(self, rows: Indices) -> Booleans:
        """The cells that the contributor of these rows can learn of, which are not all his own; bool (N,)."""
        his = np.zeros(self.matrix.shape[0], dtype=np.bool_)
        his[rows] = True
        found: Booleans = self.near(his) & (self.matrix.T @ (~his).astype(np.float64) > 0)
        return found


class _Narrowest:
    """The narrowest of several intervals of each cell."""

    def __init__(self, first: Audit, columns: int) -> None:
        self.cells = first.cells
        self.lo, self.hi, self.bounded = first.lo.copy(), first.hi.copy(), first.bounded.copy()
        self.exact, self.protected = first.exact.copy(), first.protected.copy()
        self.place = np.full(columns, -1, dtype=np.int64)
        self.place[self.cells] = np.arange(len(self.cells))

    def leave(self, cells: Booleans) -> None:
        """Not all intervals of these cells (bool (N,)) are known."""
        self.bounded[self.place[cells]] = False

    def narrow(self, other: Audit) -> None:
        """Take the other's intervals where these are narrower."""
        at = self.place[other.cells]
        narrower = other.bounded & ~(other.hi - other.lo >= self.hi[at] - self.lo[at])
        self.lo[at] = np.where(narrower, other.lo, self.lo[at])
        self.hi[at] = np.where(narrower, other.hi, self.hi[at])
        self.exact[at] |= other.exact
        self.protected[at] &= other.protected
        self.bounded[at] &= other.bounded

    def audit(self) -> Audit:
        unknown = ~self.bounded & ~self.exact
        lo, hi = np.where(unknown, np.nan, self.lo), np.where(unknown, np.nan, self.hi)
        return Audit(self.cells, lo, hi, self.exact, self.protected & self.bounded, self.bounded)


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
    totals = numbers(z, x.columns, "the cell totals")
    hidden = flags(suppressed, x.columns, "suppressed")
    wanted = hidden if cells is None else flags(cells, x.columns, "cells")
    low, high = _inner_bounds(x.rows, lower, upper, known)
    if (wanted & ~hidden).any():
        raise ValueError("intervals are computed for suppressed cells only")
    if integer:
        low, high = np.ceil(low), np.floor(high)

    matrix = x.sparse()
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
    columns = np.flatnonzero(restricted)
    try:
        problem = reduced(matrix, Known(columns, least[columns], most[columns], low, high), targets)
    except Unsolved:
        if until is None:
            raise
        return unknown_bounds, unknown_bounds.copy()
    fill_in(problem, integer, jobs or os.cpu_count() or 1, progress, until)
    return problem.intervals()


def _asked(
    x: DummyMatrix, z: ArrayLike, suppressed: ArrayLike, cells: ArrayLike | None
) -> tuple[Floats, Booleans, Booleans]:
    """The totals, the suppressed cells, and those of them that are asked for."""
    totals = numbers(z, x.columns, "the cell totals")
    hidden = flags(suppressed, x.columns, "suppressed")
    return totals, hidden, hidden if cells is None else hidden & flags(cells, x.columns, "cells")


def _owners(contributor: ArrayLike, rows: int) -> NDArray[np.generic]:
    owner = np.asarray(contributor)
    if owner.shape != (rows,):
        raise ValueError(f"contributors must be {rows} numbers, one an inner cell")
    return owner


def _inner_bounds(
    count: int, lower: ArrayLike, upper: ArrayLike, known: tuple[ArrayLike, ArrayLike] | None
) -> tuple[Floats, Floats]:
    """What the attacker knows each inner value to be at least and at most."""
    low = np.broadcast_to(np.asarray(lower, dtype=np.float64), (count,)).copy()
    high = np.broadcast_to(np.asarray(upper, dtype=np.float64), (count,)).copy()
    if known is not None:
        rows, values = np.asarray(known[0]), np.asarray(known[1], dtype=np.float64)
        if rows.shape != values.shape or (len(rows) and (rows.min() < 0 or rows.max() >= count)):
            raise ValueError("known inner cells must be row numbers of the matrix with a value each")
        low[rows] = high[rows] = values
    if np.isnan(low).any() or np.isnan(high).any() or (low > high).any():
        raise ValueError("the lower bound of an inner cell must be a number not above its upper bound")
    return low, high


def _slack(values: Floats, whole: bool) -> Floats:
    """What two equal results may differ by."""
    return np.full(len(values), WHOLE) if whole else 1e-7 * np.maximum(np.abs(values), 1e-3)


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
