"""Rounding: the results of SmallCountRounding, additivity, and exact expectations."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import duckdb
import numpy as np
import pytest
from effort import times
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from small_tables import Record, column, publication, read_csv

from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.rounding import (
    below_threshold,
    controlled_rounding,
    midpoint_rounding,
    random_rounding,
    small_count_rounding,
)


class RSample:
    """R's sample.int(n) after set.seed(seed): Mersenne twister, rejection sampling (R 3.6 and later)."""

    def __init__(self, seed: int) -> None:
        for _ in range(50):
            seed = (69069 * seed + 1) % 2**32
        state = []
        for _ in range(625):
            seed = (69069 * seed + 1) % 2**32
            state.append(seed)
        self.bits = np.random.MT19937()
        self.bits.state = {
            "bit_generator": "MT19937",
            "state": {"key": np.array(state[1:], dtype=np.uint32), "pos": 624},
        }

    def uniform(self) -> float:
        return float(self.bits.random_raw()) * 2.3283064365386963e-10

    def below(self, n: int) -> int:
        bits = (n - 1).bit_length()
        while True:
            value = 0
            for _ in range(0, bits + 1, 16):
                value = 65536 * value + int(self.uniform() * 65536)
            value &= 2**bits - 1
            if value < n:
                return value

    def __call__(self, n: int) -> NDArray[np.int64]:
        pool, result = list(range(n)), []
        for left in range(n, 0, -1):
            j = self.below(left)
            result.append(pool[j])
            pool[j] = pool[left - 1]
        return np.array(result, dtype=np.int64)


def test_the_random_numbers_are_those_of_r() -> None:
    assert list(RSample(123)(10) + 1) == [3, 10, 2, 8, 6, 9, 1, 7, 5, 4]


GEO = ["geo", "eu", ""]
REGION = ["region", "fylke", "kostragr", ""]
MONTH = ["mnd", "mnd2", ""]
# The case, its input, the count, the tables, and arguments. Seed 123 unless given.
CASES: dict[str, tuple[str, str, list[list[list[str]]], dict[str, object]]] = {
    "e6_b5_f1": ("e6", "freq", [[["geo", ""], [""]], [["eu"], [""]], [[""], ["year"]]], {"base": 5}),
    "e6_b3_dimvar": ("e6", "freq", [[GEO, ["year", ""]]], {}),
    "e6_b3_cross": ("e6", "freq", [[GEO, ["year", ""]]], {}),
    "exPSD_b5": ("exPSD", "freq", [[["rows", ""], [""]], [[""], ["cols"]]], {"base": 5, "seed": 124}),
    "exPSD_b5_noident": (
        "exPSD",
        "freq",
        [[["rows", ""], [""]], [[""], ["cols"]]],
        {"base": 5, "seed": 124, "identify_new": False},
    ),
    "exPSD_b5_max7": ("exPSD", "freq", [[["rows", ""], [""]], [[""], ["cols"]]], {"base": 5, "max_round": 7}),
    "exPSD_b5_zeroc": ("exPSD", "freq", [[["rows", ""], [""]], [[""], ["cols"]]], {"base": 5, "zero_candidates": True}),
    "z2_b3": ("z2", "ant", [[REGION, ["hovedint", ""]]], {}),
    "z2_b5": ("z2", "ant", [[REGION, ["hovedint", ""]]], {"base": 5}),
    "z3_b3": ("z3", "ant", [[REGION, ["hovedint", ""], MONTH]], {}),
    "z3_b5": ("z3", "ant", [[REGION, ["hovedint", ""], MONTH]], {"base": 5}),
}


