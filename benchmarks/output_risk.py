"""What special uniques, output checks and reconstruction cost: medians on generated records.

A check of a table stands beside the plain table. Nothing fails because of a clock.

    python benchmarks/output_risk.py             two or three minutes on two cores
    python benchmarks/output_risk.py --rows N    other sizes of the tables (default 1,000,000)
"""

from __future__ import annotations

import argparse
import statistics
import time
from importlib.metadata import version

import duckdb
from rich.console import Console
from rich.table import Table

import sdcduck

console = Console(width=max(110, Console().width))
FOUR = ("county", "age", "sex", "born")
BY = ", ".join(FOUR)
COUNTS = f"SELECT {BY}, count(*) AS n FROM people GROUP BY CUBE ({BY})"
SUMS = f"SELECT {BY}, count(*) AS n, sum(income) AS income FROM people GROUP BY CUBE ({BY})"
TEN = "keys := [" + ", ".join(f"'k{place}'" for place in range(10)) + "]"
QUERIES = {
    "four-way table with margins, plain": (COUNTS, None),
    "the same, checked": (f"FROM sdc_check_table('{COUNTS}')", 0.3),
    "the same, checked, zeros ignored": (f"FROM sdc_check_table('{COUNTS}', zeros := 'ignore')", 0.3),
    "the same, with cells hidden": (f"FROM sdc_check_table('{COUNTS}', hide := true)", None),
    "with a sum, plain": (SUMS, None),
    "with a sum, checked for dominance": (f"FROM sdc_check_table('{SUMS}')", None),
    "the same, three records a firm": (f"FROM sdc_check_table('{SUMS}', contributor := 'firm')", None),
    "SUDA, 100,000 records of 10 keys": (f"SELECT sum(suda) FROM sdc_suda('typical', {TEN})", 30.0),
    "the same, nearly all of them unique": (f"SELECT sum(suda) FROM sdc_suda('rare', {TEN})", 30.0),
    "the same, at most 3 keys": (f"SELECT sum(suda) FROM sdc_suda('rare', {TEN}, max_size := 3)", None),
    "log-linear risk, all pairs of 6 keys": (
        "FROM sdc_model_risk('typical', keys := ['k0', 'k1', 'k2', 'k3', 'k4', 'k5'], fraction := 0.01)", None,
    ),
}  # fmt: skip


def make_tables(con: duckdb.DuckDBPyConnection, rows: int) -> None:
    """Records for tables, and records of ten keys: with few values each, and with many."""
    con.execute(f"""
        CREATE TABLE people AS
        SELECT i // 3 AS firm, (60 * pow((hash(i) % 100000) / 100000.0, 2))::INTEGER AS county,
            (hash(3 * i) % 18)::TINYINT AS age, (hash(5 * i) % 2)::TINYINT AS sex, (hash(7 * i) % 4)::TINYINT AS born,
            (hash(17 * i) % 20000)::INTEGER AS income
        FROM range({rows}) r(i)""")
    for table, sizes in (("typical", (20, 9, 2, 4, 3, 5, 4, 6, 3, 2)), ("rare", (60, 18, 2, 4, 6, 100, 8, 12, 3, 5))):
        keys = ", ".join(
            f"({size} * pow((hash({place + 1} * i + {place}) % 10007) / 10007.0, 2))::INTEGER AS k{place}"
            for place, size in enumerate(sizes)
        )
        con.execute(f"CREATE TABLE {table} AS SELECT {keys} FROM range(100000) r(i)")


def main() -> None:
    """Run all and print the times."""
    parser = argparse.ArgumentParser(description="What output checks and special uniques cost.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    con = sdcduck.connect(progress=False)
    make_tables(con, options.rows)
    console.print(f"sdcduck {version('sdcduck')}, DuckDB {duckdb.__version__}, tables of {options.rows:,} records")
    seconds: dict[str, list[tuple[float, float]]] = {}
    for _ in range(options.runs + 1):
        for name, (query, _goal) in QUERIES.items():
            start, begun = time.perf_counter(), time.process_time()
            con.execute(query).fetchall()
            seconds.setdefault(name, []).append((time.perf_counter() - start, time.process_time() - begun))
    table = Table(title="medians, the first run left out", title_justify="left")
    for heading in ("question", "seconds", "CPU seconds", "goal"):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    for name, (_, goal) in QUERIES.items():
        wall, cpu = (statistics.median(times[1:][run][part] for run in range(options.runs)) for part, times in
                     ((0, seconds[name]), (1, seconds[name])))  # fmt: skip
        table.add_row(name, f"{wall:.2f}", f"{cpu:.2f}", "" if goal is None else f"{goal:g}")
    console.print(table)


if __name__ == "__main__":
    main()
