"""Trips by SQL: CPU seconds from points to synthetic trips. Nothing fails because of a clock.

Trips between the hubs of a city on a grid of 128 x 128 cells, with seeds. The goal of ten million points to cells, a
model and 100,000 trips is 60 s.

    python benchmarks/trips.py            ten million points
    python benchmarks/trips.py --quick    one million
"""

from __future__ import annotations

import argparse
import resource
import time

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import sdcduck

STEPS = 40
GRID = "sdc_trips_grid('points', 'trip', box := [0, 0, 128, 128], resolution := 128, min_units := 3)"
STATEMENTS = {
    "points to cells": f"CREATE OR REPLACE TABLE cells AS FROM {GRID}",
    "model and 100,000 trips": "CREATE OR REPLACE TABLE made AS FROM "
    "sdc_trips_synthesize('cells', n := 100000, seed := 1)",
    "quality of the real ones": "FROM sdc_trips_quality('cells', distance := 'plane')",
    "quality of the synthetic ones": "FROM sdc_trips_quality('made', distance := 'plane')",
    "leakage": "FROM sdc_trips_leakage('made', 'cells')",
    "flows by hour": "FROM sdc_trips_flows('(SELECT * REPLACE (make_timestamp(t * 60000000) AS t) FROM cells)')",
}


def make_points(con: duckdb.DuckDBPyConnection, count: int) -> None:
    """The table `points`: trips between hubs, with a little noise at each point."""
    chance = np.random.default_rng(1)
    trips = count // STEPS
    hubs = chance.uniform(10, 118, (60, 2))
    chosen = chance.choice(60, (2, trips), p=chance.dirichlet(np.ones(60)))
    ends = hubs[chosen] + chance.normal(scale=2, size=(2, trips, 2))
    share = np.linspace(0, 1, STEPS)
    points = ends[0][:, None] * (1 - share)[:, None] + ends[1][:, None] * share[:, None]
    points = np.clip(points + chance.normal(scale=0.1, size=points.shape), 0, 128).reshape(-1, 2)
    begun = np.repeat(chance.integers(0, 1440, trips), STEPS)
    columns = {"trip": np.repeat(np.arange(trips), STEPS), "lon": points[:, 0], "lat": points[:, 1]}
    con.register("made_points", pa.table({**columns, "t": begun + np.tile(np.arange(STEPS), trips)}))
    con.execute("CREATE OR REPLACE TABLE points AS FROM made_points")
    con.unregister("made_points")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one million points")
    count = 1_000_000 if parser.parse_args().quick else 10_000_000
    table = Table("", "seconds", "CPU seconds", title=f"Trips of {count:,} points")
    with sdcduck.connect(secret="the secret of the benchmark") as con:
        make_points(con, count)
        for what, statement in STATEMENTS.items():
            began, used = time.perf_counter(), time.process_time()
            con.execute(statement).fetchall()
            table.add_row(what, f"{time.perf_counter() - began:.1f}", f"{time.process_time() - used:.1f}")
    console = Console()
    console.print(table)
    console.print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB")


if __name__ == "__main__":
    main()
