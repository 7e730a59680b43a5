"""Risk measures beside the plainest SQL that gives the same numbers: medians of interleaved runs on one table.

The plain queries are what somebody would write who knows the data: no NULL policy and no checks, but the same figures,
which are compared. Where copies are only counted, and not those of uniques too, plain SQL need not group both tables.
Distances to closest records stand beside a loop over all pairs, compiled and in parallel, that gives up a pair as soon
as it is too far; it is measured on some of the records. Nothing fails because of a clock.

Their memory is that of a process that does nothing else: DuckDB, the tables and compiled code included.

    python benchmarks/metrics.py                     a minute or two on two cores
    python benchmarks/metrics.py --rows N            other sizes (default 1,000,000)
    python benchmarks/metrics.py --records N         records of the distances (default 50,000)
    python benchmarks/metrics.py --large             10 million rows, and distances of a million records; long
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from numba import njit, prange
from rich.console import Console
from rich.table import Table

import sdcduck
from sdcduck.methods.risk.nearest import nearest

console = Console(width=max(110, Console().width))
KEYS = ("county", "age", "sex", "born", "household")
BY = ", ".join(KEYS)
GIVEN = "keys := [" + ", ".join(f"'{key}'" for key in KEYS) + "]"
ILL = f"{GIVEN}, sensitive := 'illness'"
PLAIN = {
    "k-anonymity": f"SELECT min(n), count(*) FILTER (n = 1) FROM (SELECT count(*) AS n FROM people GROUP BY {BY})",
    "l-diversity, distinct and entropy": f"""
        SELECT min(l), min(e) FROM (
            SELECT count(*) AS l, exp(ln(sum(n)) - sum(n * ln(n)) / sum(n)) AS e
            FROM (SELECT {BY}, illness, count(*) AS n FROM people GROUP BY ALL) GROUP BY {BY})""",
    "t-closeness, unordered": f"""
        WITH v AS MATERIALIZED (SELECT {BY}, illness, count(*) AS n FROM people GROUP BY ALL),
        c AS (SELECT {BY}, sum(n) AS m FROM v GROUP BY ALL),
        w AS (SELECT illness, sum(n) / (SELECT sum(n) FROM v) AS q FROM v GROUP BY ALL)
        SELECT max(t) FROM (
            SELECT sum(greatest(n / m - q, 0)) AS t FROM v JOIN c USING ({BY}) JOIN w USING (illness) GROUP BY {BY})""",
    "individual risk, without weights": f"""
        SELECT sum(1 / n) FROM people JOIN (SELECT {BY}, count(*) AS n FROM people GROUP BY ALL) USING ({BY})""",
    "marketer risk": f"""
        SELECT count(*) / sum(f), sum(f / greatest(f, g)) / sum(f) FROM
            (SELECT {BY}, count(*) AS f FROM people GROUP BY ALL) LEFT JOIN
            (SELECT {BY}, count(*) AS g FROM list GROUP BY ALL) USING ({BY})""",
    "identical matches": f"""
        SELECT sum(f) FILTER (g > 0), sum(f) FILTER (g = 1), sum(g) FROM
            (SELECT {BY}, count(*) AS f FROM people GROUP BY ALL) LEFT JOIN
            (SELECT {BY}, count(*) AS g FROM list GROUP BY ALL) USING ({BY})""",
    "identical matches, only counted": f"""
        SELECT sum(f) FILTER (EXISTS (FROM list l WHERE ({BY}) = ({", ".join(f"l.{key}" for key in KEYS)})))
        FROM (SELECT {BY}, count(*) AS f FROM people GROUP BY ALL)""",
    "replicated uniques": f"""
        SELECT count(*) FROM (SELECT {BY} FROM people GROUP BY ALL HAVING count(*) = 1)
        JOIN (SELECT {BY} FROM list GROUP BY ALL HAVING count(*) = 1) USING ({BY})""",
    "TCAP with its baselines": f"""
        WITH x AS (
            SELECT {BY}, any_value(illness) AS guess FROM list GROUP BY {BY} HAVING count(DISTINCT illness) = 1
        ), m AS (SELECT mode(illness) AS modal FROM list)
        SELECT avg((illness = guess)::INTEGER), avg((illness = modal)::INTEGER),
            (SELECT sum(n * n) / sum(n) ** 2 FROM (SELECT count(*) AS n FROM people GROUP BY illness))
        FROM people JOIN x USING ({BY}), m""",
}
OURS = {
    "k-anonymity": f"SELECT k, uniques FROM sdc_k_anonymity('people', {GIVEN})",
    "l-diversity, distinct and entropy": f"SELECT distinct_l, entropy_l FROM sdc_l_diversity('people', {ILL})",
    "t-closeness, unordered": f"SELECT t FROM sdc_t_closeness('people', {ILL})",
    "individual risk, without weights": f"SELECT sum(risk) FROM sdc_individual_risk('people', {GIVEN})",
    "marketer risk": f"SELECT im, cem FROM sdc_marketer_risk('people', 'list', {GIVEN})",
    "identical matches": f"""
        SELECT matches, matches_of_uniques, originals_matched
        FROM sdc_identical_matches('list', 'people', columns := {list(KEYS)})""",
    "identical matches, only counted": f"""
        SELECT matches FROM sdc_identical_matches('list', 'people', columns := {list(KEYS)})""",
    "replicated uniques": f"SELECT replicated FROM sdc_replicated_uniques('people', 'list', {GIVEN})",
    "TCAP with its baselines": f"""
        SELECT tcap, modal_baseline, baseline FROM sdc_tcap('people', 'list', {GIVEN}, sensitive := ['illness'])""",
}
LARGE = ("k-anonymity", "l-diversity, distinct and entropy", "t-closeness, unordered")
ALONE = {
    "l-diversity with recursive": f"FROM sdc_l_diversity('people', {ILL})",
    "t-closeness, ordered": f"FROM sdc_t_closeness('people', {GIVEN}, sensitive := 'income')",
    "global risk of a weighted sample": f"FROM sdc_global_risk('people', {GIVEN}, weight := 'weight')",
    "the same with households": f"FROM sdc_global_risk('people', {GIVEN}, weight := 'weight', household := 'home')",
    "rare combinations of up to 3 keys": f"FROM sdc_unsafe_combinations('people', {GIVEN})",
    "disclosure, all measures": f"FROM sdc_disclosure('people', 'list', {GIVEN}, sensitive := ['illness'])",
}


def make_people(con: duckdb.DuckDBPyConnection, rows: int) -> None:
    """Records with five keys, a sensitive word and number, weights and households; and a list of twice as many."""
    for table, first, number in (("people", 0, rows), ("list", rows // 2, 2 * rows)):
        con.execute(f"""
            CREATE TABLE {table} AS
            SELECT i AS id, (60 * pow((hash(i) % 100000) / 100000.0, 2))::INTEGER AS county,
                (hash(3 * i) % 18)::TINYINT AS age, (hash(5 * i) % 2)::TINYINT AS sex,
                (hash(7 * i) % 4)::TINYINT AS born, (hash(11 * i) % 6)::TINYINT AS household,
                'illness ' || (sqrt(hash(13 * i) % 900))::INTEGER AS illness,
                (hash(17 * i) % 20000)::INTEGER AS income, 1.0 + hash(19 * i) % 90 AS weight, i // 2 AS home
            FROM range({first}, {first + number}) r(i)""")


LEVELS = (2, 3, 5, 8, 10, 20, 40, 100, 2, 3)
NUMBERS = 5


def make_records(kind: str, records: int, seed: int) -> np.ndarray:
    """Ten categories and five numbers: of 50 groups of people alike, or each at random, which is hardest."""
    random, same = np.random.default_rng(seed), np.random.default_rng(0)
    group = random.integers(0, 50, records)
    made = []
    for levels in LEVELS:
        anything = random.integers(0, levels, records)
        usual = same.integers(0, levels, 50)[group]
        made.append(np.where((random.random(records) < 0.7) & (kind == "groups"), usual, anything))
    for _ in range(NUMBERS):
        centre = same.random(50)[group] + random.normal(size=records) / 10
        made.append(np.clip(centre, 0, 1) if kind == "groups" else random.random(records))
    return np.column_stack(made).astype(np.float64)


@njit(parallel=True, cache=True)
def all_pairs(queries, reference, categories):  # type: ignore[no-untyped-def]
    """Distances to the two nearest rows, pair by pair; a pair is given up when it is too far."""
    found = np.full((len(queries), 2), np.inf)
    for one in prange(len(queries)):
        for other in range(len(reference)):
            total = 0.0
            for column in range(queries.shape[1]):
                x, y = queries[one, column], reference[other, column]
                if column >= categories:
                    total += abs(x - y)
                elif x != y:
                    total += 1.0
                if total > found[one, 1]:
                    break
            if total < found[one, 0]:
                found[one, 1], found[one, 0] = found[one, 0], total
            elif total < found[one, 1]:
                found[one, 1] = total
    return found


def closest_records(records: int, runs: int) -> None:
    """Time the search beside all pairs, and say whether they agree."""
    scales = np.repeat([0.0, 1.0], [len(LEVELS), NUMBERS])
    some = min(records, 1000)
    table = Table(
        title=f"closest records, {records:,} by {records:,}, 15 columns: median seconds", title_justify="left"
    )
    for heading in ("records", f"all pairs, {some:,} scaled up", "search", "times faster", "processor", "same"):
        table.add_column(heading, justify="left" if heading == "records" else "right")
    for kind in ("groups", "random"):
        queries, reference = make_records(kind, records, 1), make_records(kind, records, 2)
        all_pairs(queries[:2], reference[:2], len(LEVELS)), nearest(queries[:100], reference[:100], scales)
        plain, ours, used = [], [], []
        for _ in range(runs):
            start = time.perf_counter()
            wanted = all_pairs(queries[:some], reference, len(LEVELS))
            plain.append((time.perf_counter() - start) * records / some)
            start, processor = time.perf_counter(), time.process_time()
            found = nearest(queries, reference, scales).distances
            ours.append(time.perf_counter() - start)
            used.append(time.process_time() - processor)
        times = [statistics.median(one) for one in (plain, ours, used)]
        same = "yes" if (found[:some] == wanted).all() else "NO"
        table.add_row(kind, f"{times[0]:.1f}", f"{times[1]:.2f}", f"{times[0] / times[1]:.0f}", f"{times[2]:.2f}", same)
    console.print(table)


def most_memory() -> float:
    """MiB that this program had at most; Linux counts those of the program that started it with `getrusage`."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))


