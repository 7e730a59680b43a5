"""What cell-key protection costs: seeded data, interleaved runs, medians of the ratios within a run.

A run executes every query of a shape once, one after the other, the order moving on by one from run to run; a ratio is
taken within a run, and the figure printed is its median over the runs. So a machine that is slow for a minute is slow
for all of them. Nothing here fails because of a clock: the goals are printed as met or missed.

    python benchmarks/cell_key.py            10 million rows, 7 runs, about six minutes on two cores
    python benchmarks/cell_key.py --quick    1 million rows, 3 runs
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import duckdb
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import sdcduck
from sdcduck.methods.perturbation.ptable import count_ptable

console = Console(width=max(118, Console().width))

# Fetching Arrow from `execute` warns of a copy on DuckDB 2.0. It is used all the same, because `con.sql` binds a query
# twice; the copy is paid by the plain query too.
warnings.filterwarnings("ignore", message="Arrow output on a DB-API result")


@dataclass(frozen=True)
class Shape:
    """A grouping: the columns shown, what stands after GROUP BY, and whether the geometric means use it."""

    name: str
    columns: str
    group_by: str
    counted: bool = True


SHAPES = (
    Shape("100 groups", "region, age", "region, age"),
    Shape("100 k groups", "municipality, occupation", "municipality, occupation"),
    Shape("1 M groups", "municipality, occupation, age", "municipality, occupation, age"),
    Shape("CUBE(3)", "region, age, sex", "CUBE (region, age, sex)"),
    Shape("ROLLUP(3)", "region, municipality, occupation", "ROLLUP (region, municipality, occupation)"),
    Shape(
        "4 GROUPING SETS",
        "municipality, sex, sector, age, region, occupation",
        "GROUPING SETS ((municipality, sex), (sector, age), (region, occupation), ())",
    ),
    Shape("100 k, one INTEGER", "grid_100k", "grid_100k", counted=False),
    Shape("1 M, one INTEGER", "grid_1m", "grid_1m", counted=False),
)


def make_people(con: duckdb.DuckDBPyConnection, rows: int) -> None:
    """The table `people`: 8 dimensions, a record key, a whole and a decimal measure; a function of the row number.

    Every variable hashes numbers of its own (`hash(i, salt)` would not do: its low bits repeat from salt to salt). The
    record keys are plain hashes: an HMAC of 10 million identifiers would take longer than everything else here.
    """

    def pick(salt: int, size: int) -> str:
        return f"(hash(32 * i + {salt}) % {size})"

    def normal(salt: int) -> str:
        one, two = (f"((hash(32 * i + {salt + k}) >> 11) / 9007199254740992.0)" for k in (0, 1))
        return f"sqrt(-2 * ln(1 - {one})) * cos(2 * pi() * {two})"

    con.execute(f"""
        CREATE TABLE people AS
        SELECT CASE WHEN {pick(1, 2)} = 0 THEN 'female' ELSE 'male' END AS sex,
               'R' || municipality // 100 AS region,
               10 * age || '-' || 10 * age + 9 AS age,
               'S' || occupation // 5 AS sector,
               occupation::INTEGER AS occupation,
               municipality::INTEGER AS municipality,
               {pick(5, 100_000)}::INTEGER AS grid_100k,
               {pick(6, 1_000_000)}::INTEGER AS grid_1m,
               {pick(7, 100_000_000)}::INTEGER AS record_key,
               exp(7 + 1.2 * {normal(8)})::INTEGER AS income,
               round(exp(4 + 1.8 * {normal(10)}), 2) AS turnover
        FROM (SELECT i, {pick(2, 10)} AS age, {pick(3, 100)} AS occupation, {pick(4, 1000)} AS municipality
              FROM range({rows}) numbers(i))
    """)


def make_firms(con: duckdb.DuckDBPyConnection, rows: int) -> None:
    """The table `firms`: 430 regions nested in 20, 20 industries, sex of the owner, a skewed turnover and a key."""
    con.execute(f"""
        CREATE TABLE firms AS
        SELECT 'R' || r3 % 20 AS r2, 'R' || r3 % 20 || '.' || r3 AS r3,
               'I' || (20 * sqrt((hash(32 * i + 22) % 10000) / 10000))::INTEGER % 20 AS i2,
               CASE WHEN hash(32 * i + 23) % 2 = 0 THEN 'F' ELSE 'M' END AS sex,
               round(exp(4 + 1.8 * sqrt(-2 * ln(1 - (hash(32 * i + 24) >> 11) / 9007199254740992.0))
                   * cos(2 * pi() * (hash(32 * i + 25) >> 11) / 9007199254740992.0)), 2) AS turnover,
               (hash(32 * i + 26) % 100000000)::INTEGER AS record_key
        FROM (SELECT i, hash(32 * i + 21) % 430 AS r3 FROM range({rows}) numbers(i))
    """)


def arrow(con: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    """Run a query and fetch its whole result."""
    result = con.execute(query)
    return result.to_arrow_table() if hasattr(result, "to_arrow_table") else result.fetch_arrow_table()


def interleaved(con: duckdb.DuckDBPyConnection, queries: dict[str, str], runs: int) -> dict[str, list[float]]:
    """Seconds of each query in each run, after one run that is not counted."""
    names = list(queries)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for run in range(-1, runs):
        for name in names[run % len(names) :] + names[: run % len(names)]:
            start = time.perf_counter()
            arrow(con, queries[name])
            if run >= 0:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(seconds: dict[str, list[float]], name: str, base: str) -> float:
    """Median of the ratios within a run."""
    return statistics.median(a / b for a, b in zip(seconds[name], seconds[base], strict=True))


def milliseconds(values: list[float]) -> str:
    return f"{1000 * statistics.median(values):.0f}"


def median_time(action: Callable[[], object], times: int) -> float:
    """Median seconds of an action, after one time that is not counted."""
    seconds = []
    for _ in range(times + 1):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


class Goals:
    """The goals of the project and what came out."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def at_most(self, what: str, value: float, limit: float, unit: str = "") -> None:
        """Note a figure that should not exceed its limit."""
        verdict = "[green]met[/]   " if value <= limit else "[red]missed[/]"
        self.lines.append(f"{verdict} {what}: {value:.3g}{unit} (goal: at most {limit:g}{unit})")


