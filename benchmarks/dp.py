"""What differentially private statistics cost beside plain SQL: CPU seconds. Nothing fails because of a clock.

python benchmarks/dp.py            a minute on two cores
python benchmarks/dp.py --quick    on 100,000 records
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

import sdcduck
from sdcduck.guard import Guard
from sdcduck.methods.dp.calibration import gaussian_ratio
from sdcduck.methods.dp.mean_region import compared
from sdcduck.methods.dp.noise import LEAST_STEPS, grid_noise

PLAIN = """SELECT count(*) FILTER (region = 3), sum(CASE WHEN income > 10000 THEN 10000 ELSE income END),
    avg(CASE WHEN age > 100 THEN 100 ELSE age END) FROM people"""
RELEASED = """FROM sdc_dp_release('people', ['region = 3'], ['income'], ['age'],
    {'income': [0, 10000], 'age': [0, 100]}, 1, 1e-9)"""
REGION = """FROM sdc_dp_mean_region('people', ['age', 'income'], [[400, 0], [0, 9e6]], [50, 5000], 3, 1, 1e-9)"""


def cpu(run: Callable[[], object], times: int = 5) -> float:
    """The median of the CPU seconds of several runs."""
    taken = []
    for _ in range(times):
        began = time.process_time()
        run()
        taken.append(time.process_time() - began)
    return statistics.median(taken)


def calibration() -> Table:
    """What finding sigma takes."""
    table = Table("epsilon", "CPU ms", title="sdc_dp_sigma, analytic")
    for epsilon in (0.1, 1.0, 10.0):
        table.add_row(f"{epsilon:g}", f"{1000 * cpu(lambda at=epsilon: gaussian_ratio(at, 1e-5)):.2f}")
    return table


def noise() -> Table:
    """What a draw of OpenDP takes, and the quantile that the figures of a region need."""
    table = Table("what", "CPU ms", title="kernels")
    table.add_row("1,000 draws of noise", f"{1000 * cpu(lambda: grid_noise(4 * LEAST_STEPS, 1000)):.2f}")
    unit = [[1.0, 0.5, 0.0], [0.5, 4.0, 0.0], [0.0, 0.0, 9.0]]
    table.add_row("region of 3 columns", f"{1000 * cpu(lambda: compared(np.array(unit), 1000, 1e-3, 1, 1e-5)):.2f}")
    return table


def releases(con: duckdb.DuckDBPyConnection, records: int) -> Table:
    """A release beside the same numbers in plain SQL; both in turn."""
    con.execute(
        "CREATE TABLE people AS SELECT (hash(i) % 20)::INT AS region, (hash(i + 1) % 12000)::DOUBLE AS income, "
        f"(hash(i + 2) % 110)::INT AS age FROM range({records}) r(i)"
    )
    con.execute(PLAIN).fetchall()
    table = Table("question", "CPU s", "times plain", title=f"{records:,} records")
    taken: dict[str, list[float]] = {}
    for _ in range(5):
        for name, question in (("plain SQL", PLAIN), ("sdc_dp_release", RELEASED), ("sdc_dp_mean_region", REGION)):
            taken.setdefault(name, []).append(cpu(lambda asked=question: con.execute(asked).fetchall(), 1))
    plain = statistics.median(taken["plain SQL"])
    for name, seconds in taken.items():
        table.add_row(name, f"{statistics.median(seconds):.3f}", f"{statistics.median(seconds) / plain:.2f}")
    return table


def matrices(con: duckdb.DuckDBPyConnection, records: int) -> Table:
    """What a covariance matrix of ten columns costs beside the same in plain SQL; all in turn."""
    names = [f"x{place}" for place in range(10)]
    columns = ", ".join(f"(hash(i + {place}) % 1000) / 1000.0 AS {name}" for place, name in enumerate(names))
    con.execute(f"CREATE TABLE wide AS SELECT i % 2 AS arm, {columns} FROM range({records}) r(i)")
    pairs = ", ".join(f"covar_samp({a}, {b})" for place, a in enumerate(names) for b in names[place:])
    shared = f"columns := {names}, bounds := {{{', '.join(f'{name}: [0, 1]' for name in names)}}}, epsilon := 1"
    questions = {
        "plain SQL": f"SELECT {pairs} FROM wide",
        "sdc_dp_covariance": f"FROM sdc_dp_covariance('wide', {shared})",
        "sdc_dp_mean_test": f"FROM sdc_dp_mean_test('wide', by := 'arm', groups := ['0', '1'], {shared})",
        "sdc_pca": f"FROM sdc_pca('wide', mechanism := 'analyze_gauss', {shared})",
    }
    table = Table("question", "CPU s", "times plain", title=f"{records:,} records of ten columns")
    taken: dict[str, list[float]] = {}
    for _ in range(5):
        for name, question in questions.items():
            taken.setdefault(name, []).append(cpu(lambda asked=question: con.execute(asked).fetchall(), 1))
    plain = statistics.median(taken["plain SQL"])
    for name, seconds in taken.items():
        table.add_row(name, f"{statistics.median(seconds):.3f}", f"{statistics.median(seconds) / plain:.2f}")
    return table


def guarded(con: duckdb.DuckDBPyConnection, records: int) -> Table:
    """Questions to a guard beside the same ones in plain SQL over the same records, each of them a new one."""
    questions = {
        "count and sum in 20 groups": "SELECT region, count(*), sum(income) FROM {} WHERE age > {} GROUP BY region",
        "mean of all": "SELECT avg(income) FROM {} WHERE age > {}",
        "deviation in 20 groups": "SELECT region, stddev(income) FROM {} WHERE age > {} GROUP BY region",
        "median of all": "SELECT median(income) FROM {} WHERE age > {}",
        "subtotals of 20 groups": "SELECT region, count(*) FROM {} WHERE age > {} GROUP BY ROLLUP (region)",
    }
    con.execute(
        f"""CREATE OR REPLACE TABLE asked AS SELECT i AS id, i // 2 AS owner, i % 20 AS region, i * 7 % 90 AS age,
        (hash(i) % 10000)::DOUBLE AS income FROM range({records}) t(i)"""
    )
    table = Table("question", "CPU s", "times plain", title=f"A guard with noise over {records:,} records")
    with tempfile.TemporaryDirectory() as folder:
        register = Path(folder) / "register.duckdb"
        con.execute(f"ATTACH '{register}' AS r; CREATE TABLE r.people AS FROM asked")
        con.execute("CREATE TABLE r.visits AS SELECT * EXCLUDE (id) FROM asked; DETACH r")
        shared = """dimensions := ['region', 'age'], measures := ['income'], bounds := {'income': [0, 10000]},
            domains := {'region': range(0, 20)}, method := 'dp', epsilon := 100, delta := 1e-12, per_question := 0.5"""
        with sdcduck.connect(str(register)) as own:
            own.execute(f"FROM sdc_protect('people', unit := 'id', {shared})").fetchall()
            own.execute(f"FROM sdc_protect('visits', unit := 'owner', contributions := 2, {shared})").fetchall()
        with closing(sdcduck.open_guard(register)) as guard:
            for name, question in questions.items():
                compared_with(table, con, guard, name, question, "people")
            name = next(iter(questions))
            compared_with(table, con, guard, f"{name}, two rows a unit", questions[name], "visits")
    return table


def compared_with(
    table: Table, con: duckdb.DuckDBPyConnection, guard: Guard, name: str, question: str, of: str
) -> None:
    """Add a row for one question, asked of both in turn."""
    plain, private = [], []
    for age in range(5):
        plain.append(cpu(lambda at=age: con.execute(question.format("asked", at)).fetchall(), 1))
        private.append(cpu(lambda at=age: guard.sql(question.format(of, at)), 1))
    least, most = statistics.median(plain), statistics.median(private)
    table.add_row(name, f"{most:.3f}", f"{most / least:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    console = Console()
    records = 100_000 if parser.parse_args().quick else 10_000_000
    console.print(calibration())
    console.print(noise())
    with sdcduck.connect() as con:
        console.print(releases(con, records))
        console.print(matrices(con, records // 10))
        console.print(guarded(con, records))


if __name__ == "__main__":
    main()
