"""Minima and maxima of an attacker problem: block by block, from one simplex basis to the next.

Objectives of a block follow one another so that their solutions are few steps apart. Every solution is a feasible
point and bounds the other objectives as well, and a block of one direction needs no linear program at all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.linear_programs import Unsolved, linear_program, quiet_highs, scale_of, solve
from sdcduck.methods.numerics import highspy, scipy
from sdcduck.methods.suppression.attacker import WHOLE, Problem
from sdcduck.methods.suppression.matrix import classes

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_CHUNK = 256  # objectives of one block that share a simplex basis; fixed, so that results do not depend on `jobs`
_LONG_ROW = 64


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


def fill_in(
    problem: Problem, integer: bool, jobs: int, call: Callable[[int, int], None] | None, until: float | None
) -> None:
    """Fill in the minima and maxima asked for; with `until` those that are not found are NaN."""
    progress = _Progress(int(problem.objectives.want[0].sum() + problem.objectives.want[1].sum()), call)
    _, block, width = np.unique(problem.solutions.block, return_inverse=True, return_counts=True)
    of_block = np.full(int(problem.solutions.block.max(initial=-1)) + 1, -1, dtype=np.int64)
    of_block[problem.solutions.block] = block
    objective_block = of_block[problem.objectives.block]
    if not len(objective_block):
        return
    line = (width[objective_block] == 1) & (not integer)
    _solve_lines(problem, block, width, np.flatnonzero(line), progress)
    order = np.lexsort((_walk(problem), objective_block))
    order = order[~line[order]]
    if not len(order):
        return
    directions = _groups(block, len(width))
    by_direction = problem.solutions.basis.tocsc()
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


def _walk(problem: Problem) -> Floats:
    """Where objectives stand on a walk past their directions.

    Neighbours on it have solutions that are fewer steps of the simplex method apart than those of a random order:
    measured, two thirds of the time. Long rows link everything to everything and are left out.
    """
    short = problem.solutions.basis[np.flatnonzero(np.diff(problem.solutions.basis.indptr) <= _LONG_ROW)]
    walk = scipy.sparse.csgraph.reverse_cuthill_mckee((short.T @ short).tocsr(), symmetric_mode=True)
    position = np.empty(len(walk))
    position[walk] = np.arange(len(walk))
    touched = abs(problem.objectives.sets @ problem.solutions.basis).sign()
    mean: Floats = touched @ position / np.maximum(np.diff(touched.indptr), 1)
    return mean


def _groups(label: Indices, count: int) -> list[Indices]:
    """The positions with each label."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])


def _solve_lines(problem: Problem, block: Indices, width: Indices, chosen: Indices, progress: _Progress) -> None:
    """Blocks with one direction: how far one can go along it is the tightest of the bounds of their variables."""
    single = width[block] == 1
    reach = [np.full(len(block), -np.inf), np.full(len(block), np.inf)]
    rows = scipy.sparse.vstack([problem.solutions.basis, problem.solutions.ranges]).tocoo()
    use = single[rows.col]
    direction, slope = rows.col[use], rows.data[use]
    below = (
        np.concatenate([problem.variables.low - problem.solutions.point, problem.solutions.range_low])[rows.row[use]]
        / slope
    )
    above = (
        np.concatenate([problem.variables.high - problem.solutions.point, problem.solutions.range_high])[rows.row[use]]
        / slope
    )
    np.maximum.at(reach[0], direction, np.minimum(below, above))
    np.minimum.at(reach[1], direction, np.maximum(below, above))
    slopes = (problem.objectives.sets[chosen] @ problem.solutions.basis).tocoo()
    value = problem.objectives.sets[chosen] @ problem.solutions.point
    ends = [value.copy(), value.copy()]
    for end, side in zip(ends, (0, 1), strict=True):
        toward = np.where(slopes.data > 0, reach[side][slopes.col], reach[1 - side][slopes.col])
        moves = slopes.data != 0
        end[slopes.row[moves]] += slopes.data[moves] * toward[moves]
        problem.found[side][chosen] = end
        progress.add(int(problem.objectives.want[side][chosen].sum()))