def figures(title: str, columns: list[str]) -> Table:
    """An empty table of figures, one row for each grouping."""
    table = Table(title=title, title_justify="left")
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def count_queries(shape: Shape) -> dict[str, str]:
    """Plain, floor, and three ways to write the protected count.

    `macro` is what a user writes; `joined` looks the noise up in the stored p-table; `aggregated` calls the scalar
    `sdc_ckm_count` on counts and key sums that a subquery made.
    """
    cells = (
        f"SELECT {shape.columns}, count(*) AS n, sum(record_key)::BIGINT % 100000000 AS ck "
        f"FROM people GROUP BY {shape.group_by}"
    )
    floor = f"SELECT {shape.columns}, count(*) AS n, sum(record_key) AS key_sum FROM people GROUP BY {shape.group_by}"
    return {
        "plain": f"SELECT {shape.columns}, count(*) AS n FROM people GROUP BY {shape.group_by}",
        "floor": floor,
        "macro": f"SELECT {shape.columns}, sdc_count(record_key) AS n FROM people GROUP BY {shape.group_by}",
        "joined": f"SELECT {shape.columns}, n + p.v AS n FROM ({cells}) cells LEFT JOIN sdc.ptable_intervals p "
        "ON p.name = 'default' AND p.i = least(n, 5) AND ck >= p.lb AND ck < p.ub",
        "aggregated": f"SELECT {shape.columns}, sdc_ckm_count(n, key_sum) AS n FROM ({floor}) cells",
    }


