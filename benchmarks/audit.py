"""What the audit of a suppression pattern costs: seeded publications, suppressed first by exact elimination.

    python benchmarks/audit.py            three publications, three to five minutes on two cores
    python benchmarks/audit.py --quick    the smallest one

Two bounds a suppressed cell are found; the linear programs that this takes are fewer, because blocks with one direction
need none and every solution bounds other cells as well. Nothing here fails because of a clock.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sdcduck.methods.suppression.audit import feasibility_intervals
from sdcduck.methods.suppression.elimination import suppress_secondary
from sdcduck.methods.suppression.matrix import DummyMatrix

GOAL_SECONDS, GOAL_CELLS = 60.0, 1000


@dataclass(frozen=True)
class Shape:
    """Municipalities in counties (and regions that cut across) x industries in divisions; how dense it is."""

    name: str
    municipalities: int
    industries: int
    crossing: bool
    mean: float


SHAPES = (
    Shape("nested, 10 k cells", 150, 60, False, 60.0),
    Shape("crossing, 10 k cells", 140, 60, True, 60.0),
    Shape("crossing, sparse, 10 k cells", 200, 60, True, 4.0),
)


def make(shape: Shape) -> tuple[DummyMatrix, NDArray[np.int64], NDArray[np.bool_]]:
    """The dummy matrix, the cell counts, and the primary cells: counts of 1 and 2."""
    rng = np.random.default_rng(20221)
    size = rng.lognormal(0, 1.2, size=(shape.municipalities, 1)) * rng.lognormal(0, 1.2, size=(1, shape.industries))
    count = rng.poisson(shape.mean * size / size.mean())
    place, industry = np.nonzero(count)
    y = count[place, industry]
    region = rng.integers(0, max(shape.municipalities // 12, 2), size=shape.municipalities)
    places = [place, shape.municipalities + place // 10, np.full(len(y), 10**6)]
    if shape.crossing:
        places.append(2 * shape.municipalities + region[place])
    branches = [industry, shape.industries + industry // 6, np.full(len(y), 10**6)]
    code = np.concatenate([p * 10**7 + b for p in places for b in branches])
    _, cell = np.unique(code, return_inverse=True)
    rows = np.tile(np.arange(len(y)), len(places) * len(branches))
    x = DummyMatrix.from_pairs(rows, cell, (len(y), int(cell.max()) + 1))
    z = x.totals(y.astype(np.int64))
    return x, z.astype(np.int64), (z >= 1) & (z <= 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    shapes = SHAPES[:1] if parser.parse_args().quick else SHAPES
    console = Console(width=120)
    table = Table(title=f"Audit on {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}")
    for heading in ("publication", "inner x cells", "primary", "suppressed", "suppression s", "audit s, 1 thread"):
        table.add_column(heading, justify="left" if heading == "publication" else "right")
    table.add_column("audit s, all threads", justify="right")
    table.add_column("exact", justify="right")
    table.add_column(f"{GOAL_CELLS} cells in {GOAL_SECONDS:.0f} s", justify="right")
    warm = make(Shape("", 12, 12, True, 5.0))
    feasibility_intervals(warm[0], warm[1], warm[2])
    for shape in shapes:
        x, z, primary = make(shape)
        began = time.perf_counter()
        order = np.argsort(-z, kind="stable")
        suppressed = primary | suppress_secondary(x, order, primary, singleton_method="none").secondary
        suppression = time.perf_counter() - began
        seconds = []
        for jobs in (1, os.cpu_count() or 1):
            began = time.perf_counter()
            lo, hi = feasibility_intervals(x, z, suppressed, jobs=jobs)
            seconds.append(time.perf_counter() - began)
        rate = min(seconds) / suppressed.sum() * GOAL_CELLS
        table.add_row(
            shape.name,
            f"{x.rows:,} x {x.columns:,}",
            f"{primary.sum():,}",
            f"{suppressed.sum():,}",
            f"{suppression:.2f}",
            f"{seconds[0]:.2f}",
            f"{seconds[1]:.2f}",
            f"{(hi - lo < 0.5).sum():,}",
            f"{'met' if rate <= GOAL_SECONDS else 'missed'}: {rate:.2f} s",
        )
    console.print(table)


if __name__ == "__main__":
    main()
