"""Attacks on 10 000 synthetic records: what each finds, and what it costs in CPU seconds.

The synthetic records are a copy, half a copy, and fresh ones of the same population; the control has as many records.
A goal is 2 to 5 CPU seconds an attack, and to be no slower than anonymeter, which attacks the same tables as many times
in the same run if it is named. Its random numbers and its intervals are others: rates are alike, not the same. Nothing
fails because of a clock.

    python benchmarks/attacks.py                        a minute on two cores
    python benchmarks/attacks.py --quick                a tenth of the records
    python benchmarks/attacks.py --anonymeter PYTHON    PYTHON of an environment that has anonymeter; five minutes more
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import sdcduck

LINKED = [["age", "area", "job", "works"], ["income", "weight", "tax", "kids"]]
TRIED = 2000
ATTACKS = {
    "singling out, one column": "sdc_attack_singling_out({tables}, seed := 1)",
    "singling out, 3 columns": "sdc_attack_singling_out({tables}, mode := 'multivariate', seed := 1)",
    "linkability": f"sdc_attack_linkability({{tables}}, keys := {LINKED}, neighbours := 10, seed := 1)",
    "inference of a number": "sdc_attack_inference({tables}, sensitive := 'income', seed := 1)",
    "inference of a category": "sdc_attack_inference({tables}, sensitive := 'job', seed := 1)",
}
"""As many attacks each, `TRIED`, as is the default."""
PEER = {
    "singling out, one column": {"kind": "singling out", "mode": "univariate"},
    "singling out, 3 columns": {"kind": "singling out", "mode": "multivariate"},
    "linkability": {"kind": "linkability", "aux": LINKED, "neighbours": 10},
    "inference of a number": {"kind": "inference", "secret": "income"},
    "inference of a category": {"kind": "inference", "secret": "job"},
}
SUBSETS = "sdc_dcr_subsets({tables}, seed := 1)"
HEADINGS = ("records", "attack", "attacked", "control", "random", "modal", "risk interval", "CPU s", "s")
BESIDE = ("attacked", "control", "random", "risk interval", "s", "times faster")


def make_people(con: duckdb.DuckDBPyConnection, name: str, people: int, seed: int) -> None:
    """A table of people, with eight columns of all kinds."""
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 95, people)
    income = np.exp(generator.normal(7 + age / 80, 0.6, people)).round(0)
    table = pa.table(
        {
            "age": age,
            "income": income,
            "tax": (income * generator.uniform(0.1, 0.4, people)).round(0),
            "area": generator.geometric(0.05, people),
            "job": pa.array([f"job {k}" for k in generator.geometric(0.2, people) * 10 + age // 25]),
            "weight": generator.normal(70, 12, people).round(1),
            "kids": generator.poisson(1.3, people),
            "works": age < generator.integers(55, 70, people),
        }
    )
    con.register("made", table)
    con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM made").fetchall()
    con.unregister("made")


def main() -> None:
    """Run all and print the goal."""
    parser = argparse.ArgumentParser(description="What attacks on synthetic data find and cost.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--anonymeter", metavar="PYTHON", help="of an environment that has anonymeter")
    options = parser.parse_args()
    people = 1_000 if options.quick else 10_000
    con = sdcduck.connect()
    con.execute("SET enable_progress_bar = false")
    for place, name in enumerate(("original", "control", "fresh")):
        make_people(con, name, people, place)
    con.execute("CREATE TABLE half AS FROM original WHERE rowid % 2 = 0 UNION ALL FROM fresh WHERE rowid % 2 = 1")
    for call in (*ATTACKS.values(), SUBSETS):  # compiles
        few = ", ".join(f"'(FROM {name} LIMIT 50)'" for name in ("original", "half", "control"))
        con.execute(f"FROM {call.format(tables=few)}").fetchall()
    table = Table(title=f"{people:,} records each; goal: 2 to 5 CPU s an attack", title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("records", "attack") else "right")
    beside = Table(title="anonymeter, on the same tables", title_justify="left")
    for heading in (*HEADINGS[:2], *BESIDE):
        beside.add_column(heading, justify="left" if heading in ("records", "attack") else "right")
    for label, synthetic in (("a copy", "original"), ("half a copy", "half"), ("fresh", "fresh")):
        tables = f"'original', '{synthetic}', 'control'"
        seconds = {}
        for attack, call in ATTACKS.items():
            figures = "attack_rate, control_rate, baseline_rate, modal_rate, risk, risk_low, risk_high"
            row, wall, cpu = timed(con, f"SELECT {figures} FROM {call.format(tables=tables)}")
            *rates, _, low, high = row
            shown = ["" if rate is None else f"{rate:.3f}" for rate in rates]
            table.add_row(label, attack, *shown, f"{low:.3f} to {high:.3f}", f"{cpu:.2f}", f"{wall:.2f}")
            seconds[attack] = wall
        figures = "share, expected, corrected_low, corrected_high"
        row, wall, cpu = timed(con, f"SELECT {figures} FROM {SUBSETS.format(tables=tables)} WHERE largest")
        shown = [f"{row[0]:.3f}", "", f"{row[1]:.3f}", "", f"{row[2]:.3f} to {row[3]:.3f}"]
        table.add_row(label, "largest share of 21 subsets", *shown, f"{cpu:.2f}", f"{wall:.2f}", end_section=True)
        for attack, figures in by_anonymeter(con, options.anonymeter, synthetic):
            beside.add_row(label, attack, *peer_row(figures, seconds[attack]))
    console = Console(width=120)
    console.print(table)
    console.print(beside if options.anonymeter else "anonymeter was not asked: see --anonymeter")


def by_anonymeter(
    con: duckdb.DuckDBPyConnection, python: str | None, synthetic: str
) -> list[tuple[str, dict[str, Any]]]:  # fmt: skip
    """What anonymeter finds, by attack; nothing without it."""
    if python is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        for name, table in (("original", "original"), ("synthetic", synthetic), ("control", "control")):
            con.execute(f"COPY {table} TO '{folder}/{name}.csv'")
        calls = json.dumps([{**call, "attacks": TRIED} for call in PEER.values()])
        command = [python, str(Path(__file__).with_name("anonymeter_attacks.py")), folder, calls]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return list(zip(PEER, map(json.loads, said.splitlines()), strict=True))


def peer_row(figures: dict[str, Any], ours: float) -> list[str]:
    """The cells of anonymeter for one attack."""
    seconds = [f"{figures['seconds']:.2f}", f"{figures['seconds'] / ours:.1f}"]
    if "problem" in figures:
        return ["", "", "", "none found", *seconds]
    _, low, high = figures["risk"]
    return [*(f"{rate:.3f}" for rate in figures["rates"]), f"{low:.3f} to {high:.3f}", *seconds]


def timed(con: duckdb.DuckDBPyConnection, query: str) -> tuple[tuple[float | None, ...], float, float]:
    """The row of a query, and its seconds on the clock and of the processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    (row,) = con.execute(query).fetchall()
    return row, time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    main()