def bench_counts(con: duckdb.DuckDBPyConnection, runs: int, goals: Goals) -> None:
    """Counts: plain is `count(*)`, floor adds one exact integer sum (what any cell key must pay), then protected."""
    forms = ("macro", "joined", "aggregated")
    pairs = [("floor", "plain"), *((form, base) for form in forms for base in ("plain", "floor"))]
    times = figures("Counts, ms", ["plain", "floor", *forms])
    relative = figures("Counts, ratios", [f"{name}\n/ {base}" for name, base in pairs])
    ratios: dict[tuple[str, str], list[float]] = {}
    for shape in SHAPES:
        seconds = interleaved(con, count_queries(shape), runs)
        row = [ratio(seconds, *pair) for pair in pairs]
        if shape.counted:
            for pair, value in zip(pairs, row, strict=True):
                ratios.setdefault(pair, []).append(value)
        name = shape.name if shape.counted else f"({shape.name})"
        times.add_row(name, *(milliseconds(values) for values in seconds.values()))
        relative.add_row(name, *(f"{value:.2f}" for value in row))
    means = {pair: statistics.geometric_mean(values) for pair, values in ratios.items()}
    relative.add_section()
    relative.add_row("geometric mean of 6", *(f"{value:.2f}" for value in means.values()))
    console.print(times, relative)
    for form, name in (("macro", "sdc_count"), ("joined", "the joined form")):
        goals.at_most(f"counts, {name} to floor, geometric mean", means[form, "floor"], 1.05)
        goals.at_most(f"counts, {name} to plain, geometric mean", means[form, "plain"], 1.25)
        goals.at_most(f"counts, {name} to plain, worst grouping", max(ratios[form, "plain"]), 1.4)


def bench_sums(con: duckdb.DuckDBPyConnection, runs: int, goals: Goals) -> None:
    """Sums with noise from the largest contribution."""
    flex = "p_large := 0.1, p_small := 0.2, fp := 1000, q := 4"
    measures = {
        "count": "count(*)",
        "sum(i)": "sum(income)",
        "sum(d)": "sum(turnover)",
        "sdc_sum(i)": "sdc_sum(income, record_key)",
        "sdc_sum(d)": "sdc_sum(turnover, record_key)",
        "sdc_sum(i) flex": f"sdc_sum(income, record_key, {flex})",
    }
    pairs = [
        ("sdc_sum(i)", "sum(i)"),
        ("sdc_sum(d)", "sum(d)"),
        ("sdc_sum(i) flex", "sum(i)"),
        ("sdc_sum(i)", "count"),
        ("sdc_sum(d)", "count"),
    ]
    times = figures("Sums with top-1 of an INTEGER (i) and a DOUBLE (d), ms", list(measures))
    relative = figures("Sums with top-1, ratios", [f"{name}\n/ {base}" for name, base in pairs])
    ratios: list[list[float]] = []
    for shape in SHAPES:
        if not shape.counted:
            continue
        queries = {
            name: f"SELECT {shape.columns}, {measure} AS x FROM people GROUP BY {shape.group_by}"
            for name, measure in measures.items()
        }
        seconds = interleaved(con, queries, runs)
        ratios.append([ratio(seconds, *pair) for pair in pairs])
        times.add_row(shape.name, *(milliseconds(values) for values in seconds.values()))
        relative.add_row(shape.name, *(f"{value:.2f}" for value in ratios[-1]))
    means = [statistics.geometric_mean(column) for column in zip(*ratios, strict=True)]
    relative.add_section()
    relative.add_row("geometric mean", *(f"{value:.2f}" for value in means))
    console.print(times, relative)
    for (name, base), mean, column in zip(pairs, means, zip(*ratios, strict=True), strict=True):
        goals.at_most(f"sums, {name} to {base}, geometric mean", mean, 1.6)
        goals.at_most(f"sums, {name} to {base}, worst grouping", max(column), 1.6)


