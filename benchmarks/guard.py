"""What the guard costs: rewriting a query, and protected answers beside plain ones; seeded, interleaved, medians.

A run asks every question of a shape once, one after the other, the order moving on by one from run to run; a ratio is
taken within a run, and the figure printed is its median over the runs. A guarded time is what an analyst waits for: the
policies looked up, the query parsed, checked and rewritten, executed and fetched. What the guard remembers of a
question is taken away before each run. Nothing here fails because of a clock: the goals are printed as met or missed.

    python benchmarks/guard.py               10 million rows, 7 runs, a few minutes on two cores
    python benchmarks/guard.py --quick       1 million rows, 3 runs
    python benchmarks/guard.py --passes      what each pass of rewriting costs, and nothing else
    python benchmarks/guard.py --profile     where the time of rewriting goes, and nothing else
"""

from __future__ import annotations

import argparse
import cProfile
import itertools
import os
import platform
import pstats
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import duckdb
import sqlglot
from cell_key import SHAPES, Goals, arrow, console, figures, make_firms, make_people, milliseconds, ratio
from rich.table import Table

import sdcduck
from sdcduck.guard import Guard, rewriter
from sdcduck.guard.opening import locked
from sdcduck.guard.passes.draft import Draft

TYPICAL = """
    SELECT area, branch, sex, count(*) AS n, sum(income) AS income, avg(income) AS mean, sum(turnover) AS turnover
    FROM persons JOIN regions ON persons.region = regions.region JOIN sectors ON persons.sector = sectors.sector
    WHERE age <> '90-99'
    GROUP BY area, branch, sex
    ORDER BY area, branch, sex
"""
"""Two joins, three groups, four aggregates."""

QUESTIONS = (
    TYPICAL,
    "SELECT region, count(*) AS n FROM persons GROUP BY region",
    "SELECT region, sex, count(*) AS n, sum(income) AS income FROM persons GROUP BY 1, 2 ORDER BY n DESC LIMIT 10",
    "SELECT count(*) FROM persons WHERE age IN ('20-29', '30-39') AND sex = 1 AND NOT region = 7",
    "SELECT age, avg(income) AS mean FROM persons GROUP BY age HAVING count(*) > 100 ORDER BY age",
    "SELECT sex, count(*) FILTER (WHERE age = '20-29') AS young, count(*) AS n FROM persons GROUP BY sex",
    "SELECT region, sex, count(*) AS n FROM persons GROUP BY ROLLUP (region, sex)",
    "SELECT area, count(*) AS n FROM persons JOIN regions USING (region) GROUP BY area",
    "WITH r AS (SELECT region, count(*) AS n FROM persons GROUP BY region) SELECT max(n) AS n, avg(n) AS mean FROM r",
    "SELECT DISTINCT sex, age FROM persons ORDER BY ALL",
    "SELECT region, n, n / sum(n) OVER () AS share FROM (SELECT region, count(*) AS n FROM persons GROUP BY region)",
    "SELECT CASE WHEN age < '50' THEN 'young' ELSE 'old' END AS who, sum(turnover) AS t FROM persons GROUP BY who",
    "SELECT r2, sum(turnover) AS turnover, count(*) AS n FROM owners GROUP BY r2",
    "SELECT count(DISTINCT person_id) AS persons, stddev_samp(income) AS spread FROM persons WHERE sector <> 3",
)
"""What analysts ask: each is rewritten for what a pass costs."""


def fresh(one: Guard, query: str) -> str:
    """A question that the guard remembers nothing of."""
    one._rewritings.forget()
    return query


def with_another_constant(query: str, number: Iterator[int]) -> str:
    """A question that was never asked, where others were that differ in the ages that they leave out."""
    return query.replace("'90-99'", f"'age {next(number)}'")


