"""The greedy suppression against an obviously right one in fractions, and its promises on random linked tables."""

from __future__ import annotations

import contextlib
import gc
import weakref
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st

from sdcduck.methods.suppression import elimination
from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.matrix import DummyMatrix

Vector = dict[int, Fraction]


def columns_of(x: DummyMatrix) -> list[Vector]:
    return [{int(r): Fraction(1) for r in x.indices[a:b]} for a, b in zip(x.indptr, x.indptr[1:], strict=False)]


def proportional(a: Vector, b: Vector) -> bool:
    return a.keys() == b.keys() and len({a[row] / b[row] for row in a}) == 1


def minus(a: Vector, b: Vector, row: int) -> Vector:
    """a without this row, by subtracting a multiple of b."""
    factor = a.get(row, Fraction(0)) / b[row]
    result = {r: a.get(r, Fraction(0)) - factor * b.get(r, Fraction(0)) for r in a.keys() | b.keys()}
    return {r: v for r, v in result.items() if v}


def greedy(
    x: DummyMatrix, candidates: list[int], primary: list[int], forced: list[int], last: list[int], rule: str
) -> set[int]:
    """Spec 2.3 word by word; the rows in ``last`` are singletons, ``rule`` none, anySum or subSpace."""
    columns = columns_of(x)
    place = {row: k for k, row in enumerate([r for r in range(x.rows) if r not in last] + last)}
    free = x.rows - len(last)
    columns = [{place[r]: v for r, v in column.items()} for column in columns]
    inside = (lambda v: {r: x for r, x in v.items() if r < free}) if rule == "subSpace" else (lambda v: v)
    protected = [inside(columns[c]) for c in primary if c not in forced]
    if rule == "anySum" and not forced:
        protected = [b for b in protected if any(r < free for r in b)]
    order = forced + [c for c in candidates if c not in forced and c not in primary]
    secondary: set[int] = set()
    used: set[int] = set()
    left = {c: dict(columns[c]) for c in order}
    for j in order:
        residual = left.pop(j)
        if not residual:
            continue
        if j not in forced:
            only_singletons = rule != "none" and min(residual) >= free
            both_signs = len({v > 0 for v in residual.values()}) == 2
            if only_singletons and rule == "anySum" and both_signs and not used & residual.keys():
                used |= residual.keys()
                only_singletons = False
            if only_singletons or any(b and proportional(inside(residual), b) for b in protected):
                secondary.add(j)
                continue
        row = min(residual)
        left = {c: minus(v, residual, row) for c, v in left.items()}
        protected = [inside(minus(b, residual, row)) if row in b else b for b in protected]
    return secondary


@st.composite
def linked_tables(draw: st.DrawFn) -> tuple[DummyMatrix, list[int], list[int], list[int]]:
    """Groupings of up to 12 inner cells, cells that repeat left out; candidate order, primary cells, singletons."""
    rows = draw(st.integers(2, 12))
    groupings = draw(st.integers(1, 4))
    cells: list[tuple[int, ...]] = [tuple(range(rows))]
    for _ in range(groupings):
        codes = draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows))
        cells += [tuple(r for r in range(rows) if codes[r] == code) for code in sorted(set(codes))]
    if draw(st.booleans()):
        cells += [(r,) for r in range(rows)]
    cells = list(dict.fromkeys(cells))
    pairs = [(r, c) for c, members in enumerate(cells) for r in members]
    x = DummyMatrix.from_pairs(*np.array(pairs).T, (rows, len(cells)))
    order = draw(st.permutations(range(len(cells))))
    primary = draw(st.lists(st.integers(0, len(cells) - 1), min_size=1, max_size=5, unique=True))
    singletons = draw(st.lists(st.integers(0, rows - 1), max_size=4, unique=True))
    return x, list(order), primary, sorted(singletons)


