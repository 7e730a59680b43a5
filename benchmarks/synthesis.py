"""Synthesis of a large table: the draw alone, as SQL end to end, and fifty releases in bounded memory; then records.

The table is as large as that of the paper (a school census: 3.5 million cells, nine tenths of them empty, 8.2 million
records). Medians; the seed is fixed; nothing fails because of a clock.

    python benchmarks/synthesis.py            about two minutes on two cores
    python benchmarks/synthesis.py --quick    a tenth of the cells
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

import sdcduck
from sdcduck.methods.synthesis.draws import draw_counts
from sdcduck.methods.synthesis.laws import Law
from sdcduck.methods.synthesis.tau import Histogram, Synthesis, expected_tau

console = Console(width=max(110, Console().width))
BY = "dimensions := ['school', 'year', 'ethnic', 'language', 'sex']"


def make_cells(con: duckdb.DuckDBPyConnection, cells: int) -> None:
    """The table `cells`: the tenth of all combinations that has records, with a skewed count."""
    con.execute(f"""
        CREATE TABLE cells AS
        SELECT (i // 350)::INTEGER AS school, (i // 25 % 14)::TINYINT AS year, (i // 5 % 5)::TINYINT AS ethnic,
               (i % 5)::TINYINT AS language, ['F', 'M'][1 + (hash(i) % 2)::BIGINT] AS sex,
               ceil(exp(1.6 + 1.7 * sqrt(-2 * ln(1 - (hash(32 * i) >> 11) / 9007199254740992.0))
                   * cos(2 * pi() * (hash(32 * i + 1) >> 11) / 9007199254740992.0)))::BIGINT AS n
        FROM range({cells}) numbers(i) WHERE hash(32 * i + 2) % 10 = 0
    """)


def make_records(con: duckdb.DuckDBPyConnection, records: int) -> None:
    """The table `records`: 15 columns of chance, for which trees grow as large as they can."""
    numbers = ", ".join(
        f"exp((hash(i * {k}) % 10000) / 3000.0) * (1 + (hash(i * {k - 1}) % 10000) / 2000.0) AS x{k}"
        for k in range(3, 11)
    )
    sizes = (2, 5, 10, 30, 100)
    texts = ", ".join(f"'c' || hash(i * {21 + k}) % {size} AS g{k}" for k, size in enumerate(sizes))
    con.execute(f"""
        CREATE TABLE records AS SELECT {numbers}, {texts}, (hash(i * 31) % 90)::TINYINT AS age,
            DATE '2020-01-01' + (hash(i * 11) % 1000)::INTEGER AS day
        FROM range({records}) numbers(i)
    """)


def median_seconds(action: Callable[[], object], times: int) -> float:
    """Median seconds, after one time that is not counted."""
    seconds = []
    for _ in range(times + 1):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def peak_memory(file: Path, query: str) -> tuple[float, float]:
    """Seconds and peak resident MiB of a query in a process of its own, read batch by batch."""
    child = [sys.executable, __file__, "--peak-memory-of", query, "--file", str(file)]
    seconds, kib = subprocess.run(child, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), int(kib) / 1024


def print_peak_memory(file: Path, query: str) -> None:
    con = sdcduck.connect(file, read_only=True)
    start = time.perf_counter()
    result = con.execute(query)
    reader = result.to_arrow_reader() if hasattr(result, "to_arrow_reader") else result.fetch_record_batch()
    for _ in reader:
        pass
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text().splitlines()
    print(seconds, next(line.split()[1] for line in status if line.startswith("VmHWM")))


def main() -> None:
    """Run all and print the goals."""
    parser = argparse.ArgumentParser(description="What synthesis costs.")
    parser.add_argument("--cells", type=int, default=3_500_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peak-memory-of", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak_memory_of:
        print_peak_memory(options.file, options.peak_memory_of)
        return
    cells = 350_000 if options.quick else options.cells
    table = Table(title=f"{cells:,} cells, a tenth of them not empty", title_justify="left")
    for heading in ("what", "s", "CPU s", "goal"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.duckdb"
        con = sdcduck.connect(file)
        console.print(
            f"sdcduck {version('sdcduck')}, DuckDB {duckdb.__version__}, Python {platform.python_version()}, "
            f"{os.cpu_count()} cores"
        )
        make_cells(con, cells)
        counts = con.execute("SELECT n FROM cells").fetchnumpy()["n"].astype(np.float64)
        console.print(f"{len(counts):,} cells with {int(counts.sum()):,} records")

        def line(what: str, action: Callable[[], object], goal: float | None, times: int = 5) -> None:
            cpu = time.process_time()
            seconds = median_seconds(action, times)
            cpu = (time.process_time() - cpu) / (times + 1)
            table.add_row(what, f"{seconds:.3f}", f"{cpu:.3f}", "" if goal is None else f"{goal:g}")

        def draw(model: int, sigma: float) -> Callable[[], object]:
            def column(value: float, dtype: type) -> np.ndarray:
                return np.full(len(counts), value, dtype=dtype)

            columns = (
                column(model, np.int8), counts, column(sigma, np.float64), column(0.5, np.float64),
                np.arange(len(counts)).astype(np.uint64), column(1, np.int64), column(7, np.int64),
            )  # fmt: skip
            return lambda: draw_counts(*columns)

        for name, model in (("poisson", 0), ("nbi", 1), ("pig", 2), ("delaporte", 3)):
            line(f"draw, {name}, sigma = 0.5", draw(model, 0.5), 0.1 if name == "nbi" else None)
        sql = f"CREATE OR REPLACE TEMP TABLE drawn AS FROM sdc_synth_table('cells', {BY}, freq := 'n', seed := 1, {{}})"
        for name, arguments, goal in (
            ("SQL, nbi", "sigma := 0.5", 0.5),
            ("SQL, multinomial", "model := 'multinomial'", None),
            ("SQL, records of nbi", "sigma := 0.5, records := true", None),
        ):
            line(name, lambda arguments=arguments: con.execute(sql.format(arguments)), goal, 3)
        line("SQL, nbi, m = 50, into a table", lambda: con.execute(sql.format("sigma := 0.5, m := 50")), 10, 1)
        histogram = Histogram.of(*np.unique(counts.astype(np.int64), return_counts=True), total=cells)
        for model, nu in (("nbi", None), ("pig", None), ("delaporte", 0.5)):
            law = Law(model, 0.5, nu)
            line(
                f"tau4(1, 0.5) of 50 releases, {model}",
                lambda law=law: expected_tau(histogram, Synthesis(law, m=50), 1, 0.5),
                None,
            )
        make_records(con, cells // 35)
        regressions = "{'x8': 'norm', 'x9': 'pmm', 'x10': 'normrank', 'g1': 'polyreg', 'age': 'normrank'}"
        for method, how, goals in (
            ("cart", "'cart'", (60, 5)),
            ("independent", "'independent'", (None, None)),
            ("bootstrap-noise", "'bootstrap-noise'", (None, None)),
            ("five regressions", regressions, (None, None)),
        ):
            # What is compiled and imported once is not what a model costs.
            few = "(FROM records LIMIT 5000)"
            con.execute(f"FROM sdc_synth_model('{method}', '{few}', method := {how})").fetchall()
            con.execute(f"FROM sdc_synth_records(model := '{method}', seed := 1)").fetchall()
            model = f"FROM sdc_synth_model('{method}', 'records', method := {how}, replace := true)"
            line(
                f"records: {cells // 35:,} x 15, {method}, model",
                lambda sql=model: con.execute(sql).fetchall(),
                goals[0],
                1,
            )
            rows = cells * 2 // 7
            drawn = f"FROM sdc_synth_records(model := '{method}', rows := {rows}, seed := 1)"
            some = f"CREATE OR REPLACE TEMP TABLE drawn AS {drawn}"
            line(f"records: {rows:,} from it", lambda sql=some: con.execute(sql), goals[1], 1)
        con.execute("DROP TABLE drawn; DROP TABLE records; DELETE FROM sdc.synth_models; CHECKPOINT")
        con.close()
        query = f"FROM sdc_synth_table('cells', {BY}, freq := 'n', seed := 1, sigma := 0.5, m := {{}})"
        for m in (1, 50):
            seconds, mib = peak_memory(file, query.format(m))
            table.add_row(f"m = {m}, fetched as Arrow, peak {mib:.0f} MiB", f"{seconds:.2f}", "", "")
    console.print(table)


if __name__ == "__main__":
    main()
