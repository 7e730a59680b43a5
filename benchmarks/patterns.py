"""What each step towards a cheaper suppression pattern gains, with intervals: cells, value, seconds of the processor.

    python benchmarks/patterns.py [--optimum SECONDS] [--only NAME] [--argus PYTHON] [--minutes N] [--picture FILE]

Seeded tables: 10 x 12, three dimensions, two hierarchies, two linked tables; values are skewed, one cell in eight is
primary and wants 15 % on either side. In the tables of counts those of 1 and 2 are primary, and want 1. Every pattern
is audited by linear programs straight from the table's equations, which share no code with those that made it. With
--optimum integer programming looks for the best pattern of the tables in two dimensions. Beside them stands tau-Argus
(OPT for some minutes, and MOD, both without singletons), where the Python of --argus has pytauargus 0.6.0; where MOD
leaves primary cells without their interval, once more with what these need. --picture draws the first of the tables at
each step.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tau_argus
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import linprog

from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.intervals import NO_SEARCH, Search, widen_intervals
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.optimal import optimal_suppression
from sdcduck.methods.suppression.patterns import TRIALS
from sdcduck.pictures.svg import BLUE, GRID, ORANGE, Panel, Picture, picture

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
SHARE, WIDTH = 0.125, 0.15


@dataclass(frozen=True)
class Case:
    """A table: which inner cells each cell is the sum of, and what tau-Argus calls the cells.

    Attributes:
        codes: of each cell; empty where tau-Argus does not know such tables.
        groups: of each dimension with a hierarchy, the codes in each group.
    """

    x: DummyMatrix
    codes: list[tuple[str, ...]]
    groups: dict[int, dict[str, list[str]]]


def crossed(*ways: list[Ints]) -> tuple[DummyMatrix, list[tuple[int, ...]]]:
    """Tables over the same inner cells: of each, all combinations of the levels of its dimensions.

    Beside the matrix, of each cell the number of its table and its values.
    """
    rows, columns, names, used = [], [], [], 0
    inner = np.arange(len(ways[0][0]))
    for way, levels in enumerate(ways):
        found, place = np.unique(np.stack(levels), axis=1, return_inverse=True)
        rows.append(inner)
        columns.append(used + place.ravel())
        names += [(way, *values) for values in found.T.tolist()]
        used += found.shape[1]
    return DummyMatrix.from_pairs(np.concatenate(rows), np.concatenate(columns), (len(inner), used)), names


def tables(*dimensions: list[Ints]) -> list[list[Ints]]:
    """All combinations of one level of each dimension, the finest first."""
    return [list(levels) for levels in itertools.product(*dimensions)]


def leveled(*dimensions: list[Ints]) -> Case:
    """One table whose dimensions have levels, the last of them the total."""
    x, names = crossed(*tables(*dimensions))
    depths = list(itertools.product(*(range(len(levels)) for levels in dimensions)))
    codes = [
        tuple(
            tau_argus.TOTAL if depth == len(levels) - 1 else f"{'cg'[depth]}{value:03}"
            for depth, levels, value in zip(depths[way], dimensions, values, strict=True)
        )
        for way, *values in names
    ]
    groups = {}
    for place, levels in enumerate(dimensions):
        if len(levels) == 3:
            groups[place] = {
                f"g{group:03}": [f"c{code:03}" for code in np.unique(levels[0][levels[1] == group])]
                for group in np.unique(levels[1])
            }
    return Case(x, codes, groups)


def cube(*shape: int) -> Case:
    place = np.indices(shape).reshape(len(shape), -1)
    return leveled(*([axis, np.zeros_like(axis)] for axis in place))


def hierarchy(a: int, b: int, groups: int) -> Case:
    """Two dimensions of a and b codes, each in groups, and totals."""
    first, second = np.indices((a, b)).reshape(2, -1)
    return leveled(*([axis, axis // groups, np.zeros_like(axis)] for axis in (first, second)))


def linked(a: int, b: int, c: int) -> Case:
    """Two tables of three dimensions that share one."""
    one, two, three = np.indices((a, b, c)).reshape(3, -1)
    none = np.zeros_like(one)
    ways = tables([one, none], [two, none]) + tables([one], [three, none])[:-1] + tables([none], [three])
    return Case(crossed(*ways)[0], [], {})


def amounts(size: int, rng: np.random.Generator) -> Floats:
    values: Floats = np.round(np.exp(rng.normal(5, 1.5, size))) + 1
    return values


def counts(size: int, rng: np.random.Generator) -> Floats:
    values: Floats = np.round(np.exp(rng.normal(3, 1.2, size))) + 1
    return values


CASES: dict[str, tuple[Callable[[], Case], int, Callable[[int, np.random.Generator], Floats]]] = {
    **{f"10x12, seed {seed}": (lambda: cube(10, 12), seed, amounts) for seed in range(1, 6)},
    "6x8x3": (lambda: cube(6, 8, 3), 6, amounts),
    "10x12x4": (lambda: cube(10, 12, 4), 7, amounts),
    "hierarchy 20x24": (lambda: hierarchy(20, 24, 4), 8, amounts),
    "hierarchy 36x48": (lambda: hierarchy(36, 48, 6), 12, amounts),
    "linked 8x9x7": (lambda: linked(8, 9, 7), 9, amounts),
    "counts 20x30": (lambda: cube(20, 30), 10, counts),
    "counts, hierarchy 20x24": (lambda: hierarchy(20, 24, 4), 11, counts),
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


@dataclass(frozen=True)
class Given:
    """A table with its values, primary cells and their widths."""

    case: Case
    y: Floats
    z: Floats
    primary: Booleans
    width: Floats


@dataclass(frozen=True)
class Step:
    """A pattern, what made it, and seconds of the processor; no pattern where there is none."""

    name: str
    suppressed: Booleans | None
    seconds: float = 0.0


def given(name: str) -> Given:
    make, seed, values = CASES[name]
    case, rng = make(), np.random.default_rng(seed)
    y = values(case.x.rows, rng)
    z = np.asarray(case.x.totals(y), dtype=np.float64)
    if values is counts:
        primary = z <= 2
        return Given(case, y, z, primary, np.where(primary, np.minimum(np.ceil(0.2 * z), z), 0.0))
    small = np.flatnonzero(np.diff(case.x.indptr) == np.diff(case.x.indptr).min())
    primary = np.zeros(case.x.columns, dtype=np.bool_)
    primary[small[rng.random(len(small)) < SHARE]] = True
    return Given(case, y, z, primary, np.where(primary, WIDTH * z, 0.0))


def ours(given: Given) -> list[Step]:
    x, y, z, primary, width = given.case.x, given.y, given.z, given.primary, given.width
    exact = primary | suppress_secondary(
        x, np.argsort(-z, kind="stable"), primary, singleton=np.zeros(x.rows, dtype=np.bool_), singleton_method="none"
    ).secondary  # fmt: skip
    steps = [Step("exact only", exact)]
    for search in (NO_SEARCH, Search(TRIALS, 5.0)):
        began = time.process_time()
        found = widen_intervals(
            x, y, exact, np.flatnonzero(primary), width, width, cost=z, ineligible=z == 0, given=primary, search=search
        )
        spent = time.process_time() - began
        if search is NO_SEARCH:
            steps += [Step("widened", found.widened), Step("published again, better price", found.before, spent)]
    limit = "" if found.ended else ", at the limit"
    last = f"repaired, {found.trials} times{limit}" if found.trials else "improved by integer programming"
    return [*steps, Step(last, found.suppressed, spent)]


def theirs(given: Given, python: str, minutes: int) -> list[Step]:
    steps = []
    for name, method in (("tau-Argus OPT", f"OPT(1,{minutes})"), ("tau-Argus MOD", f"MOD(1,{minutes},0,0,0)")):
        answer = tau_argus.pattern(
            python, method, given.case.codes, given.case.groups, given.z, given.primary, given.width, 180.0 * minutes
        )
        label = name if not answer.problem else f"{name}: {answer.problem}"
        steps.append(Step(label, answer.suppressed, answer.seconds))
    return steps


def made_equal(given: Given, pattern: Booleans) -> Step | None:
    """A pattern that leaves cells without their interval, with what these need; None where it leaves none."""
    x, y, z, primary, width = given.case.x, given.y, given.z, given.primary, given.width
    if not unprotected(x, y, pattern | primary, primary, width):
        return None
    found = widen_intervals(
        x, y, pattern | primary, np.flatnonzero(primary), width, width, cost=z, ineligible=z == 0, given=primary
    )
    least = min((found.widened, found.before), key=lambda each: float(z[each & ~primary].sum()))
    return Step("MOD, with equal protection", least)


def drawn(given: Given, steps: list[Step]) -> Picture:
    """A table in two dimensions at each step: its inner cells, and the totals at the right and below."""
    rows, columns = (len(set(codes)) for codes in zip(*given.case.codes, strict=True))
    panels = []
    for step in steps:
        assert step.suppressed is not None
        secondary = step.suppressed & ~given.primary
        share = 100 * given.z[secondary].sum() / given.y.sum()
        panel = Panel(f"{step.name}: {secondary.sum()} secondary, {share:.2f} %", None, None, width=286, height=198)
        for cell, codes in enumerate(given.case.codes):
            down, across = (
                last - 1 if code == tau_argus.TOTAL else int(code[1:])
                for code, last in zip(codes, (rows, columns), strict=True)
            )
            colour = ORANGE if given.primary[cell] else BLUE if secondary[cell] else GRID
            left, top = across / columns, 1 - down / rows
            panel.box((left, top), (left + 0.88 / columns, top - 0.88 / rows), colour, f"{given.z[cell]:,.0f}")
        panels.append(panel)
    panels[-1].legend = [("box", ORANGE, "primary"), ("box", BLUE, "secondary"), ("box", GRID, "published")]
    return picture(
        "One table, 10 x 12 with totals, at each step",
        f"Tables in which {given.primary.sum()} cells are primary, and the secondary cells after each step.",
        panels, left=24,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--optimum", type=float, default=0.0, help="seconds for integer programming")
    parser.add_argument("--only", default="", help="tables with this in their name")
    parser.add_argument("--argus", default=sys.executable, help="a Python that has pytauargus 0.6.0")
    parser.add_argument("--minutes", type=int, default=2, help="for OPT of tau-Argus")
    parser.add_argument("--picture", help="an SVG file of the first table")
    options = parser.parse_args()
    console = Console(width=max(110, Console().width))
    beside = tau_argus.is_there(options.argus)
    if not beside:
        console.print("without tau-Argus: pytauargus is not installed here (pip install pytauargus==0.6.0)")
    for name in (name for name in CASES if options.only in name):
        table = Table("table", "primary", "step", "cells", "value %", "seconds", "unprotected")
        one = given(name)
        x, y, z, primary, width = one.case.x, one.y, one.z, one.primary, one.width
        steps = ours(one)
        if options.picture:
            drawn(one, steps).save(options.picture)
            return
        if options.optimum and name.startswith("10x12,"):
            began = time.process_time()
            best = optimal_suppression(
                x, y, primary, width, cost=np.where(primary, 0.0, z), time_limit=options.optimum,
                start=steps[-1].suppressed,
            )  # fmt: skip
            steps.append(Step(best.status, best.suppressed, time.process_time() - began))
        if beside and one.case.codes:
            steps += theirs(one, options.argus, options.minutes)
            last = steps[-1].suppressed
            if last is not None and (equal := made_equal(one, last)):
                steps.append(equal)
        for step in steps:
            shown = [name, str(primary.sum()), step.name]
            if step.suppressed is not None:
                secondary = step.suppressed & ~primary
                bare = unprotected(x, y, step.suppressed | primary, primary, width)
                shown += [str(secondary.sum()), f"{100 * z[secondary].sum() / y.sum():.2f}"]
                shown += [f"{step.seconds:.2f}" if step.seconds else "", str(bare)]
            table.add_row(*shown)
        console.print(table)


if __name__ == "__main__":
    main()