def suppressed_by(
    problem: tuple[DummyMatrix, list[int], list[int], list[int]], method: str, **options: object
) -> set[int]:
    x, order, primary, singletons = problem
    marks = np.isin(np.arange(x.rows), singletons)
    result = suppress_secondary(x, order, primary, singleton=marks, singleton_method=method, **options)
    return set(np.flatnonzero(result.secondary).tolist())


@settings(max_examples=times(80, 300), deadline=None)
@given(linked_tables())
def test_same_cells_as_the_greedy_rule_in_fractions(problem) -> None:
    x, order, primary, _ = problem
    assert suppressed_by(problem, "none") == greedy(x, order, primary, [], [], "none")


@settings(max_examples=times(40, 150), deadline=None)
@given(linked_tables(), st.integers(0, 2))
def test_forced_cells_come_first(problem, number: int) -> None:
    x, order, primary, _ = problem
    forced = order[-number:] if number else []
    kept = [c for c in primary if c not in forced]
    result = suppress_secondary(x, order, primary, forced=forced, singleton_method="none")
    assert set(np.flatnonzero(result.secondary)) == greedy(x, order, kept, forced, [], "none")
    assert not result.secondary[forced].any()
    rank = rank_of(x, forced)
    assert set(result.unsafe) == {c for c in kept if rank_of(x, [*forced, c]) == rank}


@settings(max_examples=times(60, 200), deadline=None)
@given(linked_tables(), st.sampled_from(["anySum", "subSpace"]))
def test_singletons_same_cells_as_the_greedy_rule_in_fractions(problem, method: str) -> None:
    x, order, primary, singletons = problem
    size = np.diff(x.indptr)
    # What the reference assumes of these methods: a published singleton is primary.
    single = [c for c in range(x.columns) if size[c] == 1 and x.indices[x.indptr[c]] in singletons]
    primary = sorted(set(primary) | set(single))
    problem = (x, order, primary, singletons)
    assert suppressed_by(problem, method) == greedy(x, order, primary, [], singletons, method)


def rank_of(x: DummyMatrix, cells: list[int]) -> int:
    """Rank over the rationals of these columns."""
    columns = columns_of(x)
    rows = [columns[c] for c in cells]
    rank = 0
    while rows:
        pivot = rows.pop()
        if pivot:
            rank += 1
            row = min(pivot)
            rows = [minus(other, pivot, row) if row in other else other for other in rows]
    return rank


@settings(max_examples=times(40, 150), deadline=None)
@given(linked_tables(), st.sampled_from(["none", "anySum", "anySumNOTprimary", "anySum0"]))
def test_no_primary_cell_follows_from_the_published_ones(problem, method: str) -> None:
    x, order, primary, _ = problem
    if method == "none":
        problem = (x, order, primary, [])
    secondary = suppressed_by(problem, method)
    published = [c for c in range(x.columns) if c not in secondary and c not in primary]
    rank = rank_of(x, published)
    protected = primary
    if method == "anySum":
        # Cells of singletons only are protected as a sum of the others, which needs the singletons to be primary.
        protected = [c for c in primary if not set(x.indices[x.indptr[c] : x.indptr[c + 1]]) <= set(problem[3])]
    for c in protected:
        assert rank_of(x, [*published, c]) == rank + 1


@settings(max_examples=times(20, 60), deadline=None)
@given(linked_tables(), st.integers(1, 100), st.permutations(range(12)))
def test_the_answer_does_not_depend_on_the_seed_or_the_order_of_rows(problem, seed: int, places: list[int]) -> None:
    x, order, primary, _ = problem
    moved = np.argsort([p for p in places if p < x.rows])[x.indices]
    shuffled = DummyMatrix.from_pairs(moved, np.repeat(np.arange(x.columns), np.diff(x.indptr)), (x.rows, x.columns))
    other = (shuffled, order, primary, [])
    assert suppressed_by(other, "none", seed=seed) == suppressed_by((x, order, primary, []), "none")


