"""Rounding of the counts of linked tables, and cell-wise thresholds: other methods on the same dummy matrix.

Small-count rounding changes inner cells, so that the published cells stay additive (Langsrud and Heldal 2018, "An
algorithm for small count rounding of tabular data"). Controlled rounding makes every cell a multiple of the base and
keeps the tables additive (Cox 1987, "A constructive procedure for unbiased controlled rounding", zero-restricted).
Random rounding treats every cell on its own (Willenborg and de Waal 2001, section 9.3), as does midpoint rounding.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.compiled import njit
from sdcduck.methods.linear_programs import linear_program, quiet_highs
from sdcduck.methods.numerics import highspy, scipy
from sdcduck.methods.suppression.matrix import DummyMatrix

Counts = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Shuffle = Callable[[int], NDArray[np.int64]]


def below_threshold(z: ArrayLike, minimum: int = 3) -> Booleans:
    """Which cells to suppress one by one: counts below `minimum` other than 0.

    No protection against differences: a cell alone in its row follows from the total.

    Args:
        z: whole numbers (N,), at least 0.
        minimum: the smallest count that is published.

    Raises:
        ValueError: counts that are negative or not whole, a minimum below 1.
    """
    if minimum < 1:
        raise ValueError("the smallest count that is published must be at least 1")
    counts = _counts(z)
    return (counts < minimum) & (counts > 0)


def random_rounding(z: ArrayLike, base: int = 3, *, seed: int) -> Counts:
    """Unbiased random rounding: each count goes to a neighbouring multiple of the base, its expectation is the count.

    A count z = q base + r becomes (q + 1) base with probability r / base, else q base; multiples stay. Cells are drawn
    one by one, so the rounded tables need not add up.

    Args:
        z: whole numbers (N,), at least 0.
        base: at least 2.
        seed: of the random numbers; the same seed and counts give the same answer.

    Raises:
        ValueError: counts that are negative or not whole, a base below 2.
    """
    counts = _counts(z)
    rest = counts % _base(base)
    up = np.random.default_rng(seed).integers(0, base, size=len(counts)) < rest
    return counts - rest + base * up


def midpoint_rounding(z: ArrayLike, base: int = 6) -> Counts:
    """The middle of the range that each count lies in: 1 to `base`, base + 1 to 2 base, and so on; 0 stays.

    A count z above 0 becomes base ceil(z / base) - floor(base / 2), as OpenSAFELY asks of what leaves it ("midpoint 6
    rounding"). Each cell by itself and without chance, so that asking again tells nothing; tables do not add up.

    Args:
        z: whole numbers (N,), at least 0.
        base: at least 2.

    Raises:
        ValueError: counts that are negative or not whole, a base below 2.

    >>> midpoint_rounding([0, 1, 6, 7, 12, 13], 6).tolist(), midpoint_rounding([5, 6], 5).tolist()
    ([0, 3, 3, 9, 9, 15], [3, 8])
    """
    counts, width = _counts(z), _base(base)
    return np.where(counts > 0, -(-counts // width) * width - width // 2, 0)


@dataclass(frozen=True)
class ControlledRounding:
    """Tables rounded to multiples of a base that add up.

    Attributes:
        cells: int64 (N,), the rounded cells; they are X'inner.
        inner: int64 (n,), rounded inner cells.
        within_base: every cell is less than the base away from its count. False where no such rounding exists (or none
            was found in the time allowed): then as few cells as possible go further away.
        largest: the largest distance of a cell from its count.
        optimal: the distances are the smallest possible, not merely the best found in the time allowed.
    """

    cells: Counts
    inner: Counts
    within_base: bool
    largest: int
    optimal: bool


def controlled_rounding(x: DummyMatrix, y: ArrayLike, base: int = 3, *, time_limit: float = 60.0) -> ControlledRounding:
    """Zero-restricted controlled rounding of linked tables, as near to the counts as can be.

    Each cell becomes one of the two multiples of the base around it, multiples of the base stay, and all cells add up;
    the sum of the absolute differences is the smallest. Two-way tables always have such a rounding. Where linked
    tables have none, inner cells may go further, and then as few cells as possible.

    Args:
        x: n inner cells x N cells.
        y: whole numbers (n,), at least 0, the inner counts.
        base: at least 2.
        time_limit: seconds, for the up to three integer programs together.

    Raises:
        ValueError: counts that are negative or not whole, a base below 2.
    """
    counts = _counts(y, x.rows)
    _base(base)
    z = x.totals(counts).astype(np.int64)
    ends = time.monotonic() + time_limit
    inner, optimal = None, False
    for inner_too, share in ((True, 0.4), (False, 0.5)):
        inner, optimal = _controlled(x, counts, z, base, inner_too, None, share * (ends - time.monotonic()))
        if inner is not None:
            break
    if inner is None:
        start = small_count_rounding(x, counts, base, force=True, identify_new=False)
        inner, optimal = _controlled(x, counts, z, base, False, start, ends - time.monotonic())
        if inner is None:
            inner = start
    cells = x.totals(inner).astype(np.int64)
    largest = int(np.abs(cells - z).max(initial=0))
    return ControlledRounding(cells, inner, largest < base, largest, optimal)


def _controlled(
    x: DummyMatrix, y: Counts, z: Counts, base: int, inner_too: bool, start: Counts | None, seconds: float
) -> tuple[Counts | None, bool]:
    """Multiples of the base for the inner cells, and whether none are nearer; None when none were found.

    The variables are the multiples; each cell must have as many as z / base, rounded down or up. Between these two the
    distance is linear in them. With a start, two more variables a cell say how far it goes past them.
    """
    low, high = z // base, -(-z // base)
    slope = np.where(z % base == 0, 0, base - 2 * (z % base)).astype(np.float64)
    matrix = x.sparse()
    rows = matrix.T.tocsr()
    # A cell that is published settles its inner cell; others stay near their counts only as a tie-break.
    own_slope = np.where(y % base == 0, 0.0, base - 2.0 * (y % base))
    cost = matrix @ slope + 1e-4 * own_slope
    inner_low = y // base if inner_too else np.zeros(x.rows)
    inner_high = -(-y // base) if inner_too else np.full(x.rows, np.inf)
    lower, upper = inner_low.astype(np.float64), inner_high.astype(np.float64)
    if start is not None:
        # A step beyond costs more than all distances within the base together.
        penalty = 2.0 * base * (x.columns + x.rows)
        past = scipy.sparse.identity(x.columns, format="csr")
        rows = scipy.sparse.hstack([rows, past, -past]).tocsr()
        cost = np.concatenate([cost, np.full(2 * x.columns, penalty)])
        lower = np.concatenate([lower, np.zeros(2 * x.columns)])
        upper = np.concatenate([upper, np.full(2 * x.columns, np.inf)])
    lp = linear_program(rows, low.astype(np.float64), high.astype(np.float64), lower, upper, cost)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * lp.num_col_
    highs = quiet_highs()
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("time_limit", max(float(seconds), 0.0))
    highs.passModel(lp)
    if start is not None:
        steps = x.totals(start).astype(np.int64) // base
        solution = highspy.HighsSolution()
        solution.col_value = np.concatenate(
            [start // base, np.maximum(low - steps, 0), np.maximum(steps - high, 0)]
        ).astype(np.float64)
        highs.setSolution(solution)
    highs.run()
    if highs.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None, False
    multiples = np.rint(np.asarray(highs.getSolution().col_value)[: x.rows]).astype(np.int64)
    return base * multiples, highs.getModelStatus() == highspy.HighsModelStatus.kOptimal


def small_count_rounding(
    x: DummyMatrix,
    y: ArrayLike,
    base: int = 3,
    *,
    max_round: int | None = None,
    zero_candidates: ArrayLike = False,
    force: ArrayLike = False,
    identify_new: bool = True,
    max_rows: int = 1000,
    seed: int = 0,
    shuffle: Shuffle | None = None,
) -> Counts:
    """Round inner cells so that no small count is published, and the published cells change as little as possible.

    Inner cells that contribute to a small published cell go to a multiple of the base next to them; which of them go
    up is found by a search that resembles partial least squares: one after the other that whose published cells lie
    furthest below their counts, then exchanges until none is left. Rounding can make other cells small; those are
    rounded in turn, and so are small inner cells that a reader could compute from zeros and from cells with a single
    unknown inner cell.

    Args:
        x: n inner cells x N cells.
        y: whole numbers (n,), at least 0, the inner counts.
        base: at least 2.
        max_round: published counts up to this one are small; default base - 1.
        zero_candidates: bool or bool (n,), inner cells that are multiples of the base (zeros among them) and may go up
            when they contribute to a small cell.
        force: bool or bool (n,), inner cells that are rounded in any case.
        identify_new: round also what becomes small by rounding. Without it small cells may be published.
        max_rows: inner cells rounded at a time; a random choice when there are more. Memory grows with its square.
        seed: of the random order that breaks ties.
        shuffle: gives a random order of 0..n-1 for n; in place of `seed`.

    Returns:
        int64 (n,), rounded inner cells; the rounded published cells are X' times them.

    Raises:
        ValueError: counts that are negative or not whole, wrong lengths, a base below 2, `max_round` below base - 1.
    """
    counts = _counts(y, x.rows)
    _base(base)
    small = base - 1 if max_round is None else max_round
    if small < base - 1:
        raise ValueError("max_round must be at least base - 1")
    if max_rows < 1:
        raise ValueError("max_rows must be at least 1")
    rng = np.random.default_rng(seed)
    draw: Shuffle = shuffle or (lambda n: rng.permutation(n))
    may_rise = np.broadcast_to(np.asarray(zero_candidates, dtype=np.bool_), counts.shape) & (counts % base == 0)
    forced = np.broadcast_to(np.asarray(force, dtype=np.bool_), counts.shape) & ((counts % base != 0) | may_rise)
    matrix = x.sparse(np.int64).tocsr()
    exact = x.totals(counts).astype(np.int64)
    cells = exact.copy()
    inner = counts.copy()
    is_small = (cells <= small) & (cells > 0)
    waiting = _beside(matrix, is_small) & (inner <= small) & ((inner % base != 0) | may_rise) | forced
    chosen = waiting
    while True:
        if chosen.any():
            rows = np.flatnonzero(chosen)
            if len(rows) > max_rows:
                rows = np.sort(rows[draw(len(rows))[:max_rows]])
            rounded = _round_rows(matrix[rows], inner[rows], cells, exact, int(counts.sum() - inner.sum()), base, draw)
            cells += matrix[rows].T @ (rounded - inner[rows])
            inner[rows] = rounded
            waiting[rows] = False
        unfinished = (cells <= small) & (cells % base != 0) & identify_new
        chosen = _beside(matrix, unfinished) & (inner <= small) & (inner % base != 0) | waiting
        if not chosen.any():
            waiting = _computable(x, cells) & (inner <= small) & (inner % base != 0)
            chosen = waiting
            if not chosen.any():
                return inner


def _beside(matrix: scipy.sparse.csr_matrix, cells: Booleans) -> Booleans:
    """The inner cells of any of these cells."""
    result: Booleans = matrix @ cells.astype(np.int64) > 0
    return result


def _computable(x: DummyMatrix, cells: Counts) -> Booleans:
    """Inner cells that follow from zeros and from published cells with a single unknown inner cell."""
    known = np.zeros(x.rows, dtype=np.bool_)
    column = np.repeat(np.arange(x.columns), np.diff(x.indptr))
    value = np.zeros(x.rows, dtype=np.int64)
    while True:
        unknown = ~known[x.indices]
        left = np.bincount(column[unknown], minlength=x.columns)
        rest = cells - np.bincount(column, value[x.indices].astype(np.float64), x.columns).astype(np.int64)
        settled = unknown & ((rest[column] == 0) | (left[column] == 1))
        if not settled.any():
            return known
        value[x.indices[settled]] = rest[column[settled]]
        known[x.indices[settled]] = True


def _round_rows(
    part: scipy.sparse.csr_matrix, y: Counts, cells: Counts, exact: Counts, missing: int, base: int, draw: Shuffle
) -> Counts:
    """Round these inner cells; the cells that they are part of should come near to their exact counts."""
    rest = y % base
    total = int(np.clip(round((int(rest.sum()) + missing) / base), 0, len(y)))
    up = np.zeros(len(y), dtype=np.bool_)
    size = np.asarray(part.sum(axis=0)).ravel()
    # A cell with all of the rows gets the same whatever the choice.
    telling = np.flatnonzero((size > 0) & (size < len(y)))
    if total and not len(telling):
        up[draw(len(y))[:total]] = True
    elif total:
        order = draw(len(y))
        if total == len(y):
            up[:] = True
        else:
            part = part[:, telling]
            wanted = part.T @ rest + exact[telling] - cells[telling]
            gram = (part @ part.T).toarray().astype(np.int64) * base
            up = _choose(part @ wanted, gram, np.argsort(order), total)
    return y - rest + base * up


@njit(cache=True)
def _choose(gain, gram, place, total):  # type: ignore[no-untyped-def]
    """Which rows go up: greedily the row with the largest gain, then exchanges of the row with the smallest.

    Ties go to the row that stands first; a row that changes sides comes to stand in front.
    """
    n = len(gain)
    up = np.zeros(n, dtype=np.bool_)
    place = place.copy()
    front = -1
    count = 0
    for repeat in range(total + 101):
        if repeat > 0:
            worst = -1
            newest = -1
            for i in range(n):
                if up[i]:
                    if worst < 0 or gain[i] < gain[worst] or (gain[i] == gain[worst] and place[i] < place[worst]):
                        worst = i
                    if newest < 0 or place[i] < place[newest]:
                        newest = i
            if worst == newest:
                break
            up[worst] = False
            count -= 1
            place[worst] = front
            front -= 1
            gain += gram[worst]
        while count < total:
            best = -1
            for i in range(n):
                if not up[i] and (
                    best < 0 or gain[i] > gain[best] or (gain[i] == gain[best] and place[i] < place[best])
                ):
                    best = i
            up[best] = True
            count += 1
            place[best] = front
            front -= 1
            gain -= gram[best]
    return up


def _counts(values: ArrayLike, length: int | None = None) -> Counts:
    given = np.asarray(values)
    if given.ndim != 1 or (length is not None and len(given) != length):
        raise ValueError("counts must be a vector" if length is None else f"counts must be {length} numbers")
    if given.dtype.kind not in "iuf" or (given.dtype.kind == "f" and not np.all(given == np.rint(given))):
        raise ValueError("counts must be whole numbers")
    if len(given) and given.min() < 0:
        raise ValueError("counts must not be negative")
    return given.astype(np.int64)


def _base(base: int) -> int:
    if base != int(base) or base < 2:
        raise ValueError("the rounding base must be a whole number, at least 2")
    return int(base)