def closest_records_alone(file: str) -> dict[str, float]:
    """Seconds and peak memory in MiB of ``sdc_dcr`` between the tables of a file, in this process."""
    con = sdcduck.connect(file, progress=False)
    con.execute("FROM sdc_dcr('(FROM o LIMIT 100)', '(FROM s LIMIT 100)')").fetchall()  # loads the compiled code
    before = most_memory()
    start, processor = time.perf_counter(), time.process_time()
    con.execute("FROM sdc_dcr('o', 's')").fetchall()
    return {
        "seconds": time.perf_counter() - start, "processor": time.process_time() - processor, "before": before,
        "memory": most_memory(),
    }  # fmt: skip


def closest_records_of_tables(records: int) -> None:
    """Time and memory of the SQL function, each in a process of its own that opens a file of two tables."""
    goal = {50_000: ("2", "400"), 1_000_000: ("600", "")}.get(records, ("", ""))
    table = Table(title=f"sdc_dcr, {records:,} by {records:,}, 15 columns, Gower", title_justify="left")
    for heading in ("records", "seconds", "processor", "goal", "MiB before", "MiB at most", "goal of MiB"):
        table.add_column(heading, justify="left" if heading == "records" else "right")
    for kind in ("groups", "random"):
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "records.duckdb")
            with sdcduck.connect(file) as con:
                for name, seed in (("o", 1), ("s", 2)):
                    made = make_records(kind, records, seed)
                    con.register("made", pa.table({f"c{place}": column for place, column in enumerate(made.T.copy())}))
                    texts = ", ".join(f"'v' || c{place}::INTEGER AS c{place}" for place in range(len(LEVELS)))
                    con.execute(f"CREATE TABLE {name} AS SELECT * REPLACE ({texts}) FROM made").fetchall()
                    con.unregister("made")
            command = [sys.executable, __file__, "--alone", file]
            found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        table.add_row(
            kind, f"{found['seconds']:.2f}", f"{found['processor']:.2f}", goal[0], f"{found['before']:.0f}",
            f"{found['memory']:.0f}", goal[1],
        )  # fmt: skip
    console.print(table)


