"""What each step towards a cheaper suppression pattern gains, with intervals: cells, value, seconds of the processor.

    python benchmarks/patterns.py [--optimum SECONDS] [--only NAME]

Seeded tables: 10 x 12, three dimensions, two hierarchies, two linked tables; values are skewed, one cell in eight is
primary and wants 15 % on either side. Every pattern is audited by linear programs straight from the table's equations,
which share no code with those that made it. With --optimum integer programming looks for the best pattern of the tables
in two dimensions.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import linprog

from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.intervals import NO_SEARCH, widen_intervals
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.optimal import optimal_suppression
from sdcduck.methods.suppression.patterns import SEARCH

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
SHARE, WIDTH = 0.125, 0.15


def crossed(*ways: list[Ints]) -> DummyMatrix:
    """Tables over the same inner cells: of each, all combinations of the levels of its dimensions."""
    rows, columns, used = [], [], 0
    inner = np.arange(len(ways[0][0]))
    for levels in ways:
        code = np.zeros(len(inner), dtype=np.int64)
        for level in levels:
            code = code * (int(level.max()) + 1) + level
        names, place = np.unique(code, return_inverse=True)
        rows.append(inner)
        columns.append(used + place)
        used += len(names)
    return DummyMatrix.from_pairs(np.concatenate(rows), np.concatenate(columns), (len(inner), used))


def tables(*dimensions: list[Ints]) -> list[list[Ints]]:
    """All combinations of one level of each dimension, the finest first."""
    return [list(levels) for levels in itertools.product(*dimensions)]


def cube(*shape: int) -> DummyMatrix:
    place = np.indices(shape).reshape(len(shape), -1)
    return crossed(*tables(*([axis, np.zeros_like(axis)] for axis in place)))


def hierarchy(a: int, b: int, groups: int) -> DummyMatrix:
    """Two dimensions of a and b codes, each in groups, and totals."""
    first, second = np.indices((a, b)).reshape(2, -1)
    return crossed(*tables(*([axis, axis // groups, np.zeros_like(axis)] for axis in (first, second))))


def linked(a: int, b: int, c: int) -> DummyMatrix:
    """Two tables of three dimensions that share one."""
    one, two, three = np.indices((a, b, c)).reshape(3, -1)
    none = np.zeros_like(one)
    ways = tables([one, none], [two, none]) + tables([one], [three, none])[:-1] + tables([none], [three])
    return crossed(*ways)


CASES = {
    **{f"10x12, seed {seed}": (lambda: cube(10, 12), seed) for seed in range(1, 6)},
    "6x8x3": (lambda: cube(6, 8, 3), 6),
    "10x12x4": (lambda: cube(10, 12, 4), 7),
    "hierarchy 20x24": (lambda: hierarchy(20, 24, 4), 8),
    "linked 8x9x7": (lambda: linked(8, 9, 7), 9),
}


def unprotected(x: DummyMatrix, y: Floats, suppressed: Booleans, primary: Booleans, width: Floats) -> int:
    """Primary cells that no other inner values, with the same published cells, put as far above and below as wanted."""
    equations = x.sparse().T.tocsr()
    shown = equations[np.flatnonzero(~suppressed)]
    count = 0
    for cell in np.flatnonzero(primary):
        bounds = np.column_stack([-y / width[cell], np.full(x.rows, np.inf)])
        goal = equations[cell].toarray().ravel()
        for sign in (1, -1):
            found = linprog(-sign * goal, A_eq=shown, b_eq=np.zeros(shown.shape[0]), bounds=bounds, method="highs")
            if found.status != 3 and -found.fun < 1 - 1e-5:
                count += 1
                break
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--optimum", type=float, default=0.0, help="seconds for integer programming")
    parser.add_argument("--only", default="", help="tables with this in their name")
    options = parser.parse_args()
    console = Console(width=max(110, Console().width))
    for name, (make, seed) in CASES.items():
        if options.only not in name:
            continue
        table = Table("table", "primary", "step", "cells", "value %", "seconds", "unprotected")
        x, rng = make(), np.random.default_rng(seed)
        y = np.round(np.exp(rng.normal(5, 1.5, x.rows))) + 1
        z = np.asarray(x.totals(y), dtype=np.float64)
        small = np.flatnonzero(np.diff(x.indptr) == np.diff(x.indptr).min())
        primary = np.zeros(x.columns, dtype=np.bool_)
        primary[small[rng.random(len(small)) < SHARE]] = True
        width = np.where(primary, WIDTH * z, 0.0)
        order = np.argsort(-z, kind="stable")
        exact = primary | suppress_secondary(
            x, order, primary, singleton=np.zeros(x.rows, dtype=np.bool_), singleton_method="none"
        ).secondary  # fmt: skip
        steps: list[tuple[str, Booleans, float]] = [("exact only", exact, 0.0)]
        for search in (NO_SEARCH, SEARCH):
            began = time.process_time()
            found = widen_intervals(
                x, y, exact, np.flatnonzero(primary), width, width, cost=z, ineligible=z == 0, given=primary,
                search=search,
            )  # fmt: skip
            spent = time.process_time() - began
            if search is NO_SEARCH:
                steps += [("widened", found.widened, 0.0), ("published again, better price", found.before, spent)]
        steps.append((f"repaired, {found.trials} times", found.suppressed, spent))
        if options.optimum and name.startswith("10x12,"):
            began = time.process_time()
            best = optimal_suppression(
                x, y, primary, width, cost=np.where(primary, 0.0, z), time_limit=options.optimum, start=found.suppressed
            )
            steps.append((best.status, best.suppressed, time.process_time() - began))
        for step, suppressed, seconds in steps:
            secondary = suppressed & ~primary
            table.add_row(
                name, str(primary.sum()), step, str(secondary.sum()), f"{100 * z[secondary].sum() / y.sum():.2f}",
                f"{seconds:.2f}" if seconds else "", str(unprotected(x, y, suppressed, primary, width)),
            )  # fmt: skip
        console.print(table)


if __name__ == "__main__":
    main()
