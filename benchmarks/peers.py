"""The same tables by another system: time, cells suppressed, and whether a primary cell can be computed from the rest.

    pip install pytauargus==0.6.0
    python benchmarks/peers.py [--all]

Peer: pytauargus, the modular method of tau-Argus (MOD) with the HiGHS solver. Region (two levels) x industry (two
levels) of seeded records, counts of 1 or 2 primary. Both start from the records and end with the status of every cell.
Like for like is without singletons (none; MOD without its singleton check); with them the two mean different things:
anySum protects sums of ones, MOD lets no cell of one person protect another.
MOD also asks for a width of intervals, here the least it accepts; ours protects against exact computation.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import sdcduck
from sdcduck.methods.suppression.matrix import DummyMatrix
from sdcduck.methods.suppression.nullspace import modular_null_space, reveals_modular

SEED = 20261121
MOST = 2
QUERY = """
    SELECT r2, r3, i2, i3, count(*) AS n FROM people
    GROUP BY GROUPING SETS (
        (r3, i3), (r3, i2), (r3), (r2, i3), (r2, i2), (r2), (i3), (i2), ()
    )"""

Cell = tuple[str, str]


def records(n: int, regions: int, industries: int) -> dict[str, np.ndarray]:
    """n records: region and industry with their first two letters' group, skewed; codes as text."""
    rng = np.random.default_rng((SEED, n))
    chosen = []
    for size in (regions, industries):
        weights = np.exp(rng.normal(0, 1.2, size))
        chosen.append(rng.choice(size, n, p=weights / weights.sum()))
    region, industry = chosen
    return {
        "r2": np.char.add("R", np.char.zfill((region // 10).astype(str), 2)),
        "r3": np.char.add("R", np.char.zfill(region.astype(str), 3)),
        "i2": np.char.add("I", np.char.zfill((industry // 10).astype(str), 2)),
        "i3": np.char.add("I", np.char.zfill(industry.astype(str), 3)),
    }


def ours(data: dict[str, np.ndarray], singleton: str, improve: bool) -> tuple[dict[Cell, tuple[int, str]], float]:
    """Count and status of each cell, and seconds."""
    with sdcduck.connect(progress=False) as con:
        con.register("given", pa.table({name: pa.array(values) for name, values in data.items()}))
        con.execute("CREATE TABLE people AS FROM given")
        began = time.perf_counter()
        rows = con.execute(
            "SELECT coalesce(r3, r2, 'Total'), coalesce(i3, i2, 'Total'), status "
            f"FROM sdc_suppress($${QUERY}$$, max_count := {MOST}, singleton := '{singleton}', improve := {improve})"
        ).fetchall()
        seconds = time.perf_counter() - began
        counts = con.execute(
            f"SELECT coalesce(r3, r2, 'Total'), coalesce(i3, i2, 'Total'), n FROM ({QUERY})"
        ).fetchall()
    count = {(a, b): n for a, b, n in counts}
    return {(a, b): (count[a, b], status) for a, b, status in rows}, seconds


def theirs(data: dict[str, np.ndarray], singleton: bool) -> tuple[dict[Cell, tuple[int, str]], float]:
    """As `ours`."""
    from pytauargus import protect

    # It leaves files where it runs.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        files = {}
        for fine, coarse in (("r3", "r2"), ("i3", "i2")):
            lines = []
            for group in np.unique(data[coarse]):
                lines += [group, *(f"@{code}" for code in np.unique(data[fine][data[coarse] == group]))]
            files[fine] = str(Path(folder) / f"{fine}.hrc")
            Path(files[fine]).write_text("\n".join(lines) + "\n")
        micro = {name: data[name].tolist() for name in ("r3", "i3")} | {"one": [1] * len(data["r3"])}
        began = time.perf_counter()
        result = protect(
            micro, ["r3", "i3"], response="one", safety_rules=f"FREQ({MOST + 1},0)", hrc=files, hierleadstring="@",
            suppress=f"MOD(1,10,{int(singleton)},0,0)", workdir=folder,
        )  # fmt: skip
        rows = result.tables[0].rows
        seconds = time.perf_counter() - began
    names = {"S": "open", "U": "primary", "M": "secondary", "P": "open"}
    cells = {(row["r3"], row["i3"]): (row["freq"], names[row["status"]]) for row in rows if row["status"] != "E"}
    return cells, seconds


def matrix(cells: list[Cell], data: dict[str, np.ndarray]) -> DummyMatrix:
    """Which inner cells each of the cells is the sum of."""
    inner, column = np.unique(np.stack([data["r3"], data["i3"]]), axis=1), {cell: k for k, cell in enumerate(cells)}
    group = {fine: dict(zip(data[fine], data[coarse], strict=True)) for fine, coarse in (("r3", "r2"), ("i3", "i2"))}
    pairs = [
        (row, column[a, b])
        for row, (region, industry) in enumerate(inner.T)
        for a in (region, group["r3"][region], "Total")
        for b in (industry, group["i3"][industry], "Total")
    ]
    rows, columns = np.array(pairs).T
    return DummyMatrix.from_pairs(rows, columns, (inner.shape[1], len(cells)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="also a large table")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    console = Console(width=max(110, Console().width))
    if importlib.util.find_spec("pytauargus") is None:
        console.print("skipped: pytauargus is not installed here (pip install pytauargus==0.6.0)")
        return
    ways: dict[str, Callable[..., tuple[dict[Cell, tuple[int, str]], float]]] = {
        "sdcduck, none, improve := false": lambda data: ours(data, "none", False),
        "sdcduck, none": lambda data: ours(data, "none", True),
        "pytauargus MOD, no singleton check": lambda data: theirs(data, False),
        "sdcduck, anySum, improve := false": lambda data: ours(data, "anySum", False),
        "sdcduck, anySum": lambda data: ours(data, "anySum", True),
        "pytauargus MOD, singleton check": lambda data: theirs(data, True),
    }
    table = Table("records", "cells", "method", "seconds", "primary", "secondary", "their counts", "primary revealed")
    shapes = [(4000, 40, 60), (20_000, 100, 150)] + ([(60_000, 200, 300)] if options.all else [])
    for n, regions, industries in shapes:
        data, before = records(n, regions, industries), None
        ours(data, "none", False)  # loads the compiled code
        for name, way in ways.items():
            results = [way(data) for _ in range(options.runs)]
            answer = dict(sorted(results[0][0].items()))
            if before is not None:
                assert {cell: n for cell, (n, _) in answer.items()} == before, "the two have different cells"
            before = {cell: n for cell, (n, _) in answer.items()}
            status = np.array([status for _, status in answer.values()])
            count = np.array([number for number, _ in answer.values()])
            assert ((count <= MOST) == (status == "primary")).all(), "the two have different primary cells"
            x = matrix(list(answer), data)
            space = modular_null_space(x, status == "open")
            revealed = reveals_modular(space, x, np.flatnonzero(status == "primary"))
            table.add_row(
                f"{n:,}", f"{len(answer):,}", name, f"{statistics.median(seconds for _, seconds in results):.2f}",
                f"{(status == 'primary').sum():,}", f"{(status == 'secondary').sum():,}",
                f"{count[status == 'secondary'].sum():,}", f"{len(revealed)}",
            )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
