"""What suppression of linked tables costs: seeded tables of our own, medians of warm runs, peak memory of a process.

Every shape runs in a process of its own, so that its peak memory is its own; the first run there is the cold one (it
loads compiled code from the cache, or compiles it when there is none). Nothing here fails because of a clock.

    python benchmarks/suppression.py            nested shapes up to 80,000 inner cells and hard ones, a few minutes
    python benchmarks/suppression.py --quick    2,000 and 10,000 inner cells
    python benchmarks/suppression.py --all      up to 320,000 inner cells, and the hardest shapes
    python benchmarks/suppression.py --matrix   cells and matrix X of 10 million records, beside the plain query
    python benchmarks/suppression.py --intervals  with wide intervals, up to 66,000 cells, some minutes
    python benchmarks/suppression.py --instances FOLDER   stored instances linked_*.npz: the ones others were timed on

Nested shape: municipality (with county and overlapping regions) x industry (five levels, 30 special groupings),
counts of 1 or 2 primary: like the employment table of Langsrud and Bøvelstad (2022), 80,459 inner x 171,678 cells,
which took 127 minutes of suppression and 28 of decimals in R.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import sdcduck
from sdcduck.methods.suppression.audit import audit
from sdcduck.methods.suppression.candidates import candidate_order
from sdcduck.methods.suppression.decimals import decimals
from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.intervals import widen_intervals
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.nullspace import modular_null_space, null_space, reveals_modular
from sdcduck.methods.suppression.stencil import stencil
from sdcduck.udfs.suppression import pattern

SEED = 20260918


def crossed(levels_a: list[np.ndarray], levels_b: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, int]:
    """(inner cell, cell) pairs of every level of one dimension by every level of the other; equal cells come once.

    A level is one code for each inner cell; -1 where the grouping does not hold it.
    """
    rows, columns, total = [], [], 0
    for a in levels_a:
        for b in levels_b:
            inside = np.flatnonzero((a >= 0) & (b >= 0))
            code, column = np.unique(a[inside].astype(np.int64) * (b.max() + 1) + b[inside], return_inverse=True)
            rows.append(inside)
            columns.append(column.ravel() + total)
            total += len(code)
    return np.concatenate(rows), np.concatenate(columns), total


def distinct_cells(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> DummyMatrix:
    """The matrix of the pairs with equal cells left out."""
    x = DummyMatrix.from_pairs(rows, columns, shape)
    marks = np.random.default_rng(1).integers(1, 2**62, x.rows)
    _, first = np.unique(x.totals(marks), return_index=True)
    number = np.full(x.columns, -1)
    number[np.sort(first)] = np.arange(len(first))
    new = number[np.repeat(np.arange(x.columns), np.diff(x.indptr))]
    return DummyMatrix.from_pairs(x.indices[new >= 0], new[new >= 0], (x.rows, len(first)))


def sparse_inner(rng: np.random.Generator, n: int, a: int, b: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """About n inner cells of an a x b table with skewed margins, and their counts."""
    weights = [np.exp(rng.normal(0, 1.2, size)) for size in (a, b)]
    chance = [w / w.sum() for w in weights]
    code = np.empty(0, np.int64)
    while len(code) < n:
        more = rng.choice(a, 2 * n, p=chance[0]) * b + rng.choice(b, 2 * n, p=chance[1])
        code = np.unique(np.concatenate([code, more]))
    code = np.sort(rng.permutation(code)[:n])
    counts = np.minimum(np.floor(np.exp(rng.normal(1.2, 1.3, n))), 5000).astype(np.int64) + (rng.random(n) < 0.7)
    return code // b, code % b, np.maximum(counts, 1)


def nested(n: int) -> tuple[DummyMatrix, np.ndarray]:
    """Employment-like linked tables with n inner cells."""
    rng = np.random.default_rng((SEED, n))
    towns, industries = max(20, round(356 * (n / 80_000) ** 0.5)), 600
    town, industry, counts = sparse_inner(rng, n, towns, industries)
    county = np.sort(rng.integers(0, max(2, towns // 20), towns))
    # Economic regions overlap with counties at their borders only.
    region = np.clip(np.arange(towns) + rng.integers(-3, 4, towns), 0, towns - 1) // 14
    places = [town, county[town], np.zeros(n, np.int64), region[town]]
    steps = [600, 240, 88, 21, 1]
    levels, parents = [industry], [np.arange(600)]
    for down, up in itertools.pairwise(steps):
        parent = np.sort(rng.integers(0, up, down))
        parents.append(parent[parents[-1]])
        levels.append(parents[-1][industry])
    special = []
    for k in range(30):
        # A few neighbours, mostly of one division.
        chosen = np.full(industries, -1)
        start = rng.integers(0, industries - 20)
        chosen[start + rng.choice(20, 6, replace=False)] = k
        special.append(np.where(chosen[industry] >= 0, 0, -1))
    return distinct_cells(*_shape(*crossed(places, levels + special), n)), counts


def three_way(n: int) -> tuple[DummyMatrix, np.ndarray]:
    """A three-way table with two levels above each dimension: no nesting orders its cells."""
    rng = np.random.default_rng((SEED, 3, n))
    size = round(n ** (1 / 3) * 1.6)
    code = np.sort(rng.choice(size**3, n, replace=False))
    dimensions = []
    for part in (code // size**2, code // size % size, code % size):
        dimensions.append([part, part // 5, np.zeros(n, np.int64)])
    pairs = [(a * size + b if a.any() or b.any() else a) for a in dimensions[0] for b in dimensions[1]]
    counts = rng.geometric(0.25, n)
    return distinct_cells(*_shape(*crossed(pairs, dimensions[2]), n)), counts


def random_groupings(n: int, first: int, second: int) -> tuple[DummyMatrix, np.ndarray]:
    """A two-way table with many random groupings of both dimensions: the hardest, every step fills in."""
    rng = np.random.default_rng((SEED, 2, n, first))
    size = round((4 * n) ** 0.5)
    a, b, counts = sparse_inner(rng, n, size, size)
    sides = []
    for code, groupings in ((a, first), (b, second)):
        levels = [code, np.zeros(n, np.int64)]
        for _ in range(groupings):
            chosen = np.full(size, -1)
            chosen[rng.choice(size, max(3, size // 20), replace=False)] = 0
            levels.append(chosen[code])
        sides.append(levels)
    return distinct_cells(*_shape(*crossed(*sides), n)), counts


def _shape(rows: np.ndarray, columns: np.ndarray, total: int, n: int) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    return rows, columns, (n, total)


SHAPES: dict[str, tuple[str, Callable[[], tuple[DummyMatrix, np.ndarray]]]] = {
    **{
        f"nested {n // 1000}k": ("nested", lambda n=n: nested(n))
        for n in (2000, 10_000, 30_000, 80_000, 160_000, 320_000)
    },
    **{f"three-way {n // 1000}k": ("hard", lambda n=n: three_way(n)) for n in (5000, 10_000, 20_000)},
    "15 + 30 groupings 5k": ("hard", lambda: random_groupings(5000, 15, 30)),
    "60 + 150 groupings 20k": ("hard", lambda: random_groupings(20_000, 60, 150)),
}
QUICK = ("nested 2k", "nested 10k")
USUAL = (*QUICK, "nested 30k", "nested 80k", "three-way 5k", "15 + 30 groupings 5k")


@dataclasses.dataclass(frozen=True)
class Instance:
    """What is to be protected: X, the count of each inner cell, the primary cells and the candidates in their order."""

    x: DummyMatrix
    counts: np.ndarray
    primary: np.ndarray
    order: np.ndarray


def instance(name: str) -> Instance:
    """A shape of our own by its name, or a stored instance by its file."""
    if name not in SHAPES:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "suppression"))
        from builders import stored_instance  # the tests read them, too

        x, order, primary, counts = stored_instance(Path(name))
        return Instance(x, counts, primary, order)
    x, counts = SHAPES[name][1]()
    z = x.totals(counts)
    return Instance(x, counts, z <= 2, candidate_order(x, z.astype(np.float64)))


def _stencil_and_decimals(x: DummyMatrix, suppressed: np.ndarray, counts: np.ndarray) -> None:
    """What is made once the cells are known: the space of what is published, the stencil, three replicates."""
    space = modular_null_space(x, ~suppressed)
    stencil(space)
    decimals(x, space, counts, replicates=3)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(name: str, runs: int) -> dict[str, object]:
    """All numbers of one shape; called in a process of its own."""
    given = instance(name)
    x, counts, primary, order = given.x, given.counts, given.primary, given.order
    result = suppress_secondary(x, [0], [0], singleton_method="none")

    cpu = 0.0

    def suppress() -> None:
        nonlocal result, cpu
        began = time.process_time()
        result = suppress_secondary(x, order, primary, singleton_method="none")
        cpu = time.process_time() - began

    cold = seconds(suppress)
    warm = statistics.median(seconds(suppress) for _ in range(runs)) if cold < 60 else float("nan")
    any_sum = (
        seconds(lambda: suppress_secondary(x, order, primary, singleton=counts == 1)) if cold < 60 else float("nan")
    )
    numbers: dict[str, object] = {
        "inner": x.rows,
        "cells": x.columns,
        "primary": int(primary.sum()),
        "secondary": int(result.secondary.sum()),
        "cold": cold,
        "warm": warm,
        "CPU": cpu,
        "anySum": any_sum,
    }
    suppressed = primary | result.secondary
    if cold < 60:
        stencil(modular_null_space(x, ~suppressed))
    numbers["stencil"] = seconds(lambda: stencil(modular_null_space(x, ~suppressed)))
    space = modular_null_space(x, ~suppressed)
    assert not len(reveals_modular(space, x, np.flatnonzero(suppressed & (np.diff(x.indptr) > 0))))
    try:
        null_space(x, space) if cold < 60 else None
        began = time.perf_counter()
        basis = null_space(x, space)
        numbers["null space"] = time.perf_counter() - began
        numbers["decimals"] = seconds(lambda: decimals(x, basis, counts))
        numbers["together"] = seconds(lambda: _stencil_and_decimals(x, suppressed, counts))
    except ArithmeticError:
        numbers["null space"] = float("nan")
    numbers["MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return numbers


LEVELS = {
    "municipality": "i % 356",
    "county": "i % 356 // 18",
    "industry": "hash(i) % 200",
    "division": "hash(i) % 200 // 10",
    "sex": "hash(i + 1) % 2",
    "size": "hash(i + 2) % 5",
}
GROUPINGS = (
    "municipality, industry", "municipality, division", "municipality", "county, industry", "county, division",
    "county", "industry", "division", "", "county, sex", "division, sex", "sex", "county, size", "division, size",
    "size", "sex, size", "county, division, sex", "county, division, size", "county, sex, size", "division, sex, size",
)  # fmt: skip


class Enough(Exception):
    """The matrix is there, and no more is wanted."""


def build(console: Console, records: int, runs: int) -> None:
    """What stands before suppression: cells, inner cells and the matrix between them, beside the plain query."""
    con = sdcduck.connect()
    columns = ", ".join(f"'{name[0]}' || ({code}) AS {name}" for name, code in LEVELS.items())
    con.execute(f"CREATE TABLE firms AS SELECT i AS id, {columns}, 1 + hash(i + 3) % 1000 AS turnover "
                f"FROM range({records}) t(i)")  # fmt: skip
    sets = ", ".join(f"({grouping})" for grouping in GROUPINGS)
    query = (
        f"SELECT {', '.join(LEVELS)}, count(*) AS n, sum(turnover) AS turnover "
        f"FROM firms GROUP BY GROUPING SETS ({sets})"
    )
    built: dict[str, int] = {}
    read_inner = pattern.read_inner

    def read(*arguments: Any) -> None:
        x = read_inner(*arguments).x
        built.update(inner=x.rows, cells=x.columns, entries=len(x.indices))
        raise Enough

    def matrix() -> None:
        with mock.patch.object(pattern, "read_inner", read), contextlib.suppress(duckdb.Error):
            con.execute(f"FROM sdc_suppress($q${query}$q$, max_count := 2)").fetchall()

    plain, ours = [], []
    for _ in range(runs + 1):
        plain.append(seconds(lambda: con.sql(query).to_arrow_table()))
        ours.append(seconds(matrix))
    ratio = statistics.median(b / a for a, b in zip(plain[1:], ours[1:], strict=True))
    console.print(
        f"{records:,} records, {len(GROUPINGS)} grouping sets: {built['cells']:,} cells over {built['inner']:,} inner "
        f"cells, {built['entries']:,} entries\nplain query {statistics.median(plain[1:]):.2f} s, cells and matrix "
        f"{statistics.median(ours[1:]):.2f} s, ratio {ratio:.2f} (goal: at most 2)"
    )


def intervals(console: Console) -> None:
    """Intervals of 15 % for some of the inner cells of the nested shapes; audited by programs of their own."""
    table = Table("shape", "cells", "primary", "exact only", "widened", "published again", "CPU", "narrow")
    for name, share in (("nested 2k", 0.05), ("nested 10k", 0.05), ("nested 30k", 0.02)):
        x, _ = SHAPES[name][1]()
        rng = np.random.default_rng(5)
        y = np.round(np.exp(rng.normal(5, 1.5, x.rows))) + 1
        z = np.asarray(x.totals(y), dtype=np.float64)
        primary = (np.diff(x.indptr) == 1) & (rng.random(x.columns) < share)
        width = np.where(primary, 0.15 * z, 0.0)
        exact = suppress_secondary(x, np.argsort(-z, kind="stable"), primary, singleton_method="none").secondary
        began = time.process_time()
        found = widen_intervals(
            x, y, primary | exact, np.flatnonzero(primary), width, width, cost=z, ineligible=z == 0, given=primary
        )
        cpu = time.process_time() - began
        checked = audit(x, z, found.before, upl=width, lpl=width, cells=primary, until=np.inf)
        patterns = [
            f"{int((shown & ~primary).sum()):,} / {100 * z[shown & ~primary].sum() / y.sum():.1f} %"
            for shown in (exact, found.widened, found.before)
        ]
        narrow = int((~checked.protected).sum())
        table.add_row(name, f"{x.columns:,}", f"{primary.sum():,}", *patterns, f"{cpu:.0f}", str(narrow))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--matrix", action="store_true")
    parser.add_argument("--intervals", action="store_true")
    parser.add_argument("--instances", type=Path)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shape", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.shape:
        print(json.dumps(measure(options.shape, options.runs)))
        return
    console = Console(width=max(150, Console().width))
    console.print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores; seconds")
    if options.intervals:
        intervals(console)
        return
    if options.matrix:
        build(console, options.records, options.runs)
        return
    names = (
        "inner",
        "cells",
        "primary",
        "secondary",
        "cold",
        "warm",
        "CPU",
        "anySum",
        "stencil",
        "null space",
        "decimals",
        "together",
        "MiB",
    )
    table = Table("shape", *names)
    shapes = SHAPES if options.all else QUICK if options.quick else USUAL
    if options.instances:
        shapes = sorted(map(str, options.instances.glob("linked_*.npz")), key=lambda file: Path(file).stat().st_size)
    for name in shapes:
        command = [sys.executable, __file__, "--shape", name, "--runs", str(options.runs)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            table.add_row(Path(name).stem, run.stderr.strip().splitlines()[-1])
            continue
        numbers = json.loads(run.stdout)
        cells = [numbers.get(key, float("nan")) for key in names]
        table.add_row(
            Path(name).stem, *(f"{v:,}" if isinstance(v, int) else f"{v:.0f}" if v > 100 else f"{v:.2f}" for v in cells)
        )
        console.print(f"{Path(name).stem}: done in {numbers['cold']:.1f} s", style="dim")
    console.print(table)


if __name__ == "__main__":
    main()
