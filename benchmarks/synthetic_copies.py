"""What synthetic records give away and what they keep, by the arguments of `sdc_synth_records`.

    python benchmarks/synthetic_copies.py            a few seconds
    python benchmarks/synthetic_copies.py --records 20000

A survey of seven columns in which nearly every record is unique, and a holdout of as many records from the same law,
which the trees never saw. A share of copies above that of the holdout is what the trees give away.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

import sdcduck

ARGUMENTS = {
    "defaults": "",
    "minbucket := 20": ", minbucket := 20",
    "minbucket := 50": ", minbucket := 50",
    "minbucket := 200": ", minbucket := 200",
    "smoothing := 'density'": ", smoothing := 'density'",
    "unique_copies := false": ", unique_copies := false",
    "unique_copies := false, minbucket := 20": ", unique_copies := false, minbucket := 20",
    "method := 'independent'": ", method := 'independent'",
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Copies and utility of synthetic records.")
    parser.add_argument("--records", type=int, default=4000)
    records = parser.parse_args().records
    con = sdcduck.connect()
    con.execute(
        f"""CREATE TABLE everyone AS SELECT range AS number,
        ['North', 'South', 'East'][1 + (hash(range) % 3)::BIGINT] AS region,
        (20 + hash(2 * range) % 60)::INTEGER AS age,
        hash(3 * range) % 2 = 0 AS sex, (age // 15 + hash(5 * range) % 4)::INTEGER AS education,
        (age // 10 + hash(7 * range) % 5)::INTEGER AS household,
        (100 * (20 + age + hash(9 * range) % 20))::INTEGER AS wages, hash(11 * range) % 3 = 0 AS owner
        FROM range({2 * records})"""
    )
    for name, condition in (("survey", f"number < {records}"), ("holdout", f"number >= {records}")):
        con.execute(f"CREATE TABLE {name} AS SELECT * EXCLUDE (number) FROM everyone WHERE {condition}")
    table = Table(title=f"{records:,} records, 7 columns", title_justify="left")
    for heading in ("arguments", "copies %", "of a holdout %", "uniques copied", "pMSE x 1000", "pMSE ratio"):
        table.add_column(heading, justify="left" if heading == "arguments" else "right")
    for name, arguments in ARGUMENTS.items():
        con.execute(f"CREATE OR REPLACE TABLE drawn AS FROM sdc_synth_records('survey', seed := 1{arguments})")
        share = "100 * recreated_synthetic / synthetic_records, unique_recreated"
        copies, uniques = con.execute(f"SELECT {share} FROM sdc_synth_replicas('survey', 'drawn')").fetchall()[0]
        beside, _ = con.execute(f"SELECT {share} FROM sdc_synth_replicas('holdout', 'drawn')").fetchall()[0]
        utility = "FROM sdc_pmse('survey', 'drawn', interactions := 1, seed := 1)"
        pmse, ratio = con.execute(f"SELECT 1000 * pmse, pmse_ratio {utility}").fetchall()[0]
        table.add_row(name, f"{copies:.1f}", f"{beside:.1f}", str(uniques), f"{pmse:.3f}", f"{ratio:.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