@pytest.mark.parametrize("case", list(CASES))
def test_small_count_rounding_is_that_of_the_reference(reference_data: Path, case: str) -> None:
    folder = reference_data / "smallcountrounding"
    file, count, tables, options = CASES[case]
    records = read_csv(folder / f"input_{file}.csv")
    x, names = publication(records, tables)
    y = column(records, count).astype(np.int64)
    options = {"base": 3, "seed": 123} | options
    shuffle = RSample(int(str(options.pop("seed"))))
    rounded = small_count_rounding(x, y, shuffle=shuffle, **options)  # type: ignore[arg-type]
    metrics = json.loads((folder / "index.json").read_text())["cases"][case]["metrics"]
    for prefix, before, after in (("", x.totals(y), x.totals(rounded)), ("inner_", y, rounded)):
        difference = after - before
        hellinger = np.sqrt(((np.sqrt(before) - np.sqrt(after)) ** 2).sum() / 2)
        found = {
            "maxdiff": np.abs(difference).max(),
            "HDutility": 1 - hellinger / np.sqrt(before.sum()),
            "meanAbsDiff": np.abs(difference).mean(),
            "rootMeanSquare": np.sqrt((difference**2).mean()),
        }
        for name, value in found.items():
            if prefix + name in metrics:
                assert value == pytest.approx(metrics[prefix + name], abs=1e-10), prefix + name
    inner = folder / f"{case}_inner.csv"
    if inner.exists():
        expected = read_csv(inner)
        dims = [d for d in expected[0] if d not in ("original", "rounded", "difference")]
        key = {tuple(r[d] for d in dims): int(r["rounded"]) for r in expected}
        assert [key[tuple(r[d] for d in dims)] for r in records] == list(rounded)
        cells = {
            frozenset(tuple(r[d] for d in dims).__iter__()): int(r["rounded"])
            for r in read_csv(folder / f"{case}_publish.csv")
        }
        for name, value in zip(names, x.totals(rounded), strict=True):
            assert cells[frozenset(name)] == value


def linked(rng: np.random.Generator) -> tuple[DummyMatrix, NDArray[np.int64]]:
    records: list[Record] = [
        {"a": str(a), "b": str(b), "g": str((a + b) % 3), "h": str(rng.integers(2))}
        for a, b in itertools.product(range(rng.integers(2, 6)), range(rng.integers(2, 6)))
    ]
    x, _ = publication(records, [[["a", "g", ""], ["b", ""]], [["h"], ["a", "b"]]][: rng.integers(1, 3)])
    return x, rng.poisson(3, size=x.rows)


@settings(max_examples=times(20, 60), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 5, 10]), st.integers(0, 3), st.sampled_from([3, 1000]))
def test_small_count_rounding_leaves_no_small_cell(seed: int, base: int, more: int, max_rows: int) -> None:
    x, y = linked(np.random.default_rng(seed))
    rounded = small_count_rounding(x, y, base, max_round=base - 1 + more, seed=seed, max_rows=max_rows)
    cells = x.totals(rounded)
    assert not ((cells < base + more) & (cells % base > 0)).any()
    assert (rounded >= 0).all()
    changed = rounded != y
    assert (rounded[changed] % base == 0).all()
    assert (np.abs(rounded - y) < base).all()
    np.testing.assert_array_equal(
        rounded, small_count_rounding(x, y, base, max_round=base - 1 + more, seed=seed, max_rows=max_rows)
    )


@settings(max_examples=times(12, 40), deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 5, 10]))
def test_controlled_rounding_adds_up_and_stays_within_the_base(seed: int, base: int) -> None:
    x, y = linked(np.random.default_rng(seed))
    found = controlled_rounding(x, y, base)
    z = x.totals(y)
    np.testing.assert_array_equal(x.totals(found.inner), found.cells)
    assert (found.cells % base == 0).all()
    assert (found.inner >= 0).all()
    assert found.largest == np.abs(found.cells - z).max()
    assert found.within_base == (found.largest < base)
    if found.within_base:
        np.testing.assert_array_equal(found.cells[z % base == 0], z[z % base == 0])


