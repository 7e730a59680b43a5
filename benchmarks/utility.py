"""What utility measures cost: accuracy over all pairs and triples, and propensity scores beside scikit-learn's own fit.

Seeded, on made-up records of numbers, codes and texts. CPU seconds are of the whole process, DuckDB and threads
included: they say more than the clock on a machine that does other things too. Nothing fails because of a clock.

    python benchmarks/utility.py             some minutes on two cores
    python benchmarks/utility.py --rows N    other sizes (default 1,000,000)
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import sdcduck

console = Console(width=max(110, Console().width))


def make_records(con: duckdb.DuckDBPyConnection, name: str, rows: int, columns: int, salt: int) -> None:
    """A third each of numbers, texts and codes."""
    shown = []
    for place in range(columns):
        drawn = f"hash(i * {place + 3} + {salt})"
        if place % 3 == 0:
            shown.append(f"({drawn} % 1000003) / 1000.0 AS c{place}")
        elif place % 3 == 1:
            shown.append(f"'v' || ({drawn} % {5 + place % 30}) AS c{place}")
        else:
            shown.append(f"({drawn} % {50 + place})::INTEGER AS c{place}")
    con.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT {', '.join(shown)} FROM range({rows}) r(i)")


def measured(run: Callable[[], object], runs: int) -> tuple[float, float]:
    """Median seconds, and median CPU seconds, without the first run."""
    clock, cpu = [], []
    for _ in range(runs + 1):
        start, used = time.perf_counter(), time.process_time()
        run()
        clock.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    return statistics.median(clock[1:]), statistics.median(cpu[1:])


def accuracy(con: duckdb.DuckDBPyConnection, rows: int, runs: int) -> Table:
    """Binning and counting of both tables."""
    table = Table(title="accuracy", title_justify="left")
    for heading in ("columns", "ways", "records", "margins", "seconds", "CPU", "goal"):
        table.add_column(heading, justify="right")
    for columns, ways, size, goal in ((30, 2, rows, 2.5), (30, 3, rows // 10, 2.0), (100, 2, rows, 30.0)):
        make_records(con, "o", size, columns, 0)
        make_records(con, "s", size, columns, 77)
        query = f"SELECT margins FROM sdc_accuracy('o', 's', ways := {ways})"
        clock, cpu = measured(lambda query=query: con.execute(query).fetchall(), runs)  # type: ignore[misc]
        margins = con.execute(query).fetchone()
        goal_here = f"{goal:g}" if rows == 1_000_000 else ""
        table.add_row(
            str(columns), str(ways), f"{size:,}", f"{margins[0]:,}" if margins else "", f"{clock:.2f}", f"{cpu:.2f}",
            goal_here,
        )  # fmt: skip
    return table


def propensity(con: duckdb.DuckDBPyConnection, rows: int, runs: int) -> Table:
    """Ours, from tables to a row of measures, beside a bare fit on a design that is there already."""
    table = Table(title=f"propensity scores, {rows:,} + {rows:,} records, 7 variables", title_justify="left")
    for heading in ("model", "sdcduck", "CPU", "scikit-learn", "CPU", "ratio of CPU", "goal"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for name, salt in (("o", 0), ("s", 77)):
        drawn = [f"hash({factor} * i + {salt})" for factor in (1, 3, 5, 7, 11, 13, 17)]
        con.execute(
            f"CREATE OR REPLACE TABLE {name} AS SELECT ({drawn[0]} % 1000) / 10.0 AS x, {drawn[1]} % 5000 AS y, "
            f"{drawn[2]} % 90 AS z, 'k' || {drawn[3]} % 6 AS a, 'r' || {drawn[4]} % 16 AS b, "
            f"'e' || {drawn[5]} % 4 AS c, {drawn[6]} % 2 = 0 AS f FROM range({rows}) r(i)"
        )
    pooled = con.execute("SELECT x, y, z, a, b, c, f FROM (FROM o UNION ALL FROM s)").fetchnumpy()
    columns = [np.asarray(pooled[name], dtype=float) for name in "xyz"]
    for name in "abcf":
        known, codes = np.unique(np.asarray(pooled[name]), return_inverse=True)
        columns += list(np.eye(len(known))[codes].T[1:])
    design, outcome = np.column_stack(columns), np.repeat([0, 1], rows)
    standard = (design - design.mean(axis=0)) / design.std(axis=0)
    single = design.astype(np.float32)
    tree = DecisionTreeClassifier(ccp_alpha=1e-4, min_samples_leaf=5, min_samples_split=20, max_depth=30)
    fits = {
        "logit": lambda: LogisticRegression(C=np.inf, max_iter=1000).fit(standard, outcome),
        "tree": lambda: tree.fit(single, outcome),
    }
    for model, fit in fits.items():
        null = "analytic" if model == "logit" else "none"
        query = f"FROM sdc_pmse('o', 's', model := '{model}', expected_by := '{null}')"
        ours = measured(lambda query=query: con.execute(query).fetchall(), runs)  # type: ignore[misc]
        theirs = measured(fit, runs)
        table.add_row(
            model, *(f"{value:.2f}" for value in (*ours, *theirs)), f"{ours[1] / theirs[1]:.2f}", "1.2"
        )  # fmt: skip
    return table


def main() -> None:
    """Run all and print the tables."""
    parser = argparse.ArgumentParser(description="What utility measures cost.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    con = sdcduck.connect(progress=False)
    console.print(f"sdcduck {version('sdcduck')}, DuckDB {duckdb.__version__}")
    console.print(propensity(con, options.rows // 20, options.runs))
    console.print(accuracy(con, options.rows, options.runs))
    console.print(
        f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB, the tables included"
    )


if __name__ == "__main__":
    main()
