"""What singletons add to a suppression problem before the elimination: virtual primary cells and an order of the rows.

A *singleton* is an inner cell whose holder knows it: of frequency 1 (or 0, when zeros are suppressed), or with one
contributor in a magnitude table. Methods and their codes are those of SSBtools::GaussSuppression and
SSBtools::NumSingleton; Langsrud (2024), "Secondary cell suppression by Gaussian elimination: an algorithm suitable for
handling issues with zeros and singletons", PSD, doi 10.1007/978-3-031-69651-0_6.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdcduck.methods.numerics import scipy

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Matrix = Any

FREQUENCY_METHODS = (
    "none",
    "anySum",
    "anySumNOTprimary",
    "anySum0",
    "subSum",
    "subSpace",
    "subSumSpace",
    "subSumAny",
)
_SWITCHES = ("FTt", "FTt", "FTH", "FTMWftmw", "FTt")


@dataclass(frozen=True)
class Problem:
    """Unique cells by columns (0/1, column-compressed), primary columns in order, and the singletons of the rows.

    ``related`` of the primary columns count for the test on contributors: the publishable ones and single inner cells,
    not the sums of two. ``contributor`` is 0 where a row has no singleton.
    """

    x: Matrix
    primary: Ints
    related: int
    singleton: Bools
    contributor: Ints


@dataclass(frozen=True)
class ContributorMethod:
    """The five switches of a magnitude method ``num.....``: single inner cells protected (``all_singletons``: published
    ones as well), contributors known by number, sums of two, any primary cell as second part of the sum, test inside
    the elimination, the same with a second order of rows, and how many contributors' combinations are protected."""

    protect_singletons: bool
    all_singletons: bool
    by_contributor: bool
    sums: bool
    sums_by_difference: bool
    elimination: bool
    two_orders: bool
    combinations: int

    @classmethod
    def parse(cls, method: str, numbered: bool) -> ContributorMethod:
        """The switches of ``method``: "none", "sub2Sum" or "num" and up to five letters; ValueError for others.

        >>> ContributorMethod.parse("numttHTT", numbered=True).two_orders
        True
        """
        letters = {"none": "", "sub2Sum": "FFT"}.get(method, method[3:] if method.startswith("num") else "?")
        letters = (letters + "FFFFF")[: max(5, len(letters))]
        if len(letters) != 5 or any(letter not in known for letter, known in zip(letters, _SWITCHES, strict=True)):
            raise ValueError(f"unknown singleton method {method!r}")
        protect, integer, sums, elimination, combinations = tuple(letters)
        if integer == "T" and not numbered:
            raise ValueError(f"singleton method {method!r} needs the singletons as contributor numbers")
        return cls(
            protect_singletons=protect in "Tt",
            all_singletons=protect == "T",
            by_contributor=integer == "T" or (integer == "t" and numbered),
            sums=sums in "TH",
            sums_by_difference=sums == "H",
            elimination=elimination.upper() != "F",
            two_orders=elimination in "TMW",
            combinations={"F": 0, "t": 1, "T": 2}[combinations],
        )

    @property
    def idle(self) -> bool:
        return not (self.protect_singletons or self.sums or self.elimination)


def first_equal(x: Matrix, by_rows: bool = False) -> Ints:
    """For each column (or row) of a 0/1 matrix the first one equal to it, by two random 63-bit sums."""
    size = x.shape[1] if by_rows else x.shape[0]
    weights = np.random.default_rng(20220921).integers(1, 2**62, (size, 2), dtype=np.int64)
    sums = x @ weights if by_rows else x.T @ weights
    _, first, group = np.unique(sums[:, 0], return_index=True, return_inverse=True)
    if np.any(sums[first[group], 1] != sums[:, 1]):
        _, first, group = np.unique(sums, axis=0, return_index=True, return_inverse=True)
    result: Ints = first[group.ravel()]
    return result