@settings(max_examples=times(8, 20), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_two_way_tables_have_a_controlled_rounding_and_it_is_the_nearest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    records = [{"a": str(a), "b": str(b)} for a in range(2) for b in range(3)]
    x, _ = publication(records, [[["a", ""], ["b", ""]]])
    y = rng.integers(0, 9, size=6)
    found = controlled_rounding(x, y, 3)
    assert found.within_base
    assert found.optimal
    z = x.totals(y)
    best = min(
        float(np.abs(x.totals(inner) - z).sum())
        for steps in itertools.product((0, 3), repeat=6)
        for inner in [(y - y % 3) + np.array(steps) * (y % 3 > 0)]
        if (np.abs(x.totals(inner) - z) < 3).all()
    )
    assert np.abs(found.cells - z).sum() == best


def test_where_no_controlled_rounding_exists_as_few_cells_as_possible_go_further() -> None:
    # Only the sums of two of three inner cells are published.
    pairs = DummyMatrix.from_pairs(np.array([0, 1, 1, 2, 0, 2]), np.array([0, 0, 1, 1, 2, 2]), (3, 3))
    assert controlled_rounding(pairs, [1, 1, 1], 3).within_base
    # All are 4 and would have to stay 4: an inner cell would be half a step.
    odd = controlled_rounding(pairs, [2, 2, 2], 4)
    assert not odd.within_base
    assert sorted(odd.cells) in ([0, 4, 4], [4, 4, 8])
    assert odd.largest == 4


def test_out_of_time_the_rounding_still_adds_up() -> None:
    x, y = linked(np.random.default_rng(3))
    found = controlled_rounding(x, y, 5, time_limit=0.0)
    assert (found.inner % 5 == 0).all()
    np.testing.assert_array_equal(x.totals(found.inner), found.cells)
    assert found.within_base == (np.abs(found.cells - x.totals(y)).max() < 5)


def test_random_rounding_is_unbiased_and_keeps_multiples() -> None:
    z = np.repeat(np.arange(8), 60_000)
    rounded = random_rounding(z, 3, seed=1)
    assert (np.abs(rounded - z) < 3).all()
    assert (rounded % 3 == 0).all()
    for count in range(8):
        picked = rounded[z == count]
        # Standard error of the mean: at most 1.5 / sqrt(60,000).
        assert abs(picked.mean() - count) < 5 * 1.5 / np.sqrt(60_000)
        if count % 3 == 0:
            assert (picked == count).all()
    np.testing.assert_array_equal(rounded, random_rounding(z, 3, seed=1))
    assert (rounded != random_rounding(z, 3, seed=2)).any()


def test_cells_below_a_threshold() -> None:
    assert list(below_threshold([0, 1, 2, 3, 4])) == [False, True, True, False, False]
    assert list(below_threshold([0, 1, 2, 3, 4], 4)) == [False, True, True, True, False]


@pytest.mark.parametrize("base", [2, 3, 5, 6, 10])
def test_midpoint_rounding_gives_the_middle_of_each_range(base: int) -> None:
    """Against the ranges themselves; where a range has no middle number, the lower of the two."""
    wanted = {0: 0}
    for first in range(1, 100, base):
        counts = list(range(first, first + base))
        wanted |= dict.fromkeys(counts, counts[(base - 1) // 2])
    assert dict(zip(wanted, midpoint_rounding(list(wanted), base).tolist(), strict=True)) == wanted


def test_midpoint_rounding_in_sql(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE people AS SELECT 'g' || (range // 20) AS g, range % 3 AS s FROM range(57)")
    query = "SELECT g, s, count(*) AS n FROM people GROUP BY CUBE (g, s)"
    rows = con.execute(
        f"SELECT original, rounded FROM sdc_round_table('{query}', base := 6, method := 'midpoint')"
    ).fetchall()
    assert rows == [(n, midpoint_rounding([n], 6).item()) for n, _ in rows]
    assert {(57, 57), (20, 21), (17, 15), (6, 3), (7, 9)} <= set(rows)


@pytest.mark.parametrize("call", [lambda v: random_rounding(v, 3, seed=0), below_threshold, midpoint_rounding])
@pytest.mark.parametrize(
    ("values", "message"), [([-1, 2], "negative"), ([0.5, 1], "whole"), ([[1, 2]], "vector"), (["a"], "whole")]
)
def test_counts_are_checked(call: object, values: list[object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(values)  # type: ignore[operator]


def test_parameters_are_checked() -> None:
    x = DummyMatrix.from_pairs(np.array([0, 1]), np.array([0, 0]), (2, 1))
    with pytest.raises(ValueError, match="base"):
        random_rounding([1], 1, seed=0)
    with pytest.raises(ValueError, match="base"):
        midpoint_rounding([1], 1)
    with pytest.raises(ValueError, match="2 numbers"):
        small_count_rounding(x, [1, 2, 3])
    with pytest.raises(ValueError, match="max_round"):
        small_count_rounding(x, [1, 2], 5, max_round=3)
    with pytest.raises(ValueError, match="smallest count"):
        below_threshold([1], 0)


def test_the_arguments_of_small_count_rounding(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        "CREATE TABLE p AS SELECT row, col, unit.unit FROM range(1, 6) r(row), range(1, 5) c(col), "
        "range((row * row * 7 + col * col * 5) % 9) unit(unit)"
    )
    query = "SELECT row, col, count(*) AS n FROM p GROUP BY GROUPING SETS ((row, col), (row), (col), ())"

    def rounded(arguments: str) -> dict[tuple[int | None, int | None], tuple[int, int]]:
        made = con.execute(
            f"SELECT row, col, original, rounded FROM sdc_round_table('{query}', base := 3, seed := 5, {arguments})"
        )
        return {row[:2]: row[2:] for row in made.fetchall()}

    def added(cells: dict[tuple[int | None, int | None], tuple[int, int]]) -> int:
        return sum(after for (row, col), (_, after) in cells.items() if row is not None and col is not None)

    plain = rounded("extend_zeros := true")
    assert not {after for _, after in plain.values()} & {1, 2}
    wider = rounded("extend_zeros := true, max_round := 5")
    assert not {after for _, after in wider.values()} & {1, 2, 4, 5}
    assert {after for _, after in plain.values()} & {4, 5}
    assert added(wider) == wider[None, None][1]
    inner = {key: cell for key, cell in rounded("force_inner := true").items() if None not in key}
    assert all(after % 3 == 0 and abs(after - before) < 3 for before, after in inner.values())
    assert any(before > 2 and before % 3 for before, _ in inner.values())
    # Zeros are as they were, unless they may rise: then other margins of this table go up.
    assert all(after == 0 for before, after in plain.values() if before == 0)
    far = []
    for zeros in ("false", "true"):
        con.execute(
            "CREATE OR REPLACE TABLE q AS SELECT row, col FROM range(1, 6) r(row), range(1, 5) c(col), "
            "range((row * row * 2 + col * col * 5) % 4) unit(unit)"
        )
        made = con.execute(
            "SELECT list(rounded ORDER BY row, col) FROM sdc_round_table('SELECT row, col, count(*) AS n FROM q "
            f"GROUP BY GROUPING SETS ((row), (col))', base := 3, seed := 5, extend_zeros := true, zero_candidates := {zeros})"
        )
        far.append(made.fetchall()[0][0])
    assert far[0] != far[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("max_round := 1", "argument 'max_round' must be"),
        ("identify_new := NULL", "argument 'identify_new' must be"),
        ("force_inner := true, method := 'random'", "are for method := 'small_counts'"),
        ("max_round := 5, method := 'controlled'", "are for method := 'small_counts'"),
    ],
)
def test_wrong_arguments_of_small_count_rounding(con: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    con.execute("CREATE TABLE p AS SELECT i % 3 AS a FROM range(9) r(i)")
    with pytest.raises(duckdb.Error) as raised:
        con.execute(f"FROM sdc_round_table('SELECT a, count(*) AS n FROM p GROUP BY a', {arguments})").fetchall()
    assert message in str(raised.value)