def words(text: str) -> list[str]:
    return text.split()


PAPER_CELLS = ["A", "B", "C", "D", "E", "F"]
COUNTY = {"A": "1", "B": "2", "C": "3", "D": "3", "E": "4", "F": "4"}
PAPER = np.array([[1, 1, 1], [5, 6, 8], [2, 9, 7], [35, 12, 11], [3, 26, 35], [5, 18, 14]])
AGES = ["young", "middle", "old"]


def paper_table(with_size: bool) -> tuple[DummyMatrix, list[str]]:
    """Langsrud and Bøvelstad (2022), table 1: municipalities, counties (and size) by age, with totals."""
    size = {m: "small" if m in "ABC" else "big" for m in PAPER_CELLS}
    areas = {"Total": PAPER_CELLS}
    for county in ("1", "2", "3", "4"):
        areas[f"county-{county}"] = [m for m in PAPER_CELLS if COUNTY[m] == county]
    areas |= {m: [m] for m in PAPER_CELLS}
    if with_size:
        areas |= {s: [m for m in PAPER_CELLS if size[m] == s] for s in ("small", "big")}
    names, pairs = [], []
    for area, members in areas.items():
        for age in ["Total", *AGES]:
            chosen = AGES if age == "Total" else [age]
            pairs += [(PAPER_CELLS.index(m) * 3 + AGES.index(a), len(names)) for m in members for a in chosen]
            names.append(f"{area}:{age}")
    return DummyMatrix.from_pairs(*np.array(pairs).T, (18, len(names))), names


PAPER_ORDER = words("""
Total:Total county-4:Total county-3:Total Total:old Total:middle E:Total D:Total Total:young county-4:old county-4:middle
F:Total county-3:young E:old D:young E:middle county-3:middle county-2:Total B:Total C:Total county-3:old F:middle F:old
D:middle D:old C:middle county-4:young county-2:old B:old C:old county-2:middle B:middle F:young county-2:young B:young
""")


def test_the_example_of_the_decimals_paper() -> None:
    """Spec 3.1: 24 of 44 cells, ten of them primary."""
    x, names = paper_table(with_size=False)
    z = x.totals(PAPER.ravel())
    primary = z <= 3
    assert primary.sum() == 10
    order = [names.index(name) for name in PAPER_ORDER]
    result = suppress_secondary(x, order, primary, singleton_method="none")
    expected = {f"{area}:{age}" for area in ("B", "county-2") for age in ["Total", *AGES]}
    expected |= {"C:old", "D:young", "D:old", "E:middle", "F:young", "F:middle"}
    assert {names[c] for c in np.flatnonzero(result.secondary)} == expected
    assert result.rank == 13


def test_the_coordinated_alternative_of_the_decimals_paper() -> None:
    """Spec 3.3: with size groups in the publication only 20 cells are suppressed, and none of the size groups."""
    from sdcduck.methods.suppression.candidates import candidate_order

    x, names = paper_table(with_size=True)
    z = x.totals(PAPER.ravel())
    primary = z <= 3
    result = suppress_secondary(x, candidate_order(x, z.astype(float)), primary, singleton_method="none")
    suppressed = {names[c] for c in np.flatnonzero(result.secondary | primary)}
    expected = {f"{area}:{age}" for area in ("A", "county-1") for age in ["Total", *AGES]}
    expected |= {"B:middle", "B:Total", "county-2:middle", "county-2:Total", "C:young", "C:old", "county-3:young"}
    expected |= {"county-3:old", "E:young", "E:middle", "F:young", "F:middle"}
    assert suppressed == expected