def _repeated(x: Matrix, by_rows: bool = False) -> Bools:
    first = first_equal(x, by_rows)
    result: Bools = first != np.arange(len(first))
    return result


def column_sums(x: Matrix) -> Ints:
    """The number of inner cells of each column of a 0/1 matrix."""
    return np.asarray(x.sum(axis=0), dtype=np.int64).ravel()


def _row_in(x: Matrix, columns: Ints) -> Bools:
    """Which rows have an entry in one of the columns."""
    result: Bools = np.asarray(x[:, columns].sum(axis=1)).ravel() > 0
    return result


def _keep_rows(problem: Problem, keep: Bools) -> Problem:
    return replace(problem, x=problem.x[keep], singleton=problem.singleton[keep], contributor=problem.contributor[keep])


def merge_equal_rows(problem: Problem) -> Problem:
    """Keeps one of several inner cells that belong to the same cells.

    Plain rows and frequency singletons: the first. Contributors: the first of each; three or more contributors in one
    group of equal rows cannot disclose each other, so one row stays for the group, without a mark.
    """
    drop = np.zeros(problem.x.shape[0], dtype=bool)
    plain = ~problem.singleton & (problem.contributor == 0)
    for rows in (np.flatnonzero(plain), np.flatnonzero(problem.singleton)):
        drop[rows[_repeated(problem.x[rows], by_rows=True)]] = True
    problem = _keep_rows(problem, ~drop)
    rows = np.flatnonzero(problem.contributor)
    if not len(rows):
        return problem
    group = first_equal(problem.x[rows], by_rows=True)
    _, first = np.unique(np.column_stack([group, problem.contributor[rows]]), axis=0, return_index=True)
    keep = np.ones(problem.x.shape[0], dtype=bool)
    keep[rows] = False
    keep[rows[first]] = True
    first.sort()
    rows, group = rows[first], group[first]
    crowded = np.bincount(group, minlength=1)[group] > 2
    contributor = problem.contributor.copy()
    contributor[rows[crowded]] = 0
    crowded_rows, crowded_groups = rows[crowded], group[crowded]
    _, leader = np.unique(crowded_groups, return_index=True)
    keep[np.delete(crowded_rows, leader)] = False
    return _keep_rows(replace(problem, contributor=contributor), keep)


def _append(problem: Problem, extra: Matrix, related: bool) -> Problem:
    """The problem with virtual primary columns; they count for the test on contributors if ``related``."""
    n = problem.x.shape[1]
    new = np.arange(n, n + extra.shape[1])
    return replace(
        problem,
        x=scipy.sparse.csc_array(scipy.sparse.hstack([problem.x, extra], format="csc")),
        primary=np.concatenate([problem.primary, new]),
        related=problem.related + len(new) * related,
    )


def protect_single_cells(problem: Problem, method: ContributorMethod) -> Problem:
    """Makes singletons primary: published inner cells (``all_singletons``) and those that no primary cell shows."""
    held = problem.contributor > 0
    single = column_sums(problem.x) == 1
    if method.all_singletons:
        open_single = np.setdiff1d(np.flatnonzero(single), problem.primary)
        open_single = open_single[column_sums(problem.x[:, open_single][held]) == 1]
        problem = _append(problem, problem.x[:, open_single], related=True)
        single = column_sums(problem.x) == 1
    shown = _row_in(problem.x, problem.primary[single[problem.primary]])
    rows = np.flatnonzero(held & ~shown)
    unit = scipy.sparse.csc_array((np.ones(len(rows), np.int64), (rows, np.arange(len(rows)))), (len(held), len(rows)))
    return _append(problem, unit, related=True)


def _distinct(x: Matrix, number: Ints) -> Ints:
    """How many different numbers the rows of each column have."""
    pairs = x.tocoo()
    column, row = pairs.coords[1], pairs.coords[0]
    distinct = np.unique(np.column_stack([column, number[row]]), axis=0)[:, 0]
    return np.bincount(distinct, minlength=x.shape[1])