def prepare(con: duckdb.DuckDBPyConnection, rows: int) -> None:
    """Persons with a unit, two public tables, and a publication of firms."""
    make_people(con, rows)
    make_firms(con, 1_000_000)
    con.execute("""
        CREATE TABLE persons AS SELECT rowid AS person_id, * FROM people;
        DROP TABLE people;
        CREATE TABLE regions AS SELECT DISTINCT region, 'area ' || hash(region) % 3 AS area FROM persons;
        CREATE TABLE sectors AS SELECT DISTINCT sector, 'branch ' || hash(sector) % 5 AS branch FROM persons;
        CREATE VIEW owners AS SELECT rowid AS firm_id, * FROM firms;
    """)
    columns = ["sex", "region", "age", "sector", "occupation", "municipality"]
    con.execute(f"""FROM sdc_protect('persons', unit := 'person_id', dimensions := {columns},
        measures := ['income', 'turnover'])""").fetchall()
    for name in ("regions", "sectors"):
        con.execute(f"FROM sdc_declare_public('{name}')").fetchall()
    con.execute("""FROM sdc_publish('firms', '
        SELECT r2, r3, i2, sex, count(*) AS n, sum(turnover) AS turnover FROM owners
        GROUP BY GROUPING SETS ((r3, i2), (r3, sex), (r2, i2, sex), (i2, sex), ())', max_count := 75)""").fetchall()
    con.execute("""FROM sdc_protect('owners', unit := 'firm_id', dimensions := ['r2', 'r3', 'i2', 'sex'],
        measures := ['turnover'], method := 'suppression', publication := 'firms')""").fetchall()


