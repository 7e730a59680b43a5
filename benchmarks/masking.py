"""Masking by SQL: seconds, CPU seconds, and what is lost. Nothing fails because of a clock.

Records of ten columns from a seeded mixture of forty clusters. sdcMicro 5.8 took 0.83 s for 10,000 of them and 22.6 s
for 50,000 (R, one thread, another machine).

    python benchmarks/masking.py            some two minutes on two cores
    python benchmarks/masking.py --quick    without the million records
"""

from __future__ import annotations

import argparse
import time

import duckdb
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import sdcduck

COLUMNS = [f"x{place}" for place in range(10)]
CASES = [
    ("mdav", 10_000, 0, "0.2"),
    ("mdav", 50_000, 0, "4"),
    ("rmd", 10_000, 0, ""),
    ("vmdav", 10_000, 0, ""),
    ("swap", 1_080, 0, "0.5"),
    ("swap", 10_000, 0, ""),
    ("decompose", 1_080, 0, ""),
    ("optimal", 1_000_000, 0, ""),
    ("mdav", 1_000_000, 5_000, "60"),
]
"""Method, records, records of a stratum (0: there is one), and the goal in seconds."""


def make_records(con: duckdb.DuckDBPyConnection, count: int, stratum: int) -> None:
    """The table `records`."""
    chance = np.random.default_rng(1)
    centers = chance.normal(scale=3, size=(40, len(COLUMNS)))
    values = centers[chance.integers(0, 40, count)] + chance.normal(size=(count, len(COLUMNS)))
    strata = np.arange(count) // stratum if stratum else np.zeros(count, np.int64)
    columns = {"id": np.arange(count), "stratum": strata, **dict(zip(COLUMNS, values.T, strict=True))}
    con.register("made", pa.table(columns))
    con.execute("CREATE OR REPLACE TABLE records AS FROM made")
    con.unregister("made")


KEYS = ["age", "born", "region", "sex", "school"]
HIERARCHIES = (
    """{'age': [2, 4, 8, 16], 'born': ['quarter', 'year'], 'region': 'regions', 'school': {'cut': [1]}, 'sex': []}"""
)


def make_persons(con: duckdb.DuckDBPyConnection, count: int) -> None:
    """The table `persons`, of skewed keys with some 90,000 combinations, and `regions`."""
    chance = np.random.default_rng(2)
    columns = {
        "age": 18 + (chance.random((count, 3)).sum(axis=1) * 25).astype(np.int64),
        "month": (chance.random(count) * chance.random(count) * 8).astype(np.int64),
        "region": (chance.random(count) * chance.random(count) * 12).astype(np.int64),
        "sex": chance.integers(0, 2, count),
        "school": 10 + (chance.random(count) * chance.random(count) * 12).astype(np.int64),
    }
    con.register("made", pa.table(columns))
    con.execute(
        "CREATE OR REPLACE TABLE persons AS SELECT * EXCLUDE (month) REPLACE ('r' || region AS region, "
        "sex = 1 AS sex, school::VARCHAR AS school), (DATE '2020-01-01' + (30 * month)::INTEGER) AS born FROM made"
    )
    con.unregister("made")
    con.execute(
        "CREATE OR REPLACE TABLE regions AS SELECT 'r' || i AS child, 'part ' || i // 3 AS parent FROM range(12) r(i) "
        "UNION ALL SELECT DISTINCT 'part ' || i // 3, 'half ' || i // 6 FROM range(12) r(i)"
    )


def anonymize(con: duckdb.DuckDBPyConnection, count: int) -> Table:
    """What a lattice of 576 nodes takes; goal: 5 s for a million records."""
    make_persons(con, count)
    combinations = con.execute(f"SELECT count(*) FROM (SELECT DISTINCT {', '.join(KEYS)} FROM persons)").fetchall()[0][
        0
    ]
    title = f"Anonymity, {count:,} records of 5 keys, {combinations:,} combinations, goal 5 s"
    table = Table(title=title, title_justify="left")
    for heading in ("cost", "k", "limit", "s", "CPU s", "nodes", "searched", "suppressed"):
        table.add_column(heading, justify="left" if heading == "cost" else "right")
    for cost in ("entropy", "loss", "discernibility"):
        for k, limit in ((3, 0.05), (10, 0.05), (10, 0)):
            arguments = f"{KEYS}, k := {k}, cost := '{cost}', suppress_limit := {limit}, hierarchies := {HIERARCHIES}"
            wall, cpu = time.perf_counter(), time.process_time()
            con.execute(f"CREATE OR REPLACE TABLE masked AS FROM sdc_anonymize('persons', {arguments})")
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            nodes, searched, suppressed = con.execute(
                "SELECT count(*), count(*) FILTER (searched), max(suppressed) FILTER (chosen) "
                f"FROM sdc_anonymize_lattice('persons', {arguments})"
            ).fetchall()[0]
            numbers = (f"{wall:.2f}", f"{cpu:.2f}", str(nodes), str(searched), f"{suppressed:,}")
            table.add_row(cost, str(k), f"{limit:g}", *numbers)
    return table