def _children_left(x: Matrix, y: Matrix, most: int) -> tuple[Matrix, Ints]:
    """Columns of y minus the columns of x inside them, where at most ``most`` rows are left; and which y it was."""
    common = (x.T @ y).tocoo()
    child, parent = common.coords
    size = column_sums(y)[parent]
    inside = (column_sums(x)[child] == common.data) & (size != common.data) & (size - common.data <= most)
    return y[:, parent[inside]] - x[:, child[inside]], parent[inside]


def protect_sums_of_two(problem: Problem, method: ContributorMethod) -> Problem:
    """Virtual primary cells: in every cell not primary, the suppressed inner cells in it, if they are two (or a
    singleton and a primary cell, with ``sums_by_difference``) and a singleton is in the cell."""
    x, held = problem.x, problem.contributor > 0
    single = column_sums(x) == 1
    inner_primary = _row_in(x, problem.primary[single[problem.primary]])
    suppressed = scipy.sparse.csc_array(x * inner_primary[:, None].astype(np.int64))
    open_columns = np.ones(x.shape[1], np.int64)
    open_columns[problem.primary] = 0
    suppressed = scipy.sparse.csc_array(suppressed * open_columns[None, :])
    suppressed.eliminate_zeros()
    size = column_sums(suppressed)
    number = np.where(held, problem.contributor, -1 - np.arange(len(held)))
    if method.by_contributor:
        many = _distinct(suppressed, number) > 2
        wanted = ~many & (size > 1)
        most = int(np.bincount(problem.contributor[held]).max())
    else:
        many = size > 2
        wanted = size == 2
        most = 1
    if method.sums_by_difference and many.any():
        large = problem.primary[column_sums(x[:, problem.primary]) > 1]
        left, parent = _children_left(x[:, large], suppressed[:, np.flatnonzero(many)], most)
        parent = np.flatnonzero(many)[parent]
        left = scipy.sparse.csc_array(left)
        left.eliminate_zeros()
        only_held = column_sums(left[~held]) == 0
        left, parent = left[:, np.flatnonzero(only_held)], parent[only_held]
        alone = column_sums(left) == 1
        if method.by_contributor:
            alone |= _distinct(left, number) == 1
        wanted[parent[alone]] = True
    wanted &= column_sums(x[held]) > 0
    sums = suppressed[:, np.flatnonzero(wanted)]
    return _append(problem, sums[:, np.flatnonzero(~_repeated(sums))], related=False)


def protect_sums_of_singletons(problem: Problem) -> Problem:
    """Method subSum: in every cell with two or more singletons their sum becomes a virtual primary cell."""
    sums = scipy.sparse.csc_array(problem.x * problem.singleton[:, None].astype(np.int64))
    sums.eliminate_zeros()
    sums = sums[:, np.flatnonzero(column_sums(sums) > 1)]
    return _append(problem, sums[:, np.flatnonzero(~_repeated(sums))], related=False)


def singletons_shown(problem: Problem) -> bool:
    """Is some single inner cell with a singleton publishable without being primary?"""
    single = column_sums(problem.x) == 1
    shown = single & (column_sums(problem.x[problem.singleton]) == 1)
    return bool(shown.sum() > shown[problem.primary].sum())


def contributor_order(contributor: Ints) -> Ints:
    """Order of the rows: no singleton first, then by how often the contributor comes, then by number."""
    times = np.bincount(contributor)
    times[0] = 0
    return np.lexsort((contributor, times[contributor]))


def owners(x: Matrix, primary: Ints, related: int, contributor: Ints) -> Ints:
    """Whose cell each primary column is: the contributor of all its rows, 0 if there is none, -1 for virtual sums."""
    owner = np.full(len(primary), -1, dtype=np.int64)
    for k in range(related):
        numbers = contributor[x.indices[x.indptr[primary[k]] : x.indptr[primary[k] + 1]]]
        owner[k] = numbers[0] if len(numbers) and (numbers == numbers[0]).all() else 0
    return owner