def interleaved(actions: dict[str, Callable[[], object]], runs: int) -> dict[str, list[float]]:
    """Seconds of each action in each run, after one run that is not counted."""
    names = list(actions)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for run in range(-1, runs):
        for name in names[run % len(names) :] + names[: run % len(names)]:
            start = time.perf_counter()
            actions[name]()
            if run >= 0:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def beside(con: duckdb.DuckDBPyConnection, one: Guard, query: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """The query without protection, and the question."""
    return lambda: arrow(con, query), lambda: one.sql(fresh(one, query))


def bench_looking_up(con: duckdb.DuckDBPyConnection, runs: int) -> None:
    """Rewriting where the database may change between two questions, so that everything is looked up for each."""
    one = sdcduck.open_guard(con)
    seconds = interleaved(
        {"fresh": lambda: one.rewrite(fresh(one, TYPICAL)), "from cache": lambda: one.rewrite(TYPICAL)}, 20 * runs
    )
    shown = ", ".join(f"{name} {1000 * statistics.median(values):.2f} ms" for name, values in seconds.items())
    console.print(f"Rewriting over a connection that others may change the data with: {shown}")


def bench_rewriting(con: duckdb.DuckDBPyConnection, one: Guard, other: Guard, runs: int, goals: Goals) -> None:
    """Rewriting the typical query, and parts of that; the other guard remembers what it was asked."""
    count = "SELECT region, count(*) AS n FROM persons GROUP BY region"
    number = itertools.count()
    unique = "SELECT coalesce(max(n), 0) <= 1 AS u FROM (SELECT count(*) AS n FROM regions GROUP BY region)"
    seconds = interleaved(
        {
            "fresh": lambda: one.rewrite(fresh(one, TYPICAL)),
            "with another constant": lambda: other.rewrite(with_another_constant(TYPICAL, number)),
            "from cache": lambda: one.rewrite(TYPICAL),
            "fresh, one count, no join": lambda: one.rewrite(fresh(one, count)),
            "from cache, one count, no join": lambda: one.rewrite(count),
            "(parsing alone)": lambda: sqlglot.parse_one(TYPICAL, read="duckdb"),
            "(one look whether a public table has one row for each value)": lambda: arrow(con, unique),
            "(planning what is rewritten)": lambda: arrow(con, f"EXPLAIN {one.rewrite(TYPICAL)}"),
        },
        20 * runs,
    )
    table = Table(title="Rewriting: 2 joins, 3 groups, 4 aggregates", title_justify="left")
    for heading in ("", "ms, least", "ms, median", "ms, nine in ten"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, values in seconds.items():
        shown = (min(values), statistics.median(values), statistics.quantiles(values, n=10)[-1])
        table.add_row(name, *(f"{1000 * value:.2f}" for value in shown))
    console.print(table)
    goals.at_most("rewriting, fresh, median", 1000 * statistics.median(seconds["fresh"]), 2, " ms")
    another = statistics.median(seconds["with another constant"])
    goals.at_most("rewriting, with another constant, median", 1000 * another, 2, " ms")
    goals.at_most("rewriting, from cache, median", 1000 * statistics.median(seconds["from cache"]), 0.1, " ms")


def bench_answers(con: duckdb.DuckDBPyConnection, one: Guard, runs: int, goals: Goals) -> None:
    """Guarded totals over plain DuckDB, and over the functions, for the groupings of the benchmark of cell keys."""
    measures = {"count": "count(*)", "sum(i)": "sum(income)", "sum(d)": "sum(turnover)"}
    functions = {
        "count": "sdc_count(record_key)",
        "sum(i)": "sdc_sum(income, record_key)",
        "sum(d)": "sdc_sum(turnover, record_key)",
    }
    names = [f"{kind} {name}" for name in measures for kind in ("plain", "function", "guarded")]
    times = figures("Answers, an INTEGER (i) and a DOUBLE (d), ms", names)
    relative = figures(
        "Answers, guarded / plain, and / function",
        [f"{name}\n/ {of}" for of in ("plain", "function") for name in measures],
    )
    ratios: list[list[float]] = []
    for shape in (shape for shape in SHAPES if shape.counted):
        actions: dict[str, Callable[[], object]] = {}
        for name, measure in measures.items():
            query = f"SELECT {shape.columns}, {measure} AS x FROM persons GROUP BY {shape.group_by}"
            actions[f"plain {name}"], actions[f"guarded {name}"] = beside(con, one, query)
            called = f"SELECT {shape.columns}, {functions[name]} AS x FROM persons GROUP BY {shape.group_by}"
            actions[f"function {name}"] = lambda called=called: arrow(con, called)
        seconds = interleaved(actions, runs)
        ratios.append(
            [ratio(seconds, f"guarded {name}", f"{of} {name}") for of in ("plain", "function") for name in measures]
        )
        times.add_row(shape.name, *(milliseconds(seconds[name]) for name in names))
        relative.add_row(shape.name, *(f"{value:.2f}" for value in ratios[-1]))
    means = [statistics.geometric_mean(column) for column in zip(*ratios, strict=True)]
    relative.add_section()
    relative.add_row("geometric mean", *(f"{value:.2f}" for value in means))
    console.print(times, relative)
    compared = [(name, of) for of in ("plain", "function") for name in measures]
    for (name, of), mean, column in zip(compared, means, zip(*ratios, strict=True), strict=True):
        limit = 1.1 if of == "function" else 1.25 if name == "count" else 1.6
        goals.at_most(f"guarded {name} to {of}, geometric mean", mean, limit)
        goals.at_most(f"guarded {name} to {of}, worst grouping", max(column), limit)


def bench_stencil(con: duckdb.DuckDBPyConnection, one: Guard, rows: int, runs: int, goals: Goals) -> None:
    """Sums over the inner cells of a publication, checked by the stencil and not.

    The publication has as many inner cells as publications have; so that rows count for something, its stencil table
    is measured repeated, too.
    """
    cells = con.execute("SELECT count(*) FROM sdc.firms_stencil").fetchall()[0][0]
    con.execute(f"""CREATE OR REPLACE TEMP TABLE repeated AS SELECT * FROM sdc.firms_stencil,
        range({max(1, rows // cells)}) copies(copy_number)""")
    shapes = {"20 groups": "i2", "860 groups": "r3, sex", "CUBE(3)": "CUBE (r2, i2, sex)"}
    table = figures(
        "Inner cells: counts and sums, checked by the stencil / plain",
        ["plain\nms", "guarded\nms", "guarded\n/ plain", "repeated,\nplain, ms", "checked\nms", "checked\n/ plain"],
    )
    checked = []
    for name, group_by in shapes.items():
        columns = group_by.removeprefix("CUBE (").removesuffix(")")
        plain = f"SELECT {columns}, sum(n) AS n, sum(turnover) AS turnover FROM %s GROUP BY {group_by}"
        asked = f"SELECT {columns}, count(*) AS n, sum(turnover) AS turnover FROM owners GROUP BY {group_by}"
        opened = (
            f"SELECT {columns}, sdc_open_count(n, stencil) AS n, sdc_open_sum(turnover, stencil) AS turnover "
            f"FROM repeated GROUP BY {group_by}"
        )
        seconds = interleaved(
            {
                "plain": lambda query=plain % "sdc.firms_stencil": arrow(con, query),
                "guarded": lambda query=asked: one.sql(fresh(one, query)),
                "repeated": lambda query=plain % "repeated": arrow(con, query),
                "checked": lambda query=opened: arrow(con, query),
            },
            runs,
        )
        checked.append(ratio(seconds, "checked", "repeated"))
        table.add_row(
            name, *(f"{1000 * statistics.median(seconds[k]):.1f}" for k in ("plain", "guarded")),
            f"{ratio(seconds, 'guarded', 'plain'):.2f}", *(milliseconds(seconds[k]) for k in ("repeated", "checked")),
            f"{checked[-1]:.2f}",
        )  # fmt: skip
    console.print(f"\n{cells:,} inner cells")
    console.print(table)
    goals.at_most("stencil-checked to plain, geometric mean", statistics.geometric_mean(checked), 1.1)


def bench_passes(name: str, one: Guard, runs: int) -> None:
    """What each pass costs: seconds of processor time, median of the runs of a question, and then of the questions."""
    spent: Counter[str] = Counter()

    def timed(step: Callable[[Draft], None]) -> Callable[[Draft], None]:
        def run(draft: Draft) -> None:
            start = time.process_time()
            step(draft)
            spent[step.__name__] += time.process_time() - start

        return run

    passes = rewriter.PASSES
    questions: list[Counter[str]] = []
    for query in QUESTIONS:
        found: list[Counter[str]] = []
        for run in range(-1, runs):
            spent.clear()
            rewriter.PASSES = tuple(map(timed, passes))
            start = time.process_time()
            one.rewrite(fresh(one, query))
            whole = time.process_time() - start
            rewriter.PASSES = passes
            spent["before and after"] = whole - spent.total()
            spent["all"] = whole
            if run >= 0:
                found.append(spent.copy())
        questions.append(Counter({step: statistics.median(one[step] for one in found) for step in spent}))
    table = Table(title=f"Rewriting {name}: what each pass costs, processor time", title_justify="left")
    table.add_column("")
    for heading in ("ms, median", "ms, most"):
        table.add_column(heading, justify="right")
    for step in [*(step.__name__ for step in passes), "before and after", "all"]:
        values = [1000 * question[step] for question in questions]
        table.add_row(step, f"{statistics.median(values):.2f}", f"{max(values):.2f}", end_section=step == "finish")
    console.print(table)


def profile(one: Guard, times: int = 50) -> None:
    """Where the time of rewriting goes: functions by what they take with all that they call."""
    for _ in range(3):
        one.rewrite(fresh(one, TYPICAL))
    with cProfile.Profile(time.process_time) as found:  # the machine may be shared
        for _ in range(times):
            one.rewrite(fresh(one, TYPICAL))
    console.print(f"{times} fresh rewritings, seconds of processor time with the profiler's own")
    pstats.Stats(found).sort_stats("cumulative").print_stats(
        r"sdcduck|sqlglot/(__init__|optimizer|generator)|duckdb|json", 45
    )


def main() -> None:
    """Run all sections and print the goals."""
    parser = argparse.ArgumentParser(description="What the guard costs.")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the table of persons")
    parser.add_argument("--runs", type=int, default=7, help="interleaved runs of each query")
    parser.add_argument("--quick", action="store_true", help="1 million rows, 3 runs")
    parser.add_argument("--passes", action="store_true", help="what each pass of rewriting costs")
    parser.add_argument("--profile", action="store_true", help="the functions that rewriting spends its time in")
    options = parser.parse_args()
    rows, runs = (1_000_000, 3) if options.quick else (options.rows, options.runs)
    if options.profile or options.passes:
        rows = 10_000
    start = time.perf_counter()
    goals = Goals()
    console.print(
        f"sdcduck {version('sdcduck')}, DuckDB {duckdb.__version__}, Python {platform.python_version()}, "
        f"{platform.machine()}, {os.cpu_count()} cores; {rows:,} rows, {runs} interleaved runs"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "benchmark.duckdb")
        with sdcduck.connect(path) as con:
            prepare(con, rows)
            console.print(f"data made in {time.perf_counter() - start:.0f} s")
            if not options.profile:
                bench_passes(
                    "over a connection that others may change the data with", sdcduck.open_guard(con), 3 * runs
                )
            if not options.profile and not options.passes:
                bench_looking_up(con, runs)
        one = sdcduck.open_guard(path)
        if options.profile:
            profile(one)
            return
        bench_passes("over a file", one, 3 * runs)
        if options.passes:
            return
        plain = duckdb.connect(str(path), read_only=True, config=locked())  # the instance that the guard asks
        bench_rewriting(plain, one, sdcduck.open_guard(path), runs, goals)
        bench_answers(plain, one, runs, goals)
        bench_stencil(plain, one, rows, runs, goals)
        plain.close()
    console.print("\nGoals", style="bold")
    for line in goals.lines:
        console.print(line)
    console.print(f"done in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
