"""Targeted record swapping of a million households: seconds, CPU seconds, and what was swapped.

The households live in 10 regions of 10 counties each, of 50 municipalities each; the second case has fewer persons at
risk. The goal is a minute for a million households. Nothing fails because of a clock.

    python benchmarks/record_swapping.py            about two minutes on two cores
    python benchmarks/record_swapping.py --quick    a tenth of the households
"""

from __future__ import annotations

import argparse
import time

import duckdb
from rich.console import Console
from rich.table import Table

import sdcduck

CALL = """'persons', household := 'household', hierarchy := ['region', 'county', 'municipality'],
    similar := [['size', 'kind'], ['size']], keys := {}, swaprate := 0.1, seed := 1"""


def make_persons(con: duckdb.DuckDBPyConnection, households: int) -> None:
    """The table `persons`: 2.8 of them in a household on average."""
    con.execute(f"""
        CREATE TABLE persons AS
        SELECT h AS household, m // 500 AS region, m // 50 AS county, m AS municipality, size,
            hash(7 * h + 1) % 6 AS kind, (hash(100 * h + member) % 90)::INTEGER AS age,
            least(hash(100 * h + member + 50) % 40, 12)::INTEGER AS origin
        FROM (
            SELECT h, hash(h) % 5000 AS m,
                [1, 1, 1, 2, 2, 2, 3, 4, 4, 5, 6][1 + (hash(h + 10000000) % 11)::INTEGER] AS size
            FROM range({households}) homes(h)
        ), unnest(range(size)) members(member)
    """)


def main() -> None:
    """Run all and print the goal."""
    parser = argparse.ArgumentParser(description="What record swapping costs.")
    parser.add_argument("--quick", action="store_true")
    households = 100_000 if parser.parse_args().quick else 1_000_000
    con = sdcduck.connect()
    make_persons(con, 1000)
    con.execute(f"FROM sdc_record_swap({CALL.format(['age'])})").fetchall()  # compiles
    con.execute("DROP TABLE persons")
    make_persons(con, households)
    table = Table(title=f"{households:,} households", title_justify="left")
    for heading in ("risk variables", "at risk", "swapped", "s", "CPU s", "goal"):
        table.add_column(heading, justify="left" if heading == "risk variables" else "right")
    for risk in (["age", "origin"], ["origin"]):
        call = CALL.format(risk)
        wall, cpu = time.perf_counter(), time.process_time()
        con.execute(f"CREATE OR REPLACE TABLE swapped AS FROM sdc_record_swap({call})")
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        report = f"SELECT at_risk, swapped FROM sdc_record_swap_report({call}) WHERE level IS NULL"
        at_risk, swapped = con.execute(report).fetchall()[0]
        table.add_row(", ".join(risk), f"{at_risk:,}", f"{swapped:,}", f"{wall:.1f}", f"{cpu:.1f}", "60")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