SUPPRESSED = [((2, 5, 8, 10, 20, 100), "5"), ((2, 3, 5, 7, 8, 9), "5"), ((20,) * 6, "")]
"""Values of each of six keys of 100,000 records, and the goal in seconds."""


def local_suppression(con: duckdb.DuckDBPyConnection) -> Table:
    """What taking out single values costs, and how many they are."""
    table = Table(title="Local suppression, 100,000 records, 6 keys, k = 3", title_justify="left")
    for heading in ("method", "values of the keys", "s", "CPU s", "rare", "suppressed", "goal s"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    chance = np.random.default_rng(1)
    names = [f"k{place}" for place in range(6)]
    for levels, goal in SUPPRESSED:
        shares = [1 / np.arange(1, level + 1) for level in levels]
        made = [
            chance.choice(level, 100_000, p=share / share.sum()) for level, share in zip(levels, shares, strict=True)
        ]
        con.register("made", pa.table({"id": np.arange(100_000), **dict(zip(names, made, strict=True))}))
        con.execute("CREATE OR REPLACE TABLE records AS FROM made")
        con.unregister("made")
        rare = con.execute(f"SELECT below_k FROM sdc_k_anonymity('records', {names})").fetchall()[0][0]
        for method in ("sdcmicro", "best"):
            call = f"sdc_local_suppress('{{}}', {names}, id := 'id', method := '{method}')"
            con.execute(f"FROM {call.format('(FROM records LIMIT 100)')}").fetchall()  # compiles
            wall, cpu = time.perf_counter(), time.process_time()
            con.execute(f"CREATE OR REPLACE TABLE masked AS FROM {call.format('records')}")
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            count = con.execute("SELECT sum(suppressed) FROM masked").fetchall()[0][0]
            table.add_row(method, str(levels), f"{wall:.2f}", f"{cpu:.2f}", f"{rare:,}", f"{count:,}", goal)
    return table


KEYED = [
    ("k_noise", "SELECT id, sdc_k_noise(x0, 0.5, id) AS x0 FROM records"),
    ("k_noise_records", "FROM sdc_k_noise_records('records', {'x0': 0.5}, id := 'id')"),
    ("k_noise_delta", "FROM sdc_k_noise_delta('records', 'x0', k := 10)"),
    ("k_pram", "FROM sdc_k_pram('records', 'x0', k := 10, id := 'id')"),
    ("k_pram, swap", "FROM sdc_k_pram('records', 'x0', k := 10, method := 'swap', id := 'id')"),
    ("local_k", "FROM sdc_local_k('records', 'records', 0.5, 'x0')"),
    ("pram", "FROM sdc_pram('records', ['c0', 'c1'], id := 'id')"),
    ("rank_swap", "FROM sdc_rank_swap('records', ['x0', 'x1'], id := 'id')"),
    ("mask_risk", "FROM sdc_mask_risk('records', '(SELECT id, x0 + x2 / 10 AS x0, x1 FROM records)', id := 'id')"),
    ("shuffle", "FROM sdc_shuffle('records', ['x0', 'x1'], predictors := ['x2'], id := 'id')"),
    *(
        (f"add_noise, {method}", f"FROM sdc_add_noise('records', ['x0', 'x1', 'x2'], '{method}', id := 'id')")
        for method in ("additive", "correlated", "correlated2", "restricted", "romm", "outdect")
    ),
]
"""Name and query of what chance changes."""


def chance_table(con: duckdb.DuckDBPyConnection, count: int) -> Table:
    """What noise, swaps and post randomisation take."""
    table = Table(title=f"By chance, {count:,} records", title_justify="left")
    for heading in ("function", "s", "CPU s"):
        table.add_column(heading, justify="left" if heading == "function" else "right")
    for name, query in KEYED:
        times = []
        for rows in (100, count):  # the first time compiles
            make_records(con, rows, 0)
            codes = "(floor(x0) // 2)::INTEGER AS c0, (id * id % 23)::INTEGER AS c1"
            con.execute(f"CREATE OR REPLACE TABLE records AS SELECT id, x0, x1, x2, {codes} FROM records")
            wall, cpu = time.perf_counter(), time.process_time()
            con.execute(f"CREATE OR REPLACE TABLE masked AS {query}")
            times = [time.perf_counter() - wall, time.process_time() - cpu]
        table.add_row(name, *(f"{seconds:.2f}" for seconds in times))
    return table


SURVEY = """CREATE OR REPLACE TABLE survey AS
SELECT i AS id, i * 7919 % 61 AS age, i * 31 % 17 AS region, i * 13 % 5 AS job, (i * 104729 % 1000) / 10 AS income,
    i % 7 = 0 AS ill, i % 50 AS stratum, i % 2000 AS psu, 1.0 + i % 3 AS w, ['a', 'b', 'c'][i * 97 % 3 + 1] AS kind
FROM range({count}) r(i)"""
MARGINS = [f"(SELECT {name}, 10 * sum(w) AS total FROM survey GROUP BY {name})" for name in ("region", "kind")]
SURVEY_CASES = [
    (
        "estimates, 3 measures in 17 domains", 1_000_000,
        """sdc_estimates('survey', ['income', 'ill', 'age'], domains := ['region'], weight := 'w', strata := 'stratum',
        psu := 'psu')""",
    ),
    ("raking to 2 margins", 1_000_000, f"sdc_rake('survey', 'w', {MARGINS})"),
    (
        "substitution and subsample", 70_000,
        """sdc_substitute_subsample('survey', weight := 'w', core := ['age', 'region'], extra := ['job', 'income'],
        substitute := ['age', 'job'], matching := ['age', 'income'], by := ['region'], calibrate := ['region', 'kind'],
        id := 'id')""",
    ),
    ("mdav with 2 categories", 10_000, "sdc_microaggregate('survey', ['age', 'income', 'kind', 'ill'], id := 'id')"),
    (
        "integral clusters, 5 x 2", 10_000,
        "sdc_integral_clusters('survey', ['age', 'income', 'job'], kappa := 5, c := 2, id := 'id')",
    ),
]  # fmt: skip
"""What is done, with how many records, and the call."""


def survey(console: Console) -> None:
    """What is done with a survey file, and what MDAV of categories costs."""
    table = Table(title="Estimates, treatment, clusters, categories", title_justify="left")
    for heading in ("what", "records", "s", "CPU s"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    con = sdcduck.connect()
    for what, count, call in SURVEY_CASES:
        for rows in (500, count):  # the first time it compiles
            con.execute(SURVEY.format(count=rows))
            wall, cpu = time.perf_counter(), time.process_time()
            con.execute(f"CREATE OR REPLACE TABLE made AS FROM {call}")
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        table.add_row(what, f"{count:,}", f"{wall:.2f}", f"{cpu:.2f}")
    console.print(table)


def main() -> None:
    """Run all and print the goals."""
    parser = argparse.ArgumentParser(description="What masking costs.")
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    con = sdcduck.connect()
    table = Table(title="Microaggregation, k = 3", title_justify="left")
    for heading in ("method", "records", "columns", "s", "CPU s", "lost %", "goal s"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for method, count, stratum, goal in CASES:
        if quick and count > 50_000:
            continue
        columns = COLUMNS[:1] if method == "optimal" else COLUMNS
        arguments = f"{columns}, k := 3, by := ['stratum'], method := '{method}', id := 'id'"
        call = f"FROM sdc_microaggregate('records', {arguments})"
        make_records(con, 100, 0)
        con.execute(call).fetchall()  # compiles
        make_records(con, count, stratum)
        wall, cpu = time.perf_counter(), time.process_time()
        con.execute(f"CREATE OR REPLACE TABLE masked AS {call}")
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        quality = f"sdc_microaggregate_quality('records', 'masked', {columns}, id := 'id')"
        lost = con.execute(f"SELECT il FROM {quality}").fetchall()[0][0]
        table.add_row(method, f"{count:,}", str(len(columns)), f"{wall:.2f}", f"{cpu:.2f}", f"{lost:.3f}", goal)
    console = Console(width=100)
    console.print(table)
    console.print(anonymize(con, 100_000 if quick else 1_000_000))
    console.print(local_suppression(con))
    console.print(chance_table(con, 50_000 if quick else 1_000_000))
    survey(console)


if __name__ == "__main__":
    main()