def counts_3_by_5() -> tuple[DummyMatrix, list[str], np.ndarray]:
    y = np.array([1, 1, 1, 5, 5, 9, 9, 9, 9, 9, 0, 0, 0, 7, 7])
    names, pairs = [], []
    for name, members in (
        [("Total", range(15))]
        + [(str(r + 1), range(5 * r, 5 * r + 5)) for r in range(3)]
        + [("ABCDE"[c], range(c, 15, 5)) for c in range(5)]
        + [(f"{r + 1}:{'ABCDE'[c]}", [5 * r + c]) for r in range(3) for c in range(5)]
    ):
        pairs += [(r, len(names)) for r in members]
        names.append(name)
    return DummyMatrix.from_pairs(*np.array(pairs).T, (15, len(names))), names, y


@pytest.mark.parametrize(
    ("zeros_first", "singletons", "expected"),
    [
        (False, False, {"3:A", "3:B", "3:C"}),
        (True, False, {"2:A", "2:B", "2:C"}),
        (True, True, {"2:A", "2:B", "2:C", "1:E", "2:E"}),
    ],
)
def test_zeros_and_ones(zeros_first: bool, singletons: bool, expected: set[str]) -> None:
    """Spec 3.4: who holds a singleton sees more; zeros first in the order shift the suppression."""
    x, names, y = counts_3_by_5()
    z = x.totals(y)
    primary = (z > 0) & (z < 5)
    order = np.argsort(z != 0, kind="stable") if zeros_first else np.arange(x.columns)
    result = suppress_secondary(x, order, primary, singleton=(y == 1) if singletons else None)
    assert {names[c] for c in np.flatnonzero(result.secondary)} == expected


SECTORS = {
    "Agriculture": {"Portugal": {"A": 75.9, "B": 24.5}, "Spain": {"A": 96.6, "B": 43.2}},
    "Entertainment": {
        "Iceland": {"B": 16.8},
        "Portugal": {"B": 7.1, "D": 2.3},
        "Spain": {"A": 77.4, "B": 11.5, "C": 16.4},
    },
    "Governmental": {"Portugal": {"B": 21.6, "D": 2.0}, "Spain": {"C": 6.5, "D": 2.7}},
    "Industry": {
        "Iceland": {"B": 9.6, "C": 8.8, "D": 1.9},
        "Portugal": {"B": 25.7, "D": 3.4},
        "Spain": {"C": 8.4},
    },
}
SECTOR_ORDER = words("""
Agriculture:Iceland Governmental:Iceland Total:Total Total:Spain Agriculture:Total Total:Portugal Agriculture:Spain
Entertainment:Total Entertainment:Spain Agriculture:Portugal Industry:Total Total:Iceland Governmental:Total
Industry:Portugal Governmental:Portugal Industry:Iceland Entertainment:Iceland Entertainment:Portugal
Governmental:Spain Industry:Spain
""")
BY_CONTRIBUTORS = words("""
Agriculture:Total Agriculture:Portugal Agriculture:Spain Entertainment:Iceland Entertainment:Portugal
Governmental:Portugal Governmental:Spain Industry:Portugal Industry:Spain
""")


@pytest.mark.parametrize("p_percent", [True, False])
@pytest.mark.parametrize("method", ["none", "sub2Sum", "numttHTT"])
def test_firms_that_know_themselves(p_percent: bool, method: str) -> None:
    """Spec 3.4, magnitudes: sector x geo with totals, primary by the p% rule or by at most two contributors."""
    inner = [(sector, geo) for sector, areas in SECTORS.items() for geo in areas]
    holders = [SECTORS[sector][geo] for sector, geo in inner]
    pairs = [
        (row, column)
        for column, name in enumerate(SECTOR_ORDER)
        for row, codes in enumerate(inner)
        if all(code in ("Total", own) for code, own in zip(name.split(":"), codes, strict=True))
    ]
    x = DummyMatrix.from_pairs(*np.array(pairs).T, (len(inner), len(SECTOR_ORDER)))
    primary = BY_CONTRIBUTORS + (["Total:Iceland", "Total:Portugal"] if p_percent else [])
    marks = np.array([ord(next(iter(h))) if len(h) == 1 else 0 for h in holders])
    result = suppress_secondary(
        x,
        np.arange(x.columns),
        [SECTOR_ORDER.index(name) for name in primary],
        singleton=marks,
        singleton_method=method,
    )
    expected = {"Governmental:Total"} | (set() if p_percent else {"Industry:Iceland"})
    if method != "none":
        expected |= {"Entertainment:Spain", "Industry:Iceland"}
    assert {SECTOR_ORDER[c] for c in np.flatnonzero(result.secondary)} == expected