def bench_planning(con: duckdb.DuckDBPyConnection) -> None:
    """The part of the cost that does not depend on the rows: planning, measured on an empty table."""
    con.execute("CREATE OR REPLACE TEMP TABLE nobody AS FROM people LIMIT 0")
    measures = {
        "count(*)": "count(*)",
        "sdc_count": "sdc_count(record_key)",
        "sum": "sum(income)",
        "sdc_sum": "sdc_sum(income, record_key)",
        "sdc_sum, top-3 and flex": "sdc_sum(income, record_key, epsilon := [1, 0.5, 0.2], p_small := 0.2, fp := 1000)",
        "sdc_mean": "sdc_mean(income, record_key)",
    }
    table = Table(title="Planning alone: the query on an empty table", title_justify="left")
    table.add_column("measure")
    table.add_column("ms", justify="right")
    for name, measure in measures.items():
        query = f"SELECT region, age, {measure} AS x FROM nobody GROUP BY region, age"
        table.add_row(name, f"{1000 * median_time(lambda query=query: arrow(con, query), 7):.1f}")
    console.print(table)


def bench_memory(file: Path, goals: Goals) -> None:
    """Peak resident memory, each query in a process of its own, on the grouping with most cells."""
    shape = SHAPES[2]
    queries = {
        **{name: query for name, query in count_queries(shape).items() if name in ("plain", "macro", "joined")},
        "sum": f"SELECT {shape.columns}, sum(income) AS x FROM people GROUP BY {shape.group_by}",
        "sdc_sum": f"SELECT {shape.columns}, sdc_sum(income, record_key) AS x FROM people GROUP BY {shape.group_by}",
    }
    peak = {}
    for name, query in queries.items():
        child = [sys.executable, __file__, "--peak-memory-of", query, "--file", str(file)]
        peak[name] = int(subprocess.run(child, capture_output=True, text=True, check=True).stdout)
    table = Table(title=f"Peak resident memory, {shape.name}, each in a process of its own", title_justify="left")
    table.add_column("query")
    table.add_column("MiB", justify="right")
    table.add_column("ratio", justify="right")
    for name, base in (("plain", "plain"), ("macro", "plain"), ("joined", "plain"), ("sum", "sum"), ("sdc_sum", "sum")):
        table.add_row(name, f"{peak[name] / 1024:.0f}", f"{peak[name] / peak[base]:.2f}")
    console.print(table)
    goals.at_most("memory, sdc_count to count(*)", peak["macro"] / peak["plain"], 1.2)
    goals.at_most("memory, sdc_sum to sum", peak["sdc_sum"] / peak["sum"], 1.2)


