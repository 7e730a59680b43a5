"""Secondary suppression: which further cells must stay out so that no primary cell follows from the published ones.

The greedy rule of Langsrud (2024, PSD, doi 10.1007/978-3-031-69651-0_6; SSBtools::GaussSuppression): walk the
candidates from most to least worth publishing, publish each unless what is left of it is proportional to what is left
of a primary cell. The same answer as the reference, cell for cell; the arithmetic is modulo a prime instead of growing
integers. Most methods need nothing but that question (`walk`); those that ask what is left of the primary cells keep
all columns up to date (`residuals`). What the modulus could have hidden, `nullspace` checks in whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcduck.methods.numerics import scipy
from sdcduck.methods.suppression import any_sum, residuals, singletons
from sdcduck.methods.suppression.contributors import ALLOWED, REFUSED_AND_PRIMARY, contributor_test
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.pools import Elimination
from sdcduck.methods.suppression.residuals import CANDIDATE, GONE, PIVOT, PRIMARY
from sdcduck.methods.suppression.singletons import FREQUENCY_METHODS, ContributorMethod, Problem
from sdcduck.methods.suppression.walk import Walk

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Array = NDArray[Any]
Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Suppression:
    """The outcome of `suppress_secondary`.

    secondary: N booleans. unsafe: primary cells that the forced cells disclose (indices, ascending).
    independent: the published cells that were pivots; every other published cell is a combination of them (indices,
    ascending). rank: their number. method: the singleton method that was used; "anySum" may become "anySumNOTprimary"
    (a singleton is not primary) or "subSumAny" (forced cells). undecided: sign tests too large for the arithmetic,
    decided towards suppression. steps: of the walk (`Walk.steps`), the same on every machine; 0 where none was made, or
    where what is left of the columns was kept.
    """

    secondary: Bools
    unsafe: Ints
    independent: Ints
    rank: int
    method: str
    undecided: int
    steps: int = 0


@dataclass(frozen=True)
class _Cells:
    """The cells after equal columns were merged: class of each cell, and the roles of the classes in order."""

    matrix: Any
    group: Ints
    candidates: Ints
    primary: Ints
    forced: Ints


def cell_indices(name: str, cells: ArrayLike | None, size: int) -> Ints:
    """Indices from indices or a mask, first occurrences in order; ValueError unless they are cells."""
    array = np.asarray([] if cells is None else cells)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional")
    if array.dtype == bool:
        if len(array) != size:
            raise ValueError(f"{name} is a mask of another length than the number of cells")
        return np.flatnonzero(array)
    if len(array) and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must hold indices of cells or be a mask")
    index = array.astype(np.int64)
    if len(index) and (index.min() < 0 or index.max() >= size):
        raise ValueError(f"{name} points outside the cells")
    return _first_occurrences(index)


def _first_occurrences(values: Ints) -> Ints:
    _, first = np.unique(values, return_index=True)
    result: Ints = values[np.sort(first)]
    return result


def _without(values: Ints, unwanted: Ints) -> Ints:
    result: Ints = values[~np.isin(values, unwanted)]
    return result


def _merge_equal_cells(x: DummyMatrix, candidates: Ints, primary: Ints, forced: Ints) -> _Cells:
    """Equal columns are one cell, primary if one of them is. Empty columns protect nothing and need no protection."""
    full = scipy.sparse.csc_array(x.sparse(np.int64))
    first_equal = singletons.first_equal(full)
    first, group = np.unique(first_equal, return_inverse=True)
    matrix = full[:, first]
    filled = np.diff(matrix.indptr) > 0
    roles = [_first_occurrences(group[cells]) for cells in (candidates, primary, forced)]
    candidates, primary, forced = (role[filled[role]] for role in roles)
    return _Cells(matrix, group, candidates, primary, forced)


def suppress_secondary(
    x: DummyMatrix,
    candidates: ArrayLike,
    primary: ArrayLike,
    *,
    forced: ArrayLike | None = None,
    hidden: ArrayLike | None = None,
    singleton: ArrayLike | None = None,
    singleton_method: str = "anySum",
    extra: DummyMatrix | None = None,
    progress: Progress | None = None,
    seed: int = 0,
) -> Suppression:
    """The secondary cells that protect ``primary`` in a publication of N cells over m inner cells.

    x: m x N. candidates: cells in order, most worth publishing first (indices; primary ones among them are skipped).
    primary, forced, hidden: masks or indices; forced cells are published whatever they disclose, hidden ones are
    neither published nor protected. singleton: m booleans, or m contributor numbers (0: no singleton) for the methods
    for magnitudes. singleton_method: "none", "anySum", "anySumNOTprimary", "anySum0", "subSum", "subSpace" (and the
    variants "subSumAny", "subSumSpace") for frequencies; "sub2Sum" or "num" with up to five letters for magnitudes.
    extra: m x k further primary columns that are no cells, such as the differences of k-disclosure; the result is about
    the N cells alone.
    progress: called with (candidates done, all) a few times a second; what it raises stops the run.
    seed: of the random projections; the result does not depend on it.

    >>> x = DummyMatrix.from_pairs(np.array([0, 1, 0, 1]), np.array([0, 0, 1, 2]), (2, 3))
    >>> suppress_secondary(x, [0, 2], [1]).secondary
    array([False, False,  True])
    """
    size = x.columns
    candidate_cells, primary_cells, forced_cells, hidden_cells = (
        cell_indices(name, cells, size)
        for name, cells in zip(
            ("candidates", "primary", "forced", "hidden"), (candidates, primary, forced, hidden), strict=True
        )
    )
    marks = _singleton_marks(singleton, x.rows)
    _check_method(singleton_method, marks)
    candidate_cells = _without(candidate_cells, hidden_cells)
    if extra is not None:
        x = x.beside(extra)
        primary_cells = np.concatenate([primary_cells, np.arange(size, x.columns)])
    protected = _without(primary_cells, forced_cells)
    nothing = np.zeros(size, dtype=bool)
    if not len(primary_cells):
        return Suppression(nothing, np.empty(0, np.int64), np.empty(0, np.int64), 0, singleton_method, 0)
    cells = _merge_equal_cells(x, candidate_cells, protected, forced_cells)
    run = _Run(cells, marks, singleton_method, progress, seed)
    run.walk()
    secondary_group = run.secondary[: cells.matrix.shape[1]].copy()
    secondary_group[_without(cells.primary, cells.forced)] = True
    open_to_choice = nothing.copy()
    open_to_choice[_without(candidate_cells, protected)] = True
    group = cells.group[:size]
    unsafe = np.isin(group, run.unsafe)
    unsafe &= np.isin(np.arange(size), protected)
    first_cell = np.zeros(cells.matrix.shape[1], np.int64)
    first_cell[group[::-1]] = np.arange(size)[::-1]
    independent = first_cell[run.pivots]
    return Suppression(
        secondary_group[group] & open_to_choice,
        np.flatnonzero(unsafe),
        independent,
        len(independent),
        run.method,
        run.undecided,
        0 if run.quick is None else run.quick.steps,
    )


def _singleton_marks(singleton: ArrayLike | None, rows: int) -> Ints | Bools:
    marks = np.zeros(rows, dtype=bool) if singleton is None else np.asarray(singleton)
    if marks.shape != (rows,):
        raise ValueError("singleton needs one mark for each inner cell")
    if marks.dtype != bool and not np.issubdtype(marks.dtype, np.integer):
        raise ValueError("singleton must hold booleans or contributor numbers")
    if marks.dtype != bool:
        if len(marks) and marks.min() < 0:
            raise ValueError("contributor numbers of singletons must not be negative")
        return marks.astype(np.int64)
    return marks


def _check_method(method: str, marks: Ints | Bools) -> None:
    if method not in FREQUENCY_METHODS:
        ContributorMethod.parse(method, marks.dtype != bool)


class _Told:
    """How far a walk is, for whoever wants to hear of it; what they raise stops it.

    It does not know the walk: a walk that is known by its own parts stays in memory, with all that it worked on, until
    Python happens to look for such circles.
    """

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self.done = self.total = 0

    def again(self) -> None:
        """Progress and Ctrl-C have their turn."""
        if self._progress is not None:
            self._progress(self.done, self.total)


class _Run:
    """One walk through the candidates with a singleton method."""

    def __init__(self, cells: _Cells, marks: Ints | Bools, method: str, progress: Progress | None, seed: int) -> None:
        self.cells = cells
        self.method = method
        self.told = _Told(progress)
        numbered = marks.dtype != bool
        self.contributors = ContributorMethod.parse("none" if method in FREQUENCY_METHODS else method, numbered)
        used = marks.astype(bool)
        if method in FREQUENCY_METHODS and method != "none":
            singleton, contributor = used, np.zeros(len(marks), np.int64)
        elif self.contributors.idle:
            singleton, contributor = np.zeros(len(marks), bool), np.zeros(len(marks), np.int64)
        elif self.contributors.by_contributor:
            singleton, contributor = np.zeros(len(marks), bool), marks.astype(np.int64)
        else:
            singleton, contributor = np.zeros(len(marks), bool), np.where(used, 1 + np.arange(len(marks)), 0)
        shared_group = np.intersect1d(cells.primary, cells.forced)
        self.unsafe = shared_group
        kept = _without(cells.primary, cells.forced)
        problem = Problem(cells.matrix, kept, len(kept), singleton, contributor)
        problem = self._extend(self._unmark_forced(problem))
        self._load(problem, seed)

    def _unmark_forced(self, problem: Problem) -> Problem:
        """An inner cell that is forced to be published is no singleton."""
        single = self.cells.forced[singletons.column_sums(problem.x)[self.cells.forced] == 1]
        shown = np.asarray(problem.x[:, single].sum(axis=1)).ravel() > 0
        return Problem(
            problem.x,
            problem.primary,
            problem.related,
            problem.singleton & ~shown,
            np.where(shown, 0, problem.contributor),
        )

    def _extend(self, problem: Problem) -> Problem:
        """Chooses the method's variant, merges equal rows, adds the virtual primary cells."""
        not_primary = bool(problem.singleton.any()) and singletons.singletons_shown(problem)
        if not_primary and self.method == "anySum":
            self.method = "anySumNOTprimary"
        elif not_primary and not self.method.startswith("anySum"):
            raise ValueError(f"singleton method {self.method!r} needs every published singleton to be primary")
        if self.method == "anySum" and len(self.cells.forced):
            self.method = "subSumAny"
        problem = singletons.merge_equal_rows(problem)
        if problem.contributor.any():
            if self.contributors.protect_singletons:
                problem = singletons.protect_single_cells(problem, self.contributors)
            if self.contributors.sums:
                problem = singletons.protect_sums_of_two(problem, self.contributors)
        if "subSum" in self.method and problem.singleton.any():
            problem = singletons.protect_sums_of_singletons(problem)
            if self.method == "subSum":
                problem = Problem(
                    problem.x,
                    problem.primary,
                    problem.related,
                    np.zeros(len(problem.singleton), bool),
                    problem.contributor,
                )
        return problem

    def _load(self, problem: Problem, seed: int) -> None:
        """Puts the singleton rows last and fills the elimination."""
        self.tested = self.contributors.elimination and bool(problem.contributor.any())
        if self.tested:
            order = singletons.contributor_order(problem.contributor)
            free_rows = int((problem.contributor == 0).sum())
        else:
            order = np.argsort(problem.singleton, kind="stable")
            free_rows = int((~problem.singleton).sum())
        x = scipy.sparse.csc_array(problem.x[order])
        x.sort_indices()
        self.matrix = x
        self.contributor = problem.contributor[order]
        self.singleton_rows = free_rows < x.shape[0]
        self.space = self.method.endswith("Space") and self.singleton_rows
        primary, related = problem.primary, problem.related
        if self.method in ("anySum", "subSpace") and self.singleton_rows and not len(self.cells.forced):
            # What consists of singleton rows alone is protected by the rule for candidates itself.
            primary = primary[singletons.column_sums(x[:free_rows])[primary] > 0]
        self.protected = primary
        self.turns = _without(self.cells.candidates, np.concatenate([problem.primary, self.cells.forced]))
        self.secondary = np.zeros(x.shape[1], dtype=bool)
        self.quick: Walk | None = None
        self.told.total = len(self.turns)
        asked = self.method in ("anySumNOTprimary", "anySum0") and self.singleton_rows
        if not (self.tested or self.space or asked):
            self.quick = Walk(x, primary, free_rows, seed, self.told.again)
            self.secondary = self.quick.secondary
            return
        kind = np.full(x.shape[1], GONE, np.int8)
        kind[self.cells.candidates] = CANDIDATE
        kind[primary] = PRIMARY
        kind[self.cells.forced] = CANDIDATE
        owner = np.zeros(x.shape[1], np.int64)
        if self.tested:
            owner[primary] = singletons.owners(x, primary, related, self.contributor)
        self.engine = Elimination(
            x.indptr.astype(np.int64),
            x.indices.astype(np.int32),
            x.shape[0],
            kind,
            free_rows=free_rows,
            owner=owner,
            space=self.space,
            seed=seed,
        )

    @property
    def pivots(self) -> Ints:
        """The published columns that were pivots, ascending."""
        if self.quick is not None:
            return np.sort(self.quick.published)
        return np.flatnonzero(self.engine.columns["kind"] == PIVOT)

    @property
    def undecided(self) -> int:
        return self.quick.undecided if self.quick is not None else int(self.engine.shared[residuals.UNDECIDED])

    def walk(self) -> None:
        """Forced cells first, then the candidates in order."""
        if self.quick is not None:
            given_away = self.quick.force(self.cells.forced)
            self.unsafe = np.union1d(self.unsafe, given_away[given_away < self.cells.matrix.shape[1]])
            self.quick.start()
            self._walk_in_chunks(self._advance)
            return
        used_up = self._used_up(self.protected)
        for c in self.cells.forced:
            if self.engine.columns["length"][c]:
                self.engine.publish(int(c))
        emptied = np.setdiff1d(self._used_up(self.protected), used_up)
        self.unsafe = np.union1d(self.unsafe, emptied[emptied < self.cells.matrix.shape[1]])
        empty = self.engine.columns["length"] == 0
        self.engine.columns["kind"][empty & (self.engine.columns["kind"] != PIVOT)] = GONE
        self.engine.start_merging()
        if self.tested:
            self._walk_with_contributors()
        else:
            self._walk_with_singletons()

    def _advance(self, first: int, last: int) -> tuple[int, int]:
        assert self.quick is not None
        return self.quick.advance(self.turns, first, last), residuals.ENOUGH

    def _used_up(self, columns: Ints) -> Ints:
        """Which of the columns have no row left that counts."""
        length = self.engine.columns["length"][columns]
        empty = length == 0
        if self.space:
            first = self.engine.entries[self.engine.columns["start"][columns]] >> 32
            empty |= first >= self.engine.free_rows
        result: Ints = columns[empty]
        return result

    def _walk_in_chunks(
        self, chunk: Callable[[int, int], tuple[int, int]], decide: Callable[[int], None] | None = None
    ) -> None:
        """Calls the compiled walk about ten times a second, so that progress and Ctrl-C get their turn."""
        done, step, total = 0, 256, len(self.turns)
        while done < total:
            began = perf_counter()
            last = min(done + step, total)
            while done < last:
                done, status = chunk(done, last)
                if status == any_sum.SINGLETONS_LEFT and decide is not None:
                    decide(done)
                    done += 1
                elif status:
                    self.engine.make_room(status)
            self.told.done = done
            self.told.again()
            step = max(1, min(int(step * 0.1 / max(perf_counter() - began, 1e-3)), 4 * step))

    def _walk_with_singletons(self) -> None:
        ask = self.method in ("anySumNOTprimary", "anySum0")
        exceptions = self.method in ("anySum", "anySumNOTprimary", "subSumAny")
        used = np.zeros(len(self.engine.rows), dtype=bool)
        family = _Family.of(self) if self.method == "anySum0" else None
        if self.method == "anySum0" and family is None:
            exceptions = True
        self._walk_in_chunks(
            lambda first, last: any_sum.publish_any_sum(
                *self.engine.store,
                self.engine.scratch,
                self.engine.out,
                self.engine.shared,
                self.turns,
                first,
                last,
                self.secondary,
                used,
                exceptions,
                ask,
            ),
            lambda turn: self._decide_singletons(int(self.turns[turn]), family),
        )

    def _decide_singletons(self, j: int, family: _Family | None) -> None:
        """Only singleton rows are left of candidate j, and singletons may be published: suppressed if that tells a
        primary cell, else its singletons count as known one by one."""
        engine = self.engine
        c = int(residuals.find(engine.columns, j))
        left = engine.rows_left(c)
        known = left if family is None else family.extended(left)
        reveals = not len(known) or any_sum.covers_primary(
            engine.columns, engine.rows, engine.entries, engine.lists, engine.out, engine.shared, known
        )
        if not reveals:
            engine.delete_rows(known)
            return
        self.secondary[j] = True
        if family is not None and len(known) > len(left):
            engine.columns["kind"][c] = PRIMARY
        elif family is None:
            engine.refuse(c)

    def _walk_with_contributors(self) -> None:
        """The walk where every candidate is tested against single contributors, with two orders of rows if asked."""
        second: Elimination | None = None
        flags = np.zeros((2, len(self.contributor)), dtype=bool)
        began = perf_counter()
        for turn, j in enumerate(self.turns.tolist()):
            c = int(residuals.find(self.engine.columns, j))
            column = self.engine.columns[c]
            if column["kind"] == PRIMARY:
                self.secondary[j] = True
            elif column["kind"] == CANDIDATE and column["length"]:
                only_singletons = self.engine.entries[column["start"]] >> 32 >= self.engine.free_rows
                if second is None and self.contributors.two_orders and only_singletons:
                    second = self.engine.copy()
                engines = [self.engine] if second is None else [self.engine, second]
                self._test_or_publish(j, engines, flags)
            if perf_counter() - began > 0.1 or turn + 1 == len(self.turns):
                self.told.done = turn + 1
                self.told.again()
                began = perf_counter()

    def _test_or_publish(self, j: int, engines: Sequence[Elimination], flags: Bools) -> None:
        places = [int(residuals.find(engine.columns, j)) for engine in engines]
        answer = ALLOWED
        for k, (engine, c) in enumerate(zip(engines, places, strict=True)):
            only_singletons = engine.entries[engine.columns["start"][c]] >> 32 >= engine.free_rows
            rotations = (False, True) if k == 1 and only_singletons and engine.columns["length"][c] > 1 else (False,)
            for rotated in rotations:
                if answer == ALLOWED:
                    answer = contributor_test(
                        engine.columns,
                        engine.rows,
                        engine.entries,
                        engine.lists,
                        engine.out,
                        engine.shared,
                        c,
                        self.contributor,
                        flags,
                        self.contributors.combinations,
                        k == 1,
                        rotated,
                    )
        for engine, c in zip(engines, places, strict=True):
            if answer == ALLOWED:
                engine.publish(c)
            elif answer == REFUSED_AND_PRIMARY:
                engine.columns["kind"][c] = PRIMARY
                engine.columns["owner"][c] = -1
            else:
                engine.refuse(c)
        self.secondary[j] = answer != ALLOWED