def test_progress_and_interruption() -> None:
    x, names = paper_table(with_size=False)
    order = [names.index(name) for name in PAPER_ORDER]
    seen: list[tuple[int, int]] = []
    suppress_secondary(x, order, x.totals(PAPER.ravel()) <= 3, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] > 0

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        suppress_secondary(x, order, x.totals(PAPER.ravel()) <= 3, progress=stop)


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("method", ["none", "anySum", "anySum0"])
def test_nothing_stays_in_memory(monkeypatch: pytest.MonkeyPatch, method: str, stops: bool) -> None:
    """A walk of 80,000 inner cells holds 120 MB; it must not wait for Python to look for circles of references."""
    runs: list[weakref.ref[Any]] = []
    walk = elimination._Run.walk

    def noted(self: Any) -> None:
        runs.append(weakref.ref(self))
        walk(self)

    def progress(done: int, total: int) -> None:
        if stops:
            raise KeyboardInterrupt

    monkeypatch.setattr(elimination._Run, "walk", noted)
    x = DummyMatrix.from_pairs(np.array([0, 1, 2, 0, 1, 2, 2]), np.array([0, 0, 0, 1, 2, 3, 4]), (3, 5))
    gc.disable()
    try:
        with contextlib.suppress(KeyboardInterrupt):
            suppress_secondary(
                x, [0, 2, 3, 4], [1], singleton=[True, False, False], singleton_method=method, progress=progress
            )
        assert len(runs) == 1
        assert runs[0]() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidates": [99]}, "candidates points outside the cells"),
        ({"primary": np.zeros(3, bool)}, "primary is a mask of another length"),
        ({"primary": [0.5]}, "primary must hold indices"),
        ({"forced": [[1]]}, "forced must be one-dimensional"),
        ({"singleton": [1, 2]}, "one mark for each inner cell"),
        ({"singleton": np.full(18, -1)}, "must not be negative"),
        ({"singleton_method": "sum"}, "unknown singleton method 'sum'"),
        ({"singleton_method": "numTTTTTT"}, "unknown singleton method"),
        ({"singleton_method": "numFTF"}, "needs the singletons as contributor numbers"),
    ],
)
def test_bad_input_is_named(change: dict[str, object], message: str) -> None:
    x, _ = paper_table(with_size=False)
    arguments: dict[str, object] = {"candidates": [0, 1], "primary": [2]} | change
    with pytest.raises(ValueError, match=message):
        suppress_secondary(x, **arguments)


def test_everything_or_nothing_primary() -> None:
    x, _ = paper_table(with_size=False)
    everything = np.ones(x.columns, dtype=bool)
    assert not suppress_secondary(x, np.arange(x.columns), everything).secondary.any()
    assert not suppress_secondary(x, np.arange(x.columns), ~everything).secondary.any()


def test_equal_cells_share_their_fate() -> None:
    """A second name of a primary cell is suppressed; a cell equal to a forced one is published, a primary one unsafe."""
    x = DummyMatrix.from_pairs(np.array([0, 1, 0, 0, 1]), np.array([0, 0, 1, 2, 3]), (2, 4))
    assert suppress_secondary(x, [0, 2, 3], [1]).secondary.tolist() == [False, False, True, True]
    forced = suppress_secondary(x, [0, 2, 3], [1], forced=[2], singleton_method="none")
    assert forced.unsafe.tolist() == [1]
    assert not forced.secondary.any()