def _solve_block(
    problem: Problem,
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
    basis = problem.solutions.basis[variables][:, directions].tocsr()
    sets = problem.objectives.sets[chosen][:, variables].tocsr()
    slopes = (sets @ basis).tocsr()
    slopes.sum_duplicates()
    solver = BlockSolver(problem, variables, directions, basis, integer)
    start = problem.solutions.point[variables]
    want = [problem.objectives.want[side][chosen] for side in (0, 1)]
    bound = [problem.bound[side][chosen] for side in (0, 1)]
    best = [np.full(len(chosen), np.inf), np.full(len(chosen), -np.inf)]
    found = [np.zeros(len(chosen), dtype=np.bool_) for _ in (0, 1)]
    near = WHOLE if problem.whole else 1e-9 * max(1.0, float(np.abs(start).max(initial=0.0)))

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
            except Unsolved:
                if until is None:
                    raise
                continue
            value = change + float(start[members].sum())
            if np.isfinite(value):
                point = start + basis @ step
                if integer and np.abs(point - np.rint(point)).max(initial=0.0) >= WHOLE:
                    limit = np.floor(value + WHOLE) if side else np.ceil(value - WHOLE)
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


class BlockSolver:
    """HiGHS on one block, in steps along its directions from the feasible point.

    Only the objective changes, so the last basis stays feasible and primal simplex goes on from it.
    """

    def __init__(
        self, problem: Problem, variables: Indices, directions: Indices, basis: scipy.sparse.csr_matrix, integer: bool
    ) -> None:
        self.problem, self.variables = problem, variables
        low, high = (
            problem.variables.low[variables] - problem.solutions.point[variables],
            problem.variables.high[variables] - problem.solutions.point[variables],
        )
        near = np.flatnonzero(np.diff(problem.solutions.ranges[:, directions].tocsr().indptr))
        rows = scipy.sparse.vstack([basis, problem.solutions.ranges[near][:, directions]]).tocsr()
        low = np.concatenate([low, problem.solutions.range_low[near]])
        high = np.concatenate([high, problem.solutions.range_high[near]])
        self.scale = 1.0 if integer else scale_of(problem.solutions.point[variables])

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
        head, same = classes(np.ascontiguousarray(marks).view(np.uint64))
        row_low, row_high = low[longer][head], high[longer][head]
        np.maximum.at(row_low, same, low[longer])
        np.minimum.at(row_high, same, high[longer])

        self.highs = quiet_highs()
        self.highs.setOptionValue("primal_feasibility_tolerance", 1e-9)
        self.highs.setOptionValue("presolve", "off")
        self.highs.setOptionValue("solver", "simplex")
        self.highs.setOptionValue("simplex_strategy", 4)
        sides = [side / self.scale for side in (row_low, row_high, step_low, step_high)]
        self.highs.passModel(linear_program(rows[longer[head]], *sides))
        self.cost: NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    def optimum(self, index: NDArray[np.int32], slope: Floats, *, maximise: bool) -> tuple[float, Floats]:
        """The largest or smallest value of a sum of steps, and the steps."""
        sign = -1.0 if maximise else 1.0
        self.highs.changeColsCost(len(self.cost), self.cost, np.zeros(len(self.cost)))
        self.highs.changeColsCost(len(index), index, sign * slope)
        self.cost = index
        try:
            value, step = solve(self.highs)
        except (Unsolved, ValueError):
            # No step at all is a solution: what the last basis led to is rounding, and the solver begins anew.
            self.highs.clearSolver()
            self.highs.setOptionValue("presolve", "choose")
            try:
                value, step = solve(self.highs)
            except ValueError as problem:
                raise Unsolved(str(problem)) from problem
            finally:
                self.highs.setOptionValue("presolve", "off")
        return sign * value * self.scale, step * self.scale

    def whole_optimum(self, members: NDArray[np.int32], *, maximise: bool) -> tuple[float, Floats]:
        """The optimum over whole values."""
        problem, variables = self.problem, self.variables
        rows = scipy.sparse.vstack(
            [problem.solutions.equations[:, variables], problem.solutions.ranged[:, variables]]
        ).tocsr()
        at_point = rows @ problem.solutions.point[variables]
        equations = problem.solutions.equations.shape[0]
        sides = [at_point.copy(), at_point.copy()]
        for side, reach in zip(sides, (problem.solutions.range_low, problem.solutions.range_high), strict=True):
            side[:equations] = np.rint(side[:equations])
            side[equations:] += reach
        used = np.flatnonzero(np.diff(rows.indptr))
        model = linear_program(
            rows[used],
            sides[0][used],
            sides[1][used],
            problem.variables.low[variables],
            problem.variables.high[variables],
        )
        model.integrality_ = [highspy.HighsVarType.kInteger] * len(variables)
        sign = -1.0 if maximise else 1.0
        mip = quiet_highs()
        mip.setOptionValue("mip_rel_gap", 0.0)
        mip.setOptionValue("mip_abs_gap", 0.5)
        mip.passModel(model)
        mip.changeColsCost(len(members), members, np.full(len(members), sign))
        value, point = solve(mip)
        return float(np.rint(sign * value)), point