class _Family:
    """Cells made of singletons only, as parents and children, for the method anySum0.

    A zero margin must not be published when all but one of its parts are known to be zero: the rows that count as known
    are extended from parents to the child left over.
    """

    def __init__(self, engine: Elimination, inside: Any, children: Any, primary: Bools) -> None:
        self.engine = engine
        self.inside = inside
        self.children = children
        self.primary = primary
        self.flags = np.zeros(len(engine.rows), dtype=bool)

    @classmethod
    def of(cls, run: _Run) -> _Family | None:
        """The families of the run's candidates and primary cells; None when there are none."""
        engine = run.engine
        cells = np.concatenate([run.cells.forced, run.turns, run.protected])
        cells = cells[cells < run.cells.matrix.shape[1]]
        matrix = run.matrix[engine.free_rows :, cells]
        size = singletons.column_sums(matrix)
        alone = np.flatnonzero((size > 0) & (size == singletons.column_sums(run.matrix)[cells]))
        cells, matrix, size = cells[alone], matrix[:, alone], size[alone]
        common = (matrix.T @ matrix).tocoo()
        child, parent = common.coords
        inside = (size[child] == common.data) & (size[parent] != common.data)
        if not inside.any():
            return None
        primary = np.zeros(run.matrix.shape[1], dtype=bool)
        primary[run.protected] = True
        pairs = (cells[parent[inside]], cells[child[inside]])
        children = scipy.sparse.csr_array((np.ones(inside.sum(), np.int8), pairs), shape=(run.matrix.shape[1],) * 2)
        # Such cells have singleton rows only, so nothing published adds rows to them: an index by rows stays valid.
        is_parent = (np.diff(children.indptr) > 0).astype(np.int64)
        inside = scipy.sparse.csr_array(run.matrix * is_parent[None, :])
        inside.eliminate_zeros()
        return cls(engine, inside, children, primary)

    def extended(self, left: Ints) -> Ints:
        """The rows known with ``left``, ascending; empty when that discloses a primary child."""
        known = left
        while True:
            more: Ints = any_sum.with_last_children(
                self.engine.columns,
                self.engine.entries,
                self.inside.indptr,
                self.inside.indices,
                self.children.indptr,
                self.children.indices,
                self.primary,
                known,
                self.flags,
            )
            if len(more) in (0, len(known)):
                return more
            known = more
