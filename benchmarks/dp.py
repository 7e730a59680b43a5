"""What differentially private statistics cost beside plain SQL: CPU seconds. Nothing fails because of a clock.

python benchmarks/dp.py            a minute on two cores
python benchmarks/dp.py --quick    on 100,000 records
python benchmarks/dp.py --guard    the questions to a guard alone
python benchmarks/dp.py --qrlew PYTHON --smartnoise PYTHON    PYTHON of environments that have them: the same questions
                                                              at the same epsilon, see dp_peers.py
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

import sdcduck
from sdcduck.guard import Guard
from sdcduck.guard.opening import LOCKED
from sdcduck.guard.releases import _exact_sql
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


GROUPS = [f"R{place}" for place in range(10)]
BOUNDS = {"age": [0, 100], "income": [0, 10_000]}
QUESTIONS = {
    "counts by group": ("SELECT region, COUNT(*) AS v FROM people GROUP BY region", "counts := ['true']", ""),
    "sums by group": ("SELECT region, SUM(income) AS v FROM people GROUP BY region", "sums := ['income']", "income"),
    "means by group": ("SELECT region, AVG(income) AS v FROM people GROUP BY region", "means := ['income']", "income"),
    "a count": ("SELECT COUNT(*) AS v FROM people WHERE age > 60", "counts := ['age > 60']", ""),
    "a mean": ("SELECT AVG(age) AS v FROM people", "means := ['age']", "age"),
}
"""Each in SQL and as `sdc_dp_release` has it, with the column that it has bounds of."""
SPENT = {"epsilon": 1.0, "delta": 1e-6}
OF_ERRORS = 40


def ours(con: duckdb.DuckDBPyConnection, name: str) -> dict[str, float]:
    """One answer of `sdc_dp_release`: people are there or not, as the others have it."""
    query, asked, column = QUESTIONS[name]
    bounds = f", bounds := {{'{column}': {BOUNDS[column]}}}" if column else ""
    by = f", by := 'region', groups := {GROUPS}" if "GROUP BY" in query else ""
    rows = con.execute(
        f"SELECT coalesce(category, ''), estimate FROM sdc_dp_release('people', {asked}{bounds}{by}, "
        f"epsilon := {SPENT['epsilon']}, delta := {SPENT['delta']}, neighbours := 'add_remove') "
        f"WHERE statistic <> 'count(*)'{' AND category IS NOT NULL' if by else ''}"
    ).fetchall()
    return dict(rows)


def error(answers: list[dict[str, float]], truth: dict[str, float]) -> float:
    """The root of the mean of squares, of all groups and runs; a group that is not answered counts as 0."""
    return (
        statistics.mean(((one.get(group) or 0) - value) ** 2 for one in answers for group, value in truth.items())
        ** 0.5
    )


def beside(peers: dict[str, str | None]) -> Table:
    """The same questions by other systems, at the same epsilon on the same records: root mean squared errors."""
    table = Table(
        "question", "sdcduck", *peers, title=f"error and CPU ms of a question, epsilon 1, delta 1e-6, {OF_ERRORS} runs"
    )
    with tempfile.TemporaryDirectory() as folder, sdcduck.connect(progress=False) as con:
        con.execute(
            "CREATE TABLE people AS SELECT i AS id, 'R' || floor(10 * (hash(i) % 1000 / 1000.0) ** 2)::INT AS region, "
            "(hash(i + 2) % 100)::DOUBLE AS age, 10000 * (hash(i + 1) % 10000 / 10000.0) ** 2 AS income "
            "FROM range(20000) r(i)"
        )
        file = Path(folder) / "people.csv"
        con.execute(f"COPY people TO '{file}' (HEADER)")
        call = json.dumps(
            {
                "runs": OF_ERRORS,
                "bounds": BOUNDS,
                "groups": GROUPS,
                **SPENT,
                "questions": {k: v[0] for k, v in QUESTIONS.items()},
            }
        )
        found = {name: answered(name.lower(), python, file, call) for name, python in peers.items() if python}
        for name, (query, _, _) in QUESTIONS.items():
            truth = {str(row[0]) if len(row) > 1 else "": float(row[-1]) for row in con.execute(query).fetchall()}
            began = time.process_time()
            answers = [ours(con, name) for _ in range(OF_ERRORS)]
            seconds = (time.process_time() - began) / OF_ERRORS
            cells = [f"{error(answers, truth):.4g} ({1000 * seconds:.0f})"]
            for peer in peers:
                one = found.get(peer, {}).get(name)
                if one is None:
                    cells.append(f"not asked: see --{peer.lower()}")
                else:
                    cells.append(
                        one.get("problem") or f"{error(one['answers'], truth):.4g} ({1000 * one['seconds']:.0f})"
                    )
            table.add_row(name, *cells)
    return table


def answered(peer: str, python: str, file: Path, call: str) -> dict[str, Any]:
    """What another system answered, by question."""
    command = [python, str(Path(__file__).with_name("dp_peers.py")), peer, str(file), call]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {one["question"]: one for one in map(json.loads, done.stdout.splitlines())}


_FINITE = "1.7976931348623157e308"
_BOUNDED = "CASE WHEN abs(income - 5000) <= 5000 THEN income END"
_CLIPPED = f"""(CASE WHEN abs(income - 5000) <= 5000 THEN income
    WHEN income >= 5000 AND income <= {_FINITE} THEN 10000.0 WHEN income < 5000
    AND income >= -{_FINITE} THEN 0.0 END)"""
_STEPS = "CAST({} * 1024 + 6755399441055744.0 - 6755399441055744.0 AS DOUBLE)"
_GRID = 1.5 * 2**42  # beside it there are 1,024 steps in one
_FEWER = f"({_CLIPPED} + {_GRID!r} - {_GRID!r})"
"""The same steps, as long as the sum of them is multiplied afterwards."""
_APART = f"(income + {_GRID - 5000!r} - {_GRID!r})"
_FROM_MIDDLE = f"""(CASE WHEN abs({_APART}) <= 5000 THEN {_APART}
    WHEN {_APART} > 0 AND {_APART} <= {_FINITE} THEN 5000.0
    WHEN {_APART} < 0 AND {_APART} >= -{_FINITE} THEN -5000.0 END)"""
"""Distances from the middle of the bounds, to which that is added as often as there are values."""
_SUMS = [f"sum({_STEPS.format(_CLIPPED)})", f"sum({_FEWER})"]
_KNOWN = [f"count({_CLIPPED}), {one}" for one in _SUMS] + [f"count({_FROM_MIDDLE}), sum({_FROM_MIDDLE})"]
_DISTANCE = f"({_CLIPPED} - 5000)"
_SPREAD = f"sum({_STEPS.format(_DISTANCE)}), sum({_STEPS.format(f'({_DISTANCE} * {_DISTANCE})')})"
_REGIONS = [f"CASE WHEN region BETWEEN 0 AND 19 THEN {one} END" for one in ("region", "CAST(region AS UTINYINT)")]
_ASKED_OF = "FROM {} WHERE TRY(age > {})"
_NOT_CHOSEN = f"SELECT sum({_FEWER} * CAST(age > {{1}} AS TINYINT)) FROM {{0}}"
"""Chooses no records, and takes as long of few as of all: of few longer than a guard does."""
_BOUNDS_ALONE = [
    f"SELECT sum({_BOUNDED}) {_ASKED_OF}",
    f"SELECT sum(income + {_GRID!r} - {_GRID!r}) FILTER ((abs(income - 5000) <= 5000) > NOT (age > {{1}})) FROM {{0}}",
]
ASKED = {
    "count and sum in 20 groups": (
        "SELECT region, count(*), sum(income) FROM {} WHERE age > {} GROUP BY region",
        [f"SELECT region, count(*), sum({_BOUNDED}) {_ASKED_OF} GROUP BY region"],
        [f"SELECT {by} AS g, count(*), {one} {_ASKED_OF} GROUP BY g" for by in _REGIONS for one in _SUMS],
    ),
    "count of all": ("SELECT count(*) FROM {} WHERE age > {}", [], [f"SELECT count(*) {_ASKED_OF}"]),
    "sum of all": (
        "SELECT sum(income) FROM {} WHERE age > {}",
        _BOUNDS_ALONE,
        [*(f"SELECT {one} {_ASKED_OF}" for one in [*_SUMS, _KNOWN[-1]]), _NOT_CHOSEN],
    ),
    "sum of few": (
        "SELECT sum(income) FROM {} WHERE age = {}",
        [one.replace("age >", "age =") for one in _BOUNDS_ALONE],
        [
            *(f"SELECT {one} {_ASKED_OF.replace('age >', 'age =')}" for one in [*_SUMS, _KNOWN[-1]]),
            _NOT_CHOSEN.replace("age >", "age ="),
        ],
    ),
    "mean of all": (
        "SELECT avg(income) FROM {} WHERE age > {}",
        [f"SELECT avg({_BOUNDED}) {_ASKED_OF}"],
        [f"SELECT {one} {_ASKED_OF}" for one in _KNOWN],
    ),
    "deviation in 20 groups": (
        "SELECT region, stddev(income) FROM {} WHERE age > {} GROUP BY region",
        [f"SELECT region, stddev({_BOUNDED}) {_ASKED_OF} GROUP BY region"],
        [f"SELECT {by} AS g, count({_CLIPPED}), {_SPREAD} {_ASKED_OF} GROUP BY g" for by in _REGIONS],
    ),
    "median of all": (
        "SELECT median(income) FROM {} WHERE age > {}",
        [],
        [f"SELECT histogram(CAST(round({_CLIPPED} / 10) AS INTEGER)) {_ASKED_OF}"],
    ),
    "subtotals of 20 groups": (
        "SELECT region, count(*) FROM {} WHERE age > {} GROUP BY ROLLUP (region)",
        [],
        [f"SELECT {by} AS g, count(*) {_ASKED_OF} GROUP BY g" for by in _REGIONS],
    ),
}
"""Questions; of these sums with bounds alone, which no mechanism can do without; and SQL by hand that makes what noise
is added to: values within their bounds, in steps of a grid, of which the fastest counts."""
RUNS = 7


def guarded(con: duckdb.DuckDBPyConnection, records: int) -> Table:
    """Questions to a guard beside the same ones in plain SQL over a copy of the same file, each of them a new one.

    By hand is the least that any system takes which holds to the same bounds and the same grid, and reads all records
    whatever their least and largest values are: SQL written for this question alone, with the settings of a guard, and
    the noise of its numbers, without planning and without a ledger. The goal is 1.3 times plain SQL and 15 ms.
    """
    table = Table(
        "question", "plain CPU ms", "goal", "bounds alone", "by hand", "SQL of the guard", "guard", "guard / by hand",
        title=f"A guard with noise over {records:,} records, CPU ms, medians of {RUNS} in turn",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        register, plain = Path(folder) / "register.duckdb", Path(folder) / "plain.duckdb"
        con.execute(f"ATTACH '{register}' AS r")
        con.execute(
            f"""CREATE TABLE r.people AS SELECT i AS id, i // 2 AS owner, i % 20 AS region, i * 7 % 90 AS age,
            (hash(i) % 10000)::DOUBLE AS income FROM range({records}) t(i)"""
        )
        con.execute("CREATE TABLE r.visits AS SELECT * EXCLUDE (id) FROM r.people; DETACH r")
        shutil.copy(register, plain)
        con.execute(f"ATTACH '{plain}' AS plain (READ_ONLY)")
        own = """dimensions := ['region', 'age'], measures := ['income'], bounds := {'income': [0, 10000]},
            method := 'dp', epsilon := 100, delta := 1e-12, per_question := 0.5"""
        public = f"{own}, domains := {{'region': range(0, 20)}}"
        with sdcduck.connect(str(register)) as protected:
            protected.execute(f"FROM sdc_protect('people', unit := 'id', {public})").fetchall()
            protected.execute(f"FROM sdc_protect('visits', unit := 'owner', contributions := 2, {public})").fetchall()
        with closing(sdcduck.open_guard(register)) as guard:
            for name, (question, bounded, by_hand) in ASKED.items():
                compared_with(table, con, guard, name, question, "people", bounded=bounded, by_hand=by_hand)
            name, (question, *_) = next(iter(ASKED.items()))
            first = """SELECT region, sum(n), sum(s) FROM (SELECT owner, region, count(*) AS n, sum(income) AS s FROM {}
                WHERE age > {} GROUP BY owner, region) GROUP BY region"""
            named = f"{name}, two rows a unit, beside grouping by unit first"
            compared_with(table, con, guard, named, question, "visits", first)
        with sdcduck.connect(str(register)) as protected:
            protected.execute("FROM sdc_unprotect('people')").fetchall()
            private = f"{own}, domains := {{'region': 'private'}}"
            protected.execute(f"FROM sdc_protect('people', unit := 'id', {private})").fetchall()
        with closing(sdcduck.open_guard(register)) as guard:
            question = "SELECT region, count(*), sum(income) FROM {} WHERE age > {} GROUP BY region"
            hands = [f"SELECT region, count(*), {one} {_ASKED_OF} GROUP BY region" for one in _SUMS]
            compared_with(table, con, guard, f"{name}, which nobody may know", question, "people", by_hand=hands)
        con.execute("DETACH plain")
    return table


def clocked(of: object, step: str) -> list[tuple[float, float]]:
    """The CPU ms, and the ms by the clock, of each call of a method from now on."""
    taken, ask = list[tuple[float, float]](), getattr(of, step)

    def timed(*arguments: object) -> object:
        began = time.process_time(), time.perf_counter()
        answer = ask(*arguments)
        taken.append((1000 * (time.process_time() - began[0]), 1000 * (time.perf_counter() - began[1])))
        return answer

    setattr(of, step, timed)
    return taken


def ledger() -> Table:
    """What a charge, and keeping what was drawn, take of a question, both on disk, by the length of the ledger."""
    table = Table("questions before", "CPU ms", "ms with the disk", title="the ledger: medians of 40 questions")
    with tempfile.TemporaryDirectory() as folder:
        register = Path(folder) / "register.duckdb"
        with sdcduck.connect(str(register)) as con:
            con.execute("CREATE TABLE people AS SELECT i AS id, i % 90 AS age FROM range(1000) t(i)")
            con.execute("""FROM sdc_protect('people', unit := 'id', dimensions := ['age'], method := 'dp',
                epsilon := 1000, delta := 1e-12, per_question := 0.05)""").fetchall()
        with closing(sdcduck.open_guard(register)) as guard:
            taken = [clocked(guard._releases, step) for step in ("_charged", "_kept")]
            for asked in range(1, 1041):
                guard.sql(f"SELECT count(*) FROM people WHERE 1000 * age > {asked}")
                if asked in (60, 1040):
                    both = [[sum(pair) for pair in zip(*steps, strict=True)] for steps in zip(*taken, strict=True)]
                    cpu_ms, with_disk = (statistics.median(times[at] for times in both[-40:]) for at in (0, 1))
                    table.add_row(f"{asked - 40:,}", f"{cpu_ms:.1f}", f"{with_disk:.1f}")
    return table


def with_noise(con: duckdb.DuckDBPyConnection, sql: str) -> None:
    """The totals of a query written by hand, and noise for each number."""
    rows = con.execute(sql).fetchall()
    numbers = [int(value) for row in rows for value in row if isinstance(value, int | float)]
    grid_noise(1000.0, max(1, len(numbers)))


def compared_with(
    table: Table, con: duckdb.DuckDBPyConnection, guard: Guard, name: str, question: str, of: str, beside: str = "",
    bounded: Sequence[str] = (), by_hand: Sequence[str] = (),
) -> None:  # fmt: skip
    """Add a row for one question, asked of all in turn; ``beside``: of DuckDB in other words."""
    taken: dict[str, list[float]] = {}

    def timed(what: str, run: Callable[[], object]) -> None:
        taken.setdefault(what, []).append(1000 * cpu(run, 1))

    def asked(what: str, sql: str, age: int) -> None:
        con.execute("SET disabled_optimizers = ?", [LOCKED.get("disabled_optimizers", "")])
        timed(what, lambda: with_noise(con, sql.format(f"plain.{of}", age)))
        con.execute("RESET disabled_optimizers")

    for age in range(RUNS):
        timed("plain", lambda at=age: con.execute((beside or question).format(f"plain.{of}", at)).fetchall())
        for what, texts in (("bounded", bounded), ("by hand", by_hand)):
            for place, sql in enumerate(texts):
                asked(f"{what} {place}", sql, age)
        [release] = guard.rewritten(question.format(of, age))[0].releases
        if not release.selects:
            exact = _exact_sql(release, None)
            timed("totals", lambda sql=exact: guard._releases._columns(sql, {}))
        timed("guard", lambda at=age: guard.sql(question.format(of, at)))
    found = {what: statistics.median(times) for what, times in taken.items()}
    bounds, hand = (
        min((found[what] for what in found if what.startswith(of)), default=None) for of in ("bounded", "by hand")
    )
    goal = 1.2 * found["plain"] if beside else 1.3 * found["plain"] + 15
    shown = [found["plain"], goal, bounds, hand, found.get("totals"), found["guard"]]
    ratio = "" if hand is None else f"{found['guard'] / hand:.2f}"
    table.add_row(name, *("" if one is None else f"{one:.0f}" for one in shown), ratio)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--guard", action="store_true", help="the questions to a guard alone")
    parser.add_argument("--qrlew", metavar="PYTHON", help="of an environment that has pyqrlew and duckdb")
    parser.add_argument("--smartnoise", metavar="PYTHON", help="of an environment that has smartnoise-sql")
    console, options = Console(), parser.parse_args()
    records = 100_000 if options.quick else 10_000_000
    if options.guard:
        console.print(ledger())
        with sdcduck.connect() as con:
            console.print(guarded(con, records))
        return
    console.print(beside({"Qrlew": options.qrlew, "SmartNoise": options.smartnoise}))
    console.print(calibration())
    console.print(noise())
    console.print(ledger())
    with sdcduck.connect() as con:
        console.print(releases(con, records))
        console.print(matrices(con, records // 10))
        console.print(guarded(con, records))


if __name__ == "__main__":
    main()
