"""What utility measures cost: accuracy over all pairs and triples, columns, and propensity beside scikit-learn.

Like for like is from two tables to a mean square: scikit-learn reads them, makes indicators of the categories,
standardises, fits and scores. Its bare fit, of a design that is there already, is shown as well.

Seeded, on made-up records of numbers, codes and texts. CPU seconds are of the whole process, DuckDB and threads
included: they say more than the clock on a machine that does other things too. Nothing fails because of a clock.

    python benchmarks/utility.py             some minutes on two cores
    python benchmarks/utility.py --rows N    other sizes (default 1,000,000)
    python benchmarks/utility.py --large     propensity scores of as many records; many minutes, most of them theirs
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
from sklearn.preprocessing import OneHotEncoder, StandardScaler
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
    """Ours and theirs, from tables to a mean square, and theirs without anything but the fit."""
    table = Table(title=f"propensity scores, {rows:,} + {rows:,} records, 7 variables", title_justify="left")
    for heading in ("model", "sdcduck", "CPU", "scikit-learn", "CPU", "ratio of CPU", "goal", "CPU of the bare fit"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for name, salt in (("o", 0), ("s", 77)):
        drawn = [f"hash({factor} * i + {salt})" for factor in (1, 3, 5, 7, 11, 13, 17)]
        con.execute(
            f"CREATE OR REPLACE TABLE {name} AS SELECT ({drawn[0]} % 1000) / 10.0 AS x, {drawn[1]} % 5000 AS y, "
            f"{drawn[2]} % 90 AS z, 'k' || {drawn[3]} % 6 AS a, 'r' || {drawn[4]} % 16 AS b, "
            f"'e' || {drawn[5]} % 4 AS c, {drawn[6]} % 2 = 0 AS f FROM range({rows}) r(i)"
        )
    outcome = np.repeat([0, 1], rows)

    def design(kind: type) -> np.ndarray:
        pooled = con.execute("SELECT * REPLACE (f::VARCHAR AS f) FROM (FROM o UNION ALL FROM s)").fetchnumpy()
        numbers = np.column_stack([np.asarray(pooled[name], dtype=float) for name in "xyz"])
        texts = np.column_stack([np.asarray(pooled[name], dtype=object) for name in "abcf"])
        coded = OneHotEncoder(drop="first", sparse_output=False).fit_transform(texts)
        made = np.column_stack([numbers, coded])
        return (StandardScaler().fit_transform(made) if kind is float else made).astype(kind)

    models = {
        "logit": (LogisticRegression(C=np.inf, max_iter=1000), float),
        "tree": (
            DecisionTreeClassifier(ccp_alpha=1e-4, min_samples_leaf=5, min_samples_split=20, max_depth=30), np.float32,
        ),
    }  # fmt: skip
    for name, (model, kind) in models.items():
        null = "analytic" if name == "logit" else "none"
        query = f"FROM sdc_pmse('o', 's', model := '{name}', expected_by := '{null}')"

        def theirs(model=model, kind=kind) -> float:  # type: ignore[no-untyped-def]
            made = design(kind)
            return float(np.mean((model.fit(made, outcome).predict_proba(made)[:, 1] - 0.5) ** 2))

        made = design(kind)
        ours = measured(lambda query=query: con.execute(query).fetchall(), runs)  # type: ignore[misc]
        whole = measured(theirs, runs)
        bare = measured(lambda model=model, made=made: model.fit(made, outcome), runs)  # type: ignore[misc]
        table.add_row(
            name, *(f"{value:.2f}" for value in (*ours, *whole)), f"{ours[1] / whole[1]:.2f}", "1.2", f"{bare[1]:.2f}"
        )  # fmt: skip
    return table


def columns(con: duckdb.DuckDBPyConnection, rows: int, runs: int) -> Table:
    """KS, missing and most frequent values of all columns."""
    table = Table(title=f"sdc_utility_columns, 30 columns, {rows:,} + {rows:,} records", title_justify="left")
    table.add_column("seconds", justify="right")
    table.add_column("CPU", justify="right")
    make_records(con, "o", rows, 30, 0)
    make_records(con, "s", rows, 30, 77)
    clock, cpu = measured(lambda: con.execute("FROM sdc_utility_columns('o', 's')").fetchall(), runs)
    table.add_row(f"{clock:.2f}", f"{cpu:.2f}")
    return table


def main() -> None:
    """Run all and print the tables."""
    parser = argparse.ArgumentParser(description="What utility measures cost.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="propensity scores of all rows, and nothing else; long")
    options = parser.parse_args()
    con = sdcduck.connect(progress=False)
    console.print(f"sdcduck {version('sdcduck')}, DuckDB {duckdb.__version__}")
    console.print(propensity(con, options.rows if options.large else options.rows // 20, options.runs))
    if options.large:
        return
    console.print(columns(con, options.rows, options.runs))
    console.print(accuracy(con, options.rows, options.runs))
    console.print(
        f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB, the tables included"
    )


if __name__ == "__main__":
    main()
