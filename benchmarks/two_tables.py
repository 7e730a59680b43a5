"""What the guard costs where a question reads two tables of one population: persons, and three visits of each.

Protected answers beside plain ones, under each method that answers such questions; seeded, interleaved, ratios within a
run and their medians. Processor time of the whole process, both of DuckDB's threads included, so that what else the
machine does hardly counts. Nothing here fails because of a clock: the goals are printed as met or missed.

    python benchmarks/two_tables.py               10 million persons and 30 million visits, 5 runs, 10 GB of memory
    python benchmarks/two_tables.py --rows 1000000
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import duckdb
from cell_key import Goals, arrow, console, figures

import sdcduck
from sdcduck.guard import Guard
from sdcduck.guard.opening import locked

METHODS = {
    "cell_key": "method := 'cell_key'",
    "threshold": "method := 'threshold', min_units := 5",
    "rounding": "method := 'rounding', base := 5",
}

QUESTIONS = {
    "persons of visits": """SELECT region, count(DISTINCT persons.id) AS n FROM persons JOIN visits USING (id)
        GROUP BY region""",
    "visits by what persons are": "SELECT region, count(*) AS n FROM persons JOIN visits USING (id) GROUP BY region",
    "sums by what persons are": """SELECT region, sum(cost) AS c FROM persons JOIN visits USING (id)
        GROUP BY region""",
    "by both": """SELECT region, ward, count(*) AS n FROM persons JOIN visits USING (id) WHERE age < 50
        GROUP BY region, ward""",
    "IN": """SELECT region, count(*) AS n FROM persons WHERE id IN (SELECT id FROM visits WHERE ward = 3)
        GROUP BY region""",
    "EXISTS": """SELECT region, sum(income) AS s FROM persons
        WHERE EXISTS (SELECT 1 FROM visits WHERE visits.id = persons.id AND ward < 10) GROUP BY region""",
    "NOT EXISTS": """SELECT region, count(*) AS n FROM persons
        WHERE NOT EXISTS (SELECT 1 FROM visits WHERE visits.id = persons.id AND ward < 10) GROUP BY region""",
    "by how many they have": """SELECT n, count(*) AS persons FROM (SELECT id, count(*) AS n FROM visits GROUP BY id)
        GROUP BY n""",
    "by the first": """SELECT first_day // 30 AS month, count(*) AS persons
        FROM (SELECT id, min(day) AS first_day FROM visits GROUP BY id) GROUP BY month""",
    "with how many they have": """SELECT region, n, count(*) AS persons FROM persons
        JOIN (SELECT id, count(*) AS n FROM visits GROUP BY id) AS v USING (id) GROUP BY region, n""",
}
"""What analysts ask of two tables of one population."""


def prepare(con: duckdb.DuckDBPyConnection, rows: int, method: str) -> None:
    """Persons, and their visits in no order; record keys are plain hashes, the same for a person in both tables."""

    def pick(salt: int, size: int, of: str = "i") -> str:
        return f"(hash(32 * {of} + {salt}) % {size})::INTEGER"

    con.execute(f"""
        CREATE TABLE persons AS SELECT i::INTEGER AS id, {pick(1, 20)} AS region, {pick(2, 90)} AS age,
            {pick(3, 100_000)} AS income, {pick(9, 100_000_000)} AS record_key FROM range({rows}) numbers(i);
        CREATE TABLE visits AS SELECT * REPLACE ({pick(9, 100_000_000, "id")} AS record_key) FROM (
            SELECT {pick(4, rows)} AS id, {pick(5, 40)} AS ward, {pick(6, 730)} AS day, {pick(7, 5000)} AS cost,
                0 AS record_key FROM range({3 * rows}) numbers(i))
    """)
    for table, dimensions, measure in (
        ("persons", "['region', 'age']", "income"),
        ("visits", "['ward', 'day']", "cost"),
    ):
        con.execute(f"""FROM sdc_protect('{table}', unit := 'id', dimensions := {dimensions}, measures := ['{measure}'],
            population := 'persons', {METHODS[method]})""").fetchall()


def measured(plain: duckdb.DuckDBPyConnection, one: Guard, query: str, runs: int) -> tuple[float, float, float]:
    """Processor seconds of the plain query and of the question, and the median of the ratios within a run."""
    rewritten = one.rewrite(query)
    seconds: dict[str, list[float]] = {query: [], rewritten: []}
    for run in range(-1, runs):
        for text in (query, rewritten) if run % 2 else (rewritten, query):
            start = time.process_time()
            arrow(plain, text)
            if run >= 0:
                seconds[text].append(time.process_time() - start)
    base, guarded = seconds[query], seconds[rewritten]
    ratio = statistics.median(a / b for a, b in zip(guarded, base, strict=True))
    return statistics.median(base), statistics.median(guarded), ratio


def main() -> None:
    """Ask all questions under all methods."""
    parser = argparse.ArgumentParser(description="What the guard costs where a question reads two tables.")
    parser.add_argument("--rows", type=int, default=10_000_000, help="persons; visits are three times as many")
    parser.add_argument("--runs", type=int, default=5, help="runs of each query")
    parser.add_argument("--method", choices=METHODS, action="append", help="only this method")
    options = parser.parse_args()
    console.print(
        f"sdcduck {version('sdcduck')}, DuckDB {duckdb.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, {os.cpu_count()} cores; {options.rows:,} persons, {options.runs} runs"
    )
    goals = Goals()
    for method in options.method or METHODS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "benchmark.duckdb")
            with sdcduck.connect(path) as con:
                prepare(con, options.rows, method)
            one = sdcduck.open_guard(path)
            plain = duckdb.connect(str(path), read_only=True, config=locked())  # the instance that the guard asks
            table = figures(f"{method}: processor time", ["plain, ms", "guarded, ms", "guarded / plain"])
            for name, query in QUESTIONS.items():
                if method == "rounding" and "sum(" in query:
                    continue  # it answers counts
                base, guarded, ratio = measured(plain, one, query, options.runs)
                table.add_row(name, f"{1000 * base:.0f}", f"{1000 * guarded:.0f}", f"{ratio:.2f}")
                goals.at_most(f"{method}, {name}, guarded to plain", ratio, 1.5)
            console.print(table)
            plain.close()
            one.close()
    console.print("\nGoals", style="bold")
    for line in goals.lines:
        console.print(line)


if __name__ == "__main__":
    main()
