"""Risk measures beside the plainest SQL that gives the same numbers: medians of interleaved runs on one table.

The plain queries are what somebody would write who knows the data: no NULL policy, no checks, one figure each.
Nothing fails because of a clock.

    python benchmarks/metrics.py             a minute or two on two cores
    python benchmarks/metrics.py --rows N    other sizes (default 1,000,000)
"""

from __future__ import annotations

import argparse
import statistics
import time
from importlib.metadata import version

import duckdb
from rich.console import Console
from rich.table import Table

import sdcduck

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
}
OURS = {
    "k-anonymity": f"FROM sdc_k_anonymity('people', {GIVEN})",
    "l-diversity, distinct and entropy": f"SELECT distinct_l, entropy_l FROM sdc_l_diversity('people', {ILL})",
    "t-closeness, unordered": f"SELECT t FROM sdc_t_closeness('people', {ILL})",
    "individual risk, without weights": f"SELECT sum(risk) FROM sdc_individual_risk('people', {GIVEN})",
    "marketer risk": f"SELECT im, cem FROM sdc_marketer_risk('people', 'list', {GIVEN})",
}
ALONE = {
    "l-diversity with recursive": f"FROM sdc_l_diversity('people', {ILL})",
    "t-closeness, ordered": f"FROM sdc_t_closeness('people', {GIVEN}, sensitive := 'income')",
    "global risk of a weighted sample": f"FROM sdc_global_risk('people', {GIVEN}, weight := 'weight')",
    "the same with households": f"FROM sdc_global_risk('people', {GIVEN}, weight := 'weight', household := 'home')",
    "rare combinations of up to 3 keys": f"FROM sdc_unsafe_combinations('people', {GIVEN})",
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


def main() -> None:
    """Run all and print the ratios."""
    parser = argparse.ArgumentParser(description="What risk measures cost, beside plain SQL.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    con = sdcduck.connect()
    make_people(con, options.rows)
    console.print(
        f"sdcduck {version('sdcduck')}, DuckDB {duckdb.__version__}, {options.rows:,} records, {len(KEYS)} keys"
    )
    seconds: dict[tuple[str, str], list[float]] = {}

    def ask(kind: str, name: str, query: str) -> None:
        start = time.perf_counter()
        con.execute(query).fetchall()
        seconds.setdefault((kind, name), []).append(time.perf_counter() - start)

    for _ in range(options.runs + 1):
        for name in PLAIN:
            ask("plain", name, PLAIN[name])
            ask("ours", name, OURS[name])
        for name, query in ALONE.items():
            ask("ours", name, query)
    table = Table(title="median seconds, the first run left out", title_justify="left")
    for heading in ("measure", "plain SQL", "sdcduck", "ratio", "goal"):
        table.add_column(heading, justify="left" if heading == "measure" else "right")
    median = {key: statistics.median(times[1:]) for key, times in seconds.items()}
    for name in [*OURS, *ALONE]:
        ours = median["ours", name]
        plain = median.get(("plain", name))
        cells = ("", f"{ours:.3f}", "", "") if plain is None else (
            f"{plain:.3f}", f"{ours:.3f}", f"{ours / plain:.2f}", "1.2")  # fmt: skip
        table.add_row(name, *cells)
    console.print(table)


if __name__ == "__main__":
    main()