def print_peak_memory(file: Path, query: str) -> None:
    """In a process of its own: run one query, print the peak resident memory in KiB."""
    con = sdcduck.connect(file, read_only=True)
    arrow(con, query)
    status = Path("/proc/self/status")
    if status.exists():  # Linux: ru_maxrss would also remember the process that started this one
        print(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")))
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(peak // 1024 if sys.platform == "darwin" else peak)


def bench_ptables(con: duckdb.DuckDBPyConnection, goals: Goals) -> None:
    """Making p-tables, and storing one end to end."""
    source = "'(FROM sdc_ptable(D := 5, V := 2))'"
    actions: dict[str, Callable[[], object]] = {
        "count_ptable(5, 2)": lambda: count_ptable(5, 2),
        "count_ptable(8, 3, js=2)": lambda: count_ptable(8, 3, js=2),
        "count_ptable(10, 3)": lambda: count_ptable(10, 3),
        f"FROM sdc_store_ptable('mine', {source})": lambda: con.execute(
            f"FROM sdc_store_ptable('mine', {source})"
        ).fetchall(),
    }
    table = Table(title="p-tables", title_justify="left")
    table.add_column("")
    table.add_column("ms", justify="right")
    for name, action in actions.items():
        seconds = median_time(action, 7)
        table.add_row(name, f"{1000 * seconds:.1f}")
        if name.startswith("count_ptable"):
            goals.at_most(f"p-tables, {name}", 1000 * seconds, 50, " ms")
    con.execute("FROM sdc_drop_ptable('mine')").fetchall()
    console.print(table)


def bench_beside_cell_key(con: duckdb.DuckDBPyConnection, runs: int, goals: Goals) -> None:
    """The task on which R package cellKey was measured: 1 M records, region x industry x sex with all margins."""
    top3 = "epsilon := [1, 0.5, 0.2], fp := 1000, p_small := 0.2, p_large := 0.1"
    cube = "ROLLUP (r2, r3), CUBE (i2, sex)"
    tasks = {
        "counts, all margins": (f"SELECT r2, r3, i2, sex, sdc_count(record_key) AS n FROM firms GROUP BY {cube}", 0.2),
        "top-3 flex magnitude, region x industry": (
            f"SELECT r2, r3, i2, sdc_sum(turnover, record_key, {top3}) AS x FROM firms "
            "GROUP BY ROLLUP (r2, r3), CUBE (i2)",
            2.0,
        ),
        "top-3 flex magnitude, all margins": (
            f"SELECT r2, r3, i2, sex, sdc_sum(turnover, record_key, {top3}) AS x FROM firms GROUP BY {cube}",
            2.0,
        ),
    }
    table = Table(
        title="Beside cellKey, 1 M records (measured there: counts 4.4 CPU s; a top-3 magnitude 145 + 32 CPU s, 4 GiB)",
        title_justify="left",
    )
    for heading in ("task", "cells", "s", "CPU s"):
        table.add_column(heading, justify="left" if heading == "task" else "right")
    for name, (query, limit) in tasks.items():
        cells = arrow(con, query).num_rows
        wall, cpu = [], []
        for _ in range(runs):
            start, start_cpu = time.perf_counter(), time.process_time()
            arrow(con, query)
            wall.append(time.perf_counter() - start)
            cpu.append(time.process_time() - start_cpu)
        seconds = statistics.median(wall)
        table.add_row(name, f"{cells}", f"{seconds:.3f}", f"{statistics.median(cpu):.3f}")
        goals.at_most(f"beside cellKey, {name}", seconds, limit, " s")
    console.print(table)


def main() -> None:
    """Run all sections and print the goals."""
    parser = argparse.ArgumentParser(description="What cell-key protection costs.")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table of people")
    parser.add_argument("--runs", type=int, default=7, help="interleaved runs of each query")
    parser.add_argument("--quick", action="store_true", help="1 million rows, 3 runs")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--peak-memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak_memory_of:
        print_peak_memory(options.file, options.peak_memory_of)
        return
    rows, runs = (1_000_000, 3) if options.quick else (options.rows, options.runs)
    start = time.perf_counter()
    goals = Goals()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.duckdb"
        con = sdcduck.connect(file)
        console.print(
            f"sdcduck {version('sdcduck')}, DuckDB {duckdb.__version__}, Python {platform.python_version()}, "
            f"{platform.machine()}, {os.cpu_count()} cores; {rows:,} rows, {runs} interleaved runs"
        )
        make_people(con, rows)
        make_firms(con, 1_000_000)
        con.execute("CHECKPOINT")
        console.print(f"data made in {time.perf_counter() - start:.0f} s")
        bench_planning(con)
        bench_counts(con, runs, goals)
        bench_sums(con, runs, goals)
        bench_ptables(con, goals)
        bench_beside_cell_key(con, runs, goals)
        con.close()
        bench_memory(file, goals)
    console.print("\nGoals", style="bold")
    for line in goals.lines:
        console.print(line)
    console.print(f"done in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
