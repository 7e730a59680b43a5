"""What synthetic records give away and what they keep, by the arguments of `sdc_synth_records`.

    python benchmarks/synthetic_copies.py            half a minute
    python benchmarks/synthetic_copies.py --records 20000 --seeds 1
    python benchmarks/synthetic_copies.py --income   incomes to the cent, a tenth 0, a tenth 2000, for wages

A survey of seven columns in which nearly every record is unique, and a holdout of as many records from the same law,
which the trees never saw. A share of copies above that of the holdout is what the trees give away. Figures are medians
over seeds, and the last column is processor time of a draw, fit included.
"""

from __future__ import annotations

import argparse
import statistics
import time

import duckdb
from rich.console import Console
from rich.table import Table

import sdcduck

ARGUMENTS = {
    "unique_copies := true": ", unique_copies := true",
    "defaults": "",
    "smoothing := 'none'": ", smoothing := 'none'",
    "unique_copies := true, minbucket := 20": ", unique_copies := true, minbucket := 20",
    "minbucket := 20": ", minbucket := 20",
    "minbucket := 50": ", minbucket := 50",
    "minbucket := 200": ", minbucket := 200",
    "smoothing := 'density'": ", smoothing := 'density'",
    "unique_copies := false": ", unique_copies := false",
    "method := 'independent'": ", method := 'independent'",
}


def measured(con: duckdb.DuckDBPyConnection, arguments: str, seed: int) -> tuple[float, ...]:
    """Of one file: shares of copies, of uniques and of a holdout, what it keeps, and what it cost."""
    start = time.process_time()
    con.execute(f"CREATE OR REPLACE TABLE drawn AS FROM sdc_synth_records('survey', seed := {seed}{arguments})")
    cpu = time.process_time() - start
    share = "100 * recreated_synthetic / synthetic_records, unique_recreated"
    copies, uniques = con.execute(f"SELECT {share} FROM sdc_synth_replicas('survey', 'drawn')").fetchall()[0]
    beside, _ = con.execute(f"SELECT {share} FROM sdc_synth_replicas('holdout', 'drawn')").fetchall()[0]
    utility = "FROM sdc_pmse('survey', 'drawn', interactions := 1, seed := 1)"
    pmse, ratio = con.execute(f"SELECT 1000 * pmse, pmse_ratio {utility}").fetchall()[0]
    amount = "wages IN (SELECT wages FROM survey GROUP BY wages HAVING count(*) = 1)"
    own = con.execute(f"SELECT 100 * avg(({amount})::INTEGER) FROM drawn").fetchall()[0][0]
    return copies, beside, uniques, own, pmse, ratio, cpu


WAGES = "(100 * (20 + age + hash(9 * range) % 20))::INTEGER"
INCOME = """(CASE hash(17 * range) % 10 WHEN 0 THEN 0 WHEN 1 THEN 2000 ELSE exp(6.5 + age / 60 + education / 5
    + sqrt(-2 * ln((1 + hash(19 * range) % 1000000) / 1000001)) * cos(hash(23 * range) % 6283 / 1000) / 2.5)
    END)::DECIMAL(12, 2)"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Copies and utility of synthetic records.")
    parser.add_argument("--records", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=7)
    parser.add_argument("--income", action="store_true")
    given = parser.parse_args()
    records = given.records
    con = sdcduck.connect()
    con.execute(
        f"""CREATE TABLE everyone AS SELECT range AS number,
        ['North', 'South', 'East'][1 + (hash(range) % 3)::BIGINT] AS region,
        (20 + hash(2 * range) % 60)::INTEGER AS age,
        hash(3 * range) % 2 = 0 AS sex, (age // 15 + hash(5 * range) % 4)::INTEGER AS education,
        (age // 10 + hash(7 * range) % 5)::INTEGER AS household,
        {INCOME if given.income else WAGES} AS wages, hash(11 * range) % 3 = 0 AS owner
        FROM range({2 * records})"""
    )
    for name, condition in (("survey", f"number < {records}"), ("holdout", f"number >= {records}")):
        con.execute(f"CREATE TABLE {name} AS SELECT * EXCLUDE (number) FROM everyone WHERE {condition}")
    table = Table(title=f"{records:,} records, 7 columns, {given.seeds} seeds", title_justify="left")
    headings = (
        *("arguments", "copies %", "of a holdout %", "uniques copied", "wages of one %"),
        *("pMSE x 1000", "pMSE ratio", "CPU s"),
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "arguments" else "right")
    for name, arguments in ARGUMENTS.items():
        found = [measured(con, arguments, seed) for seed in range(1, given.seeds + 1)]
        copies, beside, uniques, own, pmse, ratio, cpu = (statistics.median(one) for one in zip(*found, strict=True))
        table.add_row(
            name,
            f"{copies:.1f}",
            f"{beside:.1f}",
            f"{uniques:.0f}",
            f"{own:.1f}",
            f"{pmse:.3f}",
            f"{ratio:.2f}",
            f"{cpu:.2f}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
