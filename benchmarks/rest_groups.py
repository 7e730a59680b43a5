"""What a rest group costs, beside a plain count of the same categories.

    python benchmarks/rest_groups.py                 ten million records, half a minute
    python benchmarks/rest_groups.py --records 1000000

Categories are as frequent as words: most of them are rare. Processor time; the best of three.
"""

from __future__ import annotations

import argparse
import time

import duckdb
from rich.console import Console
from rich.table import Table

import sdcduck

QUESTIONS = {
    "count(*) by category": "SELECT category, count(*) FROM records GROUP BY category",
    "count(DISTINCT person) by category": "SELECT category, count(DISTINCT person) FROM records GROUP BY category",
    "rest group": "SELECT category, count(*) FROM sdc_rest_group('records', ['category']) GROUP BY category",
    "rest group, of persons": "SELECT category, count(*) FROM sdc_rest_group('records', ['category'], "
    "unit := 'person') GROUP BY category",
    "rest group, nested": "SELECT category, count(*) FROM sdc_rest_group('records', ['region', 'category'], "
    "nested := true) GROUP BY category",
}


def seconds(con: duckdb.DuckDBPyConnection, question: str) -> float:
    """Processor time of the fastest of three runs."""
    found = []
    for _ in range(3):
        start = time.process_time()
        con.execute(question).fetchall()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Costs of rest groups.")
    parser.add_argument("--records", type=int, default=10_000_000)
    records = parser.parse_args().records
    con = sdcduck.connect()
    con.execute(
        f"""CREATE TABLE records AS SELECT range // 3 AS person, 'r' || hash(range) % 20 AS region,
        'c' || floor(1 / (1e-4 + (hash(2 * range) % 1000000) / 1e6))::INTEGER AS category FROM range({records})"""
    )
    table = Table(title=f"{records:,} records", title_justify="left")
    for heading in ("question", "CPU s", "categories"):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    for name, question in QUESTIONS.items():
        left = con.execute(f"SELECT count(*) FROM ({question})").fetchall()[0][0]
        table.add_row(name, f"{seconds(con, question):.2f}", f"{left:,}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
