"""The desk's pages on 1.4 million records and a publication of 80 thousand cells, and a newcomer's way to a release.

Each page is asked seven times; what is shown is the median and the worst, in milliseconds. Patterns are apart: they are
work, with a page of its own. The newcomer makes a release by the calls of Python and by the forms of the desk.

    python benchmarks/desk.py [RECORDS]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import sdcduck

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "desk"))
from desk_server import running

RECORDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_400_000
PAGES = [
    "/", "/table?name=people", "/tables", "/tables/new?table=people", "/records?table=people", "/access?table=people",
    "/releases", "/script.sql", "/hierarchy?table=people&column=town",
]  # fmt: skip
FORM = [
    ("table", "people"), ("publication", "large"), ("dimension", "town"), ("dimension", "age"), ("dimension", "sex"),
    ("max_count", "2"), ("filled", "1"),
]  # fmt: skip


def make(file: Path) -> None:
    """Persons in 400 towns, by 90 years of age, sex and job."""
    with sdcduck.connect(file, secret="the secret of the benchmarks") as con:
        con.execute(
            "CREATE TABLE people AS SELECT id AS person_id, 'town ' || (h % 400) AS town, "
            "(h // 400 % 90)::INTEGER AS age, ['f', 'm'][1 + (h // 36000 % 2)::INTEGER] AS sex, "
            "1000 + (h // 72000 % 4000)::INTEGER AS income "
            f"FROM (SELECT range AS id, md5_number_lower(range::VARCHAR) AS h FROM range({RECORDS}))"
        )
        con.execute("FROM sdc_add_record_key('people', unit := 'person_id')").fetchall()


def newcomer() -> None:
    """From a register to published, audited, exported tables, in calls that print what they did."""
    with tempfile.TemporaryDirectory() as folder:
        begun, calls = time.perf_counter(), 0
        with sdcduck.connect(Path(folder) / "register.duckdb", secret="the secret of the benchmarks") as con:
            con.execute(
                "CREATE TABLE people AS SELECT range AS id, ['N', 'S', 'E'][1 + range % 3] AS region, "
                "['f', 'm'][1 + range % 2] AS sex FROM range(500)"
            )
            query = "SELECT region, sex, count(*) AS n FROM people GROUP BY CUBE (region, sex)"
            for call in (
                sdcduck.add_record_key(con, "people", unit="id"),
                sdcduck.protect(con, "people", unit="id", dimensions=["region", "sex"]),
            ):
                call.fetchall()
                calls += 1
            answer = sdcduck.open_guard(con).sql("SELECT region, count(*) AS n FROM people GROUP BY region")
            first = time.perf_counter() - begun
            assert answer.num_rows == 3
            for call in (
                sdcduck.publish(con, "tables", query, max_count=3),
                sdcduck.audit(con, query, max_count=3),
                sdcduck.write_table(con, "tables", str(Path(folder) / "tables.csv")),
                sdcduck.approve(con, "tables", "Ann Lee"),
            ):
                call.fetchall()
                calls += 1
        print(f"newcomer in Python: {calls + 2} calls, first protected answer after {first:.1f} s, all after "
              f"{time.perf_counter() - begun:.1f} s")  # fmt: skip


def main() -> None:
    """Print a table."""
    newcomer()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "register.duckdb"
        make(file)
        with running(file) as browser:
            begun = time.perf_counter()
            pattern = browser.finished(browser.post("/tables/pattern", FORM))
            print(f"pattern: {time.perf_counter() - begun:.1f} s ({pattern.text.count('<td')} cells of it on the page)")
            browser.finished(browser.post("/tables/publish", FORM))
            browser.finished(
                browser.post(
                    "/tables/release", [*FORM[2:], *FORM[:1], ("publication", "mid"), ("alternative", "_midpoint")]
                )
            )
            print(f"{'page':28} | median ms | worst ms")
            for path in [*PAGES, pattern.path]:
                took = []
                for _ in range(7):
                    begun = time.perf_counter()
                    assert browser.get(path).status == 200, path
                    took.append(1000 * (time.perf_counter() - begun))
                print(f"{path:28} | {statistics.median(took):9.0f} | {max(took):8.0f}")


if __name__ == "__main__":
    main()
