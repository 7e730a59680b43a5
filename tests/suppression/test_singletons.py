"""Methods with singletons against obviously right ones in fractions, and what one contributor can compute."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from test_elimination import Vector, columns_of, linked_tables, minus, proportional, rank_of

from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.matrix import DummyMatrix

Problem = tuple[DummyMatrix, list[int], list[int], list[int]]


def secondary_of(problem: Problem, primary: list[int], marks: np.ndarray, method: str) -> set[int]:
    x, order, _, _ = problem
    result = suppress_secondary(x, order, primary, singleton=marks, singleton_method=method)
    return set(np.flatnonzero(result.secondary).tolist())


def published_one_by_one(columns: list[Vector], order: list[int], protected: list[Vector]) -> set[int]:
    """The greedy rule without singletons: which of ``order`` are refused."""
    secondary = set()
    left = {c: columns[c] for c in order}
    for j in order:
        residual = left.pop(j)
        if residual and any(b and proportional(residual, b) for b in protected):
            secondary.add(j)
        elif residual:
            row = min(residual)
            left = {c: minus(v, residual, row) for c, v in left.items()}
            protected = [minus(b, residual, row) for b in protected]
    return secondary


def sums_of_two(x: DummyMatrix, primary: list[int], holders: list[int]) -> list[Vector]:
    """Spec 2.3, sub2Sum: in every cell that is not primary and holds a singleton, its suppressed inner cells if they
    are two."""
    cells = [set(c) for c in columns_of(x)]
    inner = {next(iter(cells[c])) for c in primary if len(cells[c]) == 1}
    pairs = [cell & inner for c, cell in enumerate(cells) if c not in primary and cell & set(holders)]
    return [dict.fromkeys(pair, Fraction(1)) for pair in pairs if len(pair) == 2]


def without_equal_rows(problem: Problem) -> Problem:
    """One of several inner cells of the same cells: which of them is suppressed by itself depends on such merging."""
    x, order, primary, singletons = problem
    cells_of = [[] for _ in range(x.rows)]
    for c, column in enumerate(columns_of(x)):
        for r in column:
            cells_of[r].append(c)
    first = {tuple(cells): r for r, cells in reversed(list(enumerate(cells_of)))}
    kept = sorted(first.values())
    pairs = [(k, c) for k, r in enumerate(kept) for c in cells_of[r]]
    smaller = DummyMatrix.from_pairs(*np.array(pairs).T, (len(kept), x.columns))
    return smaller, order, primary, [k for k, r in enumerate(kept) if r in singletons]


@settings(max_examples=times(40, 150), deadline=None)
@given(linked_tables())
def test_sub2sum_is_the_greedy_rule_with_sums_of_two(problem) -> None:
    x, order, primary, singletons = without_equal_rows(problem)
    problem = (x, order, primary, singletons)
    marks = np.isin(np.arange(x.rows), singletons)
    columns = columns_of(x)
    protected = [columns[c] for c in primary] + sums_of_two(x, primary, singletons)
    candidates = [c for c in order if c not in primary]
    assert secondary_of(problem, primary, marks, "sub2Sum") == published_one_by_one(columns, candidates, protected)


def known_zeros(x: DummyMatrix, order: list[int], primary: list[int], last: list[int]) -> set[int]:
    """Spec 2.3 for anySumNOTprimary (and anySum0 where no cell of singletons lies in another): what is left of a published cell on singletons alone makes them known; a cell is
    suppressed if that would cover a primary cell."""
    place = {row: k for k, row in enumerate([r for r in range(x.rows) if r not in last] + last)}
    free = x.rows - len(last)
    columns = [{place[r]: v for r, v in column.items()} for column in columns_of(x)]
    protected = [columns[c] for c in primary]
    candidates = [c for c in order if c not in primary]
    left = {c: columns[c] for c in candidates}
    secondary: set[int] = set()
    used: set[int] = set()
    for j in candidates:
        residual = left.pop(j)
        if not residual:
            continue
        only = min(residual) >= free
        if only and len({v > 0 for v in residual.values()}) == 2 and not used & residual.keys():
            used |= residual.keys()
            only = False
        told = [b for b in protected if b and (proportional(residual, b) or (only and b.keys() <= residual.keys()))]
        if told:
            secondary.add(j)
        elif only:
            left = {c: {r: v for r, v in col.items() if r not in residual} for c, col in left.items()}
            protected = [{r: v for r, v in b.items() if r not in residual} for b in protected]
        else:
            row = min(residual)
            left = {c: minus(v, residual, row) for c, v in left.items()}
            protected = [minus(b, residual, row) for b in protected]
    return secondary


def nested(x: DummyMatrix, singletons: list[int]) -> bool:
    """Is some cell of singletons inside another one? Then anySum0 has families, and a rule of its own."""
    alone = [set(c) for c in columns_of(x) if set(c) <= set(singletons)]
    return any(a < b for a in alone for b in alone)


@settings(max_examples=times(60, 200), deadline=None)
@given(linked_tables(), st.sampled_from(["anySumNOTprimary", "anySum0"]))
def test_known_zeros_as_the_rule_in_fractions(problem, method: str) -> None:
    x, order, primary, singletons = problem
    if method == "anySum0" and nested(x, singletons):
        method = "anySumNOTprimary"
    marks = np.isin(np.arange(x.rows), singletons)
    expected = known_zeros(x, order, primary, singletons)
    assert secondary_of(problem, primary, marks, method) == expected


@settings(max_examples=times(60, 200), deadline=None)
@given(linked_tables(), st.integers(1, 3), st.integers(0, 20))
def test_a_contributor_cannot_compute_the_primary_cell_of_another(problem, contributors: int, seed: int) -> None:
    """numttHTT: with its own inner cells added to the published ones, no cell of another follows, by the exact rank."""
    x, _, primary, singletons = problem
    marks = np.zeros(x.rows, np.int64)
    marks[singletons] = np.random.default_rng(seed).integers(1, contributors + 1, len(singletons))
    columns = columns_of(x)
    single = [c for c in range(x.columns) if len(columns[c]) == 1 and marks[next(iter(columns[c]))]]
    primary = sorted({*primary, *single})
    secondary = secondary_of(problem, primary, marks, "numttHTT")
    published = [c for c in range(x.columns) if c not in secondary and c not in primary]
    for who in set(marks.tolist()) - {0}:
        own = np.flatnonzero(marks == who)
        pairs = [(r, c) for c, column in enumerate(columns) for r in column]
        pairs += [(r, x.columns + k) for k, r in enumerate(own.tolist())]
        wider = DummyMatrix.from_pairs(*np.array(pairs).T, (x.rows, x.columns + len(own)))
        known = [*published, *range(x.columns, wider.columns)]
        rank = rank_of(wider, known)
        for c in primary:
            if not set(columns[c]) <= set(own.tolist()):
                assert rank_of(wider, [*known, c]) == rank + 1, (who, c)