def main() -> None:
    """Run all and print the ratios."""
    parser = argparse.ArgumentParser(description="What risk measures cost, beside plain SQL.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--alone", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone is not None:
        print(json.dumps(closest_records_alone(options.alone)))
        return
    if options.large:
        class_measures(10_000_000, options.runs, {name: PLAIN[name] for name in LARGE}, {})
        closest_records_of_tables(1_000_000)
        return
    class_measures(options.rows, options.runs, PLAIN, ALONE)
    closest_records(options.records, min(options.runs, 3))
    closest_records_of_tables(options.records)


def class_measures(rows: int, runs: int, plain: dict[str, str], alone: dict[str, str]) -> None:
    """Time the measures of classes of records that share their keys."""
    con = sdcduck.connect()
    make_people(con, rows)
    console.print(f"sdcduck {version('sdcduck')}, DuckDB {duckdb.__version__}, {rows:,} records, {len(KEYS)} keys")
    seconds: dict[tuple[str, str], list[float]] = {}

    def ask(kind: str, name: str, query: str) -> tuple[float, ...]:
        start = time.perf_counter()
        rows = con.execute(query).fetchall()
        seconds.setdefault((kind, name), []).append(time.perf_counter() - start)
        return tuple(rows[0])

    same: dict[str, bool] = {}
    for _ in range(runs + 1):
        for name in plain:
            wanted, found = ask("plain", name, plain[name]), ask("ours", name, OURS[name])
            same[name] = np.allclose(np.array(wanted, float), np.array(found, float), rtol=1e-9, equal_nan=True)
        for name, query in alone.items():
            ask("ours", name, query)
    table = Table(title="median seconds, the first run left out", title_justify="left")
    for heading in ("measure", "plain SQL", "sdcduck", "ratio", "goal", "same"):
        table.add_column(heading, justify="left" if heading == "measure" else "right")
    median = {key: statistics.median(times[1:]) for key, times in seconds.items()}
    for name in [*plain, *alone]:
        ours = median["ours", name]
        beside = median.get(("plain", name))
        cells = ("", f"{ours:.3f}", "", "", "") if beside is None else (
            f"{beside:.3f}", f"{ours:.3f}", f"{ours / beside:.2f}", "1.2", "yes" if same[name] else "NO")  # fmt: skip
        table.add_row(name, *cells)
    console.print(table)


if __name__ == "__main__":
    main()
